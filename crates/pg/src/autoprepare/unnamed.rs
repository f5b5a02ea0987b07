//! Unnamed statements that run as named ones: from the client to the server.
//!
//! Many drivers send Parse, Bind, Describe, Execute and Sync for each query, all without a name.
//! PostgreSQL then parses and plans the text each time. If autoprepare is on and the server has the
//! statement under a name, Refrain answers the Parse and sends the Bind by that name. Everything
//! that makes it right for query strings is used here too: the analysis, the verification, jobs and
//! the comparison of times. The text keeps its literals.
//!
//! Refrain looks at a Parse only if all messages up to the Sync have come with it and nothing is
//! outstanding. So a driver that sends several statements in one pipeline loses nothing by waiting:
//! its statements run as they were sent. The messages have one of two forms: they run the
//! statement, or they ask what it returns and run it in a segment of their own. Their replies:
//! [`crate::relay::unnamed_run`].

use std::rc::Rc;

use refrain_sql::normalize::{self, Key};
use refrain_wire::back::Status;
use refrain_wire::front::{Bind, Target};
use refrain_wire::tag::front as tag;

use crate::autoprepare::send::{Seen, is_plain};
use crate::normalized::compare_times::{Draw, Turn};
use crate::normalized::queries::Advice;
use crate::normalized::query::Place;
use crate::normalized::unnamed_run::{ParseWay, UnnamedRun};
use crate::relay::copies::Called;
use crate::relay::link::{Link, Stop};
use crate::relay::message::{Message, Next};
use crate::state::options::autoprepares;
use crate::statements::of_core::CachedStatement;

/// Most bytes of the messages behind a Parse: Refrain keeps a copy of them while they run.
const BEHIND_MAX: usize = 16 * 1024;

/// The messages behind a Parse of the unnamed statement, up to the Sync.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Behind {
    /// They run it.
    Runs,
    /// They ask what it returns.
    Asks,
}

impl Link<'_> {
    /// Decides how a Parse of the client's unnamed statement goes. `next` is the input behind it.
    #[inline]
    pub(crate) fn parse_way(
        &mut self,
        message: &Message<'_>,
        cached: &Rc<CachedStatement>,
        next: &[u8],
    ) -> Result<ParseWay, Stop> {
        if !autoprepares(self.pipe.pool()) {
            return Ok(ParseWay::Usual);
        }
        self.client.session.expected_run = None;
        match behind(next) {
            Some(behind) => self.way_of_known(message, cached, next, behind),
            None => Ok(ParseWay::Usual),
        }
    }

    fn way_of_known(
        &mut self,
        message: &Message<'_>,
        cached: &Rc<CachedStatement>,
        next: &[u8],
        behind: Behind,
    ) -> Result<ParseWay, Stop> {
        let statement = &cached.statement;
        let unknown = self.client.session.settings.unknown_since().is_some();
        if unknown
            || !self.stands_alone(message)
            || !is_plain(&statement.scan)
            || !normalize::has_plan(statement.text())
            || !self.is_read_plainly()
        {
            return Ok(ParseWay::Usual);
        }
        let seen = Seen {
            text: statement.text(),
            spans: &[],
            key: Key(statement.id),
            tail: Some(statement.tail()),
            values: if behind == Behind::Runs { next } else { &[] },
        };
        match self.advice(&seen)? {
            Advice::Watch(place) => {
                self.begin_unnamed(place, None, behind, next);
                // Its time stands for those of statements that are planned for their values.
                Ok(if place.draw == Draw::None { ParseWay::Usual } else { ParseWay::Sent })
            }
            Advice::Sent => Ok(ParseWay::Sent),
            Advice::Run(place, _, found) if found.statement.id == statement.id => {
                self.run_unnamed(place, cached, behind, next)
            }
            _ => Ok(ParseWay::Usual),
        }
    }

    /// Runs the client's unnamed statement under its name, if the server has it.
    fn run_unnamed(
        &mut self,
        place: Place,
        cached: &Rc<CachedStatement>,
        behind: Behind,
        next: &[u8],
    ) -> Result<ParseWay, Stop> {
        if self.pipe.server.session.has(&cached.statement).is_none() {
            self.lacks(place, cached)?;
            self.begin_unnamed(place.without_choice(), None, behind, next);
            return Ok(ParseWay::Usual);
        }
        self.begin_unnamed(place, Some(cached), behind, next);
        self.pipe.pool().counters.protocol.auto_unnamed += 1;
        Ok(ParseWay::Named)
    }

    /// Notes that the client's messages run or describe its unnamed statement, as the `named` one
    /// if there is one.
    fn begin_unnamed(
        &mut self,
        place: Place,
        named: Option<&Rc<CachedStatement>>,
        behind: Behind,
        next: &[u8],
    ) {
        let session = &mut self.pipe.server.session;
        let executes = behind == Behind::Runs;
        let run = match named {
            None => UnnamedRun::new(place, Turn::Simple, executes),
            Some(cached) => {
                let planned = executes && session.statements.is_planned(cached.statement.id);
                let place = if planned { place.on_new_server() } else { place };
                let alone = session.outstanding.status() == Status::Idle;
                let repeats = alone.then(|| cached.statement.clone());
                UnnamedRun { repeats, ..UnnamedRun::new(place, Turn::Prepared, executes) }
            }
        };
        session.last_mut().unnamed.begin(run, if named.is_some() { next } else { &[] });
    }

    /// Notes that a Bind runs the client's unnamed statement, which an earlier segment has parsed
    /// and described.
    #[inline]
    pub(crate) fn begin_expected(&mut self, called: Called, alone: bool) {
        if let Some((place, turn)) = self.client.session.expected_run.take() {
            self.begin_run(place, turn, called, alone);
        }
    }

    fn begin_run(&mut self, place: Place, turn: Turn, called: Called, alone: bool) {
        let named = matches!(called, Called::Named(_));
        // If the client's server is another one than at the Parse, the statement may go another way
        // than was drawn.
        let session = &mut self.pipe.server.session;
        let busy = session.last().unnamed.under_way().is_some();
        if !alone || busy || named != (turn == Turn::Prepared) {
            return;
        }
        let planned = named && session.statements.is_planned(place.key.0);
        let place = if planned { place.on_new_server() } else { place };
        session.last_mut().unnamed.begin(UnnamedRun::new(place, turn, true), &[]);
    }
}

/// Returns what the messages behind a Parse of the unnamed statement do, if they go on to a Sync,
/// nothing follows it, and they are about this statement alone.
pub(crate) fn behind(next: &[u8]) -> Option<Behind> {
    if next.len() > BEHIND_MAX {
        return None;
    }
    let mut rest = Next(next);
    let mut message = rest.take()?;
    let described = message.is_about(tag::DESCRIBE, Target::Statement(b""));
    if described {
        message = rest.take()?;
    }
    if described && message.header.tag == tag::SYNC {
        return rest.are_ended_by(&message).then_some(Behind::Asks);
    }
    if message.header.tag != tag::BIND {
        return None;
    }
    let Ok(Some(Bind { portal, statement: b"" })) = Bind::read(message.body(), true) else {
        return None;
    };
    rest.runs_at_once(portal).then_some(Behind::Runs)
}
