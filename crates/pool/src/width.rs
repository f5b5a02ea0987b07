//! The width of a pool: the number of servers on which reads run before reads share a server.
//!
//! Each server at work keeps one processor of its host busy. With fewer servers than the host has
//! processors for them, reads wait while processors do nothing. With more, each server gets fewer
//! requests at once, sleeps and wakes up more often, and the host answers fewer reads in all.
//! Nothing says how many processors the host has, and how many of them others use. So the width is
//! found by trying.
//!
//! Time is divided into epochs, in which the cores report how many reads they sent. While there are
//! more reads than servers, an epoch with another width comes between two epochs with the present
//! one. The pool changes to more servers if they clearly brought more than either neighbour, and to
//! fewer if those brought as much as either: fewer cost the host less. After a change of the
//! width an epoch begins when all cores have heard of it. What did not pay is tried again after a
//! pause, which grows while nothing changes.
//!
//! The cores share one width, and each gets its part: if each core had a width of its own, a core
//! would take a share of the host from the others by using more servers.

use crate::ids::Core;
use crate::time::Now;

/// Microseconds in which all cores hear of a new width: their ticks come ten times a second.
const HEARD_US: u64 = 150_000;
/// Microseconds that an epoch lasts.
const EPOCH_US: u64 = 250_000;
/// Microseconds between two reports of a core at most, or else the core did not work in between.
const REPORT_US: u64 = 300_000;
/// Reads in an epoch from which on their number says something.
const READS_MIN: u64 = 100;
/// Epochs until a width that did not pay is tried again.
const PAUSE: u32 = 4;
/// The same at most, after the pause has grown.
const PAUSE_MAX: u32 = 64;
/// Microseconds without load after which one step towards the least width is forgotten.
const FORGET_US: u64 = 10_000_000;

/// The reads of one core in some time.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Load {
    /// Reads that were sent to a server of their own, at which others may join.
    opened: u64,
    /// Reads that were sent to a server that worked for others.
    joined: u64,
    /// Sum of the numbers of open lines, looked at for each of the `opened`.
    lines: u64,
}

impl Load {
    /// Counts a read that has a server of its own, now one of `lines` at which others may join.
    #[inline]
    pub(crate) fn open(&mut self, lines: usize) {
        self.opened += 1;
        self.lines += lines as u64;
    }

    /// Counts a read that shares a server.
    #[inline]
    pub(crate) fn join(&mut self) {
        self.joined += 1;
    }

    /// Whether nothing was counted.
    pub(crate) fn is_empty(&self) -> bool {
        self.opened + self.joined == 0
    }
}

/// The reads that a core has reported in this epoch.
#[derive(Clone, Copy, Debug, Default)]
struct Part {
    /// When the core last reported.
    reported: Now,
    /// The reads.
    load: Load,
    /// The microseconds in which there were these reads.
    span_us: u64,
    /// Whether the core had reads in the last epoch that is over.
    is_active: bool,
}

/// The purpose of an epoch.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Trial {
    /// The width stays for this number of epochs.
    Rest(u32),
    /// This epoch has another width. The one before had the width `from`, and this rate.
    Other { from: usize, before: f64 },
    /// This epoch has the width of the first again. The one between had the width `other`.
    Back { other: usize, before: f64, between: f64 },
}

/// The direction of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    More,
    Fewer,
}

/// The width of a pool, and the trials by which it is found.
#[derive(Debug)]
pub(crate) struct Width {
    /// The number of servers in this epoch.
    now: usize,
    least: usize,
    most: usize,
    trial: Trial,
    direction: Direction,
    /// Number of trials in a row that changed nothing.
    failures: u32,
    /// The pause after the next trials that change nothing, in epochs.
    pause: u32,
    /// The rate when the width was last found to be right.
    settled: f64,
    /// When the epoch begins, or has begun.
    begins: Now,
    /// The end of the last epoch with load.
    loaded: Now,
    parts: Vec<Part>,
}

