//! The search for a shorter session that still fails.

use std::thread;
use std::time::Duration;

use crate::bench::session;

use super::door::Door;
use super::hostile::{Act, Story};
use super::wire::Wire;

/// Attempts at each session, since the outcome depends on timing.
const TRIES: u32 = 4;
/// The most sessions of a search.
const SESSIONS_MAX: u32 = 600;

/// Returns the shortest session found that fails, as `is_bad` says after each session; `None` if
/// the session does not fail again.
pub(super) fn shortest(
    door: Door<'_>,
    story: &Story,
    is_bad: &mut dyn FnMut() -> bool,
) -> Option<Story> {
    let mut left = SESSIONS_MAX;
    let mut fails = |acts: &[Act]| {
        (0..TRIES).any(|_| {
            left = left.saturating_sub(1);
            left > 0 && {
                repeat(door, acts);
                is_bad()
            }
        })
    };
    let mut acts = split(story);
    if !fails(&acts) {
        return None;
    }
    let mut size = acts.len() / 2;
    while size > 0 {
        let mut at = 1;
        while at < acts.len() {
            let mut fewer = acts.clone();
            fewer.drain(at..(at + size).min(acts.len()));
            if fails(&fewer) {
                acts = fewer;
            } else {
                at += size;
            }
        }
        size /= 2;
    }
    Some(Story(acts))
}

/// Returns the startup packet and then one action for each message, as far as the bytes are
/// messages.
fn split(story: &Story) -> Vec<Act> {
    let mut acts = Vec::new();
    let mut bytes = Vec::new();
    for (number, act) in story.0.iter().enumerate() {
        match act {
            Act::Send(sent) if number > 0 => bytes.extend_from_slice(sent),
            other => {
                flush(&mut bytes, &mut acts);
                acts.push(other.clone());
            }
        }
    }
    flush(&mut bytes, &mut acts);
    acts
}

fn flush(bytes: &mut Vec<u8>, acts: &mut Vec<Act>) {
    while let Some(head) = bytes.first_chunk::<5>() {
        let [_, length @ ..] = *head;
        let end = u32::from_be_bytes(length) as usize + 1;
        if end < 5 || end > bytes.len() {
            break;
        }
        acts.push(Act::Send(bytes.drain(..end).collect()));
    }
    if !bytes.is_empty() {
        acts.push(Act::Send(std::mem::take(bytes)));
    }
}

fn repeat(door: Door<'_>, acts: &[Act]) {
    let Ok(mut wire) = Wire::open(door, 1) else { return };
    let mut bytes = Vec::new();
    for act in acts {
        match act {
            Act::Send(sent) => bytes.extend_from_slice(sent),
            Act::Wait => {
                let _ = wire.write(&std::mem::take(&mut bytes)).and_then(|()| wire.until_quiet());
            }
            Act::Cancel(key) => {
                let _ = wire.write(&std::mem::take(&mut bytes));
                let _ = session::cancel(door.port, key);
            }
        }
    }
    let _ = wire.write(&bytes).and_then(|()| wire.until_quiet());
    drop(wire);
    thread::sleep(Duration::from_millis(30));
}
