//! Whether outgoing tensors have places of their own, found out without memory to sort them in.

use crate::error::EncodeError;
use crate::tensor::Descriptor;

/// Up to this many, comparing all pairs is cheaper than clearing a filter.
const PAIRWISE: usize = 16;

/// Refuses what the decoder refuses: two tensors of one place, a name both plain and list.
pub(crate) fn check<'t, T>(tensors: T) -> Result<(), EncodeError>
where
    T: Iterator<Item: AsRef<Descriptor<'t>>> + Clone,
{
    let mut filter = tensors.clone().nth(PAIRWISE).map(|_| Filter::new());
    for (index, tensor) in tensors.clone().enumerate() {
        let tensor = tensor.as_ref();
        let unseen = filter.as_mut().is_some_and(|filter| filter.insert(tensor));
        if unseen {
            continue;
        }
        for other in tensors.clone().take(index) {
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
///
/// A relay sends names that a peer chose. Keyed by where the stack lies, the
/// filter has no names that are all the same to it in every process.
struct Filter {
    words: [u64; 1024],
    key: u64,
}

impl Filter {
    fn new() -> Self {
        let here = 0_u8;
        let key = core::ptr::from_ref(&here).addr();
        Self {
            words: [0; 1024],
            key: u64::try_from(key).unwrap_or_default(),
        }
    }

    /// Inserts a tensor, and says whether nothing in conflict with it is there.
    fn insert(&mut self, tensor: &Descriptor<'_>) -> bool {
        // The same in every spelling.
        let name = tensor.name().keyed_hash(self.key);
        // Beyond 32 bits, which no index has.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::DType;
    use std::format;
    use std::string::String;
    use std::vec::Vec;

    fn check_places(places: &[(String, Option<u32>)]) -> Result<(), EncodeError> {
        let tensors: Vec<_> = places
            .iter()
            .map(|(name, list_index)| {
                let tensor = Descriptor::new(name.as_str(), DType::UInt8, &[1]).unwrap();
                match list_index {
                    Some(index) => tensor.with_list_index(*index),
                    None => tensor,
                }
            })
            .collect();
        check(tensors.iter())
    }

    #[test]
    fn conflicts_are_found_however_many_tensors_there_are() {
        for count in [2, PAIRWISE, PAIRWISE + 1, 200, 4096] {
            let plain: Vec<_> = (0..count).map(|i| (format!("t{i}"), None)).collect();
            let list: Vec<_> = (0..count as u32).map(|i| ("t".into(), Some(i))).collect();
            assert_eq!(check_places(&plain), Ok(()));
            assert_eq!(check_places(&list), Ok(()));
            let index = count;
            for first in [0, count / 2, count - 1] {
                let with = |places: &[_], last| check_places(&[places, &[last]].concat());
                let (name, _) = plain[first].clone();
                let duplicate = EncodeError::DuplicateField { index };
                assert_eq!(with(&plain, (name.clone(), None)), Err(duplicate));
                let mixed = Err(EncodeError::MixedField { index });
                assert_eq!(with(&plain, (name, Some(0))), mixed);
                assert_eq!(with(&list, ("t".into(), None)), mixed);
                let duplicate = EncodeError::DuplicateListIndex { index };
                let last = ("t".into(), Some(first as u32));
                assert_eq!(with(&list, last), Err(duplicate));
            }
        }
    }
}
