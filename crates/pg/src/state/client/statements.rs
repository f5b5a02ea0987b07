//! A client's prepared statements: those with names, the unnamed one, and what an error would take
//! back of their changes.
//!
//! Refrain changes them when it sends a message that may yet fail or be skipped. So each change by
//! such a message leaves an undo record, and the segment of the change is noted: nothing relies on
//! a change that an earlier segment may still undo. A change that is final from the start, since
//! Refrain answers it itself and nothing is outstanding, leaves neither
//! ([`ClientStatements::insert`], [`ClientStatements::remove`]).

use std::rc::Rc;

use refrain_sql::MAX_NAME;

use crate::ground::ids::Segment;
use crate::ground::name::Name;
use crate::pipeline::outstanding::{Outstanding, OutstandingRequest, Seq, Span};
use crate::pipeline::undo::{ClientUndo, Undos};
use crate::settings::session::Settings;
use crate::statements::columns::Columns;
use crate::statements::of_client::{
    ByName, ClientRef, ClientStatement, NamedStatements, TravellingStatement, key, mark,
};
use crate::statements::of_core::CachedStatement;
use crate::statements::statement::Statement;

mod undone;

/// The most names beyond [`MAX_NAME`] bytes that a client's outstanding requests may have, so that
/// errors have them in full.
const LONG_NAMES_MAX: usize = 8;

/// How Refrain answers a named Parse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Parsed {
    /// By a fake reply. An error before it skips it.
    Here,
    /// By the server's reply, which may be an error.
    There,
}

/// A client's prepared statements.
#[derive(Debug)]
pub(crate) struct ClientStatements {
    /// Whether they are kept across servers.
    managed: bool,
    named: NamedStatements,
    unnamed: Option<ClientStatement>,
    /// Whether the unnamed one runs as the named statement where the server has that.
    unnamed_runs_named: bool,
    /// The newest names in messages that are longer than their keys: errors repeat a name in full.
    long: Vec<Name>,
    /// How to undo changes if the server refuses or skips them.
    undos: Undos<ClientUndo>,
    /// The server's segments of changes to names that a skipped message would undo.
    changed: Span,
    /// The server's segments of named Parses that were sent on.
    parsed: Span,
    /// The server's segment of the last change to the unnamed statement.
    unnamed_changed: Segment,
}

/// A client's prepared statements on their way to another core.
#[derive(Debug)]
pub(crate) struct TravellingStatements {
    named: Vec<(Name, TravellingStatement)>,
    unnamed: Option<TravellingStatement>,
    unnamed_runs_named: bool,
}

impl TravellingStatements {
    /// Unpacks them on the core at which they have arrived. `own` returns the core's own reference
    /// to a statement, which was parsed under these settings.
    pub(crate) fn unpack(
        self,
        mut own: impl FnMut(&Statement, &Settings) -> Rc<CachedStatement>,
    ) -> ClientStatements {
        let mut unpack = |packed: TravellingStatement| packed.unpack(&mut own);
        let mut statements = ClientStatements::default();
        for (name, packed) in self.named {
            statements.insert(name, unpack(packed));
        }
        statements.unnamed = self.unnamed.map(unpack);
        statements.unnamed_runs_named = self.unnamed_runs_named;
        statements
    }
}

impl Default for ClientStatements {
    fn default() -> Self {
        Self {
            managed: true,
            named: NamedStatements::default(),
            unnamed: None,
            unnamed_runs_named: false,
            long: Vec::new(),
            undos: Undos::default(),
            changed: Span::default(),
            parsed: Span::default(),
            unnamed_changed: 0,
        }
    }
}

impl ClientStatements {
    /// Keeps the statements across servers, or not (`prepared_statements`).
    pub(crate) fn manage(&mut self, managed: bool) {
        self.managed = managed;
    }

    /// Whether the statements are kept across servers.
    #[inline]
    pub(crate) fn are_managed(&self) -> bool {
        self.managed
    }

    /// Notes that the client gets another server. Segments are numbered for each server: those of
    /// the last one mean nothing at this one.
    #[inline]
    pub(crate) fn begin_use(&mut self) {
        self.changed = Span::default();
        self.parsed = Span::default();
        self.unnamed_changed = 0;
        if !self.managed {
            self.forget_all();
        }
    }

    /// Returns the statement of this name, which may be empty.
    #[inline]
    pub(crate) fn get(&mut self, name: &[u8]) -> Option<&mut ClientStatement> {
        match name.is_empty() {
            true => self.unnamed.as_mut(),
            false => {
                if name.len() > MAX_NAME {
                    self.note_long(name);
                }
                self.named.get(name)
            }
        }
    }

    /// Notes a name that is longer than its key.
    #[cold]
    fn note_long(&mut self, name: &[u8]) {
        if self.long.iter().all(|noted| **noted != *name) {
            self.long.truncate(LONG_NAMES_MAX - 1);
            self.long.insert(0, Name::from_slice(name));
        }
    }

    /// Returns the unnamed statement.
    #[inline]
    pub(crate) fn unnamed(&self) -> Option<&ClientStatement> {
        self.unnamed.as_ref()
    }

