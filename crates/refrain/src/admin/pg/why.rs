//! Why a statement is prepared, shared and cached, or not, in words, and the lines of the
//! configuration that would change it.

use std::sync::Arc;

use refrain_config::{Autoprepare, Backend, Options, PoolMode, PoolOptions, ShareServers};
use refrain_pg::snapshot::{Kept, NormalizedQueryRow, StatementView, TextVerdict};

use super::autoprepare::merged;
use crate::admin::SNAPSHOT_TIMEOUT;
use crate::admin::table::{Column, nullable, table, text};
use crate::admin::view::View;
use crate::console::Table;
use crate::quoted::quoted;

/// Most pools of other protocols than PostgreSQL's that are told of a text.
const OTHERS_MAX: usize = 16;
/// Most normalized queries that are shown as the same text and get their reasons.
const TEMPLATES_MAX: usize = 4;

/// An answer: whether a statement is prepared, shared or cached.
struct Reason {
    database: String,
    user: String,
    subject: &'static str,
    answer: &'static str,
    reason: String,
    /// The lines that would change the answer, as TOML.
    rule: Option<String>,
}

const COLUMNS: &[Column<Reason>] = &[
    text("database", |row| row.database.clone()),
    text("user", |row| row.user.clone()),
    text("subject", |row| row.subject.to_owned()),
    text("answer", |row| row.answer.to_owned()),
    text("reason", |row| row.reason.clone()),
    nullable("rule", |row| row.rule.clone()),
];

/// A statement, and the pool for which it is looked at.
struct Case<'a> {
    options: &'a Options,
    pool: PoolOptions,
    backend: Backend,
    verdict: TextVerdict,
    sql: &'a str,
}

/// Returns the reasons for a text, for pools that are open.
pub(in crate::admin) fn of_text(view: &View<'_>, sql: &str) -> Table {
    let sql = sql.trim().trim_end_matches(';');
    let cases = Case::all(view, sql, None).into_iter().chain(Case::of_others(view, sql));
    table(COLUMNS, &cases.flat_map(|case| case.reasons(case.prepared())).collect::<Vec<_>>())
}

/// Returns the reasons for a shared statement; no rows if there is none of this number.
pub(in crate::admin) fn of_statement(view: &View<'_>, id: u64) -> Table {
    let shared = &view.pg.cores.shared;
    let statements = refrain_pg::statements(shared);
    let Some(statement) = statements.into_iter().find(|it| it.id == id) else {
        return of_other_protocols(view, id);
    };
    // By its number: the text that is shown may be one that no client has run.
    let verdict = refrain_pg::judge_statement(shared, &view.options, id);
    let case = verdict.and_then(|verdict| Case::of(view, verdict, &statement.text));
    let reasons = case.iter().flat_map(|case| case.reasons(is_prepared(&statement)));
    table(COLUMNS, &reasons.collect::<Vec<_>>())
}

/// Returns the reasons for a statement that is none of PostgreSQL's protocol.
fn of_other_protocols(view: &View<'_>, id: u64) -> Table {
    let others = view.pg.others.iter().flat_map(|cores| cores.statements(SNAPSHOT_TIMEOUT));
    let found = others.filter(|it| id != 0 && it.id == id).collect::<Vec<_>>();
    let reasons = found.iter().filter_map(|statement| {
        let verdict = unknown(&statement.database, &statement.user);
        let case = Case::of(view, verdict, &statement.text)?;
        Some(case.reasons(is_prepared(statement)))
    });
    table(COLUMNS, &reasons.flatten().collect::<Vec<_>>())
}

/// Returns the verdict of a pool in which nothing judges a text.
fn unknown(database: &Arc<str>, user: &Arc<str>) -> TextVerdict {
    TextVerdict {
        database: Arc::clone(database),
        user: Arc::clone(user),
        read: None,
        could_be_kept: Kept::Unknown,
        reason: String::new(),
        rule: None,
        canonical: None,
    }
}

/// Returns the reasons for normalized queries, of which `is_it` tells; no rows if there is none.
pub(in crate::admin) fn of_template(view: &View<'_>, is_it: impl Fn(&str) -> bool) -> Table {
    let queries = merged(&view.snapshots).into_iter().filter(|row| is_it(&row.query));
    let reasons = queries.take(TEMPLATES_MAX).flat_map(|row| {
        let cases = Case::all(view, &row.query, Some((&*row.database, &*row.user)));
        let reasons = |case: &Case<'_>| case.reasons(case.normalized(&row));
        cases.iter().flat_map(reasons).collect::<Vec<_>>()
    });
    table(COLUMNS, &reasons.collect::<Vec<_>>())
}

impl<'a> Case<'a> {
    /// Looks at a text for one pool, or for several.
    fn all(view: &'a View<'_>, sql: &'a str, only: Option<(&str, &str)>) -> Vec<Self> {
        let shared = &view.pg.cores.shared;
        let verdicts = refrain_pg::judge(shared, &view.options, sql, only).into_iter();
        verdicts.filter_map(|verdict| Self::of(view, verdict, sql)).collect()
    }

