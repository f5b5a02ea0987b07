//! Builds checked [`Options`] from the text of a file or from a URL.
//!
//! The text is parsed into entries and the entries are sorted into sections. Each entry is read by
//! the row of its name. Rules between options are checked last, when the options of each pool are
//! known. All errors are collected, so that the user can correct a file in one go. A URL is first
//! turned into the entries of an equivalent file.

use std::sync::Arc;

use crate::access;
use crate::assign::{self, Assignment};
use crate::cache::{Cache, CacheOptions, CacheRule};
use crate::choices::AuthMethod;
use crate::database::{Backend, Changes, Database, DatabaseKeys};
use crate::equivalent::{self, CACHE, DATABASES, GROUPS, PEERS, POOL, SECTIONS, USERS};
use crate::error::{Error, Errors};
use crate::file;
use crate::general::General;
use crate::hba::{Groups, Hba};
use crate::machine::{Machine, NoMachine};
use crate::mysql;
use crate::options::Options;
use crate::peer::{Peer, PeerKeys};
use crate::pool::{PoolOptions, PoolOverrides};
use crate::promise;
use crate::secret::UserSecret;
use crate::spelling::unknown;
use crate::table::Table;
use crate::url;
use crate::user::{User, UserKeys};
use crate::value::{self, Entry, Given};

/// The rules within the table of the cache.
const RULES: &str = "rules";

impl Options {
    /// Reads the text of a configuration file that refers to no other file.
    ///
    /// # Errors
    ///
    /// Every error in the text, by line. If the text is not TOML, only that error.
    pub fn from_toml(text: &str) -> Result<Self, Errors> {
        Self::from_toml_on(text, &NoMachine, &[])
    }

    /// Reads the text of a configuration file, and the files of the machine that it refers to. What
    /// is set on the console counts in place of what stands there.
    ///
    /// # Errors
    ///
    /// Every error in the text and the files, by line. If the text is not TOML, only that error.
    pub fn from_toml_on(
        text: &str,
        machine: &dyn Machine,
        set: &[Assignment],
    ) -> Result<Self, Errors> {
        let mut root = file::parse(text).map_err(Errors)?;
        assign::put(&mut root, set)?;
        checked(&root, machine, Strictness::Serves)
    }

    /// Builds the options for running without a file, from the URL of a server or of an SQLite
    /// file.
    ///
    /// Clients reach an SQLite file under one database name: the `dbname` of the query, or the
    /// file's name without its ending. A client that names no database gets this one. Clients reach
    /// a server's databases under their own names (`*`). Keys of a database in the query of the URL
    /// apply to each of these databases; the query may set any other option as well. A password
    /// creates a user who logs in with it. Without a password, clients are trusted unless the query
    /// sets `auth`.
    ///
    /// # Errors
    ///
    /// Every error in the URL. The messages do not repeat the URL, because it may contain a
    /// password.
    pub fn from_url(url: &str) -> Result<Self, Errors> {
        Self::from_url_on(url, &NoMachine, &[])
    }

    /// Builds the options as [`Self::from_url`] does. The URL may refer to files of the machine.
    /// What is set on the console counts in place of what stands there.
    ///
    /// # Errors
    ///
    /// Every error in the URL and the files.
    pub fn from_url_on(
        url: &str,
        machine: &dyn Machine,
        set: &[Assignment],
    ) -> Result<Self, Errors> {
        let mut root = url::parse(url, None)
            .and_then(|entries| equivalent::as_file(&entries))
            .map_err(|message| {
                Errors(vec![Error {
                    line: None,
                    option: String::new(),
                    message: message.to_owned(),
                    file: None,
                }])
            })?;
        assign::put(&mut root, set)?;
        checked(&root, machine, Strictness::Serves).map_err(without_sections)
    }
}

/// Whether a configuration has to let somebody in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Strictness {
    /// It has a database, and users who can log in.
    Serves,
    /// It may have neither, as PgBouncer's files may.
    MayBeEmpty,
}

/// Builds the options from the entries of a file.
///
/// # Errors
///
/// Every error in the entries and the files that they name, by line.
pub(crate) fn checked(
    root: &[Entry],
    machine: &dyn Machine,
    strictness: Strictness,
) -> Result<Options, Errors> {
    let mut builder = Builder { errors: Vec::new(), machine, strictness };
    let options = builder.options(root);
    let mut errors = builder.errors;
    if errors.is_empty() {
        return Ok(options);
    }
    errors.sort_by_key(|error| error.line.unwrap_or(usize::MAX));
    Err(Errors(errors))
}

/// Names the options as they stand in a URL, where there are no sections, and removes repeated
/// errors.
fn without_sections(mut errors: Errors) -> Errors {
    for error in &mut errors.0 {
        error.option = error.option.rsplit('.').next().unwrap_or_default().to_owned();
    }
    errors.0.dedup();
    errors
}

