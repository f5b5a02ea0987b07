//! The time zone of the times in the log (`log_timezone`).

use std::sync::{PoisonError, RwLock};

use jiff::tz::TimeZone;
use jiff::{Timestamp, ZonedDateTime};

/// The zone; `None` is UTC.
static ZONE: RwLock<Option<TimeZone>> = RwLock::new(None);

/// Sets the zone by its name.
///
/// # Errors
/// The machine does not know the zone. Then it is UTC.
pub(crate) fn set(name: &str) -> Result<(), String> {
    let found = match name {
        "UTC" => Ok(None),
        "system" => TimeZone::try_system().map(Some),
        name => TimeZone::get(name).map(Some),
    };
    let (zone, outcome) = match found {
        Ok(zone) => (zone, Ok(())),
        Err(error) => (None, Err(format!("log_timezone: {error}; times are in UTC"))),
    };
    *ZONE.write().unwrap_or_else(PoisonError::into_inner) = zone;
    outcome
}

/// Returns the time that it is, as the log writes it.
pub(super) fn now() -> String {
    let zone = ZONE.read().unwrap_or_else(PoisonError::into_inner);
    written(Timestamp::now(), zone.as_ref())
}

/// Returns the time that it is, as syslog has it.
pub(super) fn syslog_now() -> String {
    let zone = ZONE.read().unwrap_or_else(PoisonError::into_inner);
    let zoned = ZonedDateTime::new(Timestamp::now(), zone.clone().unwrap_or(TimeZone::UTC));
    zoned.strftime("%b %e %H:%M:%S").to_string()
}

fn written(time: Timestamp, zone: Option<&TimeZone>) -> String {
    match zone {
        None => time.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string(),
        Some(zone) => {
            let zoned = ZonedDateTime::new(time, zone.clone());
            zoned.strftime("%Y-%m-%dT%H:%M:%S%.6f%:z").to_string()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_that_of_its_zone() {
        let time = Timestamp::from_microsecond(1_790_000_000_000_007).unwrap();
        assert_eq!(written(time, None), "2026-09-21T14:13:20.000007Z");
        // Berlin's rule, whether or not this machine knows the city.
        let berlin = TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap();
        assert_eq!(written(time, Some(&berlin)), "2026-09-21T16:13:20.000007+02:00");
    }
}
