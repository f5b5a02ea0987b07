//! The questions to a server, beside its stream, and the answers.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use refrain_pg_wire::back::columns;
use refrain_pg_wire::replication::Lsn;

use crate::changes::snapshot::XidSnapshot;
use crate::ground::ids::{DatabaseIdentity, ServerOrigin};
use crate::results::changes::Uncovered;
use crate::settings::value::write_literal;

/// The question about tables and what is published, in which parts are missing.
const LOOK: &str = include_str!("look.sql");
/// The question about what is above relations.
const ABOVE: &str = include_str!("above.sql");
/// The question about two numbers that differ from those of before if the answer to one of the
/// other questions may differ.
const DIGEST: &str = include_str!("digest.sql");
/// A part of it: publications of schemas.
const SCHEMAS: &str = "UNION ALL SELECT b.oid::int8 | 2::int8 << 32, b.xmin::text::int8 \
                       FROM pg_catalog.pg_publication_namespace b";
/// The first version of PostgreSQL with such publications, and with filters of rows.
const WITH_SCHEMAS: u32 = 150_000;
/// The first version of PostgreSQL whose streams have transactions before they are over.
const VERSION_MIN: u32 = 140_000;
/// The first minor release of each version whose streams have all changes of a table that is
/// published beside an open transaction. Earlier ones decode the transaction by the publications
/// of before (PostgreSQL's commit 4909b38af0, May 2025).
const MINORS_MIN: [u32; 4] = [140_018, 150_013, 160_009, 170_005];

/// The kind of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamQuestion {
    /// Which server and database it is, and whether it has what a stream needs.
    Check,
    /// Whether the slot of the stream is on this server.
    Slot,
    /// Which transactions are over.
    Snapshot,
    /// Up to which position WAL is flushed.
    Flushed,
    /// Which tables are published, and what is above and below them.
    Look,
    /// Which relations are above those that the stream has named.
    Above,
    /// Whether the answer to a look at the tables would be another one.
    Digest,
}

/// The body of a DataRow.
pub type RowBody = Vec<u8>;

/// The text that asks for a snapshot.
pub(super) const SNAPSHOT: &str = "SELECT pg_catalog.pg_current_snapshot()";
/// The text that asks up to which position WAL is flushed.
pub(super) const FLUSHED: &str = "SELECT pg_catalog.pg_current_wal_flush_lsn()";

/// A server that has all that a stream needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Checked {
    pub(super) origin: ServerOrigin,
    pub(super) identity: DatabaseIdentity,
    pub(super) version: u32,
}

/// Returns the text that checks a server.
pub(super) fn check(publications: &[String]) -> String {
    format!(
        "SELECT {}, d.oid, pg_catalog.current_setting('server_version_num'), \
         pg_catalog.current_setting('wal_level'), \
         (SELECT n FROM pg_catalog.unnest(ARRAY[{}]) n WHERE n NOT IN \
         (SELECT p.pubname FROM pg_catalog.pg_publication p) LIMIT 1) \
         FROM pg_catalog.pg_database d WHERE d.datname = pg_catalog.current_database()",
        ServerOrigin::COLUMNS,
        literals(publications)
    )
}

/// Reads the answer to that.
///
/// # Errors
/// If the server lacks something that a stream needs.
pub(super) fn checked(rows: &[RowBody]) -> Result<Checked, String> {
    let row = rows.first().map(|row| texts(row)).unwrap_or_default();
    let Some(origin) = ServerOrigin::read(row.iter().map(|it| it.map(str::as_bytes))) else {
        return Err("the server is in recovery, or does not say what it is".to_owned());
    };
    let rest = row.get(3..).unwrap_or_default();
    let [Some(database), Some(version), Some(level), missing] = rest else {
        return Err("the server does not say which database it is".to_owned());
    };
    let (Ok(database), Ok(version)) = (database.parse(), version.parse::<u32>()) else {
        return Err("the server does not say which database it is".to_owned());
    };
    check_version(version)?;
    if *level != "logical" {
        return Err(format!("wal_level is {level}: set it to logical, and restart the server"));
    }
    if let Some(missing) = missing {
        return Err(format!("publication \"{missing}\" does not exist"));
    }
    let identity = DatabaseIdentity { cluster: origin.cluster, database };
    Ok(Checked { origin, identity, version })
}

