//! Wrong logins at the dashboard: an address from which they come has to wait, longer each time.
//!
//! An attempt in the meantime is refused whatever its password is, and is not checked: otherwise it
//! would tell whether the password is right. A login that succeeds does not end a pause, and is not
//! told from others by the count: somebody who may look could guess the passwords of others between
//! two of their own.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::time::{Duration, Instant};

/// The pause after the first wrong login. Each further one doubles it.
const PAUSE_FIRST: Duration = Duration::from_secs(1);
/// The longest pause.
const PAUSE_MAX: Duration = Duration::from_secs(60);
/// Time after a pause from which on an address counts as any other.
const FORGOTTEN: Duration = Duration::from_secs(600);
/// Most addresses that are kept.
const ADDRESSES_MAX: usize = 1024;

/// The addresses that wrong logins have come from.
#[derive(Debug, Default)]
pub(super) struct Attempts(HashMap<IpAddr, WrongLogins>);

/// The wrong logins of an address.
#[derive(Clone, Copy, Debug)]
struct WrongLogins {
    pause: Duration,
    /// The end of the pause.
    until: Instant,
}

impl Attempts {
    /// Returns the time that an address has to wait.
    pub(super) fn wait(&self, peer: IpAddr, now: Instant) -> Option<Duration> {
        let until = self.0.get(&network(peer))?.until;
        Some(until.saturating_duration_since(now)).filter(|left| !left.is_zero())
    }

    /// Notes a wrong login. Returns the time that the address has to wait.
    pub(super) fn note(&mut self, peer: IpAddr, now: Instant) -> Duration {
        self.0.retain(|_, wrong| wrong.until + FORGOTTEN > now);
        let peer = network(peer);
        let before = self.0.get(&peer).copied();
        if before.is_none() && self.0.len() >= ADDRESSES_MAX {
            let first = self.0.iter().min_by_key(|(_, wrong)| wrong.until).map(|(peer, _)| *peer);
            first.and_then(|first| self.0.remove(&first));
        }
        let pause = before.map_or(PAUSE_FIRST, |wrong| (wrong.pause * 2).min(PAUSE_MAX));
        self.0.insert(peer, WrongLogins { pause, until: now + pause });
        pause
    }
}

/// Returns what stands for an address. Of IPv6, a site has as many addresses as it likes in a
/// network of 64 bits.
fn network(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
        IpAddr::V4(address) => address.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn v4(number: u32) -> IpAddr {
        IpAddr::V4(number.into())
    }

    #[test]
    fn pauses_grow_up_to_a_limit_and_are_forgotten() {
        let (mut attempts, mut now) = (Attempts::default(), Instant::now());
        assert_eq!(attempts.wait(v4(1), now), None);
        for seconds in [1, 2, 4, 8, 16, 32, 60, 60] {
            assert_eq!(attempts.note(v4(1), now).as_secs(), seconds);
            assert_eq!(attempts.wait(v4(1), now).unwrap().as_secs(), seconds);
            assert_eq!(attempts.wait(v4(2), now), None, "others do not wait");
            now += Duration::from_secs(seconds);
            assert_eq!(attempts.wait(v4(1), now), None);
        }
        assert_eq!(attempts.note(v4(1), now + FORGOTTEN), PAUSE_FIRST);
    }

    #[test]
    fn a_limited_number_of_addresses_is_kept() {
        let (mut attempts, now) = (Attempts::default(), Instant::now());
        for number in [0].into_iter().chain(0..5_000) {
            attempts.note(v4(number), now);
        }
        assert_eq!(attempts.0.len(), ADDRESSES_MAX);
        assert!(attempts.wait(v4(0), now).is_some(), "the longest pause is kept");
    }

    #[test]
    fn a_network_of_ipv6_counts_as_one_address() {
        let (mut attempts, now) = (Attempts::default(), Instant::now());
        let v6 = |text: &str| text.parse::<IpAddr>().unwrap();
        attempts.note(v6("2001:db8::1"), now);
        attempts.note(v6("::ffff:10.0.0.1"), now);
        assert!(attempts.wait(v6("2001:db8::ffff:2"), now).is_some());
        assert!(attempts.wait(v6("2001:db8:0:1::1"), now).is_none());
        assert!(attempts.wait(v6("10.0.0.1"), now).is_some());
        assert!(attempts.wait(v6("::ffff:10.0.0.2"), now).is_none());
    }
}
