//! CREATE INDEX, CREATE VIEW and DROP.

use refrain_grammar::NodeEnum;
use refrain_grammar::protobuf::{
    DropBehavior, DropStmt, IndexStmt, Node, ObjectType, RangeVar, SelectStmt, SetOperation,
    SortByDir, SortByNulls, ViewStmt,
};

use crate::enums::{EnumType, word_oid};
use crate::failure::Failure;
use crate::sequences::Sequence;
use crate::standard;
use crate::types::Type;

use super::coerce::no_collation;
use super::definer::Definer;
use super::edits::{Edits, FollowUp, NOTHING};
use super::keys::is_indexed;
use super::operators::is_equated;
use super::schema_names::{beside, free_name, missing, of_index, of_sqlite, qualified};
use super::scope::{Catalog, Scope, Scoped};
use super::select::{ExpectedColumns, Output, settled, unique};
use super::sequence_calls::takes_numbers;
use super::sequences::{dropped_sequence, sequences_of};
use super::several::dependents_first;
use super::type_names::is_no_type;
use super::value::{Expr, name};
use super::{Translated, hints, strings};

/// Operator classes of texts.
const TEXT_PATTERNS: &[&str] = &["text_pattern_ops", "varchar_pattern_ops", "bpchar_pattern_ops"];
/// The beginning of a comment in a CREATE VIEW statement, which has the types of the columns.
const MARK: &str = "/*refrain ";
/// Mark of a column to which PostgreSQL would accept writes.
const WRITABLE: char = '!';

/// The facts about a view's column that the CREATE VIEW statement keeps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ViewColumn {
    pub(crate) is: Type,
    /// The maximum length of its values.
    pub(crate) limit: Option<u32>,
    /// True if PostgreSQL would accept writes to the table through it.
    pub(crate) writable: bool,
}

impl ViewColumn {
    /// Reads the columns of a view from its CREATE VIEW statement. `known` returns the enum with an
    /// OID.
    pub(crate) fn read(sql: &str, known: impl Fn(u32) -> Option<EnumType>) -> Vec<Self> {
        let listed = sql.split_once(MARK).and_then(|(_, rest)| rest.split_once("*/"));
        let column = |word: &str| {
            let plain = word.trim_end_matches(WRITABLE);
            let (is, limit) = plain.split_once(':').unwrap_or((plain, ""));
            let of_enum = word_oid(is).and_then(|(oid, array)| Some((known(oid)?, array)));
            let is = match of_enum {
                Some((of, false)) => Type::Enum(of),
                Some((of, true)) => Type::EnumArray(of),
                None => Type::named(is).unwrap_or(Type::Text),
            };
            let limit = limit.parse().ok();
            Self { is, limit, writable: plain != word }
        };
        listed.map(|(listed, _)| listed.split(' ').map(column).collect()).unwrap_or_default()
    }

    fn word(self) -> String {
        let limit = self.limit.map_or(String::new(), |limit| format!(":{limit}"));
        let writable = if self.writable { WRITABLE.to_string() } else { String::new() };
        let called = match self.is {
            Type::Enum(of) => of.word(false),
            Type::EnumArray(of) => of.word(true),
            is => is.catalog_name().to_owned(),
        };
        format!("{called}{limit}{writable}")
    }
}

impl Definer<'_, '_> {
    pub(super) fn create_index(&mut self, index: &IndexStmt) -> Translated<String> {
        let relation = index.relation.as_ref().ok_or_else(hints::unknown)?;
        let btree = index.access_method.is_empty() || index.access_method == "btree";
        let plain = index.index_including_params.is_empty()
            && index.options.is_empty()
            && index.table_space.is_empty()
            && !index.nulls_not_distinct
            && relation.inh;
        if !btree || !plain {
            return Err(hints::refuse("such an index").into());
        }
        let (table, attributes) = self.edits.basis.table(relation)?;
        let scope = Scope::of_table(&relation.relname, &attributes);
        let (parts, names, condition) = self.within(scope, |this| this.index_parts(index))?;
        if index.idxname.is_empty() && index.if_not_exists {
            return Err(Failure::new("42601", "IF NOT EXISTS needs an index name").into());
        }
        let called = match index.idxname.as_str() {
            "" => free_name(self.edits.basis.catalog, &relation.relname, &names.join("_"), "idx"),
            given => beside(self.edits.basis.catalog, &relation.relname, given),
        };
        let unique = if index.unique { "UNIQUE " } else { "" };
        let exists = if index.if_not_exists { "IF NOT EXISTS " } else { "" };
        let (schema, table) = of_index(&table);
        Ok(format!(
            "CREATE {unique}INDEX {exists}{schema}{} ON {table} ({}){condition}",
            name(&called),
            parts.join(", ")
        ))
    }

