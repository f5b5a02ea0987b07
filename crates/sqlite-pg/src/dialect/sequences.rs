//! Sequences: their statements, and the calls of their functions.

use refrain_grammar::NodeEnum;
use refrain_grammar::protobuf::{AlterSeqStmt, CreateSeqStmt, DefElem, FuncCall, Node, RangeVar};

use crate::failure::Failure;
use crate::key_mark::GivenBy;
use crate::sequences::Sequence;
use crate::sql_text;
use crate::types::Type;

use super::coerce::Wanted;
use super::define::Declared;
use super::edits::{FollowUp, NOTHING, SchemaChange, SchemaEdit};
use super::nodes::names;
use super::scope::Attribute;
use super::value::{Expr, ExprKind, name, text_literal};
use super::{Translated, Translator, hints, strings};

/// A sequence that a function names.
enum Named {
    /// One that CREATE SEQUENCE has made.
    Sequence(String),
    /// That of a table's key: its name, the table, and the largest number.
    Key(String, String, i64),
}

/// The call that gives the next number.
const NEXT: &str = "refrain_nextval(";
const NEXT_KEY: &str = "refrain_next_key(";

/// True if SQL takes numbers from sequences.
pub(super) fn takes_numbers(sql: &str) -> bool {
    sql.contains(NEXT) || sql.contains(NEXT_KEY)
}

/// Returns a subquery whose rows SQLite computes once, if they have numbers of sequences.
pub(super) fn computed_once(sql: String) -> String {
    match takes_numbers(&sql) {
        // With LIMIT and OFFSET its expressions are not put in the place of its columns.
        true => format!("SELECT * FROM ({sql}) LIMIT -1 OFFSET 0"),
        false => sql,
    }
}

