//! PostgreSQL's part of a core's state: the statements and settings that it knows.

use std::sync::Arc;

use refrain_cache::Waiter;

use refrain_pool::Now;
use refrain_pool::figures::StatementFigures;
use refrain_sql::normalize::Span;

use crate::ground::ids::EnvId;
use crate::settings::interned::InternedSettings;
use crate::settings::session::{Settings, SettingsMut};
use crate::state::shared::SharedPart;
use crate::statements::of_core::CoreStatements;

/// PostgreSQL's part of a core's state.
#[derive(Debug)]
pub struct CorePart {
    /// The statements this core knows.
    pub(crate) statements: CoreStatements,
    /// Figures of the statements that have run.
    pub(crate) figures: StatementFigures,
    /// The least time, in microseconds, of a command that the log may tell of.
    pub(crate) told_from_us: u64,
    /// The settings this core knows.
    pub(crate) interned_settings: InternedSettings,
    /// No settings at all.
    pub(crate) nothing: Arc<Settings>,
    /// For names on their way into a message.
    pub(crate) scratch: Vec<u8>,
    /// For the literals of a text.
    pub(crate) spans: Vec<Span>,
    /// For the key of a reply.
    pub(crate) result_key: Vec<u8>,
    /// Clients that wait for a reply that another fetches, and until when; some may have left.
    pub(crate) awaiting_fetch: Vec<(Waiter, Now)>,
    /// When the core last looked for statements that may be reads.
    pub(crate) looked_for_reads: Now,
    /// The place behind the pool for which the core has last looked for answers about reads, among
    /// the pools that wait for some.
    pub(crate) looked_for_answers: usize,
}

impl CorePart {
    /// Makes the part of a core that has seen nothing yet.
    pub(crate) fn new(shared: &SharedPart) -> Self {
        let mut interned_settings = InternedSettings::default();
        let nothing = interned_settings.intern(SettingsMut::default(), |_| Arc::new(EnvId::of(0)));
        let mut figures = StatementFigures::default();
        figures.limit(shared.figures_max());
        Self {
            statements: CoreStatements::default(),
            figures,
            told_from_us: shared.durations().least_us(),
            interned_settings,
            nothing,
            scratch: Vec::new(),
            spans: Vec::new(),
            result_key: Vec::new(),
            awaiting_fetch: Vec::new(),
            looked_for_reads: Now(0),
            looked_for_answers: 0,
        }
    }

    /// Interns settings.
    pub(crate) fn settings(&mut self, shared: &SharedPart, edit: SettingsMut) -> Arc<Settings> {
        self.interned_settings.intern(edit, |bytes| shared.environment(bytes))
    }

    /// Returns settings of a parse environment, if this core knows any.
    pub(crate) fn settings_of(&self, env: EnvId) -> Option<Arc<Settings>> {
        self.interned_settings.of(env)
    }

    /// Follows options about statements that may have changed.
    pub(crate) fn follow(&mut self, shared: &SharedPart) {
        self.figures.limit(shared.figures_max());
        self.told_from_us = shared.durations().least_us();
    }

    /// Forgets statements and settings that are not used any more.
    pub(crate) fn sweep(&mut self) {
        self.statements.sweep();
        self.interned_settings.sweep();
    }
}
