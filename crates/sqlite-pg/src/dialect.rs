//! Translates PostgreSQL's dialect into SQLite's.
//!
//! [`translate`] parses a statement by PostgreSQL's own grammar, walks its tree as the server's
//! analysis does, and writes SQLite's text for it, with the names and types that the server would
//! give the result. `docs/decisions/0036` says why.
//!
//! Always true: a node, operator, function or type that is unknown here is refused, with a hint
//! from one table ([`hints`]). A translated part means the same. If SQLite's own would mean
//! something else, a function of Refrain's takes its place (`refrain_…`).
//!
//! A statement is SQLite's own ([`NotTranslated::Sqlite`]) if PostgreSQL's grammar does not accept
//! it and it has a word of SQLite's, or if it calls a function that only SQLite has.

mod words;

mod value;

mod forms;

mod hints;

mod scope;

mod budget;

mod schema_names;

mod basis;

mod typing;

mod type_names;

mod coerce;

mod common_types;

mod literals;

mod folding;

mod catalog_functions;

mod function_tables;

mod resolution;

mod array_operators;

mod operators;

mod constants;

mod nodes;

mod arrays;

mod sequence_calls;

mod expr;

mod targets;

mod distinct;

mod json_calls;

mod calls;

mod windows;

mod locking;

mod select;

mod sets;

mod sublinks;

mod joins;

mod from;

mod write_target;

mod target_table;

mod assignments;

mod conflict;

mod with;

mod write;

mod change;

mod references;

mod relabel;

mod edits;

mod definer;

mod keys;

mod serials;

mod define;

mod sequences;

mod defaults;

mod several;

mod enums;

mod schemas;

mod constraints;

mod retype;

mod alter;

mod objects;

use refrain_grammar::protobuf::{Node, a_const::Val};
use refrain_grammar::{Fault, NodeEnum};
use refrain_sql::normalize::Span;

use crate::catalog;
use crate::failure::{Failure, state};
use crate::types::Type;

use basis::Basis;
use definer::Definer;
use edits::{Edits, NOTHING};
use literals::Literals;
use schemas::create_schema;
use scope::{Scoped, Scopes};
use select::{ExpectedColumns, Output};
use target_table::Writer;
use typing::Typing;
use words::{SQLITE_FUNCTIONS, calls_sqlites, is_sqlites, without_or};
use write::Written;

pub(crate) use assignments::missing;
pub(crate) use coerce::fitted;
pub(crate) use constraints::ADDED;
pub(crate) use edits::{FollowUp, SchemaChange, SchemaEdit};
pub(crate) use literals::BoundLiteral;
pub(crate) use objects::ViewColumn;
pub(crate) use schemas::MARK as SCHEMA;
pub(crate) use scope::{Attribute, Catalog, EnumColumn, SchemaObject};
pub(crate) use write_target::{WriteTarget, WriteVerb};

/// The reason why a statement is not translated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NotTranslated {
    /// The statement is refused.
    Refused(Failure),
    /// The statement is in SQLite's dialect.
    Sqlite,
}

impl From<Failure> for NotTranslated {
    fn from(failure: Failure) -> Self {
        Self::Refused(failure)
    }
}

impl NotTranslated {
    /// Adds the position of the error, given in bytes, if there is none yet.
    fn at(self, text: &str, location: i32) -> Self {
        match (self, usize::try_from(location)) {
            (Self::Refused(failure), Ok(offset)) if failure.position == 0 => {
                Self::Refused(failure.at(text.as_bytes(), offset))
            }
            (stop, _) => stop,
        }
    }
}

type Translated<T> = Result<T, NotTranslated>;

/// A column of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ResultColumn {
    pub(crate) name: String,
    pub(crate) is: Type,
    /// The maximum length of its values.
    pub(crate) limit: Option<u32>,
}

