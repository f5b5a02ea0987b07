//! The admin console by MySQL's protocol: the same listings and the same rules as PostgreSQL's.

use xtask::mysql::{Flavour, PASSWORD as SECRET};

use crate::mysql::{Program, World, complaint, told};
use crate::mysql_client::Session;
use crate::world::eventually;

/// Users with the rights of an admin, of one who looks, and of nobody.
const USERS: &str = "stats_users = [\"looks\"]";
const PASSWORDS: &str =
    "\n[users.looks]\npassword = \"secret\"\n[users.other]\npassword = \"secret\"";

fn program(world: &World) -> Program {
    let url = format!("url = \"mysql://app:{SECRET}@127.0.0.1:{}/\"{PASSWORDS}", world.port());
    Program::start(USERS, &url)
}

#[test]
fn listings_are_those_of_postgresql_s_console() {
    for flavour in [Flavour::MariaDb, Flavour::MySql] {
        let world = World::start(flavour, &[]);
        let program = program(&world);
        assert_eq!(told(&program.client(&["shop", "-N", "-e", "SELECT 2"])), "2\n");
        for listing in ["DATABASES", "USERS", "CONFIG", "VERSION", "LISTS"] {
            let show = format!("SHOW {listing}");
            let by_mysql = told(&program.client(&["refrain", "-N", "-e", &show]));
            let by_mysql = by_mysql.replace('\t', "|").replace("NULL", "");
            let by_postgresql = program.console(&show);
            // The second client of the console is counted.
            if listing == "LISTS" {
                assert_eq!(by_mysql.lines().count(), by_postgresql.lines().count());
            } else {
                assert_eq!(by_mysql.trim_end(), by_postgresql.trim_end(), "{flavour:?} {listing}");
            }
        }
        let pools = told(&program.client(&["refrain", "-t", "-e", "SHOW POOLS"]));
        assert!(pools.contains("| database ") && pools.contains("| app "), "{pools}");
        let help = told(&program.client(&["refrain", "-N", "-e", "SHOW HELP"]));
        assert!(help.starts_with("SHOW HELP|") && help.contains("\nRELOAD\n"), "{help}");
    }
}

#[test]
fn commands_take_effect() {
    let world = World::start(Flavour::MariaDb, &[]);
    let program = program(&world);
    assert_eq!(told(&program.client(&["-N", "-e", "SELECT 2"])), "2\n");
    assert_eq!(world.connections(), 1);
    told(&program.client(&["refrain", "-e", "PAUSE"]));
    assert_eq!(world.connections(), 0, "its servers are closed");
    told(&program.client(&["pgbouncer", "-e", "RESUME"]));
    assert_eq!(told(&program.client(&["-N", "-e", "SELECT 3"])), "3\n");
    told(&program.client(&["refrain", "-e", "SET query_wait_timeout = '7s'"]));
    let config = "SELECT value FROM config WHERE key = 'query_wait_timeout'";
    assert_eq!(told(&program.client(&["refrain", "-N", "-e", config])), "7s\n");
    let set_up = "SET NAMES utf8mb4; SET autocommit = 0; BEGIN; SHOW LISTS; COMMIT; \
                  SELECT @@version_comment, DATABASE(); SHOW WARNINGS; USE pgbouncer";
    let told = told(&program.client(&["refrain", "-N", "-e", set_up]));
    assert!(told.ends_with("Refrain's console\trefrain\n"), "{told}");
}

#[test]
fn who_may_do_what_is_as_for_clients_of_postgresql() {
    let world = World::start(Flavour::MariaDb, &[]);
    let program = program(&world);
    // The client repeats a text that is wrong.
    let ends = |user: &str, password: &str, text: &str| {
        let told = complaint(&program.client_as(user, password, &["refrain", "-e", text]));
        told.lines().last().unwrap_or_default().to_owned()
    };
    assert_eq!(
        ends("other", "-psecret", "SHOW POOLS"),
        "ERROR 1044 (42000): Access denied for user 'other'@'localhost' to database 'refrain'"
    );
    assert_eq!(
        ends("app", "-pwrong", "SHOW POOLS"),
        "ERROR 1045 (28000): Access denied for user 'app'@'localhost' (using password: YES)"
    );
    assert_eq!(
        ends("nobody", "-psecret", "SHOW POOLS"),
        "ERROR 1045 (28000): Access denied for user 'nobody'@'localhost' (using password: YES)"
    );
    let looks = program.client_as("looks", "-psecret", &["refrain", "-N", "-e", "SHOW VERSION"]);
    assert!(!told(&looks).is_empty());
    assert_eq!(
        ends("looks", "-psecret", "RELOAD"),
        "ERROR 1227 (42000) at line 1: admin access needed"
    );
    assert_eq!(
        ends("app", "-psecret", "SHOW POLS"),
        "ERROR 1064 (42000) at line 1: invalid command 'SHOW POLS'; did you mean SHOW POOLS?"
    );
}

