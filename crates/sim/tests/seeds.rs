//! A short run of seeds must find no violation, and the checkers must find every planted bug.

use refrain_pg::{CacheBug, StandbyBug, UserBug};
use refrain_sim::lookups::Tally;
use refrain_sim::panics::quiet_panics;
use refrain_sim::plant::{PLANTS, Plant};
use refrain_sim::run::{run, run_twice};
use refrain_sim::world::Sharing;

/// Number of seeds of the short run. `cargo xtask sim` runs more.
const SEEDS: u64 = 300;
/// Number of seeds within which the checkers must find a planted bug.
const PLANTED_SEEDS: u64 = 400;

#[test]
fn seeds_find_nothing() {
    quiet_panics(|_, _| ());
    let (mut sharing, mut logins, mut promotions) = (Sharing::default(), Tally::default(), 0);
    for seed in 0..SEEDS {
        let report = if seed % 10 == 0 { run_twice(seed, None) } else { run(seed, None, 0) };
        assert_eq!(report.violation, None, "replay: sim --seed {seed} --trace");
        sharing.add(report.sharing);
        logins.add(report.logins);
        promotions += report.promotions;
    }
    // What no world does, no checker can judge.
    let Sharing { shared, resent, moved, hits, overtaken, away, returned } = sharing;
    assert!(shared > 5_000 && resent > 50 && moved > 50, "{sharing:?}");
    assert!(hits > 2_000 && overtaken > 300, "{sharing:?}");
    let Tally { let_in, refused, unavailable, late, lookups } = logins;
    assert!(let_in > 1_000 && refused > 500 && lookups > 500, "{logins:?}");
    assert!(unavailable > 50 && late > 50, "{logins:?}");
    assert!(promotions > 20 && away > 500 && returned > 30, "{promotions} {sharing:?}");
}

/// Returns the first seed that finds a planted bug, with the violation. A seed that has the same
/// violation without the bug does not count.
fn found(plant: Plant) -> Option<(u64, String)> {
    (0..PLANTED_SEEDS).find_map(|seed| {
        let twice = plant == Plant::HiddenChance;
        let report = if twice { run_twice(seed, Some(plant)) } else { run(seed, Some(plant), 0) };
        let violation = report.violation?;
        let alone = run(seed, None, 0).violation;
        (alone.as_ref() != Some(&violation)).then_some((seed, violation))
    })
}

#[test]
fn every_planted_bug_is_found() {
    quiet_panics(|_, _| ());
    for (name, plant) in PLANTS {
        assert!(found(plant).is_some(), "{name} is not found within {PLANTED_SEEDS} seeds");
    }
}

/// Asserts that a checker is the first to find a planted bug.
fn assert_found_by(plant: Plant, checker: &str) {
    quiet_panics(|_, _| ());
    let first = found(plant).map(|(_, violation)| violation);
    assert!(first.as_ref().is_some_and(|it| it.starts_with(checker)), "{plant:?}: {first:?}");
}

#[test]
fn the_checker_of_statements_finds_a_parse_that_is_missing() {
    assert_found_by(Plant::SkipParse, "statements: ");
}

#[test]
fn the_checker_of_turns_finds_a_client_that_came_last_and_is_served_first() {
    assert_found_by(Plant::LastComesFirst, "turns: ");
}

#[test]
fn the_checker_of_hosts_finds_a_standby_that_is_taken_for_a_primary() {
    assert_found_by(Plant::HideStandby, "hosts: ");
}

#[test]
fn a_host_that_was_promoted_and_is_not_found_is_found() {
    assert_found_by(Plant::LatePromotion, "failover: ");
}

#[test]
fn the_checker_of_hosts_finds_a_write_that_is_sent_to_a_standby() {
    assert_found_by(Plant::BlindStandbys, "hosts: ");
}

#[test]
fn bugs_in_what_is_known_of_standbys_are_found() {
    let bugs = [StandbyBug::NoComparison, StandbyBug::EarlyPosition, StandbyBug::AnyTimeline];
    for bug in [&bugs[..], &[StandbyBug::EndlessLag, StandbyBug::OtherClient]].concat() {
        assert_found_by(Plant::Standbys(bug), "versions: ");
    }
}

#[test]
fn the_checker_of_questions_finds_a_server_that_is_not_asked() {
    assert_found_by(Plant::Unasked, "questions: ");
}

#[test]
fn a_server_that_is_silent_for_ever_is_found() {
    assert_found_by(Plant::EndlessSilence, "liveness: ");
}

#[test]
fn the_checker_of_versions_finds_old_rows_open_rows_lost_rows_and_replies_that_outlive_a_write() {
    let plants = [Plant::OldReads, Plant::DirtyReads, Plant::LostCommit];
    for plant in [&plants[..], &[Plant::NoTargets, Plant::Cache(CacheBug::LateVoid)]].concat() {
        assert_found_by(plant, "versions: ");
    }
}

#[test]
fn bugs_in_the_cache_are_found() {
    for bug in [CacheBug::LateStamp, CacheBug::OldFlight, CacheBug::EndlessTime] {
        assert_found_by(Plant::Cache(bug), "versions: ");
    }
    assert_found_by(Plant::Cache(CacheBug::ShortKey), "oracle: ");
}

#[test]
fn bugs_in_what_is_known_of_users_are_found() {
    let bugs = [UserBug::AnyDatabase, UserBug::ManyLookups];
    for bug in [&bugs[..], &[UserBug::EndlessAnswers, UserBug::EndlessStaleAnswers]].concat() {
        assert_found_by(Plant::Users(bug), "logins: ");
    }
    assert_found_by(Plant::Users(UserBug::LostWaiters), "liveness: ");
}
