//! The locks of other sessions for which a session waits.

use refrain_pg_wire::front::{Bind, query_text};
use refrain_pg_wire::tag::front;

use crate::lang::{self, Statement};
use crate::rows::Need;
use crate::session::Session;

impl Session {
    /// Whether another session has a lock that this message needs. A Bind waits too: it checks the
    /// statement's plan, and locks its tables.
    pub(crate) fn must_wait(&self, tag: u8, body: &[u8]) -> bool {
        // A standby's readers do not wait for the primary's writers.
        let busy = self.stand.is_standby
            || self.skipping
            || self.copying.is_some()
            || self.has_failed()
            || self.ended;
        !busy && self.needs(tag, body).iter().any(|need| self.rows.must_wait(self.number, need))
    }

    fn needs(&self, tag: u8, body: &[u8]) -> Vec<Need> {
        match tag {
            front::QUERY => {
                let text = query_text(body).unwrap_or(b"");
                let statements = lang::parse(&String::from_utf8_lossy(text));
                statements.iter().flat_map(Statement::needs).collect()
            }
            front::BIND => self.needs_of_bind(body).unwrap_or_default(),
            front::EXECUTE => self
                .bound(body)
                .map_or_else(Vec::new, |(statement, values)| statement.with(values).needs()),
            _ => Vec::new(),
        }
    }

    fn needs_of_bind(&self, body: &[u8]) -> Option<Vec<Need>> {
        let bind = Bind::read(body, true).ok()??;
        let name = String::from_utf8_lossy(bind.statement).into_owned();
        let values = crate::extended::arguments(&body[bind.names_bytes()..])?;
        let prepared = self.statements.get(&name)?;
        Some(prepared.statement.as_ref()?.with(&values).needs())
    }
}
