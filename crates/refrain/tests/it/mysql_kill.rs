//! KILL with real servers: a statement and a session are ended by the numbers that a client may
//! have of another one, with the errors of a server, and nobody else is hit.

use std::io::Read;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, ScopedJoinHandle};

use refrain_mysql_wire::Capabilities;
use xtask::mysql::Flavour;
use xtask::provision;

use crate::mysql::{Program, World};
use crate::mysql_client::{Answer, Session};
use crate::world::eventually;

/// A statement that takes longer than any test.
const ENDLESS: &str = "SELECT COUNT(*) FROM information_schema.collations a, \
    information_schema.collations b, information_schema.collations c, \
    information_schema.collations d, information_schema.collations e";
/// One whose rows never end.
const ROWS: &str = "SELECT a.collation_name FROM information_schema.collations a, \
    information_schema.collations b, information_schema.collations c, \
    information_schema.collations d, information_schema.collations e";

/// The number of KILLs of the race, in the environment.
const KILLS: &str = "REFRAIN_KILLS";

fn start(flavour: Flavour) -> (World, Program) {
    let world = World::start(flavour, &[]);
    let url = format!("url = \"mysql://app:secret@127.0.0.1:{}/\"", world.port());
    let program = Program::start("auth = \"trust\"", &url);
    (world, program)
}

/// Runs a text on a session in a thread of its own, until the server works on it.
fn begins<'scope>(
    scope: &'scope thread::Scope<'scope, '_>,
    world: &World,
    session: &'scope mut Session,
    text: &'static str,
) -> ScopedJoinHandle<'scope, Answer> {
    let running = scope.spawn(|| session.query(text));
    eventually("the server works", || world.is_running(&text[..20]));
    running
}

fn ends_what_it_names(flavour: Flavour) {
    let (world, program) = start(flavour);
    let user = |user| Session::log_in(user, Capabilities::NONE, (program.port(), "shop"));
    let (mut victim, mut waiting, mut killer) = (user("app"), user("app"), user("app"));
    let mut other = user("other");
    let number = victim.number();
    let of_others = [waiting.number(), killer.number()].map(|number| number.to_string());
    thread::scope(|scope| {
        let running = begins(scope, &world, &mut victim, ENDLESS);
        assert_eq!(other.query(&format!("KILL QUERY {number}")), Err(1095));
        assert_eq!(other.query(&format!("KILL {number}")), Err(1095));
        assert!(!running.is_finished());
        assert_eq!(killer.query(&format!("KILL QUERY {number}")), Ok(vec![]));
        assert_eq!(running.join().unwrap(), Err(1317));
    });
    assert_eq!(victim.query("SELECT 5"), Ok(vec![vec!["5".to_owned()]]));
    // A client in a transaction knows itself by the server's number as well.
    victim.query("BEGIN").unwrap();
    let told = victim.query("SELECT CONNECTION_ID()").unwrap()[0][0].clone();
    thread::scope(|scope| {
        let running = begins(scope, &world, &mut victim, ENDLESS);
        // It may be another client's number as well.
        if of_others.contains(&told) {
            assert_eq!(killer.query(&format!("KILL QUERY {told}")), Err(1235));
            assert_eq!(killer.query(&format!("KILL QUERY {number}")), Ok(vec![]));
        } else {
            assert_eq!(killer.query(&format!("KILL QUERY {told}")), Ok(vec![]));
        }
        assert_eq!(running.join().unwrap(), Err(1317));
    });
    assert_eq!(victim.query("SHOW WARNINGS").unwrap()[0][1], "1317");
    // The pool's only server is the victim's.
    let waits = format!("KILL QUERY {}", waiting.number());
    thread::scope(|scope| {
        let running = scope.spawn(|| waiting.query("SELECT 5"));
        eventually("it is told", || {
            killer.query(&waits).unwrap();
            running.is_finished()
        });
        assert_eq!(running.join().unwrap(), Err(1317));
    });
    thread::scope(|scope| {
        let running = begins(scope, &world, &mut victim, ENDLESS);
        assert_eq!(killer.query(&format!("KILL {number}")), Ok(vec![]));
        let is_mariadb = flavour == Flavour::MariaDb;
        assert_eq!(running.join().unwrap(), Err(if is_mariadb { 1927 } else { 3169 }));
    });
    assert_eq!(killer.query(&format!("KILL {number}")), Err(1094));
    assert_eq!(killer.query("KILL QUERY 4000000000"), Err(1094));
    assert_eq!(killer.query("SELECT 5"), Ok(vec![vec!["5".to_owned()]]));
    assert!(!world.is_running(&ENDLESS[..20]));
}

