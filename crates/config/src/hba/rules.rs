//! All rules, with the groups and maps that they refer to.

use std::collections::BTreeSet;
use std::net::IpAddr;

use super::address::Address;
use super::groups::Groups;
use super::ident::UserMap;
use super::problem::at;
use super::rule::{HbaMethod, Rule};
use super::tokens::{Reader, Source};
use crate::machine::{Machine, Network};

/// The rules, in order.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Hba {
    rules: Vec<Rule>,
    maps: Vec<UserMap>,
    groups: Groups,
    /// The networks of the machine, if a rule asks for them.
    networks: Vec<Network>,
}

/// A client that wants to log in, as far as rules look at it.
#[derive(Clone, Copy, Debug)]
pub struct Newcomer<'a> {
    /// The client's address; `None` if it has come by the Unix socket.
    pub address: Option<IpAddr>,
    /// Whether its connection is encrypted by TLS.
    pub encrypted: bool,
    /// The database that it asks for; `None` for a physical replication connection.
    pub database: Option<&'a str>,
    /// The user that it says it is.
    pub user: &'a str,
}

/// The texts that make up the rules.
#[derive(Debug, Default)]
pub(crate) struct Texts {
    /// The text of rules.
    pub(crate) rules: Option<Source>,
    /// The text of maps.
    pub(crate) maps: Option<Source>,
}

/// The problems of the rules, and those of the maps.
pub(crate) type Problems = (Vec<String>, Vec<String>);

/// Reads rules and maps.
pub(crate) fn read(texts: &Texts, groups: &Groups, machine: &dyn Machine) -> Result<Hba, Problems> {
    let (maps, of_maps) =
        lines_of(texts.maps.as_ref(), machine, |line| UserMap::read(&line, groups));
    let names: BTreeSet<&str> = maps.iter().map(|map| map.name.as_str()).collect();
    // A file of maps that cannot be read has no names, so their absence is no further problem.
    let is_known = |name: &str| names.contains(name) || !of_maps.is_empty();
    let (rules, mut of_rules) = lines_of(texts.rules.as_ref(), machine, |line| {
        let rule = Rule::read(line, groups)?;
        match rule.map.as_deref().filter(|name| !is_known(name)) {
            Some(map) => Err(format!("no line of ident or ident_file has the map \"{map}\"")),
            None => Ok(rule),
        }
    });
    let mut networks = Vec::new();
    let asks = |rule: &&Rule| matches!(rule.address, Address::SameHost | Address::SameNet);
    if let Some(rule) = rules.iter().find(asks) {
        match machine.networks() {
            Ok(found) => networks = found,
            Err(error) => {
                let problem = format!("error enumerating network interfaces: {error}");
                of_rules.push(at(&rule.place, &problem));
            }
        }
    }
    if of_rules.is_empty() && of_maps.is_empty() {
        return Ok(Hba { rules, maps, groups: groups.clone(), networks });
    }
    Err((of_rules, of_maps))
}

/// Reads each line of a text. Returns what was read, and all problems.
fn lines_of<T>(
    source: Option<&Source>,
    machine: &dyn Machine,
    mut read: impl FnMut(super::tokens::Line) -> Result<T, String>,
) -> (Vec<T>, Vec<String>) {
    let mut reader = Reader::new(machine);
    let lines = source.map_or_else(Vec::new, |source| reader.lines(source));
    let mut found = Vec::new();
    for line in lines {
        let place = line.place.clone();
        match read(line) {
            Ok(one) => found.push(one),
            Err(problem) => reader.problems.push(at(&place, &problem)),
        }
    }
    (found, reader.problems)
}

impl Hba {
    /// Returns the rules, in order.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// Returns the first rule that is for a client, with its place among all rules.
    pub fn find(&self, newcomer: &Newcomer<'_>) -> Option<(usize, &Rule)> {
        let Newcomer { address, encrypted, database, user } = *newcomer;
        let address = address.map(|address| address.to_canonical());
        self.rules.iter().enumerate().find(|(_, rule)| {
            rule.is_for(address.is_none(), encrypted)
                && address.is_none_or(|address| rule.address.means(address, &self.networks))
                && rule.is_for_database(database, user, &self.groups)
                && rule.is_for_user(user, &self.groups)
        })
    }

    /// Whether a name of the system may log in as a user: by a map, or without one if the names are
    /// the same.
    pub fn maps(&self, map: Option<&str>, system: &str, user: &str) -> bool {
        let Some(map) = map else { return system == user };
        let mut lines = self.maps.iter().filter(|line| line.name == map);
        lines.any(|line| line.maps(system, user, &self.groups))
    }

    /// Whether a rule may let a user in without a secret that Refrain knows.
    pub fn admits_without_secret(&self, user: &str) -> bool {
        let mut rules = self.rules.iter().filter(|rule| rule.method.needs_no_secret());
        rules.any(|rule| rule.is_for_user(user, &self.groups))
    }

    /// Whether a rule asks for the name that the operating system has for a client.
    pub fn asks_for_peers(&self) -> bool {
        self.rules.iter().any(|rule| rule.method == HbaMethod::Peer)
    }
}
