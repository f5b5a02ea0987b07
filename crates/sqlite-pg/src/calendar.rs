//! Dates and times: ISO 8601 as SQLite stores them, and PostgreSQL's numbers on the wire.
//!
//! Dates are days and times are microseconds, both from 2000-01-01, in the proleptic Gregorian
//! calendar (`src/include/datatype/timestamp.h`). Text is read in ISO 8601 with a blank or `T`
//! between date and time, and written as PostgreSQL writes it under `DateStyle` ISO. A moment with
//! a time zone is stored and written in UTC, so that stored moments compare as texts.
//!
//! Values are written in UTC. Where another zone of the session would give another value, there is
//! an error ([`in_utc`]).
//!
//! Not here: names of time zones, BC, `infinity`, `now`, `today`. They are refused.

use std::cell::Cell;

use crate::failure::Failure;

/// Days from 1970-01-01 to 2000-01-01.
const EPOCH_DAYS: i64 = 10_957;
/// Microseconds of a second.
const SECOND: i64 = 1_000_000;
/// Microseconds of a day.
const DAY: i64 = 86_400 * SECOND;
/// The last year. A later one as text would compare as less.
const YEAR_MAX: i64 = 9999;

/// Maximum distance of a zone from UTC, in whole hours.
const ZONE_HOURS_MAX: i64 = 15;

thread_local! {
    /// Whether the session's time zone is UTC.
    static UTC: Cell<bool> = const { Cell::new(true) };
}

/// Notes the time zone of the session whose statement this thread runs.
pub(crate) fn note_zone(name: &str) {
    const NAMES: &[&str] = &[
        "UTC",
        "GMT",
        "Z",
        "UCT",
        "Zulu",
        "Universal",
        "Greenwich",
        "Etc/UTC",
        "Etc/GMT",
        "Etc/UCT",
        "Etc/Universal",
        "Etc/Zulu",
        "GMT0",
        "GMT+0",
        "0",
        "+00",
        "+00:00",
        "<+00>-00",
    ];
    UTC.set(NAMES.iter().any(|known| known.eq_ignore_ascii_case(name)));
}

/// Refuses what depends on the session's time zone, unless that is UTC.
///
/// # Errors
/// 0A000.
pub(crate) fn in_utc() -> Result<(), Failure> {
    if UTC.get() {
        return Ok(());
    }
    Err(Failure::unsupported("this depends on the time zone, and no zone but UTC is supported")
        .hint("write SET timezone = 'UTC', a zone in the value, or AT TIME ZONE 'UTC'"))
}

/// The rest of a text, which is read part by part.
struct DateReader<'a>(&'a [u8]);

