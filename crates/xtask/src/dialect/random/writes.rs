//! Random INSERT, UPDATE, DELETE and their like.

use super::expressions::{Maker, scope_of};
use super::kinds::ValueKind;
use super::world::{Column, Table, stored};

impl Maker<'_> {
    /// Returns a statement that writes rows.
    pub(super) fn write(&mut self) -> String {
        let table = self.world.written(self.dice).clone();
        match self.dice.below(20) {
            0..=8 => self.insert(&table),
            9..=14 => self.update(&table),
            15..=18 => self.delete(&table),
            _ => self.insert_query(&table),
        }
    }

    fn columns(&mut self, table: &Table, share: u64) -> Vec<Column> {
        let rest = table.columns.iter().skip(1);
        rest.filter(|_| self.dice.percent(share)).cloned().collect()
    }

    fn key(&mut self) -> String {
        (1 + self.dice.below(40)).to_string()
    }

    fn insert(&mut self, table: &Table) -> String {
        let columns = self.columns(table, 60);
        let names: Vec<&str> =
            std::iter::once("id").chain(columns.iter().map(|it| it.name.as_str())).collect();
        let mut rows = Vec::new();
        for _ in 0..=self.dice.below(2) {
            let mut values = vec![self.key()];
            for column in &columns {
                values.push(self.written_value(column.kind));
            }
            rows.push(format!("({})", values.join(", ")));
        }
        let conflict = self.conflict(table, &columns);
        let returning = self.returning(table, &table.name.clone());
        format!(
            "INSERT INTO {} ({}) VALUES {}{conflict}{returning}",
            table.name,
            names.join(", "),
            rows.join(", ")
        )
    }

    /// Returns a value for a column: a literal, DEFAULT, or an expression of its kind or another.
    fn written_value(&mut self, kind: ValueKind) -> String {
        match self.dice.below(12) {
            0 => "DEFAULT".to_owned(),
            1 => self.expr(kind, 1),
            2 => {
                let near = ValueKind::any(self.dice);
                if self.dice.once_in(4) { near.literal(self.dice) } else { kind.literal(self.dice) }
            }
            _ => stored(self.dice, kind),
        }
    }

    fn conflict(&mut self, table: &Table, columns: &[Column]) -> String {
        match (self.dice.below(6), columns.first()) {
            (0, _) => " ON CONFLICT DO NOTHING".to_owned(),
            (1, _) => " ON CONFLICT (id) DO NOTHING".to_owned(),
            (2, Some(column)) => {
                let name = &column.name;
                let mut value = format!("EXCLUDED.{name}");
                if self.dice.once_in(2) {
                    value = format!("coalesce({}.{name}, EXCLUDED.{name})", table.name);
                }
                let condition = match self.dice.once_in(3) {
                    true => format!(" WHERE {}.id > 2", table.name),
                    false => String::new(),
                };
                format!(" ON CONFLICT (id) DO UPDATE SET {name} = {value}{condition}")
            }
            _ => String::new(),
        }
    }

    fn returning(&mut self, table: &Table, alias: &str) -> String {
        match self.dice.below(4) {
            0 => " RETURNING *".to_owned(),
            1 => {
                self.scopes.push(scope_of(table, alias));
                let kind = ValueKind::stored(self.dice);
                let (one, other) = (self.expr(kind, 1), self.expr(ValueKind::Int4, 1));
                self.scopes.pop();
                format!(" RETURNING {one}, {other} AS n")
            }
            _ => String::new(),
        }
    }

    fn insert_query(&mut self, table: &Table) -> String {
        let columns = self.columns(table, 40);
        let first = 50 + self.dice.below(40);
        let names: Vec<&str> =
            std::iter::once("id").chain(columns.iter().map(|it| it.name.as_str())).collect();
        let (from, list) = self.within(|maker| {
            let list: Vec<String> = columns.iter().map(|it| maker.expr(it.kind, 2)).collect();
            let key = maker.scopes.last().and_then(|scope| scope.first()).map(|it| it.name.clone());
            (key.unwrap_or_default(), list)
        });
        let (key, list) = list;
        let list: Vec<String> = std::iter::once(format!("{key} + {first}")).chain(list).collect();
        let returning = self.returning(table, &table.name.clone());
        format!(
            "INSERT INTO {} ({}) SELECT {} FROM {from} ON CONFLICT (id) DO NOTHING{returning}",
            table.name,
            names.join(", "),
            list.join(", ")
        )
    }

    fn update(&mut self, table: &Table) -> String {
        let mut columns = self.columns(table, 25);
        if columns.is_empty() {
            columns = table.columns.get(1..2).unwrap_or_default().to_vec();
        }
        if columns.is_empty() {
            return self.delete(table);
        }
        let alias = self.alias();
        let other = self.world.table(self.dice).clone();
        let other_alias = self.alias();
        let from = self.dice.once_in(4);
        let mut scope = scope_of(table, &alias);
        if from {
            scope.extend(scope_of(&other, &other_alias));
        }
        self.scopes.push(scope);
        let sets: Vec<String> = columns
            .iter()
            .map(|it| match self.dice.below(8) {
                0 => format!("{} = DEFAULT", it.name),
                1 => format!("{} = {}", it.name, it.kind.value(self.dice)),
                _ => format!("{} = {}", it.name, self.expr(it.kind, 2)),
            })
            .collect();
        let condition = self.expr(ValueKind::Bool, 2);
        self.scopes.pop();
        let returning = self.returning(table, &alias);
        let (name, sets) = (&table.name, sets.join(", "));
        match from {
            // One row of the other table for each row, so the new values are settled.
            true => format!(
                "UPDATE {name} AS {alias} SET {sets} FROM {} AS {other_alias} WHERE {alias}.id = {other_alias}.id AND {condition}{returning}",
                other.name
            ),
            false if self.dice.once_in(4) => {
                format!("UPDATE {name} AS {alias} SET {sets}{returning}")
            }
            false => format!("UPDATE {name} AS {alias} SET {sets} WHERE {condition}{returning}"),
        }
    }

    fn delete(&mut self, table: &Table) -> String {
        let (alias, other_alias) = (self.alias(), self.alias());
        let other = self.world.table(self.dice).clone();
        let using = self.dice.once_in(4);
        let mut scope = scope_of(table, &alias);
        if using {
            scope.extend(scope_of(&other, &other_alias));
        }
        self.scopes.push(scope);
        let condition = self.expr(ValueKind::Bool, 2);
        self.scopes.pop();
        let returning = self.returning(table, &alias);
        let (name, key) = (&table.name, self.key());
        match using {
            true => format!(
                "DELETE FROM {name} AS {alias} USING {} AS {other_alias} WHERE {alias}.id = {other_alias}.id AND {alias}.id > {key} AND {condition}{returning}",
                other.name
            ),
            false => format!(
                "DELETE FROM {name} AS {alias} WHERE {alias}.id > {key} AND {condition}{returning}"
            ),
        }
    }
}
