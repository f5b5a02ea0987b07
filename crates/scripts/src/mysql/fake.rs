//! A model server that answers each command by its first byte, without a thought.

use refrain_mysql_wire::handshake::HandshakeV10;
use refrain_mysql_wire::prepared::PrepareOk;
use refrain_mysql_wire::reply::{OkPacket, first};
use refrain_mysql_wire::{Capabilities, Status, command, packet};

/// The capabilities that the model offers.
const OFFERED: Capabilities = Capabilities::from_bits(0x01FF_F7FF);

/// A server's session.
#[derive(Default)]
pub(super) struct MyServer {
    is_logged_in: bool,
    in_transaction: bool,
    /// The number of the statement that was prepared last.
    statements: u32,
}

/// A reply under way.
struct Reply<'a> {
    out: &'a mut Vec<u8>,
    sequence: u8,
}

impl Reply<'_> {
    fn put(&mut self, fill: impl FnOnce(&mut Vec<u8>)) {
        self.sequence = packet::message(self.out, self.sequence, fill);
    }
}

impl MyServer {
    /// Returns the first packet.
    pub(super) fn greeting() -> Vec<u8> {
        let greeting = HandshakeV10 {
            version: b"8.0.15-model",
            connection_id: 7,
            nonce: *b"abcdefghijklmnopqrst",
            capabilities: OFFERED,
            collation: 45,
            status: Status::AUTOCOMMIT,
            plugin: b"mysql_native_password",
        };
        let mut out = Vec::new();
        packet::message(&mut out, 0, |out| greeting.write(out));
        out
    }

    /// Appends what a server says to whole packets.
    pub(super) fn answer(&mut self, mut bytes: &[u8], out: &mut Vec<u8>) {
        while let Some(packet) = packet::split(bytes) {
            bytes = packet.rest;
            let sequence = packet.header.sequence.wrapping_add(1);
            self.command(packet.payload, &mut Reply { out, sequence });
        }
        assert!(bytes.is_empty(), "the engine sends small packets whole");
    }

    fn command(&mut self, payload: &[u8], reply: &mut Reply<'_>) {
        if !self.is_logged_in {
            self.is_logged_in = true;
            return self.ok(reply, first::OK);
        }
        let (&command, body) = payload.split_first().expect("a command");
        match command {
            command::QUERY => self.query(body, reply),
            command::STMT_PREPARE => self.prepare(reply),
            command::STMT_EXECUTE => self.rows(reply, &[], &[b"\0\0\x041234"]),
            command::STMT_CLOSE | command::QUIT => {}
            command::SET_OPTION => self.ok(reply, first::EOF),
            _ => self.ok(reply, first::OK),
        }
    }

    fn query(&mut self, text: &[u8], reply: &mut Reply<'_>) {
        match text {
            b"SHOW SESSION VARIABLES" => self.rows(reply, &[b"a", b"b"], VARIABLES),
            b"SHOW COLLATION" => self.rows(reply, &[b"a", b"b", b"c"], COLLATIONS),
            _ if text.starts_with(b"(SELECT _binary'trigger'") => {
                self.rows(reply, &[b"a", b"b", b"c"], &[b"\x04user\0\0"]);
            }
            b"BEGIN" | b"COMMIT" => {
                self.in_transaction = text == b"BEGIN";
                self.ok(reply, first::OK);
            }
            _ if text.starts_with(b"SET") => self.ok(reply, first::OK),
            _ => self.rows(reply, &[], &[b"\x041234"]),
        }
    }

    fn prepare(&mut self, reply: &mut Reply<'_>) {
        self.statements += 1;
        let head = PrepareOk {
            statement: self.statements,
            columns: 1,
            parameters: 1,
            warnings: 0,
            defined: true,
        };
        reply.put(|out| head.write(out, Capabilities::NONE));
        for _ in 0..2 {
            reply.put(|out| out.extend_from_slice(DEFINITION));
        }
    }

    /// Writes rows of so many columns; of one, if none is named.
    fn rows(&self, reply: &mut Reply<'_>, columns: &[&[u8]], rows: &[&[u8]]) {
        let count = columns.len().max(1);
        reply.put(|out| out.push(count as u8));
        (0..count).for_each(|_| reply.put(|out| out.extend_from_slice(DEFINITION)));
        rows.iter().for_each(|row| reply.put(|out| out.extend_from_slice(row)));
        self.ok(reply, first::EOF);
    }

    fn ok(&self, reply: &mut Reply<'_>, first: u8) {
        let mut status = Status::AUTOCOMMIT;
        if self.in_transaction {
            status = status.with(Status::IN_TRANS);
        }
        let ok = OkPacket { status, ..OkPacket::default() };
        reply.put(|out| ok.write(out, first, Capabilities::NONE));
    }
}

/// The definition of a column, as long as most are.
const DEFINITION: &[u8] = b"\x03def\x02sb\x07sbtest1\x07sbtest1\x01c\x01c\x0c\x2d\0\xe0\x01\0\0\
    \xfe\x01\0\0\0\0";

const VARIABLES: &[&[u8]] = &[
    b"\x0aautocommit\x02ON",
    b"\x14character_set_client\x07utf8mb4",
    b"\x18character_set_connection\x07utf8mb4",
    b"\x15character_set_results\x07utf8mb4",
    b"\x14collation_connection\x12utf8mb4_general_ci",
    b"\x08sql_mode\x06STRICT",
];

const COLLATIONS: &[&[u8]] =
    &[b"\x11latin1_swedish_ci\x06latin1\x018", b"\x12utf8mb4_general_ci\x07utf8mb4\x0245"];
