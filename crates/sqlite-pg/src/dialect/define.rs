//! CREATE TABLE.
//!
//! SQLite does not store all of a column's type. A key that is SQLite's row number must be declared
//! INTEGER, so the name of its constraint has PostgreSQL's type, and says whether SQLite generates
//! the key ([`KeyMark`]).

use refrain_grammar::NodeEnum;
use refrain_grammar::protobuf::{ColumnDef, ConstrType, Constraint, CreateStmt, Node};

use crate::failure::{Failure, state};
use crate::key_mark::{GivenBy, KeyMark};
use crate::types::Type;

use super::basis::Basis;
use super::coerce::{Wanted, no_collation};
use super::definer::{Declared, Definer};
use super::keys::{is_indexed, is_new_key, is_once};
use super::references::{foreign_key, refers};
use super::schema_names::of_sqlite;
use super::scope::{Attribute, Scope, Scoped};
use super::type_names::is_no_type;
use super::type_names::type_name;
use super::value::name;
use super::words::SQLITE_TYPES;
use super::{NotTranslated, Translated, hints, strings};

/// Types that are integers with a sequence.
const SERIALS: &[(&str, Type)] = &[
    ("serial", Type::Int4),
    ("serial4", Type::Int4),
    ("bigserial", Type::Int8),
    ("serial8", Type::Int8),
    ("smallserial", Type::Int2),
    ("serial2", Type::Int2),
];

/// Names of PostgreSQL's system columns.
pub(super) const SYSTEM_COLUMNS: &[&str] = &["cmax", "cmin", "ctid", "tableoid", "xmax", "xmin"];

impl Definer<'_, '_> {
    pub(super) fn create_table(&mut self, create: &CreateStmt) -> Translated<String> {
        refuse_parts(create)?;
        let relation = create.relation.as_ref().ok_or_else(hints::unknown)?;
        let temporary = relation.relpersistence == "t" || relation.schemaname == "pg_temp";
        let schema = of_sqlite(&relation.schemaname)?;
        if temporary && schema == Some("main") {
            let message = "cannot create temporary relation in non-temporary schema";
            return Err(Failure::new("42P16", message).into());
        }
        if relation.schemaname == "pg_temp" && relation.relpersistence == "u" {
            let message = "only temporary relations may be created in temporary schemas";
            return Err(Failure::new("42P16", message).into());
        }
        let (mut definitions, mut constraints) = (Vec::new(), Vec::new());
        for node in &create.table_elts {
            match node.node.as_ref().ok_or_else(hints::unknown)? {
                NodeEnum::ColumnDef(column) => definitions.push(&**column),
                NodeEnum::Constraint(constraint) => constraints.push(&**constraint),
                other => return Err(hints::node(other).into()),
            }
        }
        let attributes = definitions.iter().map(|column| attribute(self.edits.basis, column));
        let attributes: Vec<Attribute> = attributes.collect::<Result<_, _>>()?;
        let scope = Scope::of_table(&relation.relname, &attributes);
        let made = self.within(scope, |this| this.table_parts(&definitions, &constraints));
        if !temporary && !create.if_not_exists {
            let of_columns = definitions.iter().flat_map(|column| &column.constraints);
            let of_columns = of_columns.filter_map(|node| match &node.node {
                Some(NodeEnum::Constraint(it)) => Some(&**it),
                _ => None,
            });
            for it in of_columns.chain(constraints.iter().copied()) {
                is_new_key(self.edits.basis.catalog, it, &relation.relname)?;
            }
        }
        is_no_type(self.edits.basis.catalog, &relation.relname)?;
        let schema = if temporary { "temp" } else { "main" };
        let is_new = create.if_not_exists
            || self.edits.basis.catalog.table(Some(schema), &relation.relname).is_none();
        let parts =
            made.map_err(|stop| if is_new { stop } else { taken(stop, &relation.relname) })?;
        if parts.is_empty() {
            return Err(hints::refuse("a table without columns").into());
        }
        if create.if_not_exists
            && self.edits.basis.catalog.table(Some(schema), &relation.relname).is_some()
        {
            self.edits.follow_ups.clear();
        }
        if temporary && !self.edits.follow_ups.is_empty() {
            return Err(hints::refuse("CREATE TEMP SEQUENCE").into());
        }
        let words = match (temporary, create.if_not_exists) {
            (true, true) => "CREATE TEMP TABLE IF NOT EXISTS",
            (true, false) => "CREATE TEMP TABLE",
            (false, true) => "CREATE TABLE IF NOT EXISTS",
            (false, false) => "CREATE TABLE",
        };
        Ok(format!("{words} {} ({})", name(&relation.relname), parts.join(", ")))
    }

