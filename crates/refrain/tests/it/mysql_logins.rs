//! Logins through the program to real servers of MySQL and MariaDB, by MariaDB's command line,
//! which has the plugins of both.

use std::process::{Command, Output};

use xtask::mysql::{Flavour, Server};
use xtask::ports::free_port;
use xtask::proxy::Refrain;

/// The double hash of `secret`.
const STORED: &str = "*14E65567ABDB5135D0CFD9A70B3032C179A49EE7";
const FLAVOURS: [Flavour; 2] = [Flavour::MariaDb, Flavour::MySql];

/// A server, and the program in front of it.
struct World {
    flavour: Flavour,
    server: Server,
    _refrain: Refrain,
    port: u16,
}

impl World {
    fn start(flavour: Flavour, sslmode: &str) -> Self {
        let (own, port) = (free_port().unwrap(), free_port().unwrap());
        let number = own.to_string();
        let settings =
            [("skip-networking", "0"), ("bind-address", "127.0.0.1"), ("port", &*number)];
        let server = Server::start(flavour, &settings).unwrap();
        let config = format!(
            "mysql_listen = [\"127.0.0.1:{port}\"]\n\
             auth = \"password\"\n[databases.\"*\"]\n\
             url = \"mysql://127.0.0.1:{own}/?sslmode={sslmode}\"\n\
             [users.ann]\npassword = \"secret\"\n[users.bob]\npassword = \"{STORED}\"\n\
             [users.eve]\npassword = \"secret\"\n[users.lost]\npassword = \"secret\"\n\
             [users.\"jürgen\"]\npassword = \"secret\"\n"
        );
        let refrain = Refrain::start(&config).unwrap();
        let world = Self { flavour, server, _refrain: refrain, port };
        let native = match flavour {
            Flavour::MariaDb => "IDENTIFIED VIA mysql_native_password USING PASSWORD('secret')",
            _ => "IDENTIFIED WITH mysql_native_password BY 'secret'",
        };
        world.run(&format!("CREATE USER ann {native}; CREATE USER bob {native}"));
        world.run(&format!("CREATE USER jürgen {native}"));
        world.run("CREATE DATABASE shop; GRANT ALL ON shop.* TO ann; GRANT ALL ON shop.* TO bob");
        world.run("GRANT ALL ON shop.* TO jürgen");
        if flavour == Flavour::MySql {
            world.run("CREATE USER eve IDENTIFIED WITH caching_sha2_password BY 'secret'");
            world.run("GRANT ALL ON shop.* TO eve");
        }
        world
    }

    /// Runs texts as a superuser, directly.
    fn run(&self, texts: &str) {
        let mut client = Command::new("mariadb");
        client.arg("--no-defaults").arg("-S").arg(self.server.socket());
        client.arg("--default-character-set=utf8mb4");
        let output = client.args(["-uroot", "-e", texts]).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    /// Runs a text through the program.
    fn client(&self, arguments: &[&str], text: &str) -> Output {
        let mut client = Command::new("mariadb");
        client.args(["--no-defaults", "--protocol=tcp", "-h127.0.0.1", "-N", "-e", text]);
        client.arg(format!("-P{}", self.port)).args(arguments).output().unwrap()
    }

    /// Logs in, and returns who the server says that the session is of.
    fn who(&self, arguments: &[&str]) -> String {
        let output = self.client(arguments, "SELECT CONCAT(USER(), ' ', DATABASE())");
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{:?} {arguments:?}: {error}", self.flavour);
        let text = String::from_utf8_lossy(&output.stdout);
        text.trim_end().replace("127.0.0.1", "localhost")
    }

    /// Fails to log in, and returns the client's words.
    fn refused(&self, arguments: &[&str]) -> String {
        let output = self.client(arguments, "DO 1");
        assert!(!output.status.success(), "{arguments:?}");
        String::from_utf8_lossy(&output.stderr).trim_end().replace("127.0.0.1", "localhost")
    }
}

#[test]
fn clients_log_in_by_any_plugin() {
    for flavour in FLAVOURS {
        let world = World::start(flavour, "disable");
        for plugin in ["", "mysql_native_password", "caching_sha2_password", "client_ed25519"] {
            let plugin = format!("--default-auth={plugin}");
            for user in ["ann", "bob"] {
                let user_of = format!("-u{user}");
                let who = world.who(&[&user_of, "-psecret", &plugin, "shop"]);
                assert_eq!(who, format!("{user}@localhost shop"));
            }
        }
    }
}

#[test]
fn a_server_that_has_forgotten_a_password_gets_it_encrypted() {
    // MySQL 8.0.15 has no method of TLS that the program has, which goes on in the clear then.
    for sslmode in ["disable", "prefer"] {
        let world = World::start(Flavour::MySql, sslmode);
        assert_eq!(world.who(&["-ueve", "-psecret", "shop"]), "eve@localhost shop");
        world.run("FLUSH PRIVILEGES");
        assert_eq!(world.who(&["-ueve", "-psecret", "shop"]), "eve@localhost shop");
    }
}

#[test]
fn a_name_may_have_letters_of_any_language() {
    for flavour in FLAVOURS {
        let world = World::start(flavour, "disable");
        let who = world.who(&["--default-character-set=utf8mb4", "-ujürgen", "-psecret", "shop"]);
        assert_eq!(who, "jürgen@localhost shop");
    }
}

#[test]
fn refusals_have_the_servers_words() {
    for flavour in FLAVOURS {
        let world = World::start(flavour, "disable");
        let denied = |user: &str, using: &str| {
            let words = format!("Access denied for user '{user}'@'localhost'");
            format!("ERROR 1045 (28000): {words} (using password: {using})")
        };
        for (arguments, due) in [
            (["-uann", "-pwrong", "shop"], denied("ann", "YES")),
            (["-unobody", "-psecret", "shop"], denied("nobody", "YES")),
            (["-uann", "--password=", "shop"], denied("ann", "NO")),
            (["-uann", "-psecret", "none"], "1044".to_owned()),
        ] {
            let words = world.refused(&arguments);
            assert!(words.contains(&due), "{flavour:?} {arguments:?}: {words}");
        }
        // A user of the configuration whom the server does not know.
        let words = world.refused(&["-ulost", "-psecret", "shop"]);
        assert!(words.contains(&denied("lost", "YES")), "{words}");
    }
}
