//! What is generated for tests is what it says it is: valid, or wrong in the one way that it names.
//!
//! The same holds whether the choices come from a fuzzer's input or from a property test, so each
//! test is run over both, as far as their features are there.

#![cfg(any(feature = "arbitrary", feature = "proptest"))]

#[allow(unreachable_pub, reason = "the fuzz targets' own")]
#[path = "../../fuzz/src/decoded.rs"]
mod decoded;
mod parameters;
mod shapes;

use std::collections::BTreeSet;

use tensorwire::testing::{
    BundledMessage, ControlMessage, FilledSlot, Generated, NearlyValid, Parameters, TensorMessage,
};

use decoded::{Decoded, assert_refused};

/// Where choices come from.
trait Source {
    fn valid<T: Generated>(&mut self, parameters: &Parameters) -> T;
    fn nearly_valid<T: Generated>(&mut self, parameters: &Parameters) -> NearlyValid<T>;
}

/// As a fuzzer brings them: bytes, sometimes few.
#[cfg(feature = "arbitrary")]
struct Fuzzer(u64);

#[cfg(feature = "arbitrary")]
impl Fuzzer {
    fn bytes(&mut self) -> Vec<u8> {
        let mut word = || {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            mixed ^ (mixed >> 29)
        };
        let words = word() % 80;
        (0..words).flat_map(|_| word().to_le_bytes()).collect()
    }
}

#[cfg(feature = "arbitrary")]
impl Source for Fuzzer {
    fn valid<T: Generated>(&mut self, parameters: &Parameters) -> T {
        let bytes = self.bytes();
        tensorwire::testing::arbitrary::valid(&mut arbitrary::Unstructured::new(&bytes), parameters)
    }

    fn nearly_valid<T: Generated>(&mut self, parameters: &Parameters) -> NearlyValid<T> {
        let bytes = self.bytes();
        let mut input = arbitrary::Unstructured::new(&bytes);
        tensorwire::testing::arbitrary::nearly_valid(&mut input, parameters)
    }
}

/// As a property test brings them, the same ones in each run.
#[cfg(feature = "proptest")]
struct Runner(proptest::test_runner::TestRunner);

#[cfg(feature = "proptest")]
impl Runner {
    fn run<T>(&mut self, strategy: impl proptest::strategy::Strategy<Value = T>) -> T {
        use proptest::strategy::ValueTree;

        strategy.new_tree(&mut self.0).unwrap().current()
    }
}

#[cfg(feature = "proptest")]
impl Source for Runner {
    fn valid<T: Generated>(&mut self, parameters: &Parameters) -> T {
        self.run(tensorwire::testing::proptest::valid(parameters.clone()))
    }

    fn nearly_valid<T: Generated>(&mut self, parameters: &Parameters) -> NearlyValid<T> {
        let strategy = tensorwire::testing::proptest::nearly_valid(parameters.clone());
        self.run(strategy)
    }
}

/// Enough that all that can occur does.
const MANY: usize = 2000;

fn every_valid_one_decodes_to_what_it_says<T: Decoded>(source: &mut impl Source) {
    let strict = Parameters::new().with_strict_json(true);
    let python = Parameters::new().with_python_spelling(true);
    for parameters in [Parameters::new(), strict, python] {
        for _ in 0..MANY / 4 {
            source.valid::<T>(&parameters).assert_decodes(&parameters);
        }
    }
}

fn every_nearly_valid_one_is_refused_as_it_says<T: Decoded>(source: &mut impl Source) {
    let mut seen = BTreeSet::new();
    let parameters = Parameters::new();
    for _ in 0..MANY {
        let sent = source.nearly_valid::<T>(&parameters);
        assert_refused(&sent);
        seen.insert(sent.mutation());
    }
    let all: BTreeSet<_> = T::MUTATIONS.iter().copied().collect();
    assert_eq!(all.len(), T::MUTATIONS.len());
    assert_eq!(seen, all);
}

