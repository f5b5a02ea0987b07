//! The units of scripts that are about settings: they are set, reset and discarded.

use crate::rng::Rng;
use crate::script::Script;

const ZONES: [&str; 4] = ["Asia/Tokyo", "Europe/Berlin", "UTC", "US/Pacific"];

/// A name of a statement that clients use elsewhere too.
const NAME: &str = "s1";

impl Script {
    pub(crate) fn reported(&mut self, rng: &mut Rng) {
        let zone = *rng.pick(&ZONES);
        let local = if self.in_block && rng.chance(300) { "local " } else { "" };
        let text = match rng.below(8) {
            0..=3 => format!("set {local}timezone to '{zone}'"),
            4 => "set datestyle to 'german'".to_owned(),
            5 => "set datestyle to 'ISO, MDY'".to_owned(),
            6 => format!("set application_name to '{}'", self.tag()),
            _ => "set timezone to 'bad'".to_owned(),
        };
        self.ask(&text, rng);
        if rng.chance(500) {
            self.say.query("show timezone");
        }
    }

    pub(crate) fn unreported(&mut self, rng: &mut Rng) {
        let size = rng.range(1, 3);
        let text = match rng.below(7) {
            0..=2 => format!("set work_mem to '{size}MB'"),
            3 => "set my.setting to 'mine'; select current_setting('my.setting')".to_owned(),
            4 => "reset work_mem".to_owned(),
            5 => "set extra_float_digits to '3'".to_owned(),
            _ => format!("select set_config('work_mem','{size}MB',false)"),
        };
        if text.contains(';') {
            self.say.query(&text);
        } else {
            self.ask(&text, rng);
        }
        if rng.chance(700) {
            self.say.query("show work_mem");
        }
    }

    pub(crate) fn discards(&mut self, rng: &mut Rng) {
        // PostgreSQL refuses DISCARD ALL behind other commands of a pipeline.
        let all = *rng.pick(&["deallocate all", "reset all", "discard all", "discard all"]);
        if rng.chance(500) {
            self.say.query(all);
            return;
        }
        self.say.parse("", all).bind("", "", &[]).execute("", 0);
        match rng.below(4) {
            0 => {
                let tag = self.tag();
                let text = "select $1, 'x'::date, current_setting('timezone')";
                self.say.parse("", text).bind("", "", &[&tag]).execute("", 0);
            }
            1 if all == "discard all" => {
                self.say.parse(NAME, "select 'x'::date").close(NAME);
                self.say.parse("", all).bind("", "", &[]).execute("", 0);
            }
            _ => {}
        }
        self.say.sync();
    }

    /// Writes a text as a Query or as extended messages.
    pub(crate) fn ask(&mut self, text: &str, rng: &mut Rng) {
        if rng.chance(700) {
            self.say.query(text);
        } else {
            self.say.parse("", text).bind("", "", &[]).execute("", 0).sync();
        }
    }
}
