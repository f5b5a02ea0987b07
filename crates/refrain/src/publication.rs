//! `refrain publication`: asks a running Refrain which tables its rules with `consistency =
//! "commits"` depend on, and prints the SQL that publishes them.
//!
//! PostgreSQL refuses UPDATE and DELETE of a published table that has no replica identity. So the
//! SQL leaves such a table out, and a comment says what to do. A partitioned table is published as
//! a whole only if a partition that is made later has an identity, too: that of a primary key.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use crate::running::{AnsweredRow, CONSOLE, Connection, Console};

/// The question to the catalog, in which the tables and the publications are missing.
const CATALOG: &str = include_str!("publication.sql");

/// The SQL of a trigger that tells of changes of the schema.
const DDL: &str = include_str!("publication_ddl.sql");

/// Writes the SQL of an event trigger to `out`, by which changes of the schema and of rights are in
/// the stream.
///
/// # Errors
/// If `out` cannot be written to.
pub(crate) fn ddl(out: &mut dyn Write) -> Result<(), String> {
    out.write_all(DDL.as_bytes()).map_err(|error| error.to_string())
}

/// Writes the SQL to `out`.
///
/// # Errors
/// If Refrain cannot be reached, refuses a login or a question, follows no changes of the database,
/// or `out` cannot be written to.
pub(crate) fn publication(
    console: &Console,
    database: &str,
    out: &mut dyn Write,
) -> Result<(), String> {
    print(console, database, out).map_err(|error| format!("{}: {error}", console.server.host))
}

fn print(console: &Console, database: &str, out: &mut dyn Write) -> io::Result<()> {
    let mut connection = Connection::open(console, CONSOLE)?;
    let streams = connection.ask("SHOW CACHE CHANGES")?;
    let publications = publications(&streams, database).map_err(io::Error::other)?;
    let tables = tables(&connection.ask("SHOW CACHE COVERAGE")?, database);
    drop(connection);
    let catalog = CATALOG.lines().filter(|line| !line.trim_start().starts_with("--"));
    let text = catalog.collect::<Vec<_>>().join("\n");
    let text = text.replace("$tables", &tables.join(",")).replace("$publications", &publications);
    let refused = |error| io::Error::other(format!("database {database}: {error}"));
    let rows = Connection::open(console, database).and_then(|mut it| it.ask(&text));
    out.write_all(PublicationPlan::read(&rows.map_err(refused)?).write(database).as_bytes())
}

/// Returns the publications of a database's stream, as a literal of an array.
fn publications(streams: &[AnsweredRow], database: &str) -> Result<String, String> {
    let named = |row: &&AnsweredRow| row.first() == Some(&Some(database.to_owned()));
    if let Some(Some(array)) = streams.iter().find(named).and_then(|row| row.last()) {
        return Ok(format!("'{}'", array.replace('\'', "''")));
    }
    let others: Vec<_> = streams.iter().filter_map(|row| row.first()?.as_deref()).collect();
    let others = match others.is_empty() {
        true => "of none".to_owned(),
        false => format!("of {}", others.join(", ")),
    };
    Err(format!(
        "Refrain follows no changes of database {database}, but {others}: set changes = \
         \"replication\" for it and write a rule with consistency = \"commits\""
    ))
}

/// Returns the OIDs of the tables of a database on which rules depend.
fn tables(coverage: &[AnsweredRow], database: &str) -> Vec<String> {
    let of_database = coverage.iter().filter(|row| row.first() == Some(&Some(database.to_owned())));
    let oids = of_database.filter_map(|row| row.get(1)?.clone());
    // They become a part of a statement.
    oids.filter(|oid| oid.bytes().all(|byte| byte.is_ascii_digit())).collect()
}

/// The kind of a relation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum RelationKind {
    #[default]
    Table,
    /// A table with children.
    Parent,
    Partitioned,
}

