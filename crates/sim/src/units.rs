//! The units of scripts: one function for each feature, and the choice of the next unit.

use refrain_pg_wire::tag::{self, front};

use crate::feature::{FEATURES, Feature};
use crate::rng::Rng;
use crate::say::Say;
use crate::script::{Script, Unit};

/// Texts that clients share.
const SHARED: [&str; 8] = [
    "select $1",
    "select $1, 'one'",
    "select $1, 'two', $2",
    "select 'x'::date, $1",
    "select current_setting('work_mem'), $1",
    "insert into t values ($1)",
    "select generate_series(1,3), $1",
    "select $1, current_setting('timezone')",
];
/// Texts that clients prepare once and run often. The third takes as long as its parameter says,
/// and the last two are no reads, though nothing in the text of the last but one says so.
const OFTEN: [&str; 6] = [
    "select $1, 'often'",
    "select current_setting('work_mem'), $1",
    "select $1, pg_sleep($2)",
    "select generate_series(1,20), $1",
    "select nextval('often'), $1",
    "insert into often values ($1)",
];
const NAMES: [&str; 5] = ["s1", "s2", "s3", "S_4", "a_name_that_does_not_fit_in_line_5"];

impl Script {
    /// Returns the next unit.
    pub fn unit(&mut self, rng: &mut Rng) -> Unit {
        if let Some(bytes) = self.later.take() {
            return Unit { bytes, asked: Vec::new(), waits: true };
        }
        let total: u64 = self.weights.iter().sum();
        let mut at = rng.below(total);
        let mut feature = Feature::Simple;
        for (of, weight) in FEATURES.iter().zip(self.weights) {
            if at < weight {
                feature = *of;
                break;
            }
            at -= weight;
        }
        let turns = self.begins_or_ends_block(feature, rng);
        self.write(if turns { Feature::Blocks } else { feature }, rng);
        let waits = self.habits.patient || self.later.is_some() || rng.chance(600);
        let asked = std::mem::take(&mut self.asked);
        Unit { bytes: std::mem::take(&mut self.say.0), asked, waits }
    }

    /// Returns a unit that ends an open transaction block.
    pub fn end_block(&mut self, rng: &mut Rng) -> Unit {
        self.in_block = false;
        self.locked = None;
        self.say.query(if rng.chance(500) { "commit" } else { "rollback" });
        Unit { bytes: std::mem::take(&mut self.say.0), asked: Vec::new(), waits: true }
    }

    fn write(&mut self, feature: Feature, rng: &mut Rng) {
        match feature {
            Feature::Simple => self.simple(rng),
            Feature::Errors => self.errors(rng),
            Feature::Blocks => self.block(rng),
            Feature::Reported => self.reported(rng),
            Feature::Unreported => self.unreported(rng),
            Feature::Unnamed => self.unnamed(rng),
            Feature::Named => self.named(rng),
            Feature::Pipelines => self.pipeline(rng),
            Feature::Portals => self.portals(rng),
            Feature::Flushes => self.flushes(rng),
            Feature::Copies => self.copies(rng),
            Feature::SqlPrepare => self.sql_prepare(rng),
            Feature::Discards => self.discards(rng),
            Feature::Listens => self.listens(rng),
            Feature::Objects => self.objects(rng),
            Feature::Calls => self.calls(rng),
            Feature::Leaves => self.leaves(rng),
            Feature::Sleeps => self.sleeps(rng),
            Feature::Bulk => self.bulk(rng),
            Feature::Definitions => self.definitions(rng),
            Feature::Reads => self.reads(rng),
            Feature::Rows => self.rows(rng),
        }
    }

