//! Positions: how far servers are in the write-ahead log.
//!
//! A primary is asked where its next record goes: all that was committed before is in front of
//! that, flushed or not. A standby is asked what it has replayed. Positions of one cluster and one
//! timeline can be compared, and no others: behind a promotion the same position may be another
//! record.
//!
//! A standby says on which timeline its last restart point was, or the last page that it wrote. It
//! may be on a later one by then, and is taken for one of the earlier until it says so.

use refrain_pg_wire::back as read;

/// Bytes of the header at the beginning of each file of the log, and of each page.
const LONG_HEADER: u64 = 40;
const SHORT_HEADER: u64 = 24;
/// Digits of the timeline in the name of a file of the log.
const TIMELINE_DIGITS: usize = 8;

/// The question to a primary: its position, the file of it, the cluster, and the sizes of files and
/// of pages.
pub(crate) const OF_PRIMARY: &[u8] = b"SELECT p.lsn, pg_catalog.pg_walfile_name(p.lsn), \
    s.system_identifier, \
    pg_catalog.pg_size_bytes(pg_catalog.current_setting('wal_segment_size')), \
    pg_catalog.current_setting('wal_block_size') \
    FROM (SELECT CASE WHEN pg_catalog.pg_is_in_recovery() THEN NULL \
    ELSE pg_catalog.pg_current_wal_insert_lsn() END OFFSET 0) p(lsn), \
    pg_catalog.pg_control_system() s";

/// The question to a standby: what it has replayed, the timeline, the cluster, and when it was
/// started, in microseconds: so standbys of one name are told apart.
pub(crate) const OF_STANDBY: &[u8] = b"SELECT CASE WHEN pg_catalog.pg_is_in_recovery() \
    THEN pg_catalog.pg_last_wal_replay_lsn() END, \
    GREATEST(c.timeline_id, r.min_recovery_end_timeline), s.system_identifier, \
    (pg_catalog.date_part('epoch', pg_catalog.pg_postmaster_start_time()) \
    OPERATOR(pg_catalog.*) 1000000)::pg_catalog.int8 \
    FROM pg_catalog.pg_control_checkpoint() c, pg_catalog.pg_control_recovery() r, \
    pg_catalog.pg_control_system() s";

/// A history: positions of one can be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct History {
    cluster: u64,
    timeline: u32,
}

/// A position in the write-ahead log of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    pub(crate) history: History,
    /// The position, in bytes (PostgreSQL's LSN).
    pub(crate) lsn: u64,
}

impl Position {
    /// Reads a primary's answer. `None` if the server is none, or the answer cannot be read.
    pub(crate) fn of_primary(row: &[u8]) -> Option<Self> {
        let mut columns = read::columns(row).map(Option::unwrap_or_default);
        let lsn = lsn(columns.next()?)?;
        let timeline = columns.next()?.get(..TIMELINE_DIGITS)?;
        let timeline = u32::from_str_radix(std::str::from_utf8(timeline).ok()?, 16).ok()?;
        let cluster = number(columns.next()?)?;
        let (segment, page) = (number(columns.next()?)?, number(columns.next()?)?);
        let history = History { cluster, timeline };
        Some(Self { history, lsn: end_of_last(lsn, segment, page) })
    }

    /// Reads a standby's answer: its position, and when it was started, in microseconds. `None` if
    /// the server is none, or the answer cannot be read.
    pub(crate) fn of_standby(row: &[u8]) -> Option<(Self, u64)> {
        let mut columns = read::columns(row).map(Option::unwrap_or_default);
        let lsn = lsn(columns.next()?)?;
        let timeline = u32::try_from(number(columns.next()?)?).ok()?;
        let cluster = number(columns.next()?)?;
        let started = number(columns.next()?)?;
        Some((Self { history: History { cluster, timeline }, lsn }, started))
    }

    /// Whether all in front of `wanted` is in front of this position.
    pub(crate) fn has(&self, wanted: &Self) -> bool {
        self.history == wanted.history && self.lsn >= wanted.lsn
    }
}

/// Returns the end of the last record, where the next one goes to `next`. The next record of a page
/// that is empty goes behind the page's header, and what has been replayed ends in front of it: so
/// it stays for as long as nothing is written.
fn end_of_last(next: u64, segment: u64, page: u64) -> u64 {
    let behind = |size: u64| next.checked_rem(size);
    if behind(segment) == Some(LONG_HEADER) {
        next - LONG_HEADER
    } else if behind(page) == Some(SHORT_HEADER) {
        next - SHORT_HEADER
    } else {
        next
    }
}

/// Reads PostgreSQL's spelling of a position: two numbers in hexadecimal digits.
fn lsn(text: &[u8]) -> Option<u64> {
    let (high, low) = std::str::from_utf8(text).ok()?.split_once('/')?;
    let part = |text| u32::from_str_radix(text, 16).ok().map(u64::from);
    Some(part(high)? << u32::BITS | part(low)?)
}

fn number(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Returns a position of the cluster 7.
    pub(crate) fn position(timeline: u32, lsn: u64) -> Position {
        Position { history: History { cluster: 7, timeline }, lsn }
    }

    fn row(values: &[Option<&str>]) -> Vec<u8> {
        let mut row = (values.len() as u16).to_be_bytes().to_vec();
        for value in values {
            let length = value.map_or(-1, |value| value.len() as i32);
            row.extend_from_slice(&length.to_be_bytes());
            row.extend_from_slice(value.unwrap_or_default().as_bytes());
        }
        row
    }

    #[test]
    fn a_primary_says_where_its_last_record_ends() {
        let at = |lsn, file| {
            let values = [lsn, file, "7", "16777216", "8192"].map(Some);
            Position::of_primary(&row(&values))
        };
        let file = "000000010000000000000003";
        assert_eq!(at("0/3000AF8", file), Some(position(1, 0x0300_0af8)));
        assert_eq!(at("A/4000028", "0000000B0000000A00000004"), Some(position(11, 0xa_0400_0000)));
        assert_eq!(at("0/3002018", file), Some(position(1, 0x0300_2000)), "an empty page");
        assert_eq!(at("0/3002028", file), Some(position(1, 0x0300_2028)), "a record before it");
        assert_eq!(
            Position::of_primary(&row(&[None, None, Some("7"), Some("1"), Some("1")])),
            None
        );
        assert_eq!(Position::of_primary(&row(&[Some("0/1")])), None);
    }

    #[test]
    fn positions_of_one_history_alone_are_compared() {
        let row = row(&[Some("0/3000AF8"), Some("2"), Some("7"), Some("1790000000123456")]);
        let (standby, started) = Position::of_standby(&row).unwrap();
        assert_eq!(started, 1_790_000_000_123_456);
        assert_eq!(standby, position(2, 0x0300_0af8));
        assert!(standby.has(&position(2, 0x0300_0af8)) && !standby.has(&position(2, 0x0300_0af9)));
        assert!(!standby.has(&position(1, 5)) && !standby.has(&position(3, 5)));
        let mut other = position(2, 5);
        other.history.cluster = 8;
        assert!(!standby.has(&other));
    }
}
