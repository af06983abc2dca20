//! What can be wrong with a message of a peer's.

use core::error::Error;
use core::fmt;

use crate::json::ValueType;

/// A message could not be decoded.
///
/// # Examples
///
/// ```
/// use tensorwire::error::{DecodeErrorKind, SyntaxError};
/// use tensorwire::message::{Message, Storage};
///
/// let frames = [r#"{"tensor_descriptors":[{"field_name":"x","shape":[01]}]}"#];
/// let mut storage = Storage::<4>::new();
/// let Err(error) = Message::decode(&frames, &mut storage) else {
///     return Err("no JSON number starts with a zero");
/// };
/// let kind = DecodeErrorKind::Syntax(SyntaxError::InvalidNumber);
/// assert_eq!((error.kind(), error.offset()), (kind, 51));
/// assert_eq!(error.to_string(), "descriptor 0: invalid number at byte 51");
/// # Ok::<(), &str>(())
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct DecodeError {
    kind: DecodeErrorKind,
    offset: usize,
    descriptor: Option<u32>,
}

impl DecodeError {
    pub(crate) const fn new(kind: DecodeErrorKind, offset: usize) -> Self {
        Self {
            kind,
            offset,
            descriptor: None,
        }
    }

    /// The same in a document in which the text starts at `base`.
    pub(crate) const fn shifted(mut self, base: usize) -> Self {
        self.offset = self.offset.saturating_add(base);
        self
    }

    /// Names the descriptor that the error is about, unless one is named already.
    pub(crate) fn in_descriptor(mut self, index: usize) -> Self {
        self.descriptor = self.descriptor.or_else(|| u32::try_from(index).ok());
        self
    }

    /// Returns what is wrong, with its numbers.
    #[must_use]
    pub const fn kind(&self) -> DecodeErrorKind {
        self.kind
    }

    /// Returns the byte of the metadata frame at which it is wrong, at most the frame's length.
    ///
    /// For a fault of the frames themselves ([`FrameCount`], [`FrameLength`])
    /// it is where the descriptor, or the list of descriptors, starts. For a
    /// [manifest](crate::transfer::manifest) it is a byte of the document that
    /// the manifest's object was taken from, for a
    /// [control message](crate::transfer::message) one of its payload.
    ///
    /// [`FrameCount`]: DecodeErrorKind::FrameCount
    /// [`FrameLength`]: DecodeErrorKind::FrameLength
    #[must_use]
    pub const fn offset(&self) -> usize {
        self.offset
    }

    /// Returns the descriptor, or entry of a manifest, that it is about, in wire order from 0.
    #[must_use]
    pub fn descriptor(&self) -> Option<usize> {
        self.descriptor
            .and_then(|index| usize::try_from(index).ok())
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(index) = self.descriptor {
            write!(f, "descriptor {index}: ")?;
        }
        write!(f, "{} at byte {}", self.kind, self.offset)
    }
}

impl Error for DecodeError {}

