//! Random statements of PostgreSQL's dialect, for both sides.
//!
//! A script is made from a number: it creates a few tables, and then queries, writes and defines
//! at random, in one transaction that is rolled back at its end. Expressions come from a table of
//! templates by the types of their results ([`grammar`]), so a new function of the dialect is a new
//! text there. A hole has another type now and then, so that wrong statements are compared too.
//!
//! Each statement is judged as one of the regression suite. SQL leaves nothing open in it:
//!
//! - An expression inside of a query never fails, whatever its columns have. SQL leaves open
//!   whether a WHERE, a CASE or a join computes an expression before another one, and PostgreSQL
//!   computes constants when it plans. Expressions that may fail stand alone in a SELECT list.
//! - Aggregates whose result has an order have an ORDER BY. A LIMIT comes behind an ORDER BY of all
//!   columns. An UPDATE with FROM finds one row for each row.
//! - Floats are sums of halves, and texts have letters of ASCII, since sums of floats and `upper`
//!   of other letters differ (`docs/sqlite.md`).

mod kinds;
mod world;
mod grammar;
mod expressions;
mod queries;
mod writes;
mod definitions;

use crate::soak::dice::Dice;

use self::expressions::Maker;
use self::world::{Change, Tables};

/// The number of statements of a script.
pub(super) const STATEMENTS: u64 = 150;

/// A script whose statements depend on what came of those before.
pub(super) struct Script {
    dice: Dice,
    world: Tables,
    first: std::vec::IntoIter<String>,
    change: Change,
}

impl Script {
    pub(super) fn new(seed: u64) -> Script {
        let mut dice = Dice::new(seed);
        let (first, world) = world::base(&mut dice);
        Script { dice, world, first: first.into_iter(), change: Change::None }
    }

    /// Returns the next statement. `ran` says whether both sides ran the one before.
    pub(super) fn next(&mut self, ran: bool) -> String {
        let change = std::mem::replace(&mut self.change, Change::None);
        if ran {
            self.world.apply(change);
        }
        if let Some(statement) = self.first.next() {
            return statement;
        }
        let mut maker =
            Maker { dice: &mut self.dice, world: &mut self.world, scopes: Vec::new(), aliases: 0 };
        match maker.dice.below(100) {
            0..=67 => maker.query(),
            68..=85 => maker.write(),
            _ => {
                let (statement, change) = maker.definition();
                self.change = change;
                statement
            }
        }
    }
}
