//! Signals, which become commands to the supervisor.
//!
//! | signal | command |
//! |---|---|
//! | HUP | read the configuration again |
//! | INT, TERM | let clients finish their transactions, then end; the second one ends at once |
//! | QUIT | end at once |
//! | USR1, USR2 | pause all databases, resume them |
//!
//! The signals are those of PgBouncer, except that TERM does not wait until clients leave on their
//! own: an orchestrator that sends TERM expects the process to end within seconds.

use std::io;
use std::sync::mpsc::Sender;
use std::thread;

use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::Signals;

use crate::supervisor::SupervisorCommand;

/// Sends a command for each signal from now on.
///
/// # Errors
/// If the system refuses a signal handler or a thread.
pub(crate) fn watch(commands: Sender<SupervisorCommand>) -> io::Result<()> {
    let mut signals = Signals::new([SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2])?;
    thread::Builder::new().name("signals".to_owned()).spawn(move || {
        for signal in signals.forever() {
            let command = match signal {
                SIGHUP => SupervisorCommand::Reload(None),
                SIGUSR1 => SupervisorCommand::Pause,
                SIGUSR2 => SupervisorCommand::Resume,
                SIGQUIT => SupervisorCommand::Stop,
                _ => SupervisorCommand::Drain,
            };
            if commands.send(command).is_err() {
                return;
            }
        }
    })?;
    Ok(())
}
