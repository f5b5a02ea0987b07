//! Client libraries of MySQL: `mysql LIBRARY`.
//!
//! Each check prints `= NAME` and then what it got. Whether that is right is seen by running the
//! same without a proxy. A check that fails by itself prints FAILED.

use std::env;
use std::error::Error;

use mysql_async::prelude::Queryable as _;
use mysql_async::{OptsBuilder, Params, SslOpts, Value};
use sqlx::mysql::{MySqlConnectOptions, MySqlPoolOptions, MySqlRow, MySqlSslMode};
use sqlx::{Column as _, ConnectOptions as _, Connection as _, Row as _, TypeInfo as _};

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

const CLIENTS: i64 = 24;

/// A connection by one of the libraries.
enum Library {
    Sqlx(Box<sqlx::MySqlConnection>),
    MysqlAsync(mysql_async::Conn),
}

/// What came of a statement.
struct Done {
    rows: Vec<String>,
    changed: u64,
    id: u64,
}

fn variable(name: &str) -> Option<String> {
    env::var(name).ok()
}

fn sqlx_options() -> MySqlConnectOptions {
    let options = MySqlConnectOptions::new().username("app").password("secret").database("shop");
    let options = match (variable("MYSQL_SOCKET"), variable("MYSQL_HOST"), variable("MYSQL_PORT")) {
        (Some(socket), ..) => options.socket(socket),
        (None, Some(host), Some(port)) => options.host(&host).port(port.parse().expect("a port")),
        _ => panic!("no server is named"),
    };
    match variable("MYSQL_CA") {
        Some(file) => options.ssl_mode(MySqlSslMode::VerifyIdentity).ssl_ca(file),
        None => options.ssl_mode(MySqlSslMode::Disabled),
    }
}

fn async_options() -> OptsBuilder {
    let host = variable("MYSQL_HOST").unwrap_or_else(|| "localhost".to_owned());
    let port = variable("MYSQL_PORT").map_or(0, |port| port.parse().expect("a port"));
    let tls = variable("MYSQL_CA").map(|file| {
        let root = std::path::PathBuf::from(file);
        SslOpts::default().with_root_certs(vec![root.into()])
    });
    OptsBuilder::default()
        .ip_or_hostname(host)
        .tcp_port(port)
        .socket(variable("MYSQL_SOCKET"))
        // Else it goes past a proxy, to the socket that the server has.
        .prefer_socket(variable("MYSQL_SOCKET").is_some())
        .user(Some("app"))
        .pass(Some("secret"))
        .db_name(Some("shop"))
        .ssl_opts(tls)
}

impl Library {
    async fn open(name: &str) -> Result<Self> {
        match name {
            "sqlx" => Ok(Self::Sqlx(Box::new(sqlx_options().connect().await?))),
            "mysql_async" => Ok(Self::MysqlAsync(mysql_async::Conn::new(async_options()).await?)),
            _ => Err("no such library".into()),
        }
    }

    /// Runs a prepared statement.
    async fn run(&mut self, text: &str, values: &[Value]) -> Result<Done> {
        match self {
            Self::Sqlx(db) => {
                let mut query = sqlx::query(text);
                for value in values {
                    query = match value.clone() {
                        Value::Int(value) => query.bind(value),
                        Value::UInt(value) => query.bind(value),
                        Value::Double(value) => query.bind(value),
                        Value::Bytes(value) => match String::from_utf8(value) {
                            Ok(text) => query.bind(text),
                            Err(error) => query.bind(error.into_bytes()),
                        },
                        _ => query.bind(None::<String>),
                    };
                }
                if is_read(text) {
                    let rows = query.fetch_all(&mut **db).await?;
                    return Ok(Done { rows: rows.iter().map(shown).collect(), changed: 0, id: 0 });
                }
                let done = query.execute(&mut **db).await?;
                Ok(Done { rows: vec![], changed: done.rows_affected(), id: done.last_insert_id() })
            }
            Self::MysqlAsync(db) => {
                let values = match values {
                    [] => Params::Empty,
                    values => Params::Positional(values.to_vec()),
                };
                let mut result = db.exec_iter(text, values).await?;
                let (changed, id) = (result.affected_rows(), result.last_insert_id());
                let mut rows: Vec<String> = Vec::new();
                while !result.is_empty() {
                    let some: Vec<mysql_async::Row> = result.collect().await?;
                    rows.extend(some.into_iter().map(|row| format!("{:?}", row.unwrap())));
                }
                result.drop_result().await?;
                // The library takes the number of a statement for one of rows.
                let (changed, id) = if is_read(text) { (0, None) } else { (changed, id) };
                Ok(Done { rows, changed, id: id.unwrap_or(0) })
            }
        }
    }

