//! Standbys that are too late for a read, cannot say how far they are, or refuse it.

use crate::step::answer::{READ, Scene, WAYS, Way};
use crate::step::side::{canceled, cancels};
use crate::step::visit::{PAUSE, Trip, asked, primary_says, replayed, replayed_by};
use crate::talk::*;

/// Has alice write and read, and the standby get the question and the read.
fn asks_behind_a_write(way: Way) -> Trip {
    let trip = Trip::begun(way);
    trip.writes(&trip.scene.alice, "0/3000200");
    trip.scene.alice.sends(way.request("1"));
    trip.standby.gets([vec![asked()], way.sent("1")].concat());
    trip
}

#[test]
fn a_standby_that_has_replayed_a_write_is_read() {
    for way in WAYS {
        let trip = asks_behind_a_write(way);
        trip.standby.answers(replayed("0/3000200", "1"));
        trip.scene.alice.gets_nothing();
        trip.standby.answers(way.reply("two"));
        trip.scene.alice.gets(way.reply("two"));
        trip.visits(&trip.scene.alice, "1", "two");
        trip.scene.server.gets_nothing();
    }
}

#[test]
fn nobody_gets_the_reply_of_a_standby_that_is_too_late() {
    for way in WAYS {
        for late in [replayed("0/30001FF", "1"), replayed("0/3000200", "2"), replayed("", "1")] {
            let is_standby = late != replayed("", "1");
            let trip = asks_behind_a_write(way);
            trip.standby.answers(late);
            trip.comes_back("1", "two");
            trip.standby.answers(way.reply("one"));
            trip.scene.alice.gets_nothing();
            assert_eq!(trip.counts().1, 1);
            // It is not asked again at once. Another connection shows whether it is a standby.
            if is_standby {
                trip.scene.asks_server(&trip.scene.alice, "1", "two");
            }
        }
    }
}

#[test]
fn a_standby_that_cannot_say_is_not_read() {
    for way in WAYS {
        let trip = asks_behind_a_write(way);
        trip.standby.answers([error("57014", "no time"), ready()]);
        trip.comes_back("1", "two");
        trip.standby.answers(way.reply("one"));
        trip.scene.alice.gets_nothing();
        // It is not asked again at once, and the log tells it.
        trip.scene.talk.waits(PAUSE * 5);
        trip.scene.asks_server(&trip.scene.alice, "1", "two");
        let told = |(cause, words): &(&str, String)| {
            *cause == "standby_reads" && words.ends_with("cannot say how far it is: no time")
        };
        assert_eq!(trip.scene.talk.log().iter().filter(|line| told(line)).count(), 1);
    }
}

#[test]
fn a_read_that_a_standby_refuses_runs_on_the_primary() {
    for way in WAYS {
        let trip = Trip::begun(way);
        trip.scene.alice.sends(way.request("2"));
        trip.standby.forgets();
        trip.standby.answers([error("40001", "conflict with recovery"), ready()]);
        trip.runs_on_the_primary();
    }
}

/// Has alice read from the standby, and returns what that says of the read before it meets a
/// conflict.
fn begins(trip: &Trip) -> Vec<Line> {
    let way = trip.scene.way;
    trip.scene.alice.sends(way.request("2"));
    let parses = trip.standby.forgets() == way.sent("2");
    let begun = way.begun("two");
    if way == Way::Unnamed && !parses { begun[1..].to_vec() } else { begun }
}

#[test]
fn an_error_behind_what_the_client_has_got_is_the_client_s() {
    for way in WAYS {
        let trip = Trip::begun(way);
        let begun = begins(&trip);
        trip.standby.answers(begun);
        trip.scene.alice.forgets();
        let ending = [error("40001", "conflict with recovery"), ready()];
        trip.standby.answers(ending.clone());
        trip.scene.alice.gets(ending);
        trip.scene.server.gets_nothing();
    }
}

