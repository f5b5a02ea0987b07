//! Computations with moments: parts of them, shorter forms, and intervals added and subtracted, as
//! PostgreSQL does (`timestamp.c`). Moments are microseconds from 2000-01-01.

use crate::calendar::{civil_of, days_of, month_days};
use crate::intervals::{DAY, Interval};

const SECOND: i64 = 1_000_000;
/// Seconds from 1970-01-01 to 2000-01-01.
const UNIX: i64 = 946_684_800;

/// A part of a moment: a whole number, or one with so many digits behind the point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Whole(i64),
    Decimal(i64, u32),
}

impl Part {
    /// Writes it as a `numeric`; none if it is a whole number.
    pub(crate) fn decimal(self) -> Option<String> {
        let Self::Decimal(value, scale) = self else { return None };
        let unit = 10_u64.pow(scale);
        let (whole, rest) = (value.unsigned_abs() / unit, value.unsigned_abs() % unit);
        let sign = if value < 0 { "-" } else { "" };
        Some(format!("{sign}{whole}.{rest:0width$}", width = scale as usize))
    }

    pub(crate) fn float(self) -> f64 {
        match self {
            Self::Whole(value) => value as f64,
            Self::Decimal(value, scale) => value as f64 / 10_f64.powi(scale.cast_signed()),
        }
    }
}

/// Returns the unit by any of its names.
fn unit_of(word: &str) -> Option<&'static str> {
    const UNITS: &[&[&str]] = &[
        &["microseconds", "microsecond", "us"],
        &["milliseconds", "millisecond", "ms"],
        &["second", "seconds", "sec", "s"],
        &["minute", "minutes", "min", "m"],
        &["hour", "hours", "hr", "h"],
        &["day", "days", "d"],
        &["week", "weeks", "w"],
        &["month", "months", "mon"],
        &["quarter", "qtr"],
        &["year", "years", "yr", "y"],
        &["decade", "decades"],
        &["century", "centuries", "c"],
        &["millennium", "millennia", "mil"],
        &["dow"],
        &["isodow"],
        &["doy"],
        &["isoyear"],
        &["epoch"],
    ];
    let word = word.to_ascii_lowercase();
    UNITS.iter().find(|names| names.contains(&&*word)).and_then(|names| names.first()).copied()
}

/// Returns the Monday of the week of a day, and the ISO year and week.
fn iso_week(days: i64) -> (i64, i64, i64) {
    let monday = days - (days + 5).rem_euclid(7);
    let (year, ..) = civil_of(monday + 3);
    let first = days_of(year, 1, 4);
    let first_monday = first - (first + 5).rem_euclid(7);
    (monday, year, (monday - first_monday) / 7 + 1)
}

fn century(year: i64, length: i64) -> i64 {
    (year + length - 1).div_euclid(length)
}

/// Returns a part of a moment (`extract`); `None` for an unknown one. `date` is true for a date,
/// which has no hours.
pub(crate) fn part(word: &str, micros: i64, date: bool) -> Option<Part> {
    let (days, of_day) = (micros.div_euclid(DAY), micros.rem_euclid(DAY));
    let (year, month, day) = civil_of(days);
    let in_minute = of_day % (60 * SECOND);
    let unit = unit_of(word)?;
    let of_time = ["microseconds", "milliseconds", "second", "minute", "hour"];
    if date && of_time.contains(&unit) {
        return None;
    }
    Some(Part::Whole(match unit {
        "microseconds" => in_minute,
        "milliseconds" => return Some(Part::Decimal(in_minute, 3)),
        "second" => return Some(Part::Decimal(in_minute, 6)),
        "minute" => of_day / (60 * SECOND) % 60,
        "hour" => of_day / (3600 * SECOND),
        "day" => day,
        "week" => iso_week(days).2,
        "month" => month,
        "quarter" => (month - 1) / 3 + 1,
        "year" => year,
        "decade" => year.div_euclid(10),
        "century" => century(year, 100),
        "millennium" => century(year, 1000),
        "dow" => (days + 6).rem_euclid(7),
        "isodow" => (days + 5).rem_euclid(7) + 1,
        "doy" => days - days_of(year, 1, 1) + 1,
        "isoyear" => iso_week(days).1,
        _ if date => days * 86_400 + UNIX,
        _ => return Some(Part::Decimal(micros + UNIX * SECOND, 6)),
    }))
}

