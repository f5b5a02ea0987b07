//! Hostile clients: their conversations begin well and are then spoiled.

use std::fmt::Write as _;

use anyhow::{Result, bail, ensure};

use crate::bench::session;
use crate::soak::dice::Dice;

use super::door::Door;
use super::say::{Message, conversation, message, query};
use super::spoil::{self, Damage, Spoilt};
use super::tally::Tally;
use super::wire::Wire;

/// The alert bad_record_mac.
const BAD_RECORD: &str = "alert [2, 20]";

/// The database of a hostile client.
#[derive(Clone, Copy, Debug)]
pub(super) struct Target<'a> {
    pub(super) door: Door<'a>,
    pub(super) database: &'a str,
    /// Whether its server is PostgreSQL. Then a session whose messages were all whole must be alive
    /// at its end.
    pub(super) is_sound: bool,
}

/// An action of a client.
#[derive(Clone, Debug)]
pub(super) enum Act {
    /// Sends bytes, which are whole messages unless the session is torn.
    Send(Vec<u8>),
    /// Waits until no reply comes for a moment.
    Wait,
    /// Sends a cancel request with this key.
    Cancel((u32, Vec<u8>)),
}

/// All actions of a client's session so far, for a report or a repetition.
#[derive(Clone, Debug, Default)]
pub(super) struct Story(pub(super) Vec<Act>);

impl std::fmt::Display for Story {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|act| match act {
            Act::Send(bytes) => writeln!(f, "  sends {}", shown(bytes)),
            Act::Wait => writeln!(f, "  waits"),
            Act::Cancel(_) => writeln!(f, "  cancels"),
        })
    }
}

fn shown(bytes: &[u8]) -> String {
    let mut text = String::new();
    for byte in bytes.iter().take(4000) {
        let _ = write!(text, "{}", std::ascii::escape_default(*byte));
    }
    text
}

/// Runs sessions one after the other until the run is over, and calls `look` after each.
pub(super) fn run(target: Target<'_>, seed: u64, tally: &Tally, mut look: impl FnMut(u16, &Story)) {
    let mut dice = Dice::new(seed);
    while !tally.is_over() {
        let mut story = Story::default();
        let mut port = 0;
        if let Err(error) = session(target, &mut dice, tally, &mut story, &mut port) {
            let database = target.database;
            tally.wrong.add(format!("client of {database} at port {port}: {error:#}\n{story}"));
        }
        look(port, &story);
    }
}

fn session(
    target: Target<'_>,
    dice: &mut Dice,
    tally: &Tally,
    story: &mut Story,
    port: &mut u16,
) -> Result<()> {
    let mut wire = Wire::open(target.door, dice.below(2))?;
    *port = wire.own_port();
    tally.sessions.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let mut state = open(target, dice, &mut wire, story)?;
    for _ in 0..=dice.below(25) {
        if wire.is_over || tally.is_over() {
            break;
        }
        state = round(dice, &mut wire, tally, story, state)?;
        if dice.once_in(40) && spoil_record(dice, &mut wire, tally, state)? {
            return Ok(());
        }
    }
    end(target, dice, &mut wire, tally, state)
}

/// Sends the startup packet, spoiled now and then.
fn open(target: Target<'_>, dice: &mut Dice, wire: &mut Wire, story: &mut Story) -> Result<Spoilt> {
    let mut packet = startup(target.database);
    let torn = dice.once_in(40);
    if torn {
        match dice.below(3) {
            0 => packet[..4].copy_from_slice(&spoil::length(dice).to_be_bytes()),
            1 => {
                packet.splice(0..0, [0, 0, 0, 8, 4, 0xd2, 0x16, 0x2f]).for_each(drop);
                wire.asks_first = true;
            }
            _ => spoil::bytes(dice, &mut packet),
        }
    }
    story.0.push(Act::Send(packet.clone()));
    wire.write(&packet)?;
    if torn {
        return Ok(Spoilt::Torn);
    }
    if dice.once_in(2) {
        let done = wire.until(|all| all.iter().any(|(letter, _)| matches!(letter, b'Z' | b'E')))?;
        ensure!(done, "a login gets no reply");
    }
    Ok(Spoilt::Whole)
}

/// Returns a first packet for a database.
pub(super) fn startup(database: &str) -> Vec<u8> {
    let pairs = format!("user\0postgres\0database\0{database}\0\0");
    let length = u32::try_from(pairs.len() + 8).unwrap_or(0);
    [&length.to_be_bytes()[..], &196_608u32.to_be_bytes(), pairs.as_bytes()].concat()
}

fn round(
    dice: &mut Dice,
    wire: &mut Wire,
    tally: &Tally,
    story: &mut Story,
    mut state: Spoilt,
) -> Result<Spoilt> {
    let mut all = conversation(dice);
    if dice.once_in(3) {
        spoil::messages(dice, &mut all);
    }
    spoil::spare_postgresql(&mut all);
    // The proxy refuses a Sync or Flush with a body, and cannot say so in the middle of a message.
    if all.iter().any(|one| matches!(one.letter, b'S' | b'H') && !one.body.is_empty()) {
        state = Spoilt::Torn;
    }
    tally.sent(all.len());
    let mut bytes = Vec::new();
    all.iter().for_each(|message| message.write(&mut bytes));
    if dice.once_in(60) {
        spoil::bytes(dice, &mut bytes);
        state = Spoilt::Torn;
    }
    for piece in pieces(dice, &bytes) {
        story.0.push(Act::Send(piece.to_vec()));
        wire.write(piece)?;
        if dice.once_in(3) {
            wire.take_in()?;
        }
    }
    if dice.once_in(30) {
        cancel(dice, wire, story);
    }
    match dice.below(12) {
        0 => {
            story.0.push(Act::Wait);
            wire.until_quiet()?;
        }
        1..4 => {}
        _ => drop(wire.take_in()?),
    }
    Ok(state)
}

