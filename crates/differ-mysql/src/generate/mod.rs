//! The generator: what clients log in with and what they send.

mod source;
pub mod texts;
pub mod settings;
pub mod prepared;
pub mod odd;

use self::source::{Draft, Model, capabilities};
pub use self::source::{Generator, Mode};
use crate::capability::LOCAL_FILES;
use crate::client::{Client, Login};
use crate::command::Command;

impl Generator {
    /// Returns what a client logs in with.
    pub fn login(&mut self, client: usize) -> Login {
        if self.models.len() <= client {
            self.models.resize_with(client + 1, Model::default);
        }
        self.models[client] = Model::default();
        let agreed = match self.rng.chance(70) {
            true => self.usual,
            false => capabilities(&mut self.rng),
        };
        let schema = self.rng.pick(&["{d}a", "{d}a", "{d}b"]);
        // utf8mb4_general_ci, latin1_swedish_ci, utf8_general_ci, binary, utf8mb4_unicode_ci.
        let collation = *self.rng.pick(&[45, 45, 45, 8, 33, 63, 224]);
        Login { agreed, schema: (*schema).to_owned(), collation }
    }

    /// Returns the next step of a client.
    pub fn step(&mut self, at: usize, client: &Client, mode: Mode) -> Vec<Command> {
        let mut draft = Draft { at, client, mode, commands: Vec::new() };
        self.way_out(&mut draft);
        let commands = 1 + self.rng.weighted(&[75, 14, 7, 4]);
        for _ in 0..commands {
            // The replies say which number a statement has, and whether a file is asked for.
            let waits = |command: &Command| match command {
                Command::Prepare(..) | Command::Long(..) | Command::ChangeUser(_) => true,
                Command::Query(text, file) => !file.is_empty() || text.contains("RELEASE"),
                _ => false,
            };
            if draft.commands.iter().any(waits) {
                break;
            }
            self.command(&mut draft);
        }
        draft.commands
    }

    /// Appends a PING, COMMIT or ROLLBACK now and then, so that no session stays in a long
    /// transaction.
    fn way_out(&mut self, draft: &mut Draft<'_>) {
        let holds = &draft.client.holds;
        if holds.is_unsure() && self.rng.chance(50) {
            draft.commands.push(Command::Ping);
        } else if holds.in_transaction() && self.rng.chance(15) {
            let text = *self.rng.pick(&["COMMIT", "ROLLBACK"]);
            draft.commands.push(Command::Query(text.to_owned(), Vec::new()));
        }
    }

    fn command(&mut self, draft: &mut Draft<'_>) {
        let on = |name: &str, weight: usize| usize::from(self.features.has(name)) * weight;
        let pins = if draft.mode == Mode::Pinning { on("pins", 10) } else { 0 };
        let weights = [
            24,
            on("writes", 18),
            on("transactions", 14),
            on("settings", 14),
            on("ddl", 3),
            on("prepared", 34),
            on("calls", 7),
            on("several", 8),
            on("asks", 5),
            on("schemas", 3),
            on("resets", 3),
            pins,
            on("files", 1),
            on("odd", 4),
            on("large", 1),
            on("tracking", 2),
            on("huge", 1),
            on("fails", 4),
        ];
        match self.rng.weighted(&weights) {
            0 => self.text(draft, texts::READS),
            1 => self.text(draft, texts::WRITES),
            2 => self.transaction(draft),
            3 => self.setting(draft),
            4 => self.text(draft, texts::DDL),
            5 => self.prepared(draft),
            6 => self.text(draft, texts::CALLS),
            7 => self.several(draft),
            8 => self.text(draft, texts::ASKS),
            9 => self.schema(draft),
            10 => self.reset(draft),
            11 => self.text(draft, texts::PINS),
            12 => self.file(draft),
            13 => self.odd(draft),
            14 => self.large(draft),
            15 => self.text(draft, settings::TRACKING),
            16 => self.huge(draft),
            _ => self.text(draft, texts::FAILS),
        }
    }

    fn transaction(&mut self, draft: &mut Draft<'_>) {
        let weights = match draft.client.holds.in_transaction() {
            false => [70, 15, 0, 15],
            true => [8, 55, 32, 5],
        };
        let savepoints = draft.client.holds.in_transaction() || draft.mode == Mode::Pinning;
        match self.rng.weighted(&weights) {
            0 => self.text(draft, texts::BEGIN),
            1 => self.text(draft, texts::END),
            2 if savepoints && draft.mode == Mode::Pinning => self.text(draft, texts::SAVEPOINT),
            _ if draft.mode == Mode::Pinning => self.text(draft, texts::NEXT),
            _ => self.text(draft, texts::READS),
        }
    }

    fn several(&mut self, draft: &mut Draft<'_>) {
        let tables = [texts::READS, texts::WRITES, texts::ERRORS, texts::BEGIN, texts::END];
        let count = 2 + self.rng.below(3);
        let mut parts = Vec::new();
        for _ in 0..count {
            let table = tables[self.rng.weighted(&[40, 30, 12, 8, 10])];
            let template = *self.rng.pick(table);
            parts.push(self.fill(draft.at, template));
        }
        let between = *self.rng.pick(&["; ", ";", " ; /* so */ "]);
        let mut text = parts.join(between);
        if self.rng.chance(20) {
            text.push(';');
        }
        self.push(draft, text);
    }

    fn file(&mut self, draft: &mut Draft<'_>) {
        if !draft.commands.is_empty() || !draft.client.agreed().has(LOCAL_FILES) {
            return self.text(draft, texts::READS);
        }
        let file: &[u8] = match self.rng.below(4) {
            0 => b"\n",
            1 => b"x\ny\n",
            2 => b"half a lin",
            _ => &[b'z'; 5000],
        };
        let text = self.fill(draft.at, "LOAD DATA LOCAL INFILE 'f' INTO TABLE {c}m (v)");
        draft.commands.push(Command::Query(text, file.to_vec()));
    }

    fn large(&mut self, draft: &mut Draft<'_>) {
        if !draft.commands.is_empty() {
            return self.text(draft, texts::READS);
        }
        let length = 60_000 + self.rng.below(90_000);
        let template = *self.rng.pick(texts::LONG);
        let text = self.fill(draft.at, template);
        draft.commands.push(Command::Long(text, length));
    }

    fn huge(&mut self, draft: &mut Draft<'_>) {
        if !draft.commands.is_empty() {
            return self.text(draft, texts::READS);
        }
        let near = crate::packet::PAYLOAD_MAX - 30;
        let length = near + self.rng.below(60);
        draft.commands.push(Command::Long("SELECT LENGTH('{long}')".to_owned(), length));
    }
}