/// Checks the version of a server.
fn check_version(version: u32) -> Result<(), String> {
    if version < VERSION_MIN {
        return Err("PostgreSQL 14 or later is needed".to_owned());
    }
    let parts = |version: u32| (version / 10_000, version % 10_000);
    let (major, minor) = parts(version);
    let needed = MINORS_MIN.into_iter().map(parts).find(|(of, _)| *of == major);
    match needed.filter(|(_, least)| minor < *least) {
        Some((_, least)) => Err(format!(
            "PostgreSQL {major}.{minor} loses changes of a table that is published beside an open \
             transaction: install {major}.{least} or later"
        )),
        None => Ok(()),
    }
}

/// Returns the text that asks for the server process that has a slot.
pub(super) fn slot(name: &str) -> String {
    format!(
        "SELECT active_pid FROM pg_catalog.pg_replication_slots WHERE slot_name = {}",
        literal(name)
    )
}

/// Returns the command of a walsender that makes a slot.
pub(super) fn create_slot(name: &str) -> String {
    format!("CREATE_REPLICATION_SLOT \"{name}\" TEMPORARY LOGICAL pgoutput NOEXPORT_SNAPSHOT")
}

/// Returns the command of a walsender that begins the stream.
pub(super) fn start(name: &str, publications: &[String]) -> String {
    let quoted = publications.iter().map(|it| format!("\"{}\"", it.replace('"', "\"\"")));
    let list = quoted.collect::<Vec<_>>().join(",").replace('\'', "''");
    format!(
        "START_REPLICATION SLOT \"{name}\" LOGICAL 0/0 \
         (proto_version '2', streaming 'on', messages 'true', publication_names '{list}')"
    )
}

/// Returns the text that asks about tables, of a server of this version.
pub(super) fn look(tables: &[u32], publications: &[String], version: u32) -> String {
    let whole = if version < WITH_SCHEMAS { "true" } else { "t.qual IS NULL" };
    let look = filled(LOOK, tables).replace("$publications", &literals(publications));
    let (look, above) = (look.replace("$whole", whole), above(tables));
    format!("({look}) UNION ALL ({above}) UNION ALL ({})", digest(tables, version))
}

/// Returns the text that asks what is above relations.
pub(super) fn above(relations: &[u32]) -> String {
    filled(ABOVE, relations)
}

/// Returns the text that asks a server of this version whether something has changed.
pub(super) fn digest(tables: &[u32], version: u32) -> String {
    let schemas = if version < WITH_SCHEMAS { "" } else { SCHEMAS };
    filled(DIGEST, tables).replace("$schemas", schemas)
}

/// Returns a question without its comments, with these relations.
fn filled(question: &str, relations: &[u32]) -> String {
    let mut list = String::new();
    for oid in relations {
        let comma = if list.is_empty() { "" } else { "," };
        let _ = write!(list, "{comma}{oid}");
    }
    let lines = question.lines().filter(|line| !line.starts_with("--"));
    lines.collect::<Vec<_>>().join("\n").replace("$tables", &list)
}

/// The answer of the catalog about tables.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Looked {
    /// Each table with its children, and why it is not published, if it is not.
    pub(super) tables: BTreeMap<u32, (BTreeSet<u32>, Result<(), Uncovered>)>,
    /// The relations above each, with their names.
    pub(super) above: BTreeMap<u32, Vec<(u32, String)>>,
    /// Differs if a publication was changed.
    pub(super) as_of: String,
    /// Differs if something else was changed that counts.
    pub(super) rest: String,
}

