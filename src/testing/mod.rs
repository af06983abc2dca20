//! Messages for tests of yours: valid ones, and ones with one thing wrong.
//!
//! A fuzzer that feeds a service random bytes sees it refuse them at the first one. What is made
//! here gets further: every valid message decodes, and says what it was made of; every
//! [`NearlyValid`] one has a single named fault, and names the error that a decoder has to give.
//!
//! | what | frames | decoded by |
//! |---|---|---|
//! | [`TensorMessage`] | metadata, one payload per tensor | [`Message`](crate::Message), [`Decoder`](crate::Decoder) |
//! | [`BundledMessage`] | one: the same as a bundle | [`Bundle`](crate::bundle::Bundle), then as above |
//! | [`ControlMessage`] | marker, payload | [`Control`](crate::transfer::Control) |
//! | [`FilledSlot`] | a manifest and the slot it is of | [`Manifest`](crate::transfer::Manifest) |
//!
//! The messages are small, and varied where that matters to a receiver: every dtype, scalars
//! of rank 0 and tensors without elements, lists with holes, names that need escapes,
//! integers of any size, `NaN` among the scalars, keys that no schema has, any spelling
//! that JSON allows. [`Parameters`] say how large, and what may occur.
//!
//! # Fuzz a service
//!
//! Feature `arbitrary`. The body of a target; cargo-fuzz brings the macro around it:
//!
//! ```
//! # #[cfg(feature = "arbitrary")] {
//! use arbitrary::Unstructured;
//! use tensorwire::testing::{self, NearlyValid, Parameters, TensorMessage};
//! # use tensorwire::Decoder;
//! # // What is tested: it sums a tensor up, or says why not.
//! # fn serve<F: AsRef<[u8]>>(frames: &[F]) -> Result<usize, tensorwire::error::DecodeError> {
//! #     let mut decoder = Decoder::new();
//! #     let message = decoder.decode(frames)?;
//! #     Ok(message.tensors().map(|tensor| tensor.element_count()).sum())
//! # }
//!
//! // fuzz_target!(|data: &[u8]| {
//! fn target(data: &[u8]) {
//!     let mut input = Unstructured::new(data);
//!     let parameters = Parameters::new().with_bytes(1 << 16);
//!
//!     let sent: TensorMessage = testing::arbitrary::valid(&mut input, &parameters);
//!     let served = serve(&sent.frames());
//!     assert!(served.is_ok(), "{sent:?}: {served:?}");
//!
//!     let sent: NearlyValid<TensorMessage> = testing::arbitrary::nearly_valid(&mut input, &parameters);
//!     let refusal = serve(sent.frames()).map_err(|error| error.kind());
//!     assert_eq!(refusal, Err(sent.error_kind()), "{sent:?}");
//! }
//! # for seed in 0..=255 { target(&[seed, seed ^ 0x55, 7, seed, 200, 3, seed]); }
//! # }
//! ```
//!
//! With [`arbitrary::Arbitrary`](https://docs.rs/arbitrary) itself the parameters are the default ones:
//! the messages may stand in a struct of yours that derives it.
//!
//! # Test a property
//!
//! Feature `proptest`. The messages are `any` of their type, the [`Parameters`] their parameters:
//!
//! ```
//! # #[cfg(feature = "proptest")] {
//! use proptest::prelude::*;
//! use tensorwire::Decoder;
//! use tensorwire::message::encode_to_vec;
//! use tensorwire::testing::{Parameters, TensorMessage};
//!
//! proptest! {
//!     // #[test]
//!     fn what_is_passed_on_says_the_same(
//!         sent in any_with::<TensorMessage>(Parameters::new().with_tensors(3)),
//!     ) {
//!         let mut decoder = Decoder::new();
//!         let frames = sent.frames();
//!         let received = decoder.decode(&frames)?;
//!
//!         // A gateway's work: the same tensors, in metadata of its own.
//!         let views: Vec<_> = received.tensors().collect();
//!         let metadata = encode_to_vec(&views, &received.scalars())?;
//!         let mut passed_on = frames.clone();
//!         passed_on[0] = &metadata;
//!
//!         let mut decoder = Decoder::new();
//!         prop_assert_eq!(sent.compare(&decoder.decode(&passed_on)?), Ok(()));
//!     }
//! }
//! # what_is_passed_on_says_the_same();
//! # }
//! ```

