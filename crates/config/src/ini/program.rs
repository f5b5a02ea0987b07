//! The keys of `[pgbouncer]` that act by code of their own.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::draft::{Draft, takes};
use super::tls::{self, Chosen};
use super::values::{Kind, Within, Zero, absolute, given, list, names};
use crate::value::Given;

/// The least length of messages that can be bounded.
const PACKET_LEAST: i64 = 256 * 1024;
/// The length of messages from which on nothing is bounded, which is PgBouncer's default.
const PACKET_MOST: i64 = 0x7fff_ffff;
/// Numbers that have bounds here: the least and the most.
const BOUNDED: [(&str, i64, i64); 2] =
    [("scram_iterations", 1, 1_000_000), ("tcp_socket_buffer", 1 << 10, 1 << 30)];

impl Draft<'_> {
    /// Sets the options of these keys.
    pub(super) fn program(&mut self) {
        // Nothing listens that PgBouncer would not listen on.
        self.set("metrics_listen", given("off"), None);
        self.set("pooler_errors", given("pgbouncer"), None);
        self.listening();
        self.authentication();
        self.client_tls();
        self.pools();
        self.checks();
        self.names();
        self.packets();
        self.bounded();
        self.facility();
        let (_, place) = self.value("verbose");
        let level = match self.number("verbose") {
            ..=0 => "info",
            1 => "debug",
            _ => "trace",
        };
        self.set("log_level", given(level), place);
    }

    fn listening(&mut self) {
        let (dir, dir_place) = self.value("unix_socket_dir");
        if dir.starts_with('@') {
            let message = "sockets without a file (\"@\") are not built yet";
            self.fail(dir_place, "unix_socket_dir", message);
        } else if !dir.is_empty() {
            self.set("unix_socket_dir", absolute(dir, &self.directory), dir_place);
        }
        let (_, port_place) = self.value("listen_port");
        let Ok(port) = u16::try_from(self.number("listen_port")) else {
            return self.fail(port_place, "listen_port", "expected a port from 0 to 65535");
        };
        let (_, place) = self.value("listen_addr");
        let addresses = self.addresses();
        if addresses.is_empty() {
            self.set("unix_socket_port", Given::Whole(port.into()), port_place);
        }
        let listen: Vec<_> =
            addresses.iter().map(|it| SocketAddr::new(*it, port).to_string()).collect();
        self.set("listen", list(listen.iter().map(String::as_str)), place.or(port_place));
    }

    /// Returns the addresses that `listen_addr` stands for, each once.
    fn addresses(&mut self) -> Vec<IpAddr> {
        let (text, place) = self.value("listen_addr");
        let mut addresses = Vec::new();
        for name in text.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            let found = match name {
                "*" => Ok(vec![Ipv4Addr::UNSPECIFIED.into(), Ipv6Addr::UNSPECIFIED.into()]),
                _ => match name.parse() {
                    Ok(address) => {
                        addresses.push(address);
                        continue;
                    }
                    Err(_) => self.machine.look_up(name),
                },
            };
            match found {
                Ok(found) => addresses.extend(found.into_iter().filter(|it| self.has(*it))),
                Err(error) => self.fail(place, "listen_addr", format!("{name}: {error}")),
            }
        }
        let mut known = Vec::new();
        addresses.retain(|address| {
            let is_new = !known.contains(address);
            known.push(*address);
            is_new
        });
        addresses
    }

    /// Whether the machine has addresses of this family: PgBouncer leaves out others.
    fn has(&self, address: IpAddr) -> bool {
        let networks = self.machine.networks().unwrap_or_default();
        address.is_ipv4() || networks.iter().any(|network| network.address.is_ipv6())
    }

    fn authentication(&mut self) {
        let (auth, place) = self.value("auth_type");
        let auth = auth.to_ascii_lowercase();
        let yes = || Given::Truth(true);
        match auth.as_str() {
            "md5" => self.set("auth", given("md5"), place),
            "scram-sha-256" => self.set("auth", given("scram"), place),
            "plain" => {
                self.set("auth", given("password"), place);
                self.set("insecure_password", yes(), place);
            }
            "any" | "trust" => {
                self.set("auth", given("trust"), place);
                self.set("insecure_trust", yes(), place);
                self.trusting(&auth, place);
            }
            "cert" => {
                let (mode, _) = self.value("client_tls_sslmode");
                if !mode.eq_ignore_ascii_case("verify-full") {
                    let message = "cert needs client_tls_sslmode = verify-full";
                    return self.fail(place, "auth_type", message);
                }
                self.set("auth", given("hba"), place);
                self.set("hba", given("hostssl all all all cert"), place);
            }
            "hba" => {
                self.set("auth", given("hba"), place);
                self.set("insecure_password", yes(), place);
                for (key, option) in
                    [("auth_hba_file", "hba_file"), ("auth_ident_file", "ident_file")]
                {
                    let (path, place) = self.value(key);
                    if !path.is_empty() {
                        self.set(option, absolute(path, &self.directory), place);
                    }
                }
            }
            "ldap" | "pam" | "gss" => {
                self.fail(place, "auth_type", format!("{auth} is not built"));
            }
            _ => {
                let message = "expected any, trust, plain, md5, cert, hba or scram-sha-256";
                self.fail(place, "auth_type", message);
            }
        }
    }

    /// Tells in what `trust` differs, and keeps the console closed where PgBouncer's is.
    fn trusting(&mut self, auth: &str, place: Option<usize>) {
        let (admins, admins_place) = self.value("admin_users");
        let is_open = names(admins).next().is_none();
        match auth {
            "trust" if is_open => {
                // Nobody has this name.
                self.set("admin_users", list([""]), admins_place.or(place));
            }
            "any" if !is_open => {
                self.warn(
                    place,
                    "auth_type",
                    "the console is for admin_users and stats_users alone",
                );
            }
            _ => {}
        }
        if auth == "trust" {
            self.set("trust_unknown", Given::Truth(false), place);
        }
    }

    fn client_tls(&mut self) {
        let (mode, place) = self.value("client_tls_sslmode");
        let mode = mode.to_ascii_lowercase();
        if mode == "disable" {
            return;
        }
        self.set("client_tls_sslmode", given(&mode), place);
        for file in ["client_tls_ca_file", "client_tls_cert_file", "client_tls_key_file"] {
            let (path, place) = self.value(file);
            if !path.is_empty() {
                self.set(file, absolute(path, &self.directory), place);
            }
        }
        for (key, option, chosen) in self.tls_choices("client") {
            let (_, place) = self.value(&key);
            self.set(&option, chosen, place);
        }
    }

    /// Returns the choices of handshakes that differ from Refrain's: the key, the option and its
    /// value.
    pub(super) fn tls_choices(&mut self, side: &str) -> Vec<(String, String, Given)> {
        let key = |name: &str| format!("{side}_tls_{name}");
        let (newer, newer_place) = self.value(&format!("{side}_tls13_ciphers"));
        let newer =
            newer_place.map(|_| newer).filter(|text| !text.is_empty() && *text != "<empty>");
        let curve = match side {
            "client" => self.value("client_tls_ecdhcurve").0,
            _ => "auto",
        };
        let read = [
            ("protocols", "protocols", tls::protocols(self.value(&key("protocols")).0)),
            ("ciphers", "ciphers", tls::ciphers(self.value(&key("ciphers")).0, newer)),
            ("ecdhcurve", "groups", Ok(tls::groups(curve))),
        ];
        let mut choices = Vec::new();
        for (name, option, chosen) in read {
            let (_, place) = self.value(&key(name));
            let place = place.or(newer_place.filter(|_| name == "ciphers"));
            match chosen {
                Ok(Chosen { given, told }) => {
                    if let Some(told) = told {
                        self.warn(place, &key(name), told);
                    }
                    choices.extend(given.map(|given| (key(name), key(option), given)));
                }
                Err(message) => self.fail(place, &key(name), message),
            }
        }
        choices
    }

    fn pools(&mut self) {
        let (_, place) = self.value("max_prepared_statements");
        match self.number("max_prepared_statements") {
            ..=0 => self.set_pool("prepared_statements", Given::Truth(false), place),
            count => self.set_pool("max_server_statements", Given::Whole(count), place),
        }
        let (_, place) = self.value("min_pool_size");
        let (least, size) = (self.number("min_pool_size"), self.pool_size());
        self.set_pool("min_pool_size", Given::Whole(least.min(size)), place);
        let (_, place) = self.value("reserve_pool_size");
        let reserve = self.number("reserve_pool_size");
        if self.has_reserve() {
            self.set_pool("reserve_pool_size", Given::Whole(reserve), place);
        }
    }

    /// Sets how long messages may be. Those of 256 KiB are the least that Refrain bounds: it looks
    /// at the length of a message where that has not arrived in full.
    fn packets(&mut self) {
        let (_, place) = self.value("max_packet_size");
        match self.number("max_packet_size") {
            length @ 0..PACKET_LEAST => {
                let message = format!("is {PACKET_LEAST} here, not {length}");
                self.warn(place, "max_packet_size", message);
                self.set_pool("max_packet_size", Given::Whole(PACKET_LEAST), place);
            }
            length @ PACKET_LEAST..PACKET_MOST => {
                self.set_pool("max_packet_size", Given::Whole(length), place);
            }
            _ => {}
        }
    }

    /// Sets numbers that PgBouncer takes as they are. In place of one that Refrain does not take
    /// counts the nearest that it takes: a file with which PgBouncer starts is good here.
    fn bounded(&mut self) {
        for (key, least, most) in BOUNDED {
            let (_, place) = self.value(key);
            let number = self.number(key);
            // It is left to the system.
            if number == 0 && key == "tcp_socket_buffer" {
                continue;
            }
            let nearest = number.clamp(least, most);
            if nearest != number {
                self.warn(place, key, format!("is {nearest} here, not {number}"));
            }
            self.set(key, Given::Whole(nearest), place);
        }
    }

    /// Sets the facility of syslog. PgBouncer looks at it when the log goes there, and has an
    /// unknown one be `daemon`.
    fn facility(&mut self) {
        let (text, place) = self.value("syslog_facility");
        let facility = given(&text.to_ascii_lowercase());
        if takes("syslog_facility", &facility) {
            return self.set("syslog_facility", facility, place);
        }
        self.warn(place, "syslog_facility", format!("is daemon here, not {text:?}"));
    }

    /// Sets for how long the addresses of names are used. PgBouncer looks up all names of a zone
    /// whose number has changed since it last asked, so none is older than that.
    fn names(&mut self) {
        let mut least: Option<(f64, &str, Option<usize>)> = None;
        for key in ["dns_max_ttl", "dns_zone_check_period"] {
            let (text, place) = self.value(key);
            let Some(seconds) = text.parse::<f64>().ok().filter(|it| (0.0..1e9).contains(it))
            else {
                self.fail(place, key, "expected a number of seconds");
                continue;
            };
            let counts = key == "dns_max_ttl" || seconds > 0.0;
            if counts && least.is_none_or(|(other, ..)| seconds < other) {
                least = Some((seconds, text, place));
            }
        }
        let Some((_, text, place)) = least else { return };
        let kind = Kind::Seconds(Zero::Number);
        if let Ok(Some(given)) = kind.read(text, Within::Program, &self.directory) {
            self.set("dns_max_ttl", given, place);
        }
    }

    /// Sets after which time and by which query idle servers are asked whether they are there.
    fn checks(&mut self) {
        let (query, query_place) = self.value("server_check_query");
        if query.is_empty() {
            return;
        }
        if query != "<empty>" {
            self.set_pool("server_check_query", given(query), query_place);
        }
        let (delay, place) = self.value("server_check_delay");
        match Kind::Seconds(Zero::Number).read(delay, Within::Program, &self.directory) {
            Ok(Some(delay)) => self.set_pool("server_check_delay", delay, place),
            Ok(None) => {}
            Err(message) => self.fail(place, "server_check_delay", message),
        }
    }

    /// Returns the size of a pool whose database and user say none.
    pub(super) fn pool_size(&mut self) -> i64 {
        match self.number("default_pool_size") {
            0 => i64::MAX,
            size => size,
        }
    }

    /// Whether pools have a reserve, if it has a size.
    pub(super) fn has_reserve(&self) -> bool {
        let (wait, _) = self.value("reserve_pool_timeout");
        wait.parse::<f64>().is_ok_and(|wait| wait > 0.0)
    }
}