    /// Runs a text, with the results of all its statements.
    async fn text(&mut self, text: &str) -> Result<Vec<String>> {
        match self {
            Self::Sqlx(db) => {
                let rows = sqlx::raw_sql(text).fetch_all(&mut **db).await?;
                Ok(rows.iter().map(shown).collect())
            }
            Self::MysqlAsync(db) => {
                let mut result = db.query_iter(text).await?;
                let mut rows = Vec::new();
                while !result.is_empty() {
                    let some: Vec<mysql_async::Row> = result.collect().await?;
                    rows.extend(some.into_iter().map(|row| format!("{:?}", row.unwrap())));
                }
                result.drop_result().await?;
                Ok(rows)
            }
        }
    }

    async fn close(self) -> Result<()> {
        match self {
            Self::Sqlx(db) => db.close().await?,
            Self::MysqlAsync(db) => db.disconnect().await?,
        }
        Ok(())
    }
}

fn is_read(text: &str) -> bool {
    ["SELECT", "SHOW", "CALL"].iter().any(|word| text.starts_with(word))
}

/// Writes a row of sqlx: each value as the first type that takes it.
fn shown(row: &MySqlRow) -> String {
    let value = |at: usize| {
        let kind = row.columns()[at].type_info().name().to_owned();
        let number = row.try_get::<Option<i64>, _>(at).map(|value| format!("{value:?}"));
        let number = number.or_else(|_| row.try_get::<Option<u64>, _>(at).map(|it| format!("{it:?}")));
        let number = number.or_else(|_| row.try_get::<Option<f64>, _>(at).map(|it| format!("{it:?}")));
        let text = number.or_else(|_| row.try_get::<Option<String>, _>(at).map(|it| format!("{it:?}")));
        let bytes = || row.try_get_unchecked::<Option<Vec<u8>>, _>(at).map(|it| format!("{it:?}"));
        let value = text.or_else(|_| bytes()).unwrap_or_else(|error| error.to_string());
        format!("{kind} {value}")
    };
    (0..row.len()).map(value).collect::<Vec<_>>().join(", ")
}

struct Test {
    name: String,
    table: String,
    db: Library,
}

fn int(value: i64) -> Value {
    Value::Int(value)
}

fn bytes(value: &str) -> Value {
    Value::Bytes(value.into())
}

