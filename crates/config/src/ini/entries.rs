//! The lines of `[databases]`, `[users]` and `[peers]`.

use super::draft::{Draft, Told, entry};
use super::keys::Outcome;
use super::sections::{Named, Setting};
use super::values::{Kind, Within, Zero, absolute, given, integer};
use crate::database::Database;
use crate::user::User;
use crate::value::{Entry, Given};

/// Keys of a database that are parameters of its sessions.
const PARAMETERS: [&str; 3] = ["client_encoding", "datestyle", "timezone"];

impl Draft<'_> {
    /// Adds all databases.
    pub(super) fn all_databases(&mut self) {
        let sections = self.sections;
        let encryption = self.encryption();
        if sections.databases.is_empty() {
            self.told.push(Told {
                place: 0,
                key: "databases".to_owned(),
                message: "there are no databases, so clients reach the console alone".to_owned(),
                is_warning: true,
            });
        }
        for named in &sections.databases {
            let entries = self.database(named, &encryption);
            self.databases.push(entry(&named.name, Given::Table(entries), Some(named.place)));
        }
    }

    /// Reads the keys of a connection string that are options of Refrain, and tells of the others.
    fn plain_settings(&mut self, named: &Named, path: &str) -> Vec<Entry> {
        let mut entries = Vec::new();
        for setting in &named.settings {
            let Setting { key, value, place } = setting;
            if let Outcome::Option(_, option, kind) = key.outcome {
                let read = self.read(kind, setting, path);
                entries.extend(read.map(|given| entry(option, given, Some(*place))));
            }
            self.tell(key, value, *place, &format!("{path}.{}", key.name));
        }
        entries
    }

    fn database(&mut self, named: &Named, encryption: &[Entry]) -> Vec<Entry> {
        let path = format!("databases.{}", named.name);
        let place = Some(named.place);
        let mut entries = Vec::new();
        let host = self.host(named, &path);
        let is_unix = host.split(',').all(|host| host.trim().starts_with('/'));
        entries.push(entry("host", given(&host), place));
        if host.contains(',') {
            let order = named.value("load_balance_hosts").unwrap_or("round-robin");
            entries.push(entry("load_balance_hosts", given(&order.to_lowercase()), place));
        }
        entries.extend(self.plain_settings(named, &path));
        if let Some(password) = named.value("password") {
            match named.value("user") {
                Some(_) => entries.push(entry("password", given(password), place)),
                None => {
                    self.tell_of(named, &path, "has a password without a user, which is not used")
                }
            }
        }
        let parameter =
            |name: &&str| named.value(name).map(|value| entry(name, given(value), place));
        let parameters: Vec<_> = PARAMETERS.iter().filter_map(parameter).collect();
        if !parameters.is_empty() {
            entries.push(entry("parameters", Given::Table(parameters), place));
        }
        entries.extend(self.sizes(named, &path));
        for (key, option) in [
            ("max_db_connections", "max_connections"),
            ("max_db_client_connections", "max_client_connections"),
        ] {
            let limit = self.limit(key, option);
            entries.extend(limit.filter(|it| entries.iter().all(|other| other.name != it.name)));
        }
        if named.name == Database::ANY {
            entries.extend(self.any_idle());
        }
        if !is_unix {
            entries.extend(encryption.iter().cloned());
        }
        entries
    }

    /// Tells the operator something about a line.
    fn tell_of(&mut self, named: &Named, path: &str, message: &str) {
        self.told.push(Told {
            place: named.place,
            key: path.to_owned(),
            message: message.to_owned(),
            is_warning: true,
        });
    }

    /// Returns the server of a database.
    fn host(&mut self, named: &Named, path: &str) -> String {
        let (dir, _) = self.value("unix_socket_dir");
        let mut fail = |message: &str| {
            self.errors.push((Some(named.place), format!("{path}.host"), message.to_owned()));
            String::new()
        };
        match named.value("host") {
            Some(host) if host.starts_with('@') => {
                fail("sockets without a file (\"@\") are not built yet")
            }
            Some(host) => host.to_owned(),
            None if dir.is_empty() => fail("is missing, and unix_socket_dir is empty"),
            None if dir.starts_with('@') => fail("is missing"),
            None => match absolute(dir, &self.directory) {
                Given::Text(dir) => dir,
                _ => String::new(),
            },
        }
    }

    /// Returns the sizes of a database's pools, as far as they differ from those of all pools.
    fn sizes(&mut self, named: &Named, path: &str) -> Vec<Entry> {
        let number = |name| named.value(name).and_then(|text| integer(text, Within::Connection));
        let own = |name| number(name).filter(|number| *number >= 0);
        let mut entries = Vec::new();
        let place = Some(named.place);
        for setting in &named.settings {
            if let "min_pool_size" | "reserve_pool" | "reserve_pool_size" = setting.key.name {
                self.read(Kind::Count(Zero::Number), setting, path);
            }
        }
        let size = match own("pool_size") {
            Some(0) => i64::MAX,
            Some(size) => size,
            None => self.pool_size(),
        };
        let all = self.number("min_pool_size").min(self.pool_size());
        let least = own("min_pool_size").unwrap_or_else(|| self.number("min_pool_size")).min(size);
        if least != all {
            entries.push(entry("min_pool_size", Given::Whole(least), place));
        }
        // The line's last one of the two names counts.
        let last = named.settings.iter().rev().find(|set| set.key.name.starts_with("reserve_pool"));
        let reserve = last.and_then(|set| own(set.key.name)).filter(|_| self.has_reserve());
        entries.extend(reserve.map(|it| entry("reserve_pool_size", Given::Whole(it), place)));
        entries
    }

    /// Returns a limit that counts where there is none of its own.
    fn limit(&mut self, key: &str, option: &str) -> Option<Entry> {
        let (_, place) = self.value(key);
        let limit = self.number(key);
        (limit > 0).then(|| entry(option, Given::Whole(limit), place))
    }

    /// Returns the time after which pools of databases without a line of their own are removed.
    fn any_idle(&mut self) -> Option<Entry> {
        let idle = |draft: &Self, key| {
            let (text, _) = draft.value(key);
            text.parse::<f64>().ok().filter(|seconds| *seconds > 0.0)
        };
        let (text, place) = self.value("autodb_idle_timeout");
        if text.parse::<f64>().is_err() {
            self.fail(place, "autodb_idle_timeout", "expected a number of seconds");
        }
        let pool = idle(self, "pool_idle_timeout").unwrap_or(f64::INFINITY);
        let any = idle(self, "autodb_idle_timeout").filter(|any| *any < pool)?;
        let kind = Kind::Seconds(Zero::Number);
        let read = kind.read(&any.to_string(), Within::Program, &self.directory);
        let given = read.ok().flatten()?;
        Some(entry("pool_idle_timeout", given, place))
    }

    /// Returns the options by which connections to servers are encrypted.
    fn encryption(&mut self) -> Vec<Entry> {
        let (text, place) = self.value("server_tls_sslmode");
        let mode = text.to_ascii_lowercase();
        let mut entries = Vec::new();
        // PgBouncer asks every server, also with `allow`.
        let mode = if mode == "allow" { "prefer" } else { mode.as_str() };
        if mode == "disable" {
            return vec![entry("sslmode", given(mode), place)];
        }
        let (authorities, authorities_place) = self.value("server_tls_ca_file");
        if place.is_some() {
            entries.push(entry("sslmode", given(mode), place));
        }
        // What does not verify takes no notice of the authorities. In libpq's words it would.
        if mode.starts_with("verify") {
            let file = match authorities {
                "" if mode == "verify-full" => given("system"),
                "" => {
                    let message = "is missing: verify-ca needs the authorities";
                    self.fail(place, "server_tls_ca_file", message);
                    return entries;
                }
                path => absolute(path, &self.directory),
            };
            entries.push(entry("sslrootcert", file, authorities_place.or(place)));
        }
        for (key, option) in
            [("server_tls_cert_file", "sslcert"), ("server_tls_key_file", "sslkey")]
        {
            let (path, place) = self.value(key);
            if !path.is_empty() {
                entries.push(entry(option, absolute(path, &self.directory), place));
            }
        }
        for (key, option, chosen) in self.tls_choices("server") {
            let (_, place) = self.value(&key);
            entries.push(entry(&option, chosen, place));
        }
        entries
    }

    /// Adds all peers.
    pub(super) fn all_peers(&mut self) {
        let sections = self.sections;
        for named in &sections.peers {
            let entries = self.plain_settings(named, &format!("peers.{}", named.name));
            self.peers.push(entry(&named.name, Given::Table(entries), Some(named.place)));
        }
    }

    /// Adds all users.
    pub(super) fn all_users(&mut self) {
        let sections = self.sections;
        let limits = [
            self.limit("max_user_connections", "max_connections"),
            self.limit("max_user_client_connections", "max_client_connections"),
        ];
        for named in &sections.users {
            let path = format!("users.{}", named.name);
            let mut entries = self.plain_settings(named, &path);
            if !self.has_reserve() {
                entries.retain(|entry| entry.name != "reserve_pool_size");
            }
            for limit in limits.iter().flatten() {
                if entries.iter().all(|entry| entry.name != limit.name) {
                    entries.push(limit.clone());
                }
            }
            if named.name == User::ANY {
                self.tell_of(named, &path, "is a user of this name in PgBouncer, not all users");
                continue;
            }
            self.users.push(entry(&named.name, Given::Table(entries), Some(named.place)));
        }
        let limits: Vec<_> = limits.into_iter().flatten().collect();
        if !limits.is_empty() {
            let place = limits.first().and_then(|entry| entry.line);
            self.users.push(entry(User::ANY, Given::Table(limits), place));
        }
    }
}
