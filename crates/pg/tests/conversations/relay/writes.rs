//! Writes, where replies are kept: what they make wrong is given to nobody once their client may
//! know of them.

use std::time::Duration;

use refrain_pg::requests::TextFindings;
use refrain_sql::effect::{Effect, Target, Way as Change};
use refrain_sql::reads::{Mentioned, Objection};

use crate::step::answer::{READ, READS, RULE, SECOND, Scene, UPDATE, WAYS, Way};
use crate::step::reads::{answer, question, refusal};
use crate::talk::*;

/// A write to another table than that of the read.
pub(crate) const OTHER: &str = "update u set a = 2";

/// Does this write so often that Refrain looks at it.
fn repeats(scene: &Scene, text: &str) {
    (0..6).for_each(|_| scene.does(&scene.bob, text, "UPDATE 1"));
}

/// Has Refrain find out what the write may change that is due: a server says this.
fn changes(scene: &Scene, rows: &[&str]) {
    let rows: Vec<[&str; 1]> = rows.iter().map(|row| [*row]).collect();
    let rows: Vec<&[&str]> = rows.iter().map(|row| &row[..]).collect();
    asks_about_changes(scene, answer(&rows));
}

/// Has Refrain ask what the write may change that is due: a server answers this.
fn asks_about_changes(scene: &Scene, reply: Vec<Line>) {
    scene.talk.waits(SECOND);
    let targets = vec![Target { relation: "\"u\"".to_owned(), way: Change::Update }];
    let effect = Effect::Rows { targets, mentioned: Mentioned::default() };
    let found = TextFindings { read: Err(Objection::Form), effect: Some(effect) };
    scene.talk.read(scene.talk.read_case(), found);
    scene.server.gets(question("(VALUES (0,'s',''),(0,'u','\"u\"')),")).answers(reply);
}

/// A scene in which a write to another table is known as one.
pub(crate) fn with_known_write(way: Way) -> Scene {
    let scene = Scene::known(way, &[RULE]);
    repeats(&scene, OTHER);
    changes(&scene, &["0 writes 8000 public.u"]);
    scene.asks_server(&scene.alice, "1", "one");
    scene
}

#[test]
fn a_write_to_another_table_voids_nothing() {
    for way in WAYS {
        let scene = with_known_write(way);
        scene.does(&scene.bob, OTHER, "UPDATE 1");
        scene.hits(&scene.alice, "1", "one");
        // The same text as a prepared statement is another one, of which nothing is known.
        scene.bob.sends([parse("", OTHER), bind("", ""), execute(""), sync()]);
        scene.server.forgets();
        let done = [parse_complete(), bind_complete(), complete("UPDATE 1"), ready()];
        scene.server.answers(done);
        scene.bob.forgets();
        scene.asks_server(&scene.alice, "1", "one");
        scene.hits(&scene.alice, "1", "one");
    }
}

#[test]
fn a_write_voids_the_tables_that_the_catalog_names_and_all_if_it_cannot_say() {
    for (rows, voids) in [
        (&["0 writes 8000 public.u"][..], false),
        (&[][..], false),
        (&["0 writes 8000 public.u", "0 writes 7000 public.t"][..], true),
        // Another table has got the name, or the table another name.
        (&["0 writes 9000 public.t"][..], true),
        (&["0 writes 7000 public.v"][..], true),
        (&["0 anything"][..], true),
        (&["0 missing"][..], true),
        (&["-1 cast"][..], true),
        (&["0 what is that"][..], true),
    ] {
        let scene = Scene::known(Way::Simple, &[RULE]);
        repeats(&scene, OTHER);
        changes(&scene, rows);
        scene.asks_server(&scene.alice, "1", "one");
        scene.does(&scene.bob, OTHER, "UPDATE 1");
        match voids {
            true => scene.goes_to_a_server(&scene.alice, "1"),
            false => scene.hits(&scene.alice, "1", "one"),
        }
    }
}