#[test]
fn a_reply_that_was_not_sent_is_taken_back_with_its_error() {
    let errors = [error("40001", "conflict with recovery"), fatal("40001", "conflict")];
    for (way, error) in WAYS.into_iter().flat_map(|way| errors.clone().map(|it| (way, it))) {
        let trip = Trip::begun(way);
        let begun = begins(&trip);
        trip.standby.answers([begun, vec![error]].concat());
        trip.runs_on_the_primary();
        assert_eq!(trip.counts(), (2, 1));
        // The statement runs on the primary for a while.
        trip.scene.asks_server(&trip.scene.alice, "3", "three");
    }
}

#[test]
fn an_error_of_the_read_itself_is_the_client_s() {
    let errors = [("22012", "division by zero"), ("53400", "temporary file size exceeds it")];
    for (way, (code, words)) in WAYS.into_iter().flat_map(|way| errors.map(|it| (way, it))) {
        let trip = Trip::begun(way);
        let reply = [begins(&trip), vec![error(code, words), ready()]].concat();
        trip.standby.answers(reply.clone());
        gets_behind_parse(&trip, reply);
        assert_eq!(trip.counts(), (2, 0));
    }
}

#[test]
fn a_session_that_is_ended_with_its_read_is_not_for_the_primary() {
    let errors = [("25P04", "transaction timeout"), ("57P01", "administrator command")];
    for (way, (code, words)) in WAYS.into_iter().flat_map(|way| errors.map(|it| (way, it))) {
        let trip = Trip::begun(way);
        let reply = [begins(&trip), vec![fatal(code, words)]].concat();
        trip.standby.answers(reply.clone());
        gets_behind_parse(&trip, reply);
        assert!(trip.scene.alice.is_closed());
        assert_eq!(trip.counts(), (2, 0));
    }
}

#[test]
fn a_timeout_in_front_of_the_reply_is_the_client_s() {
    for way in WAYS {
        let trip = Trip::begun(way);
        trip.scene.alice.sends(way.request("2"));
        let answered = trip.standby.forgets() != way.sent("2");
        trip.standby.answers([fatal("25P04", "transaction timeout")]);
        let parsed = answered.then(parse_complete);
        trip.scene.alice.gets(parsed.into_iter().chain([fatal("25P04", "transaction timeout")]));
        assert!(trip.scene.alice.is_closed());
        trip.scene.server.gets_nothing();
    }
}

#[test]
fn a_read_whose_session_ends_in_front_of_the_reply_runs_on_the_primary() {
    for way in WAYS {
        let trip = Trip::begun(way);
        trip.scene.alice.sends(way.request("2"));
        trip.standby.forgets();
        trip.standby.answers([fatal("57P01", "administrator command")]);
        trip.runs_on_the_primary();
        assert_eq!(trip.counts(), (2, 1));
        trip.scene.asks_server(&trip.scene.alice, "3", "three");
    }
}

/// Alice gets a reply of the standby, in front of which Refrain may have answered her Parse, and
/// the primary hears of nothing.
#[track_caller]
fn gets_behind_parse(trip: &Trip, reply: Vec<Line>) {
    let way = trip.scene.way;
    let answered = way == Way::Unnamed && reply.first() != Some(&parse_complete());
    trip.scene.alice.gets(answered.then(parse_complete).into_iter().chain(reply));
    trip.scene.server.gets_nothing();
}

#[test]
fn what_came_on_its_own_is_not_taken_back() {
    let alone = [notice("so"), parameter("is_superuser", "off")];
    for (way, alone) in WAYS.into_iter().flat_map(|way| alone.clone().map(|it| (way, it))) {
        let trip = Trip::begun(way);
        let ending = [alone, error("40001", "conflict with recovery"), ready()];
        let reply = [begins(&trip), ending.to_vec()].concat();
        trip.standby.answers(reply.clone());
        gets_behind_parse(&trip, reply);
    }
}

