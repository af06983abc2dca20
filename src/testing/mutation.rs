//! What a mutation asks of the message that it is done to.

use alloc::string::String;
use alloc::vec::Vec;

use super::Parameters;
use super::choices::Choose;
use super::text::Members;

/// What has to be in a message, and what has to be left free, for a mutation.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Needs {
    /// Tensors that have elements, the first of the message.
    pub(super) filled: usize,
    /// Tensors that the mutation adds, empty ones of rank 1.
    pub(super) spare_tensors: usize,
    /// Bytes of payload that it adds.
    pub(super) spare_bytes: usize,
}

impl Needs {
    pub(super) const NOTHING: Self = Self {
        filled: 0,
        spare_tensors: 0,
        spare_bytes: 0,
    };

    /// Tensors that have elements.
    pub(super) const fn filled(filled: usize) -> Self {
        Self {
            filled,
            ..Self::NOTHING
        }
    }

    /// The parameters of the message that is mutated; `None` if they leave no room for the mutation.
    pub(super) fn within(self, parameters: &Parameters) -> Option<Parameters> {
        let tensors = parameters.tensors().checked_sub(self.spare_tensors)?;
        let bytes = parameters.bytes().checked_sub(self.spare_bytes)?;
        let has_rank = self.spare_tensors == 0 || parameters.rank() > 0;
        let filled = self.filled.checked_mul(parameters.least_size());
        // The least size of no dtypes is no number to multiply; nor is it needed.
        let fits = self.filled == 0 || filled.is_some_and(|filled| filled <= bytes);
        (has_rank && fits && self.filled <= tensors)
            .then(|| parameters.clone().with_tensors(tensors).with_bytes(bytes))
    }
}

/// One of the mutations that the parameters leave room for, with what they leave for the message.
///
/// `None` if there is none; every kind of message has one that needs nothing.
pub(super) fn choose<M: Copy>(
    all: &[M],
    needs: impl Fn(M) -> Needs,
    choices: &mut dyn Choose,
    parameters: &Parameters,
) -> Option<(M, Parameters)> {
    let possible = all.iter().filter_map(|&mutation| {
        let parameters = needs(mutation).within(parameters)?;
        Some((mutation, parameters))
    });
    let possible: Vec<_> = possible.collect();
    let index = choices.up_to(possible.len().saturating_sub(1));
    possible.into_iter().nth(index)
}

/// A fault of the JSON text alone, within a member that no schema knows.
pub(super) fn note(members: &mut Members, value: &str) {
    members.0.insert(0, ("note".into(), value.into()));
}

/// What stands in a text for a byte that is no UTF-8.
pub(super) const NO_UTF8: char = '\u{e000}';

/// The bytes of a text; one [`NO_UTF8`] becomes what it stands for, where that is asked for.
pub(super) fn bytes(text: String, is_bad: bool) -> Vec<u8> {
    match text.split_once(NO_UTF8) {
        Some((before, after)) if is_bad => [before.as_bytes(), &[0xff], after.as_bytes()].concat(),
        _ => text.into_bytes(),
    }
}

/// `levels` arrays, one in another.
pub(super) fn nested(levels: usize) -> String {
    let open = core::iter::repeat_n('[', levels);
    open.chain(core::iter::repeat_n(']', levels)).collect()
}
