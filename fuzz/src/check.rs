//! What holds for every message that decodes, and for every error.

use half::{bf16, f16};
use tensorwire::error::{CastError, DecodeError, DecodeErrorKind, ValueErrorKind};
use tensorwire::json::{Value, ValueType};
use tensorwire::message::Field;
use tensorwire::tensor::{
    Element, Float8E4M3Fn, Float8E4M3Fnuz, Float8E5M2, Float8E5M2Fnuz, Float8E8M0Fnu,
};
use tensorwire::{DType, Message, TensorView};

use super::naive::{self, Json, Node};

/// What a message says, in memory of its own.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    pub tensors: Vec<Tensor>,
    pub scalars: String,
    pub payload_bytes: usize,
}

/// What is known of one tensor.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    pub name: String,
    pub list_index: Option<u32>,
    pub dtype: DType,
    pub shape: Vec<usize>,
    pub bytes: Vec<u8>,
}

impl Summary {
    pub fn of<F: AsRef<[u8]>>(message: &Message<'_, '_, F>) -> Self {
        Self {
            tensors: message
                .tensors()
                .map(|view| Tensor {
                    name: view.name().to_cow().unwrap().into_owned(),
                    list_index: view.list_index(),
                    dtype: view.dtype(),
                    shape: view.dims().collect(),
                    bytes: view.bytes().to_vec(),
                })
                .collect(),
            scalars: message.scalars().as_value().raw().to_string(),
            payload_bytes: message.cost().payload_bytes(),
        }
    }
}

/// What holds for the error of decoding `frames`.
pub fn error<F: AsRef<[u8]>>(error: DecodeError, frames: &[F]) {
    let metadata = frames.first().map_or(&[][..], AsRef::as_ref);
    assert!(error.offset() <= metadata.len(), "{error}");
    if let Some(index) = error.descriptor() {
        // Each descriptor past the first has a comma before it.
        let commas = metadata.iter().filter(|&&byte| byte == b',').count();
        assert!(index <= commas, "{error}");
    }
    if let DecodeErrorKind::FrameLength { .. } = error.kind() {
        assert_eq!(metadata.get(error.offset()), Some(&b'{'), "{error}");
    }
    let text = error.to_string();
    assert!(text.len() <= 128, "{text}");
    assert!(
        text.bytes().all(|byte| matches!(byte, b' '..=b'~')),
        "{text}"
    );
}

/// Walks all accessors of a message, each held against another way to the same.
pub fn message<F: AsRef<[u8]>>(message: &Message<'_, '_, F>) {
    let summary = Summary::of(message);
    assert_eq!(summary.tensors.len(), message.len());
    assert_eq!(message.is_empty(), summary.tensors.is_empty());
    let bytes: usize = summary
        .tensors
        .iter()
        .map(|tensor| tensor.bytes.len())
        .sum();
    assert_eq!(bytes, message.cost().payload_bytes());
    assert_eq!(message.metadata().descriptors().count(), message.len());
    assert!(message.get(message.len()).is_none());
    let misaligned = message.tensors().filter(|view| !view.is_aligned());
    assert_eq!(misaligned.count(), message.cost().misaligned());

    for (index, tensor) in summary.tensors.iter().enumerate() {
        let descriptor = message.metadata().descriptor(index).unwrap();
        assert!(descriptor.name() == tensor.name.as_str());
        assert_eq!(descriptor.byte_len(), tensor.bytes.len());
        assert_eq!(descriptor.dtype(), tensor.dtype);
        let position = message.metadata().position(&tensor.name);
        assert_eq!(position, tensor.list_index.is_none().then_some(index));
        field(message, &summary, tensor);
    }
    for (name, absent) in [("", true), ("\u{10ffff}", true), ("latents", true)] {
        let known = summary.tensors.iter().any(|tensor| tensor.name == name);
        assert_eq!(message.field(name).is_none(), absent && !known);
    }
    for tensor in message.tensors() {
        view(&tensor);
    }
}