/// Sends a spoiled record, if the session is encrypted. It ends the session, and nothing of it is
/// taken for a message. Returns whether it did.
fn spoil_record(dice: &mut Dice, wire: &mut Wire, tally: &Tally, state: Spoilt) -> Result<bool> {
    let text = format!("select '{}'", "z".repeat(dice.index(300)));
    let mut bytes = Vec::new();
    query(&text).write(&mut bytes);
    let Some(mut record) = wire.seal(&bytes)?.filter(|_| !wire.is_over) else { return Ok(false) };
    tally.records.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let damage = spoil::record(dice, &mut record);
    wire.write_spoilt(&record)?;
    if damage == Damage::Torn {
        wire.shut();
    }
    ensure!(wire.until(|_| false)?, "a session outlives a record with damage: {damage:?}");
    let is_refused = wire.alert.as_deref() == Some(BAD_RECORD);
    ensure!(
        damage == Damage::Torn
            || state == Spoilt::Torn
            || is_refused
            || wire.is_reset
            || is_fatal(wire),
        "a spoiled record is answered by {:?}; last came {}",
        wire.alert,
        wire.last_words()
    );
    Ok(true)
}

fn pieces<'a>(dice: &mut Dice, bytes: &'a [u8]) -> Vec<&'a [u8]> {
    let mut rest = bytes;
    let mut pieces = Vec::new();
    if dice.once_in(4) {
        for _ in 0..dice.below(6) {
            let (piece, after) = rest.split_at(dice.index(rest.len() + 1));
            pieces.push(piece);
            rest = after;
        }
    }
    pieces.push(rest);
    pieces.retain(|piece| !piece.is_empty());
    pieces
}

/// Sends a cancel request, mostly with the session's own key.
fn cancel(dice: &mut Dice, wire: &mut Wire, story: &mut Story) {
    let known = wire.last.iter().find(|(letter, _)| *letter == b'K');
    let key = match known.and_then(|(_, body)| body.split_first_chunk::<4>()) {
        Some((pid, key)) if !dice.once_in(4) => (u32::from_be_bytes(*pid), key.to_vec()),
        _ => (u32::from(dice.byte()), (0..dice.below(12)).map(|_| dice.byte()).collect()),
    };
    story.0.push(Act::Cancel(key.clone()));
    let port = wire.peer_port();
    // The proxy may refuse the connection. The session must survive either way.
    let _ = session::cancel(port, &key);
}

/// Ends a session: checks that it is alive, sends Terminate, stops sending, or drops it.
fn end(
    target: Target<'_>,
    dice: &mut Dice,
    wire: &mut Wire,
    tally: &Tally,
    state: Spoilt,
) -> Result<()> {
    match dice.below(4) {
        0 if state == Spoilt::Whole && target.is_sound => return ask(wire, tally),
        0 | 1 => return Ok(()),
        2 if state == Spoilt::Whole => wire.write(b"X\0\0\0\x04")?,
        _ => wire.shut(),
    }
    if !wire.until(|_| false)? {
        bail!("a session does not end; last came {}", wire.last_words());
    }
    Ok(())
}

/// Returns messages that end every COPY, segment and transaction, and then a query.
pub(super) fn asks(tag: &str) -> Vec<Message> {
    let (fail, sync) = (message(b'f', b"end\0"), message(b'S', b""));
    vec![fail, sync, query("rollback"), query(&format!("select '{tag}'"))]
}

/// Checks that a session which sent only whole messages still answers, unless it has ended for a
/// reason that PostgreSQL has too.
fn ask(wire: &mut Wire, tally: &Tally) -> Result<()> {
    let tag = format!("alive-{}", tally.sessions.load(std::sync::atomic::Ordering::Relaxed));
    let mut bytes = Vec::new();
    asks(&tag).iter().for_each(|message| message.write(&mut bytes));
    wire.write(&bytes)?;
    let row = [b"\0\x01\0\0\0".as_slice(), &[u8::try_from(tag.len())?], tag.as_bytes()].concat();
    let answered = |all: &[(u8, Vec<u8>)]| {
        let row = all.iter().rposition(|(letter, body)| *letter == b'D' && *body == row);
        row.is_some_and(|at| all[at..].iter().any(|(letter, _)| *letter == b'Z'))
    };
    ensure!(wire.until(answered)?, "a session hangs; last came {}", wire.last_words());
    let gone = wire.is_over && !answered(&wire.last);
    ensure!(
        !gone || wire.is_reset || is_fatal(wire),
        "a session is gone; last came {}",
        wire.last_words()
    );
    tally.alive.fetch_add(u64::from(!gone), std::sync::atomic::Ordering::Relaxed);
    Ok(())
}

/// Whether the session ended for a reason that PostgreSQL has too.
fn is_fatal(wire: &Wire) -> bool {
    let is_reason = |body: &[u8]| {
        let says = |words: &[u8]| body.windows(words.len()).any(|part| part == words);
        let ours = says(b"the server broke the protocol");
        !ours && (says(b"FATAL") || says(b"C08P01") || says(b"C57P01"))
    };
    wire.last.iter().rev().take(3).any(|(letter, body)| *letter == b'E' && is_reason(body))
}
