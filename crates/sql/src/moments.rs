//! Moments: values that PostgreSQL may read as a point in time that depends on the present.
//!
//! What: `'now'::timestamp` is another value each time, and so are `today`, `tomorrow` and
//! `yesterday`, in any case, among blanks and other parts of a date, in arrays, ranges and rows.
//! [`names_moment`] looks at a value ([`crate::normalize::Span::names_moment`] at a literal), and
//! [`Suspects`] says which parameters of a statement have to be looked at.
//!
//! What always holds: no moment is missed. PostgreSQL's reader of dates (`ParseDateTime`) takes the
//! longest run of letters as a word, and looks up whole words; so these four count wherever they
//! stand as a run of ASCII letters of their own. `epoch`, `infinity` and `allballs` do not depend
//! on the present.

/// The words.
const MOMENTS: &[&[u8]] = &[b"now", b"today", b"tomorrow", b"yesterday"];

/// The bit that all ASCII letters have, and no digit.
const LETTER: u8 = 0x40;

/// True if a value may name a moment that depends on the present.
#[inline]
pub fn names_moment(value: &[u8]) -> bool {
    // Most values are numbers: no branch for each byte of theirs.
    value.iter().fold(0, |bits, byte| bits | byte) & LETTER != 0 && has_moment(value)
}

fn has_moment(value: &[u8]) -> bool {
    let mut at = 0;
    while let Some(skipped) = value[at..].iter().position(u8::is_ascii_alphabetic) {
        let begin = at + skipped;
        let letters = value[begin..].iter().position(|byte| !byte.is_ascii_alphabetic());
        let end = letters.map_or(value.len(), |letters| begin + letters);
        let word = &value[begin..end];
        if MOMENTS.iter().any(|moment| word.eq_ignore_ascii_case(moment)) {
            return true;
        }
        at = end;
    }
    false
}

/// The moments that values of a type may name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Names {
    /// Nothing.
    Nothing,
    /// A moment if the statement turns texts into dates.
    Text,
    /// A moment.
    Moment,
}

/// Types whose values are never dates: numbers, truth values, bytes, bits, money, intervals,
/// addresses, shapes, words for searches, and arrays and ranges of these.
const NO_DATES: &[u32] = &[
    16, 17, 20, 21, 22, 23, 26, 27, 28, 30, 600, 601, 602, 603, 604, 628, 650, 651, 700, 701, 718,
    719, 774, 775, 790, 791, 829, 869, 1000, 1001, 1005, 1007, 1016, 1021, 1022, 1028, 1040, 1041,
    1186, 1187, 1231, 1560, 1561, 1562, 1563, 1700, 2950, 2951, 3220, 3221, 3614, 3615, 3643, 3645,
    3904, 3905, 3906, 3907, 3926, 3927, 4451, 4532, 4536, 5069,
];
/// Types whose values are texts, or may have texts in them, and arrays of these.
const TEXTS: &[u32] = &[
    18, 19, 25, 114, 142, 143, 199, 1002, 1003, 1009, 1014, 1015, 1042, 1043, 3802, 3807, 4072,
    4073,
];

fn names_of(oid: u32) -> Names {
    if NO_DATES.binary_search(&oid).is_ok() {
        Names::Nothing
    } else if TEXTS.binary_search(&oid).is_ok() {
        Names::Text
    } else {
        // Dates, what the server finds out (0), and types of users.
        Names::Moment
    }
}

/// The parameters of a statement whose values may name a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Suspects(u64);

/// The bit that stands for all parameters from this place on.
const REST: usize = 63;

impl Suspects {
    /// Returns those of a statement with parameters of these types. Those beyond count as types
    /// that the server finds out. `dates` says whether it may turn texts into dates
    /// ([`crate::reads::Mentioned::dates`]).
    pub fn of(types: impl IntoIterator<Item = u32>, dates: bool) -> Self {
        let (mut bits, mut count) = (0, 0);
        for oid in types {
            let suspect = match names_of(oid) {
                Names::Nothing => false,
                Names::Text => dates,
                Names::Moment => true,
            };
            bits |= u64::from(suspect) << count.min(REST);
            count += 1;
        }
        Self(if count <= REST { bits | u64::MAX << count } else { bits })
    }

    /// True if one of the first `count` parameters is among them.
    #[inline]
    pub fn has_any(self, count: usize) -> bool {
        count > REST || self.0 & ((1 << count) - 1) != 0
    }

    /// True if the parameter at this place, counted from 0, is among them.
    #[inline]
    pub fn has(self, place: usize) -> bool {
        self.0 >> place.min(REST) & 1 == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_name_a_moment() {
        for value in [
            "now",
            " Now ",
            "today",
            "TOMORROW 12:00",
            "yesterday",
            "10:00today",
            "{now}",
            "[today,)",
            "(1,\"now\")",
            "now+02",
            "today;",
            "now Europe/Paris",
            "epoch,now",
        ] {
            assert!(names_moment(value.as_bytes()), "{value}");
        }
        for value in
            ["", "know", "nowhere", "2020-01-01", "todays", "infinity", "epoch", "allballs", "a"]
        {
            assert!(!names_moment(value.as_bytes()), "{value}");
        }
    }

    #[test]
    fn parameters_that_have_to_be_looked_at() {
        let sorted = |types: &[u32]| types.is_sorted();
        assert!(sorted(NO_DATES) && sorted(TEXTS));
        let (int, text, date, own) = (23, 25, 1082, 70_000);
        let suspects = Suspects::of([int, text, date, own, 0], false);
        let has = |suspects: Suspects| (0..7).map(|at| suspects.has(at)).collect::<Vec<_>>();
        assert_eq!(has(suspects), [false, false, true, true, true, true, true]);
        let suspects = Suspects::of([int, text, int], true);
        assert_eq!(has(suspects), [false, true, false, true, true, true, true]);
        let many = Suspects::of([int; 100], false);
        assert!(!many.has(63) && !many.has(99));
        let last = Suspects::of((0..100).map(|at| if at == 99 { date } else { int }), false);
        assert!(!last.has(62) && last.has(63) && last.has(99));
    }
}
