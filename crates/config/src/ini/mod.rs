//! PgBouncer's configuration file, as it is: `pgbouncer.ini`.
//!
//! A text becomes lines (`text`), the lines become keys with values (`sections`), and these become
//! the entries of a TOML file that does the same (`draft` and what fills it). From there on a file
//! is read as every other, with the same checks. `keys` is the one table of what becomes of each
//! key of PgBouncer. No code of PgBouncer is here; what it does is in its manual and its source.

mod values;
mod text;
mod pairs;
mod keys;
mod sections;
mod tls;
mod draft;
mod program;
mod entries;
mod set;
mod read;
mod convert;
mod page;
#[cfg(test)]
mod tests;

use std::ffi::OsStr;
use std::path::Path;

use self::read::Ini;
use crate::assign::{self, Assignment};
use crate::build::{Strictness, checked};
use crate::error::Errors;
use crate::machine::Machine;
use crate::options::Options;

pub use self::page::pgbouncer_page;
pub use self::read::Remark;

/// Whether a file is a `pgbouncer.ini`, by its name or its content.
///
/// Refrain's own files have no table `pgbouncer`, and no line of theirs begins with a percent sign.
pub fn is_ini(name: &Path, text: &str) -> bool {
    let ending = name.extension().and_then(OsStr::to_str);
    match ending {
        Some("ini") => true,
        Some("toml") => false,
        _ => text
            .lines()
            .map(str::trim_start)
            .any(|line| line.starts_with("[pgbouncer]") || line.starts_with("%include ")),
    }
}

impl Options {
    /// Reads the text of a `pgbouncer.ini`, and the files of the machine that it refers to. What is
    /// set on the console counts in place of what stands there. Returns what there is to tell as
    /// well.
    ///
    /// # Errors
    ///
    /// Every error in the text and the files, by line.
    pub fn from_ini_on(
        text: &str,
        machine: &dyn Machine,
        set: &[Assignment],
    ) -> Result<(Self, Vec<Remark>), Errors> {
        let ini = Ini::read(text, machine, set)?;
        let mut file = ini.file();
        // The keys of PgBouncer among them have been read with the text.
        assign::put(&mut file, set.iter().filter(|it| it.setting(0).is_none()))?;
        let options = checked(&file, machine, Strictness::MayBeEmpty)
            .map_err(|errors| Errors(errors.0.into_iter().map(|it| ini.placed(it)).collect()))?;
        let remarks = ini.told.iter().map(|told| ini.remark(told)).collect();
        Ok((options, remarks))
    }

    /// Returns the TOML file that does the same as a `pgbouncer.ini`, with its comments.
    ///
    /// # Errors
    ///
    /// Every error in the text and the files, by line.
    pub fn convert_ini(text: &str, machine: &dyn Machine) -> Result<String, Errors> {
        Self::from_ini_on(text, machine, &[])?;
        Ini::read(text, machine, &[]).map(|ini| convert::toml(&ini))
    }
}
