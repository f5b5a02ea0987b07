//! Which core gets a new client, and which clients move between cores.
//!
//! A core that has more to do in a turn pays less for each request: it sends and receives more with
//! each system call, and wakes up less often. So the first core is filled before the next gets
//! clients. A core with too much to do gives clients to the one with the least; and the last core
//! in use gives its clients back once the others have room for them.
//!
//! Everything here is a function of the load of the cores and of what was decided before. Nothing
//! here knows clients: an order names a share of a core's active clients.

use refrain_pool::ids::Core;

/// A part of a whole, in thousandths. The load of a core is the part of the time in which its
/// thread runs.
pub(crate) type Thousandths = u32;

/// The load beyond that of a full core at which a core gives clients away.
const OVERLOADED: Thousandths = 200;
/// The part of the load of a full core that a core has at most that gets such clients.
const HAS_ROOM: Thousandths = 857;
/// The part of its load that clients of the last core in use bring to another core, at least:
/// spread thin, the same requests cost up to twice as much. Whether it was more shows afterwards.
const MERGED: Thousandths = 500;
/// The load of a core that is hardly used, and stays as it is.
const HARDLY_USED: Thousandths = 10;
/// The load that a new client is taken to bring until the core's load has been measured again.
const NEW_CLIENT: Thousandths = 1;

/// The number of decisions in a row at which a core has to be overloaded to give clients away.
const OVERLOADED_FOR: u32 = 10;
/// The number of decisions after an order without another, until its effect has been measured.
const PAUSE: u32 = 6;
/// The number of decisions in a row at which the last core has to be needless, at first.
const NEEDLESS_FOR: u32 = 20;
/// The same, at most: it doubles each time that the last core turned out to be needed.
const NEEDLESS_FOR_MAX: u32 = 3_000;
/// The number of decisions after clients have been given back in which an overload means that this
/// was wrong.
const REGRET: u32 = 100;

/// An order to a core: to give a share of its active clients to another core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Order {
    /// The core that gives.
    pub(crate) from: Core,
    /// The core that gets.
    pub(crate) to: Core,
    /// The share of the clients that take part in the load of `from`.
    pub(crate) share: Thousandths,
}

impl Order {
    /// Returns how many of so many active clients are to go. One client is a load that cannot be
    /// divided: it stays where an overload would only move with it.
    pub(crate) fn clients(self, active: usize) -> usize {
        if self.share >= 1000 {
            return active;
        }
        let part = active.saturating_mul(self.share as usize).div_ceil(1000);
        part.min(active.saturating_sub(1))
    }
}

/// The policy: what it decided before, and what it waits for.
#[derive(Debug)]
pub(crate) struct Policy {
    /// The load at which a core gets no more new clients while another has less.
    full: Thousandths,
    /// The load that new clients are taken to bring to each core.
    expected: Vec<Thousandths>,
    overloaded_for: u32,
    needless_for: u32,
    /// How long the last core has to be needless.
    patience: u32,
    /// Decisions until the next order may be given.
    pause: u32,
    /// Decisions since the last core gave clients back.
    since_given_back: u32,
}

impl Policy {
    /// Makes the policy for so many cores, which get no more new clients at this load.
    pub(crate) fn new(cores: usize, full: Thousandths) -> Self {
        Self {
            full,
            expected: vec![0; cores],
            overloaded_for: 0,
            needless_for: 0,
            patience: NEEDLESS_FOR,
            pause: 0,
            since_given_back: u32::MAX,
        }
    }

    /// Chooses the core of a new client: the first one with room, or else the one that has the
    /// least to do. A burst of clients is spread before any of them has done anything.
    pub(crate) fn place(&mut self, loads: &[Thousandths]) -> Core {
        let expected = |core: usize| loads[core].saturating_add(self.expected[core]);
        let first = (0..loads.len()).find(|&core| expected(core) < self.full);
        let chosen = first.or_else(|| (0..loads.len()).min_by_key(|&core| expected(core)));
        let chosen = chosen.unwrap_or(0);
        self.expected[chosen] = self.expected[chosen].saturating_add(NEW_CLIENT);
        core(chosen)
    }