/// A statement in SQLite's dialect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Translation {
    pub(crate) sql: String,
    pub(crate) columns: Vec<ResultColumn>,
    pub(crate) parameters: Vec<Option<Type>>,
    /// The error of a constant in it. The statement raises it each time that it should run.
    pub(crate) fails: Option<Failure>,
    /// How the text's literals are bound; `None` if one of them is written in `sql`.
    pub(crate) literals: Option<Vec<BoundLiteral>>,
    /// The parts that run behind it, in its transaction.
    pub(crate) follow_ups: Vec<FollowUp>,
    /// A table whose rows it locks: it runs as a statement that writes.
    pub(crate) locks: Option<String>,
    /// The table that it writes to.
    pub(crate) target: Option<WriteTarget>,
}

/// The translation of queries and expressions.
struct Translator<'a> {
    basis: Basis<'a>,
    typing: Typing<'a>,
    scopes: Scopes,
    /// How many calls so far take numbers from sequences, or set them.
    number_calls: usize,
    /// A table whose rows the statement locks.
    locks: Option<String>,
    /// True if the statement reads a table's row as a value.
    reads_rows: bool,
    /// The tables that the statement names without a schema.
    named_tables: Vec<String>,
}

impl Scoped for Translator<'_> {
    fn scopes(&mut self) -> &mut Scopes {
        &mut self.scopes
    }
}

/// The translation of a statement of any kind.
struct Parts<'a> {
    translator: Translator<'a>,
    edits: Edits<'a>,
    literals: Literals<'a>,
    target: Option<WriteTarget>,
}

/// Translates the only statement of a text. `given` are the types that the client gives its
/// parameters, `spans` the literals that may be bound in the place of being written.
///
/// # Errors
/// [`NotTranslated`].
pub(crate) fn translate(
    text: &str,
    catalog: &dyn Catalog,
    given: &[Option<Type>],
    spans: &[Span],
) -> Result<Translation, NotTranslated> {
    let joined = schema_names::joined(text, catalog);
    let moved = joined.is_some();
    let text = joined.as_deref().unwrap_or(text);
    // The places of the literals are those of the other text.
    let spans = if moved { &[] } else { spans };
    let (plain, or) = without_or(text);
    let statement = refrain_grammar::statement(&plain).map_err(|fault| not_parsed(text, fault))?;
    let basis = Basis { text, catalog };
    let mut parts = Parts {
        translator: Translator {
            basis,
            typing: Typing::new(text, catalog, given),
            scopes: Scopes::default(),
            number_calls: 0,
            locks: None,
            reads_rows: false,
            named_tables: Vec::new(),
        },
        edits: Edits { basis, follow_ups: Vec::new() },
        literals: Literals::new(spans),
        target: None,
    };
    let made = parts.statement(&statement, &or);
    let Written { sql, columns } = made.map_err(|stop| match stop {
        NotTranslated::Refused(_) if calls_sqlites(text) => NotTranslated::Sqlite,
        NotTranslated::Refused(failure) if moved => Failure { position: 0, ..failure }.into(),
        stop => stop,
    })?;
    let Parts { translator, edits, literals, mut target } = parts;
    let Translator { typing, locks, .. } = translator;
    for oid in &typing.named_relations {
        // SQLite would not look for it where no row asks for it.
        let query = catalog::with_relations(&format!("SELECT {oid}"), &["refrain_regclass"]);
        catalog.computed(&format!("({query})"))?;
    }
    if !typing.relations.is_empty() && sql.starts_with("CREATE") {
        return Err(hints::refuse("catalog").into());
    }
    if !typing.relations.is_empty() {
        // The text in front of the rows gets longer.
        target.iter_mut().for_each(|target| target.verb = WriteVerb::Update);
    }
    let sql = catalog::with_relations(&sql, &typing.relations);
    let column = |column: Output| {
        let Output { name, is, limit } = column;
        ResultColumn { name, is: is.unwrap_or(Type::Text), limit }
    };
    let columns = columns.into_iter().map(column).collect();
    let Typing { parameters, fails, .. } = typing;
    let follow_ups = edits.follow_ups;
    let literals = literals.all().filter(|_| !moved);
    Ok(Translation { sql, columns, parameters, fails, literals, follow_ups, locks, target })
}

