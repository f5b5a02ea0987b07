//! The small language of the model server: so much of SQL as has effects that a proxy can get
//! wrong.

/// A statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Statement {
    /// All of the session's state, in one row.
    State,
    /// Rows of a table: their number, their length, and the row before which an error comes.
    Rows(usize, usize, Option<usize>),
    /// Variables are set, all or none.
    Set(Vec<(String, String)>),
    /// SET NAMES.
    Names(String, Option<String>),
    /// Another schema.
    Use(String),
    /// A transaction begins. Whether it reads only.
    Begin(bool),
    /// It is over.
    Commit,
    /// Nothing of it remains.
    Rollback,
    /// A savepoint.
    Savepoint(String),
    /// The statements behind a savepoint are undone.
    RollbackTo(String),
    /// Characteristics of the next transaction.
    SetTransaction(String),
    /// A row is written: the number that it gets.
    Insert(u64),
    /// A row is written with a number that the statement names.
    InsertNamed(u64),
    /// The same row again, which is an error.
    InsertAgain,
    /// An error that ends the transaction.
    Deadlock,
    /// DDL, which commits. Whether it fails.
    Ddl(bool),
    /// A variable of the user.
    UserVariable(String),
    /// A variable of the user, which the server does not report.
    SelectInto(String),
    /// A temporary table, which is made or dropped.
    Temporary(String, bool),
    /// A lock by name.
    GetLock(String),
    /// Locks of tables.
    LockTables,
    /// The end of these.
    UnlockTables,
    /// HANDLER.
    Handler(String),
    /// An error.
    Fail,
    /// A warning.
    Warn,
    /// The warnings of the statement before.
    ShowWarnings,
    /// The number of the row that was written last.
    InsertId,
    /// The number of rows that the statement before has written.
    RowCount,
    /// A procedure with so many results.
    Call(usize),
    /// A procedure that sets `sql_mode`.
    CallSet(String),
    /// A procedure that prepares something and forgets it again.
    CallPrepare,
    /// A file of the client.
    Load,
    /// Nothing.
    Do,
    /// All variables.
    ShowVariables,
    /// SHOW COLLATION.
    ShowCollation,
    /// The catalog's views and triggers, of which there are none.
    Catalog,
    /// The values of variables.
    Ask(Vec<String>),
    /// Not a statement.
    Wrong,
}

/// Returns a text's tag, which stands in a comment, and its statements.
pub fn parse(text: &str) -> (String, Vec<Statement>) {
    let (tag, rest) = match text.split_once("/*") {
        Some((before, after)) => match after.split_once("*/") {
            Some((tag, behind)) => (tag.to_owned(), format!("{before}{behind}")),
            None => (String::new(), text.to_owned()),
        },
        None => (String::new(), text.to_owned()),
    };
    (tag, rest.split(';').map(|one| statement(one.trim())).collect())
}

