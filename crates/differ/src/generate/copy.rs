//! COPY, in both protocols and both directions.
//!
//! PostgreSQL ignores a Sync that it reads while it waits for data, and answers a Sync that it
//! reads after an error. Which of the two happens is certain only if the Sync comes before any data
//! that PostgreSQL could refuse, so the generator sends an early Sync only there (E42).

use super::{Draft, Mode, texts};
use crate::msg::{Bind, Msg};
use crate::rng::Rng;

const IN: [&str; 6] = [
    "copy {s}.t1 (id, v) from stdin",
    "copy {s}.t1 (id, v) from stdin",
    "copy {s}.t3 (id, v) from stdin with (format csv)",
    "copy t1 (id) from stdin",
    "copy {s}.nosuch from stdin",
    "copy {s}.t1 (nosuch) from stdin",
];

const OUT: [&str; 5] = [
    "copy shr.a (id, t) to stdout",
    "copy (select id, v from {s}.t1 order by id) to stdout with (format csv, header)",
    "copy (select generate_series(1, 50)) to stdout",
    "copy (select 1, null, 'x') to stdout with (format binary)",
    "copy {s}.nosuch to stdout",
];

fn copy_text(rng: &mut Rng, client: usize) -> Vec<u8> {
    let text = if rng.chance(70) { *rng.pick(&IN) } else { *rng.pick(&OUT) };
    texts::fill(text, client, rng)
}

/// Appends a Query that runs COPY, with its data, or without if later steps send the data.
pub(super) fn copy_simple(rng: &mut Rng, draft: &mut Draft<'_>) {
    let mut sql = copy_text(rng, draft.client);
    let reads = sql.windows(5).any(|window| window == b"stdin");
    if rng.chance(20) {
        sql.extend_from_slice(b"; select 'after copy'");
    }
    draft.msgs.push(Msg::Query(sql));
    if !reads || (draft.mode != Mode::Closed && rng.chance(20)) {
        draft.waits_for_data = reads;
        return;
    }
    data(rng, draft);
    copy_end(rng, draft);
    draft.msgs.push(Msg::Sync);
}

/// Appends a segment of the extended protocol that runs COPY.
pub(super) fn copy_extended(rng: &mut Rng, draft: &mut Draft<'_>) {
    let sql = copy_text(rng, draft.client);
    let reads = sql.windows(5).any(|window| window == b"stdin");
    draft.msgs.push(Msg::Parse(Vec::new(), sql, Vec::new()));
    draft.msgs.push(Msg::Bind(Bind::default()));
    if rng.chance(40) {
        draft.msgs.push(Msg::DescribePortal(Vec::new()));
    }
    draft.msgs.push(Msg::Execute(Vec::new(), 0));
    if !reads {
        draft.msgs.push(Msg::Sync);
        return;
    }
    match rng.below(4) {
        0 => draft.msgs.push(Msg::Sync),
        1 if draft.mode != Mode::Closed => {
            draft.msgs.push(Msg::Flush);
            if rng.chance(50) {
                draft.waits_for_data = true;
                return;
            }
        }
        _ => {}
    }
    data(rng, draft);
    copy_end(rng, draft);
    draft.msgs.push(Msg::Sync);
}

/// Appends data for a COPY of an earlier step, mostly with its end.
pub(super) fn copy_on(rng: &mut Rng, draft: &mut Draft<'_>) {
    data(rng, draft);
    if rng.chance(70) {
        copy_end(rng, draft);
        draft.msgs.push(Msg::Sync);
    }
}

fn data(rng: &mut Rng, draft: &mut Draft<'_>) {
    let mut bytes = Vec::new();
    for _ in 0..rng.below(4) {
        let id = rng.below(9);
        let line = match rng.below(12) {
            0 => "bad line\n".to_owned(),
            1 => format!("{id}\ta\tb\tc\n"),
            2 => format!("{id}\t\\N\n"),
            3..6 => format!("{id},csv\n"),
            _ => format!("{id}\tv{id}\n"),
        };
        bytes.extend_from_slice(line.as_bytes());
    }
    while !bytes.is_empty() {
        let rest = bytes.split_off(1 + rng.below(bytes.len()));
        draft.msgs.push(Msg::CopyData(bytes));
        bytes = rest;
    }
}

fn copy_end(rng: &mut Rng, draft: &mut Draft<'_>) {
    draft.msgs.push(if rng.chance(80) {
        Msg::CopyDone
    } else {
        Msg::CopyFail(b"changed my mind".to_vec())
    });
}