#[test]
fn kill_ends_what_it_names_on_mariadb() {
    ends_what_it_names(Flavour::MariaDb);
}

#[test]
fn kill_ends_what_it_names_on_mysql() {
    ends_what_it_names(Flavour::MySql);
}

#[test]
fn kill_ends_what_it_names_on_mysql_9() {
    if Flavour::MySql9.is_there().expect("an answer") {
        ends_what_it_names(Flavour::MySql9);
    }
}

/// A client's statements are killed without end, at any time, while another client has the same
/// server in turns.
fn hits_nobody_else(flavour: Flavour) {
    let (_world, program) = start(flavour);
    let kills = std::env::var(KILLS).ok().and_then(|kills| kills.parse().ok()).unwrap_or(500);
    let session = || Session::start(program.port(), "shop");
    let (mut victim, mut other, mut killer) = (session(), session(), session());
    let kill = format!("KILL QUERY {}", victim.number());
    let is_over = AtomicBool::new(false);
    let (hit, missed) = thread::scope(|scope| {
        let victims = scope.spawn(|| {
            let (mut hit, mut missed) = (0, 0);
            while !is_over.load(Ordering::Relaxed) {
                match victim.query("SELECT COUNT(*) FROM information_schema.collations") {
                    Ok(_) => missed += 1,
                    Err(1317) => hit += 1,
                    Err(other) => panic!("{other}"),
                }
            }
            (hit, missed)
        });
        let others = scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                let rows = other.query("SELECT 5 FROM information_schema.collations LIMIT 1");
                assert_eq!(rows, Ok(vec![vec!["5".to_owned()]]), "it was nobody's victim");
            }
        });
        for _ in 0..kills {
            if others.is_finished() {
                break;
            }
            killer.query(&kill).unwrap();
        }
        is_over.store(true, Ordering::Relaxed);
        others.join().unwrap();
        victims.join().unwrap()
    });
    println!("{kills} KILLs: {hit} statements hit, {missed} not");
    assert_eq!(victim.query("SELECT 5"), Ok(vec![vec!["5".to_owned()]]));
}

#[test]
fn no_kill_hits_the_next_client_on_mariadb() {
    hits_nobody_else(Flavour::MariaDb);
}

#[test]
fn no_kill_hits_the_next_client_on_mysql() {
    hits_nobody_else(Flavour::MySql);
}

#[test]
fn no_kill_hits_the_next_client_on_mysql_9() {
    if Flavour::MySql9.is_there().expect("an answer") {
        hits_nobody_else(Flavour::MySql9);
    }
}

#[test]
fn rows_that_nobody_reads_are_ended() {
    for flavour in [Flavour::MariaDb, Flavour::MySql] {
        let (world, program) = start(flavour);
        let [mut other, mut victim] = [(); 2].map(|()| Session::start(program.port(), "shop"));
        victim.begin(ROWS);
        drop(victim);
        assert_eq!(other.query("SELECT 5"), Ok(vec![vec!["5".to_owned()]]));
        eventually("the server is told", || world.status("Com_kill") == 1);
        eventually("it ends them", || !world.is_running(&ROWS[..20]));
    }
}

/// The command lines of both products log in a second time and send KILL QUERY when they get the
/// signal.
#[test]
fn ctrl_c_ends_the_statement_of_the_command_line() {
    for flavour in [Flavour::MariaDb, Flavour::MySql] {
        let (world, program) = start(flavour);
        let mysql = provision::mysql_9().expect("an answer").map(|mysql| mysql.client());
        for client in [Some(Command::new("mariadb")), mysql].into_iter().flatten() {
            ctrl_c(client, &world, program.port());
        }
    }
}

/// Sends the signal to a command line that runs a statement.
fn ctrl_c(mut command: Command, world: &World, port: &str) {
    command.args(["--no-defaults", "-h127.0.0.1", "-uapp", "-P", port, "-e", ENDLESS]);
    let mut client = command.stderr(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    eventually("the server works", || world.is_running(&ENDLESS[..20]));
    let id = client.id().to_string();
    assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    let mut said = String::new();
    client.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(!client.wait().unwrap().success());
    assert!(said.contains("1317"), "{command:?}: {said}");
    assert!(!world.is_running(&ENDLESS[..20]));
}
