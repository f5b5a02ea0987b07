//! Intervals: months, days and microseconds, in PostgreSQL's words.
//!
//! An interval is kept as the text that PostgreSQL prints. It is read from numbers with units and
//! from a time; the forms of ISO 8601 and of the SQL standard are refused.

use std::fmt::Write as _;
use std::ops::RangeInclusive;

use crate::failure::Failure;

/// Microseconds of a second.
const SECOND: i64 = 1_000_000;
/// Microseconds of a day.
pub(crate) const DAY: i64 = 86_400 * SECOND;

/// Units with the names in which they are written, in lower case: months, days and microseconds.
const UNITS: &[(&[&str], [i64; 3])] = &[
    (&["microseconds", "microsecond", "us", "usec", "usecs"], [0, 0, 1]),
    (&["milliseconds", "millisecond", "ms", "msec", "msecs"], [0, 0, 1000]),
    (&["seconds", "second", "secs", "sec", "s"], [0, 0, SECOND]),
    (&["minutes", "minute", "mins", "min", "m"], [0, 0, 60 * SECOND]),
    (&["hours", "hour", "hrs", "hr", "h"], [0, 0, 3600 * SECOND]),
    (&["days", "day", "d"], [0, 1, 0]),
    (&["weeks", "week", "w"], [0, 7, 0]),
    (&["months", "month", "mons", "mon"], [1, 0, 0]),
    (&["years", "year", "yrs", "yr", "y"], [12, 0, 0]),
    (&["decades", "decade", "decs", "dec"], [120, 0, 0]),
    (&["centuries", "century", "cent", "c"], [1200, 0, 0]),
];

/// Places in [`UNITS`].
const SECONDS: usize = 2;
const HOURS: usize = 4;
const DAYS: usize = 5;
const WEEKS: usize = 6;
const YEARS: usize = 8;

fn unit_of(name: &str) -> Option<usize> {
    let name = name.to_ascii_lowercase();
    UNITS.iter().position(|(names, _)| names.contains(&&*name))
}

/// True if units may follow others (`DecodeInterval` of the server): each comes once, and weeks,
/// decades and centuries are no longer of their own behind days and years.
fn is_next(seen: &[usize], mut units: RangeInclusive<usize>) -> bool {
    units.all(|unit| {
        let shorter = if unit == WEEKS { DAYS } else { YEARS };
        !seen.contains(&unit) && !((unit == WEEKS || unit > YEARS) && seen.contains(&shorter))
    })
}

/// A span of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Interval {
    pub(crate) months: i64,
    pub(crate) days: i64,
    pub(crate) micros: i64,
}

