//! Conversations of clients: messages that PostgreSQL understands, in a sensible order.

use crate::soak::dice::Dice;

/// A message: its letter and body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Message {
    pub(super) letter: u8,
    pub(super) body: Vec<u8>,
}

/// SQL that creates the tables before the first client connects.
pub(super) const SCHEMA: &str = "\
    CREATE TABLE fz (a int, b text); \
    CREATE VIEW fzv AS SELECT a, b FROM fz WHERE a > 0 UNION ALL SELECT 1, 'x'; \
    CREATE TABLE late (a int); \
    CREATE FUNCTION no() RETURNS trigger LANGUAGE plpgsql AS \
    $$BEGIN IF new.a % 2 = 0 THEN RAISE 'too late'; END IF; RETURN new; END$$; \
    CREATE CONSTRAINT TRIGGER no AFTER INSERT ON late DEFERRABLE INITIALLY DEFERRED \
    FOR EACH ROW EXECUTE FUNCTION no(); \
    CREATE TABLE never (a int); \
    CREATE FUNCTION never() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RAISE 'never'; END$$; \
    CREATE TRIGGER never BEFORE INSERT ON never FOR EACH STATEMENT EXECUTE FUNCTION never()";

/// Texts without parameters. None can make another client wait for a lock.
const TEXTS: [&str; 46] = [
    "select 1",
    "select 1",
    "select n, repeat('r', 30) from generate_series(1, 7) n",
    "select n from generate_series(1, 3000) n",
    "select repeat('w', 20000)",
    "",
    ";;",
    "-- nothing",
    "selec",
    "select 1/0",
    "select * from nosuch",
    "select 1; select 2; select 3",
    "select 1; select 1/0; select 3",
    "begin",
    "begin",
    "commit",
    "commit",
    "rollback",
    "rollback",
    "savepoint a",
    "rollback to a",
    "begin; select 1; commit; select 2",
    "insert into fz values (1, 'x')",
    "insert into late values (1)",
    "insert into late values (2)",
    "begin; insert into late values (2)",
    "insert into never values (2)",
    "do $$begin raise notice 'note'; end$$",
    "set work_mem = '5MB'",
    "set datestyle = 'SQL, DMY'",
    "set local statement_timeout = '50ms'",
    "set application_name = 'fuzz'",
    "reset all",
    "discard all",
    "prepare q as select 7",
    "execute q",
    "deallocate all",
    "listen ch",
    "notify ch, 'hello'",
    "unlisten *",
    "declare c cursor for select n from generate_series(1, 9) n",
    "fetch 2 from c",
    "declare h cursor with hold for select 1",
    "close all",
    "show work_mem",
    "select pg_sleep(0.002)",
];

/// Texts with COPY.
const COPIES: [&str; 10] = [
    "copy fz from stdin",
    "copy fz from stdin",
    "copy fz from stdin (format binary)",
    "copy fzv from stdin",
    "copy never from stdin",
    "copy late from stdin",
    "copy fz from stdin; select 1",
    "copy fz from stdin; copy fz from stdin",
    "copy (select n, 'x' from generate_series(1, 5) n) to stdout",
    "copy (select n from generate_series(1, 5000) n) to stdout",
];

const NAMES: [&str; 5] = ["", "", "a", "b", "c"];

pub(super) fn message(letter: u8, body: &[u8]) -> Message {
    Message { letter, body: body.to_vec() }
}

impl Message {
    /// Appends the message's bytes.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&crate::bench::session::message(self.letter, &self.body));
    }
}

fn pick<'a>(dice: &mut Dice, list: &[&'a str]) -> &'a str {
    list[dice.index(list.len())]
}

pub(super) fn query(text: &str) -> Message {
    message(b'Q', format!("{text}\0").as_bytes())
}

fn parse(name: &str, text: &str) -> Message {
    message(b'P', format!("{name}\0{text}\0\0\0").as_bytes())
}

