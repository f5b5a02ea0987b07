//! The source of all that is generated: random numbers, and what is remembered of clients.

use crate::capability::{CHOICES, Capabilities, IGNORE_SPACE, INTERACTIVE, LEAST};
use crate::client::Client;
use crate::command::Command;
use refrain_differ::features::Features;
use refrain_differ::rng::Rng;

/// The things that a client may do in a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Nothing that keeps a server beyond a transaction.
    Free,
    /// Anything.
    Pinning,
}

/// The generator's memory of a client.
#[derive(Clone, Debug, Default)]
pub(crate) struct Model {
    pub(crate) statements: Vec<Statement>,
}

/// The source of logins and commands.
#[derive(Debug)]
pub struct Generator {
    pub(crate) rng: Rng,
    pub(crate) features: Features,
    pub(crate) is_mariadb: bool,
    is_mysql_8: bool,
    pub(crate) is_mysql_9: bool,
    /// The capabilities that most clients of the episode have.
    pub(crate) usual: Capabilities,
    pub(crate) models: Vec<Model>,
    pub(crate) next_handle: u32,
}

/// A client's step while it is made.
pub(crate) struct Draft<'a> {
    pub(crate) at: usize,
    pub(crate) client: &'a Client,
    pub(crate) mode: Mode,
    pub(crate) commands: Vec<Command>,
}

/// A statement that a client has prepared, or tried to.
#[derive(Clone, Debug)]
pub(crate) struct Statement {
    pub(crate) handle: u32,
    pub(crate) parameters: usize,
    /// Whether each execution has types.
    pub(crate) is_typed: bool,
    /// Whether it has been executed with a cursor.
    pub(crate) has_had_cursor: bool,
    /// The types of the last execution.
    pub(crate) kinds: Vec<u16>,
}

impl Generator {
    /// Creates a generator for an episode.
    #[must_use]
    pub fn new(seed: u64, features: Features, version: &str) -> Self {
        let mut rng = Rng::new(seed);
        let usual = capabilities(&mut rng);
        let is_mariadb = version.contains("MariaDB");
        let [is_mysql_8, is_mysql_9] = ["8.", "9."].map(|it| version.starts_with(it));
        Self {
            rng,
            features,
            is_mariadb,
            is_mysql_8,
            is_mysql_9,
            usual,
            models: Vec::new(),
            next_handle: 1,
        }
    }

    /// Returns the generator's source of random numbers.
    pub fn rng(&mut self) -> &mut Rng {
        &mut self.rng
    }

    /// Appends a text of a table.
    pub(crate) fn text(&mut self, draft: &mut Draft<'_>, table: &[&str]) {
        let template = *self.rng.pick(table);
        let text = self.fill(draft.at, template);
        self.push(draft, text);
    }

    /// Appends a text, or a harmless one in its place if it may keep a server and must not.
    pub(crate) fn push(&mut self, draft: &mut Draft<'_>, text: String) {
        let command = Command::Query(text, Vec::new());
        // Behind a statement with another increment, MySQL 8.0 gives a number again: INSERT fails
        // with error 1062, or not, as it depends on the cache of tables.
        let is_unsure = self.is_mysql_8 && command.text().is_some_and(sets_increment);
        if is_unsure
            || draft.mode == Mode::Free && draft.client.holds.pin(&draft.commands, &command)
        {
            draft.commands.push(Command::Query("SELECT 'harmless'".to_owned(), Vec::new()));
        } else {
            draft.commands.push(command);
        }
    }

    /// Fills the holes of a template: `{c}` the client's prefix of tables, `{i}` a small number,
    /// `{w}` a word.
    pub(crate) fn fill(&mut self, client: usize, template: &str) -> String {
        let mut text = template.replace("{c}", &format!("c{}", client + 1));
        while let Some(at) = text.find("{i}") {
            text.replace_range(at..at + 3, &self.rng.below(9).to_string());
        }
        while let Some(at) = text.find("{w}") {
            let word = *self.rng.pick(&["one", "two", "x", "", "long word here"]);
            text.replace_range(at..at + 3, word);
        }
        text
    }
}

fn sets_increment(text: &str) -> bool {
    text.contains("auto_increment_increment")
}

/// Chooses the capabilities of a client.
pub(crate) fn capabilities(rng: &mut Rng) -> Capabilities {
    let rare = IGNORE_SPACE | INTERACTIVE;
    let chosen = CHOICES.iter().fold(LEAST, |all, (bit, _)| {
        let percent = if bit & rare != 0 { 10 } else { 75 };
        if rng.chance(percent) { all | bit } else { all }
    });
    Capabilities(chosen)
}
