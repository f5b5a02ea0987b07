//! The schemas of both sides: created once; the clients' own tables are created again for each
//! episode.

use crate::capability::{Capabilities, LEAST, MULTI_RESULTS, MULTI_STATEMENTS};
use crate::client::Peers;
use crate::command::{Command, Due};
use crate::conn::Conn;
use crate::greeting::Greeting;
use crate::packet::{Packet, long_number, put};
use crate::reply::Reader;
use crate::side::{DIRECT, PROXIED, Side};
use refrain_differ::setup::Servers;
use std::collections::BTreeMap;
use std::time::Duration;

/// The longest that an administrative command may take.
const LIMIT: Duration = Duration::from_secs(20);

/// The schemas of a side: its prefix, with these behind it.
pub const SCHEMAS: [&str; 2] = ["a", "b"];

/// Objects of a schema that no client changes.
const SHARED: &[&str] = &[
    "CREATE TABLE shr (id INT PRIMARY KEY, i INT, big BIGINT UNSIGNED, v VARCHAR(20), c CHAR(4),
        n DECIMAL(10, 2), f DOUBLE, r FLOAT, d DATE, dt DATETIME(3), ti TIME, y YEAR, bl BLOB,
        e ENUM('p', 'q', 'r'), s SET('x', 'y', 'z'), b BIT(9), l VARCHAR(20) CHARACTER SET latin1,
        z INT(5) ZEROFILL, tx TEXT)",
    "INSERT INTO shr SELECT n, NULLIF(n % 5, 4), 18446744073709551615 - n, CONCAT('v', n), 'c',
        n / 4, n / 3, n / 7, '2024-01-01' + INTERVAL n DAY, '2024-01-01 10:00:00.125', '-12:30:00',
        2000 + n, UNHEX(CONCAT('00', LPAD(n, 2, '0'))), 1 + n % 3, n % 8, n, 'caf\u{e9}', n,
        REPEAT('t', n * 30) FROM (SELECT 0 AS n UNION SELECT 1 UNION SELECT 2 UNION SELECT 3
        UNION SELECT 4 UNION SELECT 5 UNION SELECT 6 UNION SELECT 7) numbers",
    "CREATE VIEW vw AS SELECT id, v, n FROM shr WHERE id < 5",
    "CREATE PROCEDURE p_rows (n INT) BEGIN
        SELECT id, v FROM shr WHERE id < n ORDER BY id; SELECT n AS again; END",
    "CREATE PROCEDURE p_fail (n INT) BEGIN
        SELECT n AS before_it; SELECT * FROM nowhere; SELECT 2; END",
    "CREATE PROCEDURE p_signal () BEGIN
        SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'of one''s own', MYSQL_ERRNO = 4567; END",
    "CREATE PROCEDURE p_warn () BEGIN SELECT 1 / 0; SELECT CAST('7x' AS SIGNED); END",
    "CREATE PROCEDURE p_out (IN a INT, OUT b INT, INOUT c INT) BEGIN
        SET b = a + 1, c = c + a; SELECT a, b, c; END",
    "CREATE PROCEDURE p_set (m VARCHAR(100)) BEGIN SET SESSION sql_mode = m; END",
    "CREATE PROCEDURE p_zone (z VARCHAR(20)) BEGIN
        SET time_zone = z; SELECT @@time_zone; SET autocommit = 1; END",
    "CREATE PROCEDURE p_begin () BEGIN START TRANSACTION; SELECT COUNT(*) FROM shr; END",
    "CREATE PROCEDURE p_commit () BEGIN COMMIT; END",
    "CREATE PROCEDURE p_temp () BEGIN
        CREATE TEMPORARY TABLE IF NOT EXISTS tmp (id INT); INSERT INTO tmp VALUES (1); END",
    "CREATE PROCEDURE p_vars (n INT) BEGIN SET @a = n; END",
    "CREATE PROCEDURE p_prepare () BEGIN
        PREPARE inner_one FROM 'SELECT 5'; EXECUTE inner_one; DEALLOCATE PREPARE inner_one; END",
    "CREATE FUNCTION f_plain (n INT) RETURNS INT DETERMINISTIC RETURN n * 2",
    "CREATE FUNCTION f_set (n INT) RETURNS INT DETERMINISTIC BEGIN
        SET SESSION group_concat_max_len = 1000 + n; RETURN n; END",
    "CREATE PROCEDURE p_set_fails (n INT) BEGIN
        SET SESSION sql_mode = 'ANSI_QUOTES', group_concat_max_len = 1000 + n;
        SET time_zone = '+03:00'; SIGNAL SQLSTATE '45000'; END",
    "CREATE PROCEDURE p_names_fails () BEGIN SET NAMES latin1; SELECT * FROM nowhere; END",
    "CREATE PROCEDURE p_vars_fails (n INT) BEGIN SET @a = n; SELECT n; SIGNAL SQLSTATE '45000'; END",
    "CREATE FUNCTION f_set_fails (n INT) RETURNS INT DETERMINISTIC BEGIN
        SET SESSION group_concat_max_len = 1000 + n; SIGNAL SQLSTATE '45000'; RETURN n; END",
    "CREATE TABLE trg (a INT)",
    "CREATE TRIGGER trg_fails BEFORE INSERT ON trg FOR EACH ROW BEGIN
        SET SESSION div_precision_increment = NEW.a; SIGNAL SQLSTATE '45000'; END",
    "CREATE FUNCTION f_vars (n INT) RETURNS INT DETERMINISTIC BEGIN SET @a = n; RETURN n; END",
];