impl Translator<'_> {
    /// Translates a call of a function of sequences; `None` for other functions.
    pub(super) fn of_sequence(&mut self, it: &FuncCall) -> Translated<Option<Expr>> {
        let called = names(&it.funcname).pop().unwrap_or_default();
        let count = it.args.len();
        let fits = match called.as_str() {
            "nextval" | "currval" => count == 1,
            "setval" => count == 2 || count == 3,
            "lastval" => count == 0,
            _ => return Ok(None),
        };
        if !fits {
            return Ok(None);
        }
        let Some(first) = it.args.first() else {
            return Ok(Some(Expr::typed("refrain_lastval()", Type::Int8).named(called)));
        };
        let sequence = self.sequence_named(first)?;
        if called == "currval" {
            let (written, key) = match &sequence {
                Named::Sequence(written) => (written, 0),
                Named::Key(written, ..) => (written, 1),
            };
            let sql = format!("refrain_currval({}, {key})", text_literal(written));
            return Ok(Some(Expr::typed(sql, Type::Int8).named(called)));
        }
        let locked = match &sequence {
            Named::Sequence(written) => written,
            Named::Key(_, table, _) => table,
        };
        self.locks.get_or_insert(name(locked));
        let mut rest = Vec::new();
        for (node, is) in it.args[1..].iter().zip([Type::Int8, Type::Bool]) {
            let value = self.expr(node)?;
            rest.push(self.coerce(value, is, Wanted::Implicit)?);
        }
        if called == "setval" && rest.len() == 1 {
            rest.push(Expr::typed("1", Type::Bool));
        }
        let mut words = match &sequence {
            Named::Sequence(written) => vec![text_literal(written)],
            Named::Key(written, table, most) => {
                vec![text_literal(written), text_literal(table), most.to_string()]
            }
        };
        words.extend(rest.iter().map(|value| value.sql.clone()));
        let function = match (&sequence, called.as_str()) {
            (Named::Sequence(_), "nextval") => NEXT,
            (Named::Sequence(_), _) => "refrain_setval(",
            (Named::Key(..), "nextval") => NEXT_KEY,
            (Named::Key(..), _) => "refrain_set_key(",
        };
        let sql = format!("{function}{})", words.join(", "));
        let made = Expr::made(sql, Type::Int8, &rest.iter().collect::<Vec<_>>());
        Ok(Some(made.named(called)))
    }

    /// Returns the sequence that a constant of the type `regclass` names.
    fn sequence_named(&mut self, node: &Node) -> Translated<Named> {
        let inside = match &node.node {
            Some(NodeEnum::TypeCast(cast)) => cast.arg.as_deref().unwrap_or(node),
            _ => node,
        };
        let ExprKind::Literal(text) = self.expr(inside)?.kind else {
            return Err(hints::refuse("a sequence by its value").into());
        };
        let missing = || Failure::new("42P01", format!("relation \"{text}\" does not exist"));
        let called = match &sql_text::name_parts(&text).unwrap_or_default()[..] {
            [only] => only.clone(),
            [schema, only] if schema == "public" => only.clone(),
            [schema, only] => format!("{schema}.{only}"),
            _ => return Err(missing().into()),
        };
        if let Some((table, is)) = self.catalog.key_sequence(&called) {
            let most = largest(is);
            return Ok(Named::Key(called, table, most));
        }
        let definition = self.catalog.definition(&called).ok_or_else(missing)?;
        match Sequence::read(&definition) {
            Some(_) => Ok(Named::Sequence(called)),
            None => {
                let message = format!("\"{called}\" is not a sequence");
                Err(Failure::new("42809", message).into())
            }
        }
    }

    pub(super) fn create_sequence(&mut self, it: &CreateSeqStmt) -> Translated<String> {
        let relation = it.sequence.as_ref().ok_or_else(hints::unknown)?;
        if relation.relpersistence == "t" {
            return Err(hints::refuse("CREATE TEMP SEQUENCE").into());
        }
        let called = self.new_name(relation)?;
        if self.catalog.is_taken(&called) || self.catalog.key_sequence(&called).is_some() {
            if it.if_not_exists {
                return Ok(NOTHING.to_owned());
            }
            let message = format!("relation \"{}\" already exists", relation.relname);
            return Err(Failure::new("42P07", message).into());
        }
        let sequence = self.with_options(None, &it.options)?.0;
        self.follow_ups.push(FollowUp::Sqlite(first_row(&called, sequence.start)));
        Ok(definition(&called, &sequence))
    }

    /// Gives a SERIAL column that is no key its sequence.
    pub(super) fn with_sequence(&mut self, column: &mut Declared) {
        let table = self.scopes.last().and_then(|scope| scope.sources.first());
        let table = table.map(|table| table.alias.clone()).unwrap_or_default();
        let called = self.free_name(&format!("{table}_{}_seq", column.name));
        let sequence = Sequence {
            is: column.is,
            start: 1,
            increment: 1,
            minimum: 1,
            maximum: largest(column.is),
            cache: 1,
            cycle: false,
            owner: Some((table, column.name.clone())),
        };
        self.follow_ups.push(FollowUp::Sqlite(definition(&called, &sequence)));
        self.follow_ups.push(FollowUp::Sqlite(first_row(&called, 1)));
        column.given = GivenBy::Statement;
        let not_null = if column.rest.contains(" NOT NULL") { "" } else { " NOT NULL" };
        let default = format!("{not_null} DEFAULT ({NEXT}{}))", text_literal(&called));
        column.rest.push_str(&default);
    }

    pub(super) fn alter_sequence(&mut self, it: &AlterSeqStmt) -> Translated<String> {
        let relation = it.sequence.as_ref().ok_or_else(hints::unknown)?;
        let old = match self.table(relation) {
            Err(_) if it.missing_ok => return Ok(NOTHING.to_owned()),
            // The sequence of a key is SQLite's: its owner alone may be named.
            Err(_) if self.catalog.key_sequence(&relation.relname).is_some() => {
                let owned = |option: &DefElem| option.defname == "owned_by";
                return match it.options.iter().filter_map(option).all(owned) {
                    true => Ok(NOTHING.to_owned()),
                    false => Err(hints::refuse("ALTER SEQUENCE of a key").into()),
                };
            }
            found => {
                found?;
                self.catalog.definition(&relation.relname).unwrap_or_default()
            }
        };
        let Some(old) = Sequence::read(&old) else {
            let message = format!("\"{}\" is not a sequence", relation.relname);
            return Err(Failure::new("42809", message).into());
        };
        let (made, restart) = self.with_options(Some(&old), &it.options)?;
        let called = name(&relation.relname);
        if let Some(restart) = restart {
            self.follow_ups.push(FollowUp::Sqlite(format!("DELETE FROM {called}")));
            self.follow_ups.push(FollowUp::Sqlite(first_row(&relation.relname, restart)));
        }
        if made == old {
            return Ok(format!("DELETE FROM {called} WHERE 0"));
        }
        let change = SchemaChange::Column {
            column: "last_value".to_owned(),
            from: vec![old.mark()],
            to: made.mark(),
        };
        self.edit(relation, None, change, "ALTER SEQUENCE of a key")
    }

    /// Returns a sequence with these options, and the number at which it starts again.
    fn with_options(
        &mut self,
        old: Option<&Sequence>,
        options: &[Node],
    ) -> Translated<(Sequence, Option<i64>)> {
        let mut is = old.map_or(Type::Int8, |old| old.is);
        let mut numbers: [Option<Option<i64>>; 5] = [None; 5];
        let (mut cycle, mut owner) =
            (old.is_some_and(|old| old.cycle), old.and_then(|old| old.owner.clone()));
        let mut restart = None;
        for option in options.iter().filter_map(option) {
            let arg = option.arg.as_deref();
            let number = arg.and_then(whole);
            match option.defname.as_str() {
                "as" => is = self.sequence_type(arg)?,
                "increment" => numbers[0] = Some(number),
                "minvalue" => numbers[1] = Some(number),
                "maxvalue" => numbers[2] = Some(number),
                "start" => numbers[3] = Some(number),
                "cache" => numbers[4] = Some(number),
                "restart" => restart = Some(number),
                "cycle" => cycle = arg.is_some_and(is_true),
                "owned_by" => owner = self.owner(arg)?,
                _ => return Err(hints::refuse("ALTER SEQUENCE of a key").into()),
            }
        }
        let [increment, minimum, maximum, start, cache] = numbers;
        let increment = increment.flatten().unwrap_or(old.map_or(1, |old| old.increment));
        let up = increment > 0;
        let (default_least, default_most) =
            if up { (1, largest(is)) } else { (-largest(is) - 1, -1) };
        let bound = |given: Option<Option<i64>>, old: Option<i64>, default| match given {
            Some(number) => number.unwrap_or(default),
            None => old.unwrap_or(default),
        };
        let minimum = bound(minimum, old.map(|old| old.minimum), default_least);
        let mut maximum = bound(maximum, old.map(|old| old.maximum), default_most);
        if let Some(old) = old.filter(|old| old.maximum == largest(old.is) && up) {
            // As in the server, a bound that was the old type's becomes the new type's.
            maximum = if maximum == old.maximum { largest(is) } else { maximum };
        }
        let first = if up { minimum } else { maximum };
        let start = start.flatten().unwrap_or(old.map_or(first, |old| old.start));
        let cache = cache.flatten().unwrap_or(old.map_or(1, |old| old.cache));
        let made = Sequence { is, start, increment, minimum, maximum, cache, cycle, owner };
        let restart = restart.map(|number| number.unwrap_or(start));
        check(&made, restart)?;
        Ok((made, restart))
    }

    fn sequence_type(&self, arg: Option<&Node>) -> Translated<Type> {
        let Some(NodeEnum::TypeName(named)) = arg.and_then(|arg| arg.node.as_ref()) else {
            return Err(hints::unknown().into());
        };
        match self.type_name(named)?.0 {
            is @ (Type::Int2 | Type::Int4 | Type::Int8) => Ok(is),
            _ => {
                let message = "sequence type must be smallint, integer, or bigint";
                Err(Failure::new("22023", message).into())
            }
        }
    }

    /// Reads OWNED BY.
    fn owner(&self, arg: Option<&Node>) -> Translated<Option<(String, String)>> {
        let Some(NodeEnum::List(list)) = arg.and_then(|arg| arg.node.as_ref()) else {
            return Err(hints::unknown().into());
        };
        let (table, column) = match &strings(&list.items)[..] {
            [none] if none == "none" => return Ok(None),
            [.., table, column] => (table.clone(), column.clone()),
            _ => return Err(Failure::new("42601", "invalid OWNED BY option").into()),
        };
        let relation = RangeVar { relname: table.clone(), ..RangeVar::default() };
        self.column_of(&column, &relation)?;
        if format!("{table}{column}").contains("*/") {
            return Err(hints::refuse("ALTER SEQUENCE of a key").into());
        }
        Ok(Some((table, column)))
    }

    /// Refuses to write to a sequence.
    pub(super) fn no_sequence(&self, called: &str, columns: &[Attribute]) -> Translated<()> {
        let may_be = columns.first().is_some_and(|column| column.name == "last_value");
        let definition = || self.catalog.definition(called);
        match may_be.then(definition).flatten().and_then(|sql| Sequence::read(&sql)) {
            Some(_) => {
                let message = format!("cannot change sequence \"{called}\"");
                Err(Failure::new("42809", message).into())
            }
            None => Ok(()),
        }
    }

    /// Returns the name of a relation that is to be made.
    pub(super) fn new_name(&self, relation: &RangeVar) -> Translated<String> {
        if ["", "public", "main"].contains(&relation.schemaname.as_str()) {
            return Ok(relation.relname.clone());
        }
        let message = format!("schema \"{}\" does not exist", relation.schemaname);
        Err(Failure::new("3F000", message).hint("CREATE SCHEMA makes a schema").into())
    }

    /// Gives the sequences of a table another owner.
    pub(super) fn with_owner(&mut self, table: &str, change: impl Fn(&mut (String, String))) {
        for (called, _) in self.catalog.owned_sequences(table) {
            let sql = self.catalog.definition(&called).unwrap_or_default();
            let Some(mut sequence) = Sequence::read(&sql) else { continue };
            let from = vec![sequence.mark()];
            sequence.owner.iter_mut().for_each(&change);
            let (column, to) = ("last_value".to_owned(), sequence.mark());
            let change = SchemaChange::Column { column, from, to };
            let refusal = hints::refuse("ALTER SEQUENCE of a key");
            let edit = SchemaEdit::of(&called, &name(&called), change, None, refusal);
            self.follow_ups.push(FollowUp::Edit(Box::new(edit)));
        }
    }

    /// Returns the statements that take a sequence's numbers out of defaults; an error if a default takes its numbers.
    pub(super) fn dropped_sequence(&self, called: &str, cascade: bool) -> Translated<Vec<String>> {
        let users = self.catalog.users_of_sequence(called);
        if let Some((table, column)) = users.first().filter(|_| !cascade) {
            let message =
                format!("cannot drop sequence {called} because other objects depend on it");
            let detail = format!(
                "default value for column {column} of table {table} depends on sequence {called}"
            );
            let hint = "Use DROP ... CASCADE to drop the dependent objects too.";
            return Err(Failure::new("2BP01", message).detail(detail).hint(hint).into());
        }
        let default = |(table, column): &(String, String)| {
            format!("ALTER TABLE {} ALTER COLUMN {} DROP DEFAULT", name(table), name(column))
        };
        Ok(users.iter().map(default).collect())
    }
}