fn described(error: &(dyn Error + Send + Sync + 'static)) -> String {
    if let Some(sqlx::Error::Database(error)) = error.downcast_ref() {
        let number = error.try_downcast_ref::<sqlx::mysql::MySqlDatabaseError>();
        let number = number.map(sqlx::mysql::MySqlDatabaseError::number);
        return format!("{number:?} {:?} {}", error.code(), error.message());
    }
    match error.downcast_ref() {
        Some(mysql_async::Error::Server(error)) => {
            format!("{} {} {}", error.code, error.state, error.message)
        }
        _ => error.to_string(),
    }
}

impl Test {
    async fn lookup(&mut self, id: i64) -> Result<Vec<String>> {
        let text = format!("SELECT name FROM {} WHERE id = ?", self.table);
        Ok(self.db.run(&text, &[int(id)]).await?.rows)
    }

    /// Prints what came of a statement. An error is one of the results.
    async fn show(&mut self, text: &str, values: &[Value]) {
        let text = text.replace("TABLE_", &self.table);
        match self.db.run(&text, values).await {
            Ok(done) => println!("{:?} {} {}", done.rows, done.changed, done.id),
            Err(error) => println!("{}", described(&*error)),
        }
    }

    async fn show_text(&mut self, text: &str) {
        let text = text.replace("TABLE_", &self.table);
        match self.db.text(&text).await {
            Ok(rows) => println!("{rows:?}"),
            Err(error) => println!("{}", described(&*error)),
        }
    }

    async fn lookups(&mut self) -> Result<()> {
        for turn in 0..20 {
            ensure(self.lookup(1 + turn % 2).await?.len() == 1, "no row")?;
        }
        self.show("SELECT * FROM TABLE_ ORDER BY id", &[]).await;
        for _ in 0..5 {
            self.db.text("BEGIN").await?;
            self.show("SELECT name FROM TABLE_ WHERE id = ?", &[int(2)]).await;
            self.db.text("COMMIT").await?;
        }
        self.show("SELECT name FROM TABLE_ WHERE id = ?", &[int(3)]).await;
        Ok(())
    }

    async fn values_of_many_types(&mut self) -> Result<()> {
        let values = [
            int(7),
            int(-8),
            int(1 << 60),
            Value::UInt(u64::MAX),
            Value::Double(1.5),
            bytes("it's \\ ä€😀"),
            bytes(""),
            Value::Bytes(vec![0, 255, 39]),
            Value::NULL,
        ];
        for value in values {
            self.show("SELECT ? AS back, ? AS nothing", &[value, Value::NULL]).await;
        }
        let columns = [
            ("TINYINT", int(-5)),
            ("SMALLINT UNSIGNED", int(65535)),
            ("BIGINT UNSIGNED", Value::UInt(1 << 63)),
            ("DOUBLE", Value::Double(0.1)),
            ("DECIMAL(20,5)", bytes("-12.34000")),
            ("DATETIME(6)", bytes("2024-02-29 12:30:15.123456")),
            ("TIME(3)", bytes("-30:00:00.250")),
            ("VARCHAR(20)", bytes("ä€")),
            ("BLOB", Value::Bytes(vec![0, 255])),
            ("JSON", bytes("{\"a\": 1}")),
            ("BIT(9)", int(3)),
            ("ENUM('x','y')", bytes("y")),
        ];
        let definitions = columns.iter().enumerate();
        let definitions = definitions.map(|(at, (kind, _))| format!("a{at} {kind}, b{at} {kind}"));
        let definitions = definitions.collect::<Vec<_>>().join(", ");
        self.show_text(&format!("CREATE TABLE TABLE__kind ({definitions})")).await;
        for (at, (_, value)) in columns.into_iter().enumerate() {
            let insert = format!("INSERT INTO TABLE__kind (a{at}, b{at}) VALUES (?, ?)");
            self.show(&insert, &[value, Value::NULL]).await;
            self.show(&format!("SELECT a{at}, b{at} FROM TABLE__kind"), &[]).await;
            self.show("DELETE FROM TABLE__kind", &[]).await;
        }
        self.show_text("DROP TABLE TABLE__kind").await;
        Ok(())
    }

    async fn a_megabyte_each_way(&mut self) -> Result<()> {
        for text in ["x".repeat(1 << 20), "ä€".repeat(300_000)] {
            let back = self.db.run("SELECT ?", &[bytes(&text)]).await?.rows;
            println!("{} {}", back.len(), back.first().map_or(0, String::len));
        }
        self.show("SELECT LENGTH(?)", &[Value::Bytes(vec![255; 1 << 20])]).await;
        println!("{}", self.db.text("SELECT REPEAT('y', 3000000)").await?.concat().len());
        Ok(())
    }

    async fn numbers_of_new_rows(&mut self) -> Result<()> {
        let insert = "INSERT INTO TABLE_ (name, number) VALUES (?, ?)";
        self.show(insert, &[bytes("new"), Value::Double(1.5)]).await;
        self.show("INSERT INTO TABLE_ (name) VALUES ('a'), ('b'), ('c')", &[]).await;
        self.show("SELECT LAST_INSERT_ID()", &[]).await;
        self.show("UPDATE TABLE_ SET number = 2 WHERE name IN ('a', 'b')", &[]).await;
        self.show("UPDATE TABLE_ SET number = 2 WHERE name IN ('a', 'c')", &[]).await;
        self.show("DELETE FROM TABLE_ WHERE id > ?", &[int(2)]).await;
        Ok(())
    }

    async fn errors_leave_the_connection_usable(&mut self) -> Result<()> {
        for _ in 0..2 {
            self.show("INSERT INTO TABLE_ (id, name) VALUES (?, 'again')", &[int(1)]).await;
            self.show("INSERT INTO TABLE_ (name, number) VALUES ('zero', 1 / ?)", &[int(0)]).await;
            self.show("SELEC 1", &[]).await;
            self.show_text("SELEC 1").await;
            self.show("SELECT * FROM nowhere WHERE a = ?", &[int(1)]).await;
            ensure(self.lookup(1).await?.len() == 1, "no row")?;
        }
        self.show("SELECT CAST('12x' AS SIGNED), 1/0", &[]).await;
        self.show_text("SHOW WARNINGS").await;
        Ok(())
    }

    async fn rollback_undoes(&mut self) -> Result<()> {
        self.show_text("START TRANSACTION").await;
        self.show("INSERT INTO TABLE_ (name) VALUES (?)", &[bytes("undone")]).await;
        self.show("INSERT INTO TABLE_ (id, name) VALUES (?, 'again')", &[int(1)]).await;
        self.show("SELECT COUNT(*) FROM TABLE_", &[]).await;
        self.show_text("ROLLBACK").await;
        self.show("SELECT COUNT(*) FROM TABLE_", &[]).await;
        Ok(())
    }

    async fn without_autocommit(&mut self) -> Result<()> {
        let mut other = Library::open(&self.name).await?;
        let count = format!("SELECT COUNT(*) FROM {}", self.table);
        self.show_text("SET autocommit = 0").await;
        self.show("INSERT INTO TABLE_ (name) VALUES (?)", &[bytes("kept")]).await;
        println!("{:?}", other.run(&count, &[]).await?.rows);
        self.show_text("COMMIT").await;
        println!("{:?}", other.run(&count, &[]).await?.rows);
        self.show("DELETE FROM TABLE_ WHERE id > ?", &[int(2)]).await;
        self.show_text("COMMIT").await;
        self.show_text("SET autocommit = 1").await;
        println!("{:?}", other.run(&count, &[]).await?.rows);
        other.close().await
    }

    async fn settings_and_variables(&mut self) -> Result<()> {
        self.show("SELECT @@sql_mode, @@time_zone, @@collation_connection", &[]).await;
        let mode = "ANSI_QUOTES,PIPES_AS_CONCAT";
        self.show_text(&format!("SET SESSION sql_mode = '{mode}', time_zone = '+05:00'")).await;
        self.show_text("SET @a = 7, @b = 'ä'").await;
        for _ in 0..3 {
            let text = "SELECT \"name\" || '!', @@time_zone, @a, @b FROM TABLE_ WHERE id = ?";
            self.show(text, &[int(2)]).await;
        }
        self.show_text("CREATE TEMPORARY TABLE TABLE__own SELECT 5 AS five").await;
        self.show("SELECT five FROM TABLE__own", &[]).await;
        self.show_text("DROP TEMPORARY TABLE TABLE__own").await;
        self.show_text("SET SESSION sql_mode = DEFAULT, time_zone = DEFAULT").await;
        Ok(())
    }

    async fn several_statements_in_a_text(&mut self) -> Result<()> {
        let change = "UPDATE TABLE_ SET number = number + 1";
        let again = "INSERT INTO TABLE_ (id, name) VALUES (1, 'again')";
        self.show_text(&format!("SELECT 1; {change}; SELECT 2; DO 1")).await;
        self.show_text(&format!("SELECT 1; {change}; {again}; SELECT 2")).await;
        self.show_text("SELECT 1; SELEC 2; SELECT 3").await;
        self.show("SELECT name, number FROM TABLE_ WHERE id = ?", &[int(1)]).await;
        Ok(())
    }

    async fn procedures_with_several_results(&mut self) -> Result<()> {
        self.show_text("CALL TABLE__pair(5)").await;
        self.show("CALL TABLE__pair(?)", &[int(5)]).await;
        for _ in 0..2 {
            self.show_text("CALL TABLE__fail()").await;
            self.show("CALL TABLE__fail()", &[]).await;
            self.show("SELECT name FROM TABLE_ WHERE id = ?", &[int(2)]).await;
        }
        Ok(())
    }

    /// Neither library has leave to send a file here.
    async fn files_of_the_client(&mut self) -> Result<()> {
        self.show_text("LOAD DATA LOCAL INFILE '/etc/hostname' INTO TABLE TABLE_ (name)").await;
        let own = Library::open(&self.name).await?;
        std::mem::replace(&mut self.db, own).close().await.ok();
        self.show("SELECT COUNT(*) FROM TABLE_", &[]).await;
        Ok(())
    }

    async fn statements_closed_and_prepared_again(&mut self) -> Result<()> {
        for turn in 0..300 {
            let text = format!("SELECT {} + ?", turn % 150);
            ensure(self.db.run(&text, &[int(1)]).await?.rows.len() == 1, "no row")?;
        }
        for _ in 0..10 {
            match &mut self.db {
                Library::Sqlx(db) => db.clear_cached_statements().await?,
                Library::MysqlAsync(db) => {
                    let statement = db.prep("SELECT ? + 1").await?;
                    db.exec_drop(&statement, (1,)).await?;
                    db.close(statement).await?;
                }
            }
            ensure(self.lookup(1).await?.len() == 1, "no row")?;
        }
        Ok(())
    }

    async fn many_clients(&mut self) -> Result<()> {
        // Threads rather than tasks: connections of sqlx are not for other threads.
        let clients = (0..CLIENTS).map(|number| {
            let (name, table) = (self.name.clone(), self.table.clone());
            std::thread::spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
                runtime.block_on(client(number, name, table))
            })
        });
        for client in clients.collect::<Vec<_>>() {
            client.join().map_err(|_| "a client has panicked")??;
        }
        Ok(())
    }

    async fn connections_of_the_librarys_pool(&mut self) -> Result<()> {
        let text = "SELECT CAST(? AS CHAR), @a";
        if self.name == "sqlx" {
            let options = MySqlPoolOptions::new().max_connections(4);
            let pool = options.connect_with(sqlx_options()).await?;
            let runs = (0..100_i64).map(|number| {
                let pool = pool.clone();
                tokio::spawn(async move { sqlx::query(text).bind(number).fetch_one(&pool).await })
            });
            for (number, run) in runs.collect::<Vec<_>>().into_iter().enumerate() {
                ensure(shown(&run.await??).contains(&format!("{:?}", number.to_string())), "wrong")?;
            }
            pool.close().await;
            return Ok(());
        }
        let pool = mysql_async::Pool::new(async_options());
        for number in 0..20_i64 {
            let mut conn = pool.get_conn().await?;
            let row: Option<(String, Option<i64>)> = conn.exec_first(text, (number,)).await?;
            ensure(row == Some((number.to_string(), None)), "it was not reset")?;
            conn.query_drop("SET @a = 5").await?;
        }
        pool.disconnect().await?;
        Ok(())
    }

    async fn a_ping(&mut self) -> Result<()> {
        self.show_text("SET @a = 5").await;
        match &mut self.db {
            Library::Sqlx(db) => db.ping().await?,
            Library::MysqlAsync(db) => db.ping().await?,
        }
        self.show("SELECT @a", &[]).await;
        Ok(())
    }
}

