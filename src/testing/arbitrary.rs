//! Messages out of a fuzzer's input.
//!
//! All that is generated implements [`Arbitrary`], with the default
//! [`Parameters`]; the functions take other ones. Neither fails: where the input
//! ends, the simplest goes on.

use arbitrary::{Arbitrary, Result, Unstructured};

use super::choices::Choose;
use super::{
    BundledMessage, ControlMessage, FilledSlot, Generated, NearlyValid, Parameters, TensorMessage,
};

/// Makes a valid message.
pub fn valid<T: Generated>(input: &mut Unstructured<'_>, parameters: &Parameters) -> T {
    T::generate(input, parameters)
}

/// Makes a message with one thing wrong.
pub fn nearly_valid<T: Generated>(
    input: &mut Unstructured<'_>,
    parameters: &Parameters,
) -> NearlyValid<T> {
    T::generate_nearly(input, parameters)
}

impl Choose for Unstructured<'_> {
    fn up_to(&mut self, most: usize) -> usize {
        // At the end of the input it is 0, and no error.
        self.int_in_range(0..=most).unwrap_or(0)
    }
}

impl<'a, T: Generated> Arbitrary<'a> for NearlyValid<T> {
    fn arbitrary(input: &mut Unstructured<'a>) -> Result<Self> {
        Ok(nearly_valid(input, &Parameters::new()))
    }
}

macro_rules! arbitrary {
    ($($message:ident)+) => {$(
        impl<'a> Arbitrary<'a> for $message {
            fn arbitrary(input: &mut Unstructured<'a>) -> Result<Self> {
                Ok(valid(input, &Parameters::new()))
            }
        }
    )+};
}

arbitrary!(BundledMessage ControlMessage FilledSlot TensorMessage);