    fn table_parts(
        &mut self,
        definitions: &[&ColumnDef],
        constraints: &[&Constraint],
    ) -> Translated<Vec<String>> {
        let mut columns = Vec::new();
        for definition in definitions {
            columns.push(self.declared(definition)?);
        }
        let mut rest = Vec::new();
        for constraint in constraints {
            if constraint.contype() == ConstrType::ConstrPrimary {
                let keys = strings(&constraint.keys);
                if let [only] = &keys[..]
                    && let Some(column) = columns.iter_mut().find(|column| column.name == *only)
                {
                    column.key = true;
                    column.key_name.clone_from(&constraint.conname);
                    continue;
                }
                // In SQLite a key of several columns may be NULL.
                for column in columns.iter_mut().filter(|column| keys.contains(&column.name)) {
                    if !column.rest.contains(" NOT NULL") {
                        column.rest.push_str(" NOT NULL");
                    }
                }
            }
            rest.push(self.constraint(constraint, None)?);
        }
        let computed = |column: &Declared| column.rest.contains(" GENERATED ALWAYS AS ");
        let generated: Vec<String> = columns
            .iter()
            .filter(|column| computed(column))
            .map(|column| name(&column.name))
            .collect();
        let of_another = |column: &&Declared| {
            computed(column) && generated.iter().any(|other| column.rest.contains(other.as_str()))
        };
        if let Some(column) = columns.iter().find(of_another) {
            let message =
                format!("cannot use a generated column in the expression of \"{}\"", column.name);
            return Err(Failure::new("42P17", message).into());
        }
        if columns.iter().filter(|column| column.key).count() > 1 {
            let message = "multiple primary keys for table are not allowed";
            return Err(Failure::new("42P16", message).into());
        }
        self.with_sequences(&mut columns);
        let mut parts = columns.into_iter().map(written).collect::<Result<Vec<_>, _>>()?;
        parts.extend(rest);
        Ok(parts)
    }

    pub(super) fn declared(&mut self, column: &ColumnDef) -> Translated<Declared> {
        let (is, limit, sql, given) = declared_type(self.edits.basis, column)?;
        if let Some(collation) = &column.coll_clause {
            if !strings(&collation.collname).iter().any(|name| name == "C") {
                return Err(hints::refuse("COLLATE").into());
            }
            if !is.is_text() {
                return Err(no_collation(is).into());
            }
        }
        if !column.compression.is_empty() || !column.storage_name.is_empty() {
            return Err(hints::refuse("storage").into());
        }
        if SYSTEM_COLUMNS.contains(&column.colname.as_str()) {
            let message =
                format!("column name \"{}\" conflicts with a system column name", column.colname);
            return Err(Failure::new("42701", message).into());
        }
        let mut made = Declared {
            name: column.colname.clone(),
            is,
            limit,
            sql,
            given,
            key: false,
            key_name: String::new(),
            sequence: None,
            integer: says_integer(self.edits.basis.text, column),
            rest: String::new(),
        };
        one_value_of(column)?;
        for constraint in &with_attributes(&column.constraints)? {
            match constraint.contype() {
                ConstrType::ConstrPrimary => {
                    is_indexed(is, true)?;
                    made.key = true;
                    made.key_name.clone_from(&constraint.conname);
                }
                ConstrType::ConstrNull => {}
                ConstrType::ConstrIdentity => {
                    if !constraint.options.is_empty() {
                        return Err(hints::refuse("IDENTITY (options)").into());
                    }
                    let always = constraint.generated_when == "a";
                    made.given = if always { GivenBy::Always } else { GivenBy::ByDefault };
                }
                _ => {
                    let words = self.constraint(constraint, Some((is, limit)))?;
                    made.rest.push_str(&words);
                }
            }
        }
        Ok(made)
    }