#[test]
fn a_write_of_which_a_server_could_not_say_what_it_changes_is_asked_about_again_soon() {
    for reply in [refusal("55P03"), refusal("42501"), answer(&[&["0 missing"]])] {
        let scene = Scene::known(Way::Simple, &[RULE]);
        repeats(&scene, OTHER);
        asks_about_changes(&scene, reply);
        scene.does(&scene.bob, OTHER, "UPDATE 1");
        scene.talk.waits(SECOND * 5);
        changes(&scene, &["0 writes 8000 public.u"]);
        scene.asks_server(&scene.alice, "1", "one");
        scene.does(&scene.bob, OTHER, "UPDATE 1");
        scene.hits(&scene.alice, "1", "one");
    }
}

#[test]
fn a_write_whose_tables_are_not_known_yet_voids_all() {
    let scene = Scene::known(Way::Simple, &[RULE]);
    for _ in 0..4 {
        scene.asks_server(&scene.alice, "1", "one");
        scene.does(&scene.bob, OTHER, "UPDATE 1");
    }
    scene.goes_to_a_server(&scene.alice, "1");
}

#[test]
fn a_block_voids_all_that_its_commands_may_change() {
    for way in WAYS {
        let scene = with_known_write(way);
        scene.bob.opens_block(&scene.server);
        scene.bob.asks(&scene.server, OTHER, [complete("UPDATE 1"), ready_in_block()]);
        scene.bob.asks(&scene.server, UPDATE, [complete("UPDATE 1"), ready_in_block()]);
        scene.bob.commits(&scene.server);
        scene.goes_to_a_server(&scene.alice, "1");
    }
}

#[test]
fn after_a_change_of_the_schema_a_write_may_change_anything_until_it_is_asked_about_again() {
    let scene = with_known_write(Way::Simple);
    let trigger = "create trigger g after update on u execute function f()";
    scene.does(&scene.alice, trigger, "CREATE TRIGGER");
    scene.talk.waits(SECOND);
    let mentioned = Mentioned { relations: vec!["\"t\"".to_owned()], ..Mentioned::default() };
    while scene.talk.read_cases() > 0 {
        let case = scene.talk.read_case();
        if case.text().starts_with(b"select") {
            scene.talk.read(case, Ok(mentioned.clone()));
        }
    }
    scene.server.forgets();
    scene.server.answers(answer(&[&["0 reads 7000 public.t"]]));
    scene.asks_server(&scene.alice, "1", "one");
    scene.does(&scene.bob, OTHER, "UPDATE 1");
    scene.asks_server(&scene.alice, "1", "two");
    scene.hits(&scene.alice, "1", "two");
}

#[test]
fn a_write_that_is_under_way_as_the_schema_changes_voids_all() {
    for way in WAYS {
        // The trigger that has come fires, though nobody knows of it yet.
        let scene = with_known_write(way);
        scene.bob.sends([query(OTHER)]);
        scene.server.gets([query(OTHER)]);
        let trigger = "create trigger g after update on u execute function f()";
        scene.alice.sends([query(trigger)]);
        let second = scene.talk.server(2);
        second.gets([query(trigger)]);
        scene.server.answers([complete("UPDATE 1"), ready()]);
        scene.bob.forgets();
        scene.goes_to_a_server(&scene.bob, "1");
    }
}

/// Alice reads, and one of two servers gets the read and answers it.
#[track_caller]
fn reads_beside(scene: &Scene, found: &str) {
    scene.alice.sends(scene.way.request("1"));
    let second = scene.talk.server(2);
    let asked = [&scene.server, &second].into_iter().map(|server| (server, server.forgets()));
    let asked = asked.collect::<Vec<_>>().into_iter().find(|(_, got)| !got.is_empty());
    let Some((server, mut got)) = asked else { panic!("no server gets the read") };
    if got.starts_with(&[parse("~1", READ), describe_statement("~1")]) {
        server.answers([parse_complete(), parameters(&[23]), columns(&["a"])]);
        got.drain(..2);
    }
    let whole = got == scene.way.sent("1");
    server.answers(if whole { scene.way.reply(found) } else { scene.way.answered(found) });
    scene.alice.gets(scene.way.reply(found));
}

