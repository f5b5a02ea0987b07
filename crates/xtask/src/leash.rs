//! A leash: a child process that never outlives its owner.
//!
//! A shell wrapper starts a helper that reads a pipe whose other end only this process holds, and
//! then becomes the child. When the pipe closes, because the [`Leash`] is dropped or this process
//! is killed, the helper signals the child. The kernel's parent death signal would not do: it comes
//! when the *thread* that spawned the child ends, and a test's thread ends with the test.

use std::io::Write;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};

use anyhow::{Context, Result};

use crate::command;

/// The shell script of the wrapper. Its helper gets a line if the child has ended, or has to end.
/// If the pipe closes before a line comes, nobody is left who could remove the child's folder.
const WRAPPER: &str = r#"
signal=$1; folder=$2; shift 2
exec 3<&0 </dev/null
(
    read -r word <&3
    [ "$word" = gone ] && exit
    kill -s "$signal" $$
    [ "$word" = end ] || [ -z "$folder" ] && exit
    tries=100
    while [ $tries -gt 0 ] && kill -s 0 $$; do sleep 0.1; tries=$((tries - 1)); done
    rm -rf -- "$folder"
) >/dev/null 2>&1 &
exec 3<&-
exec "$@"
"#;

/// A running child process. Dropping this ends it.
#[derive(Debug)]
pub struct Leash {
    child: Child,
    rope: Option<ChildStdin>,
}

impl Leash {
    /// Starts `command`. `signal` ends it: a name for `kill -s`, such as `TERM`.
    ///
    /// The child has the program, arguments, environment and folder of `command`. Its standard
    /// output and error go to `log`, and its standard input is empty.
    pub fn start(command: &Command, signal: &str, log: &std::fs::File) -> Result<Leash> {
        Self::start_in(Path::new(""), command, signal, log)
    }

    /// Starts `command` as [`Leash::start`] does. If this process ends without dropping the leash,
    /// this folder is removed behind the child.
    pub fn start_in(
        folder: &Path,
        command: &Command,
        signal: &str,
        log: &std::fs::File,
    ) -> Result<Leash> {
        let mut wrapped = Command::new("sh");
        wrapped.args(["-c", WRAPPER, "leash", signal]).arg(folder);
        wrapped.arg(command.get_program()).args(command.get_args());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => wrapped.env(name, value),
                None => wrapped.env_remove(name),
            };
        }
        if let Some(dir) = command.get_current_dir() {
            wrapped.current_dir(dir);
        }
        wrapped.stdin(Stdio::piped()).stdout(log.try_clone()?).stderr(log.try_clone()?);
        let child = wrapped.spawn();
        let mut child = child.with_context(|| format!("run `{}`", command::words(command)))?;
        let rope = child.stdin.take();
        Ok(Leash { child, rope })
    }

    /// Returns the child's process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Whether the child still runs.
    pub fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }
}

impl Drop for Leash {
    fn drop(&mut self) {
        let running = self.is_running();
        if let Some(rope) = &mut self.rope {
            // Another process may have the id of a child that has ended.
            let _ = rope.write_all(if running { b"end\n" } else { b"gone\n" });
        }
        self.rope = None;
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::thread;
    use std::time::Duration;

    use super::*;
    use crate::scratch;

    fn sink() -> File {
        File::options().write(true).open("/dev/null").unwrap()
    }

    #[test]
    fn drop_ends_the_child() {
        let mut leash = Leash::start(Command::new("sleep").arg("600"), "TERM", &sink()).unwrap();
        assert!(leash.is_running());
        let process = format!("/proc/{}", leash.id());
        drop(leash);
        assert!(!Path::new(&process).exists());
    }

    #[test]
    fn a_folder_goes_with_the_owner_alone() {
        let folder = scratch::unused().unwrap();
        let start = || {
            fs::create_dir_all(folder.join("data")).unwrap();
            Leash::start_in(&folder, Command::new("sleep").arg("600"), "TERM", &sink()).unwrap()
        };
        drop(start());
        assert!(folder.join("data").exists());
        let mut leash = start();
        // The end of this process would do the same.
        leash.rope = None;
        while leash.is_running() || folder.exists() {
            thread::sleep(Duration::from_millis(10));
        }
    }

    #[test]
    fn a_child_that_ended_by_itself_is_no_error() {
        let mut leash = Leash::start(&Command::new("true"), "TERM", &sink()).unwrap();
        while leash.is_running() {
            thread::yield_now();
        }
    }
}
