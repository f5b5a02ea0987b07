//! A client: sessions one after the other, each with a random part of everything that clients do.
//!
//! Every row that a client asks for has a tag that no other request has, so the client recognises a
//! row of another client. The client knows the right reply to each request: another error, a
//! missing row, or a cancel that hits another client's statement is wrong.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use crate::bench::session::{self, Answer, Session};

use super::dice::Dice;
use super::tally::{Tally, count};

/// Time without a reply after which a client is stuck.
const PATIENCE: Duration = Duration::from_secs(60);
/// Number of names of prepared statements.
const NAMES: u64 = 8;
/// Number of texts that all clients share.
const TEXTS: u64 = 40;
/// The most cancel requests for one statement: a request that comes too early has no effect.
const CANCELS_MAX: u32 = 100;
/// Time between two cancel requests for one statement.
const CANCEL_AGAIN: Duration = Duration::from_millis(200);
/// Time that a client sometimes rests between two sessions.
const REST: Duration = Duration::from_millis(20);

/// Why a session cannot go on.
#[derive(Debug)]
pub(super) enum End {
    /// The proxy or the server ended it.
    Lost(String),
    /// A reply was wrong.
    Wrong(String),
    /// No reply came.
    Stuck(String),
    /// The client ended it.
    Left,
}

impl From<anyhow::Error> for End {
    fn from(error: anyhow::Error) -> End {
        let words = format!("{error:#}");
        let slow = error
            .chain()
            .any(|cause| cause.downcast_ref::<io::Error>().is_some_and(session::is_timeout));
        if slow { End::Stuck(words) } else { End::Lost(words) }
    }
}

/// Runs sessions until the run is over.
pub(super) fn run(port: u16, seed: u64, tally: &Tally) {
    let mut dice = Dice::new(seed);
    while !tally.is_over() {
        count(&tally.sessions);
        let end = Client::open(port, &mut dice, tally).and_then(|mut client| {
            let end = client.live();
            if matches!(end, Ok(())) { client.leave() } else { end }
        });
        match end {
            Ok(()) | Err(End::Left) => {}
            Err(End::Lost(why)) => tally.lost.add(why),
            Err(End::Wrong(why)) => tally.wrong.add(why),
            Err(End::Stuck(why)) => tally.stuck.add(why),
        }
        if dice.once_in(4) {
            thread::sleep(REST);
        }
    }
}

/// A session and its state as the client knows it.
struct Client<'a> {
    port: u16,
    session: Session,
    dice: &'a mut Dice,
    tally: &'a Tally,
    /// The text that each name stands for.
    names: [Option<Text>; NAMES as usize],
    /// The value of `application_name`.
    application: String,
}

/// A prepared statement.
#[derive(Clone)]
struct Text {
    /// The text after the tag in each of the statement's rows.
    mark: String,
    text: String,
}

type Done = Result<(), End>;

