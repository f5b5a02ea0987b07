//! The table of parts.

use anyhow::Result;

use crate::command::Tally;
use crate::dialect;
use crate::dist;
use crate::encrypted;
use crate::instructions;
use crate::mysql::Flavour;
use crate::pooler;
use crate::postgres::Version;
use crate::rounds;
use crate::vendor;

use super::schedule::{Load, Needs};
use super::{cargo_tests, house, libraries, random};

/// The kind of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// It needs no server, and nothing that root would have to install: `--quick` runs it.
    Quick,
    /// It starts servers, is needed by those that do, or needs what is fetched with them.
    Servers,
    /// It runs client libraries, which `--no-drivers` leaves out.
    Drivers,
}

/// A part of the suite.
pub(super) struct Part {
    pub(super) needs: Needs,
    pub(super) kind: Kind,
    pub(super) run: fn() -> Result<Tally>,
    /// Whether the part's time says something: that of a compiler depends on what is built already.
    pub(super) is_timed: bool,
    /// Whether the part checks something. One that builds or fetches counts nothing if all is well.
    pub(super) is_check: bool,
}

impl Part {
    const fn new(name: &'static str, load: Load, kind: Kind, run: fn() -> Result<Tally>) -> Self {
        let needs = Needs { name, load, builds: &[], after: &[] };
        Self { needs, kind, run, is_timed: true, is_check: true }
    }

    const fn needs(mut self, builds: &'static [&'static str]) -> Self {
        self.needs.builds = builds;
        self
    }

    const fn after(mut self, after: &'static [&'static str]) -> Self {
        self.needs.after = after;
        self
    }

    const fn untimed(mut self) -> Self {
        self.is_timed = false;
        self
    }

    const fn preparing(mut self) -> Self {
        self.is_check = false;
        self.untimed()
    }

    /// Returns the part's name.
    pub(super) fn name(&self) -> &'static str {
        self.needs.name
    }
}

use self::Kind::{Drivers, Quick, Servers};
use self::Load::{Sensitive, Waiting, Yielding};

/// The build with the program and the differential tests.
const PROGRAMS: &[&str] = &["build-programs"];
/// The build with the simulators and the tests that need optimised code.
const SIMULATORS: &[&str] = &["build-simulators"];
/// The parts before those that start servers, which shall begin with the longest.
const SERVERS: &[&str] = &["provision", "build-tests"];
/// The parts before those that run client libraries.
const LIBRARIES: &[&str] = &["provision", "provision-libraries", "build-tests"];
/// The parts that have the lock of the folder `debug` before lints: tests would wait for lints.
const BEFORE_LINTS: &[&str] = &["build-simulators", "it", "cargo-test", "seeds", "grammar"];

/// Returns a sensitive part that runs the program.
const fn sensitive(name: &'static str, run: fn() -> Result<Tally>) -> Part {
    Part::new(name, Sensitive, Servers, run).needs(PROGRAMS).after(SERVERS)
}

/// Returns a part that runs several programs of client libraries at once.
const fn driving_many(name: &'static str, run: fn() -> Result<Tally>) -> Part {
    Part::new(name, Sensitive, Drivers, run).needs(PROGRAMS).after(LIBRARIES)
}

/// Returns a part that runs client libraries one by one.
const fn driving(name: &'static str, run: fn() -> Result<Tally>) -> Part {
    Part::new(name, Waiting, Drivers, run).needs(PROGRAMS).after(LIBRARIES)
}

