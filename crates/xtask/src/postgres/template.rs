//! The template: a data folder that each new cluster copies, created once per version.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use super::{Version, account};
use crate::command;
use crate::scratch;

/// The database in which `md5_user`, `scram_user` and `plain_user` need [`PASSWORD`], each by the
/// method of its name. All other databases trust every user.
pub const AUTH_DATABASE: &str = "auth_db";
/// The password of each of those users.
pub const PASSWORD: &str = "secret";

/// SQL with one statement per line, as PostgreSQL's single-user mode needs it.
const SQL: &str = "\
CREATE DATABASE auth_db;
SET password_encryption = 'md5';
CREATE ROLE md5_user LOGIN PASSWORD 'secret';
SET password_encryption = 'scram-sha-256';
CREATE ROLE scram_user LOGIN PASSWORD 'secret';
CREATE ROLE plain_user LOGIN PASSWORD 'secret';
";

const HBA: &str = "\
local auth_db    md5_user                 md5
local auth_db    scram_user               scram-sha-256
local auth_db    plain_user               password
host  auth_db    md5_user   127.0.0.1/32  md5
host  auth_db    scram_user 127.0.0.1/32  scram-sha-256
host  auth_db    plain_user 127.0.0.1/32  password
local all         all                     trust
host  all         all       127.0.0.1/32  trust
local replication all                     trust
host  replication all       127.0.0.1/32  trust
";

const CONFIGURATION: &str = "
listen_addresses = '127.0.0.1'
max_connections = 200
fsync = off
full_page_writes = off
max_wal_size = '256MB'
log_line_prefix = '%m [%p] %u@%d '
";

/// Returns the template of this version, and creates it if there is none with the texts above.
pub(super) fn of(version: Version, bin: &Path) -> Result<PathBuf> {
    let name = command::output(Command::new(bin.join("postgres")).arg("--version"))?;
    let mut hasher = DefaultHasher::new();
    (name, SQL, HBA, CONFIGURATION).hash(&mut hasher);
    let file_name = format!("template.{}.{:016x}", version.name(), hasher.finish());
    let template = scratch::base()?.join(file_name);
    if !template.is_dir() {
        let unfinished = super::new_dir(scratch::unused()?)?;
        make(&unfinished.join("data"), bin)?;
        // Another process may have created it first. Then this one is not needed.
        if fs::rename(unfinished.join("data"), &template).is_err() {
            ensure!(template.is_dir(), "cannot create {}", template.display());
        }
        fs::remove_dir_all(unfinished)?;
    }
    Ok(template)
}

/// Copies the template with its owners and modes. `to` must not exist.
pub(super) fn copy(template: &Path, to: &Path) -> Result<()> {
    command::run(Command::new("cp").args(["-a", "--reflink=auto"]).arg(template).arg(to))
}

fn make(data: &Path, bin: &Path) -> Result<()> {
    let mut initdb = account::command(&bin.join("initdb"));
    initdb.args(["--no-sync", "--username=postgres", "--auth=trust", "--encoding=UTF8"]);
    command::output(initdb.args(["--locale=C.UTF-8", "-D"]).arg(data))?;
    append(&data.join("postgresql.conf"), CONFIGURATION)?;
    fs::write(data.join("pg_hba.conf"), HBA)?;
    let mut single = account::command(&bin.join("postgres"));
    single.args(["--single", "-D"]).arg(data).arg("postgres");
    single.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut single = single.spawn().context("cannot run PostgreSQL in single-user mode")?;
    single.stdin.take().context("no input")?.write_all(SQL.as_bytes())?;
    ensure!(single.wait()?.success(), "setting up users failed");
    Ok(())
}

fn append(file: &Path, text: &str) -> Result<()> {
    Ok(fs::File::options().append(true).open(file)?.write_all(text.as_bytes())?)
}
