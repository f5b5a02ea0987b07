//! Listings of users and of the rules by which they log in.

use refrain_pg::snapshot::HbaRow;

use crate::admin::table::{Listing, bigint, nullable, text};

/// A user who may be known, and where the user's secret comes from.
pub(in crate::admin) struct AuthUser {
    user: String,
    source: &'static str,
    /// The database that was asked.
    database: String,
    secret: &'static str,
    /// Milliseconds since the database answered.
    age_ms: Option<u64>,
    /// Whether the next login asks the database.
    doubted: bool,
}

/// `SHOW AUTH`: users of the configuration, and users that databases were asked about.
pub(in crate::admin) const AUTH: Listing<AuthUser> = Listing {
    columns: &[
        text("user", |row| row.user.clone()),
        text("source", |row| row.source.to_owned()),
        text("database", |row| row.database.clone()),
        text("secret", |row| row.secret.to_owned()),
        text("age_ms", |row| row.age_ms.map(|age| age.to_string()).unwrap_or_default()),
        text("doubted", |row| if row.doubted { "yes" } else { "no" }.to_owned()),
    ],
    rows: |view| {
        let configured = view.options.users.iter().map(|user| AuthUser {
            user: user.name.clone(),
            source: "configuration",
            database: String::new(),
            secret: user.secret.kind(),
            age_ms: None,
            doubted: false,
        });
        let known = view.pg.cores.shared.protocol.looked_up().into_iter().map(|known| AuthUser {
            user: known.user,
            source: "auth_query",
            database: known.database,
            secret: known.secret,
            age_ms: Some(view.now.since(known.at) / 1000),
            doubted: known.doubted,
        });
        configured.chain(known).collect()
    },
};

/// `SHOW HBA`: the rules of authentication in order, and how often each has counted. The last row
/// is for clients that no rule was for.
pub(in crate::admin) const HBA: Listing<HbaRow> = Listing {
    columns: &[
        bigint("rule_number", |row| row.number),
        text("file_name", |row| row.file.clone()),
        bigint("line_number", |row| row.line),
        text("line", |row| row.text.clone()),
        bigint("matched", |row| row.matched),
        bigint("refused", |row| row.refused),
        nullable("last_user", |row| row.user.clone()),
        nullable("last_database", |row| row.database.clone()),
        nullable("last_address", |row| row.host.clone()),
    ],
    rows: |view| refrain_pg::hba_rules(&view.pg.cores.shared),
};