    /// Looks at a text for pools of other protocols than PostgreSQL's.
    fn of_others(view: &'a View<'_>, sql: &'a str) -> impl Iterator<Item = Self> {
        let pools = view.pools().into_iter().map(|pool| pool.sum);
        let cases = pools
            .filter_map(move |pool| Self::of(view, unknown(&pool.database, &pool.user), sql))
            .filter(|case| case.backend == Backend::Mysql);
        cases.take(OTHERS_MAX)
    }

    fn of(view: &'a View<'_>, verdict: TextVerdict, sql: &'a str) -> Option<Self> {
        let pool = view.options.pool(&verdict.database, &verdict.user)?.options;
        let backend = view.options.database(&verdict.database)?.server.backend;
        Some(Self { options: &view.options, pool, backend, verdict, sql })
    }

    /// Returns the three reasons, of which the first is known.
    fn reasons(&self, prepared: Said) -> [Reason; 3] {
        let row = |subject, (answer, reason, rule): Said| Reason {
            database: self.verdict.database.to_string(),
            user: self.verdict.user.to_string(),
            subject,
            answer,
            reason,
            rule,
        };
        [row("prepared", prepared), row("shared", self.shared()), row("cached", self.cached())]
    }

    /// Returns whether the text is prepared when it comes as a simple query.
    fn prepared(&self) -> Said {
        let most = self.options.defaults.autoprepare_max_literals as usize;
        let times = self.pool.autoprepare_threshold;
        match refrain_grammar::explain(self.sql, most) {
            _ if self.backend != Backend::Postgres => no("autoprepare is for PostgreSQL alone"),
            Err(why) => no(format!("{}: it runs as it is sent", why.text)),
            Ok(_) if self.pool.autoprepare == Autoprepare::Off => {
                let reason = "autoprepare is off, so it is prepared only where the client does so";
                ("no", reason.to_owned(), Some(pool_rule(&self.verdict, "autoprepare = \"on\"")))
            }
            Ok(_) => {
                let reason = format!("once it was seen {times} times (autoprepare_threshold)");
                ("yes", reason, None)
            }
        }
    }

    /// Returns whether a normalized query runs as a prepared statement.
    fn normalized(&self, row: &NormalizedQueryRow) -> Said {
        let NormalizedQueryRow { reason, seen, .. } = row;
        match row.state {
            "ready" => ("yes", format!("{} of {seen} ran so", row.hits), None),
            "counted" => no(format!("it was seen {seen} times only (autoprepare_threshold)")),
            "never" => self.prepared(),
            "refused" => no(reason.clone()),
            _ => ("unknown", "it is being judged".to_owned(), None),
        }
    }

    fn shared(&self) -> Said {
        match self.verdict.read {
            _ if self.backend != Backend::Postgres => {
                no("servers are shared with PostgreSQL alone")
            }
            _ if self.pool.pool_mode == PoolMode::Session => {
                no("each client keeps a server, in session mode")
            }
            Some(Err(why)) => no(why),
            _ if self.pool.share_servers == ShareServers::Off => {
                let rule = pool_rule(&self.verdict, "share_servers = \"reads\"");
                ("no", "share_servers is off".to_owned(), Some(rule))
            }
            Some(Ok(())) => {
                let reason = "it is a read: while the pool is busy, it runs behind those of others";
                ("yes", reason.to_owned(), None)
            }
            None => {
                let reason = "no server was asked yet whether it is a read: one is asked about \
                              statements that are used often";
                ("unknown", reason.to_owned(), None)
            }
        }
    }

    fn cached(&self) -> Said {
        let TextVerdict { database, user, could_be_kept, reason, rule, canonical, .. } =
            &self.verdict;
        let line = |canonical: &String| {
            format!(
                "[[cache.rules]]\ndatabase = {}\nuser = {}\nstatement = {}\nttl = \"1s\"\n",
                quoted(database),
                quoted(user),
                quoted(canonical)
            )
        };
        let line = || canonical.as_ref().map(line);
        match (could_be_kept, rule) {
            _ if self.backend != Backend::Postgres => no("the cache is for PostgreSQL alone"),
            _ if self.pool.pool_mode == PoolMode::Session => no("nothing is kept in session mode"),
            (Kept::No, _) => no(reason.clone()),
            (Kept::Yes, Some(name)) => ("yes", format!("by the rule {name}"), None),
            (Kept::Yes, None) => ("no", "no rule applies".to_owned(), line()),
            (Kept::Unknown, Some(name)) => ("unknown", format!("{reason}; rule {name}"), None),
            (Kept::Unknown, None) => ("no", format!("no rule applies, and {reason}"), line()),
        }
    }
}

/// An answer, its reason, and what would change it.
type Said = (&'static str, String, Option<String>);

fn no(reason: impl Into<String>) -> Said {
    ("no", reason.into(), None)
}

fn is_prepared(statement: &StatementView) -> Said {
    let StatementView { servers, .. } = statement;
    let reason = match servers {
        0 => "clients have prepared it, and a server gets it with its next use".to_owned(),
        1 => "1 server has it, for all clients that use it".to_owned(),
        _ => format!("{servers} servers have it, for all clients that use it"),
    };
    ("yes", reason, None)
}

/// Returns the line that sets an option, and where it belongs. The table is likely to be there, so
/// its heading is not among what is copied.
fn pool_rule(verdict: &TextVerdict, line: &str) -> String {
    let name = quoted(&verdict.database);
    format!("# Under [databases.{name}], or under [pool] for all databases:\n{line}\n")
}