#[cfg(feature = "arbitrary")]
pub mod arbitrary;
mod bundled;
mod choices;
mod control;
mod draft;
mod faults;
mod fields;
mod message;
mod mismatch;
mod mutation;
mod parameters;
#[cfg(feature = "proptest")]
pub mod proptest;
mod shown;
mod slot;
mod tensors;
#[cfg(test)]
mod tests;
mod text;

use alloc::vec::Vec;
use core::fmt;

pub use bundled::{BundleMutation, BundledMessage};
pub use control::{ControlMessage, ControlMutation};
pub use faults::MessageMutation;
pub use message::TensorMessage;
pub use mismatch::Mismatch;
pub use parameters::Parameters;
pub use slot::{FilledSlot, SlotMutation};
pub use tensors::Tensor;

use choices::Choose;
use shown::Shown;

/// What can be generated, valid and nearly so.
///
/// The trait is sealed: [`TensorMessage`], [`BundledMessage`], [`ControlMessage`], [`FilledSlot`].
pub trait Generated: fmt::Debug + Sized + 'static {
    /// What can be wrong with a nearly valid one.
    type Mutation: Copy + fmt::Debug + Eq + Ord + Send + Sync + 'static;

    /// How its decoder says what is wrong.
    type ErrorKind: Copy + fmt::Debug + Eq + Send + Sync + 'static;

    /// All mutations. Those that the [`Parameters`] leave no room for do not occur: without
    /// tensors there is no wrong dtype.
    const MUTATIONS: &'static [Self::Mutation];

    #[doc(hidden)]
    fn generate(choices: &mut dyn Choose, parameters: &Parameters) -> Self;

    #[doc(hidden)]
    fn generate_nearly(choices: &mut dyn Choose, parameters: &Parameters) -> NearlyValid<Self>;
}

/// A valid message to which one thing was done.
///
/// There is one for every error that is a peer's fault, but for those of [`Limits`](crate::Limits)
/// that no small message reaches: of the length of the metadata and the number of descriptors.
///
/// # Examples
///
/// ```
/// # #[cfg(feature = "arbitrary")] {
/// use arbitrary::{Arbitrary, Unstructured};
/// use tensorwire::transfer::Control;
/// use tensorwire::testing::{ControlMessage, NearlyValid};
///
/// let mut input = Unstructured::new(b"a fuzzer brings more");
/// let sent = NearlyValid::<ControlMessage>::arbitrary(&mut input)?;
/// let Err(error) = Control::from_frames(sent.frames()) else {
///     return Err(format!("{:?} passes", sent.mutation()).into());
/// };
/// assert_eq!(error.kind(), sent.error_kind());
/// # }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct NearlyValid<T: Generated> {
    frames: Vec<Vec<u8>>,
    mutation: T::Mutation,
    error_kind: T::ErrorKind,
}

impl<T: Generated> NearlyValid<T> {
    pub(in crate::testing) const fn new(
        frames: Vec<Vec<u8>>,
        mutation: T::Mutation,
        error_kind: T::ErrorKind,
    ) -> Self {
        Self {
            frames,
            mutation,
            error_kind,
        }
    }

    /// Returns the frames; of a [`BundledMessage`] the bundle as the only one, of a
    /// [`FilledSlot`] the manifest's text and the slot.
    #[must_use]
    pub fn frames(&self) -> &[Vec<u8>] {
        &self.frames
    }

    /// Returns what was done.
    #[must_use]
    pub const fn mutation(&self) -> T::Mutation {
        self.mutation
    }

    /// Returns what a decoder with the default [`Options`](crate::Options) has to say of it, numbers and all.
    #[must_use]
    pub const fn error_kind(&self) -> T::ErrorKind {
        self.error_kind
    }
}

impl<T: Generated> fmt::Debug for NearlyValid<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let frames: Vec<_> = self.frames.iter().map(|frame| Shown(frame)).collect();
        f.debug_struct("NearlyValid")
            .field("mutation", &self.mutation)
            .field("error_kind", &self.error_kind)
            .field("frames", &frames)
            .finish()
    }
}
