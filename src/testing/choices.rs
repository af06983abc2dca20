//! Where choices come from: a fuzzer's input, or a property test's bytes.

/// A source of choices.
///
/// It never runs dry: past its end every choice is 0, which is the simplest everywhere, so a
/// shorter input makes a smaller message.
#[expect(unnameable_types, reason = "what seals `Generated`")]
pub trait Choose {
    /// A number of `0..=most`.
    fn up_to(&mut self, most: usize) -> usize;

    /// Goes on from the other end, if the source has two: what is chosen between two turns
    /// stays as it is when the choices before it become fewer.
    fn turn(&mut self) {}
}

impl dyn Choose + '_ {
    /// True once in `sides` times; false where the choices have ended.
    pub(super) fn one_in(&mut self, sides: usize) -> bool {
        let last = sides.saturating_sub(1);
        self.up_to(last) == last
    }

    /// One of these; `None` of none.
    pub(super) fn of<T: Copy>(&mut self, all: &[T]) -> Option<T> {
        let last = all.len().checked_sub(1)?;
        all.get(self.up_to(last)).copied()
    }

    /// Any text of these.
    pub(super) fn text<'t>(&mut self, all: &[&'t str]) -> &'t str {
        self.of(all).unwrap_or_default()
    }

    /// Puts them in another order.
    pub(super) fn shuffle<T>(&mut self, all: &mut [T]) {
        for index in (1..all.len()).rev() {
            all.swap(index, self.up_to(index));
        }
    }
}

/// Choices out of bytes, from either end.
#[cfg(any(feature = "proptest", test))]
pub(super) struct Bytes<'a> {
    rest: &'a [u8],
    is_turned: bool,
}

#[cfg(any(feature = "proptest", test))]
impl<'a> Bytes<'a> {
    pub(super) const fn new(bytes: &'a [u8]) -> Self {
        Self {
            rest: bytes,
            is_turned: false,
        }
    }

    /// The next one; 0 past the last.
    fn byte(&mut self) -> u8 {
        let next = if self.is_turned {
            self.rest.split_last()
        } else {
            self.rest.split_first()
        };
        let (byte, rest) = next.unwrap_or((&0, &[]));
        self.rest = rest;
        *byte
    }
}

#[cfg(any(feature = "proptest", test))]
impl Choose for Bytes<'_> {
    fn up_to(&mut self, most: usize) -> usize {
        let mut number: u64 = 0;
        // As many bytes as the number needs, one at the least.
        let mut covered = most;
        while covered > 0 {
            number = number.wrapping_shl(8) | u64::from(self.byte());
            covered = covered.wrapping_shr(8);
        }
        let most = u64::try_from(most).unwrap_or(u64::MAX);
        let number = most
            .checked_add(1)
            .map_or(number, |sides| number.checked_rem(sides).unwrap_or(0));
        usize::try_from(number).unwrap_or(0)
    }

    fn turn(&mut self) {
        self.is_turned = !self.is_turned;
    }
}

/// Bytes that look random: splitmix64.
pub(super) fn noise(seed: usize) -> impl Iterator<Item = u8> {
    let mut state = u64::try_from(seed).unwrap_or(u64::MAX);
    let words = core::iter::repeat_with(move || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    });
    words.flat_map(u64::to_le_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_can_be_chosen_and_none_above() {
        for most in [0_usize, 1, 4, 255, 256] {
            let mut seen = std::collections::BTreeSet::new();
            for number in 0..=u16::MAX {
                let bytes = number.to_be_bytes();
                let mut choices = Bytes::new(if most < 256 { &bytes[1..] } else { &bytes });
                seen.insert(choices.up_to(most));
            }
            assert!(seen.into_iter().eq(0..=most), "up to {most}");
        }
    }

    #[test]
    fn past_the_end_every_choice_is_the_first() {
        let choices: &mut dyn Choose = &mut Bytes::new(&[]);
        assert_eq!(choices.up_to(usize::MAX), 0);
        assert!(!choices.one_in(2));
        assert_eq!(choices.text(&["first", "second"]), "first");
        assert_eq!(choices.of::<u8>(&[]), None);
    }

    #[test]
    fn what_is_chosen_after_a_turn_does_not_depend_on_what_was_before() {
        let all = [1, 2, 3, 4, 5, 6];
        for fewer in 0..4 {
            let mut choices = Bytes::new(&all[fewer..]);
            choices.up_to(255);
            choices.turn();
            assert_eq!((choices.up_to(255), choices.up_to(255)), (6, 5));
            choices.turn();
            let next = if fewer < 3 { fewer + 2 } else { 0 };
            assert_eq!(choices.up_to(255), next);
        }
    }
}
