//! This machine: its files and network interfaces, to which a configuration may refer, and the
//! names of its users.

use std::collections::HashMap;
use std::ffi::CString;
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::{env, fs, ptr};

use nix::ifaddrs::getifaddrs;
use nix::sys::socket::SockaddrStorage;
use nix::unistd::{Uid, User, geteuid, initgroups, setgid, setuid};
use refrain_config::{AuthMethod, Machine, Network, Options};

use crate::resolve;

/// This machine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ThisMachine;

impl Machine for ThisMachine {
    fn read(&self, path: &Path) -> io::Result<String> {
        fs::read_to_string(path)
    }

    fn files_in(&self, directory: &Path) -> io::Result<Vec<PathBuf>> {
        fs::read_dir(directory)?.map(|entry| entry.map(|entry| entry.path())).collect()
    }

    fn networks(&self) -> io::Result<Vec<Network>> {
        let interfaces = getifaddrs()?;
        let network = |address: Option<SockaddrStorage>, mask: Option<SockaddrStorage>| {
            let network = Network { address: ip(&address?)?, mask: ip(&mask?)? };
            (network.address.is_ipv4() == network.mask.is_ipv4()).then_some(network)
        };
        Ok(interfaces.filter_map(|it| network(it.address, it.netmask)).collect())
    }

    fn directory(&self) -> io::Result<PathBuf> {
        env::current_dir()
    }

    fn look_up(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        resolve::look_up(name).map_err(io::Error::other)
    }
}

/// The texts of the files that a configuration was read from: a file is read once, and has the same
/// text from then on. A clone reads for itself.
#[derive(Debug, Default)]
pub(crate) struct Texts(Mutex<HashMap<PathBuf, String>>);

impl Clone for Texts {
    fn clone(&self) -> Self {
        Self(Mutex::new(self.known().clone()))
    }
}

impl Texts {
    fn known(&self) -> MutexGuard<'_, HashMap<PathBuf, String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the texts of another reading.
    pub(crate) fn replace(&self, others: &Self) {
        let others = others.known().clone();
        *self.known() = others;
    }
}

impl Machine for Texts {
    fn read(&self, path: &Path) -> io::Result<String> {
        let mut known = self.known();
        if let Some(text) = known.get(path) {
            return Ok(text.clone());
        }
        let text = ThisMachine.read(path)?;
        known.insert(path.to_owned(), text.clone());
        Ok(text)
    }

    fn files_in(&self, directory: &Path) -> io::Result<Vec<PathBuf>> {
        ThisMachine.files_in(directory)
    }

    fn networks(&self) -> io::Result<Vec<Network>> {
        ThisMachine.networks()
    }

    fn directory(&self) -> io::Result<PathBuf> {
        ThisMachine.directory()
    }

    fn look_up(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        ThisMachine.look_up(name)
    }
}

fn ip(address: &SockaddrStorage) -> Option<IpAddr> {
    let four = address.as_sockaddr_in().map(|address| IpAddr::V4(address.ip()));
    four.or_else(|| address.as_sockaddr_in6().map(|address| IpAddr::V6(address.ip())))
}

/// The names of the users of the operating system who have connected by the Unix socket.
///
/// The system may ask another machine for a name, so each name is looked up once between two
/// reloads, and only if a rule of authentication asks for names.
#[derive(Debug, Default)]
pub(crate) struct UserNames {
    /// The options under which the names were looked up.
    options: Option<Arc<Options>>,
    names: HashMap<u32, Option<Arc<str>>>,
}

impl UserNames {
    /// Returns the name of a user, if a login may depend on it and the system knows it.
    pub(crate) fn name(&mut self, options: &Arc<Options>, uid: u32) -> Option<Arc<str>> {
        if options.general.auth != AuthMethod::Hba || !options.hba.asks_for_peers() {
            return None;
        }
        let is_old = |known: &Arc<Options>| !ptr::eq(&raw const **known, &raw const **options);
        if self.options.as_ref().is_none_or(is_old) {
            self.names.clear();
            self.options = Some(Arc::clone(options));
        }
        self.names.entry(uid).or_insert_with(|| look_up(uid)).clone()
    }
}

/// Becomes a user of the operating system, with their groups.
///
/// # Errors
/// If there is no such user, or if this process may not become another.
pub(crate) fn become_user(name: &str) -> io::Result<()> {
    let failed = |why: String| io::Error::other(format!("user {name:?}: {why}"));
    let user = User::from_name(name)?.ok_or_else(|| failed("there is none".to_owned()))?;
    if user.uid == geteuid() {
        return Ok(());
    }
    let groups = CString::new(name)?;
    let changed = initgroups(&groups, user.gid)
        .and_then(|()| setgid(user.gid))
        .and_then(|()| setuid(user.uid));
    changed.map_err(|error| failed(error.desc().to_owned()))
}

fn look_up(uid: u32) -> Option<Arc<str>> {
    match User::from_uid(Uid::from_raw(uid)) {
        Ok(user) => user.map(|user| user.name.into()),
        Err(error) => {
            tracing::warn!(cause = "login", "could not look up local user ID {uid}: {error}");
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_a_loopback_address_and_a_superuser() {
        let networks = ThisMachine.networks().unwrap();
        let loopback = IpAddr::from([127, 0, 0, 1]);
        assert!(networks.iter().any(|network| network.address == loopback), "{networks:?}");
        assert_eq!(look_up(0).as_deref(), Some("root"));
        assert_eq!(look_up(4_000_000_000), None);
    }

    #[test]
    fn names_are_looked_up_if_a_rule_asks_for_them() {
        let options = |top: &str| {
            let rest = "[databases.\"*\"]\nhost = \"h\"\n[users.u]\npassword = \"p\"\n";
            Arc::new(Options::from_toml(&format!("{top}\n{rest}")).unwrap())
        };
        let mut names = UserNames::default();
        for (top, name) in [
            ("auth = \"hba\"\nhba = \"local all all peer\"", Some("root")),
            ("auth = \"hba\"\nhba = \"local all all trust\"", None),
            ("hba = \"local all all peer\"", None),
        ] {
            assert_eq!(names.name(&options(top), 0).as_deref(), name, "{top}");
        }
    }
}