impl Default for Width {
    fn default() -> Self {
        Self {
            now: 0,
            least: 1,
            most: 1,
            trial: Trial::Rest(0),
            direction: Direction::More,
            failures: 0,
            pause: PAUSE,
            settled: 0.0,
            begins: Now(0),
            loaded: Now(0),
            parts: Vec::new(),
        }
    }
}

impl Width {
    /// Takes in the reads of a core since its last report. The width is not below `least` and not
    /// above `most`.
    pub(crate) fn report(&mut self, core: Core, now: Now, load: Load, least: usize, most: usize) {
        self.most = most.max(1);
        self.least = least.max(self.active()).min(self.most);
        self.now = self.now.clamp(self.least, self.most);
        let at = usize::from(core.0);
        if self.parts.len() <= at {
            self.parts.resize_with(at + 1, Part::default);
        }
        let part = &mut self.parts[at];
        let span = now.since(std::mem::replace(&mut part.reported, now));
        if now.since(self.begins) > EPOCH_US + REPORT_US {
            // Nobody has reported for long.
            self.begin_epoch(now);
            self.trial_fails();
        } else if self.begins < now && span <= REPORT_US {
            part.load.opened += load.opened;
            part.load.joined += load.joined;
            part.load.lines += load.lines;
            part.span_us += span;
        }
        if now.since(self.begins) >= EPOCH_US {
            self.end_epoch(now);
        }
    }

    /// Returns the number of servers on which a core's reads run before they share one.
    pub(crate) fn of_core(&self, core: Core) -> usize {
        let at = usize::from(core.0);
        let active = self.active();
        if active < 2 || !self.parts.get(at).is_some_and(|part| part.is_active) {
            return self.now;
        }
        let before = self.parts[..at].iter().filter(|part| part.is_active).count();
        let rest = usize::from(before < self.now % active);
        (self.now / active + rest).max(1)
    }

    /// Returns the number of servers on which reads of all cores run before they share one, if any
    /// core has reported reads.
    pub(crate) fn total(&self) -> Option<usize> {
        (self.now > 0).then_some(self.now)
    }

    /// Returns the number of cores that had reads in the last epoch.
    fn active(&self) -> usize {
        self.parts.iter().filter(|part| part.is_active).count()
    }

    /// Begins an epoch with the present width.
    fn begin_epoch(&mut self, begins: Now) {
        self.begins = begins;
        for part in &mut self.parts {
            (part.load, part.span_us) = (Load::default(), 0);
        }
    }

    /// Looks at an epoch that is over, and begins the next.
    fn end_epoch(&mut self, now: Now) {
        let (mut sum, mut rate, mut lines) = (Load::default(), 0.0, 0.0);
        for part in &mut self.parts {
            let Part { load, span_us, .. } = *part;
            let reads = load.opened + load.joined;
            part.is_active = reads > 0;
            sum.opened += load.opened;
            sum.joined += load.joined;
            rate += reads as f64 / span_us.max(1) as f64;
            lines += load.lines as f64 / load.opened.max(1) as f64;
        }
        let reads = sum.opened + sum.joined;
        let width = self.now;
        // One read in ten finds all servers of the width at work.
        if reads < READS_MIN || sum.joined * 10 < reads {
            self.trial_fails();
            self.forget(now);
        } else {
            self.loaded = now;
            self.go_on(rate, lines.round() as usize);
        }
        self.begin_epoch(if self.now == width { now } else { Now(now.0 + HEARD_US) });
    }

    /// Goes on with the trials after an epoch with load, in which reads ran at this rate on about
    /// `lines` servers: on more than the width if the lines were full.
    fn go_on(&mut self, rate: f64, lines: usize) {
        match self.trial {
            Trial::Rest(left) => {
                let same = rate > self.settled * 0.75 && rate < self.settled * 1.25;
                match left.checked_sub(1) {
                    Some(left) if same => self.trial = Trial::Rest(left),
                    _ => {
                        if !same {
                            self.pause = PAUSE;
                        }
                        self.try_other(rate, lines);
                    }
                }
            }
            Trial::Other { from, before } => {
                self.trial = Trial::Back { other: self.now, before, between: rate };
                self.now = from;
            }
            Trial::Back { other, before, between } => {
                let pays = match self.direction {
                    Direction::More => between > before.max(rate) * 1.05,
                    Direction::Fewer => between > before.min(rate) * 0.97,
                };
                self.trial = Trial::Rest(0);
                if pays {
                    self.now = other.clamp(self.least, self.most);
                    (self.failures, self.pause) = (0, PAUSE);
                } else {
                    self.fail(rate);
                }
            }
        }
    }

