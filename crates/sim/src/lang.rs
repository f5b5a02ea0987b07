//! The tiny language of the model server.
//!
//! The language has PostgreSQL's syntax, so that `refrain-sql` classifies its texts like real ones.
//! It has only commands whose effects a checker can see: rows with a tag, settings, transactions,
//! prepared statements, COPY, and the state of a session.

use crate::item::{Argument, Item, function};
use crate::lex::{Token, tokens};
pub use crate::statement::Statement;

/// Reads a query string.
pub fn parse(text: &str) -> Vec<Statement> {
    let all = tokens(text);
    all.split(|token| *token == Token::Sign(';'))
        .filter(|statement| !statement.is_empty())
        .map(|statement| Reader { rest: statement }.statement())
        .collect()
}

struct Reader<'a> {
    rest: &'a [Token],
}

impl Reader<'_> {
    fn word(&mut self) -> String {
        match self.rest.split_first() {
            Some((Token::Word(word) | Token::Text(word) | Token::Quoted(word), rest)) => {
                self.rest = rest;
                word.clone()
            }
            _ => String::new(),
        }
    }

    fn take(&mut self, word: &str) -> bool {
        if let Some((Token::Word(found), rest)) = self.rest.split_first()
            && found == word
        {
            self.rest = rest;
            return true;
        }
        false
    }

    fn sign(&mut self, sign: char) -> bool {
        if self.rest.first() == Some(&Token::Sign(sign)) {
            self.rest = &self.rest[1..];
            return true;
        }
        false
    }

    /// Skips the engine's question about words behind which functions hide, which stands in front
    /// of the one about reads: the databases here have no such words.
    fn skip_words(&mut self) {
        let word = |it: &str| Token::Word(it.to_owned());
        let behind = [Token::Sign(')'), word("union"), word("all"), Token::Sign('(')];
        if self.rest.first() == Some(&Token::Sign('('))
            && let Some(at) = self.rest.windows(behind.len()).position(|it| *it == behind)
        {
            self.rest = &self.rest[at + behind.len()..];
        }
    }

    fn statement(&mut self) -> Statement {
        self.skip_words();
        let wrong = match self.rest.first() {
            Some(Token::Word(word)) => word.clone(),
            _ => String::new(),
        };
        let head = self.word();
        self.command(&head).unwrap_or(Statement::Wrong(wrong))
    }

    fn command(&mut self, head: &str) -> Option<Statement> {
        let statement = match head {
            "select" => return self.select(),
            "with" => Statement::Reads(self.rows()?),
            "insert" => {
                self.take("into");
                self.word();
                self.take("values");
                self.sign('(').then_some(())?;
                Statement::Insert(self.item()?)
            }
            "update" => return self.update(),
            "lock" => {
                self.take("table").then_some(())?;
                Statement::Lock(self.word())
            }
            "begin" => Statement::Begin,
            "commit" | "end" => Statement::Commit,
            "rollback" | "abort" => Statement::Rollback,
            "set" => return self.set(),
            "reset" => Statement::Reset(self.one_or_all()),
            "show" => Statement::Show(self.word()),
            "prepare" => {
                let name = self.word();
                self.take("as").then_some(())?;
                Statement::Prepare(name, Box::new(self.statement()))
            }
            "execute" => {
                let name = self.word();
                Statement::Execute(name, self.values())
            }
            "deallocate" => Statement::Deallocate(self.one_or_all()),
            "discard" if self.take("all") => Statement::DiscardAll,
            "discard" => Statement::DiscardTemp,
            "listen" => Statement::Listen(self.word()),
            "unlisten" if self.sign('*') => Statement::Unlisten(None),
            "unlisten" => Statement::Unlisten(Some(self.word())),
            "notify" => {
                let channel = self.word();
                self.sign(',');
                Statement::Notify(channel, self.word())
            }
            "create" if self.take("temp") => {
                self.take("table");
                Statement::CreateTemp(self.word())
            }
            "create" => Statement::Ddl("CREATE TABLE"),
            "alter" => Statement::Ddl("ALTER TABLE"),
            "drop" => {
                self.take("table");
                Statement::Drop(self.word())
            }
            "copy" => {
                let table = self.word();
                if self.take("from") { Statement::CopyIn } else { Statement::CopyOut(table) }
            }
            "declare" => {
                let name = self.word();
                ["cursor", "with", "hold", "for"].iter().all(|w| self.take(w)).then_some(())?;
                Statement::Declare(name, Box::new(self.statement()))
            }
            "fetch" => {
                self.take("all");
                self.take("from");
                Statement::Fetch(self.word())
            }
            "close" => Statement::CloseCursor(self.one_or_all()),
            _ => return None,
        };
        Some(statement)
    }

    fn one_or_all(&mut self) -> Option<String> {
        if self.take("all") { None } else { Some(self.word()) }
    }

    fn arguments(&mut self) -> Vec<Argument> {
        let mut arguments = Vec::new();
        if self.sign('(') {
            while !self.sign(')') && !self.rest.is_empty() {
                let left = self.rest.len();
                arguments.push(self.argument());
                self.sign(',');
                assert!(self.rest.len() < left, "an argument that is not read: {:?}", self.rest);
            }
        }
        arguments
    }

    /// Reads arguments and leaves out parameters.
    fn values(&mut self) -> Vec<String> {
        self.arguments().iter().filter_map(|it| it.value(&[])).collect()
    }

    fn argument(&mut self) -> Argument {
        if let Some((Token::Param(number), rest)) = self.rest.split_first() {
            self.rest = rest;
            return Argument::Param(*number);
        }
        if self.take("case") {
            return Argument::Known(self.first_case());
        }
        Argument::Known(self.word())
    }

    /// Reads a CASE as its first value.
    fn first_case(&mut self) -> String {
        self.skip_past("then");
        let value = self.word();
        self.skip_past("end");
        value
    }

    fn skip_past(&mut self, word: &str) {
        while !self.rest.is_empty() && !self.take(word) {
            self.rest = &self.rest[1..];
        }
    }

    fn set(&mut self) -> Option<Statement> {
        let local = self.take("local");
        let name = self.word();
        (self.take("to") || self.sign('=')).then_some(())?;
        let default = self.take("default");
        let value = if default { None } else { Some(self.word()) };
        Some(Statement::Set(name, value, local))
    }

    fn select(&mut self) -> Option<Statement> {
        if let Some(question) = self.position() {
            return Some(question);
        }
        if self.rest.first() == Some(&Token::Word("case".to_owned())) {
            return Some(self.probe());
        }
        // The engine asks the catalogue why a text cannot be prepared, or guards a query of its
        // own.
        let guards = |it: &Token| match it {
            Token::Word(word) => word.ends_with("rtrim"),
            Token::Text(text) => text.starts_with('!'),
            _ => false,
        };
        if self.rest.first() == Some(&Token::Word("why".to_owned())) || self.rest.iter().any(guards)
        {
            self.rest = &[];
            return Some(Statement::Objections);
        }
        if self.rest.get(2) == Some(&Token::Word("x.name".to_owned())) {
            return Some(Statement::Restore(self.restored()?));
        }
        if self.take("usename") {
            (self.sign(',') && self.take("passwd") && self.take("from")).then_some(())?;
            let function = self.word();
            return Some(Statement::Users(function, self.arguments().pop()?));
        }
        let mut items = vec![self.item()?];
        while self.sign(',') {
            items.push(self.item()?);
        }
        let from = self.take("from").then(|| self.word());
        if self.take("where") {
            let key = self.key()?;
            let table = from.clone().unwrap_or_default();
            for item in &mut items {
                if matches!(item, Item::Version(..)) {
                    *item = Item::Version(table.clone(), key.clone());
                }
            }
        }
        Some(Statement::Select(items, from))
    }

    /// Reads the engine's questions how far a server is.
    fn position(&mut self) -> Option<Statement> {
        let calls = |name: &str| {
            self.rest.iter().any(|it| matches!(it, Token::Word(word) if word.ends_with(name)))
        };
        let question = if calls(".pg_current_wal_insert_lsn") {
            Statement::PrimaryPosition
        } else if calls(".pg_last_wal_replay_lsn") {
            Statement::StandbyPosition
        } else {
            return None;
        };
        self.rest = &[];
        Some(question)
    }

    fn update(&mut self) -> Option<Statement> {
        let table = self.word();
        // One more than the version before, and the writer.
        ["set", "version"].iter().all(|word| self.take(word)).then_some(())?;
        (self.sign('=') && self.take("version") && self.sign('+') && self.take("1"))
            .then_some(())?;
        (self.sign(',') && self.take("writer") && self.sign('=')).then_some(())?;
        let writer = self.argument();
        self.take("where").then_some(())?;
        Some(Statement::Update(table, self.key()?, writer))
    }

    /// Reads `key = $1`, or a value in the place of the parameter.
    fn key(&mut self) -> Option<Argument> {
        (self.take("key") && self.sign('=')).then(|| self.argument())
    }

    /// Reads the names after each `UNION ALL SELECT`. A name that begins with `=` is not a setting.
    fn probe(&mut self) -> Statement {
        let mut names = Vec::new();
        while let Some((token, rest)) = self.rest.split_first() {
            self.rest = rest;
            if *token == Token::Word("union".to_owned()) {
                self.take("all");
                self.take("select");
                names.push(self.word());
            }
        }
        Statement::Probe(names)
    }

    /// Reads the names of the engine's question about reads, and skips the rest.
    fn rows(&mut self) -> Option<Vec<[String; 3]>> {
        let values = self.rest.iter().position(|it| *it == Token::Word("values".to_owned()))?;
        self.rest = &self.rest[values + 1..];
        let mut rows = Vec::new();
        while self.sign('(') {
            let row = std::array::from_fn(|_| {
                let value = self.word();
                self.sign(',');
                value
            });
            rows.push(row);
            self.sign(')').then_some(())?;
            self.sign(',');
        }
        self.rest = &[];
        Some(rows)
    }

    /// Reads the names and values of the engine's query that restores settings, and skips the rest.
    fn restored(&mut self) -> Option<Vec<[String; 2]>> {
        let from = self.rest.iter().position(|it| *it == Token::Word("from".to_owned()))?;
        self.rest = &self.rest[from + 1..];
        self.sign('(').then_some(())?;
        let mut settings = Vec::new();
        while self.take("select") {
            settings.push(std::array::from_fn(|_| {
                let value = self.word();
                if self.take("as") {
                    self.word();
                }
                self.sign(',');
                value
            }));
            self.take("union").then(|| self.take("all"));
        }
        self.rest = &[];
        Some(settings)
    }

    fn item(&mut self) -> Option<Item> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        match first {
            Token::Text(text) => {
                let frozen = self.sign(':') && self.sign(':');
                if frozen {
                    self.word();
                }
                Some(if frozen { Item::Frozen(text.clone()) } else { Item::Text(text.clone()) })
            }
            Token::Param(number) => {
                let cast = self.sign(':') && self.sign(':');
                let dated = cast && self.word() == "date";
                Some(if dated { Item::Dated(*number) } else { Item::Param(*number) })
            }
            Token::Word(name) => self.call(name.strip_prefix("pg_catalog.").unwrap_or(name)),
            Token::Quoted(_) | Token::Sign(_) => None,
        }
    }

    fn call(&mut self, name: &str) -> Option<Item> {
        if name == "version" {
            return Some(Item::Version(String::new(), Argument::Known(String::new())));
        }
        let arguments = self.arguments();
        let late = Item::Late(name.to_owned(), arguments.clone());
        if late.params() > 0 {
            return Some(late);
        }
        let known: Vec<_> = arguments.iter().filter_map(|it| it.value(&[])).collect();
        function(name, &known)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::Need;

    #[test]
    fn texts_are_read() {
        let select = |items| Statement::Select(items, None);
        assert_eq!(parse("select 'c1-2'"), [select(vec![Item::Text("c1-2".into())])]);
        assert_eq!(
            parse("SELECT $1::text, 'x'::date; begin;"),
            [select(vec![Item::Param(1), Item::Frozen("x".into())]), Statement::Begin]
        );
        let ours = "SELECT pg_catalog.set_config('timezone', E'a\\\\b',false),\
            pg_catalog.set_config('work_mem',NULL,false)";
        let set = |n: &str, v: Option<&str>| Item::SetConfig(n.into(), v.map(Into::into), false);
        let both = vec![set("timezone", Some("a\\b")), set("work_mem", None)];
        assert_eq!(parse(ours), [select(both)]);
        let late = parse("select repeat($2, 3), 'x'");
        assert_eq!(late[0].params(), 2);
        let repeat = Item::Repeat("ab".into(), 3);
        let values = ["no".to_owned(), "ab".to_owned()];
        assert_eq!(late[0].with(&values), select(vec![repeat, Item::Text("x".into())]));
        let row = parse("select version, $1 from rows_a where key = $2");
        let read = Need::Read(("rows_a".into(), "k".into()));
        assert_eq!(row[0].params(), 2);
        assert_eq!(row[0].with(&["c1-2".into(), "k".into()]).needs(), [read]);
        let update = parse("update rows_a set version = version + 1, writer = $2 where key = $1");
        let write = Need::Write(("rows_a".into(), "k".into()));
        assert_eq!(update[0].with(&["k".into(), "c1-2".into()]).needs(), [write]);
        assert_eq!(parse("selec 1"), [Statement::Wrong("selec".into())]);
        assert_eq!(
            parse(
                "SELECT CASE WHEN 1 THEN name END,pg_catalog.current_setting(name) FROM pg_catalog.pg_settings \
                WHERE source='session' UNION ALL SELECT 'my.x',pg_catalog.current_setting('my.x',true)"
            ),
            [Statement::Probe(vec!["my.x".into()])]
        );
        assert_eq!(
            parse("set timezone to 'x'"),
            [Statement::Set("timezone".into(), Some("x".into()), false)]
        );
    }

    #[test]
    fn questions_of_the_engine_are_read() {
        let names = ["0", "r", "\"t\""].map(str::to_owned);
        let (words, reads) = ("SELECT 1 UNION ALL SELECT 2", "WITH m AS (VALUES (0,'r','\"t\"'))");
        assert_eq!(parse(reads), [Statement::Reads(vec![names.clone()])]);
        let both = parse(&format!("({words}) UNION ALL ({reads} SELECT 3)"));
        assert_eq!(both, [Statement::Reads(vec![names])]);
        let off =
            "select set_config(case when f('a') is null then 'a.b' else 'b' end, 'off', true)";
        let set = Item::SetConfig("a.b".into(), Some("off".into()), true);
        assert_eq!(parse(off), [Statement::Select(vec![set], None)]);
    }
}
