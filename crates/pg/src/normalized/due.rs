//! Due: a text that was seen often enough for a server to be asked about it.

use std::rc::Rc;
use std::sync::Arc;

use refrain_sql::normalize::{Plan, Span};

use crate::normalized::query::QueryPlace;
use crate::settings::session::Settings;

/// A text that was seen often enough for a server to be asked.
#[derive(Debug)]
pub(crate) struct Due {
    pub(crate) place: QueryPlace,
    pub(crate) plan: Rc<Plan>,
    pub(crate) text: Box<[u8]>,
    pub(crate) spans: Box<[Span]>,
    /// The settings under which it is read.
    pub(crate) settings: Arc<Settings>,
    /// Whether servers are to prepare it anew.
    pub(crate) anew: bool,
    /// The body of the Parse behind the name, as a client sent it, if it is the text of an unnamed
    /// statement.
    pub(crate) sent: Option<Box<[u8]>>,
}

impl Due {
    /// Returns the body of a Parse of the text as the client sent it, behind the name.
    pub(crate) fn as_sent(&self) -> Vec<u8> {
        self.sent.as_deref().map_or_else(|| [&self.text, &[0; 3][..]].concat(), Vec::from)
    }

    /// Returns the body of a Parse of the statement, behind the name.
    pub(crate) fn tail(&self) -> Vec<u8> {
        if let Some(sent) = &self.sent {
            return sent.to_vec();
        }
        let mut tail = Vec::new();
        self.plan.render(&self.text, &self.spans, &mut tail);
        tail.push(0);
        let oids: Vec<_> = self.plan.bound(&self.spans).map(|bound| bound.oid).collect();
        tail.extend_from_slice(&u16::try_from(oids.len()).unwrap_or(u16::MAX).to_be_bytes());
        oids.iter().for_each(|oid| tail.extend_from_slice(&oid.to_be_bytes()));
        tail
    }
}
