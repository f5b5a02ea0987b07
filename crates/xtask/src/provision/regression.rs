//! PostgreSQL 15's own regression suites, from Debian's source package.
//!
//! Debian's binary packages have the program `pg_regress`, which runs the suites, but not the
//! suites. The source of the installed server's version is preferred. If the mirror no longer has
//! it, any other version will do, since two runs on the same server are compared, not a run with
//! the expected files.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use super::{Version, dir, fetch_once, postgres};
use crate::command;

/// Debian's name of the source package, and of the server's own package.
const SERVER: &str = "postgresql-15";
/// The package with the headers that the suites' module is compiled with.
const HEADERS: &str = "postgresql-server-dev-15";
/// The path in the source of the server's own suite and of the program that runs suites.
const SERVERS_OWN: &str = "src/test/regress";
/// Modules of the server's package that the server's own suite expects beside its own module.
const MODULES: [&str; 2] = ["autoinc.so", "refint.so"];

/// A suite, as PostgreSQL's makefiles run it.
#[derive(Clone, Copy, Debug)]
pub struct Suite {
    /// The suite's name in this program.
    pub name: &'static str,
    /// The database that the suite creates.
    pub database: &'static str,
    /// The suite's path in the source.
    source: &'static str,
}

/// Every suite.
pub const SUITES: [Suite; 2] = [
    Suite { name: "server", database: "regression", source: SERVERS_OWN },
    Suite { name: "plpgsql", database: "pl_regression", source: "src/pl/plpgsql/src" },
];

/// Paths of the suites and of their programs.
#[derive(Clone, Debug)]
pub struct Regression {
    /// Folder of PostgreSQL's programs.
    pub bin: PathBuf,
    /// The program that runs a suite.
    pub program: PathBuf,
    /// A folder that has each of [`SUITES`] by its name, with scripts, data and modules.
    pub suites: PathBuf,
}

/// Fetches PostgreSQL 15's regression suites and returns their paths.
pub fn regression() -> Result<Regression> {
    let bin = postgres(Version::V15)?;
    let library = bin.parent().context("no parent folder")?.join("lib");
    let program = library.join("pgxs").join(SERVERS_OWN).join("pg_regress");
    ensure!(program.is_file(), "{} is not there: not a Debian package?", program.display());
    let dir = dir().join("regression-15");
    let suites = dir.join("suites");
    let version = command::output(Command::new("dpkg-query").args(["-Wf${Version}", SERVER]))?;
    fetch_once(&dir, &format!("{version} {SUITES:?}"), |dir| {
        let source = source(dir, &version)?;
        let own = source.join(SERVERS_OWN);
        compile(dir, &own, &version)?;
        for module in MODULES {
            fs::copy(library.join(module), own.join(module))?;
        }
        fs::create_dir(&suites)?;
        for suite in SUITES {
            fs::rename(source.join(suite.source), suites.join(suite.name))?;
        }
        Ok(fs::remove_dir_all(source)?)
    })?;
    Ok(Regression { bin, program, suites })
}

/// Fetches the source, preferably of `version`, and returns a folder with the suites' part of it.
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
    tar.arg(named(dir, ".orig.tar.")?).args(SUITES.map(|suite| format!("*/{}", suite.source)));
    command::run(&mut tar)?;
    Ok(source)
}

/// Compiles the functions that the scripts of the server's own suite load into the server.
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

/// Separate package lists, with the source packages of the Debian mirrors that the system uses.
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

    /// Returns the versions of the server whose source is listed.
    fn versions(&self) -> Result<Vec<String>> {
        let records = command::output(self.command("apt-cache").args(["showsrc", SERVER]))?;
        let versions = records.lines().filter_map(|line| line.strip_prefix("Version: "));
        Ok(versions.map(str::to_owned).collect())
    }
}

/// Returns the command of one of apt's programs, quiet. Root downloads as root: apt's own user
/// cannot write into the folder.
fn apt(program: &str) -> Command {
    let mut apt = Command::new(program);
    apt.args(["-qq", "-oAPT::Sandbox::User=root"]);
    apt
}

/// Returns the file in `dir` that has `part` in its name.
fn named(dir: &Path, part: &str) -> Result<PathBuf> {
    for entry in fs::read_dir(dir)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name.contains(part) {
            return Ok(dir.join(name));
        }
    }
    bail!("{} has no file with {part} in its name", dir.display())
}
