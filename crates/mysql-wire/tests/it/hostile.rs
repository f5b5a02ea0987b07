//! Payloads that no peer should send: none makes a reader panic.

use refrain_mysql_wire::packet::{Boundaries, split};
use refrain_mysql_wire::{Capabilities, value};

use super::any::{READERS, capabilities};
use super::dice::Dice;

/// Number of random payloads.
const ROUNDS: u64 = 20_000;

/// Payloads of MySQL's and MariaDB's manuals, which random ones begin as.
const SEEDS: &[&[u8]] = &[
    b"\x0a5.6.4-m7-log\0\x56\x0a\0\0RB3vz&Gr\0\xff\xff\x08\x02\0\x0f\xc0\x15\
        \0\0\0\0\0\0\0\0\0\0+yD&/ZZ305ZG\0mysql_native_password\0",
    b"\x8d\xa6\x3f\x00\x00\x00\x00\x01\x08\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\
        pam\0\x04abcdtest\0mysql_native_password\0\x06\x02os\x02vm",
    b"\xfemysql_native_password\0zQg4i6oNy6=r\0",
    b"\x00\x00\x00\x02\x40\x00\x00\x00\x11\x00\x0f\x0aautocommit\x03OFF",
    b"\xff\x48\x04#HY000No tables used",
    b"\xfe\x00\x00\x02\x00",
    b"\x03def\x00\x00\x00\x01?\x00\x0c\x3f\x00\x00\x00\x00\x00\xfd\x80\x00\x00\x00\x00",
    b"\x00\x01\x00\x00\x00\x01\x00\x02\x00\x00\x00\x00",
    b"\x03\x03\x01\x02\x01\xfd\x00\x01a\x06\x00\x01n\x03\x00\x00\x01x\x07\0\0\0select 1",
    b"\x01\0\0\0\x08\x01\0\0\0\x09\x04\x01\x01\x03\0\x01a\x03\0\x01a\x03\0\x01a\x03\0\x01a",
    b"\x11ann\0\x02xyd\0\x2d\0p\0\x06\x02os\x02vm",
];

#[test]
fn any_bytes_are_read_or_refused() {
    for seed in 0..ROUNDS {
        let dice = &mut Dice::of(seed);
        let mut payload = match dice.below(SEEDS.len() + 1) {
            at if at < SEEDS.len() => SEEDS[at].to_vec(),
            _ => dice.bytes(),
        };
        for _ in 0..dice.below(4) {
            let at = dice.below(payload.len() + 1);
            match payload.get_mut(at) {
                Some(byte) => *byte = [0, 0xFB, 0xFC, 0xFE, 0xFF, dice.bits() as u8][dice.below(6)],
                None => payload.extend(dice.bytes()),
            }
        }
        let agreed = capabilities(dice);
        for (_, read) in READERS {
            let _ = read(&payload, agreed);
        }
        let _ = value::split(dice.bits() as u8, &payload);
    }
}

#[test]
fn payloads_cut_at_every_byte_are_read_or_refused() {
    let all = Capabilities::from_bits(u64::MAX);
    for agreed in [Capabilities::NONE, Capabilities::LOW, all] {
        for payload in SEEDS {
            for cut in 0..=payload.len() {
                for (_, read) in READERS {
                    let _ = read(&payload[..cut], agreed);
                }
            }
        }
    }
}

#[test]
fn a_stream_of_any_bytes_is_packets_or_incomplete() {
    for seed in 0..ROUNDS {
        let dice = &mut Dice::of(seed);
        let bytes: Vec<u8> = (0..dice.below(200)).map(|_| (dice.bits() & 3) as u8).collect();
        let (mut rest, mut boundaries) = (&bytes[..], Boundaries::default());
        while let Some(packet) = split(rest) {
            assert_eq!(packet.header.packet_bytes() + packet.rest.len(), rest.len());
            boundaries.begins(packet.header);
            rest = packet.rest;
        }
    }
}
