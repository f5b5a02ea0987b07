//! Random packets, written and read again.

use refrain_mysql_wire::column::ColumnDefinition;
use refrain_mysql_wire::handshake::{
    Attributes, AuthReply, AuthSwitchRequest, Greeting, HandshakeResponse41, HandshakeV10, Login,
    NONCE_BYTES, SslRequest,
};
use refrain_mysql_wire::prepared::{Execute, PrepareOk};
use refrain_mysql_wire::reply::{EofPacket, ErrPacket, Head, OkPacket, first};
use refrain_mysql_wire::request::{ChangeUser, Query, Request};
use refrain_mysql_wire::track::{Change, Changes};
use refrain_mysql_wire::{Capabilities, Status};

use super::any::capabilities;
use super::dice::Dice;

/// Number of random packets of each kind.
const ROUNDS: u64 = 3_000;

/// Calls `check` with a generator for each round.
fn rounds(check: impl Fn(&mut Dice)) {
    for seed in 0..ROUNDS {
        check(&mut Dice::of(seed));
    }
}

/// Returns the payload that `fill` writes.
fn written(fill: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    fill(&mut out);
    out
}

/// Returns the value where the capability is there, and the default elsewhere.
fn under<T: Default>(agreed: Capabilities, capability: Capabilities, value: T) -> T {
    if agreed.has(capability) { value } else { T::default() }
}

/// Returns the set without the high bits if nobody would send them.
fn sent(set: Capabilities) -> Capabilities {
    if set.has(Capabilities::CLIENT_MYSQL) { set & Capabilities::LOW } else { set }
}

#[test]
fn greetings() {
    rounds(|dice| {
        let agreed = sent(capabilities(dice));
        let (version, plugin) = (dice.word(), dice.word());
        let greeting = HandshakeV10 {
            version: &version,
            connection_id: dice.bits() as u32,
            nonce: std::array::from_fn::<_, NONCE_BYTES, _>(|_| dice.bits() as u8),
            capabilities: agreed,
            collation: dice.bits() as u8,
            status: Status(dice.bits() as u16),
            plugin: under(agreed, Capabilities::PLUGIN_AUTH, &plugin[..]),
        };
        let payload = written(|out| greeting.write(out));
        assert_eq!(Greeting::read(&payload), Ok(Greeting::Handshake(greeting)));
    });
}

#[test]
fn logins() {
    rounds(|dice| {
        let agreed = sent(capabilities(dice));
        let (user, database, plugin) = (dice.word(), dice.word(), dice.word());
        let mut proof = dice.bytes();
        if !agreed.has(Capabilities::PLUGIN_AUTH_LENENC_CLIENT_DATA) {
            proof.truncate(255);
        }
        let mut list = Vec::new();
        Attributes::put(&mut list, &dice.bytes(), &dice.bytes());
        let (max_packet, collation) = (dice.bits() as u32, dice.bits() as u8);
        let response = HandshakeResponse41 {
            capabilities: agreed,
            max_packet,
            collation,
            user: &user,
            proof: &proof,
            database: under(agreed, Capabilities::CONNECT_WITH_DB, &database[..]),
            plugin: under(agreed, Capabilities::PLUGIN_AUTH, &plugin[..]),
            attributes: Attributes(under(agreed, Capabilities::CONNECT_ATTRS, &list[..])),
            zstd_level: under(agreed, Capabilities::ZSTD_COMPRESSION_ALGORITHM, 3),
        };
        let payload = written(|out| response.write(out));
        assert_eq!(Login::read(&payload, agreed), Ok(Login::Response(response)));
        let request =
            SslRequest { capabilities: agreed | Capabilities::SSL, max_packet, collation };
        let payload = written(|out| request.write(out));
        assert_eq!(Login::read(&payload, agreed), Ok(Login::SslRequest(request)));
    });
}

#[test]
fn replies_to_logins() {
    rounds(|dice| {
        let (agreed, plugin, data) = (capabilities(dice), dice.word(), dice.bytes());
        let switch = AuthReply::Switch(AuthSwitchRequest { plugin: &plugin, data: &data });
        for reply in [switch, AuthReply::MoreData(&data)] {
            let payload = written(|out| reply.write(out, agreed));
            assert_eq!(AuthReply::read(&payload, agreed), Ok(reply));
        }
    });
}

#[test]
fn changes() {
    rounds(|dice| {
        let (name, value) = (dice.bytes(), dice.bytes());
        let changes = [
            Change::SystemVariable { name: &name, value: &value },
            Change::Schema(&name),
            Change::State(&value),
            Change::TransactionCharacteristics(&name),
            Change::TransactionState(&value),
            Change::Other(3, &name),
        ];
        let block = written(|out| changes.iter().for_each(|change| change.write(out)));
        assert!(Changes(&block).iter().eq(changes.map(Ok)));
    });
}