/// The most bytes of the SQL of a part of a statement, and those for each byte of the statement's
/// text. An operand that is written several times at each level would grow without end.
const SQL_BYTES_MAX: usize = 1 << 20;
const SQL_BYTES_EACH: usize = 16;

/// Checks the length of the SQL of a part of a text. The limit grows with the text, so long lists
/// and literals pass.
///
/// # Errors
/// 54001 beyond the limit.
fn bounded(sql: &str, text: &str) -> Result<(), Failure> {
    match sql.len() <= SQL_BYTES_MAX + SQL_BYTES_EACH * text.len() {
        true => Ok(()),
        false => Err(hints::too_long()),
    }
}

fn not_parsed(text: &str, fault: Fault) -> NotTranslated {
    match fault {
        Fault::Deep => Failure::new("54001", "stack depth limit exceeded")
            .hint("nest expressions and queries less deeply")
            .into(),
        Fault::NotOne => NotTranslated::Sqlite,
        Fault::Syntax(message) => {
            let near =
                message.rsplit_once("at or near \"").and_then(|(_, rest)| rest.strip_suffix('"'));
            if is_sqlites(text, near) {
                return NotTranslated::Sqlite;
            }
            let offset = match near {
                Some(near) => place_of(text, near),
                None => Some(text.len()),
            };
            let failure = Failure::new(state::SYNTAX, message)
                .hint("this is not PostgreSQL's dialect, and no word in it is SQLite's own");
            match offset {
                Some(offset) => failure.at(text.as_bytes(), offset).into(),
                None => failure.into(),
            }
        }
    }
}

/// Returns the position of a word, if the text has it once.
fn place_of(text: &str, near: &str) -> Option<usize> {
    let mut found = text.match_indices(near).map(|(place, _)| place);
    let first = found.next();
    first.filter(|_| found.next().is_none())
}

impl<'a> Parts<'a> {
    fn writer(&mut self) -> Writer<'_, 'a> {
        let Self { translator, literals, target, .. } = self;
        Writer { translator, literals, target }
    }

    fn definer(&mut self) -> Definer<'_, 'a> {
        let Self { translator, edits, .. } = self;
        Definer { translator, edits }
    }

    fn statement(&mut self, node: &Node, or: &str) -> Translated<Written> {
        let plain = |sql: String| Written { sql, columns: Vec::new() };
        let statement = inner(node)?;
        // A definition computes nothing yet.
        let writes = matches!(
            statement,
            NodeEnum::InsertStmt(_) | NodeEnum::UpdateStmt(_) | NodeEnum::DeleteStmt(_)
        );
        let runs = writes || matches!(statement, NodeEnum::SelectStmt(_));
        self.translator.typing.unfolded = usize::from(!runs);
        match statement {
            NodeEnum::SelectStmt(it) => {
                let query = self.translator.query(it, ExpectedColumns::default())?;
                Ok(Written { sql: query.sql, columns: query.columns })
            }
            NodeEnum::InsertStmt(it) => self.writer().insert(it, or),
            NodeEnum::UpdateStmt(it) => self.writer().update(it),
            NodeEnum::DeleteStmt(it) => self.writer().delete(it),
            NodeEnum::CreateStmt(it) => self.definer().create_table(it).map(plain),
            NodeEnum::AlterTableStmt(it) => self.definer().alter_table(it).map(plain),
            NodeEnum::RenameStmt(it) => self.edits.rename(it).map(plain),
            NodeEnum::IndexStmt(it) => self.definer().create_index(it).map(plain),
            NodeEnum::ViewStmt(it) => self.definer().create_view(it).map(plain),
            NodeEnum::DropStmt(it) => self.edits.drop(it).map(plain),
            NodeEnum::CreateEnumStmt(it) => self.edits.create_enum(it).map(plain),
            NodeEnum::AlterEnumStmt(it) => self.edits.alter_enum(it).map(plain),
            NodeEnum::CreateSeqStmt(it) => self.edits.create_sequence(it).map(plain),
            NodeEnum::AlterSeqStmt(it) => self.edits.alter_sequence(it).map(plain),
            NodeEnum::CreateSchemaStmt(it) => {
                create_schema(self.edits.basis.catalog, it).map(plain)
            }
            NodeEnum::DoStmt(it) => self.edits.guarded(it).map(plain),
            NodeEnum::CommentStmt(it) => self.edits.comment(it).map(plain),
            // Their functions are here, or are refused by their names.
            NodeEnum::CreateExtensionStmt(it) if EXTENSIONS.contains(&it.extname.as_str()) => {
                Ok(plain(NOTHING.to_owned()))
            }
            NodeEnum::TruncateStmt(it) => self.edits.truncate(it).map(plain),
            NodeEnum::VacuumStmt(it) if it.options.is_empty() => match &it.rels[..] {
                [] => Err(NotTranslated::Sqlite),
                [only] if !it.is_vacuumcmd => {
                    let Some(NodeEnum::VacuumRelation(of)) = &only.node else {
                        return Err(hints::refuse("VACUUM").into());
                    };
                    let relation = of.relation.as_ref().ok_or_else(hints::unknown)?;
                    let (table, _) = self.edits.basis.table(relation)?;
                    Ok(plain(format!("ANALYZE {table}")))
                }
                _ => Err(hints::refuse("VACUUM").into()),
            },
            other => Err(hints::statement(other).into()),
        }
    }
}