    /// Begins a trial, if there is another width in the direction that is next.
    fn try_other(&mut self, rate: f64, lines: usize) {
        for _ in 0..2 {
            let other = match self.direction {
                Direction::More => more(self.now.max(lines)).min(self.most),
                Direction::Fewer => fewer(self.now).max(self.least),
            };
            if other != self.now {
                self.trial = Trial::Other { from: self.now, before: rate };
                self.now = other;
                return;
            }
            self.fail(rate);
        }
    }

    /// Notes that a direction does not pay. If neither does, the width is right for now.
    fn fail(&mut self, rate: f64) {
        self.failures += 1;
        self.direction = match self.direction {
            Direction::More => Direction::Fewer,
            Direction::Fewer => Direction::More,
        };
        if self.failures >= 2 {
            self.failures = 0;
            self.settled = rate;
            self.trial = Trial::Rest(self.pause);
            self.pause = (self.pause * 2).min(PAUSE_MAX);
        }
    }

    /// Gives up the trial under way.
    fn trial_fails(&mut self) {
        if let Trial::Other { from, .. } = self.trial {
            self.now = from;
        }
        self.trial = Trial::Rest(0);
    }

    /// Forgets what was learned under a load that is over, step by step.
    fn forget(&mut self, now: Now) {
        while now.since(self.loaded) >= FORGET_US {
            self.loaded = Now(self.loaded.0 + FORGET_US);
            self.now = fewer(self.now).max(self.least);
            if self.now == self.least {
                self.loaded = now;
            }
        }
    }
}

/// Returns a width about a quarter larger.
fn more(width: usize) -> usize {
    width + (width / 4).max(1)
}

