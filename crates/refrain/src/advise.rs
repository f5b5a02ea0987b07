//! `refrain advise`: asks a running Refrain which requests are repeated, and writes the rules of
//! the cache that would save most.

use std::io::{self, Write};

use crate::quoted::quoted;
use crate::running::{CONSOLE, Connection, Console};

/// Most rules.
const RULES_MAX: usize = 10;

/// A text whose requests are repeated.
#[derive(Debug, PartialEq, Eq)]
struct Advice {
    database: String,
    user: String,
    requests: u64,
    repeats: u64,
    saves_us: u64,
    text: String,
}

/// Writes the best rules to `out`.
///
/// # Errors
/// If Refrain cannot be reached, refuses the login or the question, or `out` cannot be written to.
pub(crate) fn advise(console: &Console, out: &mut dyn Write) -> Result<(), String> {
    print(console, out).map_err(|error| format!("{}: {error}", console.server.host))
}

fn print(console: &Console, out: &mut dyn Write) -> io::Result<()> {
    let mut connection = Connection::open(console, CONSOLE)?;
    let rows = connection.ask("SHOW CACHE ADVICE")?;
    let found: Vec<Advice> = rows.iter().filter_map(|row| Advice::read(row)).collect();
    let best: Vec<_> = found.iter().filter(|it| it.saves_us > 0).take(RULES_MAX).collect();
    if best.is_empty() {
        return writeln!(
            out,
            "# No read that could be kept, and that no rule is for, was repeated within a second\n\
             # so far. Refrain looks for one second in thirty, and judges reads that are used\n\
             # often where servers are shared (share_servers) or there are rules of the cache."
        );
    }
    best.into_iter().try_for_each(|advice| advice.write(out))
}

impl Advice {
    fn read(row: &[Option<String>]) -> Option<Self> {
        let [database, user, requests, _, repeats, saves_us, text] = row else { return None };
        let number = |value: &Option<String>| value.as_deref()?.parse().ok();
        Some(Self {
            database: database.clone()?,
            user: user.clone()?,
            requests: number(requests)?,
            repeats: number(repeats)?,
            saves_us: number(saves_us)?,
            text: text.clone()?,
        })
    }

    /// Writes a rule, and what it would have saved so far.
    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let Self { database, user, requests, repeats, saves_us, text } = self;
        let (percent, seconds) = (100 * repeats / requests.max(&1), saves_us / 1_000_000);
        writeln!(
            out,
            "# {percent} % of some {requests} requests said the same as one in the same second.\n\
             # A rule would have saved about {seconds}.{:03} s of the database's time so far.\n\
             [[cache.rules]]\ndatabase = {}\nuser = {}\nstatement = {}\nttl = \"1s\"\n",
            saves_us / 1000 % 1000,
            quoted(database),
            quoted(user),
            quoted(text)
        )
    }
}

#[cfg(test)]
mod tests {
    use refrain_config::Options;

    use super::*;

    #[test]
    fn advice_is_a_configuration() {
        let advice = Advice {
            database: "shop".to_owned(),
            user: "o\"brien".to_owned(),
            requests: 1200,
            repeats: 900,
            saves_us: 12_345_678,
            text: "select a\n\tfrom \"T\" where b = E'\\\\' and c = '\u{7f}'".to_owned(),
        };
        let mut out = Vec::new();
        advice.write(&mut out).unwrap();
        let written = String::from_utf8(out).unwrap();
        assert!(written.contains("75 % of some 1200 requests"), "{written}");
        assert!(written.contains("about 12.345 s"), "{written}");
        let options = Options::from_toml(&format!(
            "auth = \"trust\"\n[databases.shop]\nhost = \"db\"\n{written}"
        ));
        let rule = options.unwrap().cache.rules.remove(0);
        assert_eq!(rule.statement.as_deref(), Some(&*advice.text));
        assert_eq!(rule.user.as_deref(), Some("o\"brien"));
    }
}
