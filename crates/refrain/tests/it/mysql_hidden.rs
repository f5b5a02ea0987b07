//! Views and triggers that leave in a session what no server reports, with real servers: it does
//! not reach the next client, whatever the pool's user sees of them.

use refrain_mysql_wire::Capabilities;
use xtask::mysql::Flavour;

use crate::mysql::{Program, World};
use crate::mysql_client::Session;
use crate::mysql_variables::ask;

/// Functions, views and triggers. Triggers of `of_*` leave something.
const SCHEMA: &[&str] = &[
    "CREATE TABLE plain (a INT, b INT)",
    "CREATE TABLE of_into (a INT)",
    "CREATE TABLE of_call (a INT)",
    "CREATE TABLE of_lock (a INT)",
    "CREATE TABLE of_table (a INT)",
    "CREATE TABLE of_role (a INT)",
    "CREATE FUNCTION f_into () RETURNS INT DETERMINISTIC BEGIN SELECT 5 INTO @a; RETURN 1; END",
    "CREATE FUNCTION f_lock () RETURNS INT DETERMINISTIC RETURN GET_LOCK('of a view', 0)",
    "CREATE FUNCTION f_table () RETURNS INT DETERMINISTIC BEGIN CREATE TEMPORARY TABLE tmp AS \
     SELECT 'x' AS a; RETURN 1; END",
    "CREATE VIEW v_into AS SELECT f_into() AS a",
    "CREATE VIEW v_lock AS SELECT f_lock() AS a",
    "CREATE VIEW v_own_lock AS SELECT GET_LOCK('of a view', 0) AS a",
    "CREATE VIEW v_number AS SELECT LAST_INSERT_ID(1) AS a",
    "CREATE VIEW v_table AS SELECT f_table() AS a",
    "CREATE VIEW v_view AS SELECT a FROM v_into",
    "CREATE TRIGGER plain BEFORE INSERT ON plain FOR EACH ROW SET NEW.b = NEW.a + 1",
    "CREATE TRIGGER of_into BEFORE INSERT ON of_into FOR EACH ROW SELECT 5 INTO @a",
    "CREATE TRIGGER of_call AFTER INSERT ON of_call FOR EACH ROW INSERT INTO plain (a) \
     VALUES (f_into())",
    "CREATE TRIGGER of_lock BEFORE INSERT ON of_lock FOR EACH ROW DO GET_LOCK('of a view', 0)",
    "CREATE TRIGGER of_table BEFORE INSERT ON of_table FOR EACH ROW CREATE TEMPORARY TABLE tmp AS \
     SELECT 'x' AS a",
    "CREATE TRIGGER of_role BEFORE INSERT ON of_role FOR EACH ROW SET ROLE NONE",
];

/// Texts that use them, and leave something that no server reports.
const LEAVING: &[&str] = &[
    "SELECT a FROM v_into",
    "SELECT `a` FROM `shop` . `v_into`",
    "SELECT COUNT(*) FROM plain WHERE a IN (SELECT a FROM v_into)",
    "SELECT a FROM v_lock",
    "SELECT a FROM v_own_lock",
    "SHOW TABLES WHERE (SELECT a FROM v_own_lock) = 2",
    "SELECT a FROM v_number",
    "SELECT a FROM v_table",
    "SELECT a FROM v_view",
    "INSERT INTO plain SELECT a, 1 FROM v_into",
    "INSERT INTO of_into VALUES (1)",
    "REPLACE of_into VALUES (1)",
    "INSERT INTO of_call SELECT 1",
    "INSERT INTO of_lock VALUES (1)",
    "INSERT INTO of_table VALUES (1)",
];

/// Such a text of MySQL alone: MariaDB reports a role.
const LEAVING_OF_MYSQL: &[&str] = &["INSERT INTO of_role VALUES (1)"];

/// Everything that the texts may change.
const ASKED: &str = "SELECT CONCAT_WS('|', COALESCE(@a, 'none'), IS_FREE_LOCK('of a view'), \
    COALESCE(CURRENT_ROLE(), 'none'), LAST_INSERT_ID())";

/// Users of the pool: one who sees all, and one who sees neither triggers nor what views are.
const USERS: &[(&str, &str)] = &[("app", "secret"), ("writer", "secret")];

fn stays_with_its_client(flavour: Flavour) {
    let world = World::start(flavour, &[]);
    let plugin = if flavour == Flavour::MariaDb { "" } else { "WITH caching_sha2_password " };
    world.run(&format!(
        "CREATE USER plain@'%'; GRANT ALL ON *.* TO plain@'%'; \
         CREATE USER writer@'%' IDENTIFIED {plugin}BY 'secret'; \
         GRANT SELECT, INSERT, DELETE, CREATE TEMPORARY TABLES ON shop.* TO writer@'%'"
    ));
    let port = world.port().to_string();
    let mut direct = Session::log_in("plain", Capabilities::NONE, (&port, "shop"));
    for text in SCHEMA {
        direct.query(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    }
    for (user, password) in USERS {
        let url = format!("url = \"mysql://{user}:{password}@127.0.0.1:{port}/\"");
        let program = Program::start("auth = \"trust\"", &url);
        let session = || Session::log_in("app", Capabilities::NONE, (program.port(), "shop"));
        let (mut first, mut second) = (session(), session());
        let fresh = ask(&mut second, ASKED);
        let more = if flavour == Flavour::MariaDb { &[] } else { LEAVING_OF_MYSQL };
        for text in LEAVING.iter().chain(more) {
            for is_prepared in [false, true] {
                let way = if is_prepared { "prepared" } else { "text" };
                if is_prepared {
                    let statement = first.try_to_prepare(text).unwrap().statement;
                    first.execute(statement, None, b"").unwrap_or_else(|e| panic!("{text}: {e}"));
                    first.close(statement);
                } else {
                    first.query(text).unwrap_or_else(|error| panic!("{text}: {error}"));
                }
                let told = ask(&mut second, ASKED);
                assert_eq!(told, fresh, "{text} {way} {user}: another client has it");
                let table = ask(&mut second, "SELECT a FROM tmp");
                assert_eq!(table, Err(1146), "{text} {way} {user}: another client has it");
            }
        }
        // A client that leaves takes all of it along.
        first.query("SELECT a FROM v_into").unwrap();
        drop(first);
        assert_eq!(ask(&mut second, ASKED), fresh, "{user}");
    }
}

#[test]
fn what_views_and_triggers_of_mariadb_leave_stays_with_their_client() {
    stays_with_its_client(Flavour::MariaDb);
}

#[test]
fn what_views_and_triggers_of_mysql_leave_stays_with_their_client() {
    stays_with_its_client(Flavour::MySql);
}

#[test]
fn what_views_and_triggers_of_mysql_9_leave_stays_with_their_client() {
    if Flavour::MySql9.is_there().expect("an answer") {
        stays_with_its_client(Flavour::MySql9);
    }
}