    /// Whether the unnamed statement runs as the named one where the server has that.
    #[inline]
    pub(crate) fn unnamed_runs_named(&self) -> bool {
        self.unnamed_runs_named && self.unnamed.is_some()
    }

    /// Has the unnamed statement run as the named one where the server has that.
    pub(crate) fn run_unnamed_as_named(&mut self) {
        self.unnamed_runs_named = true;
    }

    /// Returns the statement that SQL calls by this name: never the unnamed one.
    pub(crate) fn named(&mut self, name: &[u8]) -> Option<&mut ClientStatement> {
        self.named.get(name)
    }

    /// Whether the client has given this name to a statement.
    pub(crate) fn contains(&self, name: &[u8]) -> bool {
        self.named.contains(name)
    }

    /// Returns the number of names.
    pub(crate) fn len(&self) -> usize {
        self.named.len()
    }

    /// Whether one more name, for a text of `bytes`, stays within these limits: a number, and
    /// bytes.
    pub(crate) fn have_room(&self, bytes: usize, (count, most): (usize, usize)) -> bool {
        self.named.len() < count && self.named.bytes() + bytes <= most
    }

    /// Returns a statement with this ID.
    pub(crate) fn by_id(&mut self, id: u64) -> Option<&mut ClientStatement> {
        let unnamed = self.unnamed.as_mut();
        match unnamed.filter(|unnamed| unnamed.held.cached().statement.id == id) {
            None => self.named.by_id(id),
            unnamed => unnamed,
        }
    }

    /// Calls `look` with the statements that have this ID, under all their names.
    pub(crate) fn for_all_of(
        &mut self,
        id: u64,
        mut look: impl FnMut(&[u8], &mut ClientStatement),
    ) {
        if let Some(unnamed) = self.unnamed.as_mut().filter(|unnamed| unnamed.id() == id) {
            look(b"", unnamed);
        }
        self.named.for_all_of(id, look);
    }

    /// Makes the statement of this name, which may be empty, another one of the same text.
    pub(crate) fn replace(&mut self, name: &[u8], held: ClientRef) {
        match name.is_empty() {
            false => self.named.replace(name, held),
            true => self.unnamed.iter_mut().for_each(|own| own.hold(held.clone())),
        }
    }

    /// Returns the name that the client gave to the statement of a request; a statement that has
    /// been closed since is found among the undo records. `None` if the request is about none.
    pub(crate) fn name_of(&self, request: &OutstandingRequest) -> Option<Name> {
        let (id, wanted) = (request.statement, request.name);
        if id == 0 {
            return None;
        }
        if let Some(name) = self.long.iter().find(|name| mark(name) == wanted) {
            return Some(name.clone());
        }
        let closed = || {
            self.undos.iter().find_map(|undo| match undo {
                ClientUndo::Closed(name, statement) => {
                    statement.is(id, name, wanted).then_some(&**name)
                }
                ClientUndo::Named(_) | ClientUndo::Unnamed(_) | ClientUndo::Lent(..) => None,
            })
        };
        let name = self.named.marked(id, wanted).or_else(closed);
        Some(Name::from_slice(name.unwrap_or_default()))
    }

    /// Whether an earlier segment may still undo a change to this name, which may be empty.
    #[inline]
    pub(crate) fn is_unsettled(&self, name: &[u8], outstanding: &Outstanding) -> bool {
        match name.is_empty() {
            true => outstanding.is_unsettled(self.unnamed_changed),
            false => self.are_names_unsettled(outstanding),
        }
    }

    /// Whether an earlier segment may still undo a change to any name (E1, E2): a name that was
    /// closed may be taken after all, and one that was parsed may be free.
    #[inline]
    pub(crate) fn are_names_unsettled(&self, outstanding: &Outstanding) -> bool {
        outstanding.touches(&self.changed) || outstanding.touches(&self.parsed)
    }

    /// Whether an earlier segment may still bring back a name that was closed.
    pub(crate) fn may_names_return(&self, outstanding: &Outstanding) -> bool {
        outstanding.touches(&self.changed)
    }

    /// Adds a statement under a name that is free, for good.
    pub(crate) fn insert(&mut self, name: Name, statement: ClientStatement) {
        self.named.insert(name, statement);
    }

    /// Adds a statement under a name that is free, by the Parse of request `seq`.
    pub(crate) fn parse(
        &mut self,
        name: Name,
        statement: ClientStatement,
        (seq, parsed): (Seq, Parsed),
        outstanding: &Outstanding,
    ) {
        outstanding.extend(match parsed {
            Parsed::Here => &mut self.changed,
            Parsed::There => &mut self.parsed,
        });
        let key = Name::from_slice(key(&name));
        self.undoable(seq, ClientUndo::Named(key.clone()), outstanding);
        self.named.insert(key, statement);
    }

    /// Takes out the statement of a name, for good unless [`Self::closed`] follows.
    pub(crate) fn remove(&mut self, name: &[u8]) -> Option<ClientStatement> {
        self.named.remove(name)
    }