    /// Translates the expression of a generated column.
    fn computed_as(
        &mut self,
        it: &Constraint,
        column: Option<(Type, Option<u32>)>,
    ) -> Translated<String> {
        let node = it.raw_expr.as_deref().ok_or_else(hints::unknown)?;
        let (is, limit) = column.ok_or_else(hints::unknown)?;
        let value = self.translator.expr(node)?;
        if value.aggregate {
            return Err(hints::aggregate("column generation expressions").into());
        }
        let value = self.translator.typing.fit(value, is, limit, Wanted::Assignment)?;
        Ok(format!("GENERATED ALWAYS AS ({}) STORED", value.sql))
    }

    /// Translates a constraint: of a column, with a blank in front, or of a table.
    pub(super) fn constraint(
        &mut self,
        it: &Constraint,
        column: Option<(Type, Option<u32>)>,
    ) -> Translated<String> {
        let called = match it.conname.as_str() {
            "" => String::new(),
            given => format!("CONSTRAINT {} ", name(given)),
        };
        let of_column = column.is_some();
        let listed = |nodes: &[Node]| {
            let names: Vec<String> = strings(nodes).iter().map(|column| name(column)).collect();
            names.join(", ")
        };
        let words = match it.contype() {
            ConstrType::ConstrNotnull if of_column => "NOT NULL".to_owned(),
            ConstrType::ConstrDefault => {
                let node = it.raw_expr.as_deref().ok_or_else(hints::unknown)?;
                let (is, limit) = column.ok_or_else(hints::unknown)?;
                self.default_of(node, is, limit)?
            }
            ConstrType::ConstrCheck => {
                let node = it.raw_expr.as_deref().ok_or_else(hints::unknown)?;
                let value = self.translator.condition(node, "CHECK")?;
                if it.is_no_inherit || value.aggregate {
                    return Err(hints::refuse("such a constraint").into());
                }
                format!("CHECK ({})", value.sql)
            }
            ConstrType::ConstrGenerated => self.computed_as(it, column)?,
            ConstrType::ConstrUnique | ConstrType::ConstrPrimary => {
                plain_key(it)?;
                is_once(it)?;
                let types = match column {
                    Some((is, _)) => vec![is],
                    None => self.translator.scopes.types_of(&strings(&it.keys)).unwrap_or_default(),
                };
                types.into_iter().try_for_each(|is| is_indexed(is, true))?;
                let word = match it.contype() {
                    ConstrType::ConstrUnique => "UNIQUE",
                    _ => "PRIMARY KEY",
                };
                if of_column { word.to_owned() } else { format!("{word} ({})", listed(&it.keys)) }
            }
            ConstrType::ConstrForeign => {
                refers(self.edits.basis, &self.translator.scopes, it)?;
                let own = match column {
                    Some((is, _)) => vec![is],
                    None => self.translator.scopes.types_of(&strings(&it.fk_attrs))?,
                };
                let words = foreign_key(self.edits.basis, &self.translator.scopes, it, &own)?;
                if of_column {
                    words
                } else {
                    format!("FOREIGN KEY ({}) {words}", listed(&it.fk_attrs))
                }
            }
            _ => return Err(hints::refuse("such a constraint").into()),
        };
        Ok(format!("{}{called}{words}", if of_column { " " } else { "" }))
    }
}

