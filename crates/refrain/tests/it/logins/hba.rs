//! Logins by the rules of `pg_hba.conf`: PostgreSQL with the same rules says what is right.

use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;

use refrain_differ::reply::{Frame, frame_end};
use socket2::{Domain, Socket, Type};
use xtask::certificates::Authority;
use xtask::channel::read_some;
use xtask::postgres::{Cluster, PASSWORD};
use xtask::proxy::program;

use crate::session::{LIMIT, Session, startup};
use crate::world::{Config, Proxy, Version, addr, cluster, eventually, psql};

/// Rules that PostgreSQL 15 and Refrain read alike.
const RULES: &str = "\
# the superuser of the test\n\
host  postgres postgres 127.0.0.1/32 trust\n\
local postgres,template1 md5_user peer map=system\n\
local template1 plain_user peer\n\
local all \"all\" trust\n\
local sameuser all \\\n\
  trust\n\
host  all postgres 127.0.0.2/32 reject\n\
host  sameuser all 127.0.0.3 255.255.255.255 trust\n\
host  samerole all 127.0.0.4/32 trust\n\
host  all +staff 127.0.0.5/32 md5\n\
host  template1, md5_user scram_user 127.0.0.6/31 scram-sha-256\n\
host  \"postgres\",template1 plain_user samehost password\n\
hostssl all all 127.0.0.8/32 trust\n\
hostgssenc all all 127.0.0.8/32 trust\n\
hostnossl all md5_user 127.0.0.8/32 trust\n\
hostnogssenc all plain_user 127.0.0.8/32 trust\n\
host  @names all 127.0.0.9/32 reject\n\
host  replication all 127.0.0.10/32 trust\n";

/// Rules that PostgreSQL reads from version 16 on.
const NEWER_RULES: &str = "\
host  /^templ \"/^(md5|plain)_user$\" 127.0.0.11/32 trust\n\
include_if_exists missing.conf\n\
include more.conf\n";

/// The files that the rules name.
const FILES: &[(&str, &str)] = &[
    ("names", "template1\n# no more\n\"postgres\"\n"),
    ("more.conf", "host all all 127.0.0.12/32 reject\n"),
];

/// A folder that PostgreSQL's account may read. It is removed when this is dropped.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("refrain-hba-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        let folder = Self(path);
        fs::set_permissions(&folder.0, fs::Permissions::from_mode(0o755)).unwrap();
        FILES.iter().for_each(|(name, text)| drop(folder.file(name, text)));
        folder
    }

    fn file(&self, name: &str, text: &str) -> String {
        let path = self.0.join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        path.to_str().unwrap().to_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Asks to log in. Returns the first message of the answer in words.
pub(crate) fn knock(stream: &mut (impl Read + Write), user: &str, database: &str) -> String {
    let params = [("user", user), ("database", database)];
    stream.write_all(&startup(0x0003_0000, &params)).unwrap();
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(end) = frame_end(&bytes).unwrap() {
            break end;
        }
        let mut more = [0; 1024];
        let read = read_some(stream, &mut more).unwrap();
        assert!(read > 0, "the connection was closed without a message");
        bytes.extend_from_slice(&more[..read]);
    };
    let frame = Frame::new(bytes[0], &bytes[5..end]);
    let field = |code| String::from_utf8_lossy(frame.field(code)).into_owned();
    match frame.tag {
        b'R' => format!("Authentication {}", frame.body[3]),
        _ => format!("{} {} {}", field(b'S'), field(b'C'), field(b'M')),
    }
}

/// Asks to log in by TCP, from the address `127.0.0.from`.
fn knock_by_tcp(to: SocketAddr, from: u8, user: &str, database: &str) -> String {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.bind(&SocketAddr::from((Ipv4Addr::new(127, 0, 0, from), 0)).into()).unwrap();
    socket.connect(&to.into()).unwrap();
    let mut stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    knock(&mut stream, user, database)
}

fn knock_by_unix(folder: &Path, port: u16, user: &str, database: &str) -> String {
    let mut stream = UnixStream::connect(folder.join(format!(".s.PGSQL.{port}"))).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    knock(&mut stream, user, database)
}

