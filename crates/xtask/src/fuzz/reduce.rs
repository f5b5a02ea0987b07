//! Makes a story that ended badly shorter: what can be left out is left out.

use std::thread;
use std::time::Duration;

use crate::bench::session;

use super::hostile::{Act, Story};
use super::wire::Wire;

/// How often a story is told to see whether it still ends badly: much depends on what comes first.
const TRIES: u32 = 4;
/// Stories told in all.
const TOLD_MAX: u32 = 600;

/// The shortest story found that ends badly, as `is_bad` says after each; none if it does not when told again.
pub(super) fn shortest(
    port: u16,
    story: &Story,
    is_bad: &mut dyn FnMut() -> bool,
) -> Option<Story> {
    let mut left = TOLD_MAX;
    let mut ends_badly = |acts: &[Act]| {
        (0..TRIES).any(|_| {
            left = left.saturating_sub(1);
            left > 0 && {
                tell(port, acts);
                is_bad()
            }
        })
    };
    let mut acts = split(story);
    if !ends_badly(&acts) {
        return None;
    }
    let mut size = acts.len() / 2;
    while size > 0 {
        let mut at = 1;
        while at < acts.len() {
            let mut fewer = acts.clone();
            fewer.drain(at..(at + size).min(acts.len()));
            if ends_badly(&fewer) {
                acts = fewer;
            } else {
                at += size;
            }
        }
        size /= 2;
    }
    Some(Story(acts))
}

/// The startup packet, then a message each, as far as the bytes are messages.
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

fn tell(port: u16, acts: &[Act]) {
    let Ok(mut wire) = Wire::open(port) else { return };
    let mut bytes = Vec::new();
    for act in acts {
        match act {
            Act::Send(sent) => bytes.extend_from_slice(sent),
            Act::Wait => {
                let _ = wire.write(&std::mem::take(&mut bytes)).and_then(|()| wire.until_quiet());
            }
            Act::Cancel(key) => {
                let _ = wire.write(&std::mem::take(&mut bytes));
                let _ = session::cancel(port, key);
            }
        }
    }
    let _ = wire.write(&bytes).and_then(|()| wire.until_quiet());
    drop(wire);
    thread::sleep(Duration::from_millis(30));
}
