//! The sign of life that systemd wants (`WatchdogSec=`): given while all cores work.

use std::io;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use crate::state::State;

/// Begins to give signs of life, if the supervisor wants them: two in each of its periods. A core
/// that does not answer within half a period leaves one out.
///
/// # Errors
/// If the system refuses a thread.
pub(crate) fn start(state: Arc<State>) -> io::Result<()> {
    let Some(period) = state.supervising.watchdog() else { return Ok(()) };
    let half = (period / 2).max(Duration::from_millis(1));
    thread::Builder::new().name("watchdog".to_owned()).spawn(move || {
        loop {
            let start = Instant::now();
            if state.all_cores_answer(half) {
                state.supervising.alive();
            } else {
                tracing::warn!(cause = "watchdog", "a core has not answered for {half:?}");
            }
            thread::sleep(half.saturating_sub(start.elapsed()));
        }
    })?;
    Ok(())
}