fn statement(text: &str) -> Statement {
    let words: Vec<&str> = text.split_whitespace().filter(|word| *word != "?").collect();
    let number = |word: &str| word.parse::<usize>().unwrap_or(0);
    let words = match &words[..] {
        [before @ .., "LIMIT", _] => before,
        all => all,
    };
    match *words {
        ["SELECT", "STATE"] => Statement::State,
        ["SELECT", "ROWS", count, size] => Statement::Rows(number(count), number(size), None),
        ["SELECT", "ROWS", count, size, "FAIL", at] => {
            Statement::Rows(number(count), number(size), Some(number(at)))
        }
        ["SELECT", "1", "INTO", name] => Statement::SelectInto(name.into()),
        ["SELECT", "LAST_INSERT_ID()"] => Statement::InsertId,
        ["SELECT", "ROW_COUNT()"] => Statement::RowCount,
        ["SHOW", "WARNINGS"] => Statement::ShowWarnings,
        ["SHOW", "SESSION", "VARIABLES"] => Statement::ShowVariables,
        ["SELECT", name, ..] if name.contains("variable_name") => Statement::ShowVariables,
        ["SHOW", "COLLATION"] => Statement::ShowCollation,
        ["(SELECT", "_binary'trigger',", ..] => Statement::Catalog,
        ["SELECT", lock] if lock.starts_with("GET_LOCK(") => Statement::GetLock(lock.into()),
        ["SELECT", ref asked @ ..] if asked.iter().all(|word| word.starts_with("@@")) => {
            let names = asked.iter().map(|word| word.trim_matches(['@', ',']).to_owned());
            Statement::Ask(names.collect())
        }
        ["SET", "NAMES", set] => Statement::Names(set.into(), None),
        ["SET", "NAMES", set, "COLLATE", collation] => {
            Statement::Names(set.into(), Some(collation.into()))
        }
        ["SET", "TRANSACTION", ..] => Statement::SetTransaction(text.into()),
        ["SET", name, "=", _] if name.starts_with('@') && !name.starts_with("@@") => {
            Statement::UserVariable(name.into())
        }
        ["SET", ..] => assignments(&text[3..]),
        ["USE", schema] => Statement::Use(schema.into()),
        ["BEGIN"] => Statement::Begin(false),
        ["START", "TRANSACTION", "READ", "ONLY"] => Statement::Begin(true),
        ["COMMIT"] => Statement::Commit,
        ["ROLLBACK"] => Statement::Rollback,
        ["SAVEPOINT", name] => Statement::Savepoint(name.into()),
        ["ROLLBACK", "TO", name] => Statement::RollbackTo(name.into()),
        ["INSERT", id] => Statement::Insert(id.parse().unwrap_or(0)),
        ["INSERT", id, "NAMED"] => Statement::InsertNamed(id.parse().unwrap_or(0)),
        ["INSERT", "AGAIN", "1"] => Statement::InsertAgain,
        ["DEADLOCK"] => Statement::Deadlock,
        ["CREATE", "TABLE", name] => Statement::Ddl(name == "bad"),
        ["CREATE", "TEMPORARY", "TABLE", name] => Statement::Temporary(name.into(), true),
        ["DROP", "TEMPORARY", "TABLE", name] => Statement::Temporary(name.into(), false),
        ["LOCK", "TABLES", ..] => Statement::LockTables,
        ["UNLOCK", "TABLES"] => Statement::UnlockTables,
        ["HANDLER", name, "OPEN"] => Statement::Handler(name.into()),
        ["WARN"] => Statement::Warn,
        ["CALL", "SETS", mode] => Statement::CallSet(mode.into()),
        ["CALL", "PREPARES"] => Statement::CallPrepare,
        ["CALL", count] => Statement::Call(number(count)),
        ["LOAD", "DATA", "LOCAL", ..] => Statement::Load,
        ["DO", ..] => Statement::Do,
        ["FAIL"] => Statement::Fail,
        _ => Statement::Wrong,
    }
}

/// Reads `a = 'b', @@session.c='d'`.
fn assignments(text: &str) -> Statement {
    let mut found = Vec::new();
    let mut rest = text;
    loop {
        let Some((name, after)) = rest.split_once('=') else { return Statement::Wrong };
        let name = name.trim().trim_start_matches("SESSION ").trim_start_matches("@@session.");
        let after = after.trim_start();
        let (value, after) = match after.strip_prefix('\'') {
            Some(quoted) => match quoted.split_once('\'') {
                Some(pair) => pair,
                None => return Statement::Wrong,
            },
            None => {
                let end = after.find(',').unwrap_or(after.len());
                (after[..end].trim_end(), &after[end..])
            }
        };
        found.push((name.trim().to_owned(), value.to_owned()));
        match after.trim_start().strip_prefix(',') {
            Some(more) => rest = more,
            None => return Statement::Set(found),
        }
    }
}
