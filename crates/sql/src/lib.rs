//! Facts about an SQL text, as far as a proxy must know them.
//!
//! What: [`scan()`] says how a query string may change its session and which statement it is;
//! [`Rest`] what the rest of a text may do that arrives in pieces; [`set_names`] which parameters
//! it sets; [`databases_to_drain`] which databases must have no other connections for it; [`tag()`]
//! what a completed command has done; [`normalize`] which part of a text it shares with texts that
//! differ only in their literals; [`reads`] why a statement is not a read, or its result not to be
//! kept; [`writes`] and [`effect`] what it may write, and [`hidden`] what it may run that it does
//! not name; [`moments`] which values depend on the present; [`comments`] what a text is without
//! its comments, [`literals`] without its data, and [`hint`] what comments ask of the result cache;
//! [`lex`] gives PostgreSQL's own token boundaries.
//!
//! Why: in transaction pooling a server session goes from client to client, and the SQL text is all
//! that a proxy sees of a client's changes to the session.
//!
//! What always holds: functions take bytes and return facts. They use no database and keep no
//! state, no bytes make them panic, and they take linear time; only [`Name::fold`], [`set_names`],
//! [`databases_to_drain`], [`rules()`] and the cold part of [`normalize`] may allocate. Every
//! judgement about a word is a row of one table, printed by [`rules()`].
//!
//! What it does not do: parse. It over-approximates, and does not see into functions, procedures,
//! DO and triggers.

#![forbid(unsafe_code)]

mod name;

pub mod lex;

pub mod comments;
pub mod literals;

pub mod hint;

pub mod moments;

mod traits;

mod rules;

mod ahead;

mod calls;

mod set;

mod scan;

mod drain;

mod rest;

mod tag;

pub mod normalize;

pub mod reads;

pub mod writes;
pub mod shared;

pub mod effect;

pub mod hidden;

pub use calls::VAGUE;
pub use drain::databases_to_drain;
pub use name::{MAX_NAME, Name};
pub use rest::{Behind, Rest, has_word};
pub use rules::{RuleText, rules};
pub use scan::{Kind, Scan, kinds, scan, scan_with};
pub use set::{
    ANY_PARAMETER, SetNames, placeholders_within, reset_by_call, reset_locally, set_names,
    set_names_within,
};
pub use tag::{Tag, changes_code, tag};
pub use traits::Traits;
