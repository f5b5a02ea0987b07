//! The program with a `pgbouncer.ini`, as operators of PgBouncer have them.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::{Command, Output};

use xtask::postgres::{AUTH_DATABASE, Cluster, PASSWORD};
use xtask::proxy::{Refrain, program};

use crate::world::{Version, cluster, database, eventually, psql};

/// Fills in where the servers of a cluster are.
fn over(cluster: &Cluster, ini: &str) -> String {
    let ini = ini.replace("{host}", cluster.host());
    ini.replace("{pg}", &cluster.port().to_string())
}

/// Logs in, and runs SQL.
fn runs(
    refrain: &Refrain,
    (user, password): (&str, &str),
    database: &str,
    sql: &str,
) -> Result<String, String> {
    psql(&format!("postgres://{user}@127.0.0.1:{}/{database}", refrain.port()), password, sql)
}

fn refrain(arguments: &[&str]) -> Output {
    Command::new(program().unwrap()).args(arguments).output().unwrap()
}

const USERS: &str = "\"postgres\" \"pw\"\n\"hashed\" \"md50123456789abcdef0123456789abcdef\"\n";

/// The keys that the file of an application has, most often.
const APP: &str = "\
[databases]
app = host={host} port={pg} dbname=DATABASE user=postgres pool_size=1 connect_query='set jit to off'
* = host={host} port={pg} user=postgres

[users]
postgres = max_user_client_connections=50

[pgbouncer]
logfile = {dir}/p.log
pidfile = {dir}/p.pid
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir = {dir}
unix_socket_mode = 0700
auth_type = md5
auth_file = userlist.txt
admin_users = postgres
stats_users = watcher
ignore_startup_parameters = extra_float_digits
server_check_query = select 1
tcp_keepidle = 30
tcp_keepintvl = 10
tcp_keepcnt = 3
tcp_user_timeout = 20000
so_reuseport = 1
";

#[test]
fn an_application_s_file_serves() {
    let name = database("ini_app");
    let ini = over(cluster(Version::V15), APP).replace("DATABASE", name);
    let refrain = Refrain::start_ini(&ini, &[("userlist.txt", USERS)]).unwrap();
    let login = ("postgres", "pw");
    let current = "select current_database(), current_setting('jit')";
    assert_eq!(runs(&refrain, login, "app", current).as_deref(), Ok("ini_app|off"));
    // What no line names is a database of the same name.
    assert_eq!(runs(&refrain, login, name, "select 1").as_deref(), Ok("1"));
    assert!(runs(&refrain, ("postgres", "wrong"), "app", "select 1").is_err());
    assert!(runs(&refrain, ("nobody", "pw"), "app", "select 1").is_err());
    let shown = runs(&refrain, login, "pgbouncer", "show databases").unwrap();
    let row = shown.lines().find(|line| line.starts_with("app|")).unwrap();
    assert!(row.contains("|postgres|1|") && row.contains("|session|"), "{row}");
    let config = runs(&refrain, login, "pgbouncer", "show config").unwrap();
    assert!(config.contains("unix_socket_mode|0700"), "{config}");
    // The files are as they are asked for.
    let folder = refrain.folder();
    let pid = fs::read_to_string(folder.join("p.pid")).unwrap();
    assert_eq!(pid, format!("{}\n", refrain.id()));
    let socket = folder.join(format!(".s.PGSQL.{}", refrain.port()));
    assert_eq!(fs::metadata(&socket).unwrap().permissions().mode() & 0o777, 0o700);
    let log = || fs::read_to_string(folder.join("p.log")).unwrap();
    eventually("both logs say where it listens", || {
        log().contains("listening on") && refrain.log().contains("listening on")
    });
    let told = "pgbouncer.ignore_startup_parameters: has nothing to do here";
    eventually("the log says so", || refrain.log().contains(told));
}

#[test]
fn a_first_query_that_fails_is_told() {
    let ini = "[databases]\n* = host={host} port={pg} user=postgres connect_query='selec 1'\n\
               open = host={host} port={pg} user=postgres dbname=postgres connect_query='begin'\n\
               set = host={host} port={pg} user=postgres dbname=postgres pool_size=1 \
               connect_query='set timezone to ''Asia/Tokyo''; select 1; \
               set search_path to pg_catalog'\n\
               [pgbouncer]\npool_mode = transaction\nauth_type = any\nlisten_addr = 127.0.0.1\n\
               listen_port = {port}\nunix_socket_dir =\n";
    let refrain = Refrain::start_ini(&over(cluster(Version::V15), ini), &[]).unwrap();
    let ask = |database: &str, sql: &str| runs(&refrain, ("me", ""), database, sql);
    assert_eq!(ask("postgres", "select 1").as_deref(), Ok("1"));
    let is_told = |words: &str| eventually(words, || refrain.log().contains(words));
    is_told("connect_query failed: syntax error");
    assert!(ask("open", "select 1").is_err());
    is_told("left a transaction open");
    // What the query sets is there for each client, also behind one that has left something.
    let both = "select current_setting('timezone'), current_setting('search_path')";
    for _ in 0..2 {
        assert_eq!(ask("set", both).as_deref(), Ok("Asia/Tokyo|pg_catalog"));
        assert!(ask("set", "create temp table left_behind (a int); listen here").is_ok());
    }
}