impl DateReader<'_> {
    fn take(&mut self, wanted: &[u8]) -> Option<u8> {
        let (&first, rest) = self.0.split_first()?;
        if !wanted.contains(&first) {
            return None;
        }
        self.0 = rest;
        Some(first)
    }

    /// Reads a number of `min` to `max` digits.
    fn number(&mut self, min: usize, max: usize) -> Option<i64> {
        let digits = self.0.iter().take(max).take_while(|byte| byte.is_ascii_digit()).count();
        if digits < min {
            return None;
        }
        let (number, rest) = self.0.split_at(digits);
        self.0 = rest;
        Some(number.iter().fold(0, |all, digit| 10 * all + i64::from(digit - b'0')))
    }

    fn blanks(&mut self) {
        self.0 = self.0.trim_ascii_start();
    }

    fn end(&self) -> Option<()> {
        self.0.is_empty().then_some(())
    }

    /// Reads `YYYY-MM-DD` or `YYYYMMDD`, as days from 2000-01-01.
    fn date(&mut self) -> Option<i64> {
        let year = self.number(4, 4)?;
        let apart = self.take(b"-").is_some();
        let digits = if apart { 1 } else { 2 };
        let month = self.number(digits, 2)?;
        if apart {
            self.take(b"-")?;
        }
        let day = self.number(digits, 2)?;
        let sound = (1..=12).contains(&month) && (1..=month_days(year, month)).contains(&day);
        (sound && year > 0).then(|| days_of(year, month, day))
    }

    /// Reads a date, with or without a time and a zone: days, microseconds of the day, and
    /// microseconds to the east of UTC.
    fn moment(&mut self) -> Option<(i64, i64, i64)> {
        let days = self.date()?;
        let timed = self.take(b"Tt").is_some();
        let apart = timed || self.0.first() == Some(&b' ');
        self.blanks();
        let next = self.0.first().copied().unwrap_or(b' ');
        // A sign right after a date would be another part of the date.
        if !apart && (next.is_ascii_digit() || next == b'-') {
            return None;
        }
        let micros = if timed || next.is_ascii_digit() { self.time()? } else { 0 };
        let east = self.zone()?;
        self.end()?;
        Some((days, micros, east))
    }

    /// Reads `HH:MM[:SS[.ffffff]]`, as microseconds.
    fn time(&mut self) -> Option<i64> {
        let hour = self.number(1, 2)?;
        self.take(b":")?;
        let minute = self.number(2, 2)?;
        let mut second = 0;
        let mut micros = 0;
        if self.take(b":").is_some() {
            second = self.number(2, 2)?;
            if self.take(b".").is_some() {
                micros = self.micros()?;
            }
        }
        let sound = hour < 24 && minute < 60 && second < 60;
        let whole = sound || (hour, minute, second, micros) == (24, 0, 0, 0);
        whole.then_some(((hour * 60 + minute) * 60 + second) * SECOND + micros)
    }

    /// Reads the digits of a fraction. The seventh rounds the sixth.
    fn micros(&mut self) -> Option<i64> {
        let before = self.0.len();
        let value = self.number(1, 6)?;
        let digits = before - self.0.len();
        let missing = u32::try_from(6 - digits).ok()?;
        let round = i64::from(self.0.first().is_some_and(|digit| (b'5'..=b'9').contains(digit)));
        while self.number(1, 9).is_some() {}
        Some(value * 10_i64.pow(missing) + round)
    }

    /// Reads `Z`, `+H`, `+HHMM`, `+HH:MM[:SS]`, or nothing, as microseconds to the east of UTC
    /// (`DecodeTimezone` of the server).
    fn zone(&mut self) -> Option<i64> {
        self.blanks();
        if self.0.is_empty() {
            return Some(0);
        }
        if ["utc", "gmt", "z"].iter().any(|name| self.0.eq_ignore_ascii_case(name.as_bytes())) {
            self.0 = b"";
            return Some(0);
        }
        let sign = if self.take(b"+-")? == b'-' { -1 } else { 1 };
        let before = self.0.len();
        let hour = self.number(1, 4)?;
        let together = before - self.0.len() > 2;
        let (hour, mut minute) = if together { (hour / 100, hour % 100) } else { (hour, 0) };
        let mut second = 0;
        if !together && self.take(b":").is_some() {
            minute = self.number(1, 2)?;
            second = if self.take(b":").is_some() { self.number(1, 2)? } else { 0 };
        }
        let sound = hour <= ZONE_HOURS_MAX && minute < 60 && second < 60;
        sound.then_some(sign * ((hour * 60 + minute) * 60 + second) * SECOND)
    }
}

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

