//! Random queries.

use super::expressions::{Maker, scope_of};
use super::grammar::GRAMMAR;
use super::kinds::ValueKind;
use super::world::Column;

/// The deepest nesting of an expression's templates.
const DEPTH: u32 = 3;

impl Maker<'_> {
    /// Returns a query of any form.
    pub(super) fn query(&mut self) -> String {
        match self.dice.below(100) {
            0..=21 => self.plain(),
            22..=37 => self.grouped(),
            38..=49 => self.windowed(),
            50..=59 => self.union(),
            60..=69 => self.derived(),
            70..=76 => self.with(),
            77..=80 => self.distinct_on(),
            81..=84 => self.values(),
            _ => self.risky_query(),
        }
    }

    /// Returns a FROM clause, and puts its columns into the innermost scope.
    fn from(&mut self) -> String {
        let first = self.world.table(self.dice).clone();
        let alias = self.alias();
        let mut scope = scope_of(&first, &alias);
        let mut sql = format!("{} AS {alias}", first.name);
        let joins = if self.dice.once_in(2) { 0 } else { 1 + self.dice.below(2) };
        for _ in 0..joins {
            let table = self.world.table(self.dice).clone();
            let alias = self.alias();
            let kind = self.one(&[
                "JOIN",
                "LEFT JOIN",
                "RIGHT JOIN",
                "FULL JOIN",
                "CROSS JOIN",
                ",",
                "LEFT JOIN",
            ]);
            let left = scope.clone();
            scope.extend(scope_of(&table, &alias));
            let item = format!("{} AS {alias}", table.name);
            let key = &left[0].name;
            let condition = match kind {
                "CROSS JOIN" | "," => String::new(),
                "FULL JOIN" => format!(" ON {key} = {alias}.id"),
                _ if self.dice.once_in(8) && sql.matches(" AS ").count() == 1 => {
                    " USING (id)".to_owned()
                }
                _ if self.dice.once_in(2) => format!(" ON {key} = {alias}.id"),
                _ => {
                    // Each item of FROM may be in the condition of its own join.
                    self.scopes.push(scope.clone());
                    let made = self.expr(ValueKind::Bool, 1);
                    self.scopes.pop();
                    format!(" ON {made}")
                }
            };
            sql = match kind {
                "," => format!("{sql} CROSS JOIN {item}"),
                _ => format!("{sql} {kind} {item}{condition}"),
            };
        }
        self.scopes.push(scope);
        sql
    }

    fn filter(&mut self, share: u64) -> String {
        match self.dice.percent(share) {
            true => format!(" WHERE {}", self.expr(ValueKind::Bool, 2)),
            false => String::new(),
        }
    }

    /// Returns an ORDER BY of all columns, with or without a LIMIT.
    fn ending(&mut self, columns: usize, limits: bool) -> String {
        if self.dice.once_in(5) {
            return String::new();
        }
        let order: Vec<String> = (1..=columns)
            .map(|column| {
                format!(
                    "{column}{}",
                    self.one(&["", "", " DESC", " NULLS FIRST", " DESC NULLS LAST", " ASC"])
                )
            })
            .collect();
        let limit = match self.dice.below(6) {
            _ if !limits => String::new(),
            0 => format!(" LIMIT {}", self.dice.below(6)),
            1 => format!(" LIMIT {} OFFSET {}", self.dice.below(6), self.dice.below(3)),
            2 => " OFFSET 1 ROW FETCH FIRST 2 ROWS ONLY".to_owned(),
            _ => String::new(),
        };
        format!(" ORDER BY {}{limit}", order.join(", "))
    }

    /// Returns a list of expressions with their kinds.
    fn list(&mut self, most: u64) -> (Vec<String>, Vec<ValueKind>) {
        let mut kinds = Vec::new();
        let mut all = Vec::new();
        for _ in 0..=self.dice.below(most) {
            let kind = if self.dice.once_in(10) {
                ValueKind::any(self.dice)
            } else {
                ValueKind::stored(self.dice)
            };
            kinds.push(kind);
            all.push(self.expr(kind, DEPTH));
        }
        (all, kinds)
    }

    /// Returns the number of the columns, up to the first that has no order.
    fn ordered(kinds: &[ValueKind]) -> bool {
        kinds.iter().all(|kind| kind.is_ordered())
    }

    fn plain(&mut self) -> String {
        let from = self.from();
        let (mut list, mut kinds) = self.list(3);
        if self.dice.once_in(8) {
            let all = self.scopes.last().cloned().unwrap_or_default();
            kinds.extend(all.iter().map(|column| column.kind));
            list.extend(all.into_iter().map(|column| column.name));
        }
        let filter = self.filter(60);
        let names: Vec<String> = list
            .iter()
            .enumerate()
            .map(|(place, item)| match self.dice.below(6) {
                0 => format!("{item} AS n{place}"),
                1 => format!("{item} \"N {place}\""),
                _ => item.clone(),
            })
            .collect();
        let distinct = if kinds.iter().all(|kind| kind.is_grouped()) && self.dice.once_in(6) {
            "DISTINCT "
        } else {
            ""
        };
        let order = match Self::ordered(&kinds) {
            true => self.ending(list.len(), true),
            false => String::new(),
        };
        self.scopes.pop();
        let list = names.join(", ");
        format!("SELECT {distinct}{list} FROM {from}{filter}{order}")
    }

    fn grouped(&mut self) -> String {
        let from = self.from();
        let filter = self.filter(30);
        let mut keys: Vec<(String, ValueKind)> = Vec::new();
        for _ in 0..self.dice.below(3) {
            let kind = ValueKind::stored(self.dice);
            if kind.is_grouped() {
                let columns: Vec<Column> = self
                    .scopes
                    .last()
                    .into_iter()
                    .flatten()
                    .filter(|it| it.kind == kind)
                    .cloned()
                    .collect();
                if !columns.is_empty() && !self.dice.once_in(4) {
                    keys.push((columns[self.dice.index(columns.len())].name.clone(), kind));
                } else if !columns.is_empty() {
                    keys.push((self.expr(kind, 1), kind));
                }
            }
        }
        let mut list: Vec<String> = keys.iter().map(|(sql, _)| sql.clone()).collect();
        let mut kinds: Vec<ValueKind> = keys.iter().map(|(_, kind)| *kind).collect();
        for _ in 0..=self.dice.below(3) {
            let (aggregate, kind) = self.aggregate();
            list.push(aggregate);
            kinds.push(kind);
        }
        let group = match keys.is_empty() {
            true => String::new(),
            false if self.dice.once_in(4) => {
                let places: Vec<String> = (1..=keys.len()).map(|place| place.to_string()).collect();
                format!(" GROUP BY {}", places.join(", "))
            }
            false => {
                let all: Vec<&str> = keys.iter().map(|(sql, _)| sql.as_str()).collect();
                format!(" GROUP BY {}", all.join(", "))
            }
        };
        let having = match self.dice.below(5) {
            0 => " HAVING count(*) > 1".to_owned(),
            1 => {
                let (aggregate, kind) = self.aggregate();
                match kind {
                    ValueKind::Int4 | ValueKind::Int8 => {
                        format!(" HAVING {aggregate} > {}", self.dice.below(5))
                    }
                    ValueKind::Bool => format!(" HAVING {aggregate}"),
                    _ => format!(" HAVING {aggregate} IS NOT NULL"),
                }
            }
            _ => String::new(),
        };
        let order = match Self::ordered(&kinds) {
            true => self.ending(list.len(), true),
            false => String::new(),
        };
        self.scopes.pop();
        format!("SELECT {} FROM {from}{filter}{group}{having}{order}", list.join(", "))
    }

    fn windowed(&mut self) -> String {
        let table = self.world.table(self.dice).clone();
        let alias = self.alias();
        self.scopes.push(scope_of(&table, &alias));
        let mut list = vec![format!("{alias}.id")];
        for _ in 0..=self.dice.below(2) {
            let (_, template) = self.template(&GRAMMAR.windows);
            let call = self.filled(template, 1);
            let partition = match self.dice.below(3) {
                0 => {
                    let kind = ValueKind::stored(self.dice);
                    let kind = if kind.is_grouped() { kind } else { ValueKind::Text };
                    format!("PARTITION BY {} ", self.expr(kind, 1))
                }
                _ => String::new(),
            };
            let order = match self.dice.below(3) {
                0 => {
                    let kind = ValueKind::stored(self.dice);
                    let kind = if kind.is_ordered() { kind } else { ValueKind::Int4 };
                    let end = self.one(&["", " DESC", " NULLS FIRST", " DESC NULLS LAST"]);
                    format!("ORDER BY {}{end}, {alias}.id", self.expr(kind, 1))
                }
                _ => format!("ORDER BY {alias}.id{}", self.one(&["", " DESC"])),
            };
            let (_, frame) = self.template(&GRAMMAR.frames);
            list.push(format!("{call} OVER ({partition}{order} {frame})"));
        }
        let filter = self.filter(30);
        self.scopes.pop();
        format!("SELECT {} FROM {} AS {alias}{filter} ORDER BY 1", list.join(", "), table.name)
    }

    /// Returns a query of these kinds, without an ORDER BY.
    fn of_kinds(&mut self, kinds: &[ValueKind]) -> String {
        let from = self.from();
        let list: Vec<String> = kinds.iter().map(|kind| self.expr(*kind, 2)).collect();
        let filter = self.filter(50);
        self.scopes.pop();
        format!("SELECT {} FROM {from}{filter}", list.join(", "))
    }

    fn kinds(&mut self) -> Vec<ValueKind> {
        (0..=self.dice.below(3))
            .map(|_| {
                let kind = ValueKind::stored(self.dice);
                if kind.is_ordered() { kind } else { ValueKind::Int4 }
            })
            .collect()
    }

    fn union(&mut self) -> String {
        let kinds = self.kinds();
        let mut sql = self.of_kinds(&kinds);
        for _ in 0..=self.dice.below(2) {
            let operator =
                self.one(&["UNION", "UNION ALL", "INTERSECT", "EXCEPT", "UNION", "EXCEPT ALL"]);
            // A branch may have other types of the same family, or literals without a type.
            let branch = match self.dice.below(4) {
                0 => {
                    let list: Vec<String> = kinds
                        .iter()
                        .map(|kind| {
                            if self.dice.once_in(5) {
                                "NULL".to_owned()
                            } else {
                                kind.value(self.dice)
                            }
                        })
                        .collect();
                    format!("SELECT {}", list.join(", "))
                }
                1 => {
                    let near: Vec<ValueKind> = kinds.iter().map(|kind| self.near(*kind)).collect();
                    self.of_kinds(&near)
                }
                _ => self.of_kinds(&kinds),
            };
            sql = format!("{sql} {operator} {branch}");
        }
        let order = self.ending(kinds.len(), true);
        format!("{sql}{order}")
    }

    /// Returns a kind with which a kind has a common type.
    fn near(&mut self, kind: ValueKind) -> ValueKind {
        let all: &[ValueKind] = match kind {
            ValueKind::Int2 | ValueKind::Int4 | ValueKind::Int8 => {
                &[ValueKind::Int2, ValueKind::Int4, ValueKind::Int8, ValueKind::Float8]
            }
            ValueKind::Float4 | ValueKind::Float8 => {
                &[ValueKind::Float8, ValueKind::Int4, ValueKind::Float4]
            }
            ValueKind::Text | ValueKind::Varchar | ValueKind::Char => {
                &[ValueKind::Text, ValueKind::Varchar, ValueKind::Char]
            }
            ValueKind::Date | ValueKind::Timestamp => &[ValueKind::Date, ValueKind::Timestamp],
            _ => return kind,
        };
        all[self.dice.index(all.len())]
    }

    /// Returns a query over a query in FROM, with or without LATERAL.
    fn derived(&mut self) -> String {
        let kinds = self.kinds();
        let outer = self.world.table(self.dice).clone();
        let (outer_alias, alias) = (self.alias(), self.alias());
        let lateral = self.dice.once_in(2);
        if lateral {
            self.scopes.push(scope_of(&outer, &outer_alias));
        }
        let mut inner = self.of_kinds(&kinds);
        if lateral {
            self.scopes.pop();
        }
        if self.dice.once_in(2) {
            let order: Vec<String> = (1..=kinds.len()).map(|place| place.to_string()).collect();
            inner = format!("{inner} ORDER BY {} LIMIT 3", order.join(", "));
        }
        let names: Vec<String> = (0..kinds.len()).map(|place| format!("d{place}")).collect();
        let mut scope = scope_of(&outer, &outer_alias);
        scope.extend(
            names
                .iter()
                .zip(&kinds)
                .map(|(name, kind)| Column { name: format!("{alias}.{name}"), kind: *kind }),
        );
        self.scopes.push(scope);
        let (list, made) = self.list(2);
        let filter = self.filter(40);
        let order = match Self::ordered(&made) {
            true => self.ending(list.len(), true),
            false => String::new(),
        };
        self.scopes.pop();
        let word = if lateral { "LATERAL " } else { "" };
        let join = if lateral && self.dice.once_in(2) { "LEFT JOIN" } else { "CROSS JOIN" };
        let on = if join == "LEFT JOIN" { " ON true" } else { "" };
        format!(
            "SELECT {} FROM {} AS {outer_alias} {join} {word}({inner}) AS {alias} ({}){on}{filter}{order}",
            list.join(", "),
            outer.name,
            names.join(", ")
        )
    }

    fn with(&mut self) -> String {
        if self.dice.once_in(4) {
            let last = 2 + self.dice.below(8);
            let (list, step) = (self.dice.below(9), 1 + self.dice.below(3));
            return format!(
                "WITH RECURSIVE r (n, s) AS (SELECT {list}, 'x'::text UNION ALL SELECT n + {step}, s || n FROM r WHERE n < {last}) \
                 SELECT n, s, length(s) FROM r ORDER BY n"
            );
        }
        let kinds = self.kinds();
        let inner = self.of_kinds(&kinds);
        let names: Vec<String> = (0..kinds.len()).map(|place| format!("w{place}")).collect();
        let columns: Vec<Column> = names
            .iter()
            .zip(&kinds)
            .map(|(name, kind)| Column { name: format!("q.{name}"), kind: *kind })
            .collect();
        self.scopes.push(columns);
        let (list, made) = self.list(2);
        let filter = self.filter(40);
        let order = match Self::ordered(&made) {
            true => self.ending(list.len(), true),
            false => String::new(),
        };
        self.scopes.pop();
        let word = self.one(&["", "", "MATERIALIZED ", "NOT MATERIALIZED "]);
        format!(
            "WITH q ({}) AS {word}({inner}) SELECT {} FROM q{filter}{order}",
            names.join(", "),
            list.join(", ")
        )
    }

    fn distinct_on(&mut self) -> String {
        let from = self.from();
        let kind = ValueKind::stored(self.dice);
        let kind = if kind.is_ordered() { kind } else { ValueKind::Enum };
        let key = self.expr(kind, 1);
        let (value, other) = (self.expr(ValueKind::Int4, 1), self.expr(ValueKind::Text, 1));
        let filter = self.filter(30);
        self.scopes.pop();
        let end = self.one(&["", " DESC", " NULLS FIRST", " DESC NULLS LAST"]);
        format!(
            "SELECT DISTINCT ON ({key}) {key}, {value}, {other} FROM {from}{filter} ORDER BY {key}{end}, {value}, {other} DESC"
        )
    }

    fn values(&mut self) -> String {
        let kinds = self.kinds();
        let rows: Vec<String> = (0..=self.dice.below(3))
            .map(|_| {
                let list: Vec<String> = kinds
                    .iter()
                    .map(|kind| {
                        if self.dice.once_in(6) {
                            "NULL".to_owned()
                        } else {
                            kind.literal(self.dice)
                        }
                    })
                    .collect();
                format!("({})", list.join(", "))
            })
            .collect();
        let order = self.ending(kinds.len(), true);
        format!("VALUES {}{order}", rows.join(", "))
    }

    /// Returns a query with one expression that may fail. All rows are computed, whatever the
    /// plan; there is one at least, since PostgreSQL computes constants without any.
    fn risky_query(&mut self) -> String {
        let table = self.world.first(self.dice).clone();
        let alias = self.alias();
        self.scopes.push(scope_of(&table, &alias));
        let risky = self.risky();
        self.scopes.pop();
        let from = format!("{} AS {alias}", table.name);
        match self.dice.once_in(3) {
            true => {
                let scopes = std::mem::take(&mut self.scopes);
                let risky = self.risky();
                self.scopes = scopes;
                format!("SELECT {risky}")
            }
            false => format!("SELECT {risky} FROM {from}"),
        }
    }
}