#[test]
fn from_when_a_write_is_sent_until_it_is_answered_nothing_is_given_or_kept() {
    for way in WAYS {
        let scene = Scene::known(way, &[RULE]);
        scene.asks_server(&scene.alice, "1", "one");
        scene.hits(&scene.alice, "1", "one");
        scene.bob.sends([query(UPDATE)]);
        scene.server.gets([query(UPDATE)]);
        // PostgreSQL may have told others already: by a notification, say.
        reads_beside(&scene, "two");
        reads_beside(&scene, "two");
        scene.server.answers([complete("UPDATE 1")]);
        scene.bob.gets([complete("UPDATE 1")]);
        reads_beside(&scene, "two");
        scene.server.answers([ready()]);
        scene.bob.gets([ready()]);
        reads_beside(&scene, "two");
        scene.hits(&scene.alice, "1", "two");
    }
}

/// The texts that may commit a block, and how they may be sent.
fn commits() -> Vec<Vec<Line>> {
    let extended = |text: &str| vec![parse("", text), bind("", ""), execute(""), sync()];
    let texts = [
        "commit",
        "END;",
        "prepare transaction 'x'",
        "/* so */ commit and chain",
        "select 1; commit",
        "rollback; begin; update t set a = 3; commit",
    ];
    let simple = texts.iter().map(|text| vec![query(text)]);
    simple.chain(texts[..3].iter().map(|text| extended(text))).collect()
}

#[test]
fn a_block_is_in_doubt_from_when_a_text_is_sent_that_may_commit_it() {
    for sent in commits() {
        let scene = Scene::known(Way::Simple, &[RULE]);
        scene.asks_server(&scene.alice, "1", "one");
        scene.bob.opens_block(&scene.server);
        scene.bob.asks(&scene.server, UPDATE, [complete("UPDATE 1"), ready_in_block()]);
        scene.bob.sends([parse("", UPDATE), bind("", ""), execute(""), sync()]);
        scene.server.forgets();
        let done = [parse_complete(), bind_complete(), complete("UPDATE 1"), ready_in_block()];
        scene.server.answers(done);
        scene.bob.forgets();
        scene.hits(&scene.alice, "1", "one");
        scene.bob.sends(sent.clone());
        scene.server.gets(sent.clone());
        reads_beside(&scene, "two");
        reads_beside(&scene, "two");
        let heads = if sent.len() > 1 { vec![parse_complete(), bind_complete()] } else { vec![] };
        scene.server.answers([heads, vec![complete("COMMIT"), ready()]].concat());
        scene.bob.forgets();
        reads_beside(&scene, "two");
        scene.hits(&scene.alice, "1", "two");
    }
}

#[test]
fn a_write_under_one_sync_with_a_begin_is_in_doubt_until_the_block_is_known_to_be_open() {
    let scene = Scene::known(Way::Simple, &[RULE]);
    scene.asks_server(&scene.alice, "1", "one");
    scene.bob.sends([query("begin"), query(UPDATE)]);
    scene.server.gets([query("begin"), query(UPDATE)]);
    reads_beside(&scene, "one");
    scene.server.answers([complete("BEGIN"), ready_in_block()]);
    reads_beside(&scene, "one");
    scene.server.answers([complete("UPDATE 1"), ready_in_block()]);
    scene.bob.forgets();
    reads_beside(&scene, "one");
    scene.hits_beside(&scene.alice, "1", "one");
    // The commit is sent, and a write behind it: the block is over when that write takes effect.
    scene.bob.sends([query("commit"), query(UPDATE)]);
    scene.server.gets([query("commit"), query(UPDATE)]);
    scene.server.answers([complete("COMMIT"), ready()]);
    scene.bob.forgets();
    reads_beside(&scene, "two");
    reads_beside(&scene, "two");
    scene.server.answers([complete("UPDATE 1"), ready()]);
    scene.bob.forgets();
    reads_beside(&scene, "two");
    scene.hits_beside(&scene.alice, "1", "two");
}

