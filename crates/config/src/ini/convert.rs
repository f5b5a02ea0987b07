//! The TOML file that does the same as a `pgbouncer.ini`, with its comments.

use std::collections::BTreeSet;
use std::fmt::Write;

use super::read::Ini;
use super::text::Line;
use crate::equivalent::{DATABASES, PEERS, POOL, USERS};
use crate::value::{Entry, Given};

/// Returns the text of the file.
pub(super) fn toml(ini: &Ini) -> String {
    let mut writer = Writer { ini, text: String::new(), said: BTreeSet::new() };
    writer.told();
    writer.entries(&ini.program);
    if !ini.pool.is_empty() {
        writer.text += &format!("\n[{POOL}]\n");
        writer.entries(&ini.pool);
    }
    for (section, tables) in [(DATABASES, &ini.databases), (USERS, &ini.users), (PEERS, &ini.peers)]
    {
        for Entry { name, line, given } in tables {
            writer.text.push('\n');
            writer.comments(*line);
            writer.text += &format!("[{section}.{}]\n", key(name));
            if let Given::Table(entries) = given {
                writer.entries(entries);
            }
        }
    }
    writer.rest();
    writer.text
}

struct Writer<'a> {
    ini: &'a Ini,
    text: String,
    /// Places whose comments have been written.
    said: BTreeSet<usize>,
}

impl Writer<'_> {
    /// Writes what there is to tell.
    fn told(&mut self) {
        for told in &self.ini.told {
            let remark = self.ini.remark(told);
            self.comment(&format!("{remark}"));
        }
    }

    fn comment(&mut self, text: &str) {
        let text = text.trim_start_matches([';', '#']);
        let space = if text.is_empty() || text.starts_with(' ') { "" } else { " " };
        self.text += &format!("#{space}{text}\n");
    }

    /// Writes the comments in front of a line, once.
    fn comments(&mut self, place: Option<usize>) {
        let Some(place) = place else { return };
        let line = self.ini.text.lines.iter().find(|line| line.place == place);
        let Some(Line { comments, .. }) = line.filter(|_| self.said.insert(place)) else { return };
        comments.iter().for_each(|comment| self.comment(comment));
    }

    fn entries(&mut self, entries: &[Entry]) {
        for Entry { name, line, given } in entries {
            self.comments(*line);
            self.text += &format!("{} = {}\n", key(name), literal(given));
        }
    }

    /// Writes the comments of lines that have become nothing, and those at the end.
    fn rest(&mut self) {
        let places: Vec<_> = self.ini.text.lines.iter().map(|line| line.place).collect();
        places.into_iter().for_each(|place| self.comments(Some(place)));
        self.ini.text.comments.iter().for_each(|comment| self.comment(comment));
    }
}

/// Returns a name as a key of TOML.
fn key(name: &str) -> String {
    let is_bare = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !name.is_empty() && name.chars().all(is_bare) { name.to_owned() } else { quoted(name) }
}

fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => {
                write!(quoted, "\\u{:04X}", u32::from(c)).expect("a String takes all");
            }
            c => quoted.push(c),
        }
    }
    quoted + "\""
}

/// Returns a value as TOML.
fn literal(given: &Given) -> String {
    match given {
        Given::Text(text) => quoted(text),
        Given::Whole(number) => number.to_string(),
        Given::Truth(truth) => truth.to_string(),
        Given::List(items) => {
            format!("[{}]", items.iter().map(literal).collect::<Vec<_>>().join(", "))
        }
        Given::Table(entries) => {
            let pair = |entry: &Entry| format!("{} = {}", key(&entry.name), literal(&entry.given));
            format!("{{ {} }}", entries.iter().map(pair).collect::<Vec<_>>().join(", "))
        }
        Given::Strange(kind) => format!("\"{kind}\""),
    }
}