macro_rules! over {
    ($source:ident: $make:expr) => {
        mod $source {
            use super::*;

            over!($make => messages: TensorMessage, bundles: BundledMessage, controls: ControlMessage, slots: FilledSlot);

            #[test]
            fn all_dtypes_and_kinds_of_places_occur() {
                parameters::all_dtypes_and_kinds_of_places_occur(&mut $make);
            }

            #[test]
            fn all_types_of_control_messages_occur() {
                shapes::all_types_of_control_messages_occur(&mut $make);
            }

            #[test]
            fn what_is_rare_occurs_often() {
                shapes::what_is_rare_occurs_often(&mut $make);
            }

            #[test]
            fn tensors_lie_in_any_order_in_their_slot() {
                shapes::tensors_lie_in_any_order_in_their_slot(&mut $make);
            }

            #[test]
            fn no_message_exceeds_its_parameters() {
                parameters::no_message_exceeds_its_parameters(&mut $make);
            }

            #[test]
            fn without_room_there_are_mutations_all_the_same() {
                parameters::without_room_there_are_mutations_all_the_same(&mut $make);
            }

            #[test]
            fn as_python_spells_it_is_byte_for_byte() {
                parameters::as_python_spells_it_is_byte_for_byte(&mut $make);
            }
        }
    };
    ($make:expr => $($name:ident: $message:ident),+) => {$(
        mod $name {
            use super::*;

            #[test]
            fn every_valid_one_decodes_to_what_it_says() {
                super::every_valid_one_decodes_to_what_it_says::<$message>(&mut $make);
            }

            #[test]
            fn every_nearly_valid_one_is_refused_as_it_says() {
                super::every_nearly_valid_one_is_refused_as_it_says::<$message>(&mut $make);
            }
        }
    )+};
}

#[cfg(feature = "arbitrary")]
over!(from_a_fuzzer: Fuzzer(1));

#[cfg(feature = "proptest")]
over!(from_a_property_test: Runner(proptest::test_runner::TestRunner::deterministic()));

/// A fuzzer's input may end anywhere, and a struct of the user's may hold messages.
#[cfg(feature = "arbitrary")]
#[test]
fn an_input_without_bytes_is_the_simplest_message() {
    use arbitrary::{Arbitrary, Unstructured};

    #[derive(Arbitrary, Debug)]
    struct Exchange {
        request: TensorMessage,
        control: Option<ControlMessage>,
        last: NearlyValid<TensorMessage>,
    }

    let exchange = Exchange::arbitrary(&mut Unstructured::new(&[])).unwrap();
    let expected = r#"{"tensor_descriptors":[],"scalar_fields":{}}"#;
    assert_eq!(exchange.request.metadata(), expected.as_bytes());
    assert!(exchange.control.is_none());
    assert!(exchange.last.frames().is_empty());
}

/// What fails is made smaller: no choice is needed to have a valid message.
#[cfg(feature = "proptest")]
fn shrunk(fails: impl Fn(&TensorMessage) -> bool) -> TensorMessage {
    use proptest::prelude::*;
    use proptest::test_runner::{TestError, TestRunner};

    let result = TestRunner::deterministic().run(&any::<TensorMessage>(), |message| {
        prop_assert!(!fails(&message));
        Ok(())
    });
    let Err(TestError::Fail(_, message)) = result else {
        panic!("{result:?}");
    };
    message
}

#[cfg(feature = "proptest")]
#[test]
fn a_failing_message_shrinks_to_one_that_hardly_has_anything_else() {
    let message = shrunk(|message| {
        message
            .tensors()
            .iter()
            .any(|tensor| tensor.bytes().len() > 8)
    });
    assert!(message.tensors().len() <= 2, "{message:?}");
    assert_eq!(message.scalars(), "{}", "{message:?}");
    let bytes = message.tensors().iter().map(|tensor| tensor.bytes().len());
    assert!(bytes.sum::<usize>() <= 48, "{message:?}");

    // Where it is the scalars, to them.
    let message = shrunk(|message| message.scalars().contains("NaN"));
    assert!(message.tensors().is_empty(), "{message:?}");
}