pub(crate) fn month_days(year: i64, month: i64) -> i64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Computes days from 2000-01-01. Counts years that begin in March (Howard Hinnant,
/// `days_from_civil`).
pub(crate) fn days_of(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let days = of_era * 365 + of_era / 4 - of_era / 100 + of_year;
    era * 146_097 + days - 719_468 - EPOCH_DAYS
}

/// Computes year, month and day (`civil_from_days`).
pub(crate) fn civil_of(days: i64) -> (i64, i64, i64) {
    let days = days + EPOCH_DAYS + 719_468;
    let era = days.div_euclid(146_097);
    let day = days.rem_euclid(146_097);
    let of_era = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let of_year = day - (365 * of_era + of_era / 4 - of_era / 100);
    let shifted = (5 * of_year + 2) / 153;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = of_era + era * 400 + i64::from(month <= 2);
    (year, month, of_year - (153 * shifted + 2) / 5 + 1)
}

/// Reads a date, and ignores a time and a zone after it.
pub(crate) fn read_date(text: &[u8]) -> Option<i32> {
    let (days, ..) = DateReader(text.trim_ascii()).moment()?;
    i32::try_from(days).ok()
}

/// Reads a time of day, and ignores a zone after it.
pub(crate) fn read_time(text: &[u8]) -> Option<i64> {
    let mut reader = DateReader(text.trim_ascii());
    let micros = reader.time()?;
    reader.zone()?;
    reader.end()?;
    Some(micros)
}

/// Reads a date with or without a time. Applies the zone if `zoned`, and ignores it otherwise, as
/// PostgreSQL does.
pub(crate) fn read_timestamp(text: &[u8], zoned: bool) -> Option<i64> {
    let (days, micros, east) = DateReader(text.trim_ascii()).moment()?;
    Some(days * DAY + micros - if zoned { east } else { 0 })
}

/// True if a moment is written with its zone.
pub(crate) fn is_zoned(text: &[u8]) -> bool {
    let mut reader = DateReader(text.trim_ascii());
    if reader.date().is_none() {
        return false;
    }
    reader.take(b"Tt");
    reader.blanks();
    if reader.0.first().is_some_and(u8::is_ascii_digit) && reader.time().is_none() {
        return false;
    }
    reader.blanks();
    !reader.0.is_empty()
}

/// Writes a date; `None` if its year does not have four digits.
pub(crate) fn date_text(days: i32) -> Option<String> {
    let (year, month, day) = civil_of(i64::from(days));
    (1..=YEAR_MAX).contains(&year).then(|| format!("{year:04}-{month:02}-{day:02}"))
}

/// Writes a time of day; `None` if the number is no time of day.
pub(crate) fn time_text(micros: i64) -> Option<String> {
    if !(0..=DAY).contains(&micros) {
        return None;
    }
    let (seconds, fraction) = (micros / SECOND, micros % SECOND);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    let mut text = format!("{hour:02}:{minute:02}:{second:02}");
    if fraction > 0 {
        text.push_str(format!(".{fraction:06}").trim_end_matches('0'));
    }
    Some(text)
}

/// Writes a moment, with the zone of UTC if `zoned`.
pub(crate) fn timestamp_text(micros: i64, zoned: bool) -> Option<String> {
    let days = i32::try_from(micros.div_euclid(DAY)).ok()?;
    let mut text = date_text(days)?;
    text.push(' ');
    text.push_str(&time_text(micros.rem_euclid(DAY))?);
    if zoned {
        text.push_str("+00");
    }
    Some(text)
}

/// Returns the current time by the system's clock, in microseconds from 2000-01-01.
pub(crate) fn now() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let micros = since.map_or(0, |since| i64::try_from(since.as_micros()).unwrap_or(0));
    micros - EPOCH_DAYS * DAY
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_count_from_2000() {
        assert_eq!(read_date(b"2000-01-01"), Some(0));
        assert_eq!(read_date(b"2024-02-29"), Some(8825));
        assert_eq!(read_date(b"1999-12-31 23:59:59"), Some(-1));
        assert_eq!(read_date(b"2023-02-29"), None);
        assert_eq!(read_date(b"now"), None);
        assert_eq!(read_date(b"0000-01-01"), None, "there is no year 0");
        assert_eq!(read_date(b"20240229"), Some(8825));
        assert_eq!(read_date(b"20240229 12:00"), Some(8825));
        assert_eq!(read_date(b"2024022912:00"), None);
        for days in (-700_000..2_000_000).step_by(97) {
            let Some(text) = date_text(days) else { continue };
            assert_eq!(read_date(text.as_bytes()), Some(days), "{text}");
        }
    }

    #[test]
    fn a_zone_may_stand_behind_a_date() {
        for zone in
            [" +00", "+00", " -05:30", "Z", " utc", " GMT", " +5", " 12:00-0530", "T01:00+15:59:59"]
        {
            assert_eq!(read_date(format!("2024-02-29{zone}").as_bytes()), Some(8825), "{zone}");
        }
        for zone in ["-05", " +16", " +05:60", " +12345", " BC", "T", " x", " 12:00 +2:x"] {
            assert_eq!(read_date(format!("2024-02-29{zone}").as_bytes()), None, "{zone}");
        }
        let midnight = |zone: &str| read_timestamp(format!("2000-01-01{zone}").as_bytes(), true);
        assert_eq!(midnight(" +02"), Some(-7200 * SECOND));
        assert_eq!(midnight("+123"), Some(-(3600 + 23 * 60) * SECOND));
    }

    #[test]
    fn times_and_moments() {
        assert_eq!(read_time(b"01:02:03.5"), Some(3_723_500_000));
        assert_eq!(time_text(3_723_500_000).unwrap(), "01:02:03.5");
        assert_eq!(read_time(b"25:00"), None);
        assert_eq!(read_time(b"01:02:03.5+05:30"), Some(3_723_500_000));
        assert_eq!(read_time(b"01:02:03.5+"), None);
        assert_eq!(read_timestamp(b"2000-01-01T00:00:01Z", true), Some(SECOND));
        assert_eq!(read_timestamp(b"2000-01-01 02:00:00+02:00", true), Some(0));
        assert_eq!(read_timestamp(b"2000-01-01 02:00:00+02", false), Some(7200 * SECOND));
        assert_eq!(timestamp_text(-1, true).unwrap(), "1999-12-31 23:59:59.999999+00");
        assert_eq!(timestamp_text(i64::MAX, false), None);
        assert_eq!(read_timestamp(b"2000-01-01 00:00:00.1234567", false), Some(123_457));
    }
}
