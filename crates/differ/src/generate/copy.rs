//! COPY, in both protocols and both directions.
//!
//! PostgreSQL ignores a Sync that it reads while it waits for data, and answers a Sync that it
//! reads after an error. Which of the two happens is certain only if the Sync comes before any data
//! that PostgreSQL could refuse, so the generator sends an early Sync only there (E42).

use super::{Draft, Generator, Mode, texts};
use crate::msg::{Bind, Msg};

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

impl Generator {
    fn copy_text(&mut self, client: usize) -> Vec<u8> {
        let text = if self.rng.chance(70) { *self.rng.pick(&IN) } else { *self.rng.pick(&OUT) };
        texts::fill(text, client, &mut self.rng)
    }

    /// Appends a Query that runs COPY, with its data, or without if later steps send the data.
    pub(super) fn copy_simple(&mut self, draft: &mut Draft<'_>) {
        let mut sql = self.copy_text(draft.client);
        let reads = sql.windows(5).any(|window| window == b"stdin");
        if self.rng.chance(20) {
            sql.extend_from_slice(b"; select 'after copy'");
        }
        draft.msgs.push(Msg::Query(sql));
        if !reads || (draft.mode != Mode::Closed && self.rng.chance(20)) {
            draft.waits_for_data = reads;
            return;
        }
        self.data(draft);
        self.copy_end(draft);
        draft.msgs.push(Msg::Sync);
    }

    /// Appends a segment of the extended protocol that runs COPY.
    pub(super) fn copy_extended(&mut self, draft: &mut Draft<'_>) {
        let sql = self.copy_text(draft.client);
        let reads = sql.windows(5).any(|window| window == b"stdin");
        draft.msgs.push(Msg::Parse(Vec::new(), sql, Vec::new()));
        draft.msgs.push(Msg::Bind(Bind::default()));
        if self.rng.chance(40) {
            draft.msgs.push(Msg::DescribePortal(Vec::new()));
        }
        draft.msgs.push(Msg::Execute(Vec::new(), 0));
        if !reads {
            draft.msgs.push(Msg::Sync);
            return;
        }
        match self.rng.below(4) {
            0 => draft.msgs.push(Msg::Sync),
            1 if draft.mode != Mode::Closed => {
                draft.msgs.push(Msg::Flush);
                if self.rng.chance(50) {
                    draft.waits_for_data = true;
                    return;
                }
            }
            _ => {}
        }
        self.data(draft);
        self.copy_end(draft);
        draft.msgs.push(Msg::Sync);
    }

    /// Appends data for a COPY of an earlier step, mostly with its end.
    pub(super) fn copy_on(&mut self, draft: &mut Draft<'_>) {
        self.data(draft);
        if self.rng.chance(70) {
            self.copy_end(draft);
            draft.msgs.push(Msg::Sync);
        }
    }

    fn data(&mut self, draft: &mut Draft<'_>) {
        let mut bytes = Vec::new();
        for _ in 0..self.rng.below(4) {
            let id = self.rng.below(9);
            let line = match self.rng.below(12) {
                0 => "bad line\n".to_owned(),
                1 => format!("{id}\ta\tb\tc\n"),
                2 => format!("{id}\t\\N\n"),
                3..6 => format!("{id},csv\n"),
                _ => format!("{id}\tv{id}\n"),
            };
            bytes.extend_from_slice(line.as_bytes());
        }
        while !bytes.is_empty() {
            let rest = bytes.split_off(1 + self.rng.below(bytes.len()));
            draft.msgs.push(Msg::CopyData(bytes));
            bytes = rest;
        }
    }

    fn copy_end(&mut self, draft: &mut Draft<'_>) {
        draft.msgs.push(if self.rng.chance(80) {
            Msg::CopyDone
        } else {
            Msg::CopyFail(b"changed my mind".to_vec())
        });
    }
}
