//! Texts of about 65,536 bytes: a proxy may look at so much of a text and no further.

use super::{Draft, Mode, texts};
use crate::rng::Rng;

/// The length about which the texts vary.
const BOUND: usize = 65_536;

/// Commands whose effect shows afterwards.
const EFFECTS: &[&str] = &[
    "set work_mem = '{n}1MB'",
    "set local work_mem = '{n}1MB'",
    "select set_config('work_mem', '{n}2MB', false)",
    "do $$ begin perform set_config('work_mem', '{n}3MB', false); end $$",
    "select shr.leave_memory({n})",
    "set search_path = {s}",
    "set app.t = '{n}'",
    "reset all",
    "discard all",
    "select {n}",
    "create temp table tt (a int)",
    "set role diff_role",
    "listen ch{i}",
    "prepare q{n} as select {n}",
    "select pg_advisory_lock({i})",
];

/// The number of [`EFFECTS`] that tie no client to its server.
const LASTING: usize = 10;

/// Returns a command with so much around it that the command, or the text, begins or ends within a
/// few bytes of [`BOUND`], or far behind it. `own` is a command of the step, if it has one.
pub(super) fn long(rng: &mut Rng, own: Option<Vec<u8>>, draft: &Draft<'_>) -> Vec<u8> {
    let effects = if draft.mode == Mode::Pinning { EFFECTS } else { &EFFECTS[..LASTING] };
    let command = match own {
        Some(command) if rng.chance(30) => command,
        _ => texts::fill(rng.pick::<&str>(effects), draft.client, rng),
    };
    let at = match rng.weighted(&[3, 6, 1]) {
        0 => BOUND - 1 + rng.below(3),
        1 => BOUND - 12 + rng.below(24),
        _ => BOUND + rng.below(20_000),
    };
    let ends = at.saturating_sub(command.len());
    match rng.below(7) {
        0 => [padding("/*", "*/", at), command].concat(),
        1 => [padding("/*", "*/", ends), command].concat(),
        2 => [padding("--", "\n", at), command].concat(),
        3 => [padding("/* /*", "*/ */", ends), command].concat(),
        4 => [command, padding(" /*", "*/", ends)].concat(),
        5 => [padding("select '", "'; ", at), command].concat(),
        _ => {
            let set = "set_config('work_mem', '5MB', false)";
            let text = format!("select length('{}'), {set}", "x".repeat(at - 20));
            text.into_bytes()
        }
    }
}

/// Returns this many bytes that begin and end as given.
fn padding(begin: &str, end: &str, length: usize) -> Vec<u8> {
    let middle = length.saturating_sub(begin.len() + end.len());
    [begin, &"x".repeat(middle), end].concat().into_bytes()
}
