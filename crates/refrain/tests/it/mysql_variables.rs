//! Session variables of MySQL and MariaDB: each one that a client sets on one server is there on
//! another.

use xtask::mysql::Flavour;

use crate::mysql::{Program, World};
use crate::mysql_client::{Answer, Session};

/// Values that are tried besides those made of a variable's own.
const VALUES: &[&str] = &[
    "'latin1'",
    "'latin1_bin'",
    "'ANSI_QUOTES'",
    "'+03:00'",
    "'de_DE'",
    "'SERIALIZABLE'",
    "'READ-COMMITTED'",
    "'MyISAM'",
    "'OFF'",
    "'ON'",
    "'1'",
    "'x'",
    "0",
    "1",
    "2",
    "4",
    "100",
    "8192",
    "0.5",
];

/// Variables that a client cannot set here or that the test cannot see, and why.
const LEFT_OUT: &[(&str, &str)] = &[
    ("identity", "who asks for it where it was not made gets an error"),
    ("last_insert_id", "the same"),
    ("timestamp", "it goes on"),
];

/// Returns a variable's value, in brief.
fn value(session: &mut Session, name: &str) -> Answer {
    ask(session, &format!("SELECT MD5(@@{name})"))
}

/// Returns the rows of a text, which is prepared for that.
pub(crate) fn ask(session: &mut Session, text: &str) -> Answer {
    let statement = session.try_to_prepare(text)?.statement;
    let answer = session.execute(statement, None, b"");
    session.close(statement);
    answer
}

/// The beginnings of statements that set a variable of the session. MariaDB does not report what
/// the second one has set.
const FORMS: [&str; 2] = ["SET SESSION ", "SET @@"];

/// The errors for a variable that no session can set, whatever the value.
const GLOBAL_VARIABLE: u16 = 1229;
const READ_ONLY: u16 = 1238;

/// Sets a variable, in this form, to the first value that it takes and does not have. Returns the
/// statement, and what the server says then.
fn change(session: &mut Session, form: &str, name: &str) -> Option<(String, Answer)> {
    let before = value(session, name);
    let own = ["NOT @@session.{}", "@@session.{} + 1", "@@session.{} * 2", "@@session.{} DIV 2"];
    let own = own.iter().map(|value| value.replace("{}", name));
    for to in VALUES.iter().map(|value| (*value).to_owned()).chain(own) {
        let text = format!("{form}{name} = {to}");
        match session.query(&text) {
            Ok(_) => {
                let after = value(session, name);
                if after != before {
                    return Some((text, after));
                }
            }
            Err(GLOBAL_VARIABLE | READ_ONLY) => return None,
            Err(_) => {}
        }
    }
    None
}

/// Returns which server a session has.
fn server(session: &mut Session) -> Answer {
    // In binary, so that it does not depend on the character set of results.
    ask(session, "SELECT CONVERT(CONNECTION_ID() USING binary)")
}

/// Has another client hold one of a pool's two servers in a transaction. The next client gets
/// the other one.
fn held(pooled: &Program, there: &Answer) -> Session {
    let [mut first, second] = [(); 2].map(|()| {
        let mut session = Session::start(pooled.port(), "shop");
        session.query("BEGIN").expect("a transaction");
        session
    });
    let (holder, mut other) =
        if server(&mut first) == *there { (first, second) } else { (second, first) };
    other.query("ROLLBACK").expect("the end of it");
    holder
}

/// Starts the program over a server, with this option of the database.
fn over(world: &World, option: &str) -> Program {
    let url = format!("url = \"mysql://app:secret@127.0.0.1:{}/\"", world.port());
    Program::start("auth = \"trust\"", &format!("{url}\n{option}"))
}

fn each_variable_follows_its_client(flavour: Flavour) {
    FORMS.iter().for_each(|form| each_follows(flavour, form));
}

