//! ALTER TABLE … ALTER COLUMN … TYPE.
//!
//! Where each stored value is one of the new type as well, the definition alone changes. Otherwise
//! an UPDATE follows it, which computes each value from the old one.

use refrain_grammar::NodeEnum;
use refrain_grammar::protobuf::{ColumnDef, Node, RangeVar, TypeName};

use crate::failure::Failure;
use crate::key_mark::{GivenBy, KeyMark};
use crate::standard;
use crate::types::Type;

use super::coerce::Wanted;
use super::definer::Definer;
use super::edits::{FollowUp, NOTHING, SchemaChange};
use super::scope::{Attribute, Catalog, FromItem, Scope, Scoped};
use super::type_names::type_name;
use super::value::{Expr, ExprKind, name};
use super::{NotTranslated, Translated, hints, integer, strings};

impl Definer<'_, '_> {
    /// Translates ALTER COLUMN … TYPE.
    pub(super) fn retype(
        &mut self,
        relation: &RangeVar,
        column: &Attribute,
        to: &ColumnDef,
    ) -> Translated<String> {
        let to_type = to.type_name.as_ref().ok_or_else(hints::unknown)?;
        let (is, limit) = type_name(self.edits.basis, to_type)?;
        let cast = is_cast(to, &column.name);
        if (is, limit) == (column.is, column.limit) && cast {
            return Ok(NOTHING.to_owned());
        }
        if column.computed || is == Type::Numeric || is.element().is_some() || is.is_reg() {
            return Err(hints::refuse("ALTER COLUMN").into());
        }
        let wider = cast && is_wider((column.is, column.limit), (is, limit));
        let sql = self.edits.basis.catalog.definition(&relation.relname).unwrap_or_default();
        if standard::row_number(&sql).is_some_and(|number| number == column.name) {
            // SQLite's own idiom has no mark that could have the new type.
            if !wider || column.given == GivenBy::Statement {
                return Err(hints::refuse("ALTER COLUMN").into());
            }
            let key = standard::given_key(&sql, &relation.relname).unwrap_or_default();
            let old = KeyMark::read(&sql).ok_or_else(hints::unknown)?;
            let words = |is| KeyMark { is, ..old.clone() }.words_with(&key);
            let mark = |is| format!("CONSTRAINT {}", name(&words(is)));
            let (column, from, to) = (column.name.clone(), vec![mark(column.is)], mark(is));
            let change = SchemaChange::Column { column, from, to };
            return self.edits.edit(relation, None, change, "ALTER COLUMN");
        }
        let of_key = |declared: String| match column.key {
            0 => declared,
            // SQLite would take a key of the type INTEGER for the row's number.
            _ => declared.replace("INTEGER", "INT"),
        };
        let old = format!(" {}", column.is.declaration(column.limit));
        let from = vec![old.clone(), old.replace("INTEGER", "INT")];
        let to_sql = format!(" {}", of_key(is.declaration(limit)));
        let change = SchemaChange::Column { column: column.name.clone(), from, to: to_sql };
        if wider {
            return self.edits.edit(relation, None, change, "ALTER COLUMN");
        }
        is_alone(self.edits.basis.catalog, relation, column, &sql)?;
        let value = self.new_value(relation, column, to.raw_default.as_deref(), (is, limit))?;
        self.keeps_default(column, (is, limit))?;
        let made = self.edits.edit(relation, None, change, "ALTER COLUMN")?;
        let (table, _) = self.edits.basis.table(relation)?;
        let called = name(&column.name);
        self.edits
            .follow_ups
            .push(FollowUp::Sqlite(format!("UPDATE {table} SET {called} = {value}")));
        Ok(made)
    }

    /// Returns the SQL of the column's new value.
    fn new_value(
        &mut self,
        relation: &RangeVar,
        column: &Attribute,
        using: Option<&Node>,
        (is, limit): (Type, Option<u32>),
    ) -> Translated<String> {
        let (_, attributes) = self.edits.basis.table(relation)?;
        let mut source = FromItem::table(&relation.relname, &attributes);
        for known in &mut source.columns {
            known.sql = name(&known.name);
            if known.name == column.name {
                // When it runs, the column has the new type: a comparison must not convert to it.
                known.sql = format!("CAST({} AS {})", known.sql, storage(column.is));
            }
        }
        let plain = source.columns.iter().find(|known| known.name == column.name);
        let plain = plain.map(|known| known.sql.clone()).unwrap_or_default();
        let value = match using {
            Some(node) => {
                let scope = Scope { sources: vec![source], ..Scope::default() };
                let value = self.within(scope, |this| this.translator.expr(node))?;
                if value.aggregate {
                    return Err(hints::aggregate("transform expressions").into());
                }
                value
            }
            None => Expr { limit: column.limit, ..Expr::typed(plain, column.is) },
        };
        let made = self.translator.typing.fit(value, is, limit, Wanted::Assignment);
        let words = if using.is_some() { "result of USING clause for column" } else { "column" };
        Ok(made.map_err(|failure| no_cast(failure, words, &column.name, is))?.sql)
    }

