//! A set of a statement's parameters. Nearly all statements have fewer than 64: one word.

/// A set of parameters of a statement, which count from 1.
#[derive(Default)]
pub(crate) struct Marks {
    /// The first 64 parameters; few statements have more.
    first: u64,
    /// The parameters above 64.
    rest: Vec<u64>,
}

impl Marks {
    /// Returns the set of the parameters from 1 to `count`.
    pub(crate) fn first(count: usize) -> Marks {
        let rest = if count > 64 { words_above(count) } else { Vec::new() };
        Marks { first: word_of(count), rest }
    }

    fn word(&mut self, index: usize) -> (&mut u64, u64) {
        let (word, bit) = ((index - 1) / 64, 1 << ((index - 1) % 64));
        if word == 0 {
            return (&mut self.first, bit);
        }
        if self.rest.len() < word {
            self.rest.resize(word, 0);
        }
        (&mut self.rest[word - 1], bit)
    }

    pub(crate) fn set(&mut self, index: usize) {
        let (word, bit) = self.word(index);
        *word |= bit;
    }

    pub(crate) fn clear(&mut self, index: usize) {
        let (word, bit) = self.word(index);
        *word &= !bit;
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.first == 0 && (self.rest.is_empty() || self.rest.iter().all(|word| *word == 0))
    }

    /// Takes all parameters out of the set.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = usize> + use<> {
        let words = std::iter::once(std::mem::take(&mut self.first));
        let words = words.chain(std::mem::take(&mut self.rest)).enumerate();
        words.flat_map(|(place, mut word)| {
            std::iter::from_fn(move || {
                let bit = (word != 0).then(|| word.trailing_zeros() as usize)?;
                word &= word - 1;
                Some(place * 64 + bit + 1)
            })
        })
    }
}

/// Returns a word with its lowest `count` bits set; all bits from 64 on.
fn word_of(count: usize) -> u64 {
    if count >= 64 { u64::MAX } else { (1 << count) - 1 }
}

fn words_above(count: usize) -> Vec<u64> {
    (64..count).step_by(64).map(|below| word_of(count - below)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_count_from_one_and_go_on_beyond_a_word() {
        for count in [0, 1, 63, 64, 65, 128, 200] {
            let mut marks = Marks::first(count);
            assert_eq!(marks.is_empty(), count == 0);
            assert_eq!(marks.drain().collect::<Vec<_>>(), (1..=count).collect::<Vec<_>>());
            assert!(marks.is_empty());
        }
        let mut marks = Marks::default();
        for index in [1, 64, 65, 300] {
            marks.set(index);
        }
        marks.clear(64);
        marks.clear(500);
        assert_eq!(marks.drain().collect::<Vec<_>>(), [1, 65, 300]);
    }
}
