//! Sessions as clients see them, byte by byte.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod alone;
mod arrays;
mod catalog;
mod client;
mod compiles;
mod dialect;
mod enum_changes;
mod enums;
mod json;
mod keys;
mod killed;
mod literals;
mod memory;
mod messages;
mod migrations;
mod moved;
mod pieces;
mod power;
mod queries;
mod rest;
mod schemas;
mod sequences;
mod slow;
mod standard;
mod temporary;
mod transactions;
mod types;
mod unreadable;
