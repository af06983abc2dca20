//! Messages as strategies.
//!
//! All that is generated implements [`Arbitrary`]:
//! `any::<TensorMessage>()` with the default [`Parameters`], `any_with` with
//! others. A failing message shrinks towards fewer and smaller tensors, zeros, and
//! Python's spelling.

use alloc::vec::Vec;

use proptest::arbitrary::{Arbitrary, any};
use proptest::collection::vec;
use proptest::strategy::{BoxedStrategy, Strategy};

use super::choices::Bytes;
use super::{
    BundledMessage, ControlMessage, FilledSlot, Generated, NearlyValid, Parameters, TensorMessage,
};

/// Makes a strategy of valid messages.
pub fn valid<T: Generated>(parameters: Parameters) -> impl Strategy<Value = T> {
    choices().prop_map(move |bytes| T::generate(&mut Bytes::new(&bytes), &parameters))
}

/// Makes a strategy of messages with one thing wrong.
pub fn nearly_valid<T: Generated>(parameters: Parameters) -> impl Strategy<Value = NearlyValid<T>> {
    choices().prop_map(move |bytes| T::generate_nearly(&mut Bytes::new(&bytes), &parameters))
}

/// What the messages are made of: no choices are zeros, and the simplest.
///
/// Pieces, which shrink by whole ones first: byte by byte, the steps that a run may take are
/// gone before what is left over is small.
fn choices() -> impl Strategy<Value = Vec<u8>> {
    let pieces = vec(vec(any::<u8>(), 0..=PIECE), 0..=PIECES);
    pieces.prop_map(|pieces| pieces.concat())
}

/// Together enough for most messages of the default parameters.
const PIECES: usize = 32;
const PIECE: usize = 32;

impl<T: Generated> Arbitrary for NearlyValid<T> {
    type Parameters = Parameters;
    type Strategy = BoxedStrategy<Self>;

    fn arbitrary_with(parameters: Parameters) -> Self::Strategy {
        nearly_valid(parameters).boxed()
    }
}

macro_rules! arbitrary {
    ($($message:ident)+) => {$(
        impl Arbitrary for $message {
            type Parameters = Parameters;
            type Strategy = BoxedStrategy<Self>;

            fn arbitrary_with(parameters: Parameters) -> Self::Strategy {
                valid(parameters).boxed()
            }
        }
    )+};
}

arbitrary!(BundledMessage ControlMessage FilledSlot TensorMessage);
