//! Interned settings of a core, and the numbers of the parse environments of the process.
//!
//! Both are kept while they are in use, and a little longer: sessions come back with the settings
//! that they had. Unused ones take no more bytes than used ones, or than [`SPARE_BYTES`], as of the
//! last sweep.
//!
//! A parse environment that was forgotten and comes back gets another number: a text that was
//! prepared under the old number is prepared again.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use crate::ground::ids::EnvId;
use crate::settings::session::{Settings, SettingsMut};

/// Bytes of unused settings, and of unused parse environments, that are kept in any case.
const SPARE_BYTES: usize = 64 * 1024;
/// Bytes that an entry costs beside its content.
const ENTRY_COST: usize = 64;

/// Decides when to look for unused entries: whenever the bytes have doubled.
#[derive(Debug)]
struct Gauge {
    bytes: usize,
    due: usize,
}

impl Default for Gauge {
    fn default() -> Self {
        Self { bytes: 0, due: SPARE_BYTES }
    }
}

impl Gauge {
    /// Counts an entry in. True if unused entries are to go.
    fn add(&mut self, bytes: usize) -> bool {
        self.bytes += bytes + ENTRY_COST;
        self.bytes > self.due
    }

    /// Notes how many bytes are left after a purge.
    fn kept(&mut self, bytes: usize) {
        *self = Self { bytes, due: SPARE_BYTES.max(2 * bytes) };
    }

    /// True if a purge is worth its while.
    fn is_full(&self) -> bool {
        self.bytes > SPARE_BYTES
    }
}

/// The settings that one core knows.
#[derive(Debug, Default)]
pub(crate) struct InternedSettings {
    known: HashSet<Arc<Settings>>,
    gauge: Gauge,
    /// The shortest `idle_session_timeout` among those that have become known since it was taken.
    new_idle_timeout: Option<Duration>,
}

impl InternedSettings {
    /// Returns the shortest `idle_session_timeout` among these settings.
    pub(crate) fn shortest_idle_timeout(&self) -> Option<Duration> {
        self.known.iter().filter_map(|settings| settings.idle_timeout).min()
    }

    /// Returns the shortest one among those that have become known since the last call.
    #[inline]
    pub(crate) fn take_new_idle_timeout(&mut self) -> Option<Duration> {
        self.new_idle_timeout.take()
    }

    /// Returns the one [`Settings`] with these values. `environment` gives a number to the bytes
    /// that change what a text means.
    pub(crate) fn intern(
        &mut self,
        edit: SettingsMut,
        mut environment: impl FnMut(&[u8]) -> Arc<EnvId>,
    ) -> Arc<Settings> {
        let settings = edit.into_settings(None, None);
        if let Some(known) = self.known.get(&settings) {
            return known.clone();
        }
        let edit = settings.edit();
        let reading = edit.reading().map(|part| {
            let lease = environment(&part.environment());
            self.add(part.into_settings(Some(lease), None))
        });
        let lease = environment(&edit.environment());
        self.add(edit.into_settings(Some(lease), reading))
    }

    /// Returns the first settings of a parse environment in the order of their names and values, if
    /// there are any: a run has to be a function of its events.
    pub(crate) fn of(&self, env: EnvId) -> Option<Arc<Settings>> {
        let of_env = self.known.iter().filter(|settings| settings.env == env);
        of_env.min_by(|one, other| one.iter().cmp(other.iter())).cloned()
    }

    fn add(&mut self, settings: Settings) -> Arc<Settings> {
        if let Some(known) = self.known.get(&settings) {
            return known.clone();
        }
        let settings = Arc::new(settings);
        self.known.insert(settings.clone());
        let idle_timeouts = self.new_idle_timeout.into_iter().chain(settings.idle_timeout);
        self.new_idle_timeout = idle_timeouts.min();
        if self.gauge.add(settings.bytes()) {
            self.purge();
        }
        settings
    }

    /// Drops unused settings, if there are many.
    pub(crate) fn sweep(&mut self) {
        if self.gauge.is_full() {
            self.purge();
        }
    }

    fn purge(&mut self) {
        let before = self.known.len();
        self.known.retain(|settings| Arc::strong_count(settings) > 1);
        // Settings refer to the part by which constants are read: unused parts remain from the
        // first pass.
        if self.known.len() < before {
            self.known.retain(|settings| Arc::strong_count(settings) > 1);
        }
        self.known.shrink_to(2 * self.known.len());
        self.gauge.kept(self.known.iter().map(|settings| settings.bytes() + ENTRY_COST).sum());
    }
}

