//! Conversations in memory: tests of the engine's decisions, each written as a dialogue of
//! messages.
//!
//! Each file of `src/messages`, `src/relay`, `src/autoprepare`, `src/login` and `src/step` that
//! decides something has a module of the same name here (a rule of `cargo xtask tidy`). [`talk`]
//! holds the conversations.

mod talk;

mod messages;
mod relay;
mod autoprepare;
mod login;
mod step;
