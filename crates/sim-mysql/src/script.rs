//! A model client's script: units of work, each of a few commands.

use std::collections::VecDeque;

use refrain_sim::rng::Rng;

use crate::feature::{FEATURES, Feature};
use crate::prepared::execution;
use crate::variables::SETS;
use crate::wire::com;

/// A command that a client sends.
#[derive(Clone, Debug)]
pub enum Say {
    /// The same for both sessions.
    Command(Vec<u8>),
    /// One that names a prepared statement of the client: its place, the command, and what follows
    /// the number.
    Statement(usize, u8, Vec<u8>),
}

/// A prepared statement of a client.
#[derive(Clone, Debug)]
pub struct Held {
    /// The number in the private session.
    pub private: u32,
    /// The client's number.
    pub number: u32,
    /// The number of parameters.
    pub parameters: usize,
    /// Whether types of parameters were sent.
    pub has_types: bool,
}

/// A client's script.
#[derive(Debug)]
pub struct Script {
    id: usize,
    count: u32,
    weights: [u64; FEATURES.len()],
    rng: Rng,
    /// The commands that come next.
    pub queue: VecDeque<Say>,
    /// The prepared statements.
    pub held: Vec<Held>,
    /// The most bytes of a row.
    row: u64,
}

/// Texts that clients prepare. Clients have some in common.
const TEXTS: &[&str] = &[
    "SELECT STATE",
    "SELECT STATE ?",
    "SELECT STATE ? ?",
    "SELECT /*a*/ STATE ?",
    "SELECT /*b*/ STATE ? ?",
    "SELECT /*c*/ STATE ?",
    "SELECT /*d*/ STATE",
    "SELECT ROWS 5 3 ?",
    "INSERT 7 ?",
    "INSERT 7 ?",
    "SET sql_mode = 'ANSI'",
    "CALL 2 ?",
    "FAIL",
    "COMMIT",
    "nothing that is known",
];

impl Script {
    /// Makes the script of a client.
    pub fn new(id: usize, weights: [u64; FEATURES.len()], row: u64, rng: Rng) -> Self {
        let (queue, held) = (VecDeque::new(), Vec::new());
        Self { id, count: 0, weights, rng, queue, held, row }
    }

    fn tag(&mut self) -> String {
        self.count += 1;
        format!("c{}.{}", self.id, self.count)
    }

    /// Appends a text. `~` in it is its tag.
    fn text(&mut self, text: &str) {
        let tag = self.tag();
        let text = text.replacen('~', &format!("/*{tag}*/"), 1);
        self.queue.push_back(Say::Command([&[com::QUERY], text.as_bytes()].concat()));
    }

    fn command(&mut self, command: u8, body: &[u8]) {
        self.queue.push_back(Say::Command([&[command], body].concat()));
    }

    /// Appends a unit of work.
    pub fn unit(&mut self) {
        let total: u64 = self.weights.iter().sum();
        let mut drawn = self.rng.below(total);
        let mut chosen = FEATURES[0];
        for (feature, weight) in FEATURES.iter().zip(self.weights) {
            if drawn < weight {
                chosen = *feature;
                break;
            }
            drawn -= weight;
        }
        match chosen {
            Feature::Reads => self.reads(),
            Feature::Transactions => self.transaction(),
            Feature::Settings => self.settings(),
            Feature::Names => self.names(),
            Feature::Autocommit => self.autocommit(),
            Feature::Pins => self.pins(),
            Feature::NextTransaction => self.next_transaction(),
            Feature::Errors => self.errors(),
            Feature::Several => self.several(),
            Feature::Asks => self.asks(),
            Feature::Prepares => self.prepares(),
            Feature::Executes => self.executes(),
            Feature::Cursors => self.cursor(),
            Feature::LongData => self.long_data(),
            Feature::Resets => self.resets(),
            Feature::Files => self.text("LOAD DATA LOCAL ~"),
        }
    }

    fn reads(&mut self) {
        match self.rng.below(6) {
            0 => self.text("DO ~"),
            1 | 2 => {
                let (count, size) = (self.rng.below(40), self.rng.below(self.row));
                self.text(&format!("SELECT ~ ROWS {count} {size}"));
            }
            3 => self.text("CALL ~ 2"),
            _ => self.text("SELECT ~ STATE"),
        }
    }

    fn insert(&mut self) {
        let id = self.id * 1000 + self.count as usize;
        self.text(&format!("INSERT ~ {id}"));
    }