/// Looks up rows in transactions.
async fn client(number: i64, name: String, table: String) -> Result<()> {
    let mut test = Test { db: Library::open(&name).await?, name, table };
    for turn in 0..10 {
        let sent = number * 1000 + turn;
        let back = test.db.run("SELECT ? + 0", &[int(sent)]).await?.rows.concat();
        ensure(back.contains(&sent.to_string()), "another's row")?;
        test.db.text("BEGIN").await?;
        ensure(test.lookup(1).await?.concat().contains(&named("one", &test.db)), "wrong row")?;
        test.db.text("COMMIT").await?;
    }
    test.db.close().await
}

/// Returns how a library's row with a name is written.
fn named(name: &str, db: &Library) -> String {
    match db {
        Library::Sqlx(_) => name.to_owned(),
        Library::MysqlAsync(_) => format!("{:?}", vec![bytes(name)]),
    }
}

fn ensure(holds: bool, what: &str) -> Result<()> {
    if holds { Ok(()) } else { Err(what.into()) }
}

/// Runs checks by name. A check that failed gets the next a new connection.
macro_rules! run {
    ($test:ident: $($check:ident)*) => {$(
        println!("= {}", stringify!($check).replace('_', " "));
        if let Err(error) = $test.$check().await {
            println!("FAILED {error}");
            $test.db = Library::open(&$test.name).await?;
        }
    )*};
}

