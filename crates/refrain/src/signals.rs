//! Signals, as orders.
//!
//! | signal | order |
//! |---|---|
//! | HUP | read the configuration again |
//! | INT, TERM | let clients finish their transactions, then end; the second one ends at once |
//! | QUIT | end at once |
//! | USR1, USR2 | pause all databases, resume them |
//!
//! They are those of PgBouncer, except that TERM does not wait for clients to leave on their own: an
//! orchestrator that sends it means to end the process within seconds.

use std::io;
use std::sync::mpsc::Sender;
use std::thread;

use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::Signals;

use crate::supervisor::SupervisorCommand;

/// Turns signals into orders from now on.
///
/// # Errors
/// Where the system takes no handler or no thread.
pub(crate) fn watch(orders: Sender<SupervisorCommand>) -> io::Result<()> {
    let mut signals = Signals::new([SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2])?;
    thread::Builder::new().name("signals".to_owned()).spawn(move || {
        for signal in signals.forever() {
            let order = match signal {
                SIGHUP => SupervisorCommand::Reload(None),
                SIGUSR1 => SupervisorCommand::Pause,
                SIGUSR2 => SupervisorCommand::Resume,
                SIGQUIT => SupervisorCommand::Stop,
                _ => SupervisorCommand::Drain,
            };
            if orders.send(order).is_err() {
                return;
            }
        }
    })?;
    Ok(())
}