/// Returns name and type of a column, for the checks in the same statement.
pub(super) fn attribute(basis: Basis<'_>, column: &ColumnDef) -> Translated<Attribute> {
    let (is, limit, _, given) = declared_type(basis, column)?;
    Ok(Attribute {
        name: column.colname.clone(),
        is,
        limit,
        not_null: false,
        key: 0,
        default: None,
        computed: false,
        writable: true,
        given,
    })
}

/// Returns a column's type, the maximum length of its values, SQLite's type, and the source of its
/// values.
fn declared_type(
    basis: Basis<'_>,
    column: &ColumnDef,
) -> Translated<(Type, Option<u32>, String, GivenBy)> {
    let written_type = column.type_name.as_ref().ok_or_else(hints::unknown)?;
    let names = strings(&written_type.names);
    let written = names.last().map(|name| name.to_ascii_lowercase()).unwrap_or_default();
    if names.len() == 1
        && let Some((_, is)) = SERIALS.iter().find(|(serial, _)| *serial == written)
    {
        return Ok((*is, None, is.declaration(None), GivenBy::Next));
    }
    let plain = written_type.array_bounds.is_empty() && names.len() == 1;
    if plain && SQLITE_TYPES.contains(&written.as_str()) {
        let sql = written.to_ascii_uppercase();
        return Ok((Type::declared(&sql), None, sql, GivenBy::Statement));
    }
    let (is, limit) = type_name(basis, written_type)?;
    let form = match is {
        Type::Numeric => "numeric column",
        Type::Char | Type::Unknown | Type::Oid | Type::Interval => "type",
        is if is.is_reg() => "type",
        is if is.element().is_some_and(|of| !of.is_equal_by_text() || is.is_vector()) => "ARRAY",
        _ => return Ok((is, limit, is.declaration(limit), GivenBy::Statement)),
    };
    Err(hints::refuse(form).into())
}

/// True if the text says INTEGER, in this word.
fn says_integer(text: &str, column: &ColumnDef) -> bool {
    let start = column.type_name.as_ref().and_then(|name| usize::try_from(name.location).ok());
    let word = start.and_then(|start| text.get(start..start + 7));
    word.is_some_and(|word| word.eq_ignore_ascii_case("integer"))
}

/// Returns the constraints of a column. The words about when a foreign key is checked are nodes of
/// their own behind it.
fn with_attributes(nodes: &[Node]) -> Translated<Vec<Constraint>> {
    let mut all: Vec<Constraint> = Vec::new();
    for node in nodes {
        let Some(NodeEnum::Constraint(it)) = &node.node else {
            return Err(hints::unknown().into());
        };
        let key = all.last_mut().filter(|last| last.contype() == ConstrType::ConstrForeign);
        match (it.contype(), key) {
            (ConstrType::ConstrAttrDeferrable, Some(key)) => key.deferrable = true,
            (ConstrType::ConstrAttrDeferred, Some(key)) => {
                key.deferrable = true;
                key.initdeferred = true;
            }
            (ConstrType::ConstrAttrImmediate | ConstrType::ConstrAttrNotDeferrable, Some(_)) => {}
            _ => all.push((**it).clone()),
        }
    }
    Ok(all)
}

/// Returns 42P07 if the table exists, in place of an error about its columns.
fn taken(stop: NotTranslated, table: &str) -> NotTranslated {
    match stop {
        NotTranslated::Refused(failure) if failure.hint.is_empty() => {
            Failure::new("42P07", format!("relation \"{table}\" already exists")).into()
        }
        stop => stop,
    }
}

/// Refuses a column with several defaults or expressions.
fn one_value_of(column: &ColumnDef) -> Result<(), Failure> {
    let count = |wanted: ConstrType| {
        let is = |node: &&Node| match &node.node {
            Some(NodeEnum::Constraint(constraint)) => constraint.contype() == wanted,
            _ => false,
        };
        column.constraints.iter().filter(is).count()
    };
    let (defaults, computed) =
        (count(ConstrType::ConstrDefault), count(ConstrType::ConstrGenerated));
    let words = match (defaults, computed) {
        (2.., _) => "multiple default values",
        (_, 2..) => "multiple generation clauses",
        (1, 1) => "both default and generation expression",
        _ => return Ok(()),
    };
    let message = format!("{words} specified for column \"{}\"", column.colname);
    Err(Failure::new(state::SYNTAX, message))
}

