//! Defaults: the settings with which servers begin their sessions, and which of a client's settings
//! are its own.
//!
//! A [`Settings`] holds all settings that PostgreSQL reports, set by a client or not. Settings that
//! a client never set follow the server: the server's configuration or that of the role may change
//! during a session, or the client gets another server. So client and server have, in addition to
//! their settings, the *defaults* below these. A setting is the client's own if it differs from the
//! default, stood in the startup packet, or was set to the very value of the default.
//!
//! To sync a setting that is not the client's own, Refrain resets it, and never sets an old value:
//! a server with a set value would no longer follow its configuration. The answer says to which
//! value the reset went, so Refrain knows the server's defaults exactly.

use std::sync::Arc;

use refrain_pool::Now;

use crate::settings::session::{self, Settings, SettingsMut};

/// The defaults of a session, and the time as of which they are known.
#[derive(Clone, Debug)]
pub(crate) struct Defaults {
    /// The default values of the settings that are reported.
    pub(crate) settings: Arc<Settings>,
    /// The time at which a server reported them.
    pub(crate) since: Now,
}

impl Defaults {
    /// Returns the default value of a setting.
    #[inline]
    pub(crate) fn get(&self, name: &[u8]) -> Option<&[u8]> {
        self.settings.get(name)
    }

    /// True if these defaults and those of `other` are the same.
    #[inline]
    pub(crate) fn are(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.settings, &other.settings)
    }
}

/// Doubt about the settings that a server seems to have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Doubt<'a> {
    /// Whether a setting may have been set to its very default.
    pub(crate) stuck: bool,
    /// The defaults that the server had when it was used last. A setting with another default now
    /// may have either value, unless it was set in the session.
    pub(crate) before: &'a Defaults,
}

/// The settings that a client has set to their default value: they are its own all the same.
#[derive(Debug, Default)]
pub(crate) struct Claims {
    /// Settings from transactions that are over.
    held: Vec<Box<[u8]>>,
    /// Settings from the current transaction.
    pending: Vec<Box<[u8]>>,
}

impl Claims {
    /// True if the client has set this setting, and not reset it since.
    pub(crate) fn has(&self, name: &[u8]) -> bool {
        has(&self.held, name)
    }

    /// Notes that a text was sent that sets `name`.
    pub(crate) fn add(&mut self, name: &[u8]) {
        if !has(&self.pending, name) {
            self.pending.push(name.into());
        }
    }

    /// Notes that a text was sent that resets `name`.
    pub(crate) fn remove(&mut self, name: &[u8]) {
        for names in [&mut self.held, &mut self.pending] {
            names.retain(|held| !held.eq_ignore_ascii_case(name));
        }
    }

    /// Drops the settings of the current transaction, which was rolled back.
    pub(crate) fn undo(&mut self) {
        self.pending.clear();
    }

    /// Keeps the settings of the current transaction, which is over.
    #[inline]
    pub(crate) fn settle(&mut self) {
        for name in std::mem::take(&mut self.pending) {
            if !self.has(&name) {
                self.held.push(name);
            }
        }
    }
}

fn has(names: &[Box<[u8]>], name: &[u8]) -> bool {
    names.iter().any(|held| held.eq_ignore_ascii_case(name))
}

/// Returns the settings of a client that follows a server: a setting that has the old default, and
/// is not the client's own, gets the default of that server.
pub(crate) fn follow(
    settings: &Settings,
    before: &Defaults,
    now: &Defaults,
    is_own: impl Fn(&[u8]) -> bool,
) -> SettingsMut {
    let mut edit = settings.edit();
    for (name, value) in now.settings.iter() {
        let follows = settings.get(name).is_none_or(|has| before.get(name) == Some(has));
        if follows && !is_own(name) {
            edit.set(name, value);
        }
    }
    edit
}

/// A query that syncs settings, and columns of its answer, each with the name of the setting whose
/// default it shows.
pub(crate) type SyncingSettings = (Vec<u8>, Resets);
/// The columns of [`SyncingSettings`].
pub(crate) type Resets = Vec<(usize, Box<[u8]>)>;
/// A setting to change; `None` for its default.
type Change<'a> = (&'a [u8], Option<&'a [u8]>);

/// Writes the query that gives a server with settings `has` the settings `wants`, and resets those
/// whose wanted value is the default. It also sets or resets a setting that seems right and is in
/// doubt. `None` if there is nothing to do. `plain` is as in [`session::write_calls`].
pub(crate) fn sync_settings(
    has: &Settings,
    wants: &Settings,
    defaults: &Defaults,
    doubt: Doubt<'_>,
    plain: bool,
) -> Option<SyncingSettings> {
    write(changes(has, wants, defaults, doubt), defaults, plain)
}

/// Writes the same query for the settings of a login, and returns these too: the last columns of
/// the answer show them. The query resets the server to its own login first, since the effect of
/// some settings depends on the value before (`DateStyle=sql` keeps the order of day and month).
pub(crate) fn put_first(
    has: &Settings,
    wants: &Settings,
    defaults: &Defaults,
    doubt: Doubt<'_>,
    plain: bool,
) -> (Option<SyncingSettings>, SettingsMut) {
    let mut asked = SettingsMut::default();
    let own = wants.iter().filter(|(name, value)| defaults.get(name) != Some(value));
    own.for_each(|(name, value)| asked.set(name, value));
    let mut all = changes(has, &defaults.settings, defaults, doubt);
    all.extend(asked.iter().map(|(name, value)| (name, Some(value))));
    (write(all, defaults, plain), asked)
}