/// Returns a width about a fifth smaller.
fn fewer(width: usize) -> usize {
    width - (width / 5).max(1).min(width)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server whose throughput grows up to a number of connections, and falls slowly behind it.
    struct Model {
        width: Width,
        now: Now,
        knee: usize,
        /// The noise of an epoch, in percent of the rate.
        noise: f64,
        random: u64,
        cores: u16,
        most: usize,
        /// Clients that send reads without a pause.
        clients: usize,
        /// Reads that a line holds.
        depth: usize,
    }

    impl Model {
        fn new(knee: usize) -> Self {
            Self {
                width: Width::default(),
                now: Now(5_000_000),
                knee,
                noise: 10.0,
                random: 1,
                cores: 1,
                most: 100,
                clients: 1000,
                depth: 1000,
            }
        }

        /// Returns a random number between -1 and 1.
        fn draw(&mut self) -> f64 {
            self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (self.random >> 33) as f64 / f64::from(1_u32 << 30) - 1.0
        }

        /// Returns the reads in a second on some servers.
        fn rate(&self, servers: usize) -> f64 {
            let used = servers.min(self.knee) as f64;
            let beyond = servers.saturating_sub(self.knee) as f64;
            10_000.0 * used / (1.0 + beyond * 0.01)
        }

        /// Lets a tenth of a second pass.
        fn tick(&mut self) {
            self.now = Now(self.now.0 + 100_000);
            let cores: Vec<usize> =
                (0..self.cores).map(|core| self.width.of_core(Core(core))).collect();
            let width: usize = cores.iter().sum();
            let servers = width.max(self.clients.div_ceil(self.depth)).min(self.clients);
            let joined = self.clients.saturating_sub(servers) as f64 / self.clients as f64;
            for (core, part) in (0..self.cores).zip(cores) {
                let noise = 1.0 + self.draw() * self.noise / 100.0;
                let share = part as f64 / width as f64;
                let reads = self.rate(servers) * share * 0.1 * noise;
                let load = Load {
                    opened: (reads * (1.0 - joined)) as u64,
                    joined: (reads * joined) as u64,
                    lines: (reads * (1.0 - joined) * servers as f64 * share) as u64,
                };
                self.width.report(Core(core), self.now, load, 4, self.most);
            }
        }

        /// Lets some seconds pass. Returns the mean of the width, and its greatest.
        fn pass(&mut self, seconds: u32) -> (f64, usize) {
            let (mut sum, mut most) = (0, 0);
            for _ in 0..seconds * 10 {
                self.tick();
                sum += self.width.now;
                most = most.max(self.width.now);
            }
            (sum as f64 / f64::from(seconds * 10), most)
        }
    }

    #[test]
    fn the_width_comes_near_the_knee_and_stays_there() {
        for (knee, near) in [(2, 4.0..4.7), (4, 4.0..5.0), (8, 6.8..9.8), (32, 27.0..40.0)] {
            for seed in 0..20 {
                let mut model = Model::new(knee);
                model.random = seed;
                model.pass(60);
                let (mean, most) = model.pass(600);
                assert!(near.contains(&mean), "knee {knee}, seed {seed}: {mean}");
                assert!(most <= knee.max(4) * 2, "knee {knee}, seed {seed}: {most}");
            }
        }
    }

    #[test]
    fn the_width_follows_a_server_that_gets_slower_and_faster() {
        for seed in 0..20 {
            let mut model = Model::new(32);
            model.random = seed;
            model.pass(120);
            for (knee, near) in [(8, 6.5..11.0), (24, 19.0..31.0), (4, 4.0..5.5)] {
                model.knee = knee;
                model.pass(60);
                let (mean, _) = model.pass(120);
                assert!(near.contains(&mean), "knee {knee}, seed {seed}: {mean}");
            }
        }
    }

    #[test]
    fn several_cores_share_the_width() {
        for (cores, knee, near) in [(2, 8, 6.5..10.5), (4, 4, 4.0..5.2), (4, 32, 25.0..41.0)] {
            let mut model = Model::new(knee);
            model.cores = cores;
            model.pass(90);
            let (mean, _) = model.pass(300);
            assert!(near.contains(&mean), "{cores} cores, knee {knee}: {mean}");
            let parts: usize = (0..cores).map(|core| model.width.of_core(Core(core))).sum();
            assert_eq!(parts, model.width.now);
        }
    }

    #[test]
    fn the_width_keeps_to_its_bounds() {
        let mut model = Model::new(32);
        model.most = 10;
        assert_eq!(model.pass(60).1, 10);
        // As many cores as that at work have one server each, even if the width were less.
        let mut model = Model::new(2);
        model.cores = 6;
        model.pass(60);
        assert!((0..6).all(|core| (1..4).contains(&model.width.of_core(Core(core)))));
    }

    #[test]
    fn lines_that_are_full_do_not_hide_that_more_servers_bring_more() {
        let mut model = Model::new(32);
        (model.clients, model.depth) = (128, 8);
        model.pass(90);
        let (mean, _) = model.pass(300);
        assert!((24.0..41.0).contains(&mean), "{mean}");
    }

    #[test]
    fn a_load_that_ends_is_forgotten_slowly() {
        let mut model = Model::new(32);
        model.pass(90);
        let learned = model.width.now;
        assert!(learned > 20);
        // Fewer clients than servers: none shares one.
        model.clients = 3;
        model.pass(5);
        assert!(model.width.now >= learned * 3 / 4);
        model.pass(180);
        assert_eq!(model.width.now, 4);
        // The same if no core reports anything.
        model.clients = 1000;
        model.pass(90);
        model.now = Now(model.now.0 + 600_000_000);
        model.clients = 3;
        model.pass(1);
        assert_eq!(model.width.now, 4);
    }

    #[test]
    fn a_few_reads_say_nothing() {
        let mut model = Model::new(32);
        model.knee = 0;
        assert_eq!(model.pass(60), (4.0, 4));
    }
}
