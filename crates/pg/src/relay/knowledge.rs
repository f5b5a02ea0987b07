//! Knowledge of a session's settings, between a change and the server's report of it.

use refrain_sql::{Kind, Scan, Traits};

use crate::relay::link::Link;
use crate::settings::guard;
use crate::settings::session::{self, Since, decides};
use crate::settings::value;
use crate::state::parts::intern_settings;

/// The SQL command that runs a prepared statement.
const EXECUTE: &[u8] = b"execute";

/// The traits of texts that may set reported settings for the session.
const SETS: Traits = Traits::SET.union(Traits::SET_REPORTED).union(Traits::PROCEDURAL);

impl Link<'_> {
    /// Notes that a text may change settings, or take a change back.
    #[inline]
    pub(crate) fn note_settings(&mut self, text: &[u8], scan: &Scan) {
        // Nearly every text: a read or a write of rows, without a word that does more.
        let plain = matches!(scan.kind, Kind::Select | Kind::Insert | Kind::Update | Kind::Delete);
        if !(plain && scan.traits.is_empty()) {
            self.note_settings_of(text, scan);
        }
    }

    fn note_settings_of(&mut self, text: &[u8], scan: &Scan) {
        self.note_beside(text, scan);
        let sets = scan.traits.intersects(SETS);
        self.pipe.server.session.settings.may_stick(sets || runs_prepared(text, scan.kind));
        if sets {
            self.claim(text, scan.traits);
            self.note_resets(text, scan);
        }
        let local = scan.traits.contains(Traits::LOCAL) && self.note_local(text);
        let hides = local
            || scan.traits.contains(Traits::SET)
            || scan.traits.contains(Traits::PROCEDURAL) && !self.is_harmless(scan);
        let goes_back = self.client.session.settings.have_changed() && may_go_back(text, scan.kind);
        let reads = scan.traits.contains(Traits::READING) || goes_back;
        if !(hides || reads) {
            return;
        }
        self.note_names(text);
        let backslash = self.client.session.settings.reads_backslash();
        if refrain_sql::set_names(text, backslash).any(|name| guard::is_timeout(&name)) {
            self.client.session.settings.hurry();
        }
        if scan.traits.contains(Traits::PROCEDURAL) {
            refrain_sql::set_names_within(text).for_each(|name| self.note_name(name));
            refrain_sql::placeholders_within(text).for_each(|name| self.note_placeholder(name));
        }
        if local {
            self.client.session.settings.read_later();
        }
        let decides =
            reads || local || refrain_sql::set_names(text, backslash).any(|name| decides(&name));
        let segment = self.pipe.server.session.outstanding.segment();
        self.settings_change(Since { segment, reads, hidden: hides, decides });
    }

    /// Notes a text that may reset settings of the startup packet, though it does not say so.
    fn note_resets(&mut self, text: &[u8], scan: &Scan) {
        if !self.client.session.settings.have_startup() {
            return;
        }
        let backslash = self.client.session.settings.reads_backslash();
        for name in refrain_sql::reset_by_call(text, backslash) {
            match name == refrain_sql::ANY_PARAMETER {
                true => self.may_reset_unseen([]),
                false if self.client.session.settings.begin_with(name) => {
                    self.may_reset_unseen([name]);
                }
                false => {}
            }
        }
        if scan.traits.contains(Traits::PROCEDURAL) && !self.is_harmless(scan) {
            self.may_reset_unseen([]);
        }
    }

    /// Notes a text that sets something for its transaction. True if that may decide how constants
    /// are read.
    #[cold]
    fn note_local(&mut self, text: &[u8]) -> bool {
        if text.contains(&b'.') {
            refrain_sql::placeholders_within(text).for_each(|name| self.note_placeholder(name));
        }
        session::names_reading(text)
    }

    /// Ends a reading of settings: the rows, with what PostgreSQL reports, are the session's
    /// settings.
    pub(crate) fn read_settings_ends(&mut self) {
        let Some((mut edit, unset)) = self.pipe.server.session.settings.take_read() else {
            self.looked(None);
            return self.keeps_settings();
        };
        let outstanding = &self.pipe.server.session.outstanding;
        // A reading amid the client's segment holds for that transaction. One in a segment of its
        // own says nothing of a segment that the client has begun behind it.
        if outstanding.is_open() && !outstanding.reads_settings_apart() {
            let intern = |edit| intern_settings(self.pipe.core_state, edit);
            let segment = outstanding.segment();
            return self.client.session.settings.were_queried(segment, edit, intern);
        }
        let settled = self.client.session.settings.are_settled(outstanding);
        let settings = &mut self.pipe.server.session.settings;
        settings.were_read(edit.clone(), |has| intern_settings(self.pipe.core_state, has));
        self.pipe.close_if_brief();
        // Reported values take precedence over the rows, for the client as for the server.
        for (name, _) in self.pipe.server.session.settings.defaults().settings.iter() {
            let value = self.client.session.settings.expected().get(name);
            let value = value.filter(|value| !value::is_foreign(value));
            value.into_iter().for_each(|value| edit.set(name, value));
        }
        let intern = |edit| intern_settings(self.pipe.core_state, edit);
        let before = self.client.session.settings.were_read(edit, intern);
        self.learn_defaults(unset.iter());
        self.looked(Some(&before));
        self.client.session.settings.reading_ends(settled);
    }

    /// Notes the names of custom settings, which Refrain reads by name: `pg_settings` may not list
    /// them.
    pub(crate) fn note_names(&mut self, text: &[u8]) {
        let backslash = self.client.session.settings.reads_backslash();
        for name in refrain_sql::set_names(text, backslash).filter(|name| name.contains(&b'.')) {
            self.note_name(&name);
        }
    }

    /// Notes at the end of a segment that PostgreSQL has sent its reports of changed settings.
    pub(crate) fn settings_are_reported(&mut self) {
        let outstanding = &self.pipe.server.session.outstanding;
        let shared = &self.pipe.core_state.shared.protocol;
        self.client.session.settings.are_reported(outstanding, || shared.own_environment());
    }
}

/// Whether a text runs a prepared statement by name, which may set anything.
fn runs_prepared(text: &[u8], kind: Kind) -> bool {
    match kind {
        Kind::Execute(_) | Kind::CreateAsExecute(_) => true,
        Kind::Many => refrain_sql::has_word(text, EXECUTE),
        _ => false,
    }
}

/// Whether a text may take back settings that were made before it in its transaction.
fn may_go_back(text: &[u8], kind: Kind) -> bool {
    let to_savepoint =
        || text.trim_ascii_start().get(..8).is_some_and(|w| w.eq_ignore_ascii_case(b"rollback"));
    matches!(kind, Kind::TransactionEnd | Kind::Chain | Kind::Many) || to_savepoint()
}