/// A relation on which rules depend, or that is below one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct PublishedRelation {
    /// Its name, quoted, with its schema.
    name: String,
    /// Why it cannot be published, if it cannot.
    why: String,
    kind: RelationKind,
    is_published: bool,
    /// Whether an UPDATE is not refused once it is published. Of a partitioned table: whether that
    /// is true of the partitions that are made later.
    has_identity: bool,
    /// The replica identity that it could have, if there is one.
    remedy: Option<String>,
    /// Whether it has columns that are generated.
    has_generated: bool,
}

/// The tables on which rules depend, and the publications that are there.
#[derive(Debug, Default)]
struct PublicationPlan {
    relations: BTreeMap<u32, PublishedRelation>,
    /// Each table with itself, and with what is below it.
    members: BTreeMap<u32, BTreeSet<u32>>,
    /// The publications: their names, quoted, and `new`, nothing, or why no table is added.
    publications: Vec<(String, String)>,
    wal_level: String,
    /// Relations to add.
    adds: BTreeSet<String>,
    /// Remarks about the others.
    remarks: BTreeSet<String>,
}

impl PublicationPlan {
    /// Reads the answer of the catalog.
    fn read(rows: &[AnsweredRow]) -> Self {
        let mut plan = Self::default();
        for row in rows {
            let text = |at: usize| row.get(at).cloned().flatten().unwrap_or_default();
            if text(0) == "publication" {
                plan.publications.push((text(3), text(4)));
                plan.wal_level = text(5);
                continue;
            }
            let (Ok(table), Ok(member)) = (text(1).parse(), text(2).parse()) else { continue };
            plan.members.entry(table).or_default().insert(member);
            let relation = PublishedRelation {
                name: text(3),
                why: text(4),
                kind: match &*text(5) {
                    "partitioned" => RelationKind::Partitioned,
                    "parent" => RelationKind::Parent,
                    _ => RelationKind::Table,
                },
                is_published: text(6) == "published",
                has_identity: text(7) == "identity",
                remedy: row.get(8).cloned().flatten(),
                has_generated: text(9) == "generated",
            };
            plan.relations.insert(member, relation);
        }
        plan.settle();
        plan
    }

