//! The sections of a `pgbouncer.ini`: its lines by the keys that they set.

use super::keys::{DATABASE, Key, PEER, PROGRAM, USER, find};
use super::pairs;
use super::text::{Said, Text};
use crate::database::Database;
use crate::spelling::nearest;

/// A key with its value.
#[derive(Clone, Debug)]
pub(super) struct Setting {
    pub(super) key: &'static Key,
    pub(super) value: String,
    pub(super) place: usize,
}

/// A database, a user or a peer.
#[derive(Clone, Debug)]
pub(super) struct Named {
    pub(super) name: String,
    pub(super) settings: Vec<Setting>,
    pub(super) place: usize,
}

/// All that a file sets.
#[derive(Debug, Default)]
pub(super) struct Sections {
    pub(super) program: Vec<Setting>,
    pub(super) databases: Vec<Named>,
    pub(super) users: Vec<Named>,
    pub(super) peers: Vec<Named>,
    /// Lines with mistakes: their places, the keys, and the reasons.
    pub(super) errors: Vec<(Option<usize>, String, String)>,
}

/// The section that lines belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Section {
    Program,
    Databases,
    Users,
    Peers,
    /// One that PgBouncer does not know.
    Unknown,
}

const NAMES: [(&str, Section); 4] = [
    ("pgbouncer", Section::Program),
    ("databases", Section::Databases),
    ("users", Section::Users),
    ("peers", Section::Peers),
];

impl Sections {
    /// Sorts the lines of a text.
    pub(super) fn of(text: &Text) -> Self {
        let mut sections = Self::default();
        for (place, message) in &text.errors {
            sections.fail(Some(*place), "", message.clone());
        }
        let mut section = None;
        let mut has_main = false;
        for line in &text.lines {
            match &line.said {
                Said::Section(name) => {
                    section = Some(sections.section(name, line.place));
                    has_main |= section == Some(Section::Program);
                }
                Said::Pair(name, value) => match section {
                    Some(section) => sections.pair(section, name, value, line.place),
                    None => sections.fail(Some(line.place), name, "stands before any section"),
                },
            }
        }
        if !has_main {
            sections.fail(None, "", "the section [pgbouncer] is missing");
        }
        sections
    }

    /// Puts values of `[pgbouncer]` in place of those of the text.
    pub(super) fn set(&mut self, settings: impl Iterator<Item = Setting>) {
        settings.for_each(|setting| put(&mut self.program, setting));
    }

    fn fail(&mut self, place: Option<usize>, key: &str, message: impl Into<String>) {
        self.errors.push((place, key.to_owned(), message.into()));
    }

    fn section(&mut self, name: &str, place: usize) -> Section {
        let found = NAMES.iter().find(|(known, _)| *known == name);
        let section = found.map_or(Section::Unknown, |(_, section)| *section);
        match section {
            Section::Unknown => {
                let message = match nearest(name, NAMES.map(|(known, _)| known)) {
                    Some(known) => format!("no such section; did you mean [{known}]?"),
                    None => "no such section".to_owned(),
                };
                self.fail(Some(place), &format!("[{name}]"), message);
            }
            // As in PgBouncer, a section that begins again sets its keys back.
            Section::Program => self.program.retain(|set| set.key.default.is_none()),
            Section::Databases | Section::Users | Section::Peers => {}
        }
        section
    }

    fn pair(&mut self, section: Section, name: &str, value: &str, place: usize) {
        match section {
            Section::Program => match find(PROGRAM, name) {
                Some(key) => {
                    let setting = Setting { key, value: value.to_owned(), place };
                    put(&mut self.program, setting);
                }
                None => {
                    self.fail(Some(place), &format!("pgbouncer.{name}"), unknown(PROGRAM, name))
                }
            },
            Section::Databases if Database::CONSOLES[1] == name => {
                let message = "this name is the admin console's";
                self.fail(Some(place), &format!("databases.{name}"), message);
            }
            Section::Databases => {
                let named = self.named(DATABASE, "databases", name, value, place);
                put_named(&mut self.databases, named);
            }
            Section::Users => {
                let named = self.named(USER, "users", name, value, place);
                put_named(&mut self.users, named);
            }
            Section::Peers => {
                let named = self.named(PEER, "peers", name, value, place);
                put_named(&mut self.peers, named);
            }
            Section::Unknown => {}
        }
    }

    /// Reads a connection string.
    fn named(
        &mut self,
        keys: &'static [Key],
        section: &str,
        name: &str,
        value: &str,
        place: usize,
    ) -> Named {
        let path = format!("{section}.{name}");
        let mut settings = Vec::new();
        let pairs = pairs::read(value).unwrap_or_else(|message| {
            self.fail(Some(place), &path, message);
            Vec::new()
        });
        for (name, value) in pairs {
            match find(keys, &name) {
                Some(key) => put(&mut settings, Setting { key, value, place }),
                None => self.fail(Some(place), &format!("{path}.{name}"), unknown(keys, &name)),
            }
        }
        Named { name: name.to_owned(), settings, place }
    }
}

/// Adds a setting; an earlier one of the same key does not count.
fn put(settings: &mut Vec<Setting>, setting: Setting) {
    settings.retain(|other| other.key.name != setting.key.name);
    settings.push(setting);
}

fn put_named(all: &mut Vec<Named>, named: Named) {
    all.retain(|other| other.name != named.name);
    all.push(named);
}

fn unknown(keys: &'static [Key], name: &str) -> String {
    match nearest(name, keys.iter().map(|key| key.name)) {
        Some(other) => format!("PgBouncer has no such key; did you mean {other}?"),
        None => "PgBouncer has no such key".to_owned(),
    }
}

impl Named {
    /// Returns the value of a key, if it is set.
    pub(super) fn value(&self, name: &str) -> Option<&str> {
        let found = self.settings.iter().find(|setting| setting.key.name == name);
        found.map(|setting| setting.value.as_str())
    }
}
