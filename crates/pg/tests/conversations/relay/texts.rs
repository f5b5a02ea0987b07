//! Texts: query strings that differ in literals and comments are one statement, where replies are
//! kept.

use crate::relay::writes::{OTHER, with_known_write};
use crate::step::answer::Way;

#[test]
fn a_write_is_known_whatever_its_literals_and_comments() {
    let scene = with_known_write(Way::Simple);
    for text in ["update u set a = 77", "/* shop */ update u set a = 5 -- done", OTHER] {
        scene.does(&scene.bob, text, "UPDATE 1");
        scene.hits(&scene.alice, "1", "one");
    }
    for text in ["update u set a = '77'", "update u set b = 2", "update \"U\" set a = 2"] {
        scene.does(&scene.bob, text, "UPDATE 1");
        scene.asks_server(&scene.alice, "1", "one");
    }
}

#[test]
fn a_write_of_very_many_literals_may_change_anything() {
    let scene = with_known_write(Way::Simple);
    let text = format!("insert into u values {}(1)", "(1),".repeat(5000));
    for _ in 0..6 {
        scene.does(&scene.bob, &text, "INSERT 0 5001");
        scene.asks_server(&scene.alice, "1", "one");
    }
    scene.talk.waits(std::time::Duration::from_secs(2));
    assert_eq!(scene.talk.read_cases(), 0);
}