fn field<F: AsRef<[u8]>>(message: &Message<'_, '_, F>, summary: &Summary, tensor: &Tensor) {
    let name = tensor.name.as_str();
    match message.field(name).unwrap() {
        Field::Tensor(view) => {
            assert_eq!(tensor.list_index, None);
            assert_eq!(view.bytes(), tensor.bytes);
            assert_eq!(message.tensor(name).unwrap().bytes(), tensor.bytes);
            assert!(message.list(name).is_none());
        }
        Field::List(list) => {
            let index = tensor.list_index.unwrap() as usize;
            assert!(message.tensor(name).is_none());
            assert_eq!(list.get(index).unwrap().bytes(), tensor.bytes);
            let members = || {
                let all = summary.tensors.iter();
                all.filter(|other| other.name == name)
            };
            // The whole list once, not once for each of its members.
            if members().next() != Some(tensor) {
                return;
            }
            let last = members().filter_map(|member| member.list_index).max();
            assert_eq!(list.len(), last.unwrap() as usize + 1);
            assert_eq!(list.iter().count(), list.len());
            assert_eq!(list.present_len(), members().count());
            assert!(!list.is_empty() && list.get(list.len()).is_none());
            for (index, member) in list.iter().enumerate() {
                let expected = members().find(|other| other.list_index == Some(index as u32));
                assert_eq!(
                    member.map(|view| view.bytes()),
                    expected.map(|tensor| tensor.bytes.as_slice())
                );
                assert_eq!(list.get(index).is_some(), expected.is_some());
            }
            assert!(list.present().is_sorted_by(|a, b| a.0 < b.0));
            assert_eq!(list.present().count(), list.present_len());
        }
        _ => unreachable!("a field is one of the two"),
    }
}

/// All that a view gives, against its bytes.
pub fn view(view: &TensorView<'_>) {
    let shape: Vec<usize> = view.dims().collect();
    assert_eq!(view.dims().len(), shape.len());
    assert_eq!(view.rank(), shape.len());
    assert_eq!(shape.iter().product::<usize>(), view.element_count());
    assert_eq!(
        view.bytes().len(),
        view.element_count() * view.dtype().size()
    );
    let mut dims = vec![usize::MAX; shape.len() + 1];
    assert_eq!(view.shape().copy_to(&mut dims), Ok(shape.as_slice()));
    if let Some(short) = shape.len().checked_sub(1) {
        assert!(view.shape().copy_to(&mut dims[..short]).is_err());
    }
    assert_eq!(view.shape().to_array::<2>().is_ok(), shape.len() == 2);

    // Outermost dimension and all.
    let count = shape.first().copied().unwrap_or(0);
    assert!(view.index(count).is_none() && view.index(usize::MAX).is_none());
    let inner = view.bytes().len().checked_div(count).unwrap_or(0);
    for index in [0, count / 2, count.saturating_sub(1)] {
        let Some(part) = view.index(index) else {
            assert_eq!(count, 0);
            continue;
        };
        assert_eq!(part.bytes(), &view.bytes()[index * inner..][..inner]);
        assert!(part.dims().eq(shape[1..].iter().copied()));
        assert_eq!(part.element_count(), shape[1..].iter().product::<usize>());
        assert!(part.name() == view.name() && part.dtype() == view.dtype());
    }
    let flat = view.flatten();
    assert!(flat.dims().eq([view.element_count()]));
    assert_eq!(flat.bytes(), view.bytes());

    match view.dtype() {
        DType::BFloat16 => elements::<bf16>(view),
        DType::Bool => elements::<bool>(view),
        DType::Complex128 => elements::<[f64; 2]>(view),
        DType::Complex64 => elements::<[f32; 2]>(view),
        DType::Float16 => elements::<f16>(view),
        DType::Float32 => elements::<f32>(view),
        DType::Float64 => elements::<f64>(view),
        DType::Float8E4M3Fn => elements::<Float8E4M3Fn>(view),
        DType::Float8E4M3Fnuz => elements::<Float8E4M3Fnuz>(view),
        DType::Float8E5M2 => elements::<Float8E5M2>(view),
        DType::Float8E5M2Fnuz => elements::<Float8E5M2Fnuz>(view),
        DType::Float8E8M0Fnu => elements::<Float8E8M0Fnu>(view),
        DType::Int16 => elements::<i16>(view),
        DType::Int32 => elements::<i32>(view),
        DType::Int64 => elements::<i64>(view),
        DType::Int8 => elements::<i8>(view),
        DType::UInt16 => elements::<u16>(view),
        DType::UInt32 => elements::<u32>(view),
        DType::UInt64 => elements::<u64>(view),
        DType::UInt8 => elements::<u8>(view),
        other => unreachable!("{other} is not among those known here"),
    }
    if view.dtype() != DType::Int8 {
        let expected = DType::Int8;
        let actual = view.dtype();
        let error = CastError::WrongDType { expected, actual };
        assert_eq!(view.as_slice::<i8>(), Err(error));
        assert_eq!(view.elements::<i8>().err(), Some(error));
    }
}