/// What is wrong with a message.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum DecodeErrorKind {
    /// A dimension is no plain non-negative integer: `-1`, `-0`, `4.0`, `1e2`.
    BadDim,
    /// A number of a control message, or an `offset` of a manifest, is no plain non-negative
    /// integer: `-1`, `-0`, `4.0`, `1e2`, `NaN`.
    BadInteger,
    /// A `list_index` is neither `-1` nor a plain non-negative integer.
    BadListIndex,
    /// Frame 0 says that this is a control message, not a tensor message.
    ControlMessage,
    /// Values are nested deeper than [`Limits::depth`](crate::Limits::depth).
    DepthLimit {
        /// The cap.
        limit: usize,
    },
    /// More descriptors than [`Limits::descriptors`](crate::Limits::descriptors).
    DescriptorLimit {
        /// The cap.
        limit: usize,
    },
    /// A dimension is larger than `isize::MAX`.
    DimOverflow,
    /// Two plain tensors have one name, or a manifest has a name twice.
    DuplicateField,
    /// An object of the schema has one of its keys twice.
    DuplicateKey,
    /// Two members of one list have one index.
    DuplicateListIndex {
        /// The index.
        list_index: usize,
    },
    /// There are more or fewer payload frames than descriptors.
    FrameCount {
        /// How many descriptors there are.
        expected: usize,
        /// How many payload frames there are.
        actual: usize,
    },
    /// A payload frame is longer or shorter than its shape and dtype say.
    FrameLength {
        /// Product of the dimensions times the item size, in bytes.
        expected: usize,
        /// Length of the frame in bytes.
        actual: usize,
    },
    /// An integer of a control message, or an `offset` of a manifest, is larger than `u64::MAX`.
    IntegerOverflow,
    /// A field name holds a lone surrogate, which no text can hold.
    InvalidName,
    /// The metadata is not UTF-8.
    InvalidUtf8,
    /// A `list_index` over [`Limits::list_index`](crate::Limits::list_index).
    ListIndexLimit {
        /// The largest index allowed.
        limit: usize,
    },
    /// The metadata frame is longer than [`Limits::metadata_bytes`](crate::Limits::metadata_bytes).
    MetadataLimit {
        /// The cap in bytes.
        limit: usize,
        /// The frame's length in bytes.
        actual: usize,
    },
    /// A key that the schema demands is not there.
    MissingKey(SchemaKey),
    /// One name is both a plain tensor and a list.
    MixedField,
    /// A field name is longer than [`Limits::name_bytes`](crate::Limits::name_bytes).
    NameLimit {
        /// The cap in bytes of UTF-8, unescaped.
        limit: usize,
        /// The name's length in the same unit.
        actual: usize,
    },
    /// The message has no frame at all.
    NoFrames,
    /// The control message has no frame 1.
    NoPayload,
    /// `NaN`, `Infinity` or `-Infinity` where strict JSON was asked for, or outside the scalars.
    NonFinite,
    /// Frame 0 is not that of a control message.
    NotControlMessage,
    /// A tensor of a manifest ends past its slot.
    OutOfSlot {
        /// Where it starts, in bytes from the slot's start.
        offset: u64,
        /// Its size in bytes.
        byte_len: usize,
        /// Length of the slot in bytes.
        slot_len: usize,
    },
    /// Two tensors of a manifest share bytes of the slot.
    Overlap {
        /// The other of the two, in wire order from 0.
        other: usize,
        /// The first byte that is both's.
        start: usize,
        /// The first byte after those.
        end: usize,
    },
    /// More dimensions than [`Limits::rank`](crate::Limits::rank).
    RankLimit {
        /// The cap.
        limit: usize,
    },
    /// The size in bytes, or the same without the zero dimensions, is over `isize::MAX`.
    ShapeOverflow,
    /// The bytes are not as many as those of the slot that a manifest was held against.
    SlotLength {
        /// Length of the slot in bytes.
        expected: usize,
        /// How many bytes there are.
        actual: usize,
    },
    /// The caller's storage has no room for all descriptors.
    StorageFull {
        /// How many descriptors it has room for.
        capacity: usize,
    },
    /// The metadata is not JSON.
    Syntax(SyntaxError),
    /// All tensors together are larger than [`Limits::tensor_bytes`](crate::Limits::tensor_bytes).
    TensorBytesLimit {
        /// The cap in bytes.
        limit: usize,
    },
    /// Something follows the JSON document.
    TrailingData,
    /// The dtype is not one of the names accepted.
    UnknownDType,
    /// A value has another JSON type than the schema says.
    WrongType {
        /// The type the schema says.
        expected: ValueType,
        /// The type it has.
        actual: ValueType,
    },
}

impl fmt::Display for DecodeErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::BadDim => f.write_str("dimension is not a plain non-negative integer"),
            Self::BadInteger => f.write_str("number is not a plain non-negative integer"),
            Self::BadListIndex => {
                f.write_str("list_index is neither -1 nor a plain non-negative integer")
            }
            Self::ControlMessage => f.write_str("control message where a tensor message belongs"),
            Self::DepthLimit { limit } => write!(f, "nested deeper than {limit}"),
            Self::DescriptorLimit { limit } => write!(f, "more than {limit} descriptors"),
            Self::DimOverflow => write!(f, "dimension over {}", isize::MAX),
            Self::DuplicateField => f.write_str("name of an earlier tensor"),
            Self::DuplicateKey => f.write_str("key given twice"),
            Self::DuplicateListIndex { list_index } => {
                write!(f, "list_index {list_index} given twice")
            }
            Self::FrameCount { expected, actual } => {
                write!(f, "{actual} payload frames for {expected} descriptors")
            }
            Self::FrameLength { expected, actual } => {
                write!(f, "frame of {actual} bytes where the shape says {expected}")
            }
            Self::IntegerOverflow => write!(f, "integer over {}", u64::MAX),
            Self::InvalidName => f.write_str("lone surrogate in a field name"),
            Self::InvalidUtf8 => f.write_str("invalid UTF-8"),
            Self::ListIndexLimit { limit } => write!(f, "list_index over {limit}"),
            Self::MetadataLimit { limit, actual } => {
                write!(f, "metadata of {actual} bytes where {limit} are allowed")
            }
            Self::MissingKey(key) => write!(f, "no {key}"),
            Self::MixedField => f.write_str("name is both a plain tensor and a list"),
            Self::NameLimit { limit, actual } => {
                write!(f, "name of {actual} bytes where {limit} are allowed")
            }
            Self::NoFrames => f.write_str("message without frames"),
            Self::NoPayload => f.write_str("control message without a payload"),
            Self::NonFinite => f.write_str("NaN or Infinity where only JSON is allowed"),
            Self::NotControlMessage => f.write_str("other message where a control message belongs"),
            Self::OutOfSlot {
                offset,
                byte_len,
                slot_len,
            } => {
                write!(
                    f,
                    "{byte_len} bytes from {offset} on in a slot of {slot_len} bytes"
                )
            }
            Self::Overlap { other, start, end } => {
                write!(f, "bytes {start}..{end} are also those of {other}")
            }
            Self::RankLimit { limit } => write!(f, "more than {limit} dimensions"),
            Self::ShapeOverflow => write!(f, "tensor of more than {} bytes", isize::MAX),
            Self::SlotLength { expected, actual } => {
                write!(f, "{actual} bytes for a slot of {expected}")
            }
            Self::StorageFull { capacity } => {
                write!(f, "storage has room for {capacity} descriptors only")
            }
            Self::Syntax(error) => error.fmt(f),
            Self::TensorBytesLimit { limit } => {
                write!(f, "tensors of more than {limit} bytes in all")
            }
            Self::TrailingData => f.write_str("data after the JSON document"),
            Self::UnknownDType => f.write_str("unknown dtype"),
            Self::WrongType { expected, actual } => {
                write!(f, "expected {expected}, found {actual}")
            }
        }
    }
}

