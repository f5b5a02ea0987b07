//! Packets as tests write and print them.

use refrain_mysql_wire::packet;
use refrain_mysql_wire::prepared::PrepareOk;
use refrain_mysql_wire::reply::{EofPacket, ErrPacket, OkPacket, first};
use refrain_mysql_wire::track::Change;
use refrain_mysql_wire::{Capabilities, Status};

/// Splits bytes into packets: sequence id and payload.
///
/// # Panics
/// If the last packet is not all there.
pub(crate) fn split(mut bytes: &[u8]) -> Vec<(u8, Vec<u8>)> {
    let mut packets = Vec::new();
    while !bytes.is_empty() {
        let packet = packet::split(bytes).expect("whole packets");
        packets.push((packet.header.sequence, packet.payload.to_vec()));
        bytes = packet.rest;
    }
    packets
}

/// Writes a command.
pub(crate) fn command(command: u8, body: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    packet::message(&mut out, 0, |out| {
        out.push(command);
        out.extend_from_slice(body);
    });
    out
}

/// Prints a packet in a word or a few.
fn word(payload: &[u8], agreed: Capabilities) -> String {
    match payload {
        [first::OK, .., _] if payload.len() == 12 && PrepareOk::read(payload, agreed).is_ok() => {
            format!("prepared {}", payload[1])
        }
        [first::OK, ..] | [first::EOF, _, _, _, _, _, _, ..] => {
            let Ok(ok) = OkPacket::read(payload, agreed) else {
                return format!("{} bytes", payload.len());
            };
            let mut text = if payload[0] == first::OK { "ok".to_owned() } else { "end".to_owned() };
            text += &flags(ok.status);
            for change in ok.changes.iter() {
                text += &match change.expect("a change") {
                    Change::SystemVariable { name, value } => {
                        format!(" {}={}", lossy(name), lossy(value))
                    }
                    Change::Schema(name) => format!(" schema={}", lossy(name)),
                    Change::State(_) => " state".to_owned(),
                    other => format!(" {other:?}"),
                };
            }
            text
        }
        [first::EOF, ..] if payload.len() == 5 => {
            let eof = EofPacket::read(payload, Capabilities::NONE).expect("an EOF packet");
            format!("eof{}", flags(eof.status))
        }
        [first::ERR, ..] => {
            let err = ErrPacket::read(payload).expect("an ERR packet");
            let state = err.sqlstate.map(|state| lossy(&state)).unwrap_or_default();
            format!("err {} {state}", err.number)
        }
        [first::LOCAL_INFILE, name @ ..] => format!("file {}", lossy(name)),
        [0x03, b'd', b'e', b'f', ..] => "column".to_owned(),
        [count] => format!("columns {count}"),
        [length, text @ ..] if usize::from(*length) == text.len() => format!("row {}", lossy(text)),
        other => format!("{} bytes", other.len()),
    }
}

fn flags(status: Status) -> String {
    let mut text = String::new();
    for (flag, name) in [
        (Status::IN_TRANS, " trans"),
        (Status::MORE_RESULTS_EXISTS, " more"),
        (Status::CURSOR_EXISTS, " cursor"),
        (Status::LAST_ROW_SENT, " last"),
    ] {
        if status.has(flag) {
            text += name;
        }
    }
    if !status.has(Status::AUTOCOMMIT) {
        text += " manual";
    }
    text
}

pub(crate) fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Prints packets, and checks that their sequence ids begin with `sequence` and count, or begin
/// again with 1 behind the end of a reply.
pub(crate) fn printed(bytes: &[u8], mut sequence: u8, agreed: Capabilities) -> String {
    let mut words: Vec<String> = Vec::new();
    let mut is_within = false;
    for (its, payload) in split(bytes) {
        if its == 1 && sequence != 1 {
            sequence = 1;
        }
        assert_eq!(its, sequence, "the sequence id of packet {words:?}");
        sequence = sequence.wrapping_add(1);
        match words.last_mut().filter(|_| is_within) {
            Some(last) => *last += &format!(" and {}", payload.len()),
            None => words.push(word(&payload, agreed)),
        }
        is_within = payload.len() == 0xFF_FFFF;
    }
    words.join(", ")
}