fn elements<T: Element>(view: &TensorView<'_>) {
    let count = view.element_count();
    let elements = match view.elements::<T>() {
        Ok(elements) => elements,
        Err(error) => {
            let CastError::InvalidBool { index, byte } = error else {
                panic!("{error}");
            };
            assert_eq!(view.dtype(), DType::Bool);
            assert!(byte > 1 && view.bytes()[index] == byte);
            assert!(view.bytes()[..index].iter().all(|&byte| byte <= 1));
            assert_eq!(view.as_slice::<T>(), Err(error));
            return;
        }
    };
    // Bytes are compared, not elements: NaN is not equal to itself.
    let bytes = view.bytes();
    let shape = [count];
    let assert_bytes = |elements: &[T]| {
        let copy = TensorView::from_slice("", &shape, elements).unwrap();
        assert_eq!(copy.bytes(), bytes);
    };
    assert_eq!(elements.len(), count);
    let forwards: Vec<T> = elements.clone().collect();
    assert_bytes(&forwards);
    let mut backwards: Vec<T> = elements.rev().collect();
    let dirty = backwards.clone();
    backwards.reverse();
    assert_bytes(&backwards);
    assert_bytes(&view.to_vec::<T>().unwrap());

    match view.as_slice::<T>() {
        Ok(slice) => {
            assert!(view.is_aligned());
            assert_bytes(slice);
            assert!(slice.is_empty() || slice.as_ptr().addr() == bytes.as_ptr().addr());
        }
        Err(error) => {
            let required = align_of::<T>();
            let actual = view.alignment();
            assert_eq!(error, CastError::Misaligned { required, actual });
            assert!(!view.is_aligned() && actual < required);
        }
    }

    let mut scratch = dirty.clone();
    view.copy_to_slice(&mut scratch).unwrap();
    assert_bytes(&scratch);
    let mut scratch = dirty;
    scratch.extend_from_within(..);
    assert_bytes(view.as_slice_or_copy(&mut scratch).unwrap());
    let (expected, actual) = (count, 0);
    if !view.is_aligned() {
        let error = CastError::Length { expected, actual };
        assert_eq!(view.as_slice_or_copy::<T>(&mut []), Err(error));
    }
    if count > 0 {
        let error = CastError::Length { expected, actual };
        assert_eq!(view.copy_to_slice::<T>(&mut []), Err(error));
    }
}

/// A value and all inside it, against the naive reading of the same text.
pub fn value(document: &str, value: Value<'_>, node: &Node<'_>) {
    assert_eq!(value.raw(), node.raw);
    assert_eq!(value.offset(), node.at);
    assert_eq!(
        &document[value.offset()..][..value.raw().len()],
        value.raw()
    );
    let again = Value::parse(value.raw().as_bytes()).unwrap();
    assert_eq!((again.raw(), again.offset()), (value.raw(), 0));
    let strict = Value::parse_strict(value.raw().as_bytes());
    assert_eq!(strict.is_ok(), node.is_strict());
    typed_reads(value, node);

    match &node.json {
        Json::Null => assert!(value.is_null()),
        Json::Bool(expected) => assert_eq!(value.as_bool(), Ok(*expected)),
        Json::NonFinite => assert!(!value.as_f64().unwrap().is_finite()),
        Json::Number => number(value),
        Json::Str(points) => string(value, points),
        Json::Array(items) => {
            let array = value.as_array().unwrap();
            assert_eq!(array.iter().count(), items.len());
            for (element, item) in array.iter().zip(items) {
                self::value(document, element, item);
            }
            assert!(array.get(items.len()).is_none());
        }
        Json::Object(members) => {
            let object = value.as_object().unwrap();
            assert_eq!(object.iter().count(), members.len());
            assert_eq!(object.is_empty(), members.is_empty());
            for ((name, member), (key, node)) in object.iter().zip(members) {
                assert!(name.code_points().eq(key.iter().copied()));
                self::value(document, member, node);
                if let Some(key) = naive::text(key) {
                    let same = |other: &&(Vec<u32>, Node<'_>)| {
                        naive::text(&other.0).as_ref() == Some(&key)
                    };
                    let last = members.iter().rfind(same).unwrap();
                    assert_eq!(object.get(&key).unwrap().offset(), last.1.at);
                }
            }
        }
    }
}

