//! The places of the log: standard error, a file, syslog, or several of them.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use refrain_config::General;
use tracing::Level;

use crate::log::syslog::Syslog;

/// The places to which lines are written.
struct Places {
    /// Whether standard error has no lines.
    is_quiet: bool,
    file: Option<File>,
    syslog: Option<Syslog>,
}

static PLACES: Mutex<Places> = Mutex::new(Places { is_quiet: false, file: None, syslog: None });

fn changed(change: impl FnOnce(&mut Places)) {
    change(&mut PLACES.lock().unwrap_or_else(PoisonError::into_inner));
}

/// Writes lines to a file as well from now on, or to none. A file that was renamed since it was
/// opened is left, and one of its old name is begun.
///
/// # Errors
/// If the file cannot be opened. Lines go on to where they went.
pub(crate) fn open_file(path: Option<&Path>) -> io::Result<()> {
    let open = |path| OpenOptions::new().append(true).create(true).open(path);
    let file = path.map(open).transpose()?;
    changed(|places| places.file = file);
    Ok(())
}

/// Writes lines to syslog as well from now on, or not, as the options say.
pub(crate) fn open_syslog(general: &General) {
    let syslog = Syslog::of(general);
    changed(|places| places.syslog = syslog);
}

/// Writes no lines to standard error from now on.
pub(crate) fn be_quiet() {
    changed(|places| places.is_quiet = true);
}

/// Writes a line to all places. An error of a write is ignored: there is nowhere to report it.
pub(super) fn write(level: Level, text: &str) {
    changed(|places| {
        if let Some(syslog) = &mut places.syslog {
            syslog.write(level, text);
        }
        if let Some(file) = &mut places.file {
            drop(file.write_all(text.as_bytes()));
        }
        if !places.is_quiet {
            drop(io::stderr().write_all(text.as_bytes()));
        }
    });
}