/// Writes a column in SQLite's dialect.
pub(super) fn written(column: Declared) -> Result<String, Failure> {
    let Declared { name: called, is, limit, sql, given, key, key_name, sequence, integer, rest } =
        column;
    let called = name(&called);
    let whole = matches!(is, Type::Int2 | Type::Int4 | Type::Int8);
    if given != GivenBy::Statement && !(key && whole) {
        return Err(hints::refuse("a generated column that is no key"));
    }
    if given != GivenBy::Statement && rest.contains(" DEFAULT ") {
        return Err(Failure::new(state::SYNTAX, "a generated column has no default of its own"));
    }
    if !key {
        return Ok(format!("{called} {sql}{rest}"));
    }
    // A name that looks like a mark would be taken for one.
    let constraint = match key_name.as_str() {
        given if given.is_empty() || KeyMark::has_form(given) => String::new(),
        given => format!("CONSTRAINT {} ", name(given)),
    };
    if integer && given == GivenBy::Statement && !rest.contains(" DEFAULT ") {
        return Ok(format!("{called} INTEGER {constraint}PRIMARY KEY{rest}"));
    }
    let rest = rest.replace(" NOT NULL", "");
    if whole && !rest.contains(" DEFAULT ") {
        let given = if given == GivenBy::Statement { GivenBy::Key } else { given };
        let mark = name(&KeyMark { is, given, sequence }.words_with(&key_name));
        let generated = if given == GivenBy::Key { "" } else { " AUTOINCREMENT" };
        return Ok(format!("{called} INTEGER CONSTRAINT {mark} PRIMARY KEY{generated}{rest}"));
    }
    let sql = if whole { is.declaration(limit).replace("INTEGER", "INT") } else { sql };
    Ok(format!("{called} {sql} NOT NULL {constraint}PRIMARY KEY{rest}"))
}

/// Refuses UNIQUE and PRIMARY KEY with more than a list of columns.
pub(super) fn plain_key(it: &Constraint) -> Result<(), Failure> {
    let plain = !it.nulls_not_distinct && it.including.is_empty() && !it.deferrable;
    match plain && !it.without_overlaps && it.indexname.is_empty() {
        true => Ok(()),
        false => Err(hints::refuse("such a constraint")),
    }
}

fn refuse_parts(create: &CreateStmt) -> Result<(), Failure> {
    if !create.inh_relations.is_empty() || create.partspec.is_some() || create.partbound.is_some() {
        return Err(hints::refuse("INHERITS and PARTITION BY"));
    }
    if create.of_typename.is_some() || !create.tablespacename.is_empty() {
        return Err(hints::refuse("such a table"));
    }
    if !create.access_method.is_empty() && create.access_method != "heap" {
        return Err(hints::refuse("such a table"));
    }
    // ON COMMIT: 1 is the default and means nothing, 2 keeps the rows.
    if create.oncommit > 2 {
        return Err(hints::refuse("ON COMMIT"));
    }
    // FILLFACTOR, which pgbench gives, is about the placement of rows and means nothing here.
    let fillfactor = |node: &Node| match &node.node {
        Some(NodeEnum::DefElem(option)) => {
            let number = option.arg.as_deref().and_then(super::integer);
            option.defnamespace.is_empty()
                && option.defname == "fillfactor"
                && number.is_some_and(|number| (10..=100).contains(&number))
        }
        _ => false,
    };
    if create.options.len() > 1 || !create.options.iter().all(fillfactor) {
        return Err(hints::refuse("storage"));
    }
    Ok(())
}
