//! The hot path: messages from a client to its server, and replies back.

pub(crate) mod words;
pub(crate) mod pipe;
pub(crate) mod internal;
pub(crate) mod copies;
pub(crate) mod link;
pub(crate) mod texts;
pub(crate) mod writes;
pub(crate) mod message;
pub(crate) mod turn;
pub(crate) mod resend;
pub(crate) mod follow;
pub(crate) mod learn;
pub(crate) mod restore;
pub(crate) mod look;
pub(crate) mod beside;
pub(crate) mod knowledge;
pub(crate) mod unread;
pub(crate) mod to_server;
pub(crate) mod effects;
pub(crate) mod reader;
pub(crate) mod reports;
pub(crate) mod refused;
pub(crate) mod errors;
pub(crate) mod to_client;
pub(crate) mod to_nobody;
