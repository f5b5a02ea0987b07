//! Logins: who is let in, by which rules, and with what.

mod login;
mod auth_query;
mod trust;
pub(crate) mod hba;
mod hba_tls;
mod door;
mod start_up;