/// The tables of a client.
const OWN: &[&str] = &[
    "DROP TABLE IF EXISTS {c}t, {c}m, {c}n, {c}d",
    "DROP VIEW IF EXISTS {c}v",
    "CREATE TABLE {c}t (id INT AUTO_INCREMENT PRIMARY KEY, v VARCHAR(20), n INT, b MEDIUMBLOB,
        UNIQUE (n)) ENGINE = InnoDB",
    "CREATE TABLE {c}m (id INT AUTO_INCREMENT PRIMARY KEY, v VARCHAR(10)) ENGINE = {engine}",
    "CREATE TABLE {c}d (id INT PRIMARY KEY, v VARCHAR(10))",
    "INSERT INTO {c}t (v, n) VALUES ('one', 1), ('two', 2), (NULL, NULL)",
    "INSERT INTO {c}m (v) VALUES ('one'), ('two')",
];

/// The administrator's connections, straight to the server.
#[derive(Debug)]
pub struct Admin {
    conn: Conn,
    side: Side,
    prefixes: [String; 2],
    /// The server's version in words.
    pub version: String,
}

impl Admin {
    /// Connects, and makes users and schemas anew.
    ///
    /// # Errors
    /// If the server cannot be reached or refuses.
    pub fn new(peers: &Peers) -> Result<Self, String> {
        let words = |broken| format!("cannot connect to {}: {broken:?}", peers.direct);
        let mut conn = Conn::open(&peers.direct, LIMIT).map_err(words)?;
        let greeting = Greeting::read(&conn.read().map_err(words)?.payload)?;
        let wanted = LEAST | MULTI_STATEMENTS | MULTI_RESULTS;
        let agreed = Capabilities(wanted & greeting.capabilities);
        let (prefix, plugin) = (peers.admin.clone(), greeting.plugin);
        let side = Side { prefix, plugin, agreed, numbers: BTreeMap::new() };
        let mut out = Vec::new();
        put(&mut out, 1, &side.login("", 45));
        conn.write(&out).map_err(words)?;
        let prefixes = [PROXIED, DIRECT].map(|name| format!("{name}{}", peers.suffix));
        let mut admin = Self { conn, side, prefixes, version: greeting.version };
        admin.reply(Due::Login)?;
        admin.create()?;
        Ok(admin)
    }

