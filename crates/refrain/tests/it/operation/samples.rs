//! The samples of `contrib`, and what the program writes about its own command line.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use xtask::certificates::Authority;
use xtask::proxy::program;
use xtask::workspace;

/// The folder that the samples name, whose place one of the test's takes.
const FOLDER: &str = "/etc/refrain";

#[test]
fn the_samples_are_taken_and_each_option_they_show_exists() {
    let folder = files();
    for (name, off) in [("refrain.toml", '#'), ("pgbouncer.ini", ';')] {
        let sample = workspace::root().join("contrib/config").join(name);
        let sample = fs::read_to_string(sample).unwrap();
        let sample = sample.replace(FOLDER, folder.to_str().unwrap());
        let told = check(&folder.join(name), &sample);
        assert!(!told.contains("warning") && !told.contains("note"), "{name}: {told}");
        let on = switched_on(&sample, off);
        assert!(on.lines().filter(|line| sample.lines().all(|was| was != *line)).count() > 15);
        check(&folder.join(format!("on-{name}")), &on);
    }
    fs::remove_dir_all(folder).unwrap();
}

/// Returns a sample whose options are all on: a line is one if no blank is behind its sign.
fn switched_on(sample: &str, off: char) -> String {
    let lines = sample.lines().map(|line| match line.strip_prefix(off) {
        Some(rest) if !rest.is_empty() && !rest.starts_with(' ') => rest,
        _ => line,
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Checks a configuration, which has to be right, and returns what the program says.
fn check(path: &PathBuf, text: &str) -> String {
    fs::write(path, text).unwrap();
    closed_to_others(path);
    let output = Command::new(program().unwrap()).arg("check").arg(path).output().unwrap();
    let told = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && told.contains("no errors"), "{told}");
    told
}

/// Makes a folder with the files that the samples name.
fn files() -> PathBuf {
    let folder = std::env::temp_dir().join(format!("refrain-samples-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let users = workspace::root().join("contrib/config/userlist.txt");
    fs::copy(users, folder.join("userlist.txt")).unwrap();
    let authority = Authority::new("root").unwrap();
    let signed = authority.sign("refrain", &["localhost"]).unwrap();
    fs::write(folder.join("root.crt"), authority.certificate()).unwrap();
    fs::write(folder.join("server.crt"), signed.certificate).unwrap();
    fs::write(folder.join("server.key"), signed.key).unwrap();
    for name in ["userlist.txt", "server.key"] {
        closed_to_others(&folder.join(name));
    }
    folder
}

fn closed_to_others(path: &std::path::Path) {
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
}

#[test]
fn completions_and_manual_pages_have_every_flag_and_subcommand() {
    let run = |arguments: &[&str]| {
        let output = Command::new(program().unwrap()).args(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let help = run(&["--help"]);
    let options = help.split_once("\nOptions:").unwrap().1;
    let flags = options.lines().filter_map(|line| {
        let (_, flag) = line.trim().split_once("--").filter(|_| line.trim().starts_with('-'))?;
        flag.split([' ', '[', '=']).next()
    });
    let flags: Vec<_> = flags.collect();
    assert!(flags.len() > 10 && flags.contains(&"pool-mode"), "{flags:?}");
    let folder = std::env::temp_dir().join(format!("refrain-manual-{}", std::process::id()));
    run(&["man", folder.to_str().unwrap()]);
    let page = fs::read_to_string(folder.join("refrain.1")).unwrap();
    let texts = ["bash", "zsh", "fish"].map(|shell| run(&["completions", shell]));
    for flag in &flags {
        assert!(page.contains(&format!("\\-\\-{}", flag.replace('-', "\\-"))), "{flag}");
        // Fish has them without their dashes.
        assert!(texts.iter().all(|text| text.contains(flag)), "{flag}");
    }
    for subcommand in ["check", "convert", "advise", "completions", "man"] {
        assert!(folder.join(format!("refrain-{subcommand}.1")).is_file(), "{subcommand}");
        assert!(texts.iter().all(|text| text.contains(subcommand)), "{subcommand}");
    }
    assert!(page.contains(".SH EXAMPLES"), "{page}");
    fs::remove_dir_all(folder).unwrap();
}