#[test]
fn a_write_in_a_block_voids_when_the_block_ends() {
    for way in WAYS {
        let scene = Scene::known(way, &[RULE]);
        scene.asks_server(&scene.alice, "1", "one");
        scene.bob.opens_block(&scene.server);
        scene.bob.asks(&scene.server, UPDATE, [complete("UPDATE 1"), ready_in_block()]);
        scene.hits(&scene.alice, "1", "one");
        scene.bob.commits(&scene.server);
        scene.asks_server(&scene.alice, "1", "two");
        scene.hits(&scene.bob, "1", "two");
    }
}

#[test]
fn whatever_may_write_voids() {
    for text in [
        "insert into t values (1)",
        "with x as (delete from t returning a) select * from x",
        "select f(1)",
        "call p()",
        "do $$ begin end $$",
        "truncate t",
        "create table u ()",
        "commit prepared 'x'",
        "execute s",
        "explain analyze delete from t",
    ] {
        let scene = Scene::known(Way::Unnamed, &[RULE]);
        scene.asks_server(&scene.alice, "1", "one");
        scene.bob.sends([query(text)]);
        scene.server.gets([query(text)]).answers([complete("X"), ready()]);
        scene.bob.gets([complete("X"), ready()]);
        scene.bob.forgets();
        scene.goes_to_a_server(&scene.alice, "1");
    }
    for text in ["begin", "commit", "show all", "select 1", "listen x"] {
        let scene = Scene::known(Way::Unnamed, &[RULE]);
        scene.asks_server(&scene.alice, "1", "one");
        scene.bob.sends([query(text)]);
        scene.server.gets([query(text)]).answers([complete("X"), ready()]);
        scene.bob.gets([complete("X"), ready()]);
        scene.hits(&scene.alice, "1", "one");
    }
}

#[test]
fn a_prepared_write_and_a_function_call_void() {
    let scene = Scene::known(Way::Simple, &[RULE]);
    scene.asks_server(&scene.alice, "1", "one");
    scene.bob.sends([parse("", UPDATE), bind("", ""), execute(""), sync()]);
    scene.server.gets([parse("", UPDATE), bind("", ""), execute(""), sync()]);
    let done = [parse_complete(), bind_complete(), complete("UPDATE 1"), ready()];
    scene.server.answers(done.clone());
    scene.bob.gets(done);
    scene.asks_server(&scene.alice, "1", "one");
    scene.bob.sends([function_call(7)]);
    scene.server.gets([function_call(7)]).answers([function_result(), ready()]);
    scene.bob.gets([function_result(), ready()]);
    scene.asks_server(&scene.alice, "1", "one");
    scene.hits(&scene.bob, "1", "one");
}

#[test]
fn nothing_is_kept_for_a_while_after_a_write_of_unknown_outcome() {
    for way in WAYS {
        // S7: the server goes before it has told how the write ended.
        let scene = Scene::known(way, &[RULE]);
        scene.asks_server(&scene.alice, "1", "one");
        scene.bob.sends([query(UPDATE)]);
        scene.server.gets([query(UPDATE)]).breaks();
        scene.bob.forgets();
        let second = {
            scene.alice.sends(way.request("1"));
            scene.talk.server(2)
        };
        if way == Way::Named {
            let given = [parse("~1", READ), describe_statement("~1")];
            second.gets([&given[..], &way.sent("1")].concat());
            second.answers([parse_complete(), parameters(&[23]), columns(&["a"])]);
        } else {
            second.gets(way.sent("1"));
        }
        second.answers(way.reply("one"));
        scene.alice.gets(way.reply("one"));
        let scene = Scene { server: second, ..scene };
        scene.asks_server(&scene.alice, "1", "one");
        scene.talk.waits(3 * SECOND);
        scene.asks_server(&scene.alice, "1", "two");
        scene.hits(&scene.alice, "1", "two");
    }
}

