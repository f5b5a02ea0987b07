//! FrontSegment: what is known of the segment that a server is answering, and that belongs to the
//! client of that segment.
//!
//! All else in a server's session is about the server, whoever's messages it reads.

use crate::ground::ids::Segment;
use crate::normalized::run::QueryRun;
use crate::normalized::unnamed_run::UnnamedRuns;
use crate::pipeline::outstanding::Failed;

/// The segment that a server is answering: the first one that is not over.
#[derive(Debug, Default)]
pub(crate) struct FrontSegment {
    /// The query string under way, if autoprepare has looked at it.
    pub(crate) run: QueryRun,
    /// The client's unnamed statement under way, if autoprepare has looked at it.
    pub(crate) unnamed: UnnamedRuns,
    /// The last ParameterDescription; the columns of the same statement are to come.
    description: ParameterDescription,
    /// The segment whose error the client does not get: it got the error of the segment before,
    /// which caused this one.
    skip_error_in: Option<Segment>,
    /// The statement of the portal that was bound last and has not run; zero for none.
    bound: u64,
}

/// In place of the statement of a portal: several were bound, and it is not known which of them
/// runs next.
const SEVERAL: u64 = 1 << 63;

/// A ParameterDescription, the first half of the answer to a Describe of a statement.
#[derive(Debug, Default)]
pub(crate) struct ParameterDescription {
    /// A hash of it.
    pub(crate) hash: u64,
    /// The parameter types, as they came.
    pub(crate) types: Vec<u8>,
}

impl FrontSegment {
    /// Whether autoprepare has looked at it.
    #[inline]
    pub(crate) fn is_watched(&self) -> bool {
        self.run.under_way().is_some() || self.unnamed.under_way().is_some()
    }

    /// Forgets the query string and the unnamed statement under way: they do not run again whatever
    /// happens.
    pub(crate) fn end(&mut self) {
        self.run.end();
        self.unnamed.end();
    }

    /// Notes that the server has bound a portal of a statement; zero is one that Refrain does not
    /// know.
    #[inline]
    pub(crate) fn binds(&mut self, statement: u64) {
        self.bound = if self.bound == 0 { statement } else { SEVERAL };
    }

    /// Notes that the server has bound the values of an autoprepared statement: from now on it
    /// runs.
    pub(crate) fn values_are_bound(&mut self) {
        self.run.bind();
        self.unnamed.answer();
    }

    /// Notes that the segment is over, and its portals with it. True if autoprepare has looked at
    /// it.
    #[inline]
    pub(crate) fn segment_ends(&mut self) -> bool {
        self.bound = 0;
        self.is_watched()
    }

    /// Takes the statement of the portal that has run; zero if it is not known.
    #[inline]
    pub(crate) fn take_bound(&mut self) -> u64 {
        std::mem::take(&mut self.bound) & !SEVERAL
    }

    /// Keeps a ParameterDescription until the second half of the answer comes.
    pub(crate) fn describe_parameters(&mut self, types: &[u8], hash: u64) {
        self.description.hash = hash;
        self.description.types.clear();
        self.description.types.extend_from_slice(types);
    }

    /// Returns the last ParameterDescription.
    pub(crate) fn parameters(&self) -> &ParameterDescription {
        &self.description
    }

    /// Notes that the client has got an error that will make the next segment fail too.
    pub(crate) fn skip_next_error(&mut self, failed: &Failed) {
        self.skip_error_in = Some(failed.segments.1 + 1);
    }

    /// Skips an error if the client has got the one that caused it. That is the first error of its
    /// segment: a Sync with a body, behind it, fails with an error of its own.
    pub(crate) fn skip_error(&mut self, failed: &Failed) -> bool {
        self.skip_error_in.take_if(|segment| failed.covers(*segment)).is_some()
    }
}