#[test]
fn a_reload_reads_the_file_again_and_opens_the_log_anew() {
    let name = database("ini_reload");
    let ini = over(cluster(Version::V15), APP).replace("DATABASE", name);
    let refrain = Refrain::start_ini(&ini, &[("userlist.txt", USERS)]).unwrap();
    let login = ("postgres", "pw");
    let path = refrain.folder().join("config.ini");
    let (log, old) = (refrain.folder().join("p.log"), refrain.folder().join("p.log.1"));
    fs::rename(&log, &old).unwrap();
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("pool_size=1", "pool_size=3")).unwrap();
    runs(&refrain, login, "pgbouncer", "reload").unwrap();
    let shown = runs(&refrain, login, "pgbouncer", "show databases").unwrap();
    assert!(shown.contains("|postgres|3|"), "{shown}");
    eventually("the new log has a line", || {
        fs::read_to_string(&log).is_ok_and(|text| text.contains("configuration reloaded"))
    });
    // A file with a mistake changes nothing.
    fs::write(&path, text.replace("pool_size=1", "pool_sice=9")).unwrap();
    let refused = runs(&refrain, login, "pgbouncer", "reload").unwrap_err();
    assert!(refused.contains("did you mean pool_size?"), "{refused}");
    assert_eq!(runs(&refrain, login, "app", "select 1").as_deref(), Ok("1"));
    let pid = refrain.folder().join("p.pid");
    assert!(pid.exists());
}

/// As CloudNativePG writes it: users from the database, rules of authentication, every name.
const OF_AN_OPERATOR: &str = "\
[databases]
* = host={host} port={pg}

[pgbouncer]
pool_mode = transaction
auth_user = postgres
auth_query = SELECT rolname, rolpassword FROM pg_authid WHERE rolname = $1
auth_dbname = postgres
auth_file = {dir}/userlist.txt
auth_type = hba
auth_hba_file = {dir}/pg_hba.conf
admin_users = pgbouncer
listen_addr = *
listen_port = {port}
unix_socket_dir = {dir}
log_stats = 0
server_reset_query = DISCARD ALL
server_tls_sslmode = prefer
ignore_startup_parameters = extra_float_digits,options
max_client_conn = 1000
default_pool_size = 5
";

#[test]
fn an_operator_s_file_asks_the_database_for_users() {
    let cluster = cluster(Version::V15);
    let rules =
        "local pgbouncer pgbouncer peer\nhost all all 0.0.0.0/0 md5\nhost all all ::/0 md5\n";
    let files = [("userlist.txt", "\"postgres\" \"\"\n"), ("pg_hba.conf", rules)];
    let refrain = Refrain::start_ini(&over(cluster, OF_AN_OPERATOR), &files).unwrap();
    let who = |user: &str, password: &str| {
        runs(&refrain, (user, password), AUTH_DATABASE, "select current_user")
    };
    for user in ["scram_user", "md5_user"] {
        assert_eq!(who(user, PASSWORD).as_deref(), Ok(user));
        assert!(who(user, "wrong").is_err());
    }
    // PgBouncer's `log_connections` and `log_disconnections` are 1 by default.
    for words in ["cause=client_login ", " cause=terminated "] {
        let told = |line: &str| line.contains(words) && line.contains("user=scram_user ");
        eventually("the session is logged", || refrain.log().lines().any(told));
    }
}

#[test]
fn trust_wants_the_name_to_be_known() {
    let ini = "[databases]\n* = host={host} port={pg} user=postgres\n[pgbouncer]\n\
               listen_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\n\
               auth_type = trust\nauth_file = userlist.txt\n";
    let ini = over(cluster(Version::V15), ini);
    let refrain = Refrain::start_ini(&ini, &[("userlist.txt", "\"ann\" \"\"\n")]).unwrap();
    let who = |user: &str| runs(&refrain, (user, ""), "postgres", "select current_user");
    assert_eq!(who("ann").as_deref(), Ok("postgres"));
    let told = who("bob").unwrap_err();
    assert!(told.contains("FATAL:  \"trust\" authentication failed"), "{told}");
    // Nobody is an administrator.
    assert!(runs(&refrain, ("ann", ""), "pgbouncer", "show pools").is_err());
}

/// A file with keys that change how servers are used and what clients are told.
const STRICT: &str = "\
[databases]
app = host={host} port={pg} dbname=postgres user=postgres
other = host={host} port={pg} dbname=postgres user=postgres

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir = {dir}
auth_type = scram-sha-256
auth_file = userlist.txt
admin_users = postgres
query_timeout = 1
application_name_add_host = 1
server_round_robin = 1
server_fast_close = 1
scram_iterations = 5000
tcp_socket_buffer = 65536
max_packet_size = 1000000
dns_zone_check_period = 5
";

