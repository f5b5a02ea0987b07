//! The Go program beside this one, which measures one pass at a time.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// The running program.
pub(crate) struct Go {
    child: Child,
    questions: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Go {
    /// Builds and starts it. Prints a line and returns none if that fails.
    pub(crate) fn start(database: &Path) -> Option<Go> {
        let program =
            std::env::temp_dir().join(format!("refrain-sqlite-go-{}", std::process::id()));
        let mut build = Command::new("go");
        build.args(["build", "-o"]).arg(&program).arg(".");
        build.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/benches/go"));
        if !build.status().is_ok_and(|status| status.success()) {
            println!("go-sqlite3 is left out: Go is not there, or did not build it.");
            return None;
        }
        let mut command = Command::new(&program);
        command.arg(database).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let _ = std::fs::remove_file(program);
        let (questions, answers) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        Some(Go { child, questions, answers: BufReader::new(answers) })
    }

    /// Returns the CPU nanoseconds of one query.
    pub(crate) fn pass(
        &mut self,
        cache: usize,
        connections: usize,
        threads: usize,
        count: usize,
    ) -> f64 {
        writeln!(self.questions, "{cache} {connections} {threads} {count}").unwrap();
        let mut answer = String::new();
        self.answers.read_line(&mut answer).unwrap();
        answer.trim().parse().unwrap()
    }
}

impl Drop for Go {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