    fn transaction(&mut self) {
        let begin = *self.rng.pick(&["BEGIN ~", "BEGIN ~", "START TRANSACTION READ ONLY ~"]);
        self.text(begin);
        for _ in 0..self.rng.range(1, 5) {
            match self.rng.below(9) {
                0..4 => self.insert(),
                4 => self.text("SAVEPOINT ~ s"),
                5 => self.text("ROLLBACK ~ TO s"),
                6 => self.text("INSERT ~ AGAIN 1"),
                _ => self.text("SELECT ~ STATE"),
            }
        }
        match self.rng.below(8) {
            0 | 1 => self.text("ROLLBACK ~"),
            2 => self.text("DEADLOCK ~"),
            3 => self.text("CREATE ~ TABLE bad"),
            // It leaves within.
            4 => {}
            _ => self.text("COMMIT ~"),
        }
    }

    fn settings(&mut self) {
        match self.rng.below(7) {
            0 => {
                let modes = ["STRICT", "ANSI", "NO_BACKSLASH_ESCAPES", ""];
                let mode = *self.rng.pick(&modes);
                self.text(&format!("SET ~ sql_mode = '{mode}'"));
            }
            1 => {
                let zone = self.rng.below(4);
                self.text(&format!("SET ~ time_zone = '+0{zone}:00', lock_wait_timeout = 5{zone}"));
            }
            2 => self.text("SET ~ time_zone = 'SYSTEM', unknown = 1"),
            3 => {
                let schema = *self.rng.pick(&["d0", "d1", "d2", "nowhere"]);
                self.text(&format!("USE ~ {schema}"));
            }
            4 => {
                let schema = *self.rng.pick(&["d0", "d1", "nowhere"]);
                self.command(com::INIT_DB, schema.as_bytes());
            }
            5 => {
                let option = self.rng.below(2) as u8;
                self.command(com::SET_OPTION, &[option, 0]);
            }
            _ => self.text("CALL ~ SETS ANSI"),
        }
        self.text("SELECT ~ STATE");
    }

    fn names(&mut self) {
        let (set, collations) = *self.rng.pick(SETS);
        let collation = *self.rng.pick(collations);
        match self.rng.chance(300) {
            true => self.text(&format!("SET ~ NAMES {set}")),
            false => self.text(&format!("SET ~ NAMES {set} COLLATE {collation}")),
        }
        self.text("SELECT ~ STATE");
    }

    fn autocommit(&mut self) {
        match self.rng.below(5) {
            0 => self.text("SET ~ autocommit = 1"),
            1 => self.text("SET ~ autocommit = 0"),
            2 => self.text("SAVEPOINT ~ early"),
            3 => self.insert(),
            _ => self.text("SELECT ~ ROWS 2 2"),
        }
        match self.rng.below(4) {
            0 => self.text("ROLLBACK ~ TO early"),
            1 => self.text("FAIL ~"),
            2 => self.text("ROLLBACK ~"),
            _ => self.text("COMMIT ~"),
        }
    }

    fn pins(&mut self) {
        let texts = [
            "SET ~ @v = 1",
            "SELECT ~ 1 INTO @w",
            "CREATE ~ TEMPORARY TABLE t",
            "DROP ~ TEMPORARY TABLE t",
            "SELECT ~ GET_LOCK('a',0)",
            "LOCK ~ TABLES t READ",
            "UNLOCK ~ TABLES",
            "HANDLER ~ t OPEN",
            "CALL ~ PREPARES",
        ];
        let text = *self.rng.pick(&texts);
        self.text(text);
        self.text("SELECT ~ STATE");
        if self.rng.chance(500) {
            self.command(com::RESET_CONNECTION, b"");
        }
    }

    fn next_transaction(&mut self) {
        let texts =
            ["SET TRANSACTION ~ READ ONLY", "SET TRANSACTION ~ ISOLATION LEVEL SERIALIZABLE"];
        let text = *self.rng.pick(&texts);
        self.text(text);
        match self.rng.below(4) {
            0 => self.transaction(),
            1 => self.insert(),
            2 => self.text("INSERT ~ AGAIN 1"),
            _ => self.text("SELECT ~ STATE"),
        }
    }

    fn errors(&mut self) {
        let texts = [
            "FAIL ~",
            "SELECT ~ ROWS 5 3 FAIL 3",
            "DEADLOCK ~",
            "INSERT ~ AGAIN 1",
            "CREATE ~ TABLE bad",
            "CREATE ~ TABLE good",
            "no statement ~",
        ];
        let text = *self.rng.pick(&texts);
        self.text(text);
    }

