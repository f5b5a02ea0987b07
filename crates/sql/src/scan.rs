//! The possible effects of a whole query string on its session.
//!
//! What: [`scan`] goes once through a text, statement by statement. The first words of a statement
//! find its rule; every other word is looked up among those that count anywhere.
//!
//! Why: in transaction mode a server goes from client to client. State that a client leaves in its
//! server must be kept from the next client, and must be there for the client on its next server.
//! The text is the only warning.
//!
//! What always holds:
//! - A trait of the text's statements is never missed because of how a statement is written: in
//!   which case, with which comments and quotes, as which statement of how many. In doubt, the
//!   trait is set.
//! - The content of strings, quoted identifiers and comments never counts (but `"set_config"(` is a
//!   call).
//! - The scan does not allocate or panic, and takes time linear in the length of the text.
//!
//! What it does not do: parse. For a text that the server refuses, it describes what the text would
//! have done. The text does not show the effects of functions, procedures, triggers and DO, nor
//! those of a `search_path` that puts temporary objects first.

use crate::ahead::Ahead;
use crate::calls::Names;
use crate::lex::{Lexer, Token, TokenKind, Trail, is_word};
use crate::name::Name;
use crate::rules::{DEFAULTS, EXPLAINED, Makes, Mention, Rule, Step, may_be_mention, rules_of};
use crate::set::{Call, Target, mention_of, updates_settings};
use crate::traits::Traits;

/// The facts about a query string, as far as its session is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scan {
    /// The possible effects of all its statements on the session.
    pub traits: Traits,
    /// The kind of its statement, if it is a single one.
    pub kind: Kind,
    /// The number of its statements, without empty ones; 255 if there are more.
    pub statements: u8,
    /// The functions it calls that may be user-defined, and the tables it writes, whose triggers
    /// may call such functions, as one number. Texts with the same number have the same names. Zero
    /// if there are none.
    pub calls: u64,
    /// True if it sets a parameter, even if for the transaction only.
    pub sets: bool,
}

/// The kind of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// No statement: just blanks, comments and semicolons.
    Empty,
    /// More than one statement.
    Many,
    /// A statement that is none of the other kinds.
    Other,
    /// SELECT, unless it begins with a parenthesis or WITH.
    Select,
    /// INSERT.
    Insert,
    /// UPDATE.
    Update,
    /// DELETE.
    Delete,
    /// WITH, followed by any statement.
    With,
    /// BEGIN or START TRANSACTION.
    Begin,
    /// COMMIT, END, ROLLBACK, ABORT or PREPARE TRANSACTION.
    TransactionEnd,
    /// COMMIT, END, ROLLBACK or ABORT with AND CHAIN, after which a block is open again.
    Chain,
    /// DEALLOCATE ALL.
    DeallocateAll,
    /// DEALLOCATE of this name.
    Deallocate(Name),
    /// DISCARD ALL.
    DiscardAll,
    /// EXECUTE of this name.
    Execute(Name),
    /// EXPLAIN, with whatever options, of EXECUTE of this name.
    ExplainExecute(Name),
    /// CREATE TABLE … AS EXECUTE of this name, EXPLAIN before it or not.
    CreateAsExecute(Name),
    /// PREPARE of a statement under this name.
    Prepare(Name),
    /// SET that outlives the transaction.
    Set {
        /// The target as written: a parameter or the words of a form such as TIME ZONE. See
        /// [`crate::set_names`].
        name: Name,
    },
    /// SET LOCAL.
    SetLocal {
        /// The target as written.
        name: Name,
    },
    /// RESET.
    Reset {
        /// The target as written; may be ALL.
        name: Name,
    },
}

/// Returns the facts about `text`, which has no NUL at its end. `standard_conforming_strings` is
/// assumed to be on.
pub fn scan(text: &[u8]) -> Scan {
    scan_with(text, false)
}

/// Like [`scan`], for a session whose `standard_conforming_strings` is off if `backslash` is true:
/// a backslash then escapes in `'…'`.
pub fn scan_with(text: &[u8], backslash: bool) -> Scan {
    let mut scanner = Scanner::new(text, backslash);
    let mut kind = Kind::Empty;
    let mut statements = 0_u8;
    while let Some(this) = scanner.next() {
        kind = if statements == 0 { this } else { Kind::Many };
        statements = statements.saturating_add(1);
    }
    let (calls, sets) = (scanner.names.number(), scanner.sets);
    Scan { traits: scanner.traits, kind, statements, calls, sets }
}

/// Iterates over the kinds of a text's statements, without empty ones. The rest is as for
/// [`scan_with`].
pub fn kinds(text: &[u8], backslash: bool) -> impl Iterator<Item = Kind> {
    let mut scanner = Scanner::new(text, backslash);
    std::iter::from_fn(move || scanner.next())
}

