//! From the keys of a database to its servers, and back: where they are, and how they are reached.

use std::path::PathBuf;
use std::sync::Arc;

use crate::database::{
    AuthQueryKeys, Backend, Changes, ChangesOptions, Database, DatabaseKeys, Server,
};
use crate::host::{Host, Ports, Reads, TargetSessionAttrs};
use crate::pool::PoolMode;
use crate::sqlite::Sqlite;
use crate::tls::{ServerTls, TlsChoices, server_mode};

impl DatabaseKeys {
    /// Returns the keys that describe a database in a file, without `url`.
    pub(crate) fn of(database: &Database) -> Self {
        let server = database.server.clone();
        let auth_query = database.auth_query.clone();
        let keys = Self {
            backend: server.backend,
            auth_user: auth_query.user,
            auth_query: auth_query.query,
            auth_dbname: auth_query.dbname,
            dbname: server.dbname,
            user: server.user,
            password: server.password,
            channel_binding: server.channel_binding,
            application_name: server.application_name,
            parameters: server.parameters,
            connect_query: server.connect_query,
            changes: server.changes.by,
            publications: server.changes.publications,
            changes_user: server.changes.user,
            changes_password: server.changes.password,
            load_balance_hosts: server.load_balance_hosts,
            target_session_attrs: server.target_session_attrs,
            reads: server.reads,
            max_lag: server.max_lag,
            max_connections: database.max_connections,
            max_client_connections: database.max_client_connections,
            ..Self::default()
        };
        server.more_hosts.iter().fold(keys.with_host(&server.host), Self::with_host)
    }

    /// Adds a host, the first or a further one.
    fn with_host(mut self, host: &Host) -> Self {
        let (name, port) = match host {
            Host::Tcp { host, port, .. } => (host.clone(), *port),
            Host::Unix { dir, port } => (dir.display().to_string(), *port),
            Host::Socket(path) => {
                return Self { host: Some(path.display().to_string()), ..self };
            }
            Host::Sqlite(file) => return self.with_file(file),
        };
        match &mut self.host {
            Some(names) => {
                names.push(',');
                names.push_str(&name);
                self.port.0.push(port);
            }
            None => (self.host, self.port) = (Some(name), Ports(vec![port])),
        }
        match host {
            Host::Tcp { tls, .. } => self.with_tls(ServerTls::clone(tls)),
            _ => self,
        }
    }

    fn with_tls(self, tls: ServerTls) -> Self {
        let (sslcert, sslkey) = tls.own.unzip();
        Self {
            sslmode: Some(tls.mode),
            sslnegotiation: tls.negotiation,
            sslrootcert: tls.authorities,
            sslcrl: tls.crl_file,
            sslcert,
            sslkey,
            server_tls_protocols: tls.choices.protocols,
            server_tls_ciphers: tls.choices.ciphers,
            server_tls_groups: tls.choices.groups,
            ..self
        }
    }

    fn with_file(self, file: &Sqlite) -> Self {
        Self {
            path: Some(file.path.display().to_string()),
            stmt_cache_size: file.stmt_cache_size,
            stmt_cache_admit: file.stmt_cache_admit,
            stmt_cache_max_sql: file.stmt_cache_max_sql,
            sqlite_synchronous: file.synchronous,
            sqlite_busy_timeout: file.busy_timeout,
            sqlite_lock_timeout: file.lock_timeout,
            sqlite_max_length: file.max_length,
            sqlite_max_memory: file.max_memory,
            sqlite_cache_size: file.cache_size,
            sqlite_mmap_size: file.mmap_size,
            sqlite_readers: file.readers,
            ..self
        }
    }

    /// Returns the keys that say how users are looked up.
    pub(crate) fn auth_query(&self) -> AuthQueryKeys {
        AuthQueryKeys {
            user: self.auth_user.clone(),
            query: self.auth_query.clone(),
            dbname: self.auth_dbname.clone(),
        }
    }

    /// Returns the server that the keys describe, for pools of a mode, or the key at fault and the
    /// error.
    pub(crate) fn into_server(
        self,
        mode: PoolMode,
    ) -> Result<Server, (&'static str, &'static str)> {
        if self.reads == Reads::Standby && mode == PoolMode::Session {
            return Err(("reads", "is \"standby\": pool_mode must not be \"session\""));
        }
        let (host, more_hosts) = match self.backend {
            Backend::Postgres | Backend::Mysql => self.places()?,
            Backend::Sqlite => (Host::Sqlite(Arc::new(self.file()?)), Vec::new()),
        };
        Ok(Server {
            backend: self.backend,
            host,
            more_hosts,
            load_balance_hosts: self.load_balance_hosts,
            target_session_attrs: self.target_session_attrs,
            reads: self.reads,
            max_lag: self.max_lag,
            dbname: self.dbname,
            user: self.user,
            password: self.password,
            channel_binding: self.channel_binding,
            application_name: self.application_name,
            parameters: self.parameters,
            connect_query: self.connect_query,
            changes: ChangesOptions {
                by: self.changes,
                publications: self.publications,
                user: self.changes_user,
                password: self.changes_password,
            },
        })
    }

    /// Checks what `changes = "replication"` needs.
    fn may_follow_changes(&self, more: usize) -> Result<(), (&'static str, &'static str)> {
        if more > 0 {
            return Err(("changes", "is \"replication\": host must name one server"));
        }
        if self.user.is_none() && self.changes_user.is_none() {
            let message = "is missing: changes = \"replication\" needs a user with REPLICATION";
            return Err(("changes_user", message));
        }
        if self.publications.is_empty() {
            return Err(("publications", "must name at least one publication"));
        }
        Ok(())
    }

