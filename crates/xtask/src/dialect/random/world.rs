//! The tables that a script has, as far as its statements have made them on both sides.

use crate::soak::dice::Dice;

use super::kinds::ValueKind;

/// A column.
#[derive(Clone, Debug)]
pub(super) struct Column {
    /// The name as SQL, with quotes if it needs them.
    pub(super) name: String,
    pub(super) kind: ValueKind,
}

/// A table or a view. Its first column is an integer key of its rows.
#[derive(Clone, Debug)]
pub(super) struct Table {
    pub(super) name: String,
    pub(super) columns: Vec<Column>,
    pub(super) is_view: bool,
}

/// Tables, with a number for the names of others.
#[derive(Debug, Default)]
pub(super) struct Tables {
    pub(super) tables: Vec<Table>,
    pub(super) indexes: Vec<String>,
    named: u64,
}

/// A change of the world by a statement, which counts once both sides have run the statement.
#[derive(Clone, Debug)]
pub(super) enum Change {
    None,
    Table(Table),
    Drop(String),
    Rename(String, String),
    Columns(String, Vec<Column>),
    Index(String),
}

/// Names of columns, with quotes where PostgreSQL needs them.
const NAMES: &[&str] = &[
    "createdAt",
    "\"createdAt\"",
    "\"userId\"",
    "\"order\"",
    "\"a b\"",
    "note",
    "\"Note\"",
    "value",
    "\"select\"",
    "name",
    "x1",
    "\"x.y\"",
];

impl Tables {
    /// Returns a name that nothing has.
    pub(super) fn fresh(&mut self, dice: &mut Dice, start: &str) -> String {
        self.named += 1;
        match dice.once_in(4) {
            true => format!("\"{}N{}\"", start.to_uppercase(), self.named),
            false => format!("{start}{}", self.named),
        }
    }

    /// Returns a name for a column of these.
    pub(super) fn column_name(&mut self, dice: &mut Dice, others: &[Column]) -> String {
        let known = NAMES[dice.index(NAMES.len())];
        let plain = known.trim_matches('"').to_lowercase();
        // Two names that differ in case alone are refused (`docs/sqlite.md`).
        match others.iter().any(|other| other.name.trim_matches('"').to_lowercase() == plain) {
            true => self.fresh(dice, "c"),
            false => known.to_owned(),
        }
    }

    pub(super) fn table(&self, dice: &mut Dice) -> &Table {
        &self.tables[dice.index(self.tables.len())]
    }

    /// Returns one of the first tables, which always have a row.
    pub(super) fn first(&self, dice: &mut Dice) -> &Table {
        &self.tables[dice.index(BASE.len())]
    }

    /// Returns a table that is no view, and not one of the first, which all queries use.
    pub(super) fn own(&self, dice: &mut Dice) -> Option<&Table> {
        let all: Vec<&Table> =
            self.tables.iter().skip(BASE.len()).filter(|table| !table.is_view).collect();
        (!all.is_empty()).then(|| all[dice.index(all.len())])
    }

    /// Returns a table that takes rows.
    pub(super) fn written(&self, dice: &mut Dice) -> &Table {
        loop {
            let table = self.table(dice);
            if !table.is_view {
                return table;
            }
        }
    }

    pub(super) fn apply(&mut self, change: Change) {
        match change {
            Change::None => {}
            Change::Table(table) => self.tables.push(table),
            Change::Index(name) => self.indexes.push(name),
            Change::Drop(name) => self.tables.retain(|table| table.name != name),
            Change::Rename(old, new) => {
                self.tables.iter_mut().filter(|table| table.name == old).for_each(|table| {
                    table.name.clone_from(&new);
                });
            }
            Change::Columns(name, columns) => {
                self.tables.iter_mut().filter(|table| table.name == name).for_each(|table| {
                    table.columns.clone_from(&columns);
                });
            }
        }
    }
}

/// The first tables: names, and the letters of the kinds of their columns behind the key.
const BASE: &[(&str, &str)] =
    &[("t", "iltfbcvde"), ("u", "itsrmzouygITj"), ("\"W x\"", "iiteddcml")];

/// Returns the statements that make the first tables, and their world.
pub(super) fn base(dice: &mut Dice) -> (Vec<String>, Tables) {
    let mut world = Tables::default();
    let mut all = vec!["CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy', 'Ok')".to_owned()];
    for (name, letters) in BASE {
        let mut columns = vec![Column { name: "id".to_owned(), kind: ValueKind::Int4 }];
        for (place, kind) in letters.chars().filter_map(ValueKind::of).enumerate() {
            let called =
                if dice.once_in(6) { format!("\"colN{place}\"") } else { format!("c{place}") };
            columns.push(Column { name: called, kind });
        }
        let list: Vec<String> = columns
            .iter()
            .skip(1)
            .map(|it| format!("{} {}", it.name, it.kind.type_name()))
            .collect();
        all.push(format!("CREATE TABLE {name} (id int PRIMARY KEY, {})", list.join(", ")));
        let rows: Vec<String> = (1..=4 + dice.below(6))
            .map(|id| {
                let values: Vec<String> =
                    columns.iter().skip(1).map(|it| stored(dice, it.kind)).collect();
                format!("({id}, {})", values.join(", "))
            })
            .collect();
        all.push(format!("INSERT INTO {name} VALUES {}", rows.join(", ")));
        world.tables.push(Table { name: (*name).to_owned(), columns, is_view: false });
    }
    (all, world)
}

/// Returns a value for a column.
pub(super) fn stored(dice: &mut Dice, kind: ValueKind) -> String {
    if dice.once_in(6) { "NULL".to_owned() } else { kind.value(dice) }
}
