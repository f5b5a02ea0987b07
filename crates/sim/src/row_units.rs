//! The units of scripts that read and write rows.
//!
//! A client waits for locks in one place at a time. In a transaction block it takes one lock, and
//! from then on it asks for nothing that another client may have locked: two clients that wait for
//! each other would wait forever.

use crate::rng::Rng;
use crate::rows::{Need, RowId, TABLES};
use crate::say::Say;
use crate::script::Script;

/// The keys of rows. Few, so that clients meet.
const KEYS: [&str; 3] = ["0", "1", "2"];

impl Script {
    /// Writes a segment that reads or writes a row, or locks a table.
    pub(crate) fn rows(&mut self, rng: &mut Rng) {
        let table = rng.index(TABLES.len());
        let row = (TABLES[table].to_owned(), (*rng.pick(&KEYS)).to_owned());
        let row = match &self.locked {
            Some(Need::All(table)) => (table.clone(), row.1),
            Some(Need::Read(locked) | Need::Write(locked)) => locked.clone(),
            None => row,
        };
        match rng.below(100) {
            0..90 if self.alike => self.read_row(row, rng),
            0..80 => self.read_row(row, rng),
            80..96 if self.habits.writes => self.write_row(row, rng),
            _ if self.in_block && self.locked.is_none() => {
                self.say.query(&format!("lock table {}", row.0));
                self.locked = Some(Need::All(row.0));
            }
            _ => self.read_row(row, rng),
        }
    }

    fn read_row(&mut self, (table, key): RowId, rng: &mut Rng) {
        if self.alike {
            return self.read_alike((table, key), rng);
        }
        let tag = self.tag();
        self.asked.push(tag.clone());
        if rng.chance(100) {
            let text = format!("select version, '{tag}' from {table} where key = '{key}'");
            self.say.query(&text);
            return;
        }
        let text = format!("select version, $1 from {table} where key = $2");
        self.run_row(&format!("read_{table}"), &text, &[&tag, &key], rng);
    }

    /// Reads a row, and a setting on which the reply depends as well. Nothing in the request tells
    /// whose it is.
    fn read_alike(&mut self, (table, key): RowId, rng: &mut Rng) {
        self.asked.push(format!("{table}.{key}"));
        let set = "current_setting('timezone')";
        if rng.chance(400) {
            self.say.query(&format!("select version, {set} from {table} where key = '{key}'"));
            return;
        }
        let text = format!("select version, {set} from {table} where key = $1");
        self.run_row(&format!("alike_{table}"), &text, &[&key], rng);
    }

    fn write_row(&mut self, (table, key): RowId, rng: &mut Rng) {
        let tag = self.tag();
        if self.in_block {
            self.locked.get_or_insert_with(|| Need::Write((table.clone(), key.clone())));
        }
        let set = format!("update {table} set version = version + 1, writer =");
        if rng.chance(400) {
            self.say.query(&format!("{set} '{tag}' where key = '{key}'"));
        } else {
            let text = format!("{set} $1 where key = $2");
            self.run_row(&format!("write_{table}"), &text, &[&tag, &key], rng);
        }
    }

    /// Runs a statement, which the client prepares the first time.
    fn run_row(&mut self, name: &str, text: &str, values: &[&str], rng: &mut Rng) {
        if rng.chance(50) {
            self.say.parse("", text).bind("", "", values).execute("", 0).sync();
            return;
        }
        if self.row_statements.insert(name.to_owned()) {
            self.say.close(name).parse(name, text).sync();
        }
        self.say.bind("", name, values).execute("", 0);
        if rng.chance(50) {
            // The command is complete, and is not committed before the Sync.
            let rest = Say(Vec::new(), self.client).sync().0.clone();
            self.say.flush();
            self.later = Some(rest);
        } else {
            self.say.sync();
        }
    }
}
