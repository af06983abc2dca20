//! Which errors there are nearly valid messages for: all, but for those that are the caller's doing or too large.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use super::choices::{Bytes, noise};
use super::{
    BundledMessage, ControlMessage, FilledSlot, Generated, MessageMutation, Parameters,
    TensorMessage,
};
use crate::bundle::ErrorKind;
use crate::error::{DecodeErrorKind as Kind, SchemaKey as Key, SyntaxError};
use crate::json::ValueType;

/// A row per kind of error: its name, and by which messages it is met. A kind without a row does not compile.
macro_rules! table {
    ($name:ident, $table:ident, $kind:ty: $($pattern:pat => $row:literal $by:literal,)+) => {
        fn $name(kind: $kind) -> &'static str {
            match kind {
                $($pattern => $row,)+
            }
        }

        const $table: &[(&str, &str)] = &[$(($row, $by)),+];
    };
}

// By `m`, messages; `c`, control messages; `s`, slots.
table! { name, DECODE, Kind:
    Kind::BadDim => "dimension" "ms",
    Kind::BadInteger => "integer" "cs",
    Kind::BadListIndex => "list index" "ms",
    Kind::ControlMessage => "control message" "m",
    // Of a manifest it is found by who reads the document that the manifest is in.
    Kind::DepthLimit { .. } => "depth" "mc",
    // 4097 tensors are not a small message.
    Kind::DescriptorLimit { .. } => "count of descriptors" "",
    Kind::DimOverflow => "dimension over" "ms",
    Kind::DuplicateField => "field twice" "ms",
    Kind::DuplicateKey => "key twice" "mcs",
    Kind::DuplicateListIndex { .. } => "list index twice" "ms",
    Kind::FrameCount { .. } => "count of frames" "m",
    Kind::FrameLength { .. } => "length of a frame" "m",
    Kind::IntegerOverflow => "integer over" "cs",
    Kind::InvalidName => "name" "ms",
    // As is whatever makes it no JSON.
    Kind::InvalidUtf8 => "utf-8" "mc",
    Kind::ListIndexLimit { .. } => "list index over" "ms",
    // Nor is a mebibyte of metadata.
    Kind::MetadataLimit { .. } => "metadata" "",
    Kind::MissingKey(Key::Addr) => "addr" "c",
    Kind::MissingKey(Key::DType) => "dtype" "ms",
    Kind::MissingKey(Key::DataSize) => "data_size" "c",
    Kind::MissingKey(Key::DestAddr) => "dest_addr" "c",
    Kind::MissingKey(Key::DestSessionId) => "dest_session_id" "c",
    Kind::MissingKey(Key::FieldName) => "field_name" "m",
    Kind::MissingKey(Key::Manifest) => "manifest" "c",
    Kind::MissingKey(Key::MsgType) => "msg_type" "c",
    Kind::MissingKey(Key::Offset) => "offset" "cs",
    Kind::MissingKey(Key::PoolPtr) => "pool_ptr" "c",
    Kind::MissingKey(Key::PoolSize) => "pool_size" "c",
    Kind::MissingKey(Key::RequestId) => "request_id" "c",
    Kind::MissingKey(Key::Role) => "role" "c",
    Kind::MissingKey(Key::SessionId) => "session_id" "c",
    Kind::MissingKey(Key::Shape) => "shape" "ms",
    Kind::MissingKey(Key::Size) => "size" "c",
    Kind::MissingKey(Key::SlotId) => "slot_id" "c",
    Kind::MissingKey(Key::SlotOffset) => "slot_offset" "c",
    Kind::MissingKey(Key::SlotSize) => "slot_size" "c",
    Kind::MissingKey(Key::TensorDescriptors) => "tensor_descriptors" "m",
    Kind::MissingKey(Key::TransferSize) => "transfer_size" "c",
    // No message has to have these.
    Kind::MissingKey(
        Key::Error
        | Key::PreallocatedSlots
        | Key::ScalarFields
        | Key::SourceRole
        | Key::StagedForDecoder
        | Key::WorkEndpoint,
    ) => "others" "",
    Kind::MixedField => "plain and list" "ms",
    Kind::NameLimit { .. } => "length of a name" "ms",
    Kind::NoFrames => "no frames" "mc",
    Kind::NoPayload => "no payload" "c",
    Kind::NonFinite => "non-finite" "mc",
    Kind::NotControlMessage => "no control message" "c",
    Kind::OutOfSlot { .. } => "out of the slot" "s",
    Kind::Overlap { .. } => "overlap" "s",
    Kind::RankLimit { .. } => "rank" "ms",
    Kind::ShapeOverflow => "shape over" "ms",
    // What the caller holds a manifest against, the caller's storage, the caller's cap.
    Kind::SlotLength { .. } => "length of the slot" "",
    Kind::StorageFull { .. } => "storage" "",
    Kind::TensorBytesLimit { .. } => "tensor bytes" "",
    Kind::Syntax(SyntaxError::ControlCharacter) => "control character" "mc",
    Kind::Syntax(SyntaxError::InvalidEscape) => "escape" "mc",
    Kind::Syntax(SyntaxError::InvalidNumber) => "number" "mc",
    Kind::Syntax(SyntaxError::UnexpectedByte { .. }) => "byte" "mc",
    Kind::Syntax(SyntaxError::UnexpectedEnd) => "end" "mc",
    Kind::TrailingData => "trailing data" "mc",
    Kind::UnknownDType => "unknown dtype" "ms",
    Kind::WrongType { .. } => "type" "mcs",
}