/// The user as which the program runs gets in without a password by the Unix socket.
#[test]
fn the_owner_needs_no_password_at_the_unix_socket() {
    let world = World::start(Flavour::MariaDb, &[]);
    let program = program(&world);
    let owner = |arguments: &[&str]| program.client_at_socket("pgbouncer", arguments);
    assert!(told(&owner(&["pgbouncer", "-N", "-e", "SHOW POOLS"])).contains("pgbouncer"));
    told(&owner(&["refrain", "-e", "RELOAD"]));
    let refused = complaint(&owner(&["shop", "-e", "SELECT 1"]));
    assert!(refused.starts_with("ERROR 1045"), "{refused}");
    let refused = complaint(&program.client_at_socket("other", &["refrain", "-e", "SHOW POOLS"]));
    assert!(refused.starts_with("ERROR 1045"), "{refused}");
    let refused = complaint(&program.client_as("pgbouncer", "--password=", &["refrain"]));
    assert!(refused.starts_with("ERROR 1045"), "by TCP: {refused}");
}

#[test]
fn a_session_at_the_console_is_as_long_as_others() {
    let world = World::start(Flavour::MySql, &[]);
    let url = format!("url = \"mysql://app:{SECRET}@127.0.0.1:{}/\"", world.port());
    let program = Program::start("auth = \"trust\"", &url);
    let mut session = Session::start(program.port(), "refrain");
    let prepared = session.prepared("SHOW VERSION");
    assert_eq!((prepared.columns, prepared.parameters), (1, 0));
    for _ in 0..3 {
        assert_eq!(session.execute(prepared.statement, None, b"").unwrap().len(), 1);
    }
    session.close(prepared.statement);
    assert_eq!(session.execute(prepared.statement, None, b""), Err(1243));
    assert_eq!(session.try_to_prepare("SHOW NOTHING").unwrap_err(), 1064);
    assert_eq!(session.query("SHOW VERSION; SHOW LISTS"), Err(1064), "not for this client");
    let clients = program.console("SELECT database, state FROM clients");
    assert!(clients.contains("refrain|"), "{clients}");
    // Its number is none of KILL's.
    let number = session.number();
    let mut other = Session::start(program.port(), "shop");
    assert_eq!(other.query(&format!("KILL {number}")), Err(1094));
    // COM_CHANGE_USER leads out of the console, and back.
    assert_eq!(session.change_user("shop"), Ok(()));
    assert_eq!(session.query("SELECT DATABASE()"), Ok(vec![vec!["shop".to_owned()]]));
    assert_eq!(session.change_user("refrain"), Ok(()));
    assert_eq!(session.query("SELECT DATABASE()"), Ok(vec![vec!["refrain".to_owned()]]));
    assert_eq!(session.query("SHOW VERSION").unwrap().len(), 1);
    let long = format!("SELECT '{}'", "x".repeat(70_000));
    assert_eq!(session.query(&long), Err(1153));
    assert_eq!(session.query("SHOW VERSION").unwrap().len(), 1, "the session goes on");
}

#[test]
fn a_user_who_may_not_look_any_more_is_dismissed() {
    let world = World::start(Flavour::MariaDb, &[]);
    let url = format!("url = \"mysql://app:{SECRET}@127.0.0.1:{}/\"", world.port());
    let program = Program::start("auth = \"trust\"\nstats_users = [\"looks\"]", &url);
    let mut session = Session::log_in(
        "looks",
        refrain_mysql_wire::Capabilities::NONE,
        (program.port(), "refrain"),
    );
    assert!(session.query("SHOW VERSION").is_ok());
    program.change("stats_users = [\"looks\"]", "stats_users = [\"others\"]");
    assert_eq!(session.told(), Err(1927));
    eventually("the session ends", || program.console("SHOW CLIENTS").lines().count() == 1);
}