#[test]
fn with_consistency_by_time_writes_void_nothing_and_rights_do() {
    for way in WAYS {
        let scene = Scene::known(way, &[&format!("{RULE}\nconsistency = \"ttl\"")]);
        scene.asks_server(&scene.alice, "1", "one");
        scene.does(&scene.alice, UPDATE, "UPDATE 1");
        scene.hits(&scene.alice, "1", "one");
        // S12.
        scene.does(&scene.alice, "revoke select on t from u", "REVOKE");
        scene.goes_to_a_server(&scene.alice, "1");
    }
}

#[test]
fn with_consistency_by_session_a_client_reads_what_it_has_written() {
    for way in WAYS {
        let scene = Scene::known(way, &[&format!("{RULE}\nconsistency = \"session\"")]);
        scene.asks_server(&scene.alice, "1", "one");
        scene.does(&scene.bob, UPDATE, "UPDATE 1");
        scene.hits(&scene.alice, "1", "one");
        scene.talk.waits(Duration::from_millis(1));
        scene.asks_server(&scene.bob, "1", "two");
        scene.hits(&scene.bob, "1", "two");
        scene.hits(&scene.alice, "1", "two");
    }
}

#[test]
fn a_client_that_moves_still_reads_what_it_has_written() {
    let rule = format!("{RULE}\nconsistency = \"session\"");
    let scene = Scene::new_on(2, Way::Simple, &[&rule]).becomes_known();
    scene.asks_server(&scene.bob, "1", "one");
    scene.does(&scene.alice, UPDATE, "UPDATE 1");
    scene.talk.gives_clients(0, 1);
    assert_eq!(scene.alice.core(), 1);
    scene.goes_to_a_server(&scene.alice, "1");
}

/// A scene in which a server has named these words behind which functions hide.
fn hiding(way: Way, words: &[&str]) -> Scene {
    let scene = Scene::new(way, &[RULE]);
    scene.talk.waits(SECOND);
    scene.is_asked_about(&[&[READS], words].concat());
    scene
}

#[test]
fn a_text_with_a_word_that_hides_a_write_voids_all_each_time() {
    for way in WAYS {
        let scene = hiding(way, &["-1 hides w v", "-1 hides w @@@", "-1 hides u r"]);
        for text in ["select c from v", "table V", "explain select u.v from u", "select 1 @@@ 2"] {
            scene.asks_server(&scene.alice, "1", "one");
            scene.hits(&scene.alice, "1", "one");
            scene.does(&scene.bob, text, "SELECT 1");
        }
        scene.asks_server(&scene.alice, "1", "one");
        for text in ["select c from w", "select r from u", "select 'v'", "show v", "select \"V\""] {
            scene.does(&scene.bob, text, "SELECT 1");
            scene.hits(&scene.alice, "1", "one");
        }
    }
}

#[test]
fn a_text_with_a_word_that_hides_a_volatile_function_is_not_kept() {
    for way in WAYS {
        for word in ["-1 hides u b", "-1 hides w t", "-1 hides u =", "-1 hides w A"] {
            let scene = hiding(way, &[word]);
            let kept = word.ends_with('A');
            scene.asks_server(&scene.alice, "1", "one");
            match kept {
                true => scene.hits(&scene.alice, "1", "one"),
                false => scene.asks_server(&scene.alice, "1", "two"),
            }
        }
    }
}

#[test]
fn words_that_come_past_refrain_count_from_the_next_question_on() {
    for way in WAYS {
        let scene = Scene::known(way, &["ttl = \"10min\""]);
        scene.asks_server(&scene.alice, "1", "one");
        let mut seconds = 0;
        while scene.talk.read_cases() == 0 {
            scene.hits(&scene.alice, "1", "one");
            scene.talk.waits(SECOND);
            seconds += 1;
        }
        assert!((59..=62).contains(&seconds), "{seconds}");
        scene.is_asked_about(&[READS, "-1 hides u b"]);
        scene.asks_server(&scene.alice, "1", "two");
        scene.asks_server(&scene.alice, "1", "three");
    }
}
