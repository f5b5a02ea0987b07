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
    ("character_set_database", "it comes with the schema; docs/mysql.md has the limit"),
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

/// Sets a variable, in this form, to the first value that it takes and does not have. Returns the
/// statement, and what the server says then.
fn change(session: &mut Session, form: &str, name: &str) -> Option<(String, Answer)> {
    let before = value(session, name);
    let own = ["NOT @@session.{}", "@@session.{} + 1", "@@session.{} * 2", "@@session.{} DIV 2"];
    let own = own.iter().map(|value| value.replace("{}", name));
    for to in VALUES.iter().map(|value| (*value).to_owned()).chain(own) {
        let text = format!("{form}{name} = {to}");
        if session.query(&text).is_ok() {
            let after = value(session, name);
            if after != before {
                return Some((text, after));
            }
        }
    }
    None
}

/// Returns which server a session has.
fn server(session: &mut Session) -> Answer {
    ask(session, "SELECT CAST(CONNECTION_ID() AS CHAR)")
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
    let url = format!("url = \"mysql://app:secret@127.0.0.1:{}/\"", world.port());
    let own = Program::start("auth = \"trust\"", &format!("{url}\npool_mode = \"session\""));
    let pooled = Program::start("auth = \"trust\"", &format!("{url}\npool_size = 2"));
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
        let mut one = Session::start(pooled.port(), "shop");
        let mut two = Session::start(pooled.port(), "shop");
        let there = server(&mut one);
        if let Err(error) = one.query(&text) {
            wrong.push(format!("{text}: error {error}"));
            continue;
        }
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
