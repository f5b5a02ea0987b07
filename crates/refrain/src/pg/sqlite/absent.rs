//! The place of SQLite in a build without it: no file can be opened.

use std::convert::Infallible;
use std::sync::Arc;

use refrain_config::Sqlite;
use refrain_pg::parts::Pg;
use refrain_pool::ids::Core;

use crate::mail::Post;
use crate::served::LocalServers;

/// The reason why a file is not served.
const ABSENT: &str = "this build has no SQLite (it was made without the feature `sqlite`)";

/// The files that are served: none.
#[derive(Debug)]
pub(crate) struct Files;

impl Files {
    /// Makes the empty table.
    pub(crate) fn new(_cores: u16) -> Self {
        Self
    }

    /// Opens no file.
    ///
    /// # Errors
    /// Always.
    pub(crate) fn open(&self, _file: &Arc<Sqlite>, _core: Core) -> Result<Infallible, String> {
        Err(ABSENT.to_owned())
    }
}

/// Opens no file.
///
/// # Errors
/// Always.
pub(crate) fn try_open(_file: &Sqlite) -> Result<(), String> {
    Err(ABSENT.to_owned())
}

/// The SQLite sessions of one core: none.
pub(crate) struct SqliteHost;

impl SqliteHost {
    pub(crate) fn new(_core: Core, _post: Arc<Post<Pg>>, _files: Arc<Files>) -> Self {
        Self
    }
}

impl LocalServers for SqliteHost {
    type Session = Infallible;
}