impl Interval {
    /// Reads an interval; `None` if it has another form or is too long.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let mut made = Self::default();
        let mut rest = text.trim().strip_prefix('@').unwrap_or(text.trim()).trim();
        let mut seen: Vec<usize> = Vec::new();
        while !rest.is_empty() {
            if rest.eq_ignore_ascii_case("ago") && !seen.is_empty() {
                return made.times(-1);
            }
            let end = rest.find(|c: char| !"+-0123456789.:".contains(c)).unwrap_or(rest.len());
            let (number, behind) = rest.split_at(end);
            let behind = behind.trim_start();
            let (part, units) = if number.contains(':') {
                rest = behind;
                (Self { micros: time_of(number)?, ..Self::default() }, 0..=HOURS)
            } else {
                let end = behind.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(behind.len());
                let (unit, behind) = behind.split_at(end);
                rest = behind.trim_start();
                let unit = match unit {
                    // A number alone is seconds, but days in front of a time.
                    "" if rest.is_empty() => SECONDS,
                    "" if rest.split(' ').next().is_some_and(|next| next.contains(':')) => DAYS,
                    "" => return None,
                    unit => unit_of(unit)?,
                };
                // A fraction of a second has its milliseconds and microseconds.
                let first = if unit == SECONDS && number.contains('.') { 0 } else { unit };
                (Self::of(number, unit)?, first..=unit)
            };
            if !is_next(&seen, units.clone()) {
                return None;
            }
            seen.extend(units);
            made = made.plus(part)?;
        }
        (!seen.is_empty()).then_some(made)
    }

    /// Reads an interval.
    ///
    /// # Errors
    /// 0A000: PostgreSQL has more forms of intervals.
    pub(crate) fn parse(text: &str) -> Result<Self, Failure> {
        Self::read(text).ok_or_else(|| {
            Failure::unsupported(format!("an interval of the form \"{text}\" is not supported"))
                .hint("write numbers with units: '1 year 2 mons 3 days 04:05:06'")
        })
    }

    /// Reads the binary form (`interval_recv`).
    pub(crate) fn of_bytes(bytes: &[u8]) -> Option<Self> {
        let (micros, rest) = bytes.split_first_chunk::<8>()?;
        let (days, rest) = rest.split_first_chunk::<4>()?;
        let months = i64::from(i32::from_be_bytes(rest.try_into().ok()?));
        let days = i64::from(i32::from_be_bytes(*days));
        Some(Self { months, days, micros: i64::from_be_bytes(*micros) })
    }

    /// Makes an interval of a number of units; `unit` is the place of one in [`UNITS`].
    fn of(number: &str, unit: usize) -> Option<Self> {
        let (_, [months, days, micros]) = UNITS.get(unit)?;
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        let negative = whole.starts_with('-');
        let sign = if negative { -1 } else { 1 };
        let digits = whole.strip_prefix(['+', '-']).unwrap_or(whole);
        if digits.is_empty() && fraction.is_empty() {
            return None;
        }
        let whole: i64 = if digits.is_empty() { 0 } else { digits.parse().ok()? };
        let whole = Self { months: *months, days: *days, micros: *micros }.times(sign * whole)?;
        if fraction.is_empty() {
            return Some(whole);
        }
        // A part of a month or a longer unit has no one length.
        if *months > 0 || fraction.len() > 9 {
            return None;
        }
        let length = i128::from(*micros + days * DAY);
        let scale = 10_i128.pow(u32::try_from(fraction.len()).ok()?);
        let parts: i128 = fraction.parse().ok()?;
        let micros = i64::try_from((parts * length * 2 + scale) / (scale * 2)).ok()?;
        // A part of a week is days and a rest.
        let (more, micros) = if *days > 1 { (micros / DAY, micros % DAY) } else { (0, micros) };
        whole.plus(Self { months: 0, days: sign * more, micros: sign * micros })
    }

    fn checked(months: Option<i64>, days: Option<i64>, micros: Option<i64>) -> Option<Self> {
        let fits = |number: &i64| i32::try_from(*number).is_ok();
        Some(Self { months: months.filter(fits)?, days: days.filter(fits)?, micros: micros? })
    }

    pub(crate) fn plus(self, other: Self) -> Option<Self> {
        Self::checked(
            self.months.checked_add(other.months),
            self.days.checked_add(other.days),
            self.micros.checked_add(other.micros),
        )
    }

    pub(crate) fn times(self, factor: i64) -> Option<Self> {
        Self::checked(
            self.months.checked_mul(factor),
            self.days.checked_mul(factor),
            self.micros.checked_mul(factor),
        )
    }

    /// Makes the interval between two moments: days, and the rest of a day.
    pub(crate) fn between(micros: i64) -> Self {
        Self { months: 0, days: micros / DAY, micros: micros % DAY }
    }

    /// Writes the interval as PostgreSQL does (`EncodeInterval` with the style `postgres`).
    pub(crate) fn text(self) -> String {
        let mut out = String::new();
        let mut before = false;
        for (value, unit) in
            [(self.months / 12, "year"), (self.months % 12, "mon"), (self.days, "day")]
        {
            if value == 0 {
                continue;
            }
            let blank = if out.is_empty() { "" } else { " " };
            let plus = if before && value > 0 { "+" } else { "" };
            let plural = if value == 1 { "" } else { "s" };
            // Writing to a text cannot fail.
            let _ = write!(out, "{blank}{plus}{value} {unit}{plural}");
            before = value < 0;
        }
        if out.is_empty() || self.micros != 0 {
            let blank = if out.is_empty() { "" } else { " " };
            let sign = match self.micros < 0 {
                true => "-",
                false if before => "+",
                false => "",
            };
            let micros = self.micros.unsigned_abs();
            let (seconds, fraction) = (micros / 1_000_000, micros % 1_000_000);
            let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
            let _ = write!(out, "{blank}{sign}{hours:02}:{minutes:02}:{:02}", seconds % 60);
            if fraction > 0 {
                out.push_str(format!(".{fraction:06}").trim_end_matches('0'));
            }
        }
        out
    }

    /// Returns the number of microseconds in which a month has 30 days: how intervals compare.
    pub(crate) fn span(self) -> i128 {
        (i128::from(self.months) * 30 + i128::from(self.days)) * i128::from(DAY)
            + i128::from(self.micros)
    }
}

/// Reads `[+-]HH:MM[:SS[.ffffff]]`, as microseconds.
fn time_of(text: &str) -> Option<i64> {
    let (sign, rest) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let mut parts = rest.split(':');
    let hours: i64 = parts.next()?.parse().ok()?;
    let minutes: i64 = parts.next()?.parse().ok()?;
    let seconds = parts.next().unwrap_or("0");
    let (whole, fraction) = seconds.split_once('.').unwrap_or((seconds, ""));
    let whole: i64 = whole.parse().ok()?;
    let fraction = format!("{fraction:0<6}");
    let micros: i64 = fraction.get(..6)?.parse().ok()?;
    if parts.next().is_some() || minutes > 59 || whole > 59 || fraction.len() > 6 {
        return None;
    }
    let seconds = hours.checked_mul(3600)?.checked_add(minutes * 60 + whole)?;
    Some(sign * seconds.checked_mul(SECOND)?.checked_add(micros)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_read_and_written_as_the_server_does() {
        for (read, written) in [
            ("1 day", "1 day"),
            ("1 year 2 months 3 days 04:05:06.7", "1 year 2 mons 3 days 04:05:06.7"),
            ("-1 month 3 days -00:00:01", "-1 mons +3 days -00:00:01"),
            ("-13 months", "-1 years -1 mons"),
            ("90 minutes", "01:30:00"),
            ("1.5 days", "1 day 12:00:00"),
            ("1.5 weeks", "10 days 12:00:00"),
            ("36h", "36:00:00"),
            ("5", "00:00:05"),
            ("-0.5 s", "-00:00:00.5"),
            ("@ 2 weeks ago", "-14 days"),
            ("-1 day +02:03", "-1 days +02:03:00"),
            ("0", "00:00:00"),
        ] {
            let made = Interval::read(read).map(Interval::text);
            assert_eq!(made.as_deref(), Some(written), "{read}");
        }
        for text in
            ["", "P1D", "1 fortnight", "1.5 months", "day", "1:99", "ago", "99999999999 days"]
        {
            assert_eq!(Interval::read(text), None, "{text}");
        }
    }
}