#[test]
fn errors_have_pgbouncer_s_words() {
    let ini = over(cluster(Version::V15), STRICT);
    let refrain = Refrain::start_ini(&ini, &[("userlist.txt", USERS)]).unwrap();
    let login = ("postgres", "pw");
    let fails = |login, database: &str, sql: &str, words: &str| {
        let told = runs(&refrain, login, database, sql).unwrap_err();
        let fatal = format!("FATAL:  {words}");
        assert!(told.lines().any(|line| line.ends_with(&fatal)), "{words}: {told}");
    };
    fails(("postgres", "wrong"), "app", "select 1", "SASL authentication failed");
    fails(login, "nope", "select 1", "no such database: nope");
    fails(login, "app", "select pg_sleep(9)", "query timeout");
    let long = format!("select length('{}')", "x".repeat(120_000));
    assert_eq!(runs(&refrain, login, "app", &long).as_deref(), Ok("120000"));
    runs(&refrain, login, "pgbouncer", "disable other").unwrap();
    fails(login, "other", "select 1", "database \"other\" is disabled");
    // Errors of the server are the server's own.
    let told = runs(&refrain, login, "app", "select 1/0").unwrap_err();
    assert!(told.contains("ERROR:  division by zero"), "{told}");
    // The log has PostgreSQL's words.
    eventually("the log says so", || refrain.log().contains("database \"nope\" does not exist"));
}

#[test]
fn servers_see_who_the_clients_are() {
    let ini = over(cluster(Version::V15), STRICT);
    let refrain = Refrain::start_ini(&ini, &[("userlist.txt", USERS)]).unwrap();
    let seen = "select application_name from pg_stat_activity where pid = pg_backend_pid()";
    let name = runs(&refrain, ("postgres", "pw"), "app", seen).unwrap();
    assert!(name.starts_with("psql - 127.0.0.1:"), "{name}");
}

#[test]
fn a_unix_socket_alone_is_enough() {
    let ini = "[databases]\n* = host={host} port={pg} user=postgres\n[pgbouncer]\n\
               listen_port = {port}\nunix_socket_dir = {dir}\nauth_type = any\n";
    let ini = over(cluster(Version::V15), ini);
    let dir = std::env::temp_dir().join(format!("refrain-ini-{}", std::process::id()));
    fs::create_dir_all(&dir).unwrap();
    let ini = ini.replace("{dir}", &dir.display().to_string()).replace("{port}", "7171");
    fs::write(dir.join("config.ini"), ini).unwrap();
    let mut child = Command::new(program().unwrap()).arg(dir.join("config.ini")).spawn().unwrap();
    let url = format!(
        "postgres://me@%2F{}:7171/postgres",
        &dir.display().to_string()[1..].replace('/', "%2F")
    );
    eventually("it serves", || psql(&url, "", "select current_user").as_deref() == Ok("postgres"));
    child.kill().unwrap();
    child.wait().unwrap();
    fs::remove_dir_all(dir).unwrap();
}

#[test]
fn files_are_checked_and_converted() {
    let dir = std::env::temp_dir().join(format!("refrain-check-ini-{}", std::process::id()));
    fs::create_dir_all(&dir).unwrap();
    let path = dir.join("p.ini");
    let name = path.to_str().unwrap();
    fs::write(
        &path,
        "[databases]\n; the shop\nshop = host=h\n[pgbouncer]\npkt_buf = 1\nauth_user = a\n",
    )
    .unwrap();
    let checked = refrain(&["check", name]);
    let text = String::from_utf8_lossy(&checked.stdout);
    assert!(checked.status.success() && text.contains("no errors; databases: 1"), "{text}");
    assert!(text.contains("note: ") && text.contains("line 5: pgbouncer.pkt_buf"), "{text}");
    let converted = refrain(&["convert", name]);
    let toml = dir.join("p.toml");
    fs::write(&toml, &converted.stdout).unwrap();
    let text = String::from_utf8_lossy(&converted.stdout);
    assert!(text.contains("# the shop\n[databases.shop]\nhost = \"h\""), "{text}");
    assert!(refrain(&["check", toml.to_str().unwrap()]).status.success(), "{text}");
    fs::write(&path, "[databases]\nshop = host=h\n[pgbouncer]\nauth_type = ldap\ncolour = red\n")
        .unwrap();
    let checked = refrain(&["check", name]);
    let text = String::from_utf8_lossy(&checked.stdout);
    assert!(!checked.status.success(), "{text}");
    for line in ["line 4: pgbouncer.auth_type: ldap is not built", "line 5: pgbouncer.colour: "] {
        assert!(text.contains(&format!("{name}: {line}")), "{text}");
    }
    // Under PgBouncer's name, the command line is PgBouncer's.
    let link = dir.join("pgbouncer");
    symlink(program().unwrap(), &link).unwrap();
    let said = Command::new(&link).arg("--version").output().unwrap();
    assert!(String::from_utf8_lossy(&said.stdout).starts_with("PgBouncer 1."), "{said:?}");
    let refused = Command::new(&link).args(["-d", name]).output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
    fs::remove_dir_all(dir).unwrap();
}
