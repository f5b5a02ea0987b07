//! The next step of a client: its segments, each of one of the two protocols or a function call.

use std::collections::BTreeMap;

use super::{Draft, Generator, Mode, copy};
use crate::ledger::Ledger;
use crate::msg::Msg;
use crate::rng::Rng;

impl Generator {
    /// Returns the next step of a client.
    pub fn step(&mut self, client: usize, ledger: &Ledger, mode: Mode) -> Vec<Msg> {
        let mut draft = Draft {
            client,
            ledger,
            mode,
            msgs: Vec::new(),
            parsed: BTreeMap::new(),
            waits_for_data: false,
        };
        if ledger.copying() {
            copy::copy_on(&mut self.rng, &mut draft);
            return draft.msgs;
        }
        self.way_out(&mut draft);
        let segments = 1 + self.rng.weighted(&[70, 18, 8, 4]);
        for segment in 0..segments {
            if draft.waits_for_data {
                break;
            }
            self.segment(&mut draft, segment + 1 == segments);
        }
        draft.msgs
    }

    /// Appends a Sync, COMMIT or ROLLBACK now and then, so that no session stays in a failed or
    /// long transaction.
    fn way_out(&mut self, draft: &mut Draft<'_>) {
        if draft.ledger.open() && self.rng.chance(40) {
            draft.msgs.push(Msg::Sync);
        }
        let often = match draft.ledger.status() {
            b'E' => 40,
            b'T' => 8,
            _ => 0,
        };
        if self.rng.chance(often) {
            let text: &[u8] = if self.rng.chance(50) { b"rollback" } else { b"commit" };
            if self.rng.chance(50) {
                draft.msgs.push(Msg::Query(text.to_vec()));
            } else {
                self.run_text(draft, text.to_vec());
                draft.msgs.push(Msg::Sync);
            }
        }
    }

    fn segment(&mut self, draft: &mut Draft<'_>, last: bool) {
        let function = usize::from(self.features.has("function-call")) * 3;
        let stream = usize::from(self.features.has("streams")) * 7;
        // After an unfinished segment mostly more extended messages follow.
        let simple = if draft.ledger.open() && draft.msgs.is_empty() { 10 } else { 38 };
        match self.rng.weighted(&[simple, 52, function, stream]) {
            0 => self.simple(draft),
            1 => self.extended(draft, last),
            2 => self.function_call(draft),
            _ => self.stream(draft),
        }
    }

    fn function_call(&mut self, draft: &mut Draft<'_>) {
        let number = |rng: &mut Rng| Some(rng.below(9).to_string().into_bytes());
        let (oid, args) = match self.rng.below(6) {
            // int4pl, abs, textlen, a missing function, a wrong count, a bad value
            0 => (177, vec![number(&mut self.rng), number(&mut self.rng)]),
            1 => (1397, vec![Some(b"-7".to_vec())]),
            2 => (1257, vec![Some("é".into())]),
            3 => (999_999, vec![]),
            4 => (177, vec![None]),
            _ => (177, vec![number(&mut self.rng), Some(b"x".to_vec())]),
        };
        draft.msgs.push(Msg::FunctionCall(oid, args));
    }
}

#[cfg(test)]
mod tests {
    use crate::features::Features;
    use crate::generate::{Generator, Mode, opens_transaction, pins};
    use crate::ledger::Ledger;
    use crate::msg::Msg;

    fn steps(seed: u64, mode: Mode) -> Vec<Vec<Msg>> {
        let mut generator = Generator::new(seed, Features::default());
        (0..500).map(|_| generator.step(1, &Ledger::default(), mode)).collect()
    }

    fn texts(steps: &[Vec<Msg>]) -> Vec<&[u8]> {
        let text = |msg| match msg {
            &Msg::Query(ref sql) | &Msg::Parse(_, ref sql, _) => Some(sql.as_slice()),
            _ => None,
        };
        steps.iter().flatten().filter_map(text).collect()
    }

    #[test]
    fn the_same_seed_gives_the_same_steps() {
        assert_eq!(steps(5, Mode::Free), steps(5, Mode::Free));
        assert_ne!(steps(5, Mode::Free), steps(6, Mode::Free));
    }

    #[test]
    fn each_mode_makes_the_steps_that_it_allows() {
        let free = steps(1, Mode::Free);
        assert!(texts(&free).iter().any(|sql| opens_transaction(sql)));
        assert_eq!(free.iter().flatten().find(|msg| pins(msg)), None);
        assert!(steps(1, Mode::Pinning).iter().flatten().any(pins));
        let closed = steps(1, Mode::Closed);
        let ends = |step: &Vec<Msg>| {
            matches!(step.last(), Some(Msg::Sync | Msg::Query(_) | Msg::FunctionCall(..)))
        };
        assert!(closed.iter().all(ends));
    }

    #[test]
    fn every_kind_of_message_is_made() {
        let steps = steps(2, Mode::Free);
        for tag in b"PBDECHSQFdcf" {
            assert!(steps.iter().flatten().any(|msg| msg.tag() == *tag), "{:?}", char::from(*tag));
        }
    }
}