/// A table of the file: its path, for messages, and its entries.
struct Section<'a> {
    path: String,
    name: &'a str,
    line: Option<usize>,
    entries: &'a [Entry],
}

impl Section<'_> {
    /// Returns the line of an option, or else the line of the section.
    fn line_of(&self, option: &str) -> Option<usize> {
        let entry = self.entries.iter().find(|entry| entry.name == option);
        entry.map_or(self.line, |entry| entry.line)
    }
}

struct Builder<'a> {
    errors: Vec<Error>,
    machine: &'a dyn Machine,
    strictness: Strictness,
}

impl Builder<'_> {
    fn options(&mut self, root: &[Entry]) -> Options {
        let is_section = |entry: &Entry| SECTIONS.contains(&entry.name.as_str());
        let (sections, top): (Vec<_>, Vec<_>) = root.iter().cloned().partition(is_section);
        let top = Section { path: String::new(), name: "", line: None, entries: &top };
        let general: General = self.keys(&top, None);
        self.rules(&top, general.conflicts());

        let mut defaults = PoolOverrides::default();
        let pools = self.sections("", &sections).into_iter().filter(|s| s.name == POOL);
        for section in pools {
            let () = self.keys(&section, Some(&mut defaults));
            self.rules(&section, defaults.over(&PoolOptions::default()).conflicts());
        }
        let defaults = defaults.over(&PoolOptions::default());

        let of_databases = self.named(&sections, DATABASES);
        let databases: Vec<Database> =
            of_databases.iter().filter_map(|s| self.database(s, &defaults)).collect();
        let may_be_empty = self.strictness == Strictness::MayBeEmpty;
        let elsewhere = may_be_empty || access::are_elsewhere(&general, &databases);
        if !databases.is_empty() && databases.iter().all(Database::is_mysql) {
            self.refuse_for_mysql(&top);
            let pools = self.sections("", &sections).into_iter().filter(|s| s.name == POOL);
            pools.for_each(|section| self.refuse_for_mysql(&section));
        }
        let of_users = self.named(&sections, USERS);
        let users: Vec<User> =
            of_users.iter().map(|s| self.user(s, general.auth, elsewhere, &databases)).collect();

        self.user_rules(&of_users, &users, &databases);
        self.something(&general, &of_databases, &databases);
        // A rule may let clients in without a user of the configuration.
        let needs_users = !matches!(general.auth, AuthMethod::Trust | AuthMethod::Hba);
        if users.is_empty() && !elsewhere && needs_users {
            let message =
                "no users, so no client could log in: add [users.NAME], or set auth = \"trust\"";
            self.fail(None, USERS.to_owned(), message);
        }
        let cache = self.cache(&sections, &databases);
        let groups = self.groups(&sections);
        let hba = self.hba(&top, &general, &groups);
        let peers = self.peers(&sections);
        let mut options =
            Options { general, defaults, cache, databases, users, peers, groups, hba };
        options.databases.sort_by(|one, other| one.name.cmp(&other.name));
        options.users.sort_by(|one, other| one.name.cmp(&other.name));
        options
    }

    fn fail(&mut self, line: Option<usize>, option: String, message: impl Into<String>) {
        self.errors.push(Error { line, option, message: message.into(), file: None });
    }

    fn rules(&mut self, section: &Section<'_>, broken: Vec<(&str, &str)>) {
        for (name, rule) in broken {
            self.fail(section.line_of(name), dotted(&section.path, name), rule);
        }
    }

    /// Refuses the options of a section that a database of MySQL cannot have.
    fn refuse_for_mysql(&mut self, section: &Section<'_>) {
        for (name, line, why) in mysql::refused(section.entries) {
            self.fail(line, dotted(&section.path, name), why);
        }
    }

    /// Returns the tables among the entries; every other entry is an error.
    fn sections<'a>(&mut self, path: &str, entries: &'a [Entry]) -> Vec<Section<'a>> {
        let mut sections = Vec::new();
        for Entry { name, line, given } in entries {
            let path = dotted(path, name);
            match given {
                Given::Table(entries) => {
                    sections.push(Section { path, name, line: *line, entries });
                }
                _ => self.fail(*line, path.clone(), format!("expected a table: [{path}]")),
            }
        }
        sections
    }

    /// Returns the tables within the table `name`: `[databases.…]`.
    fn named<'a>(&mut self, sections: &'a [Entry], name: &str) -> Vec<Section<'a>> {
        let mut found = Vec::new();
        for entry in sections.iter().filter(|entry| entry.name == name) {
            if let Given::Table(entries) = &entry.given {
                found.extend(self.sections(name, entries));
            }
        }
        found
    }

    /// Reads the other processes.
    fn peers(&mut self, sections: &[Entry]) -> Vec<Peer> {
        let mut peers = Vec::new();
        for section in self.named(sections, PEERS) {
            let keys: PeerKeys = self.keys(&section, None);
            match Peer::new(section.name, keys) {
                Ok(peer) => peers.push(peer),
                Err(message) => self.fail(section.line, section.path.clone(), message),
            }
        }
        peers
    }

    /// Reads the groups of users.
    fn groups(&mut self, sections: &[Entry]) -> Groups {
        let mut groups = Groups::default();
        let found: Vec<Entry> = sections.iter().filter(|it| it.name == GROUPS).cloned().collect();
        for section in self.sections("", &found) {
            for Entry { name, line, given } in section.entries {
                match value::read::<Vec<String>>(given, None) {
                    Ok(members) => drop(groups.0.insert(name.clone(), members)),
                    Err(message) => self.fail(*line, dotted(GROUPS, name), message),
                }
            }
        }
        groups
    }

    /// Reads the rules by which clients log in.
    fn hba(&mut self, top: &Section<'_>, general: &General, groups: &Groups) -> Arc<Hba> {
        let hba = access::read(general, groups, self.machine).unwrap_or_else(|problems| {
            for (option, problem) in problems {
                self.fail(top.line_of(option), option.to_owned(), problem);
            }
            Hba::default()
        });
        Arc::new(hba)
    }

    /// Reads the table of the cache, with its rules.
    fn cache(&mut self, sections: &[Entry], databases: &[Database]) -> Cache {
        let mut cache = Cache::default();
        let found: Vec<Entry> = sections.iter().filter(|it| it.name == CACHE).cloned().collect();
        for section in self.sections("", &found) {
            let is_rules = |entry: &Entry| entry.name == RULES;
            let (rules, own): (Vec<_>, Vec<_>) =
                section.entries.iter().cloned().partition(is_rules);
            let own = Section { entries: &own, path: section.path.clone(), ..section };
            cache.options = self.keys::<CacheOptions>(&own, None);
            for Entry { line, given, .. } in &rules {
                cache.rules.extend(self.cache_rules(*line, given, databases));
            }
        }
        cache
    }

    /// Reads the rules of the cache.
    fn cache_rules(
        &mut self,
        line: Option<usize>,
        given: &Given,
        databases: &[Database],
    ) -> Vec<CacheRule> {
        let path = dotted(CACHE, RULES);
        let Given::List(items) = given else {
            self.fail(line, path.clone(), format!("expected tables: [[{path}]]"));
            return Vec::new();
        };
        let mut rules = Vec::new();
        for item in items {
            let Given::Table(entries) = item else {
                self.fail(line, path.clone(), format!("expected tables: [[{path}]]"));
                continue;
            };
            let line = entries.iter().find_map(|entry| entry.line).or(line);
            let section = Section { path: path.clone(), name: RULES, line, entries };
            let rule = self.keys::<CacheRule>(&section, None);
            for (name, message) in promise::broken(&rule, entries, databases) {
                self.fail(section.line_of(name), dotted(&path, name), message);
            }
            rules.push(rule);
        }
        rules
    }

    /// Reads a section: its own keys, and pool options if `pool` is given.
    fn keys<T: Table>(&mut self, section: &Section<'_>, pool: Option<&mut PoolOverrides>) -> T {
        let mut keys = T::default();
        let mut pool = pool;
        for Entry { name, line, given } in section.entries {
            let read = match (T::row(name), PoolOptions::row(name), &mut pool) {
                (Some(row), ..) => row.set(&mut keys, given),
                (None, Some(row), Some(pool)) => pool.set(row, given),
                (None, Some(_), None) => Err("is a pool option: put it under [pool]".to_owned()),
                (None, None, _) => Err(unknown::<T>(name)),
            };
            if let Err(message) = read {
                self.fail(*line, dotted(&section.path, name), message);
            }
        }
        keys
    }

    fn database(&mut self, section: &Section<'_>, defaults: &PoolOptions) -> Option<Database> {
        let before = self.errors.len();
        let entries = self.with_url(section);
        let section = &Section { entries: &entries, path: section.path.clone(), ..*section };
        let mut overrides = PoolOverrides::default();
        let keys: DatabaseKeys = self.keys(section, Some(&mut overrides));
        let pool = overrides.over(defaults);
        if keys.backend == Backend::Mysql {
            self.refuse_for_mysql(section);
        }
        if !overrides.is_empty() {
            self.rules(section, pool.conflicts());
        }
        let (max_connections, max_client_connections) =
            (keys.max_connections, keys.max_client_connections);
        let auth_query = keys.auth_query();
        if section.name == Database::ANY && keys.changes == Changes::Replication {
            let message = "is for one database: set it under [databases.NAME], and not under \"*\"";
            self.fail(section.line_of("changes"), dotted(&section.path, "changes"), message);
        }
        let server = match keys.into_server(pool.pool_mode) {
            Ok(server) => server,
            // A URL that cannot be read may contain the host, so a missing host is not reported.
            Err(_) if self.errors.len() > before => return None,
            Err((key, message)) => {
                self.fail(section.line, dotted(&section.path, key), message);
                return None;
            }
        };
        Some(Database {
            name: section.name.to_owned(),
            server,
            pool,
            overrides,
            max_connections,
            max_client_connections,
            auth_query,
        })
    }

    /// Returns the entries of a database, those of its URL first, so that its own keys take
    /// precedence.
    fn with_url(&mut self, section: &Section<'_>) -> Vec<Entry> {
        let mut entries = Vec::new();
        for entry in section.entries.iter().filter(|entry| entry.name == "url") {
            match entry.given.text().map_or(Ok(Vec::new()), |text| url::parse(text, entry.line)) {
                Ok(parts) => entries = parts,
                Err(message) => self.fail(entry.line, dotted(&section.path, "url"), message),
            }
        }
        entries.extend_from_slice(section.entries);
        mysql::put_port(&mut entries);
        entries
    }

    /// Reads a user; with `elsewhere`, the password may come from there.
    fn user(
        &mut self,
        section: &Section<'_>,
        auth: AuthMethod,
        elsewhere: bool,
        databases: &[Database],
    ) -> User {
        let mut pool = PoolOverrides::default();
        let keys: UserKeys = self.keys(section, Some(&mut pool));
        let failed = self.errors.iter().any(|e| e.option == dotted(&section.path, "password"));
        let may_lack = elsewhere || section.name == User::ANY;
        let message = match &keys.password {
            UserSecret::None if may_lack => None,
            _ if section.name == User::ANY => {
                Some("is for one user: \"*\" stands for all users without an entry")
            }
            secret => access::unfit(secret, auth, databases),
        };
        if let Some(message) = message.filter(|_| !failed) {
            let line = section.line_of("password");
            self.fail(line, dotted(&section.path, "password"), message);
        }
        User {
            name: section.name.to_owned(),
            secret: keys.password,
            is_listed: false,
            pool,
            max_connections: keys.max_connections,
            max_client_connections: keys.max_client_connections,
        }
    }

    /// Checks the rules between options for each user in each database; reports one database per
    /// user.
    fn user_rules(&mut self, sections: &[Section<'_>], users: &[User], databases: &[Database]) {
        for (section, user) in sections.iter().zip(users).filter(|(_, u)| !u.pool.is_empty()) {
            let sound = databases.iter().filter(|database| database.pool.conflicts().is_empty());
            let broken = sound.map(|database| (database, user.conflicts(&database.pool)));
            if let Some((database, broken)) = broken.into_iter().find(|(_, b)| !b.is_empty()) {
                for (name, rule) in broken {
                    let message = format!("{rule} (in database {:?})", database.name);
                    self.fail(section.line_of(name), dotted(&section.path, name), message);
                }
            }
        }
    }

    /// Checks that there are databases, and those that options name.
    fn something(&mut self, general: &General, sections: &[Section<'_>], databases: &[Database]) {
        if sections.is_empty() && self.strictness == Strictness::Serves {
            let message = "no databases: add [databases.NAME], or [databases.\"*\"] for any name";
            self.fail(None, DATABASES.to_owned(), message);
        }
        let named = |name: &str| sections.iter().any(|section| section.name == name);
        let missing = "no database has this name";
        if general.default_database.as_deref().is_some_and(|name| !named(name)) {
            self.fail(None, "default_database".to_owned(), missing);
        }
        let reached = |name: &str| named(name) || named(Database::ANY);
        let own = databases.iter().map(|it| (format!("{DATABASES}.{}.auth_dbname", it.name), it));
        let own = own.map(|(path, it)| (path, it.auth_query.dbname.as_deref()));
        let all = [("auth_dbname".to_owned(), general.auth_dbname.as_deref())];
        for (path, name) in all.into_iter().chain(own) {
            let Some(name) = name else { continue };
            let own = databases.iter().find(|it| it.name == name);
            let asked = own.or_else(|| databases.iter().find(|it| it.name == Database::ANY));
            if !reached(name) {
                self.fail(None, path, missing);
            } else if asked.is_some_and(Database::is_mysql) {
                self.fail(None, path, "is a database of MySQL, which is not asked for users");
            }
        }
    }
}

fn dotted(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}