struct Scanner<'a> {
    lexer: Lexer<'a>,
    traits: Traits,
    /// The tokens read so far. Inside open parentheses, a semicolon ends a statement of a rule, not
    /// one of the text.
    trail: Trail,
    /// The end of the last routine body with semicolons of its own.
    routine_end: u32,
    /// The functions that the text calls and the tables that it writes.
    names: Names,
    /// True if the text sets a parameter.
    sets: bool,
}

impl<'a> Scanner<'a> {
    fn new(text: &'a [u8], backslash: bool) -> Self {
        Self {
            lexer: Lexer::new(text, backslash),
            traits: Traits::NONE,
            trail: Trail::default(),
            routine_end: 0,
            names: Names::default(),
            sets: false,
        }
    }

    /// Returns the kind of the text's next statement. Statements in parentheses and bodies are
    /// read, but not returned.
    fn next(&mut self) -> Option<Kind> {
        while let Some(first) = self.lexer.significant() {
            if first.kind == TokenKind::Semicolon {
                continue;
            }
            let counts = self.trail.depth == 0 && first.start >= self.routine_end;
            let kind = self.statement(first);
            if counts {
                return Some(kind);
            }
        }
        None
    }

    /// Reads a statement and its semicolon. `first` is its first token, already taken.
    fn statement(&mut self, first: Token) -> Kind {
        let word = first.kind == TokenKind::Word;
        let kind = if word { self.head(first) } else { Kind::Other };
        if matches!(kind, Kind::Other | Kind::Update | Kind::Delete) {
            // Not a word, or a word that counts anywhere, too.
            self.lexer.rewind(first);
        }
        self.trail.before = first.start as usize;
        while let Some(token) = self.lexer.skim(&mut self.trail, may_be_mention) {
            if token.kind == TokenKind::Semicolon {
                break;
            }
            if token.kind == TokenKind::Open {
                self.names.before_parenthesis(self.lexer.text(), self.trail.before);
            } else if let Some(mention) = mention_of(token, self.lexer.text()) {
                let traits = self.mention(mention);
                self.traits |= traits;
            }
            self.trail.before = token.start as usize;
        }
        kind
    }

    /// Returns the effects of a word that counts anywhere; the lexer stands after it.
    fn mention(&mut self, mention: Mention) -> Traits {
        let ahead = Ahead::new(&self.lexer);
        match mention {
            Mention::Call(traits) if ahead.at(TokenKind::Open) => traits,
            Mention::SetConfig => {
                self.sets = true;
                Call::read(ahead).map_or(Traits::NONE, |call| call.traits())
            }
            Mention::Into => self.into(),
            Mention::Update if updates_settings(ahead.clone()) => {
                self.sets = true;
                Traits::SET
            }
            Mention::Update | Mention::Writes => {
                self.names.written(ahead);
                Traits::NONE
            }
            Mention::Call(_) => Traits::NONE,
        }
    }

    /// Returns the effects of INTO. SELECT … INTO creates a table; INSERT INTO and MERGE INTO do
    /// not, nor does a column of that name.
    fn into(&mut self) -> Traits {
        let before = &self.lexer.text()[self.trail.before..];
        let end = before.iter().position(|byte| !is_word(*byte)).unwrap_or(before.len());
        let others = [&b"insert"[..], b"merge", b"as"];
        let other = others.iter().any(|other| before[..end].eq_ignore_ascii_case(other));
        let mut ahead = Ahead::new(&self.lexer);
        if other || before.starts_with(b".") {
            self.names.written(ahead);
            return Traits::NONE;
        }
        ahead.take_word(&["local", "global"]);
        let temp = ahead.take_word(&["temp", "temporary"]);
        ahead.take_word(&["table"]);
        // TEMP may itself be the name of a table: INTO temp FROM x.
        let temp = temp || ahead.take_schema("pg_temp");
        if temp { Traits::TEMP | Traits::DDL } else { Traits::DDL }
    }

    /// Finds the rules of a statement by its first word; the lexer stands after it.
    #[inline]
    fn head(&mut self, first: Token) -> Kind {
        let word = first.of(self.lexer.text());
        match rules_of(word).next() {
            None => Kind::Other,
            // The most common statements need no lookahead.
            Some(Rule { steps: [], makes, traits, .. }) if *makes < Makes::Set => {
                self.traits |= *traits;
                makes.kind(None)
            }
            Some(_) => self.command(word),
        }
    }