/// Returns a part of an interval.
pub(crate) fn part_of_interval(word: &str, it: Interval) -> Option<Part> {
    let seconds = it.micros % (60 * SECOND);
    let years = it.months / 12;
    Some(Part::Whole(match unit_of(word)? {
        "microseconds" => seconds,
        "milliseconds" => return Some(Part::Decimal(seconds, 3)),
        "second" => return Some(Part::Decimal(seconds, 6)),
        "minute" => it.micros / (60 * SECOND) % 60,
        "hour" => it.micros / (3600 * SECOND),
        "day" => it.days,
        "month" => it.months % 12,
        "quarter" => it.months % 12 / 3 + 1,
        "year" => years,
        "decade" => years / 10,
        "century" => years / 100,
        "millennium" => years / 1000,
        "epoch" => {
            // A year has 365.25 days, a month 30 (`interval_part_common`).
            let days = years.checked_mul(1461)?.checked_mul(DAY / 4)?;
            let rest = (it.months % 12 * 30 + it.days).checked_mul(DAY)?;
            return Some(Part::Decimal(days.checked_add(rest)?.checked_add(it.micros)?, 6));
        }
        _ => return None,
    }))
}

/// Cuts a moment down to a unit (`date_trunc`); `None` for an unknown one.
pub(crate) fn truncated(word: &str, micros: i64) -> Option<i64> {
    let days = micros.div_euclid(DAY);
    let (year, month, _) = civil_of(days);
    let to = |length: i64| micros - micros.rem_euclid(length);
    let first = |year: i64, month: i64| days_of(year, month, 1) * DAY;
    Some(match unit_of(word)? {
        "microseconds" => micros,
        "milliseconds" => to(1000),
        "second" => to(SECOND),
        "minute" => to(60 * SECOND),
        "hour" => to(3600 * SECOND),
        "day" => to(DAY),
        "week" => iso_week(days).0 * DAY,
        "month" => first(year, month),
        "quarter" => first(year, (month - 1) / 3 * 3 + 1),
        "year" => first(year, 1),
        "decade" if year >= 10 => first(year / 10 * 10, 1),
        "century" => first((century(year, 100) - 1) * 100 + 1, 1),
        "millennium" => first((century(year, 1000) - 1) * 1000 + 1, 1),
        _ => return None,
    })
}

/// Adds an interval to a moment: first the months, then the days, then the rest.
pub(crate) fn plus(micros: i64, it: Interval) -> Option<i64> {
    let (mut days, of_day) = (micros.div_euclid(DAY), micros.rem_euclid(DAY));
    if it.months != 0 {
        let (year, month, day) = civil_of(days);
        let months = year.checked_mul(12)?.checked_add(month - 1)?.checked_add(it.months)?;
        let (year, month) = (months.div_euclid(12), months.rem_euclid(12) + 1);
        days = days_of(year, month, day.min(month_days(year, month)));
    }
    days.checked_add(it.days)?.checked_mul(DAY)?.checked_add(of_day)?.checked_add(it.micros)
}

/// Returns how long a moment is after another one, in years, months, days and less (`age`).
pub(crate) fn age(later: i64, earlier: i64) -> Option<Interval> {
    if later < earlier {
        return age_between(later, earlier, -1)?.times(-1);
    }
    age_between(later, earlier, 1)
}

fn age_between(later: i64, earlier: i64, sign: i64) -> Option<Interval> {
    let fields = |micros: i64| (civil_of(micros.div_euclid(DAY)), micros.rem_euclid(DAY));
    let ((year, month, day), rest) = fields(later);
    let ((from_year, from_month, from_day), from_rest) = fields(earlier);
    let mut micros = sign * (rest - from_rest);
    let mut days = sign * (day - from_day);
    let mut months = sign * ((year - from_year) * 12 + month - from_month);
    if micros < 0 {
        micros += DAY;
        days -= 1;
    }
    if days < 0 {
        let (year, month) = if sign < 0 { (year, month) } else { (from_year, from_month) };
        days += month_days(year, month);
        months -= 1;
    }
    Some(Interval { months, days, micros })
}
