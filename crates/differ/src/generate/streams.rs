//! Messages of the extended protocol in an order that no driver sends: each is drawn by itself, so
//! that most of them meet no statement or portal, or one of an earlier step.

use super::{Draft, Generator, LONG_NAME, Mode, texts};
use crate::msg::Msg;

const PORTALS: [&str; 4] = ["", "", "p0", "p1"];

/// Texts that PostgreSQL refuses in a Parse, or that leave nothing to run.
const REFUSED: [&str; 5] = ["select 1; select 2", "begin; select 1", ";", "", "select"];

/// Cursors that outlive their transaction.
const CURSORS: [&str; 4] = [
    "declare h cursor with hold for select id, t from shr.a order by id",
    "fetch 2 from h",
    "move 1 in h",
    "close h",
];

impl Generator {
    /// Appends a few messages, with Syncs among them and mostly one behind them.
    pub(super) fn stream(&mut self, draft: &mut Draft<'_>) {
        for _ in 0..2 + self.rng.below(5) {
            self.stray(draft);
        }
        if draft.mode == Mode::Closed || self.rng.chance(80) {
            draft.msgs.push(Msg::Sync);
        }
    }

    fn stray(&mut self, draft: &mut Draft<'_>) {
        let portal = self.portal();
        let msg = match self.rng.weighted(&[20, 20, 6, 6, 20, 6, 6, 6, 12]) {
            0 => return self.stray_parse(draft),
            1 => {
                let (name, sql) = self.stray_statement(draft);
                return self.bind(draft, &portal, &name, &sql);
            }
            2 => Msg::DescribeStatement(self.stray_statement(draft).0),
            3 => Msg::DescribePortal(portal.into()),
            4 => Msg::Execute(portal.into(), u32::try_from(self.rng.below(3)).unwrap_or(0)),
            5 => Msg::CloseStatement(self.stray_statement(draft).0),
            6 => Msg::ClosePortal(portal.into()),
            7 => Msg::Flush,
            _ => Msg::Sync,
        };
        draft.msgs.push(msg);
    }

    fn stray_parse(&mut self, draft: &mut Draft<'_>) {
        let name = if self.rng.chance(40) { Vec::new() } else { self.new_name(draft) };
        let sql = match self.rng.weighted(&[70, 20, 10]) {
            0 => self.text(draft.client).0,
            2 if draft.mode == Mode::Pinning => self.rng.pick(&CURSORS).as_bytes().to_vec(),
            _ => texts::fill(self.rng.pick::<&str>(&REFUSED), draft.client, &mut self.rng),
        };
        self.parse(draft, &name, sql);
    }

    /// Returns a statement that the client may have, with its text if it has one. What it runs must
    /// not begin a COPY, whose data would have to follow.
    fn stray_statement(&mut self, draft: &Draft<'_>) -> (Vec<u8>, Vec<u8>) {
        let known = self.known(draft).filter(|_| self.rng.chance(70));
        known.unwrap_or_else(|| (b"q0".to_vec(), Vec::new()))
    }

    fn portal(&mut self) -> String {
        if self.rng.chance(20) {
            return format!("{LONG_NAME}{}", self.rng.pick(&["a", "b"]));
        }
        (*self.rng.pick(&PORTALS)).to_owned()
    }
}
