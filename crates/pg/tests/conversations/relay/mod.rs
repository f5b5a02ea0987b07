//! One module for each file of `src/relay` that decides something.

mod beside;
mod copies;
mod described;
mod effects;
mod figures;
mod errors;
mod follow;
mod reader;
mod internal;
mod knowledge;
mod learn;
mod look;
mod refused;
mod replayed;
mod reports;
mod restore;
mod run;
mod texts;
mod to_client;
mod to_nobody;
mod to_server;
mod unnamed_run;
mod unread;
mod writes;
mod turn;
mod words;