    /// Notes that so many clients have left a core: those that come and go do not stay to work.
    pub(crate) fn left(&mut self, core: Core, clients: u32) {
        let expected = &mut self.expected[usize::from(core.0)];
        *expected = expected.saturating_sub(clients.saturating_mul(NEW_CLIENT));
    }

    /// Decides whether clients move. To be called ten times a second while any core works.
    pub(crate) fn decide(&mut self, loads: &[Thousandths]) -> Option<Order> {
        // What new clients bring is in the measured load by and by.
        self.expected.iter_mut().for_each(|expected| *expected /= 2);
        self.since_given_back = self.since_given_back.saturating_add(1);
        if self.pause > 0 {
            self.pause -= 1;
            return None;
        }
        if self.full == 0 {
            return None;
        }
        let order = self.relieve(loads).or_else(|| self.give_back(loads));
        if order.is_some() {
            (self.pause, self.overloaded_for, self.needless_for) = (PAUSE, 0, 0);
        }
        order
    }

    /// Has an overloaded core give clients to the one that has the least to do.
    fn relieve(&mut self, loads: &[Thousandths]) -> Option<Order> {
        let from = (0..loads.len()).max_by_key(|&core| loads[core])?;
        let to = (0..loads.len()).min_by_key(|&core| loads[core])?;
        let (least, most) = (self.full + OVERLOADED, self.full * HAS_ROOM / 1000);
        if loads[from] < least || loads[to] > most {
            self.overloaded_for = 0;
            return None;
        }
        self.overloaded_for += 1;
        if self.overloaded_for < OVERLOADED_FOR {
            return None;
        }
        let wrong = self.since_given_back < REGRET;
        self.patience =
            if wrong { (2 * self.patience).min(NEEDLESS_FOR_MAX) } else { NEEDLESS_FOR };
        let share = (loads[from] - loads[to]) * 500 / loads[from];
        Some(Order { from: core(from), to: core(to), share })
    }

    /// Has the last core in use give its clients to the others, if they have room for them all.
    fn give_back(&mut self, loads: &[Thousandths]) -> Option<Order> {
        let from = (0..loads.len()).rfind(|&core| loads[core] > HARDLY_USED)?;
        let room = |core: &usize| self.full.saturating_sub(loads[*core]);
        let all: Thousandths = (0..from).map(|core| room(&core)).sum();
        let needs = loads[from] * MERGED / 1000;
        if all < needs || from == 0 {
            self.needless_for = 0;
            return None;
        }
        self.needless_for += 1;
        if self.needless_for < self.patience {
            return None;
        }
        let to = (0..from).max_by_key(room)?;
        let share = (room(&to) * 1000 / needs).min(1000);
        self.since_given_back = 0;
        Some(Order { from: core(from), to: core(to), share })
    }
}

