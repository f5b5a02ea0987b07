//! The options of the command line.

use crate::client::Peers;
use crate::features::FEATURES;
use crate::plan::Plan;
use refrain_differ::features::{self, Features};
use refrain_differ::setup::Servers;
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
    /// Number of commands of the run.
    pub segments: u64,
    /// Seed of the single episode to run.
    pub replay: Option<u64>,
    /// Number of differences after which the run stops.
    pub keep_going: u64,
    /// Whether the program prints a differing episode without a search for a shorter one.
    pub whole: bool,
    /// Whether the program counts replies by kind and prints the steps of a replayed episode.
    pub verbose: bool,
}

/// Returns the text of `--help`.
#[must_use]
pub fn help() -> String {
    let text = "\
Sends random commands to MySQL or MariaDB through a proxy and directly, and compares the replies.

differ-mysql --proxy HOST:PORT --direct HOST:PORT [options]

  --proxy ADDR      the proxy, which serves the user diffp without a password (or a server)
  --direct ADDR     the server behind it, on which users and schemas are created
  --admin NAME      user of the server who creates them, without password (root)
  --seed N          seed of the run (1)
  --segments N      number of commands to send (20000)
  --clients 1..8    the most clients in an episode (3)
  --pool-size K     the proxy's pool size (2); a smaller number is safe
  --length N        number of commands in an episode (500)
  --fragment        cut the bytes sent to the proxy at random places
  --fresh           end the proxy's servers before each episode (slow, but repeatable)
  --timeout SECONDS a reply that takes longer is a difference (10)
  --replay SEED     run only the episode with this seed; repeat the run's other options
  --suffix X        use users diffpX and diffdX, for runs side by side (none)
  --verbose         count replies by kind; with --replay, print the steps
  --keep-going N    stop after N differences (1)
  --no-shrink       do not search for a shorter sequence that differs
  --with A,B --without A,B   switch features, or `all`:
";
    text.to_owned() + &features::help(&FEATURES)
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
                "--fragment" => options.plan.peers.fragment = true,
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
        let number = || value.parse::<u64>().map_err(|_| format!("{name} needs a number"));
        let count = || number().map(|number| usize::try_from(number).unwrap_or(usize::MAX));
        let plan = &mut self.plan;
        match name {
            "--proxy" => value.clone_into(&mut plan.peers.proxied),
            "--direct" => value.clone_into(&mut plan.peers.direct),
            "--suffix" => value.clone_into(&mut plan.peers.suffix),
            "--admin" => value.clone_into(&mut plan.peers.admin),
            "--seed" => self.seed = number()?,
            "--segments" => self.segments = number()?,
            "--clients" => plan.clients = count()?.clamp(1, CLIENTS_MAX),
            "--pool-size" => plan.pool_size = count()?.max(1),
            "--length" => plan.length = number()?.max(1),
            "--timeout" => plan.peers.limit = Duration::from_secs(number()?.max(1)),
            "--replay" => self.replay = Some(number()?),
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
            admin: "root".to_owned(),
            limit: Duration::from_secs(10),
            fragment: false,
        };
        let plan = Plan {
            peers,
            features: Features::of(&FEATURES),
            clients: 3,
            pool_size: 2,
            servers: Servers::Used,
            length: 500,
        };
        Self {
            plan,
            seed: 1,
            segments: 20_000,
            replay: None,
            keep_going: 1,
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
        let options = parse("--proxy a:1 --direct b:2 --seed 9 --fragment --without ddl");
        let options = options.expect("known options");
        assert_eq!(options.seed, 9);
        assert!(options.plan.peers.fragment && !options.plan.features.has("ddl"));
        assert!(parse("--proxy a:1").is_err());
        assert!(parse("--proxy a:1 --direct b:2 --seed x").is_err());
        assert!(help().contains("--keep-going"));
    }
}