impl<'a> Client<'a> {
    fn open(port: u16, dice: &'a mut Dice, tally: &'a Tally) -> Result<Client<'a>, End> {
        let session = Session::open(port, "soak", PATIENCE)?;
        let (names, application) = (Default::default(), String::new());
        Ok(Client { port, session, dice, tally, names, application })
    }

    fn live(&mut self) -> Done {
        for _ in 0..=self.dice.below(60) {
            if self.tally.is_over() {
                return Ok(());
            }
            count(&self.tally.units);
            match self.dice.below(100) {
                0..25 => self.simple()?,
                25..60 => self.prepared()?,
                60..68 => self.pipeline()?,
                68..76 => self.transaction()?,
                76..80 => self.copy_out()?,
                80..84 => self.copy_in()?,
                84..89 => self.setting()?,
                89..93 => self.mistake()?,
                93..95 => self.cancelled()?,
                95 => self.cancel_of_nothing()?,
                96 => self.same_name_twice()?,
                97 => self.close_statement()?,
                _ => return self.vanish(),
            }
        }
        Ok(())
    }

    fn leave(self) -> Done {
        Ok(self.session.close()?)
    }

    fn simple(&mut self) -> Done {
        let (tag, rows) = (tag(), self.dice.rows());
        let answer = self.session.query(&select(&tag, rows))?;
        self.check(&answer, &tag, rows)
    }

    /// Runs a prepared statement, after its Parse if it is new, in one write or in two.
    fn prepared(&mut self) -> Done {
        let (name, text, parse) = self.statement();
        let (tag, rows) = (tag(), self.dice.rows());
        let run = session::run(&name, &[&tag, &rows.to_string()]);
        if parse.is_empty() || self.dice.once_in(2) {
            self.session.send(&[parse, run].concat())?;
        } else {
            self.session.send(&[parse, session::sync()].concat())?;
            let answer = self.session.answer()?;
            self.check_error(&answer, None)?;
            self.session.send(&run)?;
        }
        let answer = self.session.answer()?;
        self.check(&answer, &format!("{tag}{}", text.mark), rows)
    }

    /// Sends several transactions together.
    fn pipeline(&mut self) -> Done {
        let mut asked = Vec::new();
        let mut bytes = Vec::new();
        for _ in 0..2 + self.dice.below(6) {
            let (tag, rows) = (tag(), 1 + self.dice.below(20));
            if self.dice.once_in(3) {
                bytes.extend(session::query(&select(&tag, rows)));
                asked.push((tag, rows));
            } else {
                let (name, text, parse) = self.statement();
                bytes.extend(parse);
                bytes.extend(session::run(&name, &[&tag, &rows.to_string()]));
                asked.push((format!("{tag}{}", text.mark), rows));
            }
        }
        self.session.send(&bytes)?;
        for (tag, rows) in asked {
            let answer = self.session.answer()?;
            self.check(&answer, &tag, rows)?;
        }
        Ok(())
    }

    fn transaction(&mut self) -> Done {
        self.plain("BEGIN")?;
        self.simple()?;
        self.prepared()?;
        let text = if self.dice.once_in(3) { "ROLLBACK" } else { "COMMIT" };
        self.plain(text)
    }

    fn copy_out(&mut self) -> Done {
        let (tag, rows) = (tag(), self.dice.rows());
        let answer = self.session.query(&format!("COPY ({}) TO STDOUT", select(&tag, rows)))?;
        self.check_error(&answer, None)?;
        let right = answer.rows.iter().zip(1..).all(|(row, number)| {
            row.first().is_some_and(|line| *line == format!("{tag}\t{number}\n").into_bytes())
        });
        self.tally.rows.fetch_add(rows, Relaxed);
        self.ensure(right && answer.rows.len() as u64 == rows, || format!("COPY out of {tag}"))
    }

    /// Copies rows into a table, reads them and rolls back.
    fn copy_in(&mut self) -> Done {
        let (tag, rows) = (tag(), self.dice.rows());
        self.plain("BEGIN")?;
        let answer = self.session.query("COPY soak FROM STDIN")?;
        self.check_error(&answer, None)?;
        let mut bytes = Vec::new();
        for number in 1..=rows {
            bytes.extend(session::copy_data(format!("{tag}\t{number}\n").as_bytes()));
        }
        bytes.extend(session::copy_done());
        self.session.send(&bytes)?;
        let answer = self.session.answer()?;
        self.check_error(&answer, None)?;
        let text = format!("SELECT tag, n FROM soak WHERE tag = '{tag}' ORDER BY n");
        let answer = self.session.query(&text)?;
        self.check(&answer, &tag, rows)?;
        self.plain("ROLLBACK")
    }

    /// Checks that the session keeps its setting, whichever server runs the next transaction.
    fn setting(&mut self) -> Done {
        if self.dice.once_in(2) {
            self.application = tag();
            let text = format!("SET application_name = '{}'", self.application);
            self.plain(&text)?;
        }
        let answer = self.session.query("SHOW application_name")?;
        self.check_error(&answer, None)?;
        let expected = vec![vec![self.application.clone().into_bytes()]];
        self.ensure(answer.rows == expected, || {
            format!("application_name is {:?}, not {expected:?}", answer.rows)
        })
    }

    fn mistake(&mut self) -> Done {
        let sqlstate = "22012";
        if self.dice.once_in(2) {
            let answer = self.session.query("SELECT 1 / 0")?;
            return self.check_error(&answer, Some(sqlstate));
        }
        self.plain("BEGIN")?;
        let parse = session::parse("", "SELECT 1 / $1::int4");
        self.session.send(&[parse, session::run("", &["0"])].concat())?;
        let answer = self.session.answer()?;
        self.check_error(&answer, Some(sqlstate))?;
        self.plain("ROLLBACK")
    }

    fn cancelled(&mut self) -> Done {
        count(&self.tally.cancels);
        self.session.send(&session::query("SELECT pg_sleep(30)"))?;
        thread::sleep(Duration::from_millis(self.dice.below(20)));
        for _ in 0..CANCELS_MAX {
            session::cancel(self.port, &self.session.key)?;
            if self.session.hears_within(CANCEL_AGAIN)? {
                break;
            }
        }
        let answer = self.session.answer()?;
        self.check_error(&answer, Some("57014"))
    }

    /// Sends a cancel request while no statement of the session runs. It must hit no other client.
    fn cancel_of_nothing(&mut self) -> Done {
        Ok(session::cancel(self.port, &self.session.key)?)
    }

    fn same_name_twice(&mut self) -> Done {
        let (name, _, parse) = self.statement();
        let again = session::parse(&name, "SELECT 7");
        self.session.send(&[parse, session::sync(), again, session::sync()].concat())?;
        let first = self.session.answer()?;
        self.check_error(&first, None)?;
        let second = self.session.answer()?;
        self.check_error(&second, Some("42P05"))
    }

    fn close_statement(&mut self) -> Done {
        let number = self.dice.below(NAMES);
        self.names[number as usize] = None;
        let close = session::close_statement(&format!("p{number}"));
        self.session.send(&[close, session::sync()].concat())?;
        let answer = self.session.answer()?;
        self.check_error(&answer, None)
    }

    /// Closes the connection without Terminate at a bad moment.
    fn vanish(&mut self) -> Done {
        count(&self.tally.vanished);
        let tag = tag();
        match self.dice.below(6) {
            0 => {
                let whole = session::query(&select(&tag, 10));
                let part = self.dice.below(whole.len() as u64) as usize;
                self.session.send(&whole[..part])?;
            }
            1 => {
                self.session.send(&session::query(&select(&tag, 200_000)))?;
                self.session.receive()?;
            }
            2 => {
                self.plain("BEGIN")?;
                self.simple()?;
            }
            3 => {
                self.session.query("COPY soak FROM STDIN")?;
                let whole = session::copy_data(&[b'x'; 5000]);
                self.session.send(&whole[..3000])?;
            }
            4 => {
                let (name, _, parse) = self.statement();
                let run = session::run(&name, &[&tag, "5"]);
                let whole = [parse, run].concat();
                let part = self.dice.below(whole.len() as u64) as usize;
                self.session.send(&whole[..part])?;
            }
            _ => self.session.send(&session::query("SELECT pg_sleep(0.2)"))?,
        }
        if self.dice.once_in(2) {
            thread::sleep(Duration::from_millis(self.dice.below(10)));
        }
        self.session.vanish();
        Err(End::Left)
    }

    /// Returns the name of a prepared statement, its text, and its Parse if it is not prepared yet.
    fn statement(&mut self) -> (String, Text, Vec<u8>) {
        let number = self.dice.below(NAMES);
        let name = format!("p{number}");
        if let Some(text) = &self.names[number as usize] {
            return (name, text.clone(), Vec::new());
        }
        let mark = match self.dice.below(TEXTS * 2) {
            common if common < TEXTS => format!("/{common}"),
            _ => format!("/own {}", tag()),
        };
        let rows = "generate_series(1, $2::int4) AS n";
        let text = Text { text: format!("SELECT $1::text || '{mark}', n FROM {rows}"), mark };
        let parse = session::parse(&name, &text.text);
        self.names[number as usize] = Some(text.clone());
        (name, text, parse)
    }

    fn plain(&mut self, text: &str) -> Done {
        let answer = self.session.query(text)?;
        self.check_error(&answer, None)
    }

    /// Checks that the answer has all rows of this request, in order, and no others.
    fn check(&self, answer: &Answer, tag: &str, rows: u64) -> Done {
        self.check_error(answer, None)?;
        self.tally.rows.fetch_add(rows, Relaxed);
        let right = answer.rows.iter().zip(1..).all(|(row, number)| {
            let values: [&[u8]; 2] = [tag.as_bytes(), &format!("{number}").into_bytes()];
            row.iter().eq(values)
        });
        self.ensure(right && answer.rows.len() as u64 == rows, || {
            let (count, first) = (answer.rows.len(), answer.rows.first());
            format!("asked for {rows} rows of {tag:?}, got {count}, first {first:?}")
        })
    }

    /// Checks that the answer has the expected error and no other, or no error.
    fn check_error(&self, answer: &Answer, expected: Option<&str>) -> Done {
        if answer.fatal {
            return Err(End::Lost(format!("{:?}", answer.errors)));
        }
        let got: Vec<&str> = answer.errors.iter().map(|(sqlstate, _)| sqlstate.as_str()).collect();
        let right = got == Vec::from_iter(expected);
        self.ensure(right, || format!("{:?} instead of {expected:?}", answer.errors))
    }

    fn ensure(&self, right: bool, words: impl FnOnce() -> String) -> Done {
        if right { Ok(()) } else { Err(End::Wrong(words())) }
    }
}

/// Returns a tag that no other request has.
fn tag() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    format!("t{}", NEXT.fetch_add(1, Relaxed))
}

fn select(tag: &str, rows: u64) -> String {
    format!("SELECT '{tag}', n FROM generate_series(1, {rows}) AS n")
}
