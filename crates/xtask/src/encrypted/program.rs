//! A driver's program: it runs all the time, and connects as a line of its input says.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};

/// The program's query once it is connected: the server's version, and whether Refrain's connection
/// to the server is encrypted.
const QUERY: &str = "select (current_setting('server_version_num')::int / 10000)::text || ' ' || \
                     case when ssl then 'encrypted' else 'in the clear' end \
                     from pg_stat_ssl where pid = pg_backend_pid()";
/// The longest that a connection may take. No driver waits as long by itself.
const ANSWER_MAX: Duration = Duration::from_secs(60);

/// A running program.
pub(super) struct Program {
    child: Child,
    input: Option<ChildStdin>,
    answers: Receiver<String>,
}

/// The result of a connection.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// The driver is connected, and this is the result of the query.
    In(String),
    /// The driver has this error: its SQLSTATE, if it has one, and its words.
    Refused(String, String),
}

impl Program {
    /// Starts a driver's program.
    pub(super) fn start(mut command: Command) -> Result<Program> {
        command.arg(QUERY).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().context("a driver's program does not start")?;
        let input = child.stdin.take();
        let output = child.stdout.take().context("no output")?;
        let (sender, answers) = channel();
        thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        Ok(Program { child, input, answers })
    }

    /// Connects with these options, after the connection before has been closed.
    pub(super) fn connect(&mut self, options: &[(&str, String)]) -> Result<Answer> {
        let words = options.iter().map(|(name, value)| format!("{name}={value}"));
        let line = words.collect::<Vec<_>>().join("\t") + "\n";
        let input = self.input.as_mut().context("the program has no input")?;
        input.write_all(line.as_bytes())?;
        input.flush()?;
        let answer = self.answers.recv_timeout(ANSWER_MAX);
        Answer::of(&answer.with_context(|| format!("the program does not answer to {line}"))?)
    }
}

impl Answer {
    fn of(line: &str) -> Result<Answer> {
        let mut words = line.splitn(3, ' ');
        match (words.next(), words.next(), words.next()) {
            (Some("in"), Some(first), Some(rest)) => Ok(Answer::In(format!("{first} {rest}"))),
            (Some("refused"), Some(state), Some(rest)) => {
                Ok(Answer::Refused(state.to_owned(), rest.to_owned()))
            }
            _ => bail!("a program says {line:?}"),
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // It ends with its input, unless it hangs.
        self.input = None;
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read() {
        let refused = |state: &str, words: &str| Answer::Refused(state.into(), words.into());
        assert_eq!(Answer::of("in 15 encrypted").unwrap(), Answer::In("15 encrypted".into()));
        assert_eq!(Answer::of("refused 28000 no entry").unwrap(), refused("28000", "no entry"));
        assert_eq!(Answer::of("refused - it broke").unwrap(), refused("-", "it broke"));
        for line in ["", "in", "in 15", "refused 28000", "connected 15 encrypted"] {
            assert!(Answer::of(line).is_err(), "{line:?}");
        }
    }
}