/// Returns the text of a token.
fn text_of<'a>(text: &'a str, token: &refrain_sql::lex::Token) -> &'a str {
    text.get(token.start as usize..token.end as usize).unwrap_or_default()
}

/// Extensions that may be created: there is nothing to do.
const EXTENSIONS: &[&str] = &["pgcrypto", "plpgsql", "uuid-ossp"];

/// Returns the kind of a node.
fn inner(node: &Node) -> Result<&NodeEnum, Failure> {
    node.node.as_ref().ok_or_else(hints::unknown)
}

/// Returns the string of a String node.
fn string(node: &Node) -> Option<String> {
    match &node.node {
        Some(NodeEnum::String(it)) => Some(it.sval.clone()),
        _ => None,
    }
}

fn strings(nodes: &[Node]) -> Vec<String> {
    nodes.iter().filter_map(string).collect()
}

fn integer(node: &Node) -> Option<i32> {
    match &node.node {
        Some(NodeEnum::AConst(constant)) => match &constant.val {
            Some(Val::Ival(number)) => Some(number.ival),
            _ => None,
        },
        Some(NodeEnum::Integer(number)) => Some(number.ival),
        _ => None,
    }
}

/// True if an expression is one call of an aggregate, so that a query of it has one row.
fn is_plain_aggregate(node: &Node) -> bool {
    match &node.node {
        Some(NodeEnum::FuncCall(call)) => {
            let called = strings(&call.funcname).pop().unwrap_or_default();
            call.over.is_none() && ["count", "sum", "avg", "min", "max"].contains(&called.as_str())
        }
        _ => false,
    }
}

/// Returns the position of an expression in the text, in bytes; less than 0 if it has none.
fn location(node: &Node) -> i32 {
    match &node.node {
        Some(NodeEnum::AConst(it)) => it.location,
        Some(NodeEnum::ColumnRef(it)) => it.location,
        Some(NodeEnum::ParamRef(it)) => it.location,
        Some(NodeEnum::AExpr(it)) => it.location,
        Some(NodeEnum::BoolExpr(it)) => it.location,
        Some(NodeEnum::FuncCall(it)) => it.location,
        Some(NodeEnum::TypeCast(it)) => it.location,
        Some(NodeEnum::SubLink(it)) => it.location,
        Some(NodeEnum::CaseExpr(it)) => it.location,
        Some(NodeEnum::CoalesceExpr(it)) => it.location,
        Some(NodeEnum::NullTest(it)) => it.location,
        Some(NodeEnum::AArrayExpr(it)) => it.location,
        _ => -1,
    }
}

#[cfg(test)]
mod tests;