/// Returns the name that the operating system has for the user of this process.
fn own_name() -> String {
    let output = Command::new("id").arg("-un").output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// Returns the tables of users, each with the secret that PostgreSQL has stored, and the groups.
fn users(version: Version) -> String {
    let mut session = Session::open(addr(cluster(version)), "postgres");
    let mut users = "[groups]\nstaff = [\"crew\"]\ncrew = [\"md5_user\", \"scram_user\"]\n\
                     template1 = [\"plain_user\"]\n"
        .to_owned();
    for user in ["md5_user", "scram_user", "plain_user", "postgres"] {
        let sql = format!("select rolpassword from pg_authid where rolname = '{user}'");
        let secret = if user == "postgres" { PASSWORD.to_owned() } else { session.value(&sql) };
        users += &format!("[users.{user}]\npassword = \"{secret}\"\n");
    }
    users
}

/// Makes roles with the members that `users` has in groups.
const MEMBERS: &str = "create role staff; create role crew; grant staff to crew; \
    grant crew to md5_user, scram_user; create role template1; grant template1 to plain_user";

fn rules_decide_as_in(version: Version, rules: &str) {
    let folder = Folder::new(&version.number().to_string());
    let hba = folder.file("hba.conf", rules);
    let maps = format!("system {} md5_user\nsystem /^(.*)$ \\1_\n", own_name());
    let ident = folder.file("ident.conf", &maps);
    let direct = Cluster::start(version, &[("hba_file", &hba), ("ident_file", &ident)]).unwrap();
    let Some(socket_folder) = direct.dir() else { return };
    direct.psql("postgres", MEMBERS).unwrap();
    let proxy = Config::over(cluster(version))
        .general("auth", "\"hba\"")
        .general("hba_file", &format!("{hba:?}"))
        .general("ident_file", &format!("{ident:?}"))
        .general("unix_socket_dir", &format!("{:?}", folder.0))
        .more(&users(version))
        .start();
    let mut outcomes = Vec::new();
    for user in ["md5_user", "scram_user", "plain_user", "postgres"] {
        for database in ["postgres", "template1", "md5_user"] {
            let right = knock_by_unix(socket_folder, direct.port(), user, database);
            let found = knock_by_unix(&folder.0, proxy.addr().port(), user, database);
            assert_eq!(found, right, "{user} {database} by the Unix socket");
            outcomes.push(right);
            for from in 1..=13 {
                let right = knock_by_tcp(addr(&direct), from, user, database);
                let found = knock_by_tcp(proxy.addr(), from, user, database);
                assert_eq!(found, right, "{user} {database} from 127.0.0.{from}");
                outcomes.push(right);
            }
        }
    }
    // A test in which everything is refused alike would show nothing.
    for words in [
        "Authentication 0",
        "Authentication 3",
        "Authentication 5",
        "Authentication 10",
        "FATAL 28000 no pg_hba.conf entry for host \"127.0.0.13\", user \"postgres\"",
        "FATAL 28000 pg_hba.conf rejects connection for host \"127.0.0.2\"",
        "FATAL 28000 Peer authentication failed for user \"plain_user\"",
    ] {
        assert!(outcomes.iter().any(|outcome| outcome.starts_with(words)), "{words}");
    }
}

#[test]
fn rules_decide_as_in_postgresql_15() {
    rules_decide_as_in(Version::V15, RULES);
}

#[test]
fn rules_decide_as_in_postgresql_18() {
    rules_decide_as_in(Version::V18, &format!("{RULES}{NEWER_RULES}"));
}

fn url(proxy: &Proxy, user: &str) -> String {
    format!("postgres://{user}@{}/postgres", proxy.addr())
}

#[test]
fn drivers_log_in_by_each_method_of_passwords() {
    let folder = Folder::new("methods");
    for method in ["password", "md5", "scram-sha-256"] {
        let rules = format!("host all postgres all trust\nhost all all samehost {method}\n");
        let hba = folder.file("hba.conf", &rules);
        let proxy = Config::over(cluster(Version::V15))
            .general("auth", "\"hba\"")
            .general("hba_file", &format!("{hba:?}"))
            .more(&format!("[users.plain_user]\npassword = \"{PASSWORD}\"\n"))
            .start();
        let url = url(&proxy, "plain_user");
        assert_eq!(psql(&url, PASSWORD, "select current_user").as_deref(), Ok("plain_user"));
        let words = "password authentication failed for user \"plain_user\"";
        let refused = psql(&url, "wrong", "select 1").unwrap_err();
        assert!(refused.contains(words), "{method}: {refused}");
        let rows = proxy.show("hba");
        let row = |index: usize| -> Vec<&str> {
            let columns = ["rule_number", "file_name", "line_number", "matched", "refused"];
            columns.iter().map(|column| rows[index][*column].as_str()).collect()
        };
        assert_eq!(row(1), ["2", &hba, "2", "2", "1"], "{method}");
        assert_eq!(rows[1]["last_user"], "plain_user");
        assert_eq!(rows[1]["line"], format!("host all all samehost {method}"));
        assert_eq!(row(2), ["3", "", "0", "0", "0"], "{method}");
    }
}

#[test]
fn a_file_is_read_again_on_reload_unless_it_is_broken() {
    let folder = Folder::new("reload");
    let config = Config::over(cluster(Version::V15))
        .general("auth", "\"hba\"")
        .general("hba_file", &format!("{:?}", folder.file("hba.conf", "local all all reject")))
        .general("admin_users", "[\"postgres\"]");
    let proxy = config.clone().start();
    let enters = || psql(&url(&proxy, "plain_user"), PASSWORD, "select 1");
    assert!(enters().unwrap_err().contains("no pg_hba.conf entry for host \"127.0.0.1\""));
    folder.file("hba.conf", "host all all 127.0.0.1/32 trust");
    proxy.reload_by_signal(&config);
    assert_eq!(enters().as_deref(), Ok("1"));
    folder.file("hba.conf", "host all all 127.0.0.1/32 reject\nhost all all 127.0.0.1 trust");
    proxy.signal("HUP");
    let place =
        format!("hba_file: {}, line 2: invalid IP mask", folder.0.join("hba.conf").display());
    eventually("the mistake is logged", || proxy.log().contains(&place));
    assert_eq!(enters().as_deref(), Ok("1"), "the old rules hold");
}

/// Runs `refrain check`. Returns whether it found no error, and what it printed.
fn check(folder: &Folder, text: &str, mode: u32) -> (bool, String) {
    let path = folder.file("refrain.toml", text);
    fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    let output = Command::new(program().unwrap()).args(["check", &path]).output().unwrap();
    (output.status.success(), String::from_utf8(output.stdout).unwrap())
}

#[test]
fn check_names_the_line_of_a_mistake() {
    let folder = Folder::new("check");
    let hba = folder.file("hba.conf", "local all all trust\n\nlocal all all md6\n");
    let ident = folder.file("ident.conf", "m a");
    let text = format!(
        "auth = \"hba\"\nhba_file = {hba:?}\nident_file = {ident:?}\n\
         [databases.\"*\"]\nhost = \"127.0.0.1\"\n"
    );
    let (fine, said) = check(&folder, &text, 0o600);
    assert!(!fine);
    let place = format!("line 2: hba_file: {hba}, line 3: invalid authentication method \"md6\"");
    assert!(said.contains(&place), "{said}");
    let place = format!("line 3: ident_file: {ident}, line 1: missing entry at end of line");
    assert!(said.contains(&place), "{said}");
}

#[test]
fn secrets_that_others_may_read_are_warned_about() {
    let folder = Folder::new("secrets");
    let text = "[databases.\"*\"]\nhost = \"127.0.0.1\"\n[users.u]\npassword = \"p\"\n";
    let words = "has group or world access";
    let exposed = check(&folder, text, 0o644).1;
    assert!(
        exposed.contains("warning: configuration file") && exposed.contains(words),
        "{exposed}"
    );
    assert!(!check(&folder, text, 0o600).1.contains(words));
    let without = "auth = \"trust\"\n[databases.\"*\"]\nhost = \"127.0.0.1\"\n";
    assert!(!check(&folder, without, 0o644).1.contains(words));
}

#[test]
fn files_of_keys_and_of_users_that_others_may_read_are_warned_about() {
    let folder = Folder::new("keys");
    let signed = Authority::new("root").unwrap().sign("refrain", &[]).unwrap();
    let certificate = folder.file("own.crt", &signed.certificate);
    let (key, other) = (folder.file("own.key", &signed.key), folder.file("db.key", &signed.key));
    let list = folder.file("userlist.txt", "\"u\" \"p\"\n");
    let database = |name: &str| {
        format!(
            "[databases.{name}]\nhost = \"127.0.0.1\"\n\
             sslcert = {certificate:?}\nsslkey = {other:?}\n"
        )
    };
    let text = format!(
        "auth_file = {list:?}\nclient_tls_sslmode = \"prefer\"\n\
         client_tls_cert_file = {certificate:?}\nclient_tls_key_file = {key:?}\n{}{}",
        database("a"),
        database("b")
    );
    let files = [("client_tls_key_file", &key), ("sslkey", &other), ("auth_file", &list)];
    for mode in [0o604, 0o620, 0o600] {
        for (_, file) in files {
            fs::set_permissions(file, fs::Permissions::from_mode(mode)).unwrap();
        }
        // The configuration has no secret of its own.
        let (fine, said) = check(&folder, &text, 0o644);
        assert!(fine && !said.contains("configuration file"), "{said}");
        for (option, file) in files {
            let words = format!("warning: {option} \"{file}\" has group or world access");
            // Two databases have one key, of which Refrain warns once.
            let due = usize::from(mode != 0o600);
            assert_eq!(said.matches(&words).count(), due, "{mode:o}: {words}: {said}");
        }
    }
}

#[test]
fn a_rule_that_trusts_other_machines_is_warned_about() {
    let folder = Folder::new("trusts");
    let words = "lets clients of other machines in without any proof";
    for (address, warned) in [("0.0.0.0/0", true), ("127.0.0.0/8", false)] {
        let text = format!(
            "auth = \"hba\"\nhba = \"host all all {address} trust\"\n\
             [databases.\"*\"]\nhost = \"127.0.0.1\"\n"
        );
        let (fine, said) = check(&folder, &text, 0o600);
        assert!(fine && said.contains(words) == warned, "{said}");
    }
}

#[test]
fn the_page_names_a_test_for_each_method() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let read = |name: &str| fs::read_to_string(root.join(name)).unwrap();
    let page = read("docs/hba.md");
    let conversations = read("crates/pg/tests/conversations/login/hba.rs");
    let own = ["hba.rs", "hba_tls.rs"]
        .map(|name| read(&format!("crates/refrain/tests/it/logins/{name}")));
    let own = own.concat();
    let (_, table) = page.split_once("| method | the client is let in |").unwrap();
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    let rows: Vec<Vec<_>> = rows.map(|row| row.split('|').map(str::trim).collect()).collect();
    for method in ["trust", "reject", "password", "md5", "scram-sha-256", "cert", "peer"] {
        let quoted = format!("`{method}`");
        assert!(rows.iter().any(|row| row[1] == quoted), "{method} has no row");
    }
    for row in rows {
        for (names, source) in [(row[3], &conversations), (row[4], &own)] {
            for name in names.split(", ") {
                let test = format!("#[test]\nfn {}() {{", name.trim_matches('`'));
                assert!(source.contains(&test), "{}: {name} is no test", row[1]);
            }
        }
    }
}

#[test]
fn the_user_that_the_program_runs_as_reaches_the_console_by_the_unix_socket() {
    let folder = Folder::new("owner");
    let proxy = Config::over(cluster(Version::V15))
        .general("auth", "\"scram\"")
        .general("unix_socket_dir", &format!("{:?}", folder.0))
        .more("[users.postgres]\npassword = \"secret\"\n")
        .start();
    let port = proxy.addr().port();
    let by_unix = |user, database| knock_by_unix(&folder.0, port, user, database);
    assert_eq!(by_unix("pgbouncer", "pgbouncer"), "Authentication 0");
    assert_eq!(by_unix("postgres", "pgbouncer"), "Authentication 10");
    assert_eq!(by_unix("pgbouncer", "postgres"), "Authentication 10");
    assert_eq!(knock_by_tcp(proxy.addr(), 1, "pgbouncer", "pgbouncer"), "Authentication 10");
}
