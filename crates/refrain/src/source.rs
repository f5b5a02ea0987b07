//! The source of the options: a URL or a file, and then the command line.

use std::env;
use std::fmt;
use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;

use refrain_config::{
    Assignment, DriverChoice, Errors, LogFormat, LogLevel, Machine, Options, PoolMode, PoolOptions,
    Remark, Workers, is_ini,
};

use crate::machine::{Texts, ThisMachine};

/// The prefix of the URL of an SQLite file.
const SQLITE: &str = "sqlite:";
/// The environment variable for the URL's password.
pub(crate) const PASSWORD: &str = "REFRAIN_PASSWORD";
/// The environment variable for the URL or file, used if the command line has none.
pub(crate) const TARGET: &str = "REFRAIN_URL";

/// The source of the options. It is read at the start and at every reload.
#[derive(Clone, Debug)]
pub struct Source {
    /// The URL or file.
    pub from: From,
    /// Options of the command line, which take precedence.
    pub overrides: Overrides,
    /// The texts that the options in force were read from.
    texts: Texts,
}

/// A URL or a file.
#[derive(Clone, Debug)]
pub enum From {
    /// `postgres://…`, `mysql://…` or `sqlite:…`
    Url(String),
    /// A TOML file, or a `pgbouncer.ini`.
    File(PathBuf),
}

/// Options that have been read, with what there is to tell about the lines that they are from.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The options.
    pub options: Options,
    /// The remarks about lines of a `pgbouncer.ini`, each with its file.
    pub remarks: Vec<(String, Remark)>,
    /// The texts that they were read from.
    texts: Texts,
}

/// Options of the command line, which take precedence over those of the file.
#[derive(Clone, Debug, Default)]
pub struct Overrides {
    /// Addresses to accept clients on.
    pub listen: Vec<SocketAddr>,
    /// Addresses to accept clients of MySQL on.
    pub mysql_listen: Vec<SocketAddr>,
    /// Directory of the Unix socket.
    pub unix_socket_dir: Option<PathBuf>,
    /// Number of worker threads.
    pub workers: Option<Workers>,
    /// Maximum number of servers of each pool.
    pub pool_size: Option<u32>,
    /// How long a client keeps its server.
    pub pool_mode: Option<PoolMode>,
    /// Kernel interface for socket I/O.
    pub driver: Option<DriverChoice>,
    /// Log format.
    pub log_format: Option<LogFormat>,
    /// Log level.
    pub log_level: Option<LogLevel>,
    /// Levels by which the log says more than the file wants.
    pub verbose: u8,
    /// User to become.
    pub user: Option<String>,
    /// The place of the password if the URL has none.
    pub password: PasswordFrom,
    /// Address for metrics; `Some(None)` turns them off.
    pub metrics_listen: Option<Option<SocketAddr>>,
    /// Whether clients of other machines may be trusted, even if the file does not say so.
    pub insecure_trust: bool,
}

/// The place of a URL's password. Everyone who may list processes can read the command line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum PasswordFrom {
    /// In the URL, or there is none.
    #[default]
    Url,
    /// In a file, which may end with a newline.
    File(PathBuf),
    /// In the environment variable [`PASSWORD`].
    Environment,
}

impl PasswordFrom {
    /// Reads the password. Returns `None` if its place is the URL.
    fn read(&self, texts: &Texts) -> Result<Option<String>, String> {
        let password = match self {
            Self::Url => return Ok(None),
            Self::File(path) => {
                let name = path.display();
                let text = texts.read(path).map_err(|error| format!("{name}: {error}"))?;
                let line = text.strip_suffix('\n').unwrap_or(&text);
                line.strip_suffix('\r').unwrap_or(line).to_owned()
            }
            Self::Environment => {
                env::var(PASSWORD).map_err(|error| format!("{PASSWORD}: {error}"))?
            }
        };
        // An empty value is an error: an unset variable must not turn into "no password".
        if password.is_empty() {
            return Err(
                "expected a password (leave the file or variable out if there is none)".into()
            );
        }
        Ok(Some(password))
    }
}

/// Returns the URL with the password as an option.
fn with_password(url: &str, password: &str) -> String {
    let separator = if url.contains('?') { '&' } else { '?' };
    format!("{url}{separator}password={}", encoded(password))
}

