//! Changes of a session that no reply has told: behind an error, at the end of rows for clients
//! without DEPRECATE_EOF, and behind a statement that sets variables for its own time. None of them
//! may reach another client, and each follows its own.

use refrain_mysql_wire::Capabilities;
use xtask::mysql::Flavour;

use crate::mysql::{Program, World};
use crate::mysql_client::{Answer, Session};
use crate::mysql_variables::ask;

/// Routines and triggers that change the session, most of which fail then.
const SCHEMA: &[&str] = &[
    "CREATE TABLE t (a INT)",
    "CREATE TABLE u (a INT)",
    "INSERT INTO u VALUES (1)",
    "CREATE PROCEDURE p_mode () BEGIN SET SESSION sql_mode = 'ANSI_QUOTES'; SIGNAL SQLSTATE \
     '45000'; END",
    "CREATE PROCEDURE p_zone () BEGIN SET time_zone = '+05:00'; SELECT 'x'; \
     SET default_week_format = 3; SELECT * FROM nowhere; END",
    "CREATE PROCEDURE p_names () BEGIN SET character_set_results = 'latin1', \
     group_concat_max_len = 77, autocommit = 0; SIGNAL SQLSTATE '45000'; END",
    "CREATE PROCEDURE p_begin () BEGIN START TRANSACTION; INSERT INTO t VALUES (1); \
     SET div_precision_increment = 7; SIGNAL SQLSTATE '45000'; END",
    "CREATE PROCEDURE p_rows () BEGIN SET div_precision_increment = 7; SELECT 'x'; \
     SET group_concat_max_len = 77; END",
    "CREATE PROCEDURE p_variable () BEGIN SET @a = 5; SIGNAL SQLSTATE '45000'; END",
    "CREATE PROCEDURE p_table () BEGIN CREATE TEMPORARY TABLE tmp (a VARCHAR(9)); INSERT INTO tmp \
     VALUES ('x'); SIGNAL SQLSTATE '45000'; END",
    "CREATE PROCEDURE p_silent () BEGIN SET session_track_system_variables = '', \
     group_concat_max_len = 77; SIGNAL SQLSTATE '45000'; END",
    "CREATE FUNCTION f_set () RETURNS INT DETERMINISTIC BEGIN \
     SET SESSION group_concat_max_len = 77; RETURN 1; END",
    "CREATE FUNCTION f_fails () RETURNS INT DETERMINISTIC BEGIN SET SESSION sql_mode = ''; \
     SIGNAL SQLSTATE '45000'; RETURN 1; END",
    "CREATE FUNCTION f_variable () RETURNS INT DETERMINISTIC BEGIN SET @a = 5; RETURN 77; END",
    "CREATE PROCEDURE p_query () CREATE TEMPORARY TABLE tmp AS SELECT 'x' AS a",
    "CREATE FUNCTION f_query () RETURNS INT DETERMINISTIC BEGIN CREATE TEMPORARY TABLE tmp AS \
     SELECT 'x' AS a; RETURN 1; END",
    "CREATE PROCEDURE p_lock () DO GET_LOCK(CONCAT('of ', SUBSTRING_INDEX(USER(), '@', 1)), 0)",
    "CREATE PROCEDURE p_into () SELECT 5 INTO @a",
    "CREATE PROCEDURE p_assign () DO @a := 5",
    "CREATE PROCEDURE p_out (OUT n INT) SET n = 5",
    "CREATE PROCEDURE p_inner () CALL p_out(@a)",
    "CREATE FUNCTION abs (n INT) RETURNS INT DETERMINISTIC BEGIN SELECT n INTO @a; RETURN 1; END",
    "CREATE TRIGGER t_fails BEFORE INSERT ON t FOR EACH ROW BEGIN \
     IF NEW.a = 9 THEN SET SESSION sort_buffer_size = 77777; SIGNAL SQLSTATE '45000'; END IF; END",
    "CREATE TRIGGER u_variable BEFORE UPDATE ON u FOR EACH ROW SET @a = 5",
];

/// Texts behind which a client keeps its server: what they have changed may be more than settings.
const KEPT: &[&str] = &[
    "CALL p_mode()",
    "CALL p_zone()",
    "CALL p_names()",
    "CALL p_rows()",
    "CALL p_variable()",
    "CALL p_table()",
    "CALL p_begin()",
    "SELECT CAST(f_set() AS CHAR)",
    "SELECT f_fails()",
    "SELECT CAST(f_variable() AS CHAR)",
    "SELECT 'x' FROM u WHERE a = f_fails()",
    "INSERT INTO t VALUES (1), (9)",
    "INSERT INTO t SELECT 9",
    "UPDATE u SET a = 2",
    "SET sql_mode = '', group_concat_max_len = f_fails()",
    "SET group_concat_max_len = f_variable()",
    "CREATE TEMPORARY TABLE tmp AS SELECT 'x' AS a",
    "CALL p_out(@a)",
];

/// Texts that run routines which leave what no server reports. The server goes back, and is made as
/// new for the next client.
const CALLED: &[&str] = &[
    "CALL p_query()",
    "SELECT CAST(f_query() AS CHAR)",
    "SELECT 'x' FROM u WHERE a = f_query()",
    "CALL p_lock()",
    "CALL p_into()",
    "CALL p_assign()",
    "CALL p_inner()",
    "SELECT CAST(shop.abs(5) AS CHAR)",
    "DO `shop` . `abs` (5)",
];

