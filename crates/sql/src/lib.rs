//! What an SQL text is, as far as a proxy must know.
//!
//! What: [`scan`] says what a query string may do to its session and which statement it is;
//! [`set_names`] which parameters it sets; [`vacated`] which databases it wants left by everybody;
//! [`tag`] what a command's completion says was done; [`template`] what a text has in common with others that
//! differ in their literals; [`lex`] gives PostgreSQL's own
//! token boundaries.
//!
//! Why: in transaction pooling a server session goes from client to client, and text is all a
//! proxy sees of what clients
//! do to it.
//!
//! What always holds: bytes in, facts out. No database, no state, no panic on any bytes; linear
//! time; only [`Name::fold`],
//! [`set_names`], [`vacated`], [`rules`] and the cold part of [`template`] may allocate. Every judgement about a
//! word is a row of one table, printed by [`rules`].
//!
//! What it does not do: parse. It over-approximates, and cannot see into functions, procedures, DO and triggers.

#![forbid(unsafe_code)]

mod name;

pub mod lex;

mod traits;

mod rules;

mod ahead;

mod calls;

mod set;

mod scan;

mod vacate;

mod tag;

pub mod template;

pub use calls::VAGUE;
pub use name::{MAX_NAME, Name};
pub use rules::{RuleText, rules};
pub use scan::{Kind, Scan, kinds, scan, scan_with};
pub use set::{ANY_PARAMETER, SetNames, set_names, set_names_with, set_names_within};
pub use tag::{Tag, changes_code, tag};
pub use traits::Traits;
pub use vacate::vacated;