    fn index_parts(&mut self, index: &IndexStmt) -> Translated<(Vec<String>, Vec<String>, String)> {
        let (mut parts, mut names) = (Vec::new(), Vec::new());
        for node in &index.index_params {
            let Some(NodeEnum::IndexElem(element)) = &node.node else {
                return Err(hints::unknown().into());
            };
            let collation = strings(&element.collation);
            let of_texts = match &strings(&element.opclass)[..] {
                [] => false,
                // In the collation "C" they order texts as the default does.
                [only] if TEXT_PATTERNS.contains(&only.as_str()) => true,
                _ => return Err(hints::refuse("such an index").into()),
            };
            if !element.opclassopts.is_empty()
                || !collation.iter().all(|name| name == "C" || name == "POSIX")
            {
                return Err(hints::refuse("such an index").into());
            }
            let down = element.ordering() == SortByDir::SortbyDesc;
            let first = element.nulls_ordering() == SortByNulls::SortbyNullsFirst;
            let last = element.nulls_ordering() == SortByNulls::SortbyNullsLast;
            // No query can see the order of NULLs in an index.
            let _ = first || last;
            let sql = match &element.expr {
                Some(node) => {
                    let value = self.translator.expr(node)?;
                    names.push(value.name.clone().unwrap_or_else(|| "expr".to_owned()));
                    let value = self.translator.typing.settle(value)?;
                    is_indexed(value.is().unwrap_or(Type::Text), index.unique)?;
                    if index.unique {
                        is_equated(&value)?;
                    }
                    value.sql
                }
                None => {
                    names.push(element.name.clone());
                    let (_, column) =
                        super::scope::find(&self.translator.scopes.open, None, &element.name)?;
                    is_indexed(column.is().unwrap_or(Type::Text), index.unique)?;
                    let named = of_texts || !collation.is_empty();
                    let is = column.is().filter(|is| !is.is_text() && named);
                    if let Some(is) = is {
                        return Err(no_collation(is).into());
                    }
                    column.sql
                }
            };
            let called = names.pop().unwrap_or_default();
            names.push(new_among(&names, called));
            parts.push(format!("{sql}{}", if down { " DESC" } else { "" }));
        }
        let condition = match &index.where_clause {
            Some(node) => format!(" WHERE {}", self.translator.condition(node, "WHERE")?.sql),
            None => String::new(),
        };
        Ok((parts, names, condition))
    }

