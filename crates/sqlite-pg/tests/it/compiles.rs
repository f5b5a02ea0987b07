//! The number of times that SQLite compiles clients' statements.

use refrain_sqlite::{CacheOptions, CacheStats, OpenOptions};

use crate::client::{Client, Place};

/// A part of the translation of a query with an ORDER BY.
const SORTED: &str = "AS \"id\" FROM \"t\" ORDER BY 1 /*g*/";
const LOOKUP: &str = "SELECT name FROM t WHERE id = $1";
/// The replies to an execution that describes its portal.
const ANSWERS: [&str; 5] = ["bound", "columns name:25", "row a", "SELECT 1", "ready I"];

fn table(place: &Place) -> Client {
    let mut client = place.client();
    client.query("CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT)");
    client.query("INSERT INTO t VALUES (1, 'a')");
    // After this, the statements that look up parameter types are kept, and the table is known.
    for _ in 0..2 {
        client.parse("", "SELECT id FROM t WHERE id = $1", &[]).describe("S");
        client.sync();
    }
    client
}

fn stats(place: &Place) -> CacheStats {
    let mut stats = CacheStats::default();
    place.pool.inspect(|connection| stats += connection.cache_stats());
    stats
}

/// Returns how many statements SQLite compiles during `work`.
fn compiles(place: &Place, work: impl FnOnce()) -> u64 {
    let before = stats(place);
    work();
    let after = stats(place);
    assert_eq!(after.busy_misses, before.busy_misses);
    assert_eq!(after.reprepares, before.reprepares);
    after.misses - before.misses
}

/// Executes a statement as `pgbench -M prepared` and drivers on libpq do.
fn run(client: &mut Client, name: &str) {
    client.bind(("", name), 0, &[Some(b"1")], 0).describe("P").execute("", 0);
    assert_eq!(client.sync(), ANSWERS);
}

#[test]
fn an_execution_compiles_nothing() {
    let place = Place::new();
    let mut client = table(&place);
    let first = compiles(&place, || {
        client.parse("s", LOOKUP, &[]);
        client.sync();
        run(&mut client, "s");
    });
    assert_eq!(first, 2, "kept from the second use on");
    let more = compiles(&place, || (0..100).for_each(|_| run(&mut client, "s")));
    assert_eq!(more, 0);
}

#[test]
fn without_a_cache_an_execution_compiles_once() {
    let cache = CacheOptions { size: 0, ..CacheOptions::default() };
    let place = Place::with(OpenOptions { cache, ..OpenOptions::default() });
    let mut client = table(&place);
    client.parse("s", LOOKUP, &[]);
    client.sync();
    let ten = compiles(&place, || (0..10).for_each(|_| run(&mut client, "s")));
    assert_eq!(ten, 10);
}

#[test]
fn what_parse_compiled_is_bound_and_described() {
    let place = Place::new();
    let mut client = table(&place);
    let texts = |number| format!("SELECT name, {number} AS x FROM t WHERE id = $1");
    let kept = stats(&place).entries;
    let once = compiles(&place, || {
        for number in 0..10 {
            client.parse("", &texts(number), &[]).describe("S");
            client.bind(("", ""), 0, &[Some(b"1")], 0).describe("P").execute("", 0);
            assert_eq!(client.sync().len(), 8);
        }
    });
    assert_eq!(once, 10, "texts that come once are compiled once");
    assert_eq!(stats(&place).entries, kept, "and not kept");
    let pair = compiles(&place, || {
        client.parse("a", LOOKUP, &[]).parse("b", LOOKUP, &[]);
        client.bind(("", "a"), 0, &[Some(b"1")], 0).execute("", 0);
        assert_eq!(client.sync(), ["parsed", "parsed", "bound", "row a", "SELECT 1", "ready I"]);
    });
    assert_eq!(pair, 2, "of two at hand the former goes back");
}

#[test]
fn a_portal_that_does_not_run_next_is_described_by_what_it_holds() {
    let place = Place::new();
    let mut client = table(&place);
    client.query("INSERT INTO t VALUES (2, 'b')");
    client.parse("all", "SELECT name FROM t ORDER BY id", &[]);
    client.sync();
    // BEGIN and COMMIT are SQLite's too, and are kept from the second use on.
    for _ in 0..2 {
        client.query("BEGIN");
        client.bind(("", "all"), 0, &[], 0).execute("", 0);
        client.sync();
        client.query("COMMIT");
    }
    let portal = compiles(&place, || {
        client.query("BEGIN");
        client.bind(("p", "all"), 0, &[], 0).describe("Pp");
        assert_eq!(client.sync(), ["bound", "columns name:25", "ready T"]);
        client.execute("p", 1).describe("Pp").execute("p", 0).describe("Pp");
        let answers = client.sync();
        let columns = "columns name:25";
        let stopped = ["row a", "suspended", columns, "row b", "SELECT 1", columns, "ready T"];
        assert_eq!(answers, stopped);
        client.query("COMMIT");
    });
    assert_eq!(portal, 0);
}