#[tokio::main]
async fn main() -> Result<()> {
    let name = env::args().nth(1).ok_or("which library?")?;
    let table = format!("smoke_rust_{name}");
    let mut test = Test { db: Library::open(&name).await?, name, table };
    for text in [
        "DROP TABLE IF EXISTS TABLE_, TABLE__kind",
        "CREATE TABLE TABLE_ (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(50) NOT NULL, number DOUBLE)",
        "INSERT INTO TABLE_ (name, number) VALUES ('one', 1), ('two', NULL)",
        "DROP PROCEDURE IF EXISTS TABLE__pair",
        "DROP PROCEDURE IF EXISTS TABLE__fail",
        "CREATE PROCEDURE TABLE__pair(n INT) BEGIN SELECT n, n + 1; SELECT name FROM TABLE_ ORDER BY id; END",
        "CREATE PROCEDURE TABLE__fail() BEGIN SELECT 1; SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'enough'; END",
    ] {
        test.db.text(&text.replace("TABLE_", &test.table)).await?;
    }
    run! { test:
        lookups values_of_many_types a_megabyte_each_way numbers_of_new_rows
        errors_leave_the_connection_usable rollback_undoes without_autocommit settings_and_variables
        several_statements_in_a_text procedures_with_several_results files_of_the_client
        statements_closed_and_prepared_again many_clients connections_of_the_librarys_pool a_ping
    }
    test.db.close().await
}
