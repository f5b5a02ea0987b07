//! A `pgbouncer.ini` that has been read: its lines, the entries of the TOML file that does the
//! same, and what there is to tell.

use std::fmt;
use std::path::PathBuf;

use super::draft::{Draft, Told, entry};
use super::keys::{PROGRAM, find};
use super::sections::Sections;
use super::text::{Line, Said, Text};
use crate::assign::Assignment;
use crate::equivalent::{DATABASES, PEERS, POOL, USERS};
use crate::error::{Error, Errors};
use crate::machine::Machine;
use crate::value::{Entry, Given};

/// Something that an operator should know about a line of a `pgbouncer.ini`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remark {
    /// The file, if another file includes it.
    pub file: Option<PathBuf>,
    /// The line, from 1; 0 for the file as a whole.
    pub line: usize,
    /// The key by its path, such as `pgbouncer.pkt_buf`.
    pub key: String,
    /// The thing to know.
    pub message: String,
    /// Whether the line asks for something that Refrain does not do.
    pub is_warning: bool,
}

impl fmt::Display for Remark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line > 0 {
            write!(f, "line {}: ", self.line)?;
        }
        write!(f, "{}: {}", self.key, self.message)
    }
}

/// A file that has been read.
pub(super) struct Ini {
    pub(super) text: Text,
    pub(super) program: Vec<Entry>,
    pub(super) pool: Vec<Entry>,
    pub(super) databases: Vec<Entry>,
    pub(super) users: Vec<Entry>,
    pub(super) peers: Vec<Entry>,
    pub(super) told: Vec<Told>,
}

impl Ini {
    /// Reads a text, and the files that it includes, with what is set on the console.
    pub(super) fn read(
        text: &str,
        machine: &dyn Machine,
        set: &[Assignment],
    ) -> Result<Self, Errors> {
        let text = Text::read(text, machine);
        let mut sections = Sections::of(&text);
        // What is set stands on no line.
        sections.set(set.iter().filter_map(|it| it.setting(text.places.len())));
        let mut draft = Draft::new(&sections, machine);
        draft.program();
        draft.plain_keys();
        draft.all_databases();
        draft.all_users();
        draft.all_peers();
        let Draft { program, pool, databases, users, peers, mut told, errors, .. } = draft;
        told.sort_by_key(|told| told.place);
        let ini = Self { text, program, pool, databases, users, peers, told };
        let error =
            |(line, option, message)| ini.placed(Error { line, option, message, file: None });
        let mut errors: Vec<_> = errors;
        errors.sort_by_key(|(place, ..)| place.unwrap_or(usize::MAX));
        errors.dedup();
        let errors: Vec<_> = errors.into_iter().map(error).collect();
        if errors.is_empty() { Ok(ini) } else { Err(Errors(errors)) }
    }

    /// Returns the entries of the equivalent TOML file.
    pub(super) fn file(&self) -> Vec<Entry> {
        let mut file = self.program.clone();
        file.push(entry(POOL, Given::Table(self.pool.clone()), None));
        file.push(entry(DATABASES, Given::Table(self.databases.clone()), None));
        file.push(entry(USERS, Given::Table(self.users.clone()), None));
        file.push(entry(PEERS, Given::Table(self.peers.clone()), None));
        file
    }

    /// Puts the line of a file in place of a place, and the key that stands there in place of
    /// Refrain's option.
    pub(super) fn placed(&self, mut error: Error) -> Error {
        let Some(place) = error.line else { return error };
        let Some(at) = self.text.places.get(place) else { return Error { line: None, ..error } };
        error.line = Some(at.line);
        error.file.clone_from(&at.file);
        let said = self.text.lines.iter().find(|line| line.place == place);
        let of_program = |name: &str| find(PROGRAM, name).is_some();
        if let Some(Line { said: Said::Pair(name, _), .. }) = said
            && of_program(name)
            && !error.option.starts_with("pgbouncer.")
        {
            error.option = format!("pgbouncer.{name}");
        }
        error
    }

    /// Returns what is told of a line.
    pub(super) fn remark(&self, told: &Told) -> Remark {
        let place = self.text.places.get(told.place).filter(|_| told.key != DATABASES);
        Remark {
            file: place.and_then(|place| place.file.clone()),
            line: place.map_or(0, |place| place.line),
            key: told.key.clone(),
            message: told.message.clone(),
            is_warning: told.is_warning,
        }
    }
}