/// Returns the CREATE TABLE of a sequence.
pub(super) fn definition(called: &str, sequence: &Sequence) -> String {
    format!(
        "CREATE TABLE {} (\"last_value\" {} BIGINT NOT NULL, \"log_cnt\" BIGINT NOT NULL, \
         \"is_called\" BOOLEAN NOT NULL)",
        name(called),
        sequence.mark()
    )
}

/// Returns the statement that makes a sequence's row.
pub(super) fn first_row(called: &str, start: i64) -> String {
    let columns = "rowid, \"last_value\", \"log_cnt\", \"is_called\"";
    format!("INSERT INTO {} ({columns}) VALUES (random(), {start}, 0, 0)", name(called))
}

/// Returns the largest number of a type.
pub(super) fn largest(is: Type) -> i64 {
    match is {
        Type::Int2 => i64::from(i16::MAX),
        Type::Int4 => i64::from(i32::MAX),
        _ => i64::MAX,
    }
}

/// Checks the options (`init_params` of the server).
fn check(it: &Sequence, restart: Option<i64>) -> Result<(), Failure> {
    let Sequence { start, minimum, maximum, .. } = it;
    let wrong = |message: String| Err(Failure::new("22023", message));
    if it.increment == 0 {
        return wrong("INCREMENT must not be zero".to_owned());
    }
    let (least, most) = (-largest(it.is) - 1, largest(it.is));
    for (word, bound) in [("MAXVALUE", maximum), ("MINVALUE", minimum)] {
        if !(least..=most).contains(bound) {
            return wrong(format!(
                "{word} ({bound}) is out of range for sequence data type {}",
                it.is.name()
            ));
        }
    }
    if minimum >= maximum {
        return wrong(format!("MINVALUE ({minimum}) must be less than MAXVALUE ({maximum})"));
    }
    for (word, number) in [("START", Some(*start)), ("RESTART", restart)] {
        let Some(number) = number else { continue };
        if number < *minimum {
            return wrong(format!(
                "{word} value ({number}) cannot be less than MINVALUE ({minimum})"
            ));
        }
        if number > *maximum {
            return wrong(format!(
                "{word} value ({number}) cannot be greater than MAXVALUE ({maximum})"
            ));
        }
    }
    match it.cache {
        ..1 => wrong(format!("CACHE ({}) must be greater than zero", it.cache)),
        _ => Ok(()),
    }
}

fn option(node: &Node) -> Option<&DefElem> {
    match &node.node {
        Some(NodeEnum::DefElem(option)) => Some(option),
        _ => None,
    }
}

/// Returns the number of an option.
fn whole(node: &Node) -> Option<i64> {
    match &node.node {
        Some(NodeEnum::Integer(number)) => Some(i64::from(number.ival)),
        Some(NodeEnum::Float(number)) => number.fval.parse().ok(),
        _ => None,
    }
}

fn is_true(node: &Node) -> bool {
    matches!(&node.node, Some(NodeEnum::Boolean(it)) if it.boolval)
}