    /// Returns the first host, and the others.
    fn places(&self) -> Result<(Host, Vec<Host>), (&'static str, &'static str)> {
        if self.path.is_some() {
            return Err(("path", "is for SQLite only: set backend = \"sqlite\", or remove path"));
        }
        let Some(list) = self.host.as_deref().filter(|host| !host.is_empty()) else {
            return Err(("host", "is missing: set the name or address of the server, or `url`"));
        };
        let names: Vec<_> = list.split(',').map(str::trim).collect();
        if names.len() > 1 && self.backend == Backend::Mysql {
            return Err(("host", "names several servers: a database of MySQL has one"));
        }
        if names.contains(&"") {
            return Err(("host", "has a comma with no name before or after it"));
        }
        let ports = &self.port.0;
        if ports.len() > 1 && ports.len() != names.len() {
            return Err(("port", "must be one port for all hosts, or as many as there are hosts"));
        }
        let mut ports = ports.iter().cycle().copied();
        let mut places = Vec::new();
        for name in names {
            let port = ports.next().unwrap_or_default();
            places.push(self.place(name, port)?);
        }
        let more = places.split_off(1);
        if self.changes == Changes::Replication {
            self.may_follow_changes(more.len())?;
        }
        if self.reads == Reads::Standby {
            self.may_read_on_standbys(more.len())?;
        }
        Ok((places.remove(0), more))
    }

    /// Checks what `reads = "standby"` needs.
    fn may_read_on_standbys(&self, more: usize) -> Result<(), (&'static str, &'static str)> {
        let writes = [TargetSessionAttrs::ReadWrite, TargetSessionAttrs::Primary];
        if more == 0 {
            return Err((
                "reads",
                "is \"standby\", and there is one host: name the standbys in host",
            ));
        }
        if !writes.contains(&self.target_session_attrs) {
            let message = "must be \"read-write\" or \"primary\" where reads is \"standby\"";
            return Err(("target_session_attrs", message));
        }
        Ok(())
    }

    fn place(&self, name: &str, port: u16) -> Result<Host, (&'static str, &'static str)> {
        match name {
            path if path.starts_with('/') && self.backend == Backend::Mysql => {
                Ok(Host::Socket(PathBuf::from(path)))
            }
            dir if dir.starts_with('/') => Ok(Host::Unix { dir: PathBuf::from(dir), port }),
            host => Ok(Host::Tcp { host: host.to_owned(), port, tls: Arc::new(self.tls()?) }),
        }
    }

    fn tls(&self) -> Result<ServerTls, (&'static str, &'static str)> {
        let own = match (&self.sslcert, &self.sslkey) {
            (Some(cert), Some(key)) => Some((cert.clone(), key.clone())),
            (None, None) => None,
            (Some(_), None) => return Err(("sslkey", "is missing: sslcert needs its key")),
            (None, Some(_)) => return Err(("sslcert", "is missing: sslkey is the key of one")),
        };
        let mode = server_mode(self.sslmode, self.sslrootcert.as_ref(), self.sslnegotiation)?;
        if self.sslcrl.is_some() && self.sslrootcert.is_none() {
            return Err(("sslrootcert", "is missing: sslcrl is of the authorities there"));
        }
        if self.server_tls_protocols.is_empty() {
            return Err(("server_tls_protocols", "must name at least one version"));
        }
        let choices = TlsChoices {
            protocols: self.server_tls_protocols.clone(),
            ciphers: self.server_tls_ciphers.clone(),
            groups: self.server_tls_groups.clone(),
        };
        Ok(ServerTls {
            mode,
            negotiation: self.sslnegotiation,
            authorities: self.sslrootcert.clone(),
            crl_file: self.sslcrl.clone(),
            own,
            choices,
        })
    }

    fn file(&self) -> Result<Sqlite, (&'static str, &'static str)> {
        if self.host.is_some() {
            return Err(("host", "is for servers only: an SQLite database has a path"));
        }
        if self.target_session_attrs != TargetSessionAttrs::Any {
            return Err(("target_session_attrs", "is for servers only: an SQLite database is one"));
        }
        if self.changes != Changes::Off {
            let message = "is for PostgreSQL only: an SQLite database has no replication";
            return Err(("changes", message));
        }
        if self.reads != Reads::Primary {
            return Err(("reads", "is for servers only: an SQLite database has no standby"));
        }
        let path = self.path.as_deref().filter(|path| !path.is_empty());
        Ok(Sqlite {
            path: path.ok_or(("path", "is missing: set the path of the SQLite file"))?.into(),
            synchronous: self.sqlite_synchronous,
            busy_timeout: self.sqlite_busy_timeout,
            lock_timeout: self.sqlite_lock_timeout,
            readers: self.sqlite_readers,
            max_length: self.sqlite_max_length,
            max_memory: self.sqlite_max_memory,
            cache_size: self.sqlite_cache_size,
            mmap_size: self.sqlite_mmap_size,
            stmt_cache_size: self.stmt_cache_size,
            stmt_cache_admit: self.stmt_cache_admit,
            stmt_cache_max_sql: self.stmt_cache_max_sql,
        })
    }
}