    pub(super) fn create_view(&mut self, view: &ViewStmt) -> Translated<String> {
        let relation = view.view.as_ref().ok_or_else(hints::unknown)?;
        if !view.options.is_empty() || view.with_check_option > 1 {
            return Err(hints::refuse("CREATE OR REPLACE VIEW").into());
        }
        let Some(NodeEnum::SelectStmt(select)) =
            view.query.as_ref().and_then(|node| node.node.as_ref())
        else {
            return Err(hints::unknown().into());
        };
        of_sqlite(&relation.schemaname)?;
        is_no_type(self.edits.basis.catalog, &relation.relname)?;
        let names = strings(&view.aliases);
        let query = self
            .translator
            .query(select, ExpectedColumns { names: &names, ..ExpectedColumns::default() })?;
        if takes_numbers(&query.sql) {
            return Err(hints::refuse("a sequence by its value").into());
        }
        // A row has the columns that its table has when the view is read.
        if self.translator.reads_rows {
            return Err(hints::refuse("JSON function").into());
        }
        let relation = &self.temporary_view(relation)?;
        if names.len() > query.columns.len() {
            let message = "CREATE VIEW specifies more column names than columns";
            return Err(Failure::new("42601", message).into());
        }
        let columns: Vec<_> = query.columns.iter().map(settled).collect();
        if unique(columns.iter().map(|(name, _)| name.as_str())).is_err() {
            return Err(Failure::new("42701", "column specified more than once").into());
        }
        let through = self.written_through(select)?;
        let column = |(index, column): (usize, &Output)| {
            let (is, writable) = (column.is.unwrap_or(Type::Text), through.get(index));
            ViewColumn { is, limit: column.limit, writable: writable == Some(&true) }.word()
        };
        let types: Vec<String> = query.columns.iter().enumerate().map(column).collect();
        let listed: Vec<String> = columns.iter().map(|(column, _)| name(column)).collect();
        let temporary = if relation.relpersistence == "t" { "TEMP " } else { "" };
        let replaced =
            view.replace && replaces(self.edits.basis.catalog, relation, &query.columns)?;
        let made = format!(
            "CREATE {temporary}VIEW {} ({}) AS {MARK}{}*/ {}",
            name(&relation.relname),
            listed.join(", "),
            types.join(" "),
            query.sql
        );
        if !replaced {
            return Ok(made);
        }
        self.edits.follow_ups.push(FollowUp::Sqlite(made));
        let schema = if temporary.is_empty() { "main" } else { "temp" };
        Ok(format!(
            "DROP VIEW {}",
            qualified(self.edits.basis.catalog, Some(schema), &relation.relname)
        ))
    }

    /// Makes a view temporary that reads a temporary object, as the server does.
    fn temporary_view(&self, view: &RangeVar) -> Translated<RangeVar> {
        let temporary =
            |called: &String| self.edits.basis.catalog.table(Some("temp"), called).is_some();
        if view.relpersistence == "t" || !self.translator.named_tables.iter().any(temporary) {
            return Ok(view.clone());
        }
        if !view.schemaname.is_empty() {
            let message = "cannot create temporary relation in non-temporary schema";
            return Err(Failure::new("42P16", message).into());
        }
        Ok(RangeVar { relpersistence: "t".to_owned(), ..view.clone() })
    }

    /// Returns for each column of a view whether PostgreSQL would accept writes through it
    /// (`view_query_is_auto_updatable` of the server). The list is empty for a view to which
    /// PostgreSQL accepts no writes.
    fn written_through(&mut self, select: &SelectStmt) -> Translated<Vec<bool>> {
        let definition = match select.from_clause.first().and_then(|node| node.node.as_ref()) {
            Some(NodeEnum::RangeVar(table)) => self.edits.basis.catalog.definition(&table.relname),
            _ => None,
        };
        if !is_plain(select) || is_sequence(definition) {
            return Ok(Vec::new());
        }
        self.within(Scope::default(), |this| this.writable_targets(select))
    }

    fn writable_targets(&mut self, select: &SelectStmt) -> Translated<Vec<bool>> {
        self.translator.from(&select.from_clause, &mut Vec::new())?;
        let targets = self.translator.targets(&select.target_list, ExpectedColumns::default())?;
        self.translator.order(&select.sort_clause, &targets)?;
        let scope = self.translator.scopes.open.last().ok_or_else(hints::unknown)?;
        if scope.windowed || targets.iter().any(|target| target.expr.aggregate) {
            return Ok(Vec::new());
        }
        let is_column = |expr: &Expr| {
            let mut columns = scope.sources.iter().flat_map(|source| &source.columns);
            columns.any(|column| {
                column.writable
                    && column.sql == expr.sql
                    && Some(column.is) == expr.is()
                    && column.limit == expr.limit
            })
        };
        Ok(targets.iter().map(|target| is_column(&target.expr)).collect())
    }
}