#[test]
fn replies() {
    rounds(|dice| {
        let agreed = capabilities(dice);
        let (info, block) = (dice.bytes(), dice.bytes());
        let tracks = agreed.has(Capabilities::SESSION_TRACK);
        let status = Status(dice.bits() as u16);
        let status = if tracks { status } else { status.without(Status::SESSION_STATE_CHANGED) };
        let changed = status.has(Status::SESSION_STATE_CHANGED);
        let ok = OkPacket {
            affected_rows: dice.integer(),
            last_insert_id: dice.integer(),
            status,
            warnings: dice.bits() as u16,
            info: &info,
            changes: Changes(if changed { &block } else { &[] }),
        };
        for first in [first::OK, first::EOF] {
            let payload = written(|out| ok.write(out, first, agreed));
            assert_eq!(OkPacket::read(&payload, agreed), Ok(ok));
        }
        let eof = EofPacket { warnings: ok.warnings, status };
        let payload = written(|out| eof.write(out));
        let old = agreed - Capabilities::DEPRECATE_EOF;
        assert_eq!(EofPacket::read(&payload, old), Ok(eof));
        let sqlstate = Some(std::array::from_fn(|_| dice.bits() as u8));
        let err = ErrPacket { number: dice.bits() as u16 >> 1, sqlstate, message: &info };
        let payload = written(|out| err.write(out));
        assert_eq!(ErrPacket::read(&payload), Ok(err));
        let defined = dice.bits() & 1 == 1
            || !(agreed.has(Capabilities::OPTIONAL_RESULTSET_METADATA)
                || agreed.has(Capabilities::CACHE_METADATA));
        let count = dice.integer() | 1;
        for head in [Head::LocalInfile(&info), Head::Columns { count, defined }, Head::Ok(ok)] {
            let payload = written(|out| head.write(out, agreed));
            assert_eq!(Head::read(&payload, agreed), Ok(head));
        }
    });
}

#[test]
fn definitions() {
    rounds(|dice| {
        let agreed = capabilities(dice);
        let texts: [Vec<u8>; 7] = std::array::from_fn(|_| dice.bytes());
        let [schema, table, org_table, name, org_name, extended, default] = &texts;
        let column = ColumnDefinition {
            schema,
            table,
            org_table,
            name,
            org_name,
            extended: under(agreed, Capabilities::EXTENDED_METADATA, &extended[..]),
            collation: dice.bits() as u16,
            length: dice.bits() as u32,
            kind: dice.bits() as u8,
            flags: dice.bits() as u16,
            decimals: dice.bits() as u8,
            default,
        };
        let payload = written(|out| column.write(out, agreed));
        assert_eq!(ColumnDefinition::read(&payload, agreed), Ok(column));
    });
}

#[test]
fn requests() {
    rounds(|dice| {
        let agreed = capabilities(dice);
        let (word, bytes) = (dice.word(), dice.bytes());
        let (number, short) = (dice.bits() as u32, dice.bits() as u16);
        let mut proof = dice.bytes();
        proof.truncate(255);
        let change = ChangeUser {
            user: &word,
            proof: &proof,
            database: &word,
            collation: Some(short),
            plugin: under(agreed, Capabilities::PLUGIN_AUTH, &word[..]),
            attributes: Attributes(under(agreed, Capabilities::CONNECT_ATTRS, &bytes[..])),
        };
        let attributes = under(agreed, Capabilities::QUERY_ATTRIBUTES, &b"\x00\x01"[..]);
        let requests = [
            Request::Quit,
            Request::InitDb(&bytes),
            Request::Query(Query { attributes, text: &bytes }),
            Request::FieldList { table: &word, wildcard: &bytes },
            Request::Statistics,
            Request::ProcessKill(number),
            Request::Ping,
            Request::ChangeUser(change),
            Request::StmtPrepare(&bytes),
            Request::StmtExecute(&bytes),
            Request::StmtBulkExecute(&bytes),
            Request::StmtSendLongData { statement: number, parameter: short, data: &bytes },
            Request::StmtClose(number),
            Request::StmtReset(number),
            Request::StmtFetch { statement: number, rows: number },
            Request::SetOption(short),
            Request::ResetConnection,
            Request::Other(0x1D, &bytes),
        ];
        for request in requests {
            let payload = written(|out| request.write(out, agreed));
            assert_eq!(Request::read(&payload, agreed), Ok(request));
        }
    });
}

#[test]
fn prepared_statements() {
    rounds(|dice| {
        let agreed = capabilities(dice);
        let optional = agreed.has(Capabilities::OPTIONAL_RESULTSET_METADATA);
        let prepared = PrepareOk {
            statement: dice.bits() as u32,
            columns: dice.bits() as u16,
            parameters: dice.bits() as u16,
            warnings: dice.bits() as u16,
            defined: !optional || dice.bits() & 1 == 1,
        };
        let payload = written(|out| prepared.write(out, agreed));
        assert_eq!(PrepareOk::read(&payload, agreed), Ok(prepared));
        let named = agreed.has(Capabilities::QUERY_ATTRIBUTES);
        let parameters = dice.below(300) as u16;
        let nulls: Vec<u8> =
            (0..usize::from(parameters).div_ceil(8)).map(|_| dice.bits() as u8).collect();
        let one: &[u8] = if named { b"\xfd\x00\x01a" } else { b"\x03\x80" };
        let types = one.repeat(parameters.into());
        let values = dice.bytes();
        let typed = parameters > 0 && dice.bits() & 1 == 1;
        let head = Execute {
            statement: prepared.statement,
            flags: dice.bits() as u8,
            parameters,
            nulls: &nulls,
            types: typed.then_some(&types[..]),
            values: &values,
        };
        let body = written(|out| head.write(out, agreed));
        assert_eq!(Execute::read(&body, parameters, agreed, true), Ok(Some(head)));
        // Half of it is its head, or the beginning of its head.
        let half = Execute::read(&body[..body.len() / 2], parameters, agreed, false);
        let half = half.expect("not malformed");
        assert!(half.is_none_or(|half| Execute { values: &values, ..half } == head));
    });
}
