//! Findings: what a server has said of one statement, and what follows.

use refrain_sql::reads::{Objection, Unkept};

use crate::reads::question::Remark;
use crate::statements::verdict::Read;

/// The relations whose rows a statement may change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Writes {
    /// None.
    Nothing,
    /// These relations, by OID and in order, with their names. Parents and children of a relation
    /// that the text names are among them, and the relations that foreign keys reach.
    Relations(Vec<(u32, String)>),
    /// Any of the database.
    Anything,
}

/// The server's answer about a statement.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    /// The first objection.
    objection: Option<Objection>,
    unkept: Option<Unkept>,
    reads: Vec<(u32, String)>,
    writes: Vec<(u32, String)>,
    below: Vec<u32>,
    through: Vec<u32>,
    anything: bool,
    may_pass: bool,
}

impl Findings {
    /// Begins with what the text of a statement shows.
    pub fn new(objection: Option<Objection>, unkept: Option<Unkept>) -> Self {
        Self { objection, unkept, ..Self::default() }
    }

    /// Takes a remark. `on_all` says that it is about all statements.
    pub fn hears(&mut self, remark: Remark<'_>, on_all: bool) {
        match remark {
            Remark::No(objection) => {
                self.objection.get_or_insert(objection);
                self.may_pass |= objection.may_pass();
                self.anything |= on_all || may_hide_writes(objection);
            }
            Remark::Unkept(unkept) => self.unkept = self.unkept.max(Some(unkept)),
            Remark::Reads(oid, name) => self.reads.push((oid, name.to_owned())),
            Remark::Writes(oid, name) => self.writes.push((oid, name.to_owned())),
            Remark::Below(oid) => self.below.push(oid),
            Remark::Through(oid) => self.through.push(oid),
            Remark::Anything => self.anything = true,
            Remark::Database(_) | Remark::Hidden(..) => {}
        }
    }

    /// Says whether the statement is a read, and of which kind.
    pub fn read(&self) -> Result<Read, Objection> {
        match (self.objection, self.unkept) {
            (Some(objection), _) => Err(objection),
            (None, Some(unkept)) => Ok(Read::Unkept(unkept)),
            (None, None) => Ok(Read::Timeless),
        }
    }

    /// Whether an objection may be of the moment, whatever else was found.
    pub fn may_pass(&self) -> bool {
        self.may_pass
    }

    /// Returns the relations on whose rows the result of the read depends, by OID and in order,
    /// with their names. A read that calls functions of the user's may depend on others as well
    /// ([`Unkept::Stable`]).
    pub fn relations(&self) -> Vec<(u32, String)> {
        sorted(&self.reads)
    }

    /// Returns the relations above those, in order: parents, and theirs.
    pub(crate) fn below(&self) -> Vec<u32> {
        sorted(&self.below)
    }

    /// Returns the relations whose children change with them, in order.
    pub(crate) fn through(&self) -> Vec<u32> {
        sorted(&self.through)
    }

    /// Says what the statement may change.
    pub fn writes(&self) -> Writes {
        if self.anything {
            Writes::Anything
        } else if self.writes.is_empty() {
            Writes::Nothing
        } else {
            Writes::Relations(sorted(&self.writes))
        }
    }
}

/// True if something that the question does not see may change rows where this was found. What a
/// volatile function may change is asked for, and so are the policies of row security.
fn may_hide_writes(objection: Objection) -> bool {
    !matches!(
        objection,
        Objection::Volatile
            | Objection::Session
            | Objection::Catalog
            | Objection::Temporary
            | Objection::Policies
            | Objection::Relation
            | Objection::Locking
    )
}

fn sorted<T: Clone + Ord>(found: &[T]) -> Vec<T> {
    let mut found = found.to_vec();
    found.sort_unstable();
    found.dedup();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(remarks: &[(Remark<'_>, bool)]) -> Findings {
        let mut findings = Findings::default();
        remarks.iter().for_each(|(remark, on_all)| findings.hears(*remark, *on_all));
        findings
    }

    #[test]
    fn what_follows_for_a_read() {
        assert_eq!(heard(&[]).read(), Ok(Read::Timeless));
        let both = heard(&[
            (Remark::Unkept(Unkept::Clock), false),
            (Remark::Unkept(Unkept::Stable), false),
            (Remark::Reads(7, "a.t"), false),
            (Remark::Reads(3, "a.u"), false),
            (Remark::Reads(7, "a.t"), false),
        ]);
        assert_eq!(
            both.read(),
            Ok(Read::Unkept(Unkept::Clock)),
            "trust in functions is not enough"
        );
        assert_eq!(both.relations(), [(3, "a.u".to_owned()), (7, "a.t".to_owned())]);
        let word = Findings::new(None, Some(Unkept::Word));
        assert_eq!(word.read(), Ok(Read::Unkept(Unkept::Word)));
        let locks = Findings::new(Some(Objection::Locks), None);
        assert_eq!(locks.read(), Err(Objection::Locks));
        let objections =
            [Objection::Locking, Objection::Volatile].map(|it| (Remark::No(it), false));
        assert_eq!(heard(&objections).read(), Err(Objection::Locking));
    }

    #[test]
    fn what_follows_for_a_write() {
        assert_eq!(heard(&[]).writes(), Writes::Nothing);
        let writes = [(Remark::Writes(9, "a.t"), false), (Remark::Writes(2, "a.u"), false)];
        let relations = vec![(2, "a.u".to_owned()), (9, "a.t".to_owned())];
        assert_eq!(heard(&writes).writes(), Writes::Relations(relations));
        let anything = [writes[0], (Remark::Anything, false)];
        assert_eq!(heard(&anything).writes(), Writes::Anything);
        let volatile = Remark::No(Objection::Volatile);
        assert_eq!(heard(&[(volatile, false)]).writes(), Writes::Nothing);
        assert_eq!(heard(&[(volatile, true)]).writes(), Writes::Anything, "an operator, say");
        for objection in [Objection::Missing, Objection::Domain, Objection::Cast, Objection::Server]
        {
            assert_eq!(heard(&[(Remark::No(objection), false)]).writes(), Writes::Anything);
        }
    }
}