impl Edits<'_> {
    pub(super) fn drop(&mut self, drop: &DropStmt) -> Translated<String> {
        let word = match drop.remove_type() {
            ObjectType::ObjectTable => "TABLE",
            ObjectType::ObjectView => "VIEW",
            ObjectType::ObjectIndex => "INDEX",
            ObjectType::ObjectSequence => "SEQUENCE",
            ObjectType::ObjectSchema => return self.drop_schema(drop),
            ObjectType::ObjectType => return self.drop_types(drop),
            // None of the kind exists.
            ObjectType::ObjectDomain
            | ObjectType::ObjectFunction
            | ObjectType::ObjectExtension
            | ObjectType::ObjectMatview
                if drop.missing_ok =>
            {
                return Ok(NOTHING.to_owned());
            }
            other => return Err(hints::object("DROP", other).into()),
        };
        let cascade = drop.behavior() == DropBehavior::DropCascade;
        let exists = if drop.missing_ok { "IF EXISTS " } else { "" };
        let [only] = &drop.objects[..] else { return self.drop_several(drop, word) };
        let (schema, called) = dropped(only)?;
        let sql = qualified(self.basis.catalog, schema, &called);
        // SQLite would drop one whose name differs in case.
        if word != "INDEX" && self.basis.catalog.table(schema, &called).is_none() {
            if drop.missing_ok {
                return Ok(NOTHING.to_owned());
            }
            let message = format!("{} \"{called}\" does not exist", word.to_ascii_lowercase());
            return Err(Failure::new("42P01", message).into());
        }
        let mut dependents =
            if cascade { dependents(self.basis.catalog, &called) } else { Vec::new() };
        let is_in = |schema| self.basis.catalog.table(Some(schema), &called).is_some();
        if !dependents.is_empty() && is_in("temp") && is_in("main") {
            let message = format!("CASCADE is not supported for one of two objects \"{called}\"");
            let hint = "drop the views and keys that depend on it first, then it without CASCADE";
            return Err(Failure::unsupported(message).hint(hint).into());
        }
        let is_sequence = is_sequence(self.basis.catalog.definition(&called));
        if ["TABLE", "SEQUENCE"].contains(&word) && is_sequence != (word == "SEQUENCE") {
            let kind = if is_sequence { "table" } else { "sequence" };
            let message = format!("\"{called}\" is not a {kind}");
            return Err(Failure::new("42809", message).into());
        }
        let mut kind = word;
        if is_sequence {
            dependents.extend(dropped_sequence(self.basis.catalog, &called, cascade)?);
            kind = "TABLE";
        }
        for (owned, _) in sequences_of(self.basis.catalog, &called) {
            self.follow_ups.push(FollowUp::Sqlite(format!("DROP TABLE {}", name(&owned))));
        }
        if dependents.is_empty() {
            alone(self.basis.catalog, &called, word)?;
            return Ok(format!("DROP {kind} {exists}{sql}"));
        }
        dependents.push(format!("DROP {word} {exists}{}", of_client(schema, &called)));
        self.sequence(dependents)
    }

    /// Translates DROP of several objects: those that read or refer to others go first.
    fn drop_several(&mut self, drop: &DropStmt, word: &str) -> Translated<String> {
        let cascade = drop.behavior() == DropBehavior::DropCascade;
        let mut all = Vec::new();
        for node in &drop.objects {
            all.push(dropped(node)?);
        }
        let order = dependents_first(
            self.basis.catalog,
            all.iter().map(|(_, called)| called.clone()).collect(),
        );
        let of = |called: &String| {
            let exists = if drop.missing_ok { "IF EXISTS " } else { "" };
            // Two of one name are in two schemas.
            let place = all.iter().position(|(_, known)| known == called);
            let schema = place.and_then(|place| all.remove(place).0);
            let called = of_client(schema, called);
            format!("DROP {word} {exists}{called}{}", if cascade { " CASCADE" } else { "" })
        };
        self.sequence(order.iter().map(of).collect())
    }
}

/// True if a view is there to be replaced by one with these columns.
fn replaces(catalog: &dyn Catalog, relation: &RangeVar, columns: &[Output]) -> Translated<bool> {
    let temporary = relation.relpersistence == "t" || relation.schemaname.contains("temp");
    let schema = Some(if temporary { "temp" } else { "main" });
    let Some(old) = catalog.table(schema, &relation.relname) else { return Ok(false) };
    if !temporary && catalog.definition(&relation.relname).is_some() {
        let message = format!("\"{}\" is not a view", relation.relname);
        return Err(Failure::new("42809", message).into());
    }
    if old.len() > columns.len() {
        return Err(Failure::new("42P16", "cannot drop columns from view").into());
    }
    for (old, new) in old.iter().zip(columns.iter().map(settled)) {
        let message = match new {
            (called, _) if called != old.name => {
                format!("cannot change name of view column \"{}\" to \"{called}\"", old.name)
            }
            (_, is) if is != old.is => format!(
                "cannot change data type of view column \"{}\" from {} to {}",
                old.name,
                old.is.name(),
                is.name()
            ),
            _ => continue,
        };
        return Err(Failure::new("42P16", message).into());
    }
    Ok(true)
}

