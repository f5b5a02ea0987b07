//! Servers: they come and go, and so do databases, hosts and users.

mod cancel;
mod lifecycle;
mod removed;
mod replication;
mod moved;
mod room;
mod hosts;
mod standbys;
mod silence;
mod forgotten;
