//! Figures of statements of MySQL's protocol, with real servers: on the console, in the metrics and
//! on the page.

use xtask::mysql::Flavour;
use xtask::ports::free_port;

use crate::mysql::{Program, World};
use crate::mysql_client::Session;
use crate::operation::metrics::{ask, get};
use crate::world::eventually;

/// The number of a parameter's type.
const LONG_LONG: u16 = 8;

/// Places in a row of SHOW STATEMENTS.
const CLIENTS: usize = 4;
const CALLS: usize = 12;
const MEAN: usize = 16;

/// Returns the row of the statement whose text has these words.
fn row(program: &Program, words: &str) -> Vec<String> {
    let rows = program.console("SHOW STATEMENTS");
    let found = rows.lines().find(|row| row.contains(words));
    let found = found.unwrap_or_else(|| panic!("no {words} in {rows}"));
    found.split('|').map(str::to_owned).collect()
}

/// Returns calls, rows and errors.
fn figures(row: &[String]) -> [&str; 3] {
    [0, 1, 2].map(|at| row[CALLS + at].as_str())
}

fn statements_are_counted(flavour: Flavour) {
    let (world, port) = (World::start(flavour, &[]), free_port().unwrap());
    let url = format!("url = \"mysql://app:secret@127.0.0.1:{}/\"\npool_size = 2", world.port());
    let general = format!("auth = \"trust\"\nmetrics_listen = \"127.0.0.1:{port}\"");
    let program = Program::start(&general, &url);
    let [mut one, mut two] = [(); 2].map(|()| Session::start(program.port(), "shop"));
    one.query("CREATE TABLE t (a BIGINT PRIMARY KEY)").expect("a table");
    let value = |number: u64| number.to_le_bytes();
    let insert = one.prepare("INSERT INTO t VALUES (?)");
    for number in 1..=3 {
        one.execute(insert, Some(LONG_LONG), &value(number)).expect("a row");
    }
    assert_eq!(one.execute(insert, None, &value(3)), Err(1062));
    assert_eq!(figures(&row(&program, "INSERT INTO t")), ["3", "3", "1"]);

    // Each core has its part.
    let text = "SELECT a, 'secret' FROM t WHERE a > ? AND \"secret\" <> 'it''s'";
    for session in [&mut one, &mut two] {
        let select = session.prepare(text);
        for _ in 0..2 {
            let rows = session.execute(select, Some(LONG_LONG), &value(0)).expect("rows");
            assert_eq!(rows.len(), 3);
        }
    }
    let select = row(&program, "FROM t WHERE");
    assert_eq!(figures(&select), ["4", "12", "0"], "{select:?}");
    assert_eq!(select[CLIENTS], "2", "{select:?}");
    let shown = "SELECT a, '' FROM t WHERE a > ? AND '' <> ''";
    assert_eq!((&*select[1], &*select[2], &*select[19]), ("*", "app", shown));

    let slow = two.prepare("SELECT SLEEP(0.05 + ?)");
    two.execute(slow, Some(LONG_LONG), &value(0)).expect("a row");
    let mean: u64 = row(&program, "SLEEP")[MEAN].parse().unwrap();
    assert!((50_000..5_000_000).contains(&mean), "{mean} us");

    // Texts count together.
    assert_eq!(one.query("SELEC"), Err(1064));
    one.query("SELECT a FROM t").expect("rows");
    let [calls, rows, errors] = figures(&row(&program, "(not prepared)")).map(str::to_owned);
    assert_eq!((&*calls, &*rows, &*errors), ("2", "3", "1"));

    let scrape = get(port, "/metrics");
    let has = |name: &str, end: &str| {
        let begin = format!("refrain_statement_{name}{{database=\"*\",user=\"app\",");
        let mut lines = scrape.lines().filter(|line| line.starts_with(&begin));
        assert!(lines.any(|line| line.contains(shown) && line.ends_with(end)), "{name}: {scrape}");
    };
    has("calls_total", " 4");
    has("rows_total", " 12");
    assert!(!scrape.contains("secret"), "{scrape}");
    let get = |target: &str| {
        ask(port, &format!("GET /api/1/{target} HTTP/1.1\r\nHost: localhost\r\n\r\n"))
    };
    assert!(get("show?show=statements").contains(shown));
    let why = get("explain?sql=SELECT+a+FROM+t");
    assert!(why.contains("\"prepared\",\"no\",\"autoprepare is for PostgreSQL alone\""), "{why}");
    assert!(why.contains("[\"*\",\"app\",\"shared\",\"no\","), "{why}");
    let hosts = get("show?show=hosts");
    let host = format!("[\"127.0.0.1:{}\",\"any\",\"good\",", world.port());
    assert!(hosts.contains(&host), "{hosts}");
    let why = get(&format!("explain?statement={}", select[0]));
    assert!(why.contains("the cache is for PostgreSQL alone"), "{why}");

    texts_count_by_themselves(&program, &mut one);
    the_log_tells_of_commands_by_their_time(&program, (&mut two, slow));

    two.close(slow);
    eventually("nobody has it", || row(&program, "SLEEP")[CLIENTS] == "0");
}

