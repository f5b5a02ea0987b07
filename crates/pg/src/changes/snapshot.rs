//! XidSnapshot: which transactions a server's snapshot shows as over.

/// A snapshot, as `pg_current_snapshot()` writes it: `xmin:xmax:xip,xip`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct XidSnapshot {
    /// All transactions before this one are over.
    xmin: u64,
    /// This one and all behind it have not ended.
    xmax: u64,
    /// The transactions between these two that run, in order.
    running: Vec<u64>,
}

impl XidSnapshot {
    /// Reads one; `None` if it is none.
    pub(super) fn read(text: &str) -> Option<Self> {
        let (xmin, rest) = text.split_once(':')?;
        let (xmax, list) = rest.split_once(':')?;
        let listed = list.split(',').filter(|xid| !xid.is_empty());
        let mut running: Vec<u64> = listed.map(str::parse).collect::<Result<_, _>>().ok()?;
        running.sort_unstable();
        Some(Self { xmin: xmin.parse().ok()?, xmax: xmax.parse().ok()?, running })
    }

    /// Whether a transaction is over.
    pub(super) fn is_over(&self, xid: u64) -> bool {
        xid < self.xmin || xid < self.xmax && self.running.binary_search(&xid).is_err()
    }

    /// Whether the transaction with these lower 32 bits is over: the one that is nearest to those
    /// of the snapshot. No two that are further apart exist at the same time.
    pub(super) fn is_over_in_stream(&self, xid: u32) -> bool {
        let distance = (self.xmax as u32).wrapping_sub(xid) as i32;
        self.is_over(self.xmax.wrapping_sub(i64::from(distance) as u64))
    }

    /// Returns the transactions that run.
    pub(super) fn running(&self) -> &[u64] {
        &self.running
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_that_run_and_those_to_come_are_not_over() {
        let snapshot = XidSnapshot::read("10:20:12,10,15").unwrap();
        let over: Vec<u64> = (8..22).filter(|xid| snapshot.is_over(*xid)).collect();
        assert_eq!(over, [8, 9, 11, 13, 14, 16, 17, 18, 19]);
        let none = XidSnapshot::read("7:7:").unwrap();
        assert!(none.is_over(6) && !none.is_over(7) && none.running().is_empty());
        for bad in ["", "1", "1:2", "a:2:", "1:2:x", "1:2:3;4"] {
            assert_eq!(XidSnapshot::read(bad), None, "{bad}");
        }
    }

    #[test]
    fn numbers_of_the_stream_have_no_epoch() {
        let epoch = 5_u64 << 32;
        for xmax in [epoch + 100, epoch + 5, epoch + 0xffff_fff0] {
            let text = format!("{}:{xmax}:{}", xmax - 50, xmax - 3);
            let snapshot = XidSnapshot::read(&text).unwrap();
            for distance in 1..200_u64 {
                let before = (xmax - distance) as u32;
                assert_eq!(snapshot.is_over_in_stream(before), distance != 3, "{text} {distance}");
                assert!(!snapshot.is_over_in_stream((xmax + distance - 1) as u32));
            }
        }
    }
}