    /// Returns a text that clients share.
    fn shared(&self, rng: &mut Rng) -> &'static str {
        let text = *rng.pick(&SHARED);
        if text.contains("::date") && !self.freezes { SHARED[0] } else { text }
    }

    pub(crate) fn simple(&mut self, rng: &mut Rng) {
        let tag = self.tag();
        let text = match rng.below(6) {
            0..=2 => format!("select '{tag}'"),
            3 => format!("select '{tag}'; select 'more'; insert into t values ('{tag}')"),
            4 => {
                format!("select '{tag}', current_setting('timezone'), current_setting('work_mem')")
            }
            _ => String::new(),
        };
        self.say.query(&text);
    }

    pub(crate) fn errors(&mut self, rng: &mut Rng) {
        let tag = self.tag();
        let name = *rng.pick(&NAMES);
        match rng.below(9) {
            0 => self.say.query(&format!("select fail('{tag}')")),
            1 => self.say.query(&format!("selec '{tag}'")),
            2 => self.say.query(&format!("select '{tag}'; select fail('{tag}'); select 'not'")),
            3 => self.say.parse(name, &format!("selec '{tag}'")).bind("", name, &[]).sync(),
            4 => self.say.bind("", "nobody_has_this", &[&tag]).execute("", 0).sync(),
            5 => self.say.parse("", "select $1").bind("", "", &[]).execute("", 0).sync(),
            6 => {
                let fails = format!("select fail('{tag}')");
                self.say.parse("", &fails).bind("", "", &[]).execute("", 0);
                self.say.parse(name, "select $1").close(name).query("select 'skipped'").sync()
            }
            7 => self.say.describe(name).sync(),
            _ => self.say.execute("no_portal", 0).sync(),
        };
    }

    pub(crate) fn block(&mut self, rng: &mut Rng) {
        if self.in_block {
            self.in_block = false;
            self.locked = None;
            let end = *rng.pick(&["commit", "rollback"]);
            match rng.below(3) {
                0 => self.say.parse("", end).bind("", "", &[]).execute("", 0).sync(),
                _ => self.say.query(end),
            };
        } else if self.habits.blocks {
            self.in_block = true;
            self.opened_block = true;
            match rng.below(3) {
                0 => self.say.parse("", "begin").bind("", "", &[]).execute("", 0).sync(),
                _ => self.say.query("begin"),
            };
        }
        let tag = self.tag();
        self.say.query(&format!("select '{tag}'"));
    }

    /// Returns parameters for a shared text.
    fn parameters(&mut self, text: &str) -> Vec<String> {
        let count = if text.contains("$2") { 2 } else { 1 };
        (0..count).map(|_| self.tag()).collect()
    }

    pub(crate) fn unnamed(&mut self, rng: &mut Rng) {
        let text = self.shared(rng);
        let parameters = self.parameters(text);
        let parameters: Vec<&str> = parameters.iter().map(String::as_str).collect();
        self.say.parse("", text);
        if rng.chance(300) {
            self.say.describe("");
        }
        if rng.chance(300) {
            self.say.sync();
        }
        self.say.bind("", "", &parameters);
        if rng.chance(500) {
            self.say.about(front::DESCRIBE, tag::PORTAL, "");
        }
        self.say.execute("", 0).sync();
    }

    pub(crate) fn named(&mut self, rng: &mut Rng) {
        let name = *rng.pick(&NAMES);
        let text = self.shared(rng);
        match rng.below(8) {
            0 => drop(self.say.parse(name, text).sync()),
            1 => drop(self.say.parse(name, text).describe(name).sync()),
            2 => drop(self.say.close(name).parse(name, text).sync()),
            3 => drop(self.say.close(name).sync()),
            4 => drop(self.say.describe(name).sync()),
            _ => {
                // The number of parameters may not fit the statement: the server then refuses it.
                let parameters = self.parameters(text);
                let parameters: Vec<&str> = parameters.iter().map(String::as_str).collect();
                self.say.bind("", name, &parameters).execute("", 0).sync();
            }
        }
    }

    pub(crate) fn pipeline(&mut self, rng: &mut Rng) {
        for _ in 0..rng.range(2, 6) {
            let name = *rng.pick(&NAMES);
            let text = self.shared(rng);
            let parameters = self.parameters(text);
            let parameters: Vec<&str> = parameters.iter().map(String::as_str).collect();
            match rng.below(6) {
                0 => drop(self.say.parse(name, text)),
                1 => drop(
                    self.say
                        .close(name)
                        .parse(name, text)
                        .bind("", name, &parameters)
                        .execute("", 0),
                ),
                2 => drop(self.say.close(name)),
                3 => drop(self.say.parse("", text).bind("", "", &parameters).execute("", 0)),
                4 => drop(self.say.describe(name)),
                _ => drop(self.say.bind("", name, &parameters).execute("", 0)),
            }
            if rng.chance(400) {
                self.say.sync();
            }
            // A cancel request may hit what the engine adds behind a Parse, and a server then
            // ignores the Query.
            if rng.chance(60) && !self.habits.patient {
                let tag = self.tag();
                self.say.query(&format!("select '{tag}'"));
            }
        }
        self.say.sync();
    }

    pub(crate) fn portals(&mut self, rng: &mut Rng) {
        let tag = self.tag();
        let text = "select generate_series(1,5), $1";
        let portal = *rng.pick(&["", "p1", "p2"]);
        let rows = u32::try_from(rng.range(1, 6)).unwrap_or(1);
        self.say.parse("", text).bind(portal, "", &[&tag]).execute(portal, rows);
        if rng.chance(500) {
            self.say.execute(portal, rows);
        }
        if rng.chance(300) {
            self.say.sync().execute(portal, 2);
        }
        if rng.chance(500) {
            self.say.about(front::CLOSE, tag::PORTAL, portal);
        }
        self.say.sync();
    }

    pub(crate) fn flushes(&mut self, rng: &mut Rng) {
        let name = *rng.pick(&NAMES);
        let text = self.shared(rng);
        let parameters = self.parameters(text);
        let parameters: Vec<&str> = parameters.iter().map(String::as_str).collect();
        self.say.close(name).parse(name, text).flush().bind("", name, &parameters);
        if rng.chance(500) {
            self.say.flush();
        }
        self.say.execute("", 0).flush();
        // In half of the units the segment stays open for a while.
        let rest = Say::default().sync().0.clone();
        if rng.chance(500) {
            self.later = Some(rest);
        } else {
            self.say.sync();
        }
    }

    pub(crate) fn copies(&mut self, rng: &mut Rng) {
        let tag = self.tag();
        let extended = rng.chance(400);
        let mut data = Say::default();
        for line in 0..rng.below(4) {
            data.copy_data(&format!("{tag} {line}\n"));
        }
        data.copy_end(if rng.chance(250) { Some(&tag) } else { None });
        if extended {
            data.sync();
        }
        let text = if rng.chance(250) {
            format!("copy {tag} to stdout")
        } else {
            "copy t from stdin".to_owned()
        };
        let text = text.replace('-', "_");
        if extended {
            self.say.parse("", &text).bind("", "", &[]).execute("", 0);
            // A Sync before the data is skipped by COPY.
            let early = !self.habits.patient && !self.in_block && rng.chance(300);
            if early && text.ends_with("stdin") {
                self.say.sync();
            } else {
                self.say.flush();
            }
        } else {
            self.say.query(&text);
        }
        if text.ends_with("stdout") {
            if extended {
                self.say.sync();
            }
        } else if rng.chance(500) {
            self.later = Some(data.0);
        } else {
            self.say.0.extend_from_slice(&data.0);
        }
    }

    pub(crate) fn sql_prepare(&mut self, rng: &mut Rng) {
        let tag = self.tag();
        // Parse never uses these names: no proxy could know whether a name means the statement of
        // Parse or that of PREPARE.
        let name = *rng.pick(&["q1", "q2"]);
        let text = match rng.below(7) {
            0 | 1 => format!("prepare {name} as select $1, 'q'"),
            2 | 3 => format!("execute {name} ('{tag}')"),
            4 => format!("deallocate {name}"),
            5 => format!("execute {} ('{tag}')", rng.pick(&NAMES[..3])),
            _ => format!("deallocate {}", rng.pick(&NAMES[..3])),
        };
        self.say.query(&text);
    }

    pub(crate) fn listens(&mut self, rng: &mut Rng) {
        let tag = self.tag();
        let channel = format!("channel_{}", self.client);
        let text = match rng.below(5) {
            0 => format!("listen {channel}"),
            1 => "unlisten *".to_owned(),
            _ => format!("notify {channel}, '{tag}'"),
        };
        self.say.query(&text);
    }

    pub(crate) fn objects(&mut self, rng: &mut Rng) {
        let tag = self.tag();
        let text = match rng.below(10) {
            0 => "create temp table mine (x text)".to_owned(),
            1 | 2 => format!("select '{tag}' from mine"),
            3 => "drop table mine".to_owned(),
            4 => "discard temp".to_owned(),
            5 => format!("declare held cursor with hold for select generate_series(1,3), '{tag}'"),
            6 => "fetch all from held".to_owned(),
            7 => "close all".to_owned(),
            8 => format!("select pg_advisory_lock(1), '{tag}'"),
            _ => format!("select pg_advisory_unlock_all(), '{tag}'"),
        };
        self.say.query(&text);
    }

    pub(crate) fn calls(&mut self, rng: &mut Rng) {
        let tag = self.tag();
        let function = u32::from(!rng.chance(200));
        if rng.chance(300) {
            self.say.parse("", "select $1").bind("", "", &[&tag]).execute("", 0);
            self.say.call(function, &tag).sync();
        } else {
            self.say.call(function, &tag);
        }
    }

    /// Writes calls of functions that leave state in the session although the text does not say so.
    /// Each function leaves the same state at every call: the engine need not handle a function
    /// that leaves state only now and then.
    pub(crate) fn leaves(&mut self, rng: &mut Rng) {
        let tag = self.tag();
        let what = *rng.pick(&["nothing", "lock", "temp", "listen", "setting"]);
        let text = match rng.below(4) {
            0 => format!("select '{tag}', current_setting('work_mem')"),
            1 => format!("select leave_nothing(), '{tag}'"),
            _ => format!("select leave_{what}(), '{tag}'"),
        };
        self.ask(&text, rng);
    }

    pub(crate) fn sleeps(&mut self, rng: &mut Rng) {
        let tag = self.tag();
        let span = rng.range(100, 20_000);
        self.ask(&format!("select pg_sleep({span}), '{tag}'"), rng);
    }

    pub(crate) fn bulk(&mut self, rng: &mut Rng) {
        let tag = self.tag();
        match rng.below(6) {
            0 if self.habits.floods => {
                // The result is longer than all buffers between server and client together.
                let rows = rng.range(300, 800);
                let text = format!("select generate_series(1,{rows}), '{tag}', repeat('x',1000)");
                self.say.query(&text);
            }
            0 | 1 => {
                let rows = rng.range(10, 400);
                let text = format!("select generate_series(1,{rows}), '{tag}', repeat('y',200)");
                self.say.query(&text);
            }
            2 => {
                let length = rng.range(1_000, 40_000);
                self.say.query(&format!("select '{tag}', repeat('z',{length})"));
            }
            3 => {
                let long = "v".repeat(usize::try_from(rng.range(100, 30_000)).unwrap_or(100));
                self.say.parse("", "select $1, $2").bind("", "", &[&tag, &long]);
                self.say.execute("", 0).sync();
            }
            _ => {
                for _ in 0..rng.range(5, 40) {
                    let tag = self.tag();
                    self.say.parse("", "select $1, 'one'").bind("", "", &[&tag]);
                    self.say.execute("", 0).sync();
                }
            }
        }
    }

    /// Writes a segment that runs one of [`OFTEN`], or its Parse the first time.
    pub(crate) fn reads(&mut self, rng: &mut Rng) {
        let index = *rng.pick(&[0, 0, 0, 0, 1, 1, 2, 2, 3, 4, 5]);
        let name = format!("often_{index}");
        if self.prepared & 1 << index == 0 || rng.chance(20) {
            self.prepared |= 1 << index;
            self.say.close(&name).parse(&name, OFTEN[index]).sync();
            return;
        }
        let tag = self.tag();
        // Most are short, so that the statement counts as short.
        let span = match rng.below(1_000) {
            0..3 => rng.range(300_000, 2_000_000),
            3..20 => rng.range(1_000, 100_000),
            _ => rng.range(1, 400),
        };
        let span = span.to_string();
        let parameters = if index == 2 { vec![tag.as_str(), &span] } else { vec![tag.as_str()] };
        self.say.bind("", &name, &parameters);
        if rng.chance(200) {
            self.say.about(front::DESCRIBE, tag::PORTAL, "");
        }
        self.say.execute("", 0).sync();
    }

    pub(crate) fn definitions(&mut self, rng: &mut Rng) {
        let text = *rng.pick(&["alter table t add column x int", "create table u (x int)"]);
        self.say.query(text);
    }
}