/// Every read of a value of another type says so, at the value.
fn typed_reads(value: Value<'_>, node: &Node<'_>) {
    let actual = match node.json {
        Json::Null => ValueType::Null,
        Json::Bool(_) => ValueType::Bool,
        Json::NonFinite | Json::Number => ValueType::Number,
        Json::Str(_) => ValueType::String,
        Json::Array(_) => ValueType::Array,
        Json::Object(_) => ValueType::Object,
    };
    assert_eq!(value.value_type(), actual);
    for (expected, error) in [
        (ValueType::Bool, value.as_bool().err()),
        (ValueType::Number, value.as_f64().err()),
        (ValueType::Number, value.as_i64().err()),
        (ValueType::Number, value.as_u128().err()),
        (ValueType::String, value.as_str().err()),
        (ValueType::Array, value.as_array().err()),
        (ValueType::Object, value.as_object().err()),
    ] {
        if let Some(error) = error {
            assert_eq!(error.offset(), value.offset());
            let wrong_type = ValueErrorKind::WrongType { expected, actual };
            assert_eq!(error.kind() == wrong_type, expected != actual);
        } else {
            assert_eq!(expected, actual);
        }
    }
}

/// A number against serde_json's reading of it.
///
/// The two differ in what they make of `-0`, here the integer 0 and there no
/// unsigned integer and the float -0.0, and of floats past the range, here
/// infinite as they are to Python and there an error.
fn number(value: Value<'_>) {
    let text = value.raw();
    if text != "-0" {
        assert_eq!(value.as_i64().ok(), serde_json::from_str(text).ok());
        assert_eq!(value.as_u64().ok(), serde_json::from_str(text).ok());
        assert_eq!(value.as_i128().ok(), serde_json::from_str(text).ok());
        assert_eq!(value.as_u128().ok(), serde_json::from_str(text).ok());
    } else {
        assert_eq!((value.as_i64(), value.as_u128()), (Ok(0), Ok(0)));
    }
    match (value.as_f64(), serde_json::from_str::<f64>(text)) {
        (Ok(ours), Ok(theirs)) => assert_eq!(ours.to_bits(), theirs.to_bits(), "{text}"),
        (Ok(ours), Err(_)) => assert!(ours.is_infinite() && !value.is_integer(), "{text}"),
        (Err(error), Err(_)) => {
            assert_eq!(error.kind(), ValueErrorKind::NumberOutOfRange);
            assert!(value.is_integer());
        }
        (Err(error), Ok(theirs)) => panic!("{text}: {error} against {theirs}"),
    }
}

/// A string against its code points, and against serde_json's reading of it.
fn string(value: Value<'_>, points: &[u32]) {
    let read = value.as_str().unwrap();
    assert!(read.code_points().eq(points.iter().copied()));
    let expected = naive::text(points);
    assert_eq!(expected, serde_json::from_str(value.raw()).ok());
    assert_eq!(read.to_cow().ok().as_deref(), expected.as_deref());
    assert_eq!(read.to_string(), read.to_cow_lossy());
    let shown = format!("{read:?}");
    assert!(!shown.chars().any(|c| c.is_control()), "{shown}");
    match expected {
        Some(text) => {
            assert!(read == text.as_str());
            assert_eq!(read.to_cow_lossy(), text);
            assert_eq!(read.decoded_len(), Ok(text.len()));
            let mut buffer = vec![0xa5; text.len()];
            assert_eq!(read.copy_to(&mut buffer), Ok(text.as_str()));
            if let Some(capacity) = text.len().checked_sub(1) {
                let needed = text.len();
                let kind = ValueErrorKind::BufferTooSmall { needed, capacity };
                let error = read.copy_to(&mut buffer[..capacity]).unwrap_err();
                assert_eq!(error.kind(), kind);
            }
            if let Some(plain) = read.as_plain() {
                assert_eq!(plain, text);
            }
        }
        None => {
            let kind = ValueErrorKind::LoneSurrogate;
            assert_eq!(read.decoded_len().unwrap_err().kind(), kind);
            assert_eq!(read.copy_to(&mut [0; 64]).unwrap_err().kind(), kind);
            assert!(read.as_plain().is_none());
        }
    }
}
