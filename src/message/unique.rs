//! Whether outgoing tensors have places of their own, found out without memory to sort them in.

use crate::error::EncodeError;
use crate::tensor::Descriptor;

/// Up to this many, comparing all pairs is cheaper than clearing a filter.
const PAIRWISE: usize = 16;

/// Refuses what the decoder refuses: two tensors of one place, a name both plain and list.
pub(super) fn check<'t, D: AsRef<Descriptor<'t>>>(tensors: &[D]) -> Result<(), EncodeError> {
    let mut filter = (tensors.len() > PAIRWISE).then(Filter::new);
    for (index, tensor) in tensors.iter().enumerate() {
        let tensor = tensor.as_ref();
        let unseen = filter.as_mut().is_some_and(|filter| filter.insert(tensor));
        if unseen {
            continue;
        }
        let earlier = tensors.get(..index).unwrap_or_default();
        for other in earlier {
            conflict(other.as_ref(), tensor, index)?;
        }
    }
    Ok(())
}

fn conflict(a: &Descriptor<'_>, b: &Descriptor<'_>, index: usize) -> Result<(), EncodeError> {
    if a.name() != b.name() {
        return Ok(());
    }
    match (a.list_index(), b.list_index()) {
        (None, None) => Err(EncodeError::DuplicateField { index }),
        (Some(a), Some(b)) if a == b => Err(EncodeError::DuplicateListIndex { index }),
        (Some(_), Some(_)) => Ok(()),
        _ => Err(EncodeError::MixedField { index }),
    }
}

/// A Bloom filter on the stack: says for sure when a tensor conflicts with none before it.
///
/// Of 65,536 bits, each tensor sets at most four; among 4096 tensors fewer than
/// one in twenty is compared with those before it without need.
struct Filter {
    words: [u64; 1024],
}

impl Filter {
    const fn new() -> Self {
        Self { words: [0; 1024] }
    }

    /// Inserts a tensor, and says whether nothing in conflict with it is there.
    fn insert(&mut self, tensor: &Descriptor<'_>) -> bool {
        // The same in every spelling.
        let name = u64::from(tensor.name().fingerprint());
        // Beyond 32 bits, which neither a fingerprint nor an index has.
        let plain = mix(name, 1 << 32);
        let list = mix(name, 2 << 32);
        match tensor.list_index() {
            None => {
                let unseen = !self.contains(plain) && !self.contains(list);
                self.set(plain);
                unseen
            }
            Some(index) => {
                let member = mix(mix(name, 3 << 32), index.into());
                let unseen = !self.contains(plain) && !self.contains(member);
                self.set(list);
                self.set(member);
                unseen
            }
        }
    }

    fn contains(&self, hash: u64) -> bool {
        bits(hash).into_iter().all(|(word, bit)| {
            self.words
                .get(word)
                .is_some_and(|word| word.wrapping_shr(bit) & 1 == 1)
        })
    }

    fn set(&mut self, hash: u64) {
        for (word, bit) in bits(hash) {
            if let Some(word) = self.words.get_mut(word) {
                *word |= 1_u64.wrapping_shl(bit);
            }
        }
    }
}

const fn mix(hash: u64, value: u64) -> u64 {
    // The product spreads each bit upwards, the shift brings it down again.
    let mixed = (hash ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ (mixed >> 32)
}

/// Two places of a hash: word and bit.
fn bits(hash: u64) -> [(usize, u32); 2] {
    let place = |bits: u64| {
        let bits = u16::try_from(bits & 0xffff).unwrap_or_default();
        (usize::from(bits >> 6), u32::from(bits & 63))
    };
    [place(hash), place(hash >> 32)]
}