    /// Finds which relations are added, and what is to be said of the others.
    fn settle(&mut self) {
        let known = |oid: &u32| self.relations.get(oid);
        let (mut adds, mut remarks, mut below) =
            (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        for (table, members) in &self.members {
            let Some(top) = known(table) else { continue };
            let others: Vec<_> = members.iter().filter_map(known).collect();
            if let Some(lost) = others.iter().find(|it| !it.why.is_empty()) {
                remarks.insert(Self::never(top, lost));
                continue;
            }
            let is_partitioned = |it: &PublishedRelation| it.kind == RelationKind::Partitioned;
            let rows: Vec<_> = others.into_iter().filter(|it| !is_partitioned(it)).collect();
            let (fine, bad): (Vec<_>, Vec<_>) = rows.into_iter().partition(|it| it.has_identity);
            remarks.extend(bad.iter().filter(|it| !it.is_published).map(|it| remedy(it)));
            remarks.extend(bad.iter().filter(|it| it.is_published).map(|it| refused(it)));
            let missing: Vec<_> = fine.into_iter().filter(|it| !it.is_published).collect();
            if missing.is_empty() {
                continue;
            }
            if is_partitioned(top) && top.has_identity && bad.is_empty() {
                below.extend(missing.iter().map(|it| it.name.clone()));
                adds.insert(top.name.clone());
                continue;
            }
            if is_partitioned(top) {
                remarks.insert(format!(
                    "The partitions of {} are published one by one: a later one could lack a \
                     replica\nidentity. Run `refrain publication` again when there are more.",
                    top.name
                ));
            }
            adds.extend(missing.into_iter().map(|it| {
                let only = if it.kind == RelationKind::Parent { "ONLY " } else { "" };
                format!("{only}{}", it.name)
            }));
        }
        adds.retain(|name| !below.contains(name));
        (self.adds, self.remarks) = (adds, remarks);
    }

    /// Says that a table is never covered.
    fn never(top: &PublishedRelation, lost: &PublishedRelation) -> String {
        let which = match top.name == lost.name {
            true => String::new(),
            false => format!(" its partition or child {}:", lost.name),
        };
        format!("{} cannot be published in whole:{which} {}.", top.name, lost.why)
    }

    fn write(&self, database: &str) -> String {
        let mut out = comment(&format!(
            "The tables of database {database} on which replies by consistency = \"commits\" \
             depend.\nRun this as the owner of the tables. Do not write FOR ALL TABLES: PostgreSQL \
             refuses UPDATE\nand DELETE of a published table that has no replica identity."
        ));
        if self.wal_level != "logical" {
            out += &comment(&format!(
                "wal_level is {}: set it to logical, and restart the server.",
                self.wal_level
            ));
        }
        if self.members.is_empty() {
            out += &comment("No reply has been asked for yet that depends on a table.");
        } else if self.adds.is_empty() {
            out += &comment("No table is to be added.");
        }
        out += &self.statement();
        for remark in &self.remarks {
            out += "\n";
            out += &comment(remark);
        }
        out
    }

    /// Returns the statement that publishes what is to be added.
    fn statement(&self) -> String {
        if self.adds.is_empty() {
            return String::new();
        }
        let list = self.adds.iter().map(|name| format!("\n    {name}"));
        let list = list.collect::<Vec<_>>().join(",");
        let takes = |(_, why): &&(String, String)| why.is_empty() || why == "new";
        match self.publications.iter().find(takes) {
            Some((name, why)) if why == "new" => {
                format!("CREATE PUBLICATION {name} FOR TABLE{list};\n")
            }
            Some((name, _)) => format!("ALTER PUBLICATION {name} ADD TABLE{list};\n"),
            None => {
                let all = self.publications.iter();
                let all: Vec<_> = all.map(|(name, why)| format!("{name}: {why}")).collect();
                comment(&format!(
                    "No table can be added to the publications of the database ({}).\nName another \
                     one in its row publications, reload, and run `refrain publication` again.",
                    all.join("; ")
                ))
            }
        }
    }
}

/// Says what to do for a table that has no replica identity.
fn remedy(it: &PublishedRelation) -> String {
    let head = format!("Left out: {} has no replica identity.", it.name);
    match &it.remedy {
        Some(identity) => format!(
            "{head} Give it one, and run `refrain publication` again:\n    ALTER TABLE ONLY {} \
             REPLICA IDENTITY {identity};",
            it.name
        ),
        // With the whole row, generated columns would be a part of the identity.
        None if it.has_generated => {
            format!("{head} Give it a primary key\nof columns that are not generated.")
        }
        None => format!(
            "{head} Give it a primary key or,\nif the WAL may have each old row in whole:\n    \
             ALTER TABLE ONLY {} REPLICA IDENTITY FULL;",
            it.name
        ),
    }
}

/// Says that the application's updates of a table are refused already.
fn refused(it: &PublishedRelation) -> String {
    format!("{} is published and has no replica identity: updates of it may fail.", it.name)
}

/// Returns a text as a comment, whatever lines it has.
fn comment(text: &str) -> String {
    let line = |line: &str| format!("-- {line}").trim_end().to_owned() + "\n";
    text.split(['\n', '\r']).map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn relation(table: u32, member: u32, name: &str, rest: [&str; 5]) -> AnsweredRow {
        let [why, kind, published, identity, remedy] = rest;
        let (table, member) = (table.to_string(), member.to_string());
        let row = ["relation", &table, &member, name, why, kind, published, identity];
        let remedy = (!remedy.is_empty()).then(|| remedy.to_owned());
        row.iter().map(|it| Some((*it).to_owned())).chain([remedy, None]).collect()
    }

    fn publication(name: &str, why: &str) -> AnsweredRow {
        let row = [Some("publication"), None, None, Some(name), Some(why), Some("logical")];
        row.into_iter().map(|it| it.map(str::to_owned)).collect()
    }

    /// Returns the statement that is printed, and the whole text.
    fn written(rows: &[AnsweredRow]) -> (String, String) {
        let whole = PublicationPlan::read(rows).write("shop");
        let lines = whole.lines().filter(|line| !line.starts_with("--") && !line.is_empty());
        (lines.map(str::trim).collect::<Vec<_>>().join(" "), whole)
    }

    #[test]
    fn tables_with_an_identity_are_published_and_others_have_a_remedy() {
        let fine = ["", "", "", "identity", "DEFAULT"];
        let rows = [
            publication("refrain", "new"),
            relation(1, 1, "public.a", fine),
            relation(2, 2, "public.b", ["", "parent", "", "identity", ""]),
            relation(2, 3, "public.\"C\"", ["", "", "", "", ""]),
            relation(4, 4, "public.d", ["", "", "", "", "USING INDEX d_key"]),
            relation(5, 5, "public.e", ["", "", "published", "identity", ""]),
            relation(6, 6, "public.f", ["it is not logged", "", "", "identity", ""]),
        ];
        let (statement, whole) = written(&rows);
        assert_eq!(statement, "CREATE PUBLICATION refrain FOR TABLE ONLY public.b, public.a;");
        for part in [
            "public.\"C\" has no replica identity",
            "ALTER TABLE ONLY public.\"C\" REPLICA IDENTITY FULL;",
            "ALTER TABLE ONLY public.d REPLICA IDENTITY USING INDEX d_key;",
            "public.f cannot be published in whole: it is not logged.",
            "Do not write FOR ALL TABLES",
        ] {
            assert!(whole.contains(part), "{part}: {whole}");
        }
        assert!(!whole.contains("public.e"), "{whole}");
    }

    #[test]
    fn a_partitioned_table_is_published_as_a_whole_if_later_partitions_have_an_identity() {
        let root = |identity| relation(1, 1, "s.root", ["", "partitioned", "", identity, ""]);
        let leaf = |oid, name, identity| relation(1, oid, name, ["", "", "", identity, ""]);
        let existing = publication("\"P\"", "");
        let of = |identity, second| {
            let own = relation(2, 2, "s.one", ["", "", "", "identity", ""]);
            let leaves = [leaf(2, "s.one", "identity"), leaf(3, "s.two", second)];
            written(&[&[existing.clone(), root(identity), own][..], &leaves].concat()).0
        };
        assert_eq!(of("identity", "identity"), "ALTER PUBLICATION \"P\" ADD TABLE s.root;");
        assert_eq!(of("", "identity"), "ALTER PUBLICATION \"P\" ADD TABLE s.one, s.two;");
        assert_eq!(of("identity", ""), "ALTER PUBLICATION \"P\" ADD TABLE s.one;");
    }

    #[test]
    fn a_name_does_not_end_a_comment() {
        let name = "public.\"a\nDROP TABLE b; --\r\"";
        let rows = [publication("p", "new"), relation(1, 1, name, ["", "", "", "", ""])];
        let (statement, whole) = written(&rows);
        assert_eq!(statement, "", "{whole}");
    }

    #[test]
    fn publications_that_take_no_table_are_named() {
        let fine = relation(1, 1, "public.a", ["", "", "", "identity", ""]);
        let (statement, whole) = written(&[publication("p", "it is for all tables"), fine]);
        assert!(statement.is_empty() && whole.contains("(p: it is for all tables)"), "{whole}");
        let streams = [vec![Some("shop".to_owned()), Some("{\"it's\"}".to_owned())]];
        assert_eq!(publications(&streams, "shop"), Ok("'{\"it''s\"}'".to_owned()));
        assert!(publications(&streams, "other").unwrap_err().contains("but of shop"));
    }
}