/// Such texts of MariaDB alone.
const KEPT_OF_MARIADB: &[&str] = &[
    "CALL p_silent()",
    "SET STATEMENT time_zone = '+09:00' FOR CALL p_mode()",
    "SET STATEMENT sql_mode = '' FOR CALL p_variable()",
    "SET STATEMENT sql_mode = '' FOR SELECT CAST(f_variable() AS CHAR)",
    "SET STATEMENT sql_mode = '' FOR UPDATE u SET a = 2",
];

/// Texts of MariaDB that leave nothing, and behind which the server goes back.
const GIVEN_BACK: &[&str] = &[
    "SET STATEMENT sql_mode = '', group_concat_max_len = 9 FOR SELECT 'x'",
    "SET STATEMENT sql_mode = '' FOR SELECT * FROM nowhere",
    "SELECT * FROM nowhere",
    "CALL p_rows(7)",
];

/// Everything that the texts may change.
const ASKED: &str = "SELECT CONCAT_WS('|', MD5(@@sql_mode), @@time_zone, @@default_week_format, \
    COALESCE(@@character_set_results, 'NULL'), @@group_concat_max_len, @@autocommit, \
    @@div_precision_increment, @@sort_buffer_size, COALESCE(@a, 'none'), \
    @@collation_connection, IS_FREE_LOCK(CONCAT('of ', SUBSTRING_INDEX(USER(), '@', 1))))";

/// Takes the lock of `p_lock` as soon as no session has it.
const LOCK_WHEN_FREE: &str = "DO GET_LOCK('of plain', 60)";
/// Gives the lock back.
const UNLOCK: &str = "DO RELEASE_LOCK('of plain')";

/// A server, the program over it with one server, and what its clients have.
struct Scene {
    world: World,
    program: Program,
    less: Capabilities,
}

/// The way in which a text is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Text,
    Prepared,
}

impl Scene {
    fn new(flavour: Flavour) -> Self {
        let world = World::start(flavour, &[]);
        world.run("CREATE USER plain@'%'; GRANT ALL ON *.* TO plain@'%'");
        let url = format!("url = \"mysql://app:secret@127.0.0.1:{}/\"", world.port());
        let program = Program::start("auth = \"trust\"", &url);
        let scene = Self { world, program, less: Capabilities::NONE };
        let mut session = scene.direct();
        for text in SCHEMA {
            session.query(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        }
        scene
    }

    fn direct(&self) -> Session {
        Session::log_in("plain", self.less, (&self.world.port().to_string(), "shop"))
    }

    fn through(&self) -> Session {
        Session::log_in("app", self.less, (self.program.port(), "shop"))
    }

    /// Whether a client sees of a text what it would see directly, and another nothing.
    fn stays_with_its_client(&self, text: &str, way: Way, keeps: bool) {
        let (mut direct, mut first, mut second) = (self.direct(), self.through(), self.through());
        // The server may still end the session before, with its lock.
        for text in [LOCK_WHEN_FREE, UNLOCK] {
            direct.query(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        }
        let fresh = ask(&mut direct, ASKED);
        assert_eq!(ask(&mut second, ASKED), fresh, "{text}");
        let due = run(&mut direct, text, way);
        assert_eq!(run(&mut first, text, way), due, "{text} {way:?}");
        assert_eq!(seen(&mut first), seen(&mut direct), "{text} {way:?}");
        if keeps {
            drop(first);
        }
        assert_eq!(ask(&mut second, ASKED), fresh, "{text} {way:?}: another client has it");
        let table = ask(&mut second, "SELECT a FROM tmp");
        assert_eq!(table, Err(1146), "{text} {way:?}: another client has it");
    }
}

/// Returns what a client sees of what the texts may change.
fn seen(session: &mut Session) -> [Answer; 2] {
    [ASKED, "SELECT a FROM tmp"].map(|text| ask(session, text))
}

/// Runs a text. Returns its error, if it has one.
fn run(session: &mut Session, text: &str, way: Way) -> Result<(), u16> {
    if way == Way::Text {
        return session.query(text).map(drop);
    }
    let statement = session.try_to_prepare(text)?.statement;
    let answer = session.execute(statement, None, b"");
    session.close(statement);
    answer.map(drop)
}

fn what_is_not_told_stays_with_its_client(flavour: Flavour) {
    let mut scene = Scene::new(flavour);
    let is_mariadb = flavour == Flavour::MariaDb;
    let more = |texts: &'static [&str]| if is_mariadb { texts } else { &[] };
    for less in [Capabilities::NONE, Capabilities::DEPRECATE_EOF] {
        scene.less = less;
        for way in [Way::Text, Way::Prepared] {
            for text in KEPT.iter().chain(more(KEPT_OF_MARIADB)) {
                scene.stays_with_its_client(text, way, true);
            }
            for text in CALLED.iter().chain(more(GIVEN_BACK)) {
                scene.stays_with_its_client(text, way, false);
            }
        }
    }
}

#[test]
fn what_mariadb_does_not_tell_stays_with_its_client() {
    what_is_not_told_stays_with_its_client(Flavour::MariaDb);
}

#[test]
fn what_mysql_does_not_tell_stays_with_its_client() {
    what_is_not_told_stays_with_its_client(Flavour::MySql);
}

#[test]
fn what_mysql_9_does_not_tell_stays_with_its_client() {
    if Flavour::MySql9.is_there().expect("an answer") {
        what_is_not_told_stays_with_its_client(Flavour::MySql9);
    }
}