table! { bundle_name, BUNDLE, ErrorKind:
    ErrorKind::BadMagic => "magic" "b",
    ErrorKind::FrameCount { .. } => "count of frames" "b",
    ErrorKind::FrameLength { .. } => "length of a frame" "b",
    ErrorKind::FrameOffset { .. } => "offset of a frame" "b",
    ErrorKind::NoFrames => "no frames" "b",
    ErrorKind::NonZeroPadding { .. } => "padding" "b",
    ErrorKind::TotalLength { .. } => "total length" "b",
    ErrorKind::TrailingBytes { .. } => "trailing bytes" "b",
    ErrorKind::Truncated { .. } => "truncated" "b",
    ErrorKind::UnknownVersion { .. } => "version" "b",
    // The caller's storage, buffer and frames.
    ErrorKind::BufferTooSmall { .. }
    | ErrorKind::LengthsChanged
    | ErrorKind::StorageFull { .. }
    | ErrorKind::TooLarge
    | ErrorKind::TooManyFrames => "others" "",
}

/// Choices of many messages.
fn choices() -> impl Iterator<Item = Vec<u8>> {
    (0..4000).map(|seed| noise(seed).take(256).collect())
}

/// What is wrong with many messages.
fn kinds<T: Generated>() -> impl Iterator<Item = T::ErrorKind> {
    let parameters = Parameters::new();
    choices()
        .map(move |bytes| T::generate_nearly(&mut Bytes::new(&bytes), &parameters).error_kind())
}

fn assert_met<T: Generated>(
    table: &[(&'static str, &str)],
    by: char,
    name: impl Fn(T::ErrorKind) -> &'static str,
) {
    let rows = table.iter().filter(|(_, all)| all.contains(by));
    let expected: BTreeSet<_> = rows.map(|(name, _)| *name).collect();
    let met: BTreeSet<_> = kinds::<T>().map(name).collect();
    assert_eq!(met, expected, "{by}");
}

#[test]
fn every_error_of_a_peer_is_met() {
    assert_met::<TensorMessage>(DECODE, 'm', name);
    assert_met::<ControlMessage>(DECODE, 'c', name);
    assert_met::<FilledSlot>(DECODE, 's', name);
    assert_met::<BundledMessage>(BUNDLE, 'b', bundle_name);
}

/// The types that were asked for where there was another one.
fn asked_for<T: Generated<ErrorKind = Kind>>() -> BTreeSet<&'static str> {
    let types = kinds::<T>().filter_map(|kind| match kind {
        Kind::WrongType { expected, actual } => {
            assert_ne!(expected, actual);
            Some(match expected {
                ValueType::Array => "array",
                ValueType::Number => "number",
                ValueType::Object => "object",
                ValueType::String => "string",
                ValueType::Bool | ValueType::Null => "other",
            })
        }
        _ => None,
    });
    types.collect()
}

#[test]
fn every_type_that_is_asked_for_is_met_by_another() {
    let all = BTreeSet::from(["array", "number", "object", "string"]);
    assert_eq!(asked_for::<TensorMessage>(), all);
    assert_eq!(asked_for::<ControlMessage>(), all);
    assert_eq!(asked_for::<FilledSlot>(), all);
}

#[test]
fn what_a_mutation_adds_has_no_rank_that_is_not_allowed() {
    let parameters = Parameters::new().with_rank(0);
    for bytes in choices() {
        let sent = TensorMessage::generate_nearly(&mut Bytes::new(&bytes), &parameters);
        let mutation = sent.mutation();
        assert!(
            mutation != MessageMutation::MixedName && mutation != MessageMutation::DuplicateName
        );
    }
}
