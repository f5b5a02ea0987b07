//! The options of the command line.

use crate::client::Peers;
use crate::features::{self, FEATURES, Features};
use crate::plan::Plan;
use crate::setup::Servers;
use std::time::Duration;

/// The most clients that an episode may have.
const CLIENTS_MAX: usize = 8;

/// All options of the program.
#[derive(Clone, Debug)]
pub struct Options {
    /// The options that episodes share.
    pub plan: Plan,
    /// Seed of the run; each episode's seed follows from it.
    pub seed: u64,
    /// Number of segments of the run.
    pub segments: u64,
    /// Seed of the single episode to run.
    pub replay: Option<u64>,
    /// Number of differences after which the run stops.
    pub keep_going: u64,
    /// The fewest requests that the proxy has to have shared.
    pub shared: u64,
    /// The fewest requests that the proxy has to have answered from its cache.
    pub hits: u64,
    /// Whether the program prints a differing episode without a search for a shorter one.
    pub whole: bool,
    /// Whether the program counts replies by kind and prints the steps of a replayed episode.
    pub verbose: bool,
}

/// Returns the text of `--help`.
#[must_use]
pub fn help() -> String {
    let mut text = "\
Sends random messages to PostgreSQL through a proxy and directly, and compares the replies.

differ --proxy HOST:PORT --direct HOST:PORT [options]

  --proxy ADDR      the proxy (or a server, for a test of this program)
  --direct ADDR     the PostgreSQL server behind it, on which two databases are created
  --user NAME       user on both, without password (postgres)
  --seed N          seed of the run (1)
  --queries         random queries rather than random messages: templates with changing literals
  --segments N      number of segments to send (20000)
  --clients 1..8    the most clients in an episode (3)
  --pool-size K     the proxy's pool size for the database (2); a smaller number is safe
  --length N        number of segments in an episode (1000)
  --fragment        cut the bytes sent to the proxy at random places
  --fresh           end the proxy's server sessions before each episode (slow, but repeatable)
  --timeout SECONDS a reply that takes longer is a difference (10)
  --replay SEED     run only the episode with this seed; repeat the run's other options
  --databases X     use databases diffpX and diffdX, for runs side by side (none)
  --encoding NAME   use databases in this encoding (UTF8); clients choose their own encodings
  --verbose         count replies by kind; with --replay, print the steps
  --keep-going N    stop after N differences (1)
  --shared N        fail if the proxy says that it shared fewer requests between clients (0)
  --cached          the proxy has a cache: change tables through it
  --hits N          the same, and fail if its cache gave fewer replies (0)
  --no-shrink       do not search for a shorter sequence that differs
  --with A,B --without A,B   switch features, or `all`:
"
    .to_owned();
    text.push_str(&features::help(&FEATURES));
    text
}

impl Options {
    /// Reads the arguments after the program's name.
    ///
    /// # Errors
    /// If one is unknown, not a number where it should be one, or missing.
    pub fn parse(args: impl IntoIterator<Item = String>) -> Result<Self, String> {
        let mut options = Self::default();
        let mut args = args.into_iter();
        while let Some(name) = args.next() {
            match name.as_str() {
                "--queries" => options.plan.queries = true,
                "--fragment" => options.plan.peers.fragment = true,
                "--cached" => options.plan.peers.cached = true,
                "--fresh" => options.plan.servers = Servers::Fresh,
                "--no-shrink" => options.whole = true,
                "--verbose" => options.verbose = true,
                _ => {
                    let value = args.next().ok_or_else(|| format!("{name} needs a value"))?;
                    options.set(&name, &value)?;
                }
            }
        }
        if options.plan.peers.proxied.is_empty() || options.plan.peers.direct.is_empty() {
            return Err("--proxy and --direct are needed".to_owned());
        }
        Ok(options)
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        let number = || value.parse::<u64>().map_err(|error| format!("{name} {value}: {error}"));
        let small = || number().map(|number| usize::try_from(number).unwrap_or(usize::MAX));
        let plan = &mut self.plan;
        match name {
            "--proxy" => value.clone_into(&mut plan.peers.proxied),
            "--direct" => value.clone_into(&mut plan.peers.direct),
            "--user" => value.clone_into(&mut plan.peers.user),
            "--databases" => value.clone_into(&mut plan.peers.suffix),
            "--encoding" => {
                plan.peers.encoding = value.to_uppercase();
                plan.peers.suffix.push_str(&value.to_lowercase());
            }
            "--seed" => self.seed = number()?,
            "--segments" => self.segments = number()?,
            "--clients" => plan.clients = small()?.clamp(1, CLIENTS_MAX),
            "--pool-size" => plan.pool_size = small()?.max(1),
            "--length" => plan.length = number()?.max(1),
            "--timeout" => plan.peers.limit = Duration::from_secs(number()?.max(1)),
            "--replay" => self.replay = Some(number()?),
            "--shared" => self.shared = number()?,
            "--hits" => {
                self.hits = number()?;
                plan.peers.cached |= self.hits > 0;
            }
            "--keep-going" => self.keep_going = number()?,
            "--with" => plan.features.switch(value, true)?,
            "--without" => plan.features.switch(value, false)?,
            _ => return Err(format!("unknown option {name}")),
        }
        Ok(())
    }
}

impl Default for Options {
    fn default() -> Self {
        let peers = Peers {
            proxied: String::new(),
            direct: String::new(),
            suffix: String::new(),
            encoding: "UTF8".to_owned(),
            user: "postgres".to_owned(),
            limit: Duration::from_secs(10),
            fragment: false,
            cached: false,
        };
        let features = Features::default();
        Self {
            plan: Plan {
                peers,
                features,
                clients: 3,
                pool_size: 2,
                servers: Servers::Used,
                length: 1000,
                queries: false,
            },
            seed: 1,
            segments: 20_000,
            replay: None,
            keep_going: 1,
            shared: 0,
            hits: 0,
            whole: false,
            verbose: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Options, help};

    fn parse(line: &str) -> Result<Options, String> {
        Options::parse(line.split(' ').map(str::to_owned))
    }

    #[test]
    fn options_are_read() {
        let options = parse("--proxy a:1 --direct b:2 --seed 9 --fragment --without copy").unwrap();
        assert_eq!(options.seed, 9);
        assert!(options.plan.peers.fragment && !options.plan.features.has("copy"));
        assert!(!options.plan.peers.cached);
        let cached = parse("--proxy a:1 --direct b:2 --hits 7").unwrap();
        assert!(cached.plan.peers.cached && cached.hits == 7);
        assert!(parse("--cached --proxy a:1 --direct b:2").unwrap().plan.peers.cached);
        assert!(parse("--proxy a:1").is_err());
        assert!(parse("--proxy a:1 --direct b:2 --seed x").is_err());
        assert!(help().contains("--keep-going"));
    }
}