/// The parse environments of the process.
#[derive(Debug, Default)]
pub(crate) struct Environments {
    known: HashMap<Box<[u8]>, Arc<EnvId>>,
    gauge: Gauge,
}

impl Environments {
    /// Returns the parse environment of these settings, under a number from `next` if it is new.
    pub(crate) fn intern(&mut self, settings: &[u8], next: impl FnOnce() -> EnvId) -> Arc<EnvId> {
        if let Some(known) = self.known.get(settings) {
            return known.clone();
        }
        let made = Arc::new(next());
        self.known.insert(settings.into(), made.clone());
        if self.gauge.add(settings.len()) {
            self.purge();
        }
        made
    }

    /// Drops unused parse environments, if there are many.
    pub(crate) fn sweep(&mut self) {
        if self.gauge.is_full() {
            self.purge();
        }
    }

    fn purge(&mut self) {
        self.known.retain(|_, env| Arc::strong_count(env) > 1);
        self.known.shrink_to(2 * self.known.len());
        self.gauge.kept(self.known.keys().map(|key| key.len() + ENTRY_COST).sum());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edit(settings: &[(&str, &str)]) -> SettingsMut {
        let mut edit = SettingsMut::default();
        settings.iter().for_each(|(n, v)| edit.set(n.as_bytes(), v.as_bytes()));
        edit
    }

    fn zero(_: &[u8]) -> Arc<EnvId> {
        Arc::new(EnvId::of(0))
    }

    #[test]
    fn equal_settings_are_interned_once_and_order_does_not_matter() {
        let mut interned_settings = InternedSettings::default();
        let one = interned_settings.intern(edit(&[("a", "1"), ("B", "2")]), zero);
        let two = interned_settings.intern(edit(&[("b", "2"), ("A", "1")]), zero);
        assert!(Arc::ptr_eq(&one, &two));
        assert_eq!(one.get(b"B"), Some(&b"2"[..]));
    }

    #[test]
    fn settings_that_are_read_alike_have_that_part_in_common() {
        let mut interned_settings = InternedSettings::default();
        let one = interned_settings.intern(edit(&[("timezone", "UTC"), ("my.x", "1")]), zero);
        let two = interned_settings.intern(edit(&[("timezone", "UTC"), ("my.x", "2")]), zero);
        assert!(Arc::ptr_eq(one.reading(), two.reading()));
        assert_eq!(one.reading().get(b"my.x"), None);
        let plain = interned_settings.intern(edit(&[("timezone", "UTC")]), zero);
        assert!(Arc::ptr_eq(plain.reading(), one.reading()), "it is all of that");
    }

    #[test]
    fn what_nobody_has_goes() {
        let (mut interned_settings, mut environments) =
            (InternedSettings::default(), Environments::default());
        let (mut most, mut next) = (0, 0);
        let big = "x".repeat(1000);
        let held = interned_settings.intern(edit(&[("my.x", "held")]), zero);
        for number in 0..10_000 {
            let settings = edit(&[("my.x", &format!("{big}{number}"))]);
            let settings = interned_settings.intern(settings, |bytes| {
                next += 1;
                environments.intern(bytes, || EnvId::of(next))
            });
            most = most.max(interned_settings.gauge.bytes + environments.gauge.bytes);
            drop(settings);
        }
        assert!(most < 4 * SPARE_BYTES, "{most} bytes");
        assert!(Arc::ptr_eq(&held, &interned_settings.intern(edit(&[("my.x", "held")]), zero)));
        let many: Vec<_> = (0..100)
            .map(|number| {
                interned_settings.intern(edit(&[("my.y", &format!("{big}{number}"))]), zero)
            })
            .collect();
        assert!(interned_settings.gauge.bytes > SPARE_BYTES);
        drop(many);
        interned_settings.sweep();
        assert!(interned_settings.gauge.bytes < SPARE_BYTES);
        assert_eq!(
            interned_settings.known.iter().map(|p| p.bytes() + ENTRY_COST).sum::<usize>(),
            interned_settings.gauge.bytes
        );
    }
}