fn bind(portal: &str, name: &str) -> Message {
    message(b'B', format!("{portal}\0{name}\0\0\0\0\0\0\0").as_bytes())
}

fn execute(portal: &str, rows: u32) -> Message {
    message(b'E', &[portal.as_bytes(), b"\0", &rows.to_be_bytes()].concat())
}

fn named(letter: u8, kind: char, name: &str) -> Message {
    message(letter, format!("{kind}{name}\0").as_bytes())
}

fn data(dice: &mut Dice) -> Message {
    let lines: [&[u8]; 7] = [
        b"1\tx\n",
        b"1\tx\n2\ty\n",
        b"1\n",
        b"bad\tline\n",
        b"1\tcut",
        b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0\xff\xff",
        b"",
    ];
    message(b'd', lines[dice.index(lines.len())])
}

/// Returns the messages of a few units.
pub(super) fn conversation(dice: &mut Dice) -> Vec<Message> {
    let mut all = Vec::new();
    for _ in 0..=dice.below(6) {
        unit(dice, &mut all);
    }
    all
}

fn unit(dice: &mut Dice, all: &mut Vec<Message>) {
    match dice.below(16) {
        0..4 => all.push(query(pick(dice, &TEXTS))),
        4..11 => {
            for _ in 0..=dice.below(3) {
                extended(dice, all);
            }
            end(dice, all);
        }
        11 | 12 => {
            all.push(query(pick(dice, &COPIES)));
            stream(dice, all);
        }
        13 | 14 => {
            let text = pick(dice, &COPIES);
            all.extend([parse("", text), bind("", ""), execute("", 0)]);
            stream(dice, all);
            end(dice, all);
        }
        _ => all.push(function_call(dice)),
    }
}

/// Appends data for a COPY that may have begun.
fn stream(dice: &mut Dice, all: &mut Vec<Message>) {
    for _ in 0..dice.below(4) {
        if dice.once_in(5) {
            all.push(message(if dice.once_in(2) { b'S' } else { b'H' }, b""));
        }
        all.push(data(dice));
    }
    match dice.below(8) {
        0 => all.push(message(b'f', b"no more\0")),
        1 => {}
        2 => all.extend([message(b'c', b""), message(b'c', b"")]),
        _ => all.push(message(b'c', b"")),
    }
}

fn end(dice: &mut Dice, all: &mut Vec<Message>) {
    match dice.below(12) {
        0 => all.push(message(b'H', b"")),
        1 => all.extend([message(b'S', b""), message(b'S', b"")]),
        2 => {}
        _ => all.push(message(b'S', b"")),
    }
}

fn extended(dice: &mut Dice, all: &mut Vec<Message>) {
    let (name, portal) = (pick(dice, &NAMES), pick(dice, &["", "", "", "p", "q"]));
    let rows = if dice.once_in(4) { 2 } else { 0 };
    match dice.below(10) {
        0..4 => {
            all.push(parse(name, pick(dice, &TEXTS)));
            if dice.once_in(3) {
                all.push(named(b'D', 'S', name));
            }
            all.extend([bind(portal, name), named(b'D', 'P', portal), execute(portal, rows)]);
        }
        4..6 => all.extend([bind(portal, name), execute(portal, rows)]),
        6 => all.push(named(b'C', if dice.once_in(2) { 'S' } else { 'P' }, name)),
        7 => all.push(named(b'D', if dice.once_in(2) { 'S' } else { 'P' }, name)),
        8 => all.push(execute(portal, rows)),
        _ => all.push(parse(name, pick(dice, &TEXTS))),
    }
}

fn function_call(dice: &mut Dice) -> Message {
    let [two, none, bad]: [&[u8]; 3] = [
        b"\0\0\0\xb1\0\0\0\x02\0\0\0\x012\0\0\0\x013\0\0",
        b"\0\x0f\x42\x3f\0\0\0\0\0\0",
        b"\0\0\0\xb1\0\0\0\x01\0\0\0\x01x\0\0",
    ];
    message(b'F', [two, none, bad][dice.index(3)])
}