/// Returns a value as a URL has it.
pub(crate) fn encoded(value: &str) -> String {
    value.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

fn has_password(url: &str) -> bool {
    let (place, query) = url.split_once('?').unwrap_or((url, ""));
    let rest = place.split_once("://").map_or(place, |(_, rest)| rest);
    let authority = rest.split('/').next().unwrap_or_default();
    let login = authority.rsplit_once('@').map_or("", |(login, _)| login);
    login.contains(':') || query.split('&').any(|pair| pair.starts_with("password="))
}

impl From {
    /// Reads an argument: text with `://` in it or with the prefix `sqlite:` is a URL; anything
    /// else is the name of a configuration file: TOML, or a `pgbouncer.ini`.
    pub fn parse(text: &str) -> Self {
        let is_url = text.contains("://") || text.starts_with(SQLITE);
        if is_url { Self::Url(text.to_owned()) } else { Self::File(text.into()) }
    }
}

/// Shows the source without anything that may be a password.
impl fmt::Display for From {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Url(url) if url.starts_with(SQLITE) => {
                f.write_str(url.split('?').next().unwrap_or_default())
            }
            Self::Url(url) => {
                let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
                let authority_end = rest.find(['/', '?']).unwrap_or(rest.len());
                let (authority, after) = rest.split_at(authority_end);
                let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
                let path = after.split('?').next().unwrap_or_default();
                write!(f, "{scheme}://{host}{path}")
            }
        }
    }
}

impl Source {
    /// Makes the source of the options: a URL or file, and the command line.
    pub fn new(from: From, overrides: Overrides) -> Self {
        Self { from, overrides, texts: Texts::default() }
    }

    /// Reads the options that are to be in force and checks them.
    ///
    /// # Errors
    /// All errors of the configuration, one a line.
    pub fn load(&self) -> Result<Options, String> {
        let loaded = self.load_and_tell()?;
        self.keep(&loaded);
        Ok(loaded.options)
    }

    /// Reads the options, checks them, and tells what there is to know about lines of a
    /// `pgbouncer.ini`.
    ///
    /// # Errors
    /// All errors of the configuration, one a line.
    pub fn load_and_tell(&self) -> Result<Loaded, String> {
        self.load_from(&Texts::default(), &[])
    }

    /// Keeps the texts of options that are put into force, for those that are set beside them.
    pub(crate) fn keep(&self, loaded: &Loaded) {
        self.texts.replace(&loaded.texts);
    }

    /// Reads the options again from the texts that were kept, and puts values that are set on the
    /// console in place of those there, and of those of the command line. The text of a file that
    /// was not read before is kept once the caller puts the options into force.
    ///
    /// # Errors
    /// All errors of the values, one a line.
    pub(crate) fn load_with(&self, set: &[Assignment]) -> Result<Loaded, String> {
        self.load_from(&self.texts.clone(), set)
    }

    fn load_from(&self, texts: &Texts, set: &[Assignment]) -> Result<Loaded, String> {
        let (read, place) = match &self.from {
            From::Url(url) => {
                let password = match &self.overrides.password {
                    PasswordFrom::File(_) if has_password(url) => {
                        return Err("the URL has a password already".to_owned());
                    }
                    _ if has_password(url) => None,
                    place => place.read(texts)?,
                };
                let whole = password.map(|password| with_password(url, &password));
                let read = Options::from_url_on(whole.as_deref().unwrap_or(url), texts, set);
                (read.map(without_remarks), String::new())
            }
            From::File(_) if matches!(self.overrides.password, PasswordFrom::File(_)) => {
                return Err(
                    "a password file goes with a URL; a configuration file has its own".into()
                );
            }
            From::File(path) => {
                let name = path.display();
                let text = texts.read(path).map_err(|error| format!("{name}: {error}"))?;
                let read = match is_ini(path, &text) {
                    true => Options::from_ini_on(&text, texts, set),
                    false => Options::from_toml_on(&text, texts, set).map(without_remarks),
                };
                (read, format!("{name}: "))
            }
        };
        let (mut options, remarks) = read.map_err(|errors| all(&errors, &place))?;
        read_userlist(&mut options, texts, &place)?;
        let overrides = set.iter().fold(self.overrides.clone(), Overrides::without);
        overrides.apply(&mut options);
        match trusts_strangers(&options, &options.addresses()) {
            Some(why) => Err(format!("{place}{why}")),
            None => {
                let remarks = remarks.into_iter().map(|remark| {
                    let place = remark.file.as_ref().map(|file| format!("{}: ", file.display()));
                    (place.unwrap_or_else(|| place_of(&self.from)), remark)
                });
                Ok(Loaded { options, remarks: remarks.collect(), texts: texts.clone() })
            }
        }
    }

