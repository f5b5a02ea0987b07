//! PostgreSQL 15's own regression suite, from Debian's source package.
//!
//! Debian's binary packages have the program that runs it, `pg_regress`, and lack what it runs. The
//! source wanted is that of the installed server. A mirror may no longer have it; then any version
//! it has will do, since answers are compared with the same server's and not with those expected.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use super::{Version, dir, fetch_once, postgres};
use crate::command;

/// Debian's name of the source package, and of the server's own package.
const SERVER: &str = "postgresql-15";
/// The package with the headers that the suite's module is compiled with.
const HEADERS: &str = "postgresql-server-dev-15";
/// The suite within the source.
const SUITE: &str = "src/test/regress";
/// Modules of the server's package that the suite wants to find beside its own.
const MODULES: [&str; 2] = ["autoinc.so", "refint.so"];

/// Where the suite is.
#[derive(Clone, Debug)]
pub struct Regression {
    /// Folder of PostgreSQL's programs.
    pub bin: PathBuf,
    /// The program that runs the suite.
    pub program: PathBuf,
    /// Folder with the suite's scripts, data, schedules and modules.
    pub suite: PathBuf,
}

/// PostgreSQL 15's regression suite, ready to run.
pub fn regression() -> Result<Regression> {
    let bin = postgres(Version::V15)?;
    let library = bin.parent().context("no parent folder")?.join("lib");
    let program = library.join("pgxs").join(SUITE).join("pg_regress");
    ensure!(program.is_file(), "{} is not there: not a Debian package?", program.display());
    let dir = dir().join("regression-15");
    let version = command::output(Command::new("dpkg-query").args(["-Wf${Version}", SERVER]))?;
    fetch_once(&dir, &version, |dir| {
        let suite = source(dir, &version)?;
        compile(dir, &suite, &version)?;
        for module in MODULES {
            fs::copy(library.join(module), suite.join(module))?;
        }
        fs::rename(suite, dir.join("suite"))?;
        fs::remove_dir_all(dir.join("source"))?;
        Ok(())
    })?;
    Ok(Regression { bin, program, suite: dir.join("suite") })
}

/// Fetches the source, that of `version` first, and returns the folder of the suite within it.
fn source(dir: &Path, version: &str) -> Result<PathBuf> {
    let apt = SourceLists::of_the_system(dir)?;
    let mut versions = vec![version.to_owned()];
    versions.extend(apt.versions()?.into_iter().filter(|other| other != version));
    let fetched = versions.iter().any(|version| {
        let mut fetch = apt.command("apt-get");
        fetch.args(["source", "--download-only"]).arg(format!("{SERVER}={version}"));
        command::run(fetch.current_dir(dir)).is_ok()
    });
    ensure!(fetched, "the mirror has the source of {SERVER} in none of {versions:?}");
    let source = dir.join("source");
    fs::create_dir(&source)?;
    let mut tar = Command::new("tar");
    tar.arg("-C").arg(&source).args(["--strip-components=1", "--wildcards", "-xf"]);
    tar.arg(named(dir, ".orig.tar.")?).arg(format!("*/{SUITE}"));
    command::run(&mut tar)?;
    Ok(source.join(SUITE))
}

/// Compiles the functions that the suite's scripts load into the server.
fn compile(dir: &Path, suite: &Path, version: &str) -> Result<()> {
    let download = |package: &str| {
        let mut apt = apt("apt-get");
        command::run(apt.args(["download", package]).current_dir(dir))
    };
    download(&format!("{HEADERS}={version}")).or_else(|_| download(HEADERS))?;
    let headers = dir.join("source/headers");
    command::run(Command::new("dpkg").arg("-x").arg(named(dir, HEADERS)?).arg(&headers))?;
    let mut cc = Command::new("cc");
    cc.args(["-O1", "-shared", "-fPIC", "-o"]).arg(suite.join("regress.so"));
    cc.arg("-I").arg(headers.join("usr/include/postgresql/15/server"));
    command::run(cc.arg(suite.join("regress.c")))
}

/// Package lists of our own, with the source packages of Debian's mirrors that the system uses.
struct SourceLists {
    options: [String; 3],
}

impl SourceLists {
    /// Fetches the lists into `dir`.
    fn of_the_system(dir: &Path) -> Result<SourceLists> {
        let line = "deb-src $(REPO_URI) $(RELEASE) $(COMPONENT)";
        let mut indexes = apt("apt-get");
        indexes.args(["indextargets", "--format", line, "Created-By: Packages", "Origin: Debian"]);
        let lines = command::output(&mut indexes)?;
        ensure!(!lines.is_empty(), "no package lists of Debian's here: run `apt-get update`");
        let (file, lists) = (dir.join("sources.list"), dir.join("lists"));
        fs::write(&file, lines)?;
        fs::create_dir_all(lists.join("partial"))?;
        let options = [
            format!("-oDir::Etc::SourceList={}", file.display()),
            "-oDir::Etc::SourceParts=-".to_owned(),
            format!("-oDir::State::Lists={}", lists.display()),
        ];
        let apt = SourceLists { options };
        command::run(apt.command("apt-get").arg("update"))?;
        Ok(apt)
    }

    fn command(&self, program: &str) -> Command {
        let mut command = apt(program);
        command.args(&self.options);
        command
    }

    /// Versions of the server whose source is listed.
    fn versions(&self) -> Result<Vec<String>> {
        let records = command::output(self.command("apt-cache").args(["showsrc", SERVER]))?;
        let versions = records.lines().filter_map(|line| line.strip_prefix("Version: "));
        Ok(versions.map(str::to_owned).collect())
    }
}

/// A program of apt's, quiet. Root's downloads stay root's: apt's own user cannot write where they
/// go.
fn apt(program: &str) -> Command {
    let mut apt = Command::new(program);
    apt.args(["-qq", "-oAPT::Sandbox::User=root"]);
    apt
}

/// The file in `dir` that has `part` in its name.
fn named(dir: &Path, part: &str) -> Result<PathBuf> {
    for entry in fs::read_dir(dir)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name.contains(part) {
            return Ok(dir.join(name));
        }
    }
    bail!("{} has no file with {part} in its name", dir.display())
}
