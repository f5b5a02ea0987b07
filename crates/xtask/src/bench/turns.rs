//! Variants of a measurement that take turns, and medians of their figures.

use std::fmt::Debug;

use anyhow::Result;

use super::report::{Figures, Pick, median};

/// Figures of each variant in each round.
pub(super) struct Turns<V> {
    variants: Vec<V>,
    /// The figures of each round, in the order of the variants.
    rounds: Vec<Vec<Figures>>,
}

impl<V: Clone + Debug + PartialEq> Turns<V> {
    /// Measures all variants in each round, and begins each round with another variant. An
    /// additional first round, which does not count, fills caches and prepares statements.
    pub(super) fn taken(
        rounds: u32,
        variants: &[V],
        measure: impl Fn(&V) -> Result<Figures>,
    ) -> Result<Turns<V>> {
        let mut turns = Turns { variants: variants.to_vec(), rounds: Vec::new() };
        for round in 0..=rounds {
            let mut order: Vec<usize> = (0..variants.len()).collect();
            order.rotate_left(round as usize % variants.len().max(1));
            let mut taken = Vec::new();
            for place in order {
                let variant = &variants[place];
                let figures = measure(variant)?;
                println!("{round} {variant:?}: {figures:?}");
                taken.push((place, figures));
            }
            taken.sort_by_key(|(place, _)| *place);
            turns.rounds.push(taken.into_iter().map(|(_, figures)| figures).collect());
        }
        turns.rounds.remove(0);
        Ok(turns)
    }

    /// Returns the median of a figure over all rounds.
    pub(super) fn median(&self, variant: &V, pick: Pick) -> Option<f64> {
        median(self.rounds.iter().filter_map(|round| self.pick(round, variant, pick)).collect())
    }

    /// Returns the median of the ratios of two variants within a round.
    pub(super) fn ratio(&self, of: &V, to: &V, pick: Pick) -> Option<f64> {
        let ratio =
            |round: &Vec<Figures>| Some(self.pick(round, of, pick)? / self.pick(round, to, pick)?);
        median(self.rounds.iter().filter_map(ratio).collect())
    }

    fn pick(&self, round: &[Figures], variant: &V, pick: Pick) -> Option<f64> {
        let place = self.variants.iter().position(|other| other == variant)?;
        pick(round.get(place)?)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use crate::bench::report::{CPU, TPS};

    use super::*;

    #[test]
    fn variants_take_turns_and_ratios_are_those_of_rounds() {
        let order = RefCell::new(String::new());
        // The machine's speed in each round; the first round does not count.
        let speed = |turn: usize| [900.0, 1.0, 2.0, 40.0][turn / 2];
        let turns = Turns::taken(3, &['a', 'b'], |variant| {
            let speed = speed(order.borrow().len());
            order.borrow_mut().push(*variant);
            let tps = if *variant == 'a' { speed } else { 2.0 * speed };
            Ok(Figures { tps, latency_ms: 1.0, cpu_us: None, server_cpu_us: None })
        });
        let turns = turns.unwrap();
        assert_eq!(*order.borrow(), "abbaabba");
        assert_eq!(turns.median(&'a', TPS), Some(2.0));
        assert_eq!(turns.ratio(&'b', &'a', TPS), Some(2.0));
        assert_eq!(turns.ratio(&'b', &'a', CPU), None);
        assert_eq!(turns.median(&'c', TPS), None);
    }
}
