//! Frameworks with different settings of the session run the same prepared texts on the same
//! servers, and each has its own meaning.

use std::thread;

use xtask::mysql::Flavour;

use crate::mysql::{Program, World};
use crate::mysql_client::Session;

/// Clients of each framework.
const CLIENTS: usize = 4;
/// Rounds of each client.
const ROUNDS: usize = 100;
/// Connections to the server.
const SERVERS: usize = 2;

/// Texts that mean something else with other settings.
const TEXTS: [&str; 3] = [
    "SELECT CAST('1' || '0' AS CHAR)",
    "SELECT CAST(FROM_UNIXTIME(86400) AS CHAR)",
    "SELECT CAST('straße' = 'STRASSE' AS CHAR)",
];

/// Settings of a framework's connections, and its results for [`TEXTS`].
struct Framework {
    settings: &'static str,
    results: [&'static str; 3],
}

const FRAMEWORKS: [Framework; 2] = [
    Framework {
        settings: "SET sql_mode = 'PIPES_AS_CONCAT', time_zone = '+00:00', \
                   NAMES utf8mb4 COLLATE utf8mb4_unicode_ci",
        results: ["10", "1970-01-02 00:00:00", "1"],
    },
    Framework {
        settings: "SET sql_mode = '', time_zone = '-05:00', NAMES utf8mb4 COLLATE utf8mb4_bin",
        results: ["1", "1970-01-01 19:00:00", "0"],
    },
];

fn client(port: &str, framework: &Framework) {
    let mut session = Session::start(port, "shop");
    session.query(framework.settings).expect("settings");
    for round in 0..ROUNDS {
        let statements = TEXTS.map(|text| session.prepare(text));
        for _ in 0..3 {
            for (statement, result) in statements.iter().zip(framework.results) {
                let row = session.execute(*statement, None, b"");
                assert_eq!(row, Ok(vec![vec![result.to_owned()]]), "{}", framework.settings);
            }
        }
        // Half of them stay open.
        for statement in statements.into_iter().filter(|_| round % 2 == 0) {
            session.close(statement);
        }
    }
}

fn each_framework_has_its_meaning(flavour: Flavour) {
    let world = World::start(flavour, &[]);
    let port = world.port();
    let url = format!("url = \"mysql://app:secret@127.0.0.1:{port}/\"\npool_size = {SERVERS}");
    let program = Program::start("auth = \"trust\"", &url);
    thread::scope(|scope| {
        for framework in FRAMEWORKS.iter().cycle().take(CLIENTS * FRAMEWORKS.len()) {
            scope.spawn(|| client(program.port(), framework));
        }
    });
    assert!(world.connections() <= SERVERS);
    let prepared = world.status("Prepared_stmt_count");
    assert!(prepared <= TEXTS.len() * FRAMEWORKS.len() * SERVERS, "{prepared} statements");
}

#[test]
fn each_framework_has_its_meaning_in_mariadb() {
    each_framework_has_its_meaning(Flavour::MariaDb);
}

#[test]
fn each_framework_has_its_meaning_in_mysql() {
    each_framework_has_its_meaning(Flavour::MySql);
}
