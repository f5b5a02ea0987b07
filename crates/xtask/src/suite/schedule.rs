//! The order of the parts, and which of them run side by side.
//!
//! No part that can tell a slow machine from a mistake shares the machine with another that asks as
//! much of it. Work that needs nothing but processors fills the time in which others wait, at the
//! lowest priority.

/// A part's claim on the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Load {
    /// The part has limits on waiting, or counts what the time decides. Beside it run parts that
    /// yield, and no others.
    Sensitive,
    /// The part has few processes at a time, which wait for each other. As many of them run at once
    /// as there are cores.
    Waiting,
    /// The part computes, and does not care how long. It has the lowest priority.
    Yielding,
}

/// The needs of a part.
#[derive(Clone, Copy, Debug)]
pub(super) struct Needs {
    /// The part's name.
    pub(super) name: &'static str,
    /// Its load.
    pub(super) load: Load,
    /// Parts that have to end before it, and without which it cannot run.
    pub(super) builds: &'static [&'static str],
    /// Parts that have to end before it, if they run at all.
    pub(super) after: &'static [&'static str],
}

/// Returns the place in `pending` of a part that may start now, on a machine of so many cores. A
/// part that is named earlier goes first.
pub(super) fn next(pending: &[Needs], running: &[Needs], cores: usize) -> Option<usize> {
    let count = |load| running.iter().filter(|part| part.load == load).count();
    let (sensitive, waiting) = (count(Load::Sensitive), count(Load::Waiting));
    let yielding_max = if sensitive + waiting > 0 { cores / 2 } else { cores };
    let has_room = |load| match load {
        Load::Sensitive => sensitive + waiting == 0,
        Load::Waiting => sensitive == 0 && waiting < cores,
        Load::Yielding => count(Load::Yielding) < yielding_max.max(1),
    };
    let is_left = |name: &&str| pending.iter().chain(running).any(|part| part.name == *name);
    let may_start = |part: &Needs| !part.builds.iter().chain(part.after).any(is_left);
    let mut front = pending.iter().filter(|part| part.load != Load::Yielding && may_start(part));
    // Nothing overtakes a sensitive part that waits until it is alone.
    let first = front.next().map(|part| part.name);
    let is_next = |part: &Needs| part.load == Load::Yielding || first == Some(part.name);
    pending.iter().position(|part| has_room(part.load) && may_start(part) && is_next(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn part(name: &'static str, load: Load, after: &'static [&'static str]) -> Needs {
        Needs { name, load, builds: &[], after }
    }

    const BUILD: Needs = part("build", Load::Waiting, &[]);
    const TEST: Needs = part("test", Load::Sensitive, &["build", "absent"]);
    const COUNT: Needs = part("count", Load::Yielding, &[]);
    const DRIVE: Needs = part("drive", Load::Waiting, &["build"]);

    #[test]
    fn a_part_waits_for_those_before_it() {
        assert_eq!(next(&[TEST, BUILD], &[], 2), Some(1));
        assert_eq!(next(&[TEST], &[BUILD], 2), None);
        assert_eq!(next(&[TEST], &[], 2), Some(0));
        let built = Needs { builds: &["build"], after: &[], ..TEST };
        assert_eq!(next(&[built, BUILD], &[], 2), Some(1));
    }

    #[test]
    fn a_sensitive_part_shares_the_machine_with_those_that_yield_alone() {
        assert_eq!(next(&[TEST], &[DRIVE], 4), None);
        assert_eq!(next(&[TEST], &[COUNT], 2), Some(0));
        assert_eq!(next(&[DRIVE], &[TEST], 4), None);
        let other = part("other", Load::Waiting, &[]);
        assert_eq!(next(&[TEST, DRIVE], &[other], 4), None);
        assert_eq!(next(&[TEST, DRIVE, COUNT], &[other], 4), Some(2));
        assert_eq!(next(&[DRIVE, COUNT], &[TEST], 2), Some(1));
    }

    #[test]
    fn parts_that_wait_are_as_many_as_cores() {
        assert_eq!(next(&[DRIVE], &[BUILD, BUILD], 2), None);
        assert_eq!(next(&[DRIVE], &[part("a", Load::Waiting, &[])], 2), Some(0));
        assert_eq!(next(&[DRIVE], &[part("a", Load::Waiting, &[])], 1), None);
    }

    #[test]
    fn parts_that_yield_leave_half_of_the_cores_to_others() {
        assert_eq!(next(&[COUNT], &[TEST, COUNT], 2), None);
        assert_eq!(next(&[COUNT], &[TEST, COUNT], 4), Some(0));
        assert_eq!(next(&[COUNT], &[COUNT], 2), Some(0));
        assert_eq!(next(&[COUNT], &[COUNT], 1), None);
        assert_eq!(next(&[COUNT], &[TEST], 1), Some(0));
    }
}
