//! Texts that took many times as long as others when they ran prepared.
//!
//! The plan that is kept may fit nearly all values and be far off for a few. A text that was slow
//! is run as it was sent when it comes again, then prepared again, and so in turns: like is
//! compared with like, and what made it suspect does not count, since that may have been chance. If
//! it is the plan, this text goes as it was sent from then on, and the others stay prepared.

use super::Turn;

/// Texts that are remembered.
const TEXTS_MAX: usize = 32;
/// Executions of a text either way that decide.
const RUNS: u32 = 2;
/// A text is slow if prepared it takes so many times as long.
const SLOW: u64 = 2;
/// Runs of a text that is tried after which it is forgotten: some that count must have failed.
const PATIENCE: u32 = 4096;
/// A slow text is tried again once it has run, as it was sent, for so many times as long as that
/// takes.
const AGAIN: u64 = 128;

/// What is known of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// It was slow once: it is to be slow again before that is looked into.
    Noted,
    /// It is run in turns.
    Tried,
    /// It is slow prepared.
    Slow,
    /// It is as slow as it was sent.
    Fine,
}

/// A text, and what it took since it became suspect.
#[derive(Clone, Debug)]
struct Suspect {
    text: u64,
    verdict: Verdict,
    /// Runs either way that were begun.
    begun: u32,
    begun_prepared: u32,
    simple: (u32, u64),
    prepared: (u32, u64),
    /// What it took when it was suspected.
    took_us: u64,
}

impl Suspect {
    fn new(text: u64, us: u64) -> Self {
        Self {
            text,
            verdict: Verdict::Noted,
            begun: 0,
            begun_prepared: 0,
            simple: (0, 0),
            prepared: (0, 0),
            took_us: us,
        }
    }
}

/// All of them, those suspected last at the end.
#[derive(Clone, Debug, Default)]
pub(super) struct Suspects(Vec<Suspect>);

impl Suspects {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many texts are slow prepared.
    pub(super) fn slow(&self) -> u64 {
        self.0.iter().filter(|it| it.verdict == Verdict::Slow).count() as u64
    }

    /// A text took far longer than others when it ran prepared.
    pub(super) fn suspect(&mut self, text: u64, us: u64) {
        if self.0.iter().any(|it| it.text == text) {
            return;
        }
        if self.0.len() >= TEXTS_MAX {
            let other = |verdict| self.0.iter().position(|it| it.verdict == verdict);
            let order = [Verdict::Noted, Verdict::Fine, Verdict::Tried];
            let Some(oldest) = order.into_iter().find_map(other) else {
                return; // all are slow: the times of the others tell
            };
            self.0.remove(oldest);
        }
        self.0.push(Suspect::new(text, us));
    }

    /// Which way a text goes, if that is decided here.
    pub(super) fn turn(&mut self, text: u64) -> Option<Turn> {
        let place = self.0.iter().position(|it| it.text == text)?;
        let suspect = self.0.get_mut(place)?;
        match suspect.verdict {
            Verdict::Fine => None,
            Verdict::Noted => Some(Turn::Prepared),
            Verdict::Slow => Some(Turn::Simple),
            Verdict::Tried if suspect.begun >= PATIENCE => {
                self.0.remove(place);
                None
            }
            Verdict::Tried => {
                suspect.begun += 1;
                let prepared = suspect.begun_prepared < RUNS && suspect.begun % 2 == 0;
                suspect.begun_prepared += u32::from(prepared);
                Some(if prepared { Turn::Prepared } else { Turn::Simple })
            }
        }
    }

    /// A text whose way was decided here took so long. Once it is known which way is faster, says
    /// what it took when it was suspected: either this will not be again, or it was not the plan.
    pub(super) fn took(&mut self, text: u64, turn: Turn, us: u64, long: f64) -> Option<u64> {
        let suspect = self.0.iter_mut().find(|it| it.text == text)?;
        if suspect.verdict == Verdict::Noted {
            let slow = us as f64 > long;
            suspect.verdict = if slow { Verdict::Tried } else { Verdict::Fine };
            return (!slow).then_some(suspect.took_us);
        }
        let (runs, sum) = match turn {
            Turn::Simple => &mut suspect.simple,
            Turn::Prepared => &mut suspect.prepared,
        };
        *runs += 1;
        *sum += us;
        match suspect.verdict {
            Verdict::Fine | Verdict::Noted => None,
            Verdict::Slow => {
                if suspect.simple.1 > AGAIN * suspect.prepared.1 {
                    *suspect = Suspect::new(text, 0);
                }
                None
            }
            Verdict::Tried if suspect.simple.0 < RUNS || suspect.prepared.0 < RUNS => None,
            Verdict::Tried => {
                let mean = |(runs, sum): (u32, u64)| sum / u64::from(runs);
                let slow = mean(suspect.prepared) > SLOW * mean(suspect.simple);
                suspect.verdict = if slow { Verdict::Slow } else { Verdict::Fine };
                suspect.simple = (0, 0);
                Some(suspect.took_us)
            }
        }
    }
}

/// What a text is known by. Two texts that share it go the same way, which is always right.
pub(super) fn hash(text: &[u8]) -> u64 {
    let mut hash = text.len() as u64;
    let mut add =
        |word: u64| hash = (hash.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
    let (words, rest) = text.as_chunks::<8>();
    words.iter().for_each(|word| add(u64::from_le_bytes(*word)));
    rest.iter().for_each(|byte| add(u64::from(*byte)));
    hash
}