/// What makes a text no JSON.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum SyntaxError {
    /// A raw byte below 0x20 inside a string.
    ControlCharacter,
    /// An escape other than `\" \\ \/ \b \f \n \r \t \uXXXX`.
    InvalidEscape,
    /// A number that JSON does not write so: `01`, `1.`, `-`, `1e`.
    InvalidNumber,
    /// A byte that cannot stand here.
    UnexpectedByte {
        /// The byte.
        found: u8,
    },
    /// The text ends inside the document.
    UnexpectedEnd,
}

impl Error for SyntaxError {}

impl fmt::Display for SyntaxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::ControlCharacter => f.write_str("raw control character in a string"),
            Self::InvalidEscape => f.write_str("invalid escape"),
            Self::InvalidNumber => f.write_str("invalid number"),
            Self::UnexpectedByte { found } => write!(f, "unexpected byte {found:#04x}"),
            Self::UnexpectedEnd => f.write_str("text ends too early"),
        }
    }
}

/// A key of a schema: of the metadata of a tensor message, of a control message, or of a manifest.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum SchemaKey {
    /// `addr` of a preallocated slot.
    Addr,
    /// `dtype` of a descriptor.
    DType,
    /// `data_size` of a control message.
    DataSize,
    /// `dest_addr` of a control message.
    DestAddr,
    /// `dest_session_id` of a control message.
    DestSessionId,
    /// `error` of a control message.
    Error,
    /// `field_name` of a descriptor.
    FieldName,
    /// `manifest` of a control message.
    Manifest,
    /// `msg_type` of a control message.
    MsgType,
    /// `offset` of a preallocated slot, or of an entry of a manifest.
    Offset,
    /// `pool_ptr` of a control message.
    PoolPtr,
    /// `pool_size` of a control message.
    PoolSize,
    /// `preallocated_slots` of a control message.
    PreallocatedSlots,
    /// `request_id` of a control message.
    RequestId,
    /// `role` of a control message.
    Role,
    /// `scalar_fields` of a control message.
    ScalarFields,
    /// `session_id` of a control message.
    SessionId,
    /// `shape` of a descriptor.
    Shape,
    /// `size` of a preallocated slot.
    Size,
    /// `slot_id` of a preallocated slot.
    SlotId,
    /// `slot_offset` of a control message.
    SlotOffset,
    /// `slot_size` of a control message.
    SlotSize,
    /// `source_role` of a control message.
    SourceRole,
    /// `staged_for_decoder` of a control message.
    StagedForDecoder,
    /// `tensor_descriptors` of the message.
    TensorDescriptors,
    /// `transfer_size` of a control message.
    TransferSize,
    /// `work_endpoint` of a control message.
    WorkEndpoint,
}

impl SchemaKey {
    /// Returns the key as it is written.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Addr => "addr",
            Self::DType => "dtype",
            Self::DataSize => "data_size",
            Self::DestAddr => "dest_addr",
            Self::DestSessionId => "dest_session_id",
            Self::Error => "error",
            Self::FieldName => "field_name",
            Self::Manifest => "manifest",
            Self::MsgType => "msg_type",
            Self::Offset => "offset",
            Self::PoolPtr => "pool_ptr",
            Self::PoolSize => "pool_size",
            Self::PreallocatedSlots => "preallocated_slots",
            Self::RequestId => "request_id",
            Self::Role => "role",
            Self::ScalarFields => "scalar_fields",
            Self::SessionId => "session_id",
            Self::Shape => "shape",
            Self::Size => "size",
            Self::SlotId => "slot_id",
            Self::SlotOffset => "slot_offset",
            Self::SlotSize => "slot_size",
            Self::SourceRole => "source_role",
            Self::StagedForDecoder => "staged_for_decoder",
            Self::TensorDescriptors => "tensor_descriptors",
            Self::TransferSize => "transfer_size",
            Self::WorkEndpoint => "work_endpoint",
        }
    }
}

impl fmt::Display for SchemaKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