    fn several(&mut self) {
        let texts = [
            "SELECT ~ STATE; INSERT 5; DO",
            "BEGIN; INSERT ~ 6; FAIL",
            "SELECT ~ ROWS 2 2; FAIL; DO",
            "SET sql_mode = 'ANSI'; SELECT ~ STATE",
            "DO; DO; CALL ~ 2; SELECT STATE",
            "BEGIN; INSERT ~ 8; COMMIT; SELECT STATE",
            "DO; SAVEPOINT ~ early",
            "DO; SET @v = 1; SELECT ~ STATE",
        ];
        let text = *self.rng.pick(&texts);
        self.text(text);
    }

    fn asks(&mut self) {
        match self.rng.below(4) {
            0 => self.insert(),
            1 => self.text("INSERT ~ 9 NAMED"),
            2 => self.text("WARN ~"),
            _ => {}
        }
        let texts = ["SELECT ~ LAST_INSERT_ID()", "SELECT ~ ROW_COUNT()", "SHOW WARNINGS ~"];
        let text = *self.rng.pick(&texts);
        self.text(text);
    }

    fn prepares(&mut self) {
        let text = *self.rng.pick(TEXTS);
        self.command(com::PREPARE, text.as_bytes());
    }

    /// Returns one of the statements.
    fn drawn(&mut self) -> Option<usize> {
        (!self.held.is_empty()).then(|| self.rng.index(self.held.len()))
    }

    fn executes(&mut self) {
        let Some(at) = self.drawn() else { return self.prepares() };
        match self.rng.below(12) {
            0 => self.queue.push_back(Say::Statement(at, com::STMT_RESET, Vec::new())),
            1 => self.queue.push_back(Say::Statement(at, com::CLOSE, Vec::new())),
            _ => self.execute(at, 0, &[]),
        }
    }

    /// Appends an execution. The parameters of these numbers have come ahead.
    fn execute(&mut self, at: usize, flags: u8, ahead: &[usize]) {
        let parameters = self.held[at].parameters;
        // A first one without types is an error.
        let sends = !self.held[at].has_types && !self.rng.chance(30) || self.rng.chance(300);
        self.held[at].has_types |= sends && parameters > 0;
        let types: Vec<u8> =
            (0..parameters).flat_map(|_| [*self.rng.pick(&[0xFD, 0xFE, 0xFC, 0x0F]), 0]).collect();
        let mark = if sends { "" } else { "-" };
        let values: Vec<_> = (0..parameters)
            .map(|parameter| {
                let tag = format!("{}{mark}", self.tag());
                (!ahead.contains(&parameter)).then(|| tag.into_bytes())
            })
            .collect();
        let body = execution(0, flags, &values, sends.then_some(&types[..]));
        self.queue.push_back(Say::Statement(at, com::EXECUTE, body[4..].to_vec()));
    }

    fn cursor(&mut self) {
        let Some(at) = self.drawn() else { return self.prepares() };
        self.execute(at, 1, &[]);
        for _ in 0..self.rng.range(1, 4) {
            let count = self.rng.range(1, 3) as u32;
            let body = count.to_le_bytes().to_vec();
            self.queue.push_back(Say::Statement(at, com::FETCH, body));
        }
        if self.rng.chance(300) {
            self.queue.push_back(Say::Statement(at, com::STMT_RESET, Vec::new()));
        }
    }

    fn long_data(&mut self) {
        let Some(at) = self.drawn() else { return self.prepares() };
        let held = &self.held[at];
        // What is missing in a first execution is a matter of the server.
        if held.parameters == 0 || !held.has_types {
            return self.executes();
        }
        for _ in 0..self.rng.range(1, 3) {
            let tag = self.tag();
            let body = [&[0, 0], tag.as_bytes()].concat();
            self.queue.push_back(Say::Statement(at, com::LONG_DATA, body));
        }
        match self.rng.below(8) {
            0 => self.queue.push_back(Say::Statement(at, com::STMT_RESET, Vec::new())),
            1 => self.text("SELECT ~ STATE"),
            _ => {}
        }
        if self.rng.chance(900) {
            self.execute(at, 0, &[0]);
        } else {
            self.queue.push_back(Say::Statement(at, com::CLOSE, Vec::new()));
        }
    }

    fn resets(&mut self) {
        match self.rng.below(4) {
            0 => self.command(com::RESET_CONNECTION, b""),
            1 => self.command(0x0F, b"unknown"),
            _ => self.command(com::PING, b""),
        }
    }
}