/// Refuses to drop an object that another one reads or refers to.
fn alone(catalog: &dyn Catalog, called: &str, word: &str) -> Translated<()> {
    if word == "INDEX" {
        return no_constraint(catalog, called);
    }
    let mut others = catalog.readers(called);
    others.extend(catalog.referrers(called));
    let Some(other) = others.first() else { return Ok(()) };
    let kind = word.to_ascii_lowercase();
    let message = format!("cannot drop {kind} {called} because other objects depend on it");
    Err(Failure::new("2BP01", message).hint(format!("drop {other} first, or use CASCADE")).into())
}

/// Returns the statements that drop what depends on an object: views, and foreign keys.
fn dependents(catalog: &dyn Catalog, called: &str) -> Vec<String> {
    let readers = catalog.readers(called);
    let views = readers.iter().map(|view| format!("DROP VIEW IF EXISTS {} CASCADE", name(view)));
    let keys = catalog.referrers(called).into_iter().flat_map(|table| {
        let sql = catalog.definition(&table).unwrap_or_default();
        let keys = standard::referring(&sql, &table, called);
        let drop = move |key: &String| {
            format!("ALTER TABLE {} DROP CONSTRAINT {}", name(&table), name(key))
        };
        keys.iter().map(drop).collect::<Vec<_>>()
    });
    views.chain(keys).collect()
}

/// Refuses to drop an index of a constraint.
fn no_constraint(catalog: &dyn Catalog, index: &str) -> Translated<()> {
    let Some((table, added)) = catalog.constrained(index) else { return Ok(()) };
    let message = format!(
        "cannot drop index {index} because constraint {index} on table {table} requires it"
    );
    let hint = match added {
        true => format!("write ALTER TABLE {table} DROP CONSTRAINT {index}"),
        false => hints::refuse("DROP CONSTRAINT").hint.into_owned(),
    };
    Err(Failure::new("2BP01", message).hint(hint).into())
}

/// True if a CREATE TABLE statement makes a sequence.
fn is_sequence(sql: Option<String>) -> bool {
    sql.is_some_and(|sql| Sequence::read(&sql).is_some())
}

/// True if a query reads one table, row by row.
fn is_plain(select: &SelectStmt) -> bool {
    let of_table = |node: &Node| matches!(node.node, Some(NodeEnum::RangeVar(_)));
    matches!(&select.from_clause[..], [only] if of_table(only))
        && select.op() == SetOperation::SetopNone
        && select.with_clause.is_none()
        && select.distinct_clause.is_empty()
        && select.group_clause.is_empty()
        && select.having_clause.is_none()
        && select.limit_count.is_none()
        && select.limit_offset.is_none()
}

/// Returns a name that is none of these: itself, or with a number behind it.
fn new_among(names: &[String], called: String) -> String {
    if !names.contains(&called) {
        return called;
    }
    let mut numbered = (1..).map(|number: u32| format!("{called}{number}"));
    numbered.find(|wanted| !names.contains(wanted)).unwrap_or(called)
}

/// Writes the name of an object in PostgreSQL's dialect. `schema` is SQLite's.
fn of_client(schema: Option<&str>, called: &str) -> String {
    match schema {
        Some("temp") => format!("pg_temp.{}", name(called)),
        Some(_) => format!("public.{}", name(called)),
        None => name(called),
    }
}

/// Returns SQLite's schema of an object, if the text names one, and its name.
fn dropped(node: &Node) -> Result<(Option<&'static str>, String), Failure> {
    let names = match &node.node {
        Some(NodeEnum::List(list)) => strings(&list.items),
        _ => Vec::new(),
    };
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    match names[..] {
        [only] => Ok((None, only.to_owned())),
        [schema, only] => Ok((of_sqlite(schema)?, only.to_owned())),
        [schema, ..] => Err(missing(schema)),
        [] => Err(hints::unknown()),
    }
}
