//! Spoiled conversations: messages are left out, repeated, exchanged, cut or invented.

use crate::records::HEADER_BYTES;
use crate::soak::dice::Dice;

use super::say::{Message, message};

/// Letters of messages, and some letters that no message has.
const LETTERS: &[u8] = b"PBDECSHQFdcfXpPBDECSHQFdcf\0Zz1";

/// The degree to which a conversation is spoiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spoilt {
    /// Every message is whole and has a known letter.
    Whole,
    /// A reader may no longer find where messages begin.
    Torn,
}

/// Spoils a list of messages. The result still is a list of messages.
pub(super) fn messages(dice: &mut Dice, all: &mut Vec<Message>) {
    for _ in 0..=dice.below(3) {
        if all.is_empty() {
            return;
        }
        let (one, other) = (dice.index(all.len()), dice.index(all.len()));
        match dice.below(9) {
            0 => drop(all.remove(one)),
            1 => all.insert(other, all[one].clone()),
            2 | 3 => all.swap(one, other),
            4 => all.truncate(one + 1),
            5 => all.insert(one, message(b"SHcS"[dice.index(4)], b"")),
            6 => body(dice, &mut all[one].body),
            7 => {
                let letters = b"PBDECSHQFdcf";
                all[one].letter = letters[dice.index(letters.len())];
            }
            _ => {
                let tail = all.split_off(one);
                all.splice(0..0, tail);
            }
        }
    }
}

/// Renames the unnamed portal in messages without a Bind of it in the same segment. PostgreSQL 15
/// itself crashes if one uses the unnamed portal that a failed Query left behind, and all sessions
/// end.
pub(super) fn spare_postgresql(all: &mut [Message]) {
    let mut bound = false;
    for message in all {
        match (message.letter, message.body.first()) {
            (b'B', Some(0)) => bound = true,
            (b'Q' | b'S', _) => bound = false,
            (b'E', Some(0)) if !bound => message.body.insert(0, b'p'),
            (b'D', Some(b'P')) if !bound && message.body.get(1) == Some(&0) => {
                message.body.insert(1, b'p');
            }
            _ => {}
        }
    }
}

/// Spoils the body of a message. The length still fits.
fn body(dice: &mut Dice, body: &mut Vec<u8>) {
    match dice.below(5) {
        0 => body.clear(),
        1 => body.truncate(dice.index(body.len() + 1)),
        2 => body.extend((0..=dice.below(9)).map(|_| dice.byte())),
        3 if !body.is_empty() => {
            let at = dice.index(body.len());
            body[at] = dice.byte();
        }
        _ => body.push(0),
    }
}

/// Spoils bytes: lengths, letters, and the begin and end of messages.
pub(super) fn bytes(dice: &mut Dice, bytes: &mut Vec<u8>) {
    for _ in 0..=dice.below(2) {
        if bytes.len() < 6 {
            return;
        }
        let at = dice.index(bytes.len() - 5);
        match dice.below(7) {
            0 => bytes[at] = dice.byte(),
            1 => bytes.truncate(at),
            2 => drop(bytes.drain(at..at + 3)),
            3 => {
                let noise: Vec<u8> = (0..dice.below(40)).map(|_| dice.byte()).collect();
                bytes.splice(at..at, noise);
            }
            4 => bytes[at + 1..at + 5].copy_from_slice(&length(dice).to_be_bytes()),
            5 => bytes[1..5].copy_from_slice(&length(dice).to_be_bytes()),
            _ => bytes[at] = LETTERS[dice.index(LETTERS.len())],
        }
    }
}

/// The damage of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Damage {
    /// A byte of its contents is another one, or the record comes twice: the peer must refuse it.
    Refused,
    /// It is not whole, or its header is another one.
    Torn,
}

/// Spoils a record.
pub(super) fn record(dice: &mut Dice, record: &mut Vec<u8>) -> Damage {
    let body = HEADER_BYTES + dice.index(record.len() - HEADER_BYTES);
    match dice.below(5) {
        0 | 1 => record[body] ^= 1 << dice.below(8),
        2 => record.extend_from_within(..),
        3 => {
            record.truncate(body);
            return Damage::Torn;
        }
        _ => {
            record[dice.index(HEADER_BYTES)] ^= 1 << dice.below(8);
            return Damage::Torn;
        }
    }
    Damage::Refused
}

/// Returns a length that a message may claim to have.
pub(super) fn length(dice: &mut Dice) -> u32 {
    let odd = [0, 1, 3, 4, 5, 8, 0xffff, 0x10_0000, 0x3fff_ffff, 0x7fff_ffff, u32::MAX];
    odd[dice.index(odd.len())]
}
