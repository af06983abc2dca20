//! What occurs in messages, and what does not.

use std::collections::BTreeSet;

use tensorwire::dtype::Generation;
use tensorwire::json::Value;
use tensorwire::message::encode_to_vec;
use tensorwire::testing::{
    BundledMessage, ControlMessage, FilledSlot, Parameters, Tensor, TensorMessage,
};
use tensorwire::transfer::manifest::Plan;
use tensorwire::{DType, TensorView};

use crate::decoded::{Decoded, assert_refused};
use crate::{MANY, Source};

pub(crate) fn all_dtypes_and_kinds_of_places_occur(source: &mut impl Source) {
    let parameters = Parameters::new();
    let mut dtypes = Vec::new();
    let mut ranks = BTreeSet::new();
    let mut has = [false; 8];
    for _ in 0..MANY {
        let message = source.valid::<TensorMessage>(&parameters);
        for (index, tensor) in message.tensors().iter().enumerate() {
            dtypes.extend((!dtypes.contains(&tensor.dtype())).then_some(tensor.dtype()));
            ranks.insert(tensor.shape().len());
            let later = &message.tensors()[index + 1..];
            let comes_before = |other: &&Tensor| {
                other.name() == tensor.name() && other.list_index() < tensor.list_index()
            };
            has[0] |= tensor.list_index().is_some();
            has[1] |= tensor.list_index() > Some(4000);
            has[2] |= later.iter().find(comes_before).is_some();
            has[3] |= tensor.bytes().is_empty();
            has[4] |= tensor.shape().contains(&(1 << 16));
            has[5] |= tensor.name().is_empty();
        }
        let metadata = str::from_utf8(message.metadata()).unwrap();
        has[6] |= metadata.contains("NaN");
        has[7] |= !metadata.starts_with("{\"tensor_descriptors\":[");
    }
    assert_eq!(dtypes.len(), DType::ALL.len(), "{dtypes:?}");
    assert!(ranks.into_iter().eq(0..=parameters.rank()));
    assert_eq!(has, [true; 8]);
}

fn assert_within(parameters: &Parameters, tensors: &[Tensor]) {
    assert!(tensors.len() <= parameters.tensors());
    let bytes: usize = tensors.iter().map(|tensor| tensor.bytes().len()).sum();
    assert!(bytes <= parameters.bytes(), "{bytes} over {parameters:?}");
    for tensor in tensors {
        assert!(tensor.shape().len() <= parameters.rank(), "{tensor:?}");
        assert!(parameters.dtypes().contains(&tensor.dtype()), "{tensor:?}");
    }
}

/// Parameters of all sizes, the smallest among them.
fn corners() -> impl Iterator<Item = Parameters> {
    let counts = [0, 1, 2, 9];
    let bytes = [0, 1, 7, 100, 10_000];
    let dtypes: [&[DType]; 4] = [&[], &[DType::Bool], &[DType::Complex128], DType::ALL];
    counts.into_iter().flat_map(move |tensors| {
        bytes.into_iter().flat_map(move |bytes| {
            dtypes.into_iter().flat_map(move |dtypes| {
                [0, 1, 64, 1000].into_iter().map(move |rank| {
                    let parameters = Parameters::new().with_tensors(tensors).with_bytes(bytes);
                    let parameters = parameters.with_dtypes(dtypes).with_rank(rank);
                    parameters.with_scalars(tensors / 2)
                })
            })
        })
    })
}

pub(crate) fn no_message_exceeds_its_parameters(source: &mut impl Source) {
    for parameters in corners() {
        for _ in 0..3 {
            let message = source.valid::<TensorMessage>(&parameters);
            assert_within(&parameters, message.tensors());
            message.assert_decodes(&parameters);
            let scalars = Value::parse(message.scalars().as_bytes()).unwrap();
            let count = scalars.as_object().unwrap().iter().count();
            assert!(count <= parameters.scalars());

            let bundled = source.valid::<BundledMessage>(&parameters);
            assert_within(&parameters, bundled.message().tensors());

            let slot = source.valid::<FilledSlot>(&parameters);
            assert_within(&parameters, slot.tensors());
            slot.assert_decodes(&parameters);
            let gaps = 512 * slot.tensors().len();
            assert!(slot.slot().len() <= parameters.bytes() + gaps);

            let control = source.valid::<ControlMessage>(&parameters);
            control.assert_decodes(&parameters);
        }
    }
}

pub(crate) fn without_room_there_are_mutations_all_the_same(source: &mut impl Source) {
    fn run<T: Decoded>(source: &mut impl Source, parameters: &Parameters) {
        assert_refused(&source.nearly_valid::<T>(parameters));
    }

    for parameters in corners() {
        for _ in 0..4 {
            run::<TensorMessage>(source, &parameters);
            run::<BundledMessage>(source, &parameters);
            run::<ControlMessage>(source, &parameters);
            run::<FilledSlot>(source, &parameters);

            let sent = source.nearly_valid::<TensorMessage>(&parameters);
            let payloads = sent.frames().iter().skip(1);
            assert!(payloads.clone().count() <= parameters.tensors() + 1);
            let bytes: usize = payloads.map(Vec::len).sum();
            assert!(bytes <= parameters.bytes(), "{sent:?}");
        }
    }
}

pub(crate) fn as_python_spells_it_is_byte_for_byte(source: &mut impl Source) {
    let parameters = Parameters::new().with_python_spelling(true);
    let mut manifests = 0;
    for _ in 0..MANY / 4 {
        let message = source.valid::<TensorMessage>(&parameters);
        let views = views(message.tensors());
        let scalars = Value::parse(message.scalars().as_bytes()).unwrap();
        let written = encode_to_vec(&views, &scalars).unwrap();
        assert_eq!(
            str::from_utf8(message.metadata()),
            str::from_utf8(&written),
            "{message:?}"
        );

        let sent = source.valid::<FilledSlot>(&parameters);
        let views = self::views(sent.tensors());
        let plan = Plan::new(&views).unwrap();
        let mut written = vec![0xa5; plan.encoded_len()];
        plan.encode_into(&mut written).unwrap();
        assert_eq!(sent.manifest().as_bytes(), written);
        let mut slot = vec![0xa5; plan.slot_len()];
        plan.store(&mut slot).unwrap();
        assert_eq!(sent.slot(), slot);
        manifests += usize::from(sent.tensors().len() > 1);
    }
    assert!(manifests > MANY / 16, "{manifests}");
}

fn views(tensors: &[Tensor]) -> Vec<TensorView<'_>> {
    tensors
        .iter()
        .map(|tensor| tensor.view().unwrap())
        .collect()
}

/// For peers of one generation there are the dtypes of that.
#[test]
fn dtypes_are_those_of_the_parameters() {
    let oldest = |dtype: &&DType| dtype.generation() == Generation::Oldest;
    let oldest: Vec<_> = DType::ALL.iter().filter(oldest).copied().collect();
    let parameters = Parameters::new().with_dtypes(&oldest);
    assert_eq!(parameters.dtypes(), oldest);
}
