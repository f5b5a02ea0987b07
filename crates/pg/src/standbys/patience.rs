//! Patience: when a server is asked again that has not said how far it is.

/// Time after which a question without an answer is lost, in microseconds.
pub(crate) const PATIENCE_US: u64 = 1_000_000;
/// Doublings of that time, at most, while no question is answered.
const DOUBLINGS_MAX: u32 = 5;

/// Returns the time before the next question, in microseconds, behind so many in a row that were
/// not answered. Without the right to ask, for example, the next one is as vain.
pub(crate) fn pause_after(unanswered: u32) -> u64 {
    PATIENCE_US << unanswered.saturating_sub(1).min(DOUBLINGS_MAX)
}