impl Looked {
    /// Reads the answer about tables, or to the question whether something has changed; `None` if
    /// it is none.
    pub(super) fn read(rows: &[RowBody]) -> Option<Self> {
        Self::rows(rows).filter(|looked| !looked.as_of.is_empty() && !looked.rest.is_empty())
    }

    /// Reads the answer about what is above relations.
    pub(super) fn rows(rows: &[RowBody]) -> Option<Self> {
        let mut looked = Self::default();
        for row in rows {
            match texts(row)[..] {
                [Some("member"), Some(oid), Some(member), Some(why)] => {
                    looked.member(oid.parse().ok()?, member.parse().ok()?, why);
                }
                [Some("above"), Some(oid), Some(parent), Some(name)] => {
                    let above = looked.above.entry(oid.parse().ok()?).or_default();
                    above.push((parent.parse().ok()?, name.to_owned()));
                }
                [Some("as-of"), _, _, as_of] => {
                    as_of.unwrap_or("none").clone_into(&mut looked.as_of);
                }
                [Some("rest"), _, _, rest] => {
                    rest.unwrap_or("none").clone_into(&mut looked.rest);
                }
                _ => return None,
            }
        }
        Some(looked)
    }

    fn member(&mut self, oid: u32, member: u32, why: &str) {
        let (members, found) = self.tables.entry(oid).or_insert((BTreeSet::new(), Ok(())));
        members.insert(member);
        match why {
            "" => {}
            why if member == oid => *found = Err(Uncovered::named(why)),
            _ => *found = found.and(Err(Uncovered::Child)),
        }
    }
}

/// Reads a snapshot.
pub(super) fn snapshot(rows: &[RowBody]) -> Option<XidSnapshot> {
    XidSnapshot::read(one(rows)?)
}

/// Reads a position: two hexadecimal numbers.
pub(super) fn flushed(rows: &[RowBody]) -> Option<Lsn> {
    let (high, low) = one(rows)?.split_once('/')?;
    let number = |text| u32::from_str_radix(text, 16).ok();
    Some(u64::from(number(high)?) << 32 | u64::from(number(low)?))
}

/// Reads the number of a server process.
pub(super) fn pid(rows: &[RowBody]) -> Option<u32> {
    one(rows)?.parse().ok()
}

fn one(rows: &[RowBody]) -> Option<&str> {
    let [row] = rows else { return None };
    columns(row).next().flatten().and_then(|it| std::str::from_utf8(it).ok())
}

/// Returns the columns of a row. A value that is not UTF-8 is empty: names are compared with those
/// of the stream, which are in the same encoding.
fn texts(row: &[u8]) -> Vec<Option<&str>> {
    columns(row).map(|it| it.map(|it| std::str::from_utf8(it).unwrap_or_default())).collect()
}

fn literal(text: &str) -> String {
    let mut out = Vec::new();
    write_literal(&mut out, text.as_bytes());
    String::from_utf8(out).unwrap_or_default()
}

