//! Client libraries against SQLite behind PostgreSQL's protocol: `refrain-smoke LIBRARY`.

use std::env;
use std::error::Error;
use std::process::ExitCode;

use sqlx::{Connection as _, Row as _};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// A connection by one of the libraries.
enum Library {
    TokioPostgres(tokio_postgres::Client),
    Sqlx(Box<sqlx::PgConnection>),
}

/// The result of an INSERT.
#[derive(Debug, PartialEq)]
enum Added {
    Row(i64),
    Duplicate,
}

struct Test {
    library: Library,
    lookup: String,
    insert: String,
}

impl Library {
    async fn open(name: &str) -> Result<Self> {
        let of = |variable: &str| env::var(variable);
        let (user, host, port) = (of("PGUSER")?, of("PGHOST")?, of("PGPORT")?);
        let url = format!("postgres://{user}@{host}:{port}/{}", of("PGDATABASE")?);
        if name == "sqlx" {
            return Ok(Self::Sqlx(Box::new(sqlx::PgConnection::connect(&url).await?)));
        }
        let (client, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls).await?;
        tokio::spawn(connection);
        Ok(Self::TokioPostgres(client))
    }

    async fn run(&mut self, text: &str) -> Result<()> {
        match self {
            Self::TokioPostgres(client) => client.batch_execute(text).await?,
            Self::Sqlx(db) => drop(sqlx::raw_sql(text).execute(&mut **db).await?),
        }
        Ok(())
    }
}

impl Test {
    async fn name_of(&mut self, id: i64) -> Result<Option<String>> {
        Ok(match &mut self.library {
            Library::TokioPostgres(client) => {
                let statement = client.prepare(&self.lookup).await?;
                client.query_opt(&statement, &[&id]).await?.map(|row| row.get(0))
            }
            Library::Sqlx(db) => {
                sqlx::query_scalar(&self.lookup).bind(id).fetch_optional(&mut **db).await?
            }
        })
    }

    async fn add(&mut self, name: &str) -> Result<Added> {
        match &mut self.library {
            Library::TokioPostgres(client) => {
                match client.query_one(&self.insert, &[&name]).await {
                    Ok(row) => Ok(Added::Row(row.get(0))),
                    Err(error) if error.code().is_some_and(|code| code.code() == "23505") => {
                        Ok(Added::Duplicate)
                    }
                    Err(error) => Err(error.into()),
                }
            }
            Library::Sqlx(db) => {
                match sqlx::query(&self.insert).bind(name).fetch_one(&mut **db).await {
                    Ok(row) => Ok(Added::Row(row.get(0))),
                    Err(sqlx::Error::Database(error)) if error.is_unique_violation() => {
                        Ok(Added::Duplicate)
                    }
                    Err(error) => Err(error.into()),
                }
            }
        }
    }

    async fn lookups(&mut self) -> Result<()> {
        for _ in 0..20 {
            ensure(self.name_of(1).await?.as_deref() == Some("one"), "wrong row")?;
            ensure(self.name_of(7).await?.is_none(), "a row that is not there")?;
        }
        Ok(())
    }

    async fn insert_returning(&mut self) -> Result<()> {
        ensure(self.add("three").await? == Added::Row(3), "another row")?;
        ensure(self.name_of(3).await?.as_deref() == Some("three"), "wrong row")
    }

    async fn a_duplicate_key(&mut self) -> Result<()> {
        for _ in 0..3 {
            ensure(self.add("one").await? == Added::Duplicate, "it was added")?;
            ensure(self.name_of(2).await?.as_deref() == Some("two"), "wrong row")?;
        }
        Ok(())
    }

    async fn rollback_undoes(&mut self) -> Result<()> {
        self.library.run("BEGIN").await?;
        ensure(self.add("four").await? == Added::Row(4), "another row")?;
        self.library.run("ROLLBACK").await?;
        ensure(self.name_of(4).await?.is_none(), "it is still there")
    }
}

fn ensure(holds: bool, what: &str) -> Result<()> {
    if holds { Ok(()) } else { Err(what.into()) }
}

#[tokio::main]
async fn main() -> Result<ExitCode> {
    let name = env::args().nth(1).ok_or("which library?")?;
    let table = format!("smoke_sqlite_{}", name.replace('-', "_"));
    let mut library = Library::open(&name).await?;
    library.run(&format!("DROP TABLE IF EXISTS {table}")).await?;
    let columns = "id bigserial PRIMARY KEY, name text NOT NULL UNIQUE";
    library.run(&format!("CREATE TABLE {table} ({columns})")).await?;
    library.run(&format!("INSERT INTO {table} VALUES (1, 'one'), (2, 'two')")).await?;
    let lookup = format!("SELECT name FROM {table} WHERE id = $1");
    let insert = format!("INSERT INTO {table} (name) VALUES ($1) RETURNING id");
    let mut test = Test { library, lookup, insert };
    let results = [
        ("lookups", test.lookups().await),
        ("insert returning", test.insert_returning().await),
        ("a duplicate key is the library's own error", test.a_duplicate_key().await),
        ("rollback undoes", test.rollback_undoes().await),
    ];
    test.library.run(&format!("DROP TABLE {table}")).await?;
    let mut failed = 0;
    for (name, result) in &results {
        match result {
            Ok(()) => println!("ok      {name}"),
            Err(error) => {
                failed += 1;
                println!("FAILED  {name}: {error}");
            }
        }
    }
    println!("{} passed, {failed} failed", results.len() - failed);
    Ok(if failed > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