    fn command(&mut self, word: &[u8]) -> Kind {
        self.names.begin(word);
        let mut explained = None;
        let kind = self.rules(word, &Ahead::new(&self.lexer), &mut explained);
        let Some(mut ahead) = explained.filter(|ahead| ahead.at_word(EXPLAINED)) else {
            return kind;
        };
        let Some(inner) = ahead.take() else { return kind };
        // The statement after EXPLAIN has its own rules, but its kind matters only if a name in it
        // must be known.
        match self.rules(ahead.of(inner), &ahead, &mut None) {
            kind @ Kind::CreateAsExecute(_) => kind,
            _ => Kind::Other,
        }
    }

    /// Walks the rules of a statement that begins with `word`; `ahead` stands after the word. For
    /// EXPLAIN, sets `explained` to the place where the explained statement begins.
    fn rules<'b>(
        &mut self,
        word: &[u8],
        ahead: &Ahead<'b>,
        explained: &mut Option<Ahead<'b>>,
    ) -> Kind {
        let mut kind = Kind::Other;
        for rule in rules_of(word) {
            let mut here = ahead.clone();
            let mut name = None;
            if here.walk(rule.steps, &mut name).is_none() {
                continue;
            }
            self.traits |= rule.traits;
            let made = match rule.makes {
                Makes::Set | Makes::Reset => self.set(here, rule.makes),
                Makes::Explained => {
                    *explained = Some(here);
                    Kind::Other
                }
                Makes::Routine => {
                    self.routine(here);
                    Kind::Other
                }
                makes => makes.kind(name),
            };
            if kind == Kind::Other {
                kind = made;
            }
            if !rule.go_on {
                break;
            }
        }
        kind
    }

    fn set(&mut self, ahead: Ahead<'_>, makes: Makes) -> Kind {
        let resets = DEFAULTS.iter().any(|steps| ahead.clone().walk(steps, &mut None).is_some());
        let target = Target::read(ahead);
        self.sets = true;
        self.traits |= target.traits(self.lexer.text());
        if resets && !target.local {
            self.traits |= Traits::RESET;
        }
        match (makes, target.local, target.span) {
            (_, _, None) => Kind::Other,
            (Makes::Reset, _, Some(name)) => Kind::Reset { name },
            (_, true, Some(name)) => Kind::SetLocal { name },
            (_, false, Some(name)) => Kind::Set { name },
        }
    }

    /// Finds the END of a routine whose body is BEGIN ATOMIC … END. Every END except a label closes
    /// a BEGIN or CASE. The statements in the body are read like any other, but do not count as
    /// statements of the text.
    fn routine(&mut self, mut ahead: Ahead<'_>) {
        let begins = Step::Find(&[&["begin"], &["atomic"]]);
        if self.routine_end > self.lexer.position() as u32
            || ahead.walk(&[begins], &mut None).is_none()
        {
            return;
        }
        let text = self.lexer.text();
        let mut lexer = ahead.lexer().clone();
        // Without a next token, the lexer stands after a semicolon, or at the end of the text.
        let mut token = ahead.peek().or_else(|| lexer.significant());
        let mut label = false;
        let mut depth = 1_usize;
        while let Some(word) = token {
            let is = |other: &str| word.of(text).eq_ignore_ascii_case(other.as_bytes());
            if !label && is("case") {
                depth += 1;
            } else if !label && is("end") {
                depth -= 1;
            }
            if depth == 0 {
                self.routine_end = word.end;
                return;
            }
            label = is("as") || is(".");
            token = lexer.significant();
        }
        self.routine_end = u32::MAX;
    }
}

impl Makes {
    /// Returns the kind of a statement, with the name found in it.
    fn kind(self, name: Option<Name>) -> Kind {
        match (self, name) {
            (Makes::Select, _) => Kind::Select,
            (Makes::Insert, _) => Kind::Insert,
            (Makes::Update, _) => Kind::Update,
            (Makes::Delete, _) => Kind::Delete,
            (Makes::With, _) => Kind::With,
            (Makes::Begin, _) => Kind::Begin,
            (Makes::TransactionEnd, _) => Kind::TransactionEnd,
            (Makes::Chain, _) => Kind::Chain,
            (Makes::DeallocateAll, _) => Kind::DeallocateAll,
            (Makes::DiscardAll, _) => Kind::DiscardAll,
            (Makes::Deallocate, Some(name)) => Kind::Deallocate(name),
            (Makes::Execute, Some(name)) => Kind::Execute(name),
            (Makes::ExplainExecute, Some(name)) => Kind::ExplainExecute(name),
            (Makes::CreateAsExecute, Some(name)) => Kind::CreateAsExecute(name),
            (Makes::Prepare, Some(name)) => Kind::Prepare(name),
            _ => Kind::Other,
        }
    }
}
