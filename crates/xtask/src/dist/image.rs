//! The image: what its Dockerfile names exists, and the files that operators write are taken.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::certificates::Authority;
use crate::command;
use crate::workspace;

/// Checks what can be checked of the Dockerfile without an engine that builds it.
pub(super) fn dockerfile() -> Result<()> {
    let root = workspace::root();
    let text = fs::read_to_string(root.join("contrib/docker/Dockerfile"))?;
    let steps = steps(&text);
    let of = |name: &str| {
        steps.iter().filter(|(word, _)| word == name).map(|(_, rest)| &**rest).collect::<Vec<_>>()
    };
    for copied in of("COPY").into_iter().filter(|rest| !rest.starts_with("--from=")) {
        let source = copied.split_whitespace().next().unwrap_or_default();
        ensure!(root.join(source).exists(), "the image copies {source}, which is not there");
    }
    let toolchain = fs::read_to_string(root.join("rust-toolchain.toml"))?;
    let channel = toolchain.split('"').nth(1).context("no toolchain")?;
    let compiler = of("FROM").into_iter().find_map(|rest| rest.strip_prefix("rust:"));
    let compiler = compiler.and_then(|rest| rest.split('-').next()).context("no compiler")?;
    ensure!(channel.starts_with(compiler), "the image has Rust {compiler}, not {channel}");
    ensure!(of("USER") == ["998:996"], "the image runs as {:?}", of("USER"));
    let linked = of("RUN").iter().any(|run| run.contains("ln -s refrain /usr/bin/pgbouncer"));
    ensure!(linked, "the image has no program of PgBouncer's name");
    let last = steps.iter().rev().find(|(word, _)| word == "FROM");
    ensure!(
        last.is_some_and(|(_, rest)| rest == "base AS refrain"),
        "another image is the default"
    );
    Ok(())
}

/// Returns the instructions of a Dockerfile, each with the rest of its lines.
fn steps(text: &str) -> Vec<(String, String)> {
    let lines = text.lines().map(str::trim).filter(|line| !line.starts_with('#'));
    let joined = lines.collect::<Vec<_>>().join("\n").replace("\\\n", " ");
    let split = joined.lines().filter_map(|line| line.split_once(' '));
    split.map(|(word, rest)| (word.to_owned(), rest.trim().to_owned())).collect()
}

/// Runs the script of the image for Zalando's operator with the operator's variables, in a folder
/// of the test. The program checks what the script has written.
pub(super) fn for_zalando(program: &Path, folder: &Path) -> Result<()> {
    let checker = folder.join("check.sh");
    fs::write(&checker, format!("#!/bin/sh\nexec {} check \"$1\"\n", program.display()))?;
    command::run(Command::new("chmod").arg("+x").arg(&checker))?;
    let mut script = Command::new("sh");
    script.arg(workspace::root().join("contrib/docker/zalando.sh"));
    script.env("REFRAIN_DIR", folder).env("REFRAIN_PROGRAM", checker);
    // Those that the operator sets, with a password that has every sign that means something.
    let variables = [
        ("PGHOST", "acid-test"),
        ("PGPORT", "5432"),
        ("PGUSER", "pooler"),
        ("PGSCHEMA", "pooler"),
        ("PGPASSWORD", "a\"b$c\\d;e%f"),
        ("CONNECTION_POOLER_PORT", "5432"),
        ("CONNECTION_POOLER_MODE", "transaction"),
        ("CONNECTION_POOLER_DEFAULT_SIZE", "15"),
        ("CONNECTION_POOLER_MIN_SIZE", "7"),
        ("CONNECTION_POOLER_RESERVE_SIZE", "7"),
        ("CONNECTION_POOLER_MAX_CLIENT_CONN", "10000"),
        ("CONNECTION_POOLER_MAX_DB_CONN", "30"),
    ];
    let told = command::output(script.envs(variables))?;
    is_taken("Zalando's operator", &told)?;
    let users = fs::read_to_string(folder.join("userlist.txt"))?;
    ensure!(users == "\"pooler\" \"a\"\"b$c\\d;e%f\"\n", "the script writes {users}");
    Ok(())
}

/// The file that CloudNativePG's manager writes, in the folder `@`.
const CLOUDNATIVE_PG: &str = "
[databases]
* = host=cluster-example-rw

[pgbouncer]
pool_mode = session
auth_user = cnpg_pooler_pgbouncer
auth_query = SELECT usename, passwd FROM public.user_search($1)
auth_dbname = postgres

admin_users = pgbouncer
auth_hba_file = @/pg_hba.conf
auth_type = hba
client_tls_ca_file = @/ca.crt
client_tls_cert_file = @/tls.crt
client_tls_key_file = @/tls.key
client_tls_sslmode = prefer
ignore_startup_parameters = extra_float_digits,options
listen_addr = *
listen_port = 5432
log_stats = 0
server_tls_ca_file = @/ca.crt
server_tls_cert_file = @/tls.crt
server_tls_key_file = @/tls.key
server_tls_sslmode = verify-ca
unix_socket_dir = @
";

/// The rules beside it.
const CLOUDNATIVE_PG_HBA: &str = "
local pgbouncer pgbouncer peer

host all all 0.0.0.0/0 md5
host all all ::/0 md5
";

/// Checks the files that CloudNativePG's manager writes for its pooler, in a folder of the test.
pub(super) fn for_cloudnative_pg(program: &Path, folder: &Path) -> Result<()> {
    let authority = Authority::new("root")?;
    let signed = authority.sign("pooler", &["pooler"])?;
    let files = [
        ("pgbouncer.ini", CLOUDNATIVE_PG.replace('@', &folder.display().to_string())),
        ("pg_hba.conf", CLOUDNATIVE_PG_HBA.to_owned()),
        ("ca.crt", authority.certificate()),
        ("tls.crt", signed.certificate),
        ("tls.key", signed.key),
    ];
    for (name, text) in files {
        fs::write(folder.join(name), text)?;
    }
    let mut check = Command::new(program);
    let told = command::output(check.arg("check").arg(folder.join("pgbouncer.ini")))?;
    is_taken("CloudNativePG", &told)
}

fn is_taken(whose: &str, told: &str) -> Result<()> {
    ensure!(told.contains("no errors; databases: 1"), "of the file of {whose}:\n{told}");
    Ok(())
}