/// Every part. One that is named earlier begins earlier, if it can.
pub(super) const PARTS: &[Part] = &[
    Part::new("fmt", Yielding, Quick, house::fmt),
    Part::new("provision", Waiting, Servers, house::servers).preparing(),
    // All have the same folder, which is locked by one at a time. The first leaves a program where
    // the others have another; the last moves its programs elsewhere.
    Part::new("build-pooler", Waiting, Servers, house::build_pooler).preparing(),
    Part::new("build-programs", Waiting, Servers, house::build_programs)
        .after(&["build-pooler"])
        .preparing(),
    Part::new("build-tests", Waiting, Quick, house::build_tests).after(PROGRAMS).preparing(),
    Part::new("build-simulators", Yielding, Quick, house::build_simulators)
        .after(&["build-tests"])
        .preparing(),
    Part::new("provision-libraries", Yielding, Drivers, house::libraries)
        .after(&["provision"])
        .preparing(),
    Part::new("it", Sensitive, Servers, cargo_tests::with_servers)
        .needs(&["build-tests"])
        .after(SERVERS),
    Part::new("cargo-test", Sensitive, Quick, cargo_tests::without_servers).needs(&["build-tests"]),
    sensitive("differ", random::differ),
    sensitive("differ-mysql", random::differ_mysql),
    sensitive("queries", random::queries),
    sensitive("shared", random::shared),
    sensitive("cached", random::cached),
    sensitive("fuzz", random::fuzz),
    sensitive("vendor-suite", vendor::sample),
    driving_many("frameworks", libraries::frameworks),
    driving_many("drivers-mariadb", || libraries::with_mysql(Flavour::MariaDb)),
    driving_many("drivers-mysql-8", || libraries::with_mysql(Flavour::MySql)),
    driving_many("drivers-tls-modes", || encrypted::run(None)),
    Part::new("dialect", Waiting, Servers, dialect::forms).needs(PROGRAMS).after(SERVERS),
    // Where the tools were not provisioned, the part builds them.
    Part::new("packages", Waiting, Servers, dist::check).needs(PROGRAMS).after(LIBRARIES).untimed(),
    driving("tools", libraries::tools),
    driving("drivers-sqlite", libraries::with_sqlite),
    driving("console", libraries::with_console),
    driving("dashboard", libraries::with_dashboard).untimed(),
    driving("rounds", rounds::run),
    driving("drivers-15", || libraries::through_proxy(Version::V15)),
    driving("drivers-18", || libraries::through_proxy(Version::V18)),
    driving("drivers-shared-15", || libraries::through_shared(Version::V15)),
    driving("drivers-shared-18", || libraries::through_shared(Version::V18)),
    driving("drivers-tls", libraries::through_tls),
    Part::new("pooler", Waiting, Servers, pooler::run)
        .needs(&["build-pooler"])
        .after(&["build-tests", "provision"])
        .untimed(),
    // The longest begin first, so that no core waits for one of them in the end. The build is for
    // the most part one link, on one core.
    Part::new("build-release", Yielding, Servers, house::build_release)
        .after(&["provision", "build-tests", "build-simulators"])
        .preparing(),
    Part::new("sim", Yielding, Quick, random::sim).needs(SIMULATORS),
    Part::new("sim-mysql", Yielding, Quick, random::sim_mysql).needs(SIMULATORS),
    Part::new("seeds", Yielding, Quick, cargo_tests::seeds).needs(SIMULATORS),
    // With the scripts of PostgreSQL's own suite.
    Part::new("grammar", Yielding, Servers, cargo_tests::grammar)
        .needs(SIMULATORS)
        .after(&["provision"]),
    // As `build-release` does, it installs valgrind.
    Part::new("instructions", Yielding, Servers, instructions::check)
        .needs(&["build-release"])
        .after(&["provision"]),
    Part::new("clippy", Yielding, Quick, house::clippy).after(BEFORE_LINTS).untimed(),
    Part::new("doc", Yielding, Quick, house::doc).after(BEFORE_LINTS).untimed(),
];

/// Returns the parts of these names, and those that build what they need.
pub(super) fn named(names: &[String]) -> Vec<&'static Part> {
    let mut chosen: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut next = 0;
    while next < chosen.len() {
        let part = PARTS.iter().find(|part| part.name() == chosen[next]);
        let builds = part.map_or(&[][..], |part| part.needs.builds);
        let new: Vec<_> = builds.iter().copied().filter(|name| !chosen.contains(name)).collect();
        chosen.extend(new);
        next += 1;
    }
    PARTS.iter().filter(|part| chosen.contains(&part.name())).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::suite::schedule::next;

    #[test]
    fn names_are_different_and_needs_are_parts() {
        let names: HashSet<_> = PARTS.iter().map(Part::name).collect();
        assert_eq!(names.len(), PARTS.len());
        for Part { needs, .. } in PARTS {
            let mut others = needs.builds.iter().chain(needs.after);
            assert!(others.all(|name| names.contains(name)), "{}", needs.name);
        }
    }

    #[test]
    fn quick_parts_need_no_others() {
        let is_quick =
            |name: &&str| PARTS.iter().any(|part| part.name() == *name && part.kind == Quick);
        for part in PARTS.iter().filter(|part| part.kind == Quick) {
            assert!(part.needs.builds.iter().all(is_quick), "{}", part.name());
            assert!(!part.needs.after.contains(&"provision"), "{}", part.name());
        }
        // They call what `provision` calls.
        for name in ["grammar", "build-release", "instructions"] {
            assert!(!is_quick(&name), "{name}");
        }
    }

    #[test]
    fn all_parts_come_to_run_on_one_core_and_on_many() {
        for cores in [1, 2, 16] {
            let mut pending: Vec<_> = PARTS.iter().map(|part| part.needs).collect();
            let mut running = Vec::new();
            loop {
                while let Some(index) = next(&pending, &running, cores) {
                    running.push(pending.remove(index));
                }
                if running.is_empty() {
                    break;
                }
                running.remove(0);
            }
            assert!(pending.is_empty(), "{pending:?} never start");
        }
    }

    #[test]
    fn a_part_comes_with_the_builds_that_it_needs() {
        let names = |only: &str| -> Vec<_> {
            named(&[only.to_owned()]).into_iter().map(Part::name).collect()
        };
        assert_eq!(names("fmt"), ["fmt"]);
        assert_eq!(names("differ"), ["build-programs", "differ"]);
        assert_eq!(names("it"), ["build-tests", "it"]);
    }
}
