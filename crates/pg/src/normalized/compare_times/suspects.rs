//! Suspect texts: query strings that took many times as long as others when they ran prepared.
//!
//! The generic plan may fit nearly all values and be far off for a few. A text that was slow is
//! noted. If it is slow again, it runs by the simple protocol and prepared in turns, so that it is
//! compared with itself. The executions that made it suspect do not count, since they may have been
//! chance. If the plan is the cause, this text runs by the simple protocol from then on, and the
//! others stay prepared.

use super::Turn;

/// Texts that are remembered.
const TEXTS_MAX: usize = 32;
/// Executions of a text each way that decide.
const RUNS: u32 = 2;
/// A text is slow if a prepared execution takes more than this multiple of a simple one.
const SLOW: u64 = 2;
/// Runs of a tried text after which it is forgotten: some of those that count must have failed.
const PATIENCE: u32 = 4096;
/// A slow text is noted anew once its simple executions took this multiple of the time of its
/// prepared ones in the trial.
const AGAIN: u64 = 128;

/// The verdict about a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SuspectState {
    /// It was slow once. It is tried if it is slow again.
    Noted,
    /// It runs prepared and simple in turns.
    Tried,
    /// It is slow prepared.
    Slow,
    /// It is about as slow by the simple protocol, or was not slow again.
    Fine,
}

/// A text, and its times since it became suspect.
#[derive(Clone, Debug)]
struct Suspect {
    text: u64,
    verdict: SuspectState,
    /// Runs that were begun, and those of them that were prepared.
    begun: u32,
    begun_prepared: u32,
    /// Number and total time of the runs that ended, in microseconds.
    simple: (u32, u64),
    prepared: (u32, u64),
    /// The time of the execution that made it suspect, in microseconds.
    took_us: u64,
}

impl Suspect {
    fn new(text: u64, us: u64) -> Self {
        Self {
            text,
            verdict: SuspectState::Noted,
            begun: 0,
            begun_prepared: 0,
            simple: (0, 0),
            prepared: (0, 0),
            took_us: us,
        }
    }
}

/// The suspect texts of a statement, the latest at the end.
#[derive(Clone, Debug, Default)]
pub(super) struct Suspects(Vec<Suspect>);

impl Suspects {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the number of texts that are slow prepared.
    pub(super) fn slow(&self) -> u64 {
        self.0.iter().filter(|it| it.verdict == SuspectState::Slow).count() as u64
    }

    /// Notes a text that took far longer than others when it ran prepared.
    pub(super) fn suspect(&mut self, text: u64, us: u64) {
        if self.0.iter().any(|it| it.text == text) {
            return;
        }
        if self.0.len() >= TEXTS_MAX {
            let other = |verdict| self.0.iter().position(|it| it.verdict == verdict);
            let order = [SuspectState::Noted, SuspectState::Fine, SuspectState::Tried];
            let Some(oldest) = order.into_iter().find_map(other) else {
                return; // all are slow: the comparison of all executions decides
            };
            self.0.remove(oldest);
        }
        self.0.push(Suspect::new(text, us));
    }

    /// Whether a text is a suspect with a verdict that decides its way.
    pub(super) fn decide(&self, text: u64) -> bool {
        self.0.iter().any(|it| it.text == text && it.verdict != SuspectState::Fine)
    }

    /// Returns which way a text goes, if it is a suspect with a verdict that decides it.
    pub(super) fn turn(&mut self, text: u64) -> Option<Turn> {
        let place = self.0.iter().position(|it| it.text == text)?;
        let suspect = self.0.get_mut(place)?;
        match suspect.verdict {
            SuspectState::Fine => None,
            SuspectState::Noted => Some(Turn::Prepared),
            SuspectState::Slow => Some(Turn::Simple),
            SuspectState::Tried if suspect.begun >= PATIENCE => {
                self.0.remove(place);
                None
            }
            SuspectState::Tried => {
                suspect.begun += 1;
                let prepared = suspect.begun_prepared < RUNS && suspect.begun % 2 == 0;
                suspect.begun_prepared += u32::from(prepared);
                Some(if prepared { Turn::Prepared } else { Turn::Simple })
            }
        }
    }

    /// Counts the time of a text whose way was decided here. Returns the time that made it suspect
    /// once there is a verdict: either this will not happen again, or the plan was not the cause.
    pub(super) fn took(&mut self, text: u64, turn: Turn, us: u64, long: f64) -> Option<u64> {
        let suspect = self.0.iter_mut().find(|it| it.text == text)?;
        if suspect.verdict == SuspectState::Noted {
            let slow = us as f64 > long;
            suspect.verdict = if slow { SuspectState::Tried } else { SuspectState::Fine };
            return (!slow).then_some(suspect.took_us);
        }
        let (runs, sum) = match turn {
            Turn::Simple => &mut suspect.simple,
            Turn::Prepared => &mut suspect.prepared,
        };
        *runs += 1;
        *sum += us;
        match suspect.verdict {
            SuspectState::Fine | SuspectState::Noted => None,
            SuspectState::Slow => {
                if suspect.simple.1 > AGAIN * suspect.prepared.1 {
                    *suspect = Suspect::new(text, 0);
                }
                None
            }
            SuspectState::Tried if suspect.simple.0 < RUNS || suspect.prepared.0 < RUNS => None,
            SuspectState::Tried => {
                let mean = |(runs, sum): (u32, u64)| sum / u64::from(runs);
                let slow = mean(suspect.prepared) > SLOW * mean(suspect.simple);
                suspect.verdict = if slow { SuspectState::Slow } else { SuspectState::Fine };
                suspect.simple = (0, 0);
                Some(suspect.took_us)
            }
        }
    }
}

/// Returns the hash by which a text is recognized. Two texts with the same hash go the same way,
/// which is harmless: either way gives the same result.
pub(super) fn hash(text: &[u8]) -> u64 {
    let mut hash = text.len() as u64;
    let mut add =
        |word: u64| hash = (hash.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
    let (words, rest) = text.as_chunks::<8>();
    words.iter().for_each(|word| add(u64::from_le_bytes(*word)));
    rest.iter().for_each(|byte| add(u64::from(*byte)));
    hash
}
