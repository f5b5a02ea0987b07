//! The servers of a reproduction: PostgreSQL with a database, and two proxies over it.

use std::fmt::{self, Display, Formatter};
use std::time::Duration;

use anyhow::{Result, ensure};

use crate::bench::session::Session;
use crate::postgres::Cluster;
use crate::proxy::Refrain;

use super::Plan;
use super::figures::Figures;
use super::load::{Load, Request};
use super::verdict::Verdict;

/// The name of the database.
pub(super) const DATABASE: &str = "repro";
/// Number of servers of a pool.
const POOL_SIZE: u32 = 10;
/// PostgreSQL's background work is off: it would slow down the way whose turn it is.
const SETTINGS: [(&str, &str); 4] = [
    ("shared_buffers", "256MB"),
    ("autovacuum", "off"),
    ("bgwriter_lru_maxpages", "0"),
    ("checkpoint_timeout", "1d"),
];

/// The largest ratio of the mean time with autoprepare to that without.
const BAR_MEAN: f64 = 1.05;
/// The largest ratio of the 99th percentile with autoprepare to that without.
const BAR_P99: f64 = 1.2;

/// How requests reach PostgreSQL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// Without a proxy.
    Direct,
    /// Through the proxy with its defaults.
    Off,
    /// Through the proxy with autoprepare.
    On,
}

/// All ways.
pub(super) const WAYS: [Way; 3] = [Way::Direct, Way::Off, Way::On];

impl Display for Way {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Way::Direct => "direct",
            Way::Off => "autoprepare off",
            Way::On => "autoprepare on",
        })
    }
}

/// The running servers. Dropping this ends them.
pub(super) struct House {
    pub(super) cluster: Cluster,
    off: Refrain,
    on: Refrain,
}

impl House {
    /// Starts the servers and fills the database with `setup`. `more` has lines for the table
    /// `[pool]` of both proxies.
    pub(super) fn start(plan: &Plan, setup: &str, more: &str) -> Result<House> {
        let program = plan.program()?;
        let cluster = Cluster::start(plan.version(), &SETTINGS)?;
        cluster.psql("postgres", &format!("CREATE DATABASE {DATABASE}"))?;
        cluster.psql(DATABASE, setup)?;
        let proxy = |autoprepare: &str| {
            let (host, port) = (cluster.host(), cluster.port());
            let config = format!(
                "auth = \"trust\"\nadmin_users = [\"postgres\"]\n\
                 [pool]\npool_mode = \"transaction\"\npool_size = {POOL_SIZE}\n\
                 autoprepare = \"{autoprepare}\"\n{more}\n\
                 [databases.\"*\"]\nurl = \"postgres://postgres@{host}:{port}\"\n"
            );
            Refrain::start_as(&program, &config)
        };
        let (off, on) = (proxy("off")?, proxy("on")?);
        Ok(House { cluster, off, on })
    }

    /// Returns the port of 127.0.0.1 for one way.
    pub(super) fn port(&self, way: Way) -> u16 {
        match way {
            Way::Direct => self.cluster.port(),
            Way::Off => self.off.port(),
            Way::On => self.on.port(),
        }
    }

    /// Gives each way its turn in each round, and begins each round with another way. Prints the
    /// figures of each way over all rounds. `meanwhile` runs beside the clients in each turn.
    pub(super) fn rounds(
        &self,
        plan: &Plan,
        request: &Request<'_>,
        meanwhile: impl Fn(Way) -> Result<()>,
    ) -> Result<Rounds> {
        let mut rounds = Rounds { all: Default::default() };
        for round in 0..plan.rounds {
            for turn in 0..WAYS.len() {
                let place = (round as usize + turn) % WAYS.len();
                let way = WAYS[place];
                let load = Load {
                    database: DATABASE,
                    clients: plan.clients,
                    time: Duration::from_secs_f64(plan.seconds),
                    seed: u64::from(round),
                    request,
                };
                let figures = load.run(self.port(way), || meanwhile(way))?;
                println!("{}", figures.line(&format!("{round} {way}")));
                rounds.all[place].then(figures);
            }
        }
        println!("all rounds:");
        for way in WAYS {
            println!("{}", rounds.of(way).line(&way.to_string()));
        }
        Ok(rounds)
    }

    /// Prints SHOW AUTOPREPARE and the counters of the proxy with autoprepare.
    pub(super) fn print_autoprepare(&self) -> Result<()> {
        for row in self.console("SHOW AUTOPREPARE")? {
            println!("{}", row.join(" | "));
        }
        let counts = self.console("SHOW COUNTERS")?;
        let auto = counts.iter().filter(|row| row.iter().any(|word| word.starts_with("auto_")));
        for row in auto.filter(|row| row.last().is_some_and(|count| count != "0")) {
            println!("{}", row.join(" | "));
        }
        Ok(())
    }

    /// Returns the rows that the console of the proxy with autoprepare shows.
    pub(super) fn console(&self, text: &str) -> Result<Vec<Vec<String>>> {
        let mut console = Session::open(self.on.port(), "refrain", Duration::from_secs(30))?;
        let answer = console.query(text)?;
        ensure!(answer.errors.is_empty(), "{text}: {:?}", answer.errors);
        let word = |value: &Vec<u8>| String::from_utf8_lossy(value).into_owned();
        Ok(answer.rows.iter().map(|row| row.iter().map(word).collect()).collect())
    }
}

/// The figures of each way over all rounds.
pub(super) struct Rounds {
    all: [Figures; WAYS.len()],
}

impl Rounds {
    pub(super) fn of(&self, way: Way) -> &Figures {
        let place = WAYS.iter().position(|other| *other == way).unwrap_or(0);
        &self.all[place]
    }

    /// Returns the ratio of a figure with autoprepare to that without.
    pub(super) fn ratio(&self, pick: impl Fn(&Figures) -> f64) -> f64 {
        pick(self.of(Way::On)) / pick(self.of(Way::Off))
    }

    /// Checks that requests are not slower with autoprepare than without, and get right replies.
    pub(super) fn not_slower(&self) -> Verdict {
        let mut verdict = Verdict::default();
        verdict.at_most("mean, on by off", self.ratio(Figures::mean_us), BAR_MEAN);
        let p99 = self.ratio(|figures| figures.tail_us(0.01));
        verdict.at_most("p99, on by off", p99, BAR_P99);
        let on = self.of(Way::On);
        let right = on.failed + on.wrong == 0 && on.answered() > 0;
        verdict.check(format!("with autoprepare {} failed, {} wrong", on.failed, on.wrong), right);
        verdict
    }
}
