//! Queries about settings: what a session has, and what it began with.
//!
//! Operators are named by schema, since `search_path` is the client's.

use crate::settings::session::{Settings, SettingsMut};
use crate::settings::value;

/// Settings of a startup packet that a text has reset, or may have.
#[derive(Debug)]
pub(crate) struct Restores {
    /// The settings.
    pub(crate) settings: SettingsMut,
    /// Whether the text has reset them until the transaction ends.
    pub(crate) local: bool,
    /// Whether no text says so: code out of Refrain's sight may have reset them.
    pub(crate) unseen: bool,
    /// Whether there are some that have been reset only if the text succeeds.
    pub(crate) named: bool,
}

impl Restores {
    /// Returns those of two texts. Where these differ in how long they last, those of the session
    /// remain.
    pub(crate) fn both(one: Option<Box<Self>>, other: Option<Box<Self>>) -> Option<Box<Self>> {
        match (one, other) {
            (Some(mut one), Some(other)) if one.local == other.local => {
                one.settings.fill(&other.settings);
                one.unseen |= other.unseen;
                one.named |= other.named;
                Some(one)
            }
            (Some(one), Some(other)) => Some(if one.local { other } else { one }),
            (one, other) => one.or(other),
        }
    }
}

/// Writes the query that gives a client's settings the values of its startup packet again, where
/// they were reset. RESET goes back to the values with which the server's session began, and these
/// were not the client's. `plain` says whether the session is in the encoding of the database.
pub(crate) fn restore(restores: &Restores, plain: bool) -> Vec<u8> {
    let mut text = b"SELECT pg_catalog.set_config(x.name,x.value,".to_vec();
    text.extend_from_slice(if restores.local { b"true)" } else { b"false)" });
    text.extend_from_slice(if plain { b" FROM (" } else { b" IS NULL FROM (" });
    // SQLite, which reads this as it is, cannot name the columns of VALUES.
    for (index, (name, value)) in restores.settings.iter().enumerate() {
        text.extend_from_slice(if index > 0 { b" UNION ALL SELECT " } else { b"SELECT " });
        value::write(&mut text, name, plain);
        text.extend_from_slice(b" AS name,");
        value::write(&mut text, value, plain);
        text.extend_from_slice(b" AS value");
    }
    text.extend_from_slice(
        b") x LEFT JOIN pg_catalog.pg_settings s \
        ON pg_catalog.lower(s.name) OPERATOR(pg_catalog.=) x.name \
        WHERE CASE ",
    );
    // `pg_settings` does not list the role. A user that the session has for now may not have it.
    if restores.settings.get(b"role").is_some() {
        text.extend_from_slice(
            b"WHEN x.name OPERATOR(pg_catalog.=) 'role' \
            THEN pg_catalog.current_setting(x.name,true) OPERATOR(pg_catalog.=) 'none' \
            AND pg_catalog.pg_has_role(SESSION_USER,x.value::pg_catalog.name,'MEMBER') ",
        );
    }
    // Nor does it list the settings of extensions that are not loaded; RESET makes these empty.
    text.extend_from_slice(
        b"WHEN s.name IS NULL \
        THEN COALESCE(pg_catalog.current_setting(x.name,true),'') OPERATOR(pg_catalog.=) '' \
        ELSE s.source OPERATOR(pg_catalog.<>) 'session' END",
    );
    text
}

/// Stands behind the name of a setting that has its default.
pub(crate) const UNSET: &[u8] = b"=";

/// Writes the query that reads all settings that were set in a session, and those of `reported` in
/// any case, with [`UNSET`] behind the name if they were not set. `names` are settings that
/// `pg_settings` does not list. Operators are named by schema: `search_path` is the client's.
pub(crate) fn read_settings<'a>(
    reported: &Settings,
    names: impl Iterator<Item = &'a [u8]>,
) -> Vec<u8> {
    let (read, ends) = value::READ;
    let mut text = b"SELECT CASE WHEN source OPERATOR(pg_catalog.=) 'session' THEN name \
        ELSE pg_catalog.concat(name,'=') END,"
        .to_vec();
    text.extend_from_slice(read);
    text.extend_from_slice(b"pg_catalog.current_setting(name)");
    text.extend_from_slice(ends);
    text.extend_from_slice(
        b" FROM pg_catalog.pg_settings \
        WHERE source OPERATOR(pg_catalog.=) 'session' \
        AND NOT name OPERATOR(pg_catalog.=) ANY (ARRAY\
        ['transaction_deferrable','transaction_isolation','transaction_read_only']) \
        OR pg_catalog.lower(name) OPERATOR(pg_catalog.=) ANY (ARRAY[''",
    );
    for (name, _) in reported.iter() {
        text.push(b',');
        value::write_literal(&mut text, name);
    }
    text.extend_from_slice(b"])");
    for name in names {
        let shown = |text: &mut Vec<u8>| match name.is_ascii() {
            true => value::write_literal(text, name),
            false => {
                text.extend_from_slice(read);
                value::write(text, name, false);
                text.extend_from_slice(ends);
            }
        };
        text.extend_from_slice(b" UNION ALL SELECT ");
        shown(&mut text);
        text.push(b',');
        text.extend_from_slice(read);
        text.extend_from_slice(b"pg_catalog.current_setting(");
        value::write(&mut text, name, false);
        text.extend_from_slice(b",true)");
        text.extend_from_slice(ends);
    }
    text
}
