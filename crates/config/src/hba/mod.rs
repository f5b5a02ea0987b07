//! Host-based authentication: the rules of `pg_hba.conf` and the maps of `pg_ident.conf`.
//!
//! The syntax is that of PostgreSQL 16, whose words the errors use as well. A text becomes lines of
//! tokens (`tokens`), a line becomes a [`Rule`] or a line of a map, and [`Hba`] finds the first
//! rule that applies to a connection.
//!
//! What always holds: a text with an error gives no rules at all, so a line that is left out never
//! opens a door that a later line would have kept shut.
//!
//! Not here: what follows from a rule, which the crate `pg` decides; reading files and interfaces,
//! which a [`Machine`](crate::Machine) does. Names of hosts are refused: to look a name up, a login
//! would have to wait for a name server, and an attacker may answer in its place.

mod problem;
mod tokens;
mod groups;
mod names;
mod address;
mod rule;
mod ident;
mod rules;
#[cfg(test)]
mod tests;

pub use groups::Groups;
pub use rule::{CertificateName, ClientCertificate, HbaMethod, Rule};
pub use rules::{Hba, Newcomer};

pub(crate) use rules::{Texts, read};
pub(crate) use tokens::Source;