fn core(index: usize) -> Core {
    Core(u16::try_from(index).unwrap_or(u16::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FULL: Thousandths = 700;

    /// Lets the policy decide so often on the same load; returns the orders.
    fn decide(policy: &mut Policy, times: u32, loads: &[Thousandths]) -> Vec<Order> {
        (0..times).filter_map(|_| policy.decide(loads)).collect()
    }

    fn order(from: u16, to: u16, share: Thousandths) -> Order {
        Order { from: Core(from), to: Core(to), share }
    }

    #[test]
    fn the_first_core_is_filled_before_the_next() {
        let mut policy = Policy::new(3, FULL);
        assert_eq!(policy.place(&[699, 0, 0]), Core(0));
        assert_eq!(policy.place(&[699, 0, 0]), Core(1));
        assert_eq!(policy.place(&[900, 800, 710]), Core(2));
    }

    #[test]
    fn clients_that_come_and_go_do_not_fill_a_core() {
        let mut policy = Policy::new(2, FULL);
        for _ in 0..10_000 {
            assert_eq!(policy.place(&[300, 0]), Core(0));
            policy.left(Core(0), 1);
        }
        policy.left(Core(0), 1_000_000);
        let stay: Vec<_> = (0..500).map(|_| policy.place(&[300, 0]).0).collect();
        assert!(stay[..400].iter().all(|core| *core == 0));
        assert!(stay[400..].iter().all(|core| *core == 1));
    }

    #[test]
    fn clients_are_spread_and_stay_if_that_is_wanted() {
        let mut policy = Policy::new(3, 0);
        let placed: Vec<_> = (0..6).map(|_| policy.place(&[0, 0, 0]).0).collect();
        assert_eq!(placed, [0, 1, 2, 0, 1, 2]);
        assert_eq!(decide(&mut policy, 1_000, &[1000, 0, 0]), []);
        assert_eq!(decide(&mut policy, 1_000, &[300, 200, 100]), []);
    }

    #[test]
    fn a_burst_is_spread_before_it_is_measured() {
        let mut policy = Policy::new(2, FULL);
        let placed: Vec<_> = (0..2_000).map(|_| policy.place(&[0, 0])).collect();
        let first = placed.iter().filter(|core| **core == Core(0)).count();
        assert_eq!(placed[..700], [Core(0); 700]);
        assert_eq!(first, 1_000);
        // A second later the burst is forgotten: the load says how much it is.
        decide(&mut policy, 11, &[50, 50]);
        assert_eq!(policy.place(&[50, 50]), Core(0));
    }

    #[test]
    fn an_overloaded_core_gives_half_to_an_unused_one() {
        let mut policy = Policy::new(2, FULL);
        assert_eq!(decide(&mut policy, OVERLOADED_FOR - 1, &[1000, 0]), []);
        assert_eq!(decide(&mut policy, 1, &[1000, 0]), [order(0, 1, 500)]);
        assert_eq!(decide(&mut policy, PAUSE, &[1000, 0]), []);
        assert_eq!(decide(&mut policy, OVERLOADED_FOR, &[1000, 500]), [order(0, 1, 250)]);
    }

    #[test]
    fn a_short_overload_moves_nobody() {
        let mut policy = Policy::new(2, FULL);
        for _ in 0..10 {
            assert_eq!(decide(&mut policy, OVERLOADED_FOR - 1, &[1000, 0]), []);
            assert_eq!(decide(&mut policy, 1, &[800, 0]), []);
        }
    }

    #[test]
    fn clients_stay_if_all_cores_have_much_to_do() {
        let mut policy = Policy::new(2, FULL);
        assert_eq!(decide(&mut policy, 1_000, &[1000, 900]), []);
        assert_eq!(decide(&mut policy, 1_000, &[600, 600]), []);
    }

    #[test]
    fn the_last_core_gives_back_what_the_others_have_room_for() {
        let mut policy = Policy::new(3, FULL);
        assert_eq!(decide(&mut policy, 19, &[300, 200, 150]), []);
        assert_eq!(decide(&mut policy, 1, &[300, 200, 150]), [order(2, 1, 1000)]);
        let mut policy = Policy::new(3, FULL);
        let orders = decide(&mut policy, 20, &[600, 500, 500]);
        assert_eq!(orders, [order(2, 1, 800)]);
        assert_eq!(decide(&mut policy, 1_000, &[300, 5, 5]), [], "what is left does not matter");
    }

    #[test]
    fn load_that_does_not_fit_elsewhere_stays() {
        let mut policy = Policy::new(2, FULL);
        assert_eq!(decide(&mut policy, 1_000, &[600, 300]), []);
    }

    #[test]
    fn clients_that_were_needed_there_go_back_ever_more_rarely() {
        let mut policy = Policy::new(2, FULL);
        let mut waits = Vec::new();
        for _ in 0..4 {
            let mut wait = 0;
            while policy.decide(&[300, 250]).is_none() {
                wait += 1;
            }
            waits.push(wait - PAUSE.min(wait));
            while policy.decide(&[900, 0]).is_none() {}
        }
        assert!(waits.windows(2).all(|pair| pair[0] < pair[1]), "{waits:?}");
    }

    #[test]
    fn one_client_is_not_divided() {
        assert_eq!(order(0, 1, 500).clients(1), 0);
        assert_eq!(order(0, 1, 500).clients(2), 1);
        assert_eq!(order(0, 1, 100).clients(64), 7);
        assert_eq!(order(1, 0, 1000).clients(1), 1);
    }
}