fn each_follows(flavour: Flavour, form: &str) {
    let from = match flavour {
        Flavour::MariaDb => "information_schema",
        _ => "performance_schema",
    };
    let world = World::start(flavour, &[]);
    let (own, pooled) = (over(&world, "pool_mode = \"session\""), over(&world, "pool_size = 2"));
    let mut first = Session::start(own.port(), "shop");
    let names = ask(&mut first, &format!("SELECT variable_name FROM {from}.session_variables"));
    let names = names.expect("rows");
    drop(first);
    let (mut moved, mut kept, mut wrong) = (0, 0, Vec::new());
    for name in names.iter().map(|row| row[0].to_lowercase()) {
        let name = name.as_str();
        if LEFT_OUT.iter().any(|(other, _)| *other == name) {
            continue;
        }
        let changed = change(&mut Session::start(own.port(), "shop"), form, name);
        let Some((text, due)) = changed else { continue };
        println!("{text}");
        let mut one = Session::start(pooled.port(), "shop");
        let mut two = Session::start(pooled.port(), "shop");
        let there = server(&mut one);
        if let Err(error) = one.query(&text) {
            wrong.push(format!("{text}: error {error}"));
            continue;
        }
        // Behind some texts Refrain asks the server something. Here the client waits for that.
        let _ = server(&mut one);
        // The server that was given back last is taken first.
        if let Err(error) = two.query("BEGIN") {
            wrong.push(format!("{text}: BEGIN of another client has error {error}"));
        }
        let got = value(&mut one, name);
        if got != due {
            wrong.push(format!("{text}: {got:?} and not {due:?}"));
        }
        if server(&mut one) == there { kept += 1 } else { moved += 1 }
    }
    assert!(wrong.is_empty(), "{} wrong: {wrong:#?}", wrong.len());
    println!("{moved} variables have moved, {kept} have kept their server");
    assert!(moved >= 50, "{moved} variables have moved, {kept} have kept their server");
}

#[test]
fn each_variable_of_mariadb_follows_its_client() {
    each_variable_follows_its_client(Flavour::MariaDb);
}

#[test]
fn each_variable_of_mysql_follows_its_client() {
    each_variable_follows_its_client(Flavour::MySql);
}

/// A client has its results in a character set with zero bytes, in which Refrain's own questions
/// are answered as well.
fn wide_results_follow(flavour: Flavour) {
    let world = World::start(flavour, &[]);
    let pooled = over(&world, "pool_size = 2");
    for set in ["utf16", "utf32", "ucs2"] {
        for scope in ["SESSION ", "@@"] {
            let mut one = Session::start(pooled.port(), "shop");
            let mode = format!("{scope}sql_mode = 'ANSI_QUOTES'");
            let text = format!("SET {scope}character_set_results = {set}, {mode}");
            one.query(&text).expect("it is set");
            let there = server(&mut one);
            let asked = "SELECT LAST_INSERT_ID(), @@sql_mode";
            let before = one.query(asked).expect("a row");
            let _holder = held(&pooled, &there);
            assert_ne!(server(&mut one), there, "{text}");
            let rows = one.query(asked).expect("a row");
            assert_eq!(rows, before, "{text}");
            let narrow = [0, 1].map(|at| rows[0][at].replace('\0', ""));
            assert_eq!(narrow, ["0", "ANSI_QUOTES"], "{text}");
            assert!(rows[0][1].len() > "ANSI_QUOTES".len(), "{text}");
        }
    }
}

#[test]
fn wide_results_of_mariadb_follow() {
    wide_results_follow(Flavour::MariaDb);
}

#[test]
fn wide_results_of_mysql_follow() {
    wide_results_follow(Flavour::MySql);
}

/// A client sets something where Refrain asks for all variables, while somebody sets another one
/// for all sessions that no session can set. The client moves to another server then.
fn a_global_variable_is_no_setting(flavour: Flavour, text: &str, (name, due): (&str, &str)) {
    let world = World::start(flavour, &[]);
    let pooled = over(&world, "pool_size = 2");
    let mut one = Session::start(pooled.port(), "shop");
    // The server is known before somebody sets the variable.
    server(&mut one).expect("its number");
    world.run("SET GLOBAL max_connections = 77");
    one.query(text).expect("it is set");
    let there = server(&mut one);
    let _holder = held(&pooled, &there);
    assert_ne!(server(&mut one), there, "{text}");
    let names = [name, "max_connections"];
    let asked = names.map(|name| format!("CONVERT(@@{name} USING binary)")).join(", ");
    let rows = one.query(&format!("SELECT {asked}")).expect("a row");
    assert_eq!(rows, [[due, "77"]], "{text}");
}

#[test]
fn a_global_variable_of_mariadb_is_no_setting() {
    let set = "SET @@sql_mode = 'ANSI_QUOTES'";
    a_global_variable_is_no_setting(Flavour::MariaDb, set, ("sql_mode", "ANSI_QUOTES"));
    // No limit on rows hides a variable.
    let set = "SET @@sql_select_limit = 1";
    a_global_variable_is_no_setting(Flavour::MariaDb, set, ("sql_select_limit", "1"));
}

#[test]
fn a_global_variable_of_mysql_is_no_setting() {
    let set = "SET session_track_gtids = 'OWN_GTID', sql_mode = 'ANSI_QUOTES'";
    a_global_variable_is_no_setting(Flavour::MySql, set, ("sql_mode", "ANSI_QUOTES"));
}