    /// Notes that request `seq` has taken out this statement.
    pub(crate) fn closed(
        &mut self,
        seq: Seq,
        name: Name,
        old: ClientStatement,
        outstanding: &Outstanding,
    ) {
        let name = Name::from_slice(key(&name));
        outstanding.extend(&mut self.changed);
        self.undoable(seq, ClientUndo::Closed(name, old), outstanding);
    }

    /// Replaces the unnamed statement, by request `seq`.
    pub(crate) fn replace_unnamed(
        &mut self,
        seq: Seq,
        statement: Option<ClientStatement>,
        outstanding: &Outstanding,
    ) {
        self.unnamed_changed = outstanding.segment();
        self.unnamed_runs_named = false;
        let old = std::mem::replace(&mut self.unnamed, statement);
        self.undoable(seq, ClientUndo::Unnamed(old), outstanding);
    }

    /// Drops the unnamed statement because of the query string that is sent next (E17). An error
    /// before the string may skip that.
    pub(crate) fn query_drops_unnamed(&mut self, outstanding: &Outstanding) {
        self.unnamed_changed = outstanding.segment();
        let old = self.unnamed.take();
        // An earlier segment that fails would bring back a statement that this query drops too. The
        // undo recorded here marks where that statement ends.
        if outstanding.is_open() || !self.undos.is_empty() {
            self.undos.push(outstanding.next_seq(), ClientUndo::Unnamed(old));
        }
    }

    /// Drops the unnamed statement in the current segment, for good.
    pub(crate) fn drop_unnamed_now(&mut self, outstanding: &Outstanding) {
        self.unnamed_changed = outstanding.segment();
        self.unnamed = None;
    }

    /// Replaces the unnamed statement, for good: nothing is outstanding.
    pub(crate) fn set_unnamed(&mut self, statement: ClientStatement) {
        self.unnamed = Some(statement);
        self.unnamed_runs_named = false;
    }

    /// Drops the unnamed statement, for good: nothing of it is outstanding.
    pub(crate) fn drop_unnamed(&mut self) {
        self.unnamed = None;
    }

    /// Forgets all names, for good.
    pub(crate) fn forget_named(&mut self) {
        drop(self.named.take());
    }

    /// Forgets all statements, for good.
    pub(crate) fn forget_all(&mut self) {
        self.forget_named();
        self.unnamed = None;
    }

    /// Notes that request `seq` gives the server another statement under a name of the client's.
    pub(crate) fn lend(&mut self, seq: Seq, name: &Name, what: ByName, outstanding: &Outstanding) {
        let Some(own) = self.named.get(name) else { return };
        let before = own.lend(what);
        self.undoable(seq, ClientUndo::Lent(Name::from_slice(key(name)), before), outstanding);
    }

    /// Records the columns that a Parse found, for all statements with this ID, and for those that
    /// an undo would bring back.
    pub(crate) fn found_columns(&mut self, id: u64, known: impl Fn(&mut Columns)) {
        self.for_all_of(id, |_, own| known(&mut own.columns));
        self.undos.retain(|undo| {
            match undo {
                ClientUndo::Closed(_, old) | ClientUndo::Unnamed(Some(old)) => {
                    known(&mut old.columns);
                }
                ClientUndo::Named(_) | ClientUndo::Unnamed(None) | ClientUndo::Lent(..) => {}
            }
            true
        });
    }

    /// Records how to undo a change, if request `seq` may still fail or be skipped. A fake reply
    /// that was sent at once is final: nothing was outstanding, so no error can come before it
    /// (E22).
    fn undoable(&mut self, seq: Seq, undo: ClientUndo, outstanding: &Outstanding) {
        let is_final = outstanding.is_empty() && seq + 1 == outstanding.next_seq();
        if !is_final {
            self.undos.push(seq, undo);
        }
    }

    /// Makes the changes by requests up to and including `seq` final.
    #[inline]
    pub(crate) fn settle(&mut self, seq: Seq) {
        self.undos.settle(seq);
    }

    /// Makes the changes by request `seq` final, and those of no other request.
    pub(crate) fn confirm(&mut self, seq: Seq) {
        self.undos.confirm(seq);
    }

    /// Whether every change is final.
    pub(crate) fn are_settled(&self) -> bool {
        self.undos.is_empty()
    }

    /// Whether other cores know all of them, and no server has one under the client's name.
    pub(crate) fn may_travel(&self) -> bool {
        let may = |own: &ClientStatement| {
            own.lent() == ByName::Nothing && own.held.cached().is_in_table()
        };
        self.are_settled()
            && self.unnamed.iter().all(may)
            && self.named.iter().all(|(_, own)| may(own))
    }

    /// Packs them for the way to another core.
    pub(crate) fn pack(self) -> TravellingStatements {
        TravellingStatements {
            named: self.named.iter().map(|(name, own)| (name.clone(), own.pack())).collect(),
            unnamed: self.unnamed.as_ref().map(ClientStatement::pack),
            unnamed_runs_named: self.unnamed_runs_named,
        }
    }

    /// Whether the count of bytes is that of the names.
    pub(crate) fn add_up(&self) -> bool {
        self.named.adds_up()
    }
}