fn literals(texts: &[String]) -> String {
    texts.iter().map(|it| literal(it)).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::changes) fn row(values: &[&str]) -> RowBody {
        let mut row = (values.len() as u16).to_be_bytes().to_vec();
        for value in values {
            row.extend_from_slice(&(value.len() as u32).to_be_bytes());
            row.extend_from_slice(value.as_bytes());
        }
        row
    }

    #[test]
    fn a_server_that_lacks_something_says_what() {
        let good = ["7", "1000", "f", "5", "150018", "logical"];
        let of = |place: usize, value: &'static str| {
            let mut values = good;
            values[place] = value;
            let mut row = row(&values);
            row[1] += 1;
            row.extend_from_slice(&(-1_i32).to_be_bytes());
            checked(&[row])
        };
        let identity = DatabaseIdentity { cluster: 7, database: 5 };
        let origin = ServerOrigin { cluster: 7, started: 1000 };
        assert_eq!(of(0, "7"), Ok(Checked { origin, identity, version: 150_018 }));
        for (place, value, why) in [
            (2, "t", "in recovery"),
            (3, "x", "which database"),
            (4, "130000", "PostgreSQL 14"),
            (5, "replica", "wal_level is replica"),
        ] {
            assert!(of(place, value).unwrap_err().contains(why), "{why}");
        }
        let missing = checked(&[row(&[&good[..], &["sales"]].concat())]).unwrap_err();
        assert_eq!(missing, "publication \"sales\" does not exist");
        assert!(checked(&[]).is_err());
    }

    #[test]
    fn minor_releases_that_lose_changes_are_refused() {
        let whole = [140_018, 150_013, 150_018, 160_009, 170_005, 180_000, 190_000];
        for version in whole {
            assert_eq!(check_version(version), Ok(()));
        }
        for (version, install) in [
            (140_000, "14.18"),
            (140_017, "14.18"),
            (150_012, "15.13"),
            (160_008, "16.9"),
            (170_004, "17.5"),
        ] {
            let why = check_version(version).unwrap_err();
            assert!(why.ends_with(&format!("install {install} or later")), "{why}");
        }
        assert!(check_version(130_099).unwrap_err().contains("PostgreSQL 14"));
    }

    #[test]
    fn commands_quote_names() {
        let publications = ["a\"b".to_owned(), "it's".to_owned()];
        let text = start("refrain_1", &publications);
        assert!(text.ends_with("publication_names '\"a\"\"b\",\"it''s\"')"), "{text}");
        assert!(check(&publications).contains("ARRAY['a\"b','it''s']"));
        let text = look(&[7, 9], &publications, 150_000);
        assert!(text.contains("'{7,9}'") && text.contains("IN ('a\"b','it''s')"), "{text}");
        assert!(text.contains("pg_publication_namespace") && text.contains("qual"), "{text}");
        let old = look(&[], &publications, 149_999);
        assert!(!old.contains("pg_publication_namespace") && !old.contains("qual"), "{old}");
        for text in [text, old, above(&[7]), digest(&[7], 150_000)] {
            assert!(!text.contains('$') && !text.contains("--"), "{text}");
        }
    }

    #[test]
    fn positions_snapshots_and_processes() {
        let of = |text| [row(&[text])];
        assert_eq!(flushed(&of("1/A0")), Some(0x1_0000_00a0));
        assert_eq!((flushed(&of("1")), flushed(&of("x/1")), flushed(&[])), (None, None, None));
        assert_eq!((pid(&of("77")), pid(&of(""))), (Some(77), None));
        assert!(snapshot(&of("1:1:")).is_some() && snapshot(&of("1")).is_none());
    }

    #[test]
    fn a_table_is_published_if_all_below_it_are() {
        let rows = [
            row(&["member", "1", "1", ""]),
            row(&["member", "1", "2", ""]),
            row(&["member", "3", "3", ""]),
            row(&["member", "3", "4", "filtered"]),
            row(&["member", "5", "6", "unlogged"]),
            row(&["member", "5", "5", "kinds"]),
            row(&["above", "2", "1", "public.t"]),
            row(&["rest", "", "", "7"]),
            row(&["as-of", "", "", "p1.2"]),
        ];
        let looked = Looked::read(&rows).unwrap();
        let found = |oid| looked.tables[&oid].1;
        assert_eq!((found(1), looked.tables[&1].0.len()), (Ok(()), 2));
        assert_eq!((found(3), found(5)), (Err(Uncovered::Child), Err(Uncovered::Kinds)));
        assert_eq!(looked.above[&2], [(1, "public.t".to_owned())]);
        for length in [6, 7, 8] {
            assert!(Looked::read(&rows[..length]).is_none());
        }
        assert!(Looked::read(&[row(&["x"])]).is_none() && Looked::rows(&rows[..7]).is_some());
    }
}