/// Has each text counted by itself, and none of its literals shown.
fn texts_count_by_themselves(program: &Program, session: &mut Session) {
    program.console("SET stat_texts = true");
    eventually("the cores know it", || {
        session.query("SELECT a + 1 FROM t WHERE a = 12345").expect("rows");
        program.console("SHOW STATEMENTS").contains("SELECT a + 0 FROM t WHERE a = 0")
    });
    for number in 1..=2 {
        let text = format!("SELECT a, 'secret' FROM t WHERE a <= {number} ORDER BY a");
        assert_eq!(session.query(&text).expect("rows").len(), number);
    }
    assert_eq!(session.query("SELECT nothing, 'secret' FROM t"), Err(1054));
    let rows = program.console("SHOW STATEMENTS");
    assert!(!rows.contains("secret") && !rows.contains("12345"), "{rows}");
    let text = row(program, "SELECT a, '' FROM t WHERE a <= 0 ORDER BY a");
    assert_eq!((figures(&text), &*text[CLIENTS]), (["2", "3", "0"], "0"));
    assert_eq!(figures(&row(program, "SELECT nothing, '' FROM t")), ["0", "0", "1"]);
    program.console("SET stat_texts = false");
}

/// Has the log tell of commands that took as long as that: of prepared statements with their texts.
fn the_log_tells_of_commands_by_their_time(
    program: &Program,
    (session, slow): (&mut Session, u32),
) {
    assert!(!program.log().contains("cause=duration"));
    program.console("SET log_min_duration_statement = '50ms'");
    let told = || {
        let log = program.log();
        let lines = log.lines().filter(|line| line.contains("cause=duration "));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    eventually("the cores know it", || {
        session.execute(slow, Some(LONG_LONG), &0_u64.to_le_bytes()).expect("a row");
        !told().is_empty()
    });
    let lines = told();
    let is_one = |line: &String| {
        line.contains(" ms, statement ")
            && line.contains("SELECT SLEEP(0 + ?)")
            && line.contains("user=app")
    };
    assert!(lines.iter().all(is_one), "{lines:?}");
    let before = lines.len();
    session.query("SELECT SLEEP(0.05), 'secret'").expect("a row");
    eventually("it is told", || told().len() > before);
    let last = told().pop().unwrap();
    assert!(!last.contains("statement") && !last.contains("secret"), "{last}");
    program.console("SET log_min_duration_statement = never");
}

#[test]
fn statements_of_mariadb_are_counted() {
    statements_are_counted(Flavour::MariaDb);
}

#[test]
fn statements_of_mysql_are_counted() {
    statements_are_counted(Flavour::MySql);
}
