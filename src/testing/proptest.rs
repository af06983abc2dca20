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
    choices().prop_map(move |bytes| T::generate(&mut Bytes(&bytes), &parameters))
}

/// Makes a strategy of messages with one thing wrong.
pub fn nearly_valid<T: Generated>(parameters: Parameters) -> impl Strategy<Value = NearlyValid<T>> {
    choices().prop_map(move |bytes| T::generate_nearly(&mut Bytes(&bytes), &parameters))
}

/// What the messages are made of: no choices are zeros, and the simplest.
fn choices() -> impl Strategy<Value = Vec<u8>> {
    vec(any::<u8>(), 0..MOST_CHOICES)
}

/// Enough for most messages of the default parameters.
const MOST_CHOICES: usize = 512;

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
