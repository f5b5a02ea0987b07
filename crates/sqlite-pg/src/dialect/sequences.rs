//! CREATE SEQUENCE, ALTER SEQUENCE, and the part of sequences in other statements.

use refrain_grammar::NodeEnum;
use refrain_grammar::protobuf::{AlterSeqStmt, CreateSeqStmt, DefElem, Node, RangeVar};

use crate::failure::Failure;
use crate::sequences::Sequence;
use crate::types::Type;

use super::basis::Basis;
use super::edits::{Edits, FollowUp, NOTHING, SchemaChange, SchemaEdit};
use super::schema_names::new_name;
use super::scope::Catalog;
use super::sequence_calls::{definition, first_row, largest};
use super::type_names::type_name;
use super::value::name;
use super::{Translated, hints, strings};

impl Edits<'_> {
    pub(super) fn create_sequence(&mut self, it: &CreateSeqStmt) -> Translated<String> {
        let relation = it.sequence.as_ref().ok_or_else(hints::unknown)?;
        if relation.relpersistence == "t" {
            return Err(hints::refuse("CREATE TEMP SEQUENCE").into());
        }
        let called = new_name(relation)?;
        if self.basis.catalog.is_taken(&called)
            || self.basis.catalog.key_sequence(&called).is_some()
        {
            if it.if_not_exists {
                return Ok(NOTHING.to_owned());
            }
            let message = format!("relation \"{}\" already exists", relation.relname);
            return Err(Failure::new("42P07", message).into());
        }
        let sequence = with_options(self.basis, None, &it.options)?.0;
        self.follow_ups.push(FollowUp::Sqlite(first_row(&called, sequence.start)));
        Ok(definition(&called, &sequence))
    }

    pub(super) fn alter_sequence(&mut self, it: &AlterSeqStmt) -> Translated<String> {
        let relation = it.sequence.as_ref().ok_or_else(hints::unknown)?;
        let old = match self.basis.table(relation) {
            Err(_) if it.missing_ok => return Ok(NOTHING.to_owned()),
            // The sequence of a key is SQLite's: its owner alone may be named.
            Err(_) if self.basis.catalog.key_sequence(&relation.relname).is_some() => {
                let owned = |option: &DefElem| option.defname == "owned_by";
                return match it.options.iter().filter_map(option).all(owned) {
                    true => Ok(NOTHING.to_owned()),
                    false => Err(hints::refuse("ALTER SEQUENCE of a key").into()),
                };
            }
            found => {
                found?;
                self.basis.catalog.definition(&relation.relname).unwrap_or_default()
            }
        };
        let Some(old) = Sequence::read(&old) else {
            let message = format!("\"{}\" is not a sequence", relation.relname);
            return Err(Failure::new("42809", message).into());
        };
        let (made, restart) = with_options(self.basis, Some(&old), &it.options)?;
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

    /// Gives the sequences of a table another owner.
    pub(super) fn with_owner(&mut self, table: &str, change: impl Fn(&mut (String, String))) {
        for (called, _) in sequences_of(self.basis.catalog, table) {
            let sql = self.basis.catalog.definition(&called).unwrap_or_default();
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
}

/// Returns a sequence with these options, and the number at which it starts again.
fn with_options(
    basis: Basis<'_>,
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
            "as" => is = sequence_type(basis, arg)?,
            "increment" => numbers[0] = Some(number),
            "minvalue" => numbers[1] = Some(number),
            "maxvalue" => numbers[2] = Some(number),
            "start" => numbers[3] = Some(number),
            "cache" => numbers[4] = Some(number),
            "restart" => restart = Some(number),
            "cycle" => cycle = arg.is_some_and(is_true),
            "owned_by" => owner = owner_of(basis, arg)?,
            _ => return Err(hints::refuse("ALTER SEQUENCE of a key").into()),
        }
    }
    let [increment, minimum, maximum, start, cache] = numbers;
    let increment = increment.flatten().unwrap_or(old.map_or(1, |old| old.increment));
    let up = increment > 0;
    let (default_least, default_most) = if up { (1, largest(is)) } else { (-largest(is) - 1, -1) };
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

fn sequence_type(basis: Basis<'_>, arg: Option<&Node>) -> Translated<Type> {
    let Some(NodeEnum::TypeName(named)) = arg.and_then(|arg| arg.node.as_ref()) else {
        return Err(hints::unknown().into());
    };
    match type_name(basis, named)?.0 {
        is @ (Type::Int2 | Type::Int4 | Type::Int8) => Ok(is),
        _ => {
            let message = "sequence type must be smallint, integer, or bigint";
            Err(Failure::new("22023", message).into())
        }
    }
}

/// Reads OWNED BY.
fn owner_of(basis: Basis<'_>, arg: Option<&Node>) -> Translated<Option<(String, String)>> {
    let Some(NodeEnum::List(list)) = arg.and_then(|arg| arg.node.as_ref()) else {
        return Err(hints::unknown().into());
    };
    let (table, column) = match &strings(&list.items)[..] {
        [none] if none == "none" => return Ok(None),
        [.., table, column] => (table.clone(), column.clone()),
        _ => return Err(Failure::new("42601", "invalid OWNED BY option").into()),
    };
    let relation = RangeVar { relname: table.clone(), ..RangeVar::default() };
    basis.column_of(&column, &relation)?;
    if format!("{table}{column}").contains("*/") {
        return Err(hints::refuse("ALTER SEQUENCE of a key").into());
    }
    Ok(Some((table, column)))
}

/// Returns the sequences that a table owns, with their columns. Those of a permanent table are not
/// those of a temporary one that hides it.
pub(super) fn sequences_of(catalog: &dyn Catalog, table: &str) -> Vec<(String, String)> {
    let is_hidden =
        catalog.definition(table).is_some() && catalog.table(Some("temp"), table).is_some();
    if is_hidden { Vec::new() } else { catalog.owned_sequences(table) }
}

/// Returns the statements that take a sequence's numbers out of defaults; an error if a default
/// takes its numbers.
pub(super) fn dropped_sequence(
    catalog: &dyn Catalog,
    called: &str,
    cascade: bool,
) -> Translated<Vec<String>> {
    let users = catalog.users_of_sequence(called);
    if let Some((table, column)) = users.first().filter(|_| !cascade) {
        let message = format!("cannot drop sequence {called} because other objects depend on it");
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

/// Checks the options (`init_params` of the server).
fn check(it: &Sequence, restart: Option<i64>) -> Result<(), Failure> {
    let Sequence { start, minimum, maximum, .. } = it;
    let hint = "give it MINVALUE, MAXVALUE and START that fit";
    let wrong = |message: String| Err(Failure::new("22023", message).hint(hint));
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