    /// Returns the TOML file that does the same as a `pgbouncer.ini`.
    ///
    /// # Errors
    /// All errors of the file, one a line; or if the source is no such file.
    pub fn convert(&self) -> Result<String, String> {
        let From::File(path) = &self.from else {
            return Err("expected the name of a pgbouncer.ini".to_owned());
        };
        let place = place_of(&self.from);
        let text = fs::read_to_string(path).map_err(|error| format!("{place}{error}"))?;
        if !is_ini(path, &text) {
            return Err(format!(
                "{place}is not a pgbouncer.ini: its name does not end with .ini, and it has no section [pgbouncer]"
            ));
        }
        Options::convert_ini(&text, &ThisMachine).map_err(|errors| all(&errors, &place))
    }
}

/// Returns what stands before an error of a file.
fn place_of(from: &From) -> String {
    format!("{from}: ")
}

fn without_remarks(options: Options) -> (Options, Vec<Remark>) {
    (options, Vec::new())
}

/// Writes all errors, one a line, each with its file.
fn all(errors: &Errors, place: &str) -> String {
    let line = |error: &refrain_config::Error| match &error.file {
        Some(file) => format!("{}: {error}", file.display()),
        None => format!("{place}{error}"),
    };
    errors.0.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// Adds the users of `auth_file`, if the options name one. `place` stands before an error about the
/// option itself.
fn read_userlist(options: &mut Options, texts: &Texts, place: &str) -> Result<(), String> {
    let Some(path) = options.general.auth_file.clone() else { return Ok(()) };
    let name = path.display();
    let text = texts.read(&path).map_err(|error| format!("{place}auth_file: {name}: {error}"))?;
    options.add_userlist(&text).map_err(|errors| {
        let lines: Vec<_> = errors.0.iter().map(|error| format!("{name}: {error}")).collect();
        lines.join("\n")
    })
}

/// Returns the error if any client could log in at one of these addresses without a password and
/// `insecure_trust` is not set.
pub(crate) fn trusts_strangers(options: &Options, addresses: &[SocketAddr]) -> Option<String> {
    let address = options.trusts_strangers(addresses)?;
    if options.general.insecure_trust {
        return None;
    }
    Some(format!(
        "auth: clients are trusted, so every client that reaches {address} would get in under any name: give \
         them passwords, listen on a loopback address or a Unix socket, or say that it is meant \
         (insecure_trust = true, or --insecure-trust)"
    ))
}

impl Overrides {
    /// Leaves out what is set on the console.
    fn without(mut self, set: &Assignment) -> Self {
        match set.option() {
            "pool_size" => self.pool_size = None,
            "pool_mode" => self.pool_mode = None,
            "log_level" => (self.log_level, self.verbose) = (None, 0),
            "insecure_trust" => self.insecure_trust = false,
            // The others take a restart.
            _ => {}
        }
        self
    }

    fn apply(&self, options: &mut Options) {
        let general = &mut options.general;
        if !self.listen.is_empty() {
            general.listen.clone_from(&self.listen);
        }
        if !self.mysql_listen.is_empty() {
            general.mysql_listen.clone_from(&self.mysql_listen);
        }
        if self.unix_socket_dir.is_some() {
            general.unix_socket_dir.clone_from(&self.unix_socket_dir);
        }
        put(&mut general.workers, self.workers);
        put(&mut general.driver, self.driver);
        put(&mut general.log_format, self.log_format);
        put(&mut general.log_level, self.log_level);
        for _ in 0..self.verbose {
            general.log_level = louder(general.log_level);
        }
        if self.user.is_some() {
            general.os_user.clone_from(&self.user);
        }
        put(&mut general.metrics_listen, self.metrics_listen);
        general.insecure_trust |= self.insecure_trust;
        self.apply_to_pool(&mut options.defaults);
        for database in &mut options.databases {
            database.pool = database.overrides.over(&options.defaults);
        }
    }

    fn apply_to_pool(&self, pool: &mut PoolOptions) {
        put(&mut pool.pool_size, self.pool_size);
        put(&mut pool.pool_mode, self.pool_mode);
    }
}

/// Returns the next level.
fn louder(level: LogLevel) -> LogLevel {
    match level {
        LogLevel::Error => LogLevel::Warn,
        LogLevel::Warn => LogLevel::Info,
        LogLevel::Info => LogLevel::Debug,
        LogLevel::Debug | LogLevel::Trace => LogLevel::Trace,
    }
}

fn put<T>(place: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *place = value;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_not_shown() {
        let shown = |url: &str| From::parse(url).to_string();
        assert_eq!(shown("postgres://me:pw@db:5432/app?x=y"), "postgres://db:5432/app");
        assert_eq!(shown("postgres://db"), "postgres://db");
        assert_eq!(shown("sqlite:./app.db?password=pw"), "sqlite:./app.db");
        assert_eq!(shown("refrain.toml"), "refrain.toml");
    }

    #[test]
    fn a_password_may_come_from_a_file() {
        let path = env::temp_dir().join(format!("refrain-password-{}", std::process::id()));
        let load = |url: &str| {
            let password = PasswordFrom::File(path.clone());
            let overrides = Overrides { password, ..Overrides::default() };
            Source::new(From::parse(url), overrides).load()
        };
        let plain = |options: &Options| {
            let password = options.databases[0].server.password.as_ref();
            password.map(|password| password.expose().to_owned())
        };
        assert!(load("postgres://me@h/d").unwrap_err().contains("No such file"));
        fs::write(&path, "p&w/ 'ü%\n").unwrap();
        for url in ["postgres://me@h/d", "postgres://me@h/d?pool_size=3"] {
            let options = load(url).unwrap();
            assert_eq!(plain(&options).as_deref(), Some("p&w/ 'ü%"));
            assert_eq!(options.general.auth, refrain_config::AuthMethod::Scram);
        }
        for url in ["postgres://me:pw@h/d", "postgres://me@h/d?password=pw", "refrain.toml"] {
            assert!(load(url).is_err(), "{url}");
        }
        fs::write(&path, "\n").unwrap();
        assert!(load("postgres://me@h/d").unwrap_err().contains("expected a password"));
        fs::remove_file(&path).unwrap();
    }

    #[test]
    fn users_may_come_from_a_file() {
        let dir = env::temp_dir().join(format!("refrain-userlist-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        let (file, list) = (dir.join("refrain.toml"), dir.join("userlist.txt"));
        let toml = format!("auth_file = {list:?}\n[databases.d]\nhost = \"h\"\n");
        fs::write(&file, toml).unwrap();
        let overrides = Overrides::default();
        let source = Source::new(From::File(file.clone()), overrides);
        let load = || source.load();
        assert!(load().unwrap_err().contains("auth_file: "), "the file is missing");
        fs::write(&list, "\"ann\" \"secret\"\n").unwrap();
        assert!(load().unwrap().secret("ann").is_some());
        fs::write(&list, "\n\"ann\" secret\n").unwrap();
        let told = load().unwrap_err();
        assert!(told.starts_with(&format!("{}: line 2: ", list.display())), "{told}");
        fs::remove_dir_all(&dir).unwrap();
    }

    /// The file that a refused value names may be mended, and is read again then.
    #[test]
    fn a_value_that_is_refused_leaves_no_text_behind() {
        let list = env::temp_dir().join(format!("refrain-set-{}.txt", std::process::id()));
        let source =
            Source::new(From::parse("postgres://localhost/app?pool_size=3"), Overrides::default());
        source.load().unwrap();
        let path = list.display().to_string();
        let set = [Assignment::new("auth_file", &path, &ThisMachine).unwrap()];
        fs::write(&list, "\"ann\" secret\n").unwrap();
        assert!(source.load_with(&set).unwrap_err().contains("line 1: "));
        fs::write(&list, "\"ann\" \"secret\"\n").unwrap();
        let loaded = source.load_with(&set).unwrap();
        assert!(loaded.options.secret("ann").is_some());
        // What is in force stays as it was read.
        source.keep(&loaded);
        fs::write(&list, "\"ann\" secret\n").unwrap();
        assert!(source.load_with(&set).is_ok());
        fs::remove_file(list).unwrap();
    }

    #[test]
    fn the_command_line_comes_last() {
        let overrides = Overrides {
            pool_mode: Some(PoolMode::Session),
            workers: Some(Workers::Fixed(2)),
            ..Overrides::default()
        };
        let source = Source::new(From::parse("postgres://localhost/app?pool_size=3"), overrides);
        let options = source.load().unwrap();
        assert_eq!(options.general.workers, Workers::Fixed(2));
        let pool = |options: &Options| options.databases[0].pool.clone();
        let shown = |pool: PoolOptions| (pool.pool_mode, pool.pool_size);
        assert_eq!(shown(pool(&options)), (PoolMode::Session, 3));
        let set = Assignment::new("pool_mode", "statement", &ThisMachine).unwrap();
        let options = source.load_with(&[set]).unwrap().options;
        assert_eq!(shown(pool(&options)), (PoolMode::Statement, 3), "the console comes after it");
    }
}