#[test]
fn a_row_of_which_a_piece_was_sent_is_not_taken_back() {
    for way in WAYS {
        let trip = Trip::begun(way);
        let reply = [begins(&trip), vec![error("40001", "conflict"), ready()]].concat();
        let bytes: Vec<u8> = reply.iter().flat_map(|line| line.bytes.clone()).collect();
        let ending: usize = reply[reply.len() - 2..].iter().map(|line| line.bytes.len()).sum();
        let (piece, rest) = bytes.split_at(bytes.len() - ending - 2);
        trip.standby.sends_bytes(piece);
        trip.standby.sends_bytes(rest);
        gets_behind_parse(&trip, reply);
    }
}

#[test]
fn a_read_with_a_limit_of_rows_has_it_on_the_primary() {
    let trip = Trip::begun(Way::Named);
    let request = |name| [bind_value("", name, "2"), execute_rows("", 1), sync()];
    trip.scene.alice.sends(request("s"));
    trip.standby.gets(request("~1"));
    trip.standby.answers([bind_complete(), row(&["1"]), error("40001", "conflict"), ready()]);
    trip.scene.server.gets(request("~1"));
    let reply = [bind_complete(), row(&["1"]), suspended(), ready()];
    trip.scene.server.answers(reply.clone());
    trip.scene.alice.gets(reply);
}

#[test]
fn a_client_that_is_away_is_cancelled_where_it_is() {
    let trip = Trip::begun(Way::Simple);
    let Scene { alice, server, .. } = &trip.scene;
    alice.sends(Way::Simple.request("2"));
    trip.standby.forgets();
    trip.standby.answers([error("57014", "canceling statement due to user request"), ready()]);
    alice.gets([error("57014", "canceling statement due to user request"), ready()]);
    server.gets_nothing();
}

#[test]
fn a_read_that_a_standby_refuses_behind_its_answer_runs_on_the_primary() {
    for way in WAYS {
        for pieces in [1, 2] {
            let trip = asks_behind_a_write(way);
            for piece in replayed("0/3000200", "1").chunks(4 / pieces) {
                trip.standby.answers(piece.to_vec());
            }
            let words = "cannot access temporary or unlogged relations during recovery";
            trip.standby.answers([error("0A000", words), ready()]);
            trip.comes_back("1", "two");
        }
    }
}

#[test]
fn a_read_of_a_standby_that_goes_behind_its_answer_runs_on_the_primary() {
    for way in WAYS {
        let trip = asks_behind_a_write(way);
        trip.standby.answers(replayed("0/3000200", "1"));
        trip.standby.breaks();
        trip.comes_back("1", "two");
    }
}

#[test]
fn what_a_standby_parsed_that_was_too_late_is_parsed_anew() {
    for proof in [replayed("0/30000FF", "1"), vec![error("57014", "no time"), ready()]] {
        let trip = Trip::connected(Way::Named);
        let Scene { alice, talk, .. } = &trip.scene;
        alice.sends(Way::Named.request("1"));
        let sent = Way::Named.sent("1");
        let given = [parse("~1", READ), describe_statement("~1")];
        trip.standby.gets([&[asked()], &given[..], &sent].concat());
        trip.standby.answers(proof);
        trip.comes_back("1", "one");
        trip.standby.answers([parse_complete(), parameters(&[23]), columns(&["a"])]);
        trip.standby.answers(Way::Named.reply("one"));
        talk.waits(PAUSE * 11);
        alice.sends(Way::Named.request("1"));
        let anew = [asked(), close_statement("~1")];
        trip.standby.gets([&anew, &given[..], &sent].concat());
    }
}

