//! Worlds in which users are looked up by `auth_query`: their options, and how they change.

use crate::directory::{Form, Mood, UserId};
use crate::rng::Rng;

/// The password of the user as whom databases are asked.
pub(crate) const ASKER_PASSWORD: &str = "of the asker";

/// The rule by which a user's password is found. A reload changes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rule {
    /// By this function of the database.
    Asks(&'static str),
    /// The same, but `u1` has this password in the configuration.
    Configures(String),
    /// No user is looked up.
    Nothing,
}

impl Rule {
    /// The function that is asked at first.
    pub(crate) const FIRST: &'static str = "users_a";
    /// The function that is asked after some reloads.
    pub(crate) const SECOND: &'static str = "users_b";
}

/// The plan of the logins of a world. Times are in microseconds.
#[derive(Clone, Debug)]
pub struct LoginPlan {
    method: &'static str,
    /// The form in which the database has passwords.
    pub form: Form,
    /// The age of an answer.
    pub ttl: u64,
    /// The age of the answer that there is no such user.
    pub negative_ttl: u64,
    /// The age of an answer while the database gives none.
    pub stale: u64,
    /// Whether logins wait while the database gives no answer.
    pub waits: bool,
    /// The longest time of a login.
    pub timeout: u64,
    /// Whether some clients never answer.
    pub hangs: bool,
    /// Whether few answers are kept.
    pub forgets: bool,
    /// The user as whom databases are asked.
    pub asker: &'static str,
    /// The database that is asked; each its own if there is none.
    asked: Option<&'static str>,
    /// The databases of clients.
    pub databases: &'static [&'static str],
    /// Whether servers ask for passwords.
    pub servers_ask: bool,
    /// How often a password changes, answers are forgotten, and options change, in a thousand
    /// moments of the operator.
    pub rates: [u64; 3],
    /// How often a lookup takes long, and how often it fails, of a thousand.
    pub troubles: [u64; 2],
}

impl LoginPlan {
    /// Draws a plan. With `alone`, all clients are of one database.
    pub fn new(rng: &mut Rng, alone: bool) -> Self {
        let (method, form) = *rng.pick(&[
            ("scram", Form::Scram),
            ("scram", Form::Scram),
            ("md5", Form::Scram),
            ("password", Form::Scram),
            ("md5", Form::Md5),
            ("password", Form::Md5),
            ("scram", Form::Plain),
            ("md5", Form::Plain),
        ]);
        let hangs = rng.chance(300);
        let mut rate = |of_worlds: u64, most: u64| {
            if rng.chance(of_worlds) { rng.range(1, most) } else { 0 }
        };
        let rates = [rate(700, 60), rate(300, 40), rate(250, 30)];
        let troubles = [rate(400, 300), rate(250, 300)];
        Self {
            method,
            form,
            ttl: *rng.pick(&[0, 20_000, 200_000, 2_000_000, 30_000_000]),
            negative_ttl: *rng.pick(&[0, 20_000, 500_000]),
            stale: *rng.pick(&[0, 1_000_000, 3_600_000_000]),
            waits: rng.chance(400),
            timeout: if hangs || rng.chance(200) { 2_500_000 } else { 3_600_000_000 },
            hangs,
            forgets: rng.chance(150),
            asker: *rng.pick(&["asker", "asker", "u0"]),
            asked: rng.chance(400).then_some("auth"),
            databases: if alone || rng.chance(300) { &["d"] } else { &["d", "e"] },
            servers_ask: rng.chance(400),
            rates,
            troubles,
        }
    }

    /// Returns the database that is asked about the users of a database.
    pub fn asked<'a>(&self, database: &'a str) -> &'a str {
        self.asked.unwrap_or(database)
    }

    /// Returns the user of a database, as the database knows it that is asked.
    pub fn user(&self, database: &str, user: &str) -> UserId {
        (self.asked(database).to_owned(), user.to_owned())
    }

    /// Returns all databases: those of clients, and those that are asked.
    pub fn all_databases(&self) -> impl Iterator<Item = &'static str> + use<> {
        let other = self.asked;
        self.databases.iter().copied().chain(other)
    }

    /// Returns the users of clients.
    pub fn users(&self) -> [&'static str; 3] {
        ["u0", "u1", "ghost"]
    }

    /// Returns the options for a rule, from those of a world without passwords.
    pub fn options(&self, plain: &str, rule: &Rule) -> String {
        let mut general = format!(
            "auth = \"{}\"\nclient_login_timeout = \"{}ms\"\nauth_cache_ttl = \"{}ms\"\n\
             auth_cache_negative_ttl = \"{}ms\"\nauth_cache_stale = \"{}ms\"\n\
             auth_cache_size = {}\nauth_unavailable = \"{}\"\n",
            self.method,
            self.timeout / 1_000,
            self.ttl / 1_000,
            self.negative_ttl / 1_000,
            self.stale / 1_000,
            if self.forgets { 1 } else { 1_000 },
            if self.waits { "wait" } else { "refuse" },
        );
        let function = match rule {
            Rule::Asks(function) => Some(*function),
            Rule::Configures(_) => Some(Rule::FIRST),
            Rule::Nothing => None,
        };
        if let Some(function) = function {
            let query = format!("select usename, passwd from {function}($1)");
            general += &format!("auth_user = \"{}\"\nauth_query = \"{query}\"\n", self.asker);
            let asked = self.asked.map(|asked| format!("auth_dbname = \"{asked}\"\n"));
            general += &asked.unwrap_or_default();
        }
        let mut text = plain.replacen("auth = \"trust\"\n", &general, 1);
        for database in self.all_databases().filter(|database| *database != "d") {
            text += &format!("[databases.{database}]\nhost = \"server\"\n");
        }
        text += &format!("[users.{}]\npassword = \"{ASKER_PASSWORD}\"\n", self.asker);
        if let Rule::Configures(password) = rule {
            text += &format!("[users.u1]\npassword = \"{password}\"\n");
        }
        text
    }

    /// Draws how the database answers a lookup.
    pub(crate) fn draw_mood(&self, rng: &mut Rng, is_calm: bool) -> Mood {
        match !is_calm && rng.chance(self.troubles[1]) {
            false => Mood::Honest,
            true => *rng.pick(&[Mood::Fails, Mood::Twice, Mood::Others]),
        }
    }
}