#[test]
fn a_description_is_of_the_file_as_it_is() {
    let place = Place::new();
    let (mut client, mut other) = (table(&place), place.client());
    client.parse("s", "SELECT * FROM t", &[]);
    client.sync();
    for column in 1..5 {
        other.query(&format!("ALTER TABLE t ADD COLUMN c{column} INT"));
        client.bind(("", "s"), 0, &[], 0).describe("P");
        if column % 2 == 0 {
            client.execute("", 0);
        }
        let answers = client.sync();
        assert_eq!(answers[1].split(' ').count(), 1 + 2 + column, "{answers:?}");
        if column % 2 == 0 {
            assert_eq!(answers[2].split('|').count(), 2 + column);
        }
    }
    other.query("DROP TABLE t");
    client.bind(("", "s"), 0, &[], 0).describe("P").execute("", 0);
    assert_eq!(client.sync(), ["error 42P01", "ready I"]);
}

#[test]
fn a_run_that_moves_to_a_thread_is_described_once() {
    let place = Place::new();
    let mut client = place.client();
    let text = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 50000) \
                SELECT max(x) AS most FROM c WHERE x > $1";
    for from in ["0", "1"] {
        client.parse("", text, &[20]).bind(("", ""), 0, &[Some(from.as_bytes())], 0);
        client.describe("P").execute("", 0);
        let expected = ["parsed", "bound", "columns most:23", "row 50000", "SELECT 1", "ready I"];
        assert_eq!(client.sync(), expected);
    }
}

#[test]
fn what_writes_is_described_by_what_it_wrote() {
    let place = Place::new();
    let mut client = table(&place);
    let insert = "INSERT INTO t VALUES ($1, $2) RETURNING id, name";
    let once = compiles(&place, || {
        client.parse("", insert, &[]).bind(("", ""), 0, &[Some(b"7"), Some(b"g")], 0);
        client.describe("P").execute("", 0);
        let expected =
            ["parsed", "bound", "columns id:23 name:25", "row 7|g", "INSERT 0 1", "ready I"];
        assert_eq!(client.sync(), expected);
    });
    assert_eq!(once, 1);
    client.parse("", "DELETE FROM t WHERE id = $1", &[]).bind(("", ""), 0, &[Some(b"7")], 0);
    client.describe("P").execute("", 0);
    assert_eq!(client.sync(), ["parsed", "bound", "no data", "DELETE 1", "ready I"]);
}

#[test]
fn a_portal_in_the_midst_of_its_rows_and_the_same_text_again() {
    let place = Place::new();
    let mut client = place.client();
    client.query("CREATE TABLE t (id INTEGER PRIMARY KEY); INSERT INTO t VALUES (1), (2), (3)");
    let text = "SELECT id FROM t ORDER BY id";
    for _ in 0..2 {
        assert_eq!(client.query(text)[1], "row 1");
    }
    let before = stats(&place);
    client.query("BEGIN");
    client.parse("one", text, &[]).bind(("p", "one"), 0, &[], 0).execute("p", 1);
    assert_eq!(client.sync(), ["parsed", "bound", "row 1", "suspended", "ready T"]);
    client.parse("two", text, &[]).bind(("q", "two"), 0, &[], 0).execute("q", 0);
    let all = ["parsed", "bound", "row 1", "row 2", "row 3", "SELECT 3", "ready T"];
    assert_eq!(client.sync(), all);
    assert_eq!(client.execute("p", 0).sync(), ["row 2", "row 3", "SELECT 2", "ready T"]);
    client.query("COMMIT");
    let after = stats(&place);
    assert_eq!(after.busy_misses - before.busy_misses, 1);
    let mut kept = 0;
    place.pool.inspect(|connection| {
        let statements = connection.statement_stats();
        kept += statements.iter().filter(|kept| kept.sql.ends_with(SORTED)).count();
    });
    assert_eq!(kept, 1);
}

#[test]
fn tables_are_asked_for_anew_when_the_schema_has_changed() {
    let place = Place::new();
    let mut client = place.client();
    client.query("CREATE TABLE t (v INTEGER)");
    assert_eq!(client.query("INSERT INTO t VALUES (1)"), ["INSERT 0 1", "ready I"]);
    let other = rusqlite::Connection::open(&place.path).unwrap();
    other.execute_batch("DROP TABLE t; CREATE TABLE t (v VARCHAR(3), w INTEGER)").unwrap();
    assert_eq!(client.query("INSERT INTO t VALUES ('abc', 1)"), ["INSERT 0 1", "ready I"]);
    assert_eq!(client.query("INSERT INTO t VALUES ('abcd', 1)"), ["error 22001", "ready I"]);
    let text =
        "BEGIN; ALTER TABLE t ADD COLUMN x INTEGER; INSERT INTO t VALUES ('a', 1, 2); ROLLBACK";
    let answers = ["BEGIN", "ALTER TABLE", "INSERT 0 1", "ROLLBACK", "ready I"];
    assert_eq!(client.query(text), answers);
    assert_eq!(client.query("INSERT INTO t VALUES ('a', 1, 3)"), ["error 42601", "ready I"]);
    client.query("ALTER TABLE t ADD COLUMN x INTEGER");
    assert_eq!(client.query("INSERT INTO t VALUES ('a', 1, 4)"), ["INSERT 0 1", "ready I"]);
}
