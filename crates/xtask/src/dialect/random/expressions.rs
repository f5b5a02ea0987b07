//! Random expressions.

use crate::soak::dice::Dice;

use super::grammar::{GRAMMAR, Template};
use super::kinds::ValueKind;
use super::world::{Column, Table, Tables};

/// The columns that an expression may name: SQL and kind.
pub(super) type Scope = Vec<Column>;

/// The generator of expressions of a statement.
pub(super) struct Maker<'a> {
    pub(super) dice: &'a mut Dice,
    pub(super) world: &'a mut Tables,
    /// The columns of the queries around, then of the innermost one.
    pub(super) scopes: Vec<Scope>,
    /// Number of aliases that were given.
    pub(super) aliases: u64,
}

impl Maker<'_> {
    pub(super) fn alias(&mut self) -> String {
        self.aliases += 1;
        format!("a{}", self.aliases)
    }

    /// Returns one of these.
    pub(super) fn one<'b>(&mut self, all: &[&'b str]) -> &'b str {
        all[self.dice.index(all.len())]
    }

    /// Returns one of these templates.
    pub(super) fn template(&mut self, all: &[Template]) -> Template {
        all[self.dice.index(all.len())]
    }

    /// Returns a column of a kind in reach.
    fn column(&mut self, kind: ValueKind) -> Option<String> {
        let inner = self.scopes.len().saturating_sub(1);
        for (depth, scope) in self.scopes.iter().enumerate().rev() {
            if depth < inner && !self.dice.once_in(3) {
                continue;
            }
            let all: Vec<&Column> = scope.iter().filter(|column| column.kind == kind).collect();
            if !all.is_empty() {
                return Some(all[self.dice.index(all.len())].name.clone());
            }
        }
        None
    }

    fn leaf(&mut self, kind: ValueKind) -> String {
        match self.column(kind) {
            Some(column) if !self.dice.once_in(4) => column,
            _ => kind.literal(self.dice),
        }
    }

    /// Returns an expression that never fails.
    pub(super) fn expr(&mut self, kind: ValueKind, depth: u32) -> String {
        if depth == 0 || self.dice.once_in(3) {
            return self.leaf(kind);
        }
        if kind == ValueKind::Bool && self.dice.once_in(12) {
            return self.subquery_test(depth);
        }
        if self.dice.once_in(25)
            && kind.is_ordered()
            && !matches!(kind, ValueKind::Bool | ValueKind::Uuid | ValueKind::Bytea)
        {
            return self.scalar_subquery(kind, depth);
        }
        let templates = GRAMMAR.of(kind);
        if templates.is_empty() {
            return self.leaf(kind);
        }
        let template = self.one(&templates);
        self.filled(template, depth - 1)
    }

    /// Fills the holes of a template.
    pub(super) fn filled(&mut self, template: &str, depth: u32) -> String {
        let reads = ["::", "date_", "extract", "'"].iter().any(|part| template.contains(part));
        let (mut made, mut last) = (String::new(), String::new());
        let mut letters = template.chars().peekable();
        while let Some(letter) = letters.next() {
            if letter != '{' {
                made.push(letter);
                continue;
            }
            let inside: Vec<char> = letters.clone().take(2).collect();
            match inside[..] {
                ['=', '}'] => made.push_str(&last),
                ['k', '}'] => made.push_str(&self.dice.below(10).to_string()),
                [of, '}'] if ValueKind::of(of).is_some() => {
                    // Another kind: most such statements are refused by both. What reads a text
                    // may fail when it runs.
                    let other = !reads && self.dice.once_in(300);
                    let kind = if other {
                        ValueKind::any(self.dice)
                    } else {
                        ValueKind::of(of).unwrap_or(ValueKind::Int4)
                    };
                    last = self.expr(kind, depth);
                    made.push_str(&last);
                }
                // A brace of a literal, as in '{1,5}'.
                _ => {
                    made.push(letter);
                    continue;
                }
            }
            letters.next();
            letters.next();
        }
        made
    }

    /// Returns an expression that may fail, or that PostgreSQL may refuse.
    pub(super) fn risky(&mut self) -> String {
        let (_, template) = self.template(&GRAMMAR.risky);
        self.filled(template, 1)
    }

    /// Returns an aggregate with its kind. Its arguments name columns of the innermost query.
    pub(super) fn aggregate(&mut self) -> (String, ValueKind) {
        let (kind, template) = self.template(&GRAMMAR.aggregates);
        let around: Vec<Scope> = self.scopes.drain(..self.scopes.len().saturating_sub(1)).collect();
        let made = self.filled(template, 1);
        self.scopes.splice(..0, around);
        (made, kind.unwrap_or(ValueKind::Int4))
    }

    /// Runs a function with a table's columns as the innermost scope; returns also the item of
    /// FROM.
    pub(super) fn within<T>(&mut self, inside: impl FnOnce(&mut Self) -> T) -> (String, T) {
        let table = self.world.table(self.dice).clone();
        let alias = self.alias();
        self.scopes.push(scope_of(&table, &alias));
        let made = inside(self);
        self.scopes.pop();
        (format!("{} AS {alias}", table.name), made)
    }

    fn subquery_test(&mut self, depth: u32) -> String {
        let kind =
            *[ValueKind::Int4, ValueKind::Text, ValueKind::Date, ValueKind::Enum, ValueKind::Int8]
                .get(self.dice.index(5))
                .unwrap_or(&ValueKind::Int4);
        let left = self.expr(kind, depth - 1);
        let (from, (value, condition)) = self
            .within(|maker| (maker.expr(kind, depth - 1), maker.expr(ValueKind::Bool, depth - 1)));
        match self.dice.below(7) {
            0 => format!("EXISTS (SELECT 1 FROM {from} WHERE {condition})"),
            1 => format!("NOT EXISTS (SELECT {value} FROM {from} WHERE {condition})"),
            2 => format!("({left} IN (SELECT {value} FROM {from}))"),
            3 => format!("({left} NOT IN (SELECT {value} FROM {from} WHERE {condition}))"),
            4 => format!("({left} = ANY (SELECT {value} FROM {from} WHERE {condition}))"),
            5 => format!("({left} < ALL (SELECT {value} FROM {from} WHERE {condition}))"),
            _ => format!("({left} >= ANY (SELECT {value} FROM {from}))"),
        }
    }

    fn scalar_subquery(&mut self, kind: ValueKind, depth: u32) -> String {
        let (from, (value, condition)) = self
            .within(|maker| (maker.expr(kind, depth - 1), maker.expr(ValueKind::Bool, depth - 1)));
        match self.dice.below(3) {
            0 => format!("(SELECT min({value}) FROM {from})"),
            1 => format!("(SELECT max({value}) FROM {from} WHERE {condition})"),
            _ => format!("(SELECT {value} FROM {from} WHERE {condition} ORDER BY 1 LIMIT 1)"),
        }
    }
}

/// Returns the columns of a table under an alias.
pub(super) fn scope_of(table: &Table, alias: &str) -> Scope {
    let named =
        |column: &Column| Column { name: format!("{alias}.{}", column.name), kind: column.kind };
    table.columns.iter().map(named).collect()
}
