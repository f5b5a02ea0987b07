//! CREATE INDEX, CREATE VIEW and DROP.

use refrain_grammar::NodeEnum;
use refrain_grammar::protobuf::{
    DropBehavior, DropStmt, IndexStmt, Node, ObjectType, SortByDir, SortByNulls, ViewStmt,
};

use crate::front::failure::Failure;
use crate::front::types::Type;

use super::expr::no_collation;
use super::scope::{Scope, Source};
use super::select::{Place, settled, unique};
use super::value::name;
use super::{Translated, Translator, hints, strings};

/// Before the types of a view's columns, in a comment of the statement that made it.
const MARK: &str = "/*refrain ";

/// The types of a view's columns, from the statement that made it.
pub(crate) fn view_types(sql: &str) -> Vec<(Type, Option<u32>)> {
    let listed = sql.split_once(MARK).and_then(|(_, rest)| rest.split_once("*/"));
    let column = |word: &str| {
        let (is, limit) = word.split_once(':').unwrap_or((word, ""));
        (Type::named(is).unwrap_or(Type::Text), limit.parse().ok())
    };
    listed.map(|(listed, _)| listed.split(' ').map(column).collect()).unwrap_or_default()
}

impl Translator<'_> {
    pub(super) fn create_index(&mut self, index: &IndexStmt) -> Translated<String> {
        let relation = index.relation.as_ref().ok_or_else(hints::unknown)?;
        let btree = index.access_method.is_empty() || index.access_method == "btree";
        let plain = index.index_including_params.is_empty()
            && index.options.is_empty()
            && index.table_space.is_empty()
            && !index.nulls_not_distinct
            && !index.concurrent
            && relation.inh;
        if !btree || !plain {
            return Err(hints::refuse("such an index").into());
        }
        let (table, attributes) = self.table(relation)?;
        let mut source = Source::table(&relation.relname, &attributes);
        source.columns.iter_mut().for_each(|column| column.sql = name(&column.name));
        self.scopes.push(Scope { sources: vec![source], ..Scope::default() });
        let made = self.index_parts(index);
        self.scopes.pop();
        let (parts, names, condition) = made?;
        if index.idxname.is_empty() && index.if_not_exists {
            return Err(Failure::new("42601", "IF NOT EXISTS needs an index name").into());
        }
        let called = match index.idxname.as_str() {
            "" => self.free_name(&format!("{}_{}_idx", relation.relname, names.join("_"))),
            given => given.to_owned(),
        };
        let unique = if index.unique { "UNIQUE " } else { "" };
        let exists = if index.if_not_exists { "IF NOT EXISTS " } else { "" };
        let schema = if table.starts_with("temp.") { "temp." } else { "" };
        let table = table.strip_prefix("temp.").unwrap_or(&table);
        Ok(format!(
            "CREATE {unique}INDEX {exists}{schema}{} ON {table} ({}){condition}",
            name(&called),
            parts.join(", ")
        ))
    }

    /// The first of `wanted`, `wanted1`, … that nothing in the file is called.
    pub(super) fn free_name(&self, wanted: &str) -> String {
        let mut called = wanted.to_owned();
        let mut number = 0;
        while self.catalog.is_taken(&called) {
            number += 1;
            called = format!("{wanted}{number}");
        }
        called
    }

    fn index_parts(&mut self, index: &IndexStmt) -> Translated<(Vec<String>, Vec<String>, String)> {
        let (mut parts, mut names) = (Vec::new(), Vec::new());
        for node in &index.index_params {
            let Some(NodeEnum::IndexElem(element)) = &node.node else {
                return Err(hints::unknown().into());
            };
            let collation = strings(&element.collation);
            if !element.opclass.is_empty()
                || !collation.iter().all(|name| name == "C" || name == "POSIX")
            {
                return Err(hints::refuse("such an index").into());
            }
            let down = element.ordering() == SortByDir::SortbyDesc;
            let first = element.nulls_ordering() == SortByNulls::SortbyNullsFirst;
            let last = element.nulls_ordering() == SortByNulls::SortbyNullsLast;
            // The order of NULLs in an index is seen by nobody.
            let _ = first || last;
            let sql = match &element.expr {
                Some(node) => {
                    let value = self.expr(node)?;
                    names.push(value.name.clone().unwrap_or_else(|| "expr".to_owned()));
                    self.settle(value)?.sql
                }
                None => {
                    names.push(element.name.clone());
                    let column = super::scope::find(&self.scopes, None, &element.name)?;
                    let is = column.is().filter(|is| !is.is_text() && !collation.is_empty());
                    if let Some(is) = is {
                        return Err(no_collation(is).into());
                    }
                    column.sql
                }
            };
            parts.push(format!("{sql}{}", if down { " DESC" } else { "" }));
        }
        let condition = match &index.where_clause {
            Some(node) => format!(" WHERE {}", self.condition(node, "WHERE")?.sql),
            None => String::new(),
        };
        Ok((parts, names, condition))
    }

    pub(super) fn create_view(&mut self, view: &ViewStmt) -> Translated<String> {
        let relation = view.view.as_ref().ok_or_else(hints::unknown)?;
        if view.replace || !view.options.is_empty() || view.with_check_option > 1 {
            return Err(hints::refuse("CREATE OR REPLACE VIEW").into());
        }
        let Some(NodeEnum::SelectStmt(select)) =
            view.query.as_ref().and_then(|node| node.node.as_ref())
        else {
            return Err(hints::unknown().into());
        };
        if !["", "public", "main", "temp", "pg_temp"].contains(&relation.schemaname.as_str()) {
            let message = format!("schema \"{}\" does not exist", relation.schemaname);
            return Err(Failure::new("3F000", message).hint("there is one schema: public").into());
        }
        let names = strings(&view.aliases);
        let query = self.query(select, Place { names: &names, ..Place::default() })?;
        if names.len() > query.columns.len() {
            let message = "CREATE VIEW specifies more column names than columns";
            return Err(Failure::new("42601", message).into());
        }
        let columns: Vec<_> = query.columns.iter().map(settled).collect();
        if unique(columns.iter().map(|(name, _)| name.as_str())).is_err() {
            return Err(Failure::new("42701", "column specified more than once").into());
        }
        let types: Vec<String> = query
            .columns
            .iter()
            .map(|column| {
                let is = column.is.unwrap_or(Type::Text).catalog_name();
                column.limit.map_or(is.to_owned(), |limit| format!("{is}:{limit}"))
            })
            .collect();
        let listed: Vec<String> = columns.iter().map(|(column, _)| name(column)).collect();
        let temporary = if relation.relpersistence == "t" { "TEMP " } else { "" };
        Ok(format!(
            "CREATE {temporary}VIEW {} ({}) AS {MARK}{}*/ {}",
            name(&relation.relname),
            listed.join(", "),
            types.join(" "),
            query.sql
        ))
    }

    /// Nothing may be left that reads what is dropped, or refers to it.
    fn alone(&self, dropped: &Node, word: &str, cascade: bool) -> Translated<()> {
        let names = match &dropped.node {
            Some(NodeEnum::List(list)) => strings(&list.items),
            _ => Vec::new(),
        };
        let called = names.last().map(String::as_str).unwrap_or_default();
        let Some(other) = self.catalog.dependent(called).filter(|_| word != "INDEX") else {
            return Ok(());
        };
        if cascade {
            return Err(hints::refuse("CASCADE").into());
        }
        let kind = word.to_ascii_lowercase();
        let message = format!("cannot drop {kind} {called} because other objects depend on it");
        Err(Failure::new("2BP01", message).hint(format!("drop {other} first")).into())
    }

    pub(super) fn drop(&mut self, drop: &DropStmt) -> Translated<String> {
        let word = match drop.remove_type() {
            ObjectType::ObjectTable => "TABLE",
            ObjectType::ObjectView => "VIEW",
            ObjectType::ObjectIndex => "INDEX",
            other => return Err(hints::object("DROP", other).into()),
        };
        let [only] = &drop.objects[..] else { return Err(hints::refuse("DROP of several").into()) };
        if drop.concurrent {
            return Err(hints::refuse("CONCURRENTLY").into());
        }
        self.alone(only, word, drop.behavior() == DropBehavior::DropCascade)?;
        let exists = if drop.missing_ok { "IF EXISTS " } else { "" };
        Ok(format!("DROP {word} {exists}{}", dropped(only)?))
    }
}

fn dropped(node: &Node) -> Result<String, Failure> {
    let names = match &node.node {
        Some(NodeEnum::List(list)) => strings(&list.items),
        _ => Vec::new(),
    };
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    match names[..] {
        [only] | ["public" | "main", only] => Ok(name(only)),
        ["pg_temp" | "temp", only] => Ok(format!("temp.{}", name(only))),
        [schema, ..] => Err(Failure::new("3F000", format!("schema \"{schema}\" does not exist"))
            .hint("there is one schema: public")),
        [] => Err(hints::unknown()),
    }
}