    fn create(&mut self) -> Result<(), String> {
        for names in ["de_DE", "fr_FR"] {
            // MySQL reads the words of a language once, and refuses it at that time.
            self.run(&format!("SET lc_time_names = '{names}'")).ok();
        }
        for prefix in self.prefixes.clone() {
            self.run(&format!("CREATE USER IF NOT EXISTS {prefix}@'%'"))?;
            self.run(&format!("GRANT ALL ON *.* TO {prefix}@'%'"))?;
            for schema in SCHEMAS {
                let name = format!("{prefix}{schema}");
                self.run(&format!("DROP DATABASE IF EXISTS {name}"))?;
                self.run(&format!("CREATE DATABASE {name} CHARACTER SET utf8mb4"))?;
                self.run(&format!("USE {name}"))?;
                for text in SHARED {
                    self.run(text)?;
                }
            }
        }
        Ok(())
    }

    /// Creates the clients' own tables again, as they are at the start of an episode.
    ///
    /// # Errors
    /// If a command fails.
    pub fn reset(&mut self, clients: usize, servers: Servers) -> Result<(), String> {
        if servers == Servers::Fresh {
            self.end_servers()?;
        }
        for prefix in self.prefixes.clone() {
            for schema in SCHEMAS {
                let engine = self.second_engine();
                let own: Vec<_> = (1..=clients)
                    .flat_map(|client| own_tables(client, engine))
                    .chain([format!("USE {prefix}{schema}")])
                    .collect();
                let (tables, uses) = own.split_at(own.len() - 1);
                self.run(&uses[0])?;
                self.run(&tables.join(";"))?;
            }
        }
        Ok(())
    }

    /// Returns the engine of a client's second table. It has no transactions but in MySQL 9: there
    /// the first write of a session to a table of InnoDB behind one to such a table, also one that
    /// failed, warns of a transaction with two engines (6414), though each was one of its own. With
    /// the proxy the two may be of different clients.
    fn second_engine(&self) -> &'static str {
        if self.version.starts_with("9.") { "InnoDB" } else { "MyISAM" }
    }

    /// Ends all servers of the proxy, and gives the proxy time to notice.
    fn end_servers(&mut self) -> Result<(), String> {
        let user = &self.prefixes[0];
        let asked = format!("SELECT id FROM information_schema.processlist WHERE user = '{user}'");
        loop {
            let ids = self.run(&asked)?;
            if ids.is_empty() {
                break;
            }
            for id in ids {
                // It may have ended by itself.
                self.run(&format!("KILL {id}")).ok();
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        std::thread::sleep(Duration::from_millis(10));
        Ok(())
    }

    /// Runs a text. Returns the first column of the rows.
    fn run(&mut self, text: &str) -> Result<Vec<String>, String> {
        let mut out = Vec::new();
        Command::Query(text.to_owned(), Vec::new()).encode(&self.side, &mut out);
        self.conn.write(&out).map_err(|broken| format!("{broken:?}"))?;
        let packets = self.reply(Due::Results).map_err(|error| format!("{text}: {error}"))?;
        // A column count, the definition, and an EOF packet stand in front of rows.
        let rows = packets.iter().skip(3).filter(|packet| packet.payload.first() != Some(&0xFE));
        Ok(rows.filter_map(|packet| first_value(&packet.payload)).collect())
    }

    fn reply(&mut self, due: Due) -> Result<Vec<Packet>, String> {
        let mut packets = Vec::new();
        let mut reader = Reader::new(due, self.side.agreed);
        let read = self.conn.reply(&mut reader, b"", &mut packets);
        read.map_err(|broken| format!("{broken:?}"))?;
        match packets.iter().find(|packet| packet.is_error()) {
            Some(packet) => Err(packet.to_string()),
            None => Ok(packets),
        }
    }
}

/// Returns the statements that create a client's tables.
fn own_tables(client: usize, engine: &str) -> Vec<String> {
    let fill = |text: &&str| text.replace("{c}", &format!("c{client}")).replace("{engine}", engine);
    OWN.iter().map(fill).collect()
}

fn first_value(row: &[u8]) -> Option<String> {
    let (length, from) = long_number(row)?;
    Some(String::from_utf8_lossy(row.get(from..from + length)?).into_owned())
}
