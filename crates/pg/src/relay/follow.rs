//! Settings that follow the server's defaults: when a server is lent, and when its defaults have
//! changed during a session.
//!
//! Refrain syncs the settings of a lent server by one query in front of the client's first message.
//! If the query resets a setting, the answer tells its default ([`Link::was_reset`]). If a server
//! reports a setting that no client has set, Refrain asks for the defaults when the transaction is
//! over ([`Link::take_reported`](crate::relay::reports)). The client gets a ParameterStatus for
//! each default that changed, unless the setting is its own.

use std::sync::Arc;

use refrain_config::PoolMode;
use refrain_sql::Traits;
use refrain_wire::{back as read, write};

use crate::pipeline::outstanding::{Purpose, RequestKind};
use crate::relay::link::Link;
use crate::settings::defaults::{self, Claims, Defaults};
use crate::settings::session::{self, SettingsMut};
use crate::state::parts::intern_settings;
use crate::statements::of_server::Unnamed;

impl Link<'_> {
    /// Gives a server that was just lent the settings of its client, unless it has them.
    #[inline]
    pub(crate) fn sync_settings_if_needed(&mut self) {
        let (client, server) = (&*self.client, &*self.pipe.server);
        let alike = Arc::ptr_eq(&server.session.settings, &client.session.settings)
            && server.session.defaults.are(&client.session.defaults)
            && !server.session.stuck;
        if !alike {
            self.sync_settings();
        }
    }

    /// Sends the query that syncs the settings. The newer defaults, the client's or the server's,
    /// hold for both.
    #[cold]
    fn sync_settings(&mut self) {
        let (client, server) = (&self.client.session.defaults, &self.pipe.server.session.defaults);
        if !client.are(server) && client.since <= server.since {
            self.follow();
        }
        let (has, wants) = (&self.pipe.server.session.defaults, &self.client.session.defaults);
        let stuck = std::mem::take(&mut self.pipe.server.session.stuck);
        let in_doubt = |name: &[u8]| stuck || has.get(name) != wants.get(name);
        let (server, client) = (&self.pipe.server.session.settings, &self.client.session.settings);
        let made = if self.client.session.login.is_checking() {
            let (made, asked) = defaults::put_first(server, client, wants, in_doubt);
            self.pipe.server.session.settings_read = Some(asked);
            made
        } else {
            defaults::sync_settings(server, client, wants, in_doubt)
        };
        self.pipe.server.session.defaults = wants.clone();
        self.pipe.server.session.settings = self.client.session.settings.clone();
        let Some((text, resets)) = made else { return };
        self.pipe.server.session.resets = resets;
        write::query(self.pipe.out(), &text);
        self.pipe.owe_us(RequestKind::Query, Purpose::SyncSettings, 0);
        self.pipe.server.session.statements.unnamed = Unnamed::NONE;
        self.pipe.pool().counters.protocol.settings_synced += 1;
    }

    /// Handles the answer to that query: the values of settings that were reset are defaults.
    pub(crate) fn was_reset(&mut self, row: &[u8]) {
        let resets = std::mem::take(&mut self.pipe.server.session.resets);
        let values: Vec<_> = read::columns(row).collect();
        let value = |column: usize| values.get(column).copied().flatten();
        let known = resets.iter().filter_map(|(column, name)| Some((&**name, value(*column)?)));
        let news: Vec<_> = known
            .filter(|(name, value)| self.pipe.server.session.defaults.get(name) != Some(value))
            .collect();
        if news.is_empty() {
            return;
        }
        let mut has = self.pipe.server.session.settings.edit();
        news.iter().for_each(|(name, value)| has.set(name, value));
        self.pipe.server.session.settings = intern_settings(self.pipe.core_state, has);
        self.learn_defaults(news.into_iter());
    }

    /// Learns changed defaults of a server, and has the client follow them.
    pub(crate) fn learn_defaults<'a>(&mut self, found: impl Iterator<Item = (&'a [u8], &'a [u8])>) {
        let mut edit = SettingsMut::default();
        let defaults = &self.pipe.server.session.defaults;
        let news = |(name, value): &(&[u8], &[u8])| {
            let known = defaults.get(name);
            known.is_some() && known != Some(value)
        };
        found.filter(news).for_each(|(name, value)| edit.set(name, value));
        if edit.is_empty() {
            return;
        }
        let mut settings = defaults.settings.edit();
        edit.iter().for_each(|(name, value)| settings.set(name, value));
        let settings = intern_settings(self.pipe.core_state, settings);
        self.pipe.server.session.defaults = Defaults { settings, since: self.pipe.now };
        if edit.iter().any(|(name, _)| !session::is_harmless(name)) {
            // Statements may have been prepared under the new defaults before Refrain knew these.
            self.pipe.server.session.statements.doubt_all();
        }
        let known = self.pipe.server.session.defaults.settings.clone();
        let pool = self.pipe.pool();
        pool.shared.protocol.amend_server_parameters(edit.iter());
        pool.shared.protocol.meet(&known);
        pool.counters.protocol.defaults_learned += 1;
        self.follow();
    }

    /// Gives the client its server's defaults for all settings that are not its own, and reports
    /// the changes to it.
    fn follow(&mut self) {
        let (client, server) = (&*self.client, &*self.pipe.server);
        let is_own = |name: &[u8]| client.session.owns(name);
        let edit = defaults::follow(
            &client.session.settings,
            &client.session.defaults,
            &server.session.defaults,
            is_own,
        );
        let settings = intern_settings(self.pipe.core_state, edit);
        let before = std::mem::replace(&mut self.client.session.settings, settings);
        self.client.session.defaults = self.pipe.server.session.defaults.clone();
        if !self.client.session.login.is_ready() {
            return;
        }
        // The names of PostgreSQL's reports, since `Settings` has them in lower case.
        let Some(server_parameters) = self.pipe.pool().shared.protocol.server_parameters() else {
            return;
        };
        for (name, _) in server_parameters.iter() {
            let value = self.client.session.settings.get(name);
            if let Some(value) = value.filter(|value| before.get(name) != Some(value)) {
                write::parameter_status(self.pipe.ports.out(self.client.conn()), name, value);
            }
        }
    }

    /// Checks whether reported settings mean changed defaults: a setting had its default and the
    /// client has not set it. Then Refrain asks for the defaults when the transaction is over.
    pub(crate) fn suspect_defaults(&mut self, reported: &SettingsMut) {
        let (has, defaults) =
            (&self.pipe.server.session.settings, &self.pipe.server.session.defaults);
        let changed = |(name, value): &(&[u8], &[u8])| {
            let default = defaults.get(name);
            default.is_some_and(|default| default != *value) && has.get(name) == default
        };
        if self.explains_settings() || !reported.iter().any(|setting| changed(&setting)) {
            return;
        }
        if self.pipe.pool().settings.options.pool_mode == PoolMode::Session {
            // No other client gets this server before it is reset, so the reports are enough.
            let reported = reported.clone();
            return self.learn_defaults(reported.iter());
        }
        self.client.session.read_settings = true;
    }

    /// Whether settings may be reported because the client has changed them.
    pub(crate) fn explains_settings(&self) -> bool {
        let (client, suspicion) = (&*self.client, &self.client.session.suspicion);
        client.session.sets
            || client.session.sets_locally
            || self.pipe.server.session.stuck
            || suspicion.looks
            || suspicion.asked.is_some()
    }

    /// Notes the reported settings that a text sets: they are the client's own, even with the
    /// default value. A text that resets a setting ends that.
    pub(crate) fn claim(&mut self, text: &[u8], traits: Traits) {
        if traits.contains(Traits::RESET) {
            let Some(claims) = &mut self.client.session.claims else { return };
            for name in refrain_sql::set_names(text) {
                match *name == *refrain_sql::ANY_PARAMETER {
                    true => **claims = Claims::default(),
                    false => claims.remove(&name),
                }
            }
            return;
        }
        for name in refrain_sql::set_names(text) {
            if self.client.session.defaults.get(&name).is_some() {
                self.client.session.claims.get_or_insert_default().add(&name);
            }
        }
    }
}