    /// Refuses a column whose default would become another expression.
    fn keeps_default(
        &mut self,
        column: &Attribute,
        (is, limit): (Type, Option<u32>),
    ) -> Translated<()> {
        let Some(default) = column.default.as_ref().filter(|it| !it.eq_ignore_ascii_case("null"))
        else {
            return Ok(());
        };
        let literal = default.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\''));
        let value = match literal.filter(|_| column.is.is_text() && is.is_text()) {
            Some(text) => Expr::of(default, ExprKind::Literal(text.replace("''", "'"))),
            None => Expr::typed(default, column.is),
        };
        let made = self.translator.typing.fit(value, is, limit, Wanted::Assignment)?;
        if made.sql == *default { Ok(()) } else { Err(hints::refuse("ALTER COLUMN").into()) }
    }
}

/// Refuses a column on which something else depends that has been translated for its type.
fn is_alone(
    catalog: &dyn Catalog,
    relation: &RangeVar,
    column: &Attribute,
    sql: &str,
) -> Translated<()> {
    let table = &relation.relname;
    let called = name(&column.name);
    let depends = |sql: &String| {
        let plain_index = sql.contains(" INDEX ") && !sql.contains(" WHERE ");
        let simple = plain_index && sql.matches('(').count() == 1;
        sql.starts_with("CREATE TRIGGER") || sql.contains(&called) && !simple
    };
    let keys = |other: &String| {
        let sql = catalog.definition(other).unwrap_or_default();
        standard::foreign_keys(&sql, other).into_iter().any(|key| {
            key.target == *table
                && (key.target_columns.is_empty() && column.key > 0
                    || key.target_columns.contains(&column.name))
        })
    };
    let mut others = catalog.referrers(table);
    others.push(table.clone());
    if standard::depends_on(sql, table, &column.name)
        || catalog.dependents(table).iter().any(depends)
        || others.iter().any(keys)
    {
        return Err(hints::refuse("ALTER COLUMN").into());
    }
    Ok(())
}

/// Returns the type by which SQLite stores the values of a type.
fn storage(is: Type) -> &'static str {
    match is {
        Type::Bool | Type::Int2 | Type::Int4 | Type::Int8 => "INTEGER",
        Type::Float4 | Type::Float8 => "REAL",
        Type::Bytea => "BLOB",
        _ => "TEXT",
    }
}

/// Returns 42804 in place of the error that there is no conversion.
fn no_cast(failure: Failure, words: &str, column: &str, to: Type) -> NotTranslated {
    if failure.sqlstate != "42804" && failure.sqlstate != "42846" {
        return failure.into();
    }
    let message =
        format!("{words} \"{column}\" cannot be cast automatically to type {}", to.name());
    let hint = match words {
        "column" => format!("You might need to specify \"USING {column}::{}\".", to.name()),
        _ => "You might need to add an explicit cast.".to_owned(),
    };
    Failure::new("42804", message).hint(hint).into()
}

/// True if each value of a type is stored as the same value of the other, longer type.
fn is_wider(from: (Type, Option<u32>), to: (Type, Option<u32>)) -> bool {
    match (from, to) {
        ((Type::Varchar, _), (Type::Text | Type::Varchar, None)) => true,
        ((Type::Varchar, Some(old)), (Type::Varchar, Some(new))) => old <= new,
        ((Type::Text, _), (Type::Varchar, None)) => true,
        ((Type::Int2, _), (Type::Int4 | Type::Int8, _)) | ((Type::Int4, _), (Type::Int8, _)) => {
            true
        }
        _ => false,
    }
}

/// True if USING is absent, or a cast of the column itself to its new type.
fn is_cast(definition: &ColumnDef, column: &str) -> bool {
    let Some(using) = &definition.raw_default else { return true };
    let Some(NodeEnum::TypeCast(cast)) = &using.node else { return false };
    let inside = cast.arg.as_ref().and_then(|arg| arg.node.as_ref());
    let own = matches!(inside, Some(NodeEnum::ColumnRef(it)) if strings(&it.fields) == [column]);
    let words = |of: &Option<TypeName>| {
        let of = of.as_ref()?;
        Some((strings(&of.names), of.typmods.iter().map(integer).collect::<Vec<_>>()))
    };
    own && words(&cast.type_name) == words(&definition.type_name)
}
