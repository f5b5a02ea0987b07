//! The questions to primaries how far they are.

use crate::step::answer::Way;
use crate::step::visit::{PAUSE, Trip, primary_says, reading};
use crate::talk::*;

#[test]
fn a_primary_is_asked_when_a_read_needs_it_and_not_at_once_again() {
    let scene = reading(Way::Simple);
    scene.talk.waits(PAUSE * 30);
    scene.server.gets_nothing();
    scene.asks_server(&scene.alice, "1", "one");
    primary_says(&scene, "0/3000100");
    // Bob needs to know as well, but it was asked just now.
    scene.asks_server(&scene.bob, "1", "one");
    scene.server.gets_nothing();
    assert_eq!(scene.talk.counters().protocol.standby_reads_unproven, 2);
    scene.talk.waits(PAUSE);
    primary_says(&scene, "0/3000100");
    scene.talk.waits(PAUSE * 30);
    scene.server.gets_nothing();
}

#[test]
fn a_primary_that_cannot_say_proves_nothing() {
    let scene = reading(Way::Simple);
    scene.asks_server(&scene.alice, "1", "one");
    scene.server.gets([internal("pg_current_wal_insert_lsn"), vec![sync()]].concat());
    scene.server.answers([close_complete(), error("42883", "no such function"), ready()]);
    scene.talk.waits(PAUSE);
    scene.asks_server(&scene.alice, "1", "one");
    assert_eq!(scene.talk.counters().protocol.standby_reads_unproven, 2);
    scene.server.gets_nothing();
    scene.talk.waits(PAUSE * 10);
    scene.asks_server(&scene.alice, "1", "one");
    primary_says(&scene, "0/3000100");
}

#[test]
fn the_log_tells_once_that_a_primary_cannot_say() {
    let scene = reading(Way::Simple);
    for wait in [PAUSE, PAUSE * 11, PAUSE * 21] {
        scene.talk.waits(wait);
        scene.asks_server(&scene.alice, "1", "one");
        scene.server.gets([internal("pg_current_wal_insert_lsn"), vec![sync()]].concat());
        scene.server.answers([close_complete(), error("42883", "no such function"), ready()]);
    }
    let told = |(cause, words): &(&str, String)| {
        *cause == "standby_reads" && words.ends_with("cannot say how far it is: no such function")
    };
    assert_eq!(scene.talk.log().iter().filter(|line| told(line)).count(), 1);
}

#[test]
fn a_question_that_is_lost_is_asked_again() {
    let trip = Trip::begun(Way::Simple);
    trip.scene.talk.waits(PAUSE);
    trip.scene.asks_server(&trip.scene.bob, "1", "one");
    trip.scene.server.gets([internal("pg_current_wal_insert_lsn"), vec![sync()]].concat());
    trip.scene.server.breaks();
    trip.scene.talk.servers_report("in_hot_standby", "off");
    trip.scene.talk.waits(PAUSE * 10);
    trip.scene.bob.sends(Way::Simple.request("1"));
    let server = trip.scene.talk.server(3);
    server.gets(Way::Simple.sent("1")).answers(Way::Simple.reply("one"));
    trip.scene.bob.gets(Way::Simple.reply("one"));
    server.gets([internal("pg_current_wal_insert_lsn"), vec![sync()]].concat());
}
