//! State of a session, and how long a client keeps its server for it.

mod pins;
mod functions;
mod looks;
mod statements;
mod unmanaged;
mod modes;
mod notifications;