fn changes<'a>(
    has: &'a Settings,
    wants: &'a Settings,
    defaults: &Defaults,
    doubt: Doubt<'_>,
) -> Vec<Change<'a>> {
    let changed = |(name, value): &(&[u8], &[u8])| {
        let is_default = defaults.get(name) == Some(*value);
        let has_moved = doubt.before.get(name) != defaults.get(name);
        has.get(name) != Some(value) || has_moved || is_default && doubt.stuck
    };
    let set =
        |(name, value)| (name, Some(value).filter(|value| defaults.get(name) != Some(*value)));
    let gone = has.iter().filter(|(name, _)| wants.get(name).is_none());
    wants.iter().filter(changed).map(set).chain(gone.map(|(name, _)| (name, None))).collect()
}

fn write(changes: Vec<Change<'_>>, defaults: &Defaults, plain: bool) -> Option<SyncingSettings> {
    if changes.is_empty() {
        return None;
    }
    let reset =
        |(_, (name, value)): &(usize, &Change<'_>)| value.is_none() && defaults.get(name).is_some();
    let resets = changes.iter().enumerate().filter(reset);
    let resets = resets.map(|(column, (name, _))| (column, (*name).into())).collect();
    Some((session::write_calls(changes.into_iter(), b",false)", plain), resets))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(settings: &[(&str, &str)]) -> Arc<Settings> {
        let mut edit = SettingsMut::default();
        settings.iter().for_each(|(n, v)| edit.set(n.as_bytes(), v.as_bytes()));
        Arc::new(edit.into_settings(None, None))
    }

    fn defaults(given: &[(&str, &str)]) -> Defaults {
        Defaults { settings: settings(given), since: Now(0) }
    }

    fn sync_settings(has: &[(&str, &str)], wants: &[(&str, &str)], stuck: bool) -> String {
        let defaults = defaults(&[("timezone", "UTC"), ("datestyle", "ISO")]);
        let doubt = Doubt { stuck, before: &defaults };
        let made = super::sync_settings(&settings(has), &settings(wants), &defaults, doubt, true);
        String::from_utf8(made.unwrap_or_default().0).expect("UTF-8")
    }

    #[test]
    fn only_what_differs_is_set() {
        let sql = sync_settings(
            &[("TimeZone", "UTC"), ("work_mem", "4MB"), ("DateStyle", "ISO")],
            &[("timezone", "Europe/Berlin"), ("datestyle", "ISO")],
            false,
        );
        assert_eq!(
            sql,
            "SELECT pg_catalog.set_config('timezone','Europe/Berlin',false),\
             pg_catalog.set_config('work_mem',NULL,false)"
        );
        assert_eq!(sync_settings(&[("timezone", "UTC")], &[("timezone", "UTC")], false), "");
    }

    #[test]
    fn a_default_is_reset_and_not_set() {
        let (has, wants) = ([("timezone", "Asia/Tokyo")], [("timezone", "UTC")]);
        let reset = "SELECT pg_catalog.set_config('timezone',NULL,false)";
        assert_eq!(sync_settings(&has, &wants, false), reset);
        assert_eq!(sync_settings(&wants, &wants, true), reset);
        assert_eq!(sync_settings(&has, &has, true), "", "what is set is known");
    }

    #[test]
    fn what_is_the_clients_own_is_set_where_the_default_has_moved() {
        let (before, now) =
            (defaults(&[("timezone", "UTC")]), defaults(&[("timezone", "Asia/Tokyo")]));
        let doubt = Doubt { stuck: false, before: &before };
        let own = settings(&[("timezone", "UTC")]);
        let (sql, resets) = super::sync_settings(&own, &own, &now, doubt, true).expect("a query");
        assert_eq!(sql, b"SELECT pg_catalog.set_config('timezone','UTC',false)");
        assert!(resets.is_empty());
    }

    #[test]
    fn literals_mean_themselves() {
        let sql = sync_settings(&[], &[("application_name", r"it's a \ b")], false);
        assert!(sql.contains(r"('application_name', E'it''s a \\ b',false)"), "{sql}");
    }

    #[test]
    fn what_is_not_a_clients_own_follows() {
        let (before, now) = (
            defaults(&[("timezone", "UTC"), ("datestyle", "ISO"), ("intervalstyle", "postgres")]),
            defaults(&[("timezone", "Asia/Tokyo"), ("datestyle", "SQL"), ("intervalstyle", "sql")]),
        );
        let has = settings(&[
            ("timezone", "UTC"),
            ("datestyle", "German"),
            ("intervalstyle", "postgres"),
        ]);
        let edit = follow(&has, &before, &now, |name| name == b"intervalstyle");
        let values = ["timezone", "datestyle", "intervalstyle"].map(|n| edit.get(n.as_bytes()));
        assert_eq!(values, [Some(&b"Asia/Tokyo"[..]), Some(b"German"), Some(b"postgres")]);
    }

    #[test]
    fn a_claim_is_made_when_its_transaction_is_over() {
        let mut claims = Claims::default();
        claims.add(b"TimeZone");
        assert!(!claims.has(b"timezone"));
        claims.settle();
        assert!(claims.has(b"timezone"));
        claims.add(b"datestyle");
        claims.undo();
        claims.settle();
        assert!(!claims.has(b"datestyle"));
        claims.remove(b"timezone");
        assert!(!claims.has(b"timezone"));
    }
}