#[test]
fn a_read_whose_columns_are_others_on_a_standby_runs_on_the_primary() {
    let trip = Trip::connected(Way::Named);
    trip.scene.alice.sends(Way::Named.request("1"));
    trip.standby.forgets();
    trip.standby.answers(replayed("0/3000100", "1"));
    trip.standby.answers([parse_complete(), parameters(&[23]), columns(&["a", "b"])]);
    // Nothing is known of the primary's copies: they have the name that they had.
    trip.comes_back("1", "one");
    trip.standby.answers(Way::Named.reply("one"));
    trip.scene.asks_server(&trip.scene.alice, "1", "one");
    assert_eq!(trip.counts(), (1, 1));
}

#[test]
fn a_connection_is_closed_that_may_have_begun_with_old_defaults() {
    let Trip { scene, standby } = Trip::begun(Way::Simple);
    let alter = "alter role u set search_path = s";
    scene.alice.asks(&scene.server, alter, [complete("ALTER ROLE"), ready()]);
    // All are connected anew, and the standby has not replayed the change when that one is.
    scene.talk.servers_report("in_hot_standby", "off");
    scene.alice.sends(Way::Simple.request("0"));
    let scene = Scene { server: scene.talk.server(3), ..scene };
    scene.server_answers(&scene.alice, "0", "zero");
    scene.talk.waits(PAUSE);
    assert!(standby.is_closed());
    let scene = scene.becomes_known();
    scene.asks_server(&scene.alice, "0", "zero");
    primary_says(&scene, "0/3000200");
    scene.talk.servers_report("in_hot_standby", "on");
    scene.asks_server(&scene.alice, "0", "zero");
    // Here both hosts count as standbys, and servers are connected to them in turn. The next
    // session of each standby begins behind the change; but one host has two standbys.
    let way = Way::Simple;
    for (number, started) in [(4, "11"), (5, "12"), (6, "13")] {
        let standby = scene.talk.server(number);
        scene.alice.sends(way.request("1"));
        standby.gets([vec![asked()], way.sent("1")].concat());
        standby.answers(replayed_by(started, "0/3000200", "1"));
        scene.server_answers(&scene.alice, "1", "one");
        standby.answers(way.reply("another"));
        assert!(standby.is_closed());
        scene.asks_server(&scene.alice, "1", "one");
    }
    let standby = scene.talk.server(7);
    scene.alice.sends(way.request("1"));
    standby.gets([vec![asked()], way.sent("1")].concat());
    standby.answers(replayed_by("12", "0/3000200", "1")).answers(way.reply("one"));
    scene.alice.gets(way.reply("one"));
    let trip = Trip { standby, scene };
    trip.visits(&trip.scene.alice, "2", "two");
}

#[test]
fn a_cancel_that_comes_before_the_answer_is_for_the_read_wherever_it_runs() {
    for late in [false, true] {
        let trip = asks_behind_a_write(Way::Simple);
        let Scene { alice, server, talk, .. } = &trip.scene;
        cancels(talk, alice);
        trip.standby.answers(replayed(if late { "0/30001FF" } else { "0/3000200" }, "1"));
        if late {
            server.gets(Way::Simple.sent("1"));
            trip.standby.answers(Way::Simple.reply("one"));
        }
        let cancelled = if late { server } else { &trip.standby };
        let pid = if late { 1 } else { 2 };
        talk.cancel(1).gets_bytes(&cancel_request(pid, b"key!").bytes).ends_stream();
        cancelled.answers(canceled());
        alice.gets(canceled());
        talk.waits(PAUSE);
    }
}

#[test]
fn a_standby_is_asked_again_once_the_primary_is_further() {
    let trip = Trip::begun(Way::Simple);
    trip.scene.talk.waits(PAUSE);
    trip.scene.asks_server(&trip.scene.bob, "2", "two");
    primary_says(&trip.scene, "0/3000300");
    // Alice has written nothing, and what there was ten seconds ago the standby has.
    trip.visits(&trip.scene.alice, "2", "two");
    trip.scene.bob.sends(Way::Simple.request("2"));
    trip.standby.gets([vec![asked()], Way::Simple.sent("2")].concat());
}
