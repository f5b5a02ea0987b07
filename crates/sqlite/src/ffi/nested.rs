//! Statements that a function runs on the connection that calls it.

use rusqlite::functions::Context;

/// Runs `work` on the connection that calls a function. The statements of `work` belong to the
/// transaction of the one that calls.
///
/// # Errors
/// Those of `work`.
pub fn nested<T>(
    call: &Context<'_>,
    work: impl FnOnce(&rusqlite::Connection) -> rusqlite::Result<T>,
) -> rusqlite::Result<T> {
    // SAFETY: the reference lives no longer than the call, and stays on its thread.
    let connection = unsafe { call.get_connection()? };
    work(&connection)
}
