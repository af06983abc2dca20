//! What can be wrong with a tensor message.

use super::mutation::Needs;

/// What is wrong with a nearly valid tensor message.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[non_exhaustive]
pub enum MessageMutation {
    /// A dimension is `-1`, `4.0`, `1e2` or `-0`.
    BadDim,
    /// A `list_index` is below -1, or no integer: a text, `null`, `false`.
    BadListIndex,
    /// A raw line feed within a string.
    ControlCharacter,
    /// The first frame says that this is a control message.
    ControlMarker,
    /// Values are nested one level deeper than the default cap.
    Depth,
    /// A descriptor is an array.
    DescriptorNoObject,
    /// `tensor_descriptors` is an object.
    DescriptorsNoArray,
    /// A dimension is past `isize::MAX`.
    DimOverflow,
    /// A dimension is `true`, `null`, a text, or a list.
    DimType,
    /// A descriptor has one of its keys twice.
    DuplicateKey,
    /// Two members of a list have the same index.
    DuplicateListIndex,
    /// Two plain tensors have the same name.
    DuplicateName,
    /// A name, a shape or a dtype is of another type.
    FieldType,
    /// There is a payload frame that no descriptor is of.
    FrameExtra,
    /// A payload frame is a byte longer.
    FrameLonger,
    /// The last payload frame is not there.
    FrameMissing,
    /// A payload frame is a byte shorter.
    FrameShorter,
    /// `\x` within a string, or another escape that there is none of.
    InvalidEscape,
    /// A number with a leading zero, or without its last digits.
    InvalidNumber,
    /// A byte that is no UTF-8, within a string.
    InvalidUtf8,
    /// A `list_index` of one more than the default cap.
    ListIndex,
    /// A field name is half of a surrogate pair.
    LoneSurrogate,
    /// A descriptor lacks its name, its shape or its dtype.
    MissingKey,
    /// A plain tensor has the name of a list.
    MixedName,
    /// A name is a byte longer than the default cap.
    NameLength,
    /// There is no `tensor_descriptors`.
    NoDescriptors,
    /// There is no frame at all.
    NoFrames,
    /// The metadata is an array.
    NoObject,
    /// `NaN` or `Infinity` outside the scalars.
    NonFinite,
    /// One dimension more than the default cap.
    Rank,
    /// `scalar_fields` is an array.
    ScalarsNoObject,
    /// A tensor of more bytes than there are addresses, though one of its dimensions is 0.
    ShapeOverflow,
    /// A byte follows the metadata.
    TrailingData,
    /// The metadata lacks its last byte.
    Unclosed,
    /// A byte that cannot stand where it stands: `[1,]`, `True`.
    UnexpectedByte,
    /// A dtype that nobody knows.
    UnknownDType,
}

impl MessageMutation {
    /// All of them.
    pub const ALL: &'static [Self] = &[
        Self::NoFrames,
        Self::Unclosed,
        Self::BadDim,
        Self::BadListIndex,
        Self::ControlCharacter,
        Self::ControlMarker,
        Self::Depth,
        Self::DescriptorNoObject,
        Self::DescriptorsNoArray,
        Self::DimOverflow,
        Self::DimType,
        Self::DuplicateKey,
        Self::DuplicateListIndex,
        Self::DuplicateName,
        Self::FieldType,
        Self::FrameExtra,
        Self::FrameLonger,
        Self::FrameMissing,
        Self::FrameShorter,
        Self::InvalidEscape,
        Self::InvalidNumber,
        Self::InvalidUtf8,
        Self::ListIndex,
        Self::LoneSurrogate,
        Self::MissingKey,
        Self::MixedName,
        Self::NameLength,
        Self::NoDescriptors,
        Self::NoObject,
        Self::NonFinite,
        Self::Rank,
        Self::ScalarsNoObject,
        Self::ShapeOverflow,
        Self::TrailingData,
        Self::UnexpectedByte,
        Self::UnknownDType,
    ];

    pub(super) const fn needs(self) -> Needs {
        match self {
            Self::DuplicateListIndex | Self::DuplicateName | Self::MixedName => Needs {
                filled: 1,
                spare_tensors: 2,
                spare_bytes: 0,
            },
            Self::FrameLonger => Needs {
                filled: 1,
                spare_tensors: 0,
                spare_bytes: 1,
            },
            Self::BadDim
            | Self::BadListIndex
            | Self::DimOverflow
            | Self::DimType
            | Self::DuplicateKey
            | Self::FieldType
            | Self::FrameMissing
            | Self::FrameShorter
            | Self::ListIndex
            | Self::LoneSurrogate
            | Self::MissingKey
            | Self::NameLength
            | Self::Rank
            | Self::ShapeOverflow
            | Self::UnknownDType => Needs::filled(1),
            Self::ControlCharacter
            | Self::ControlMarker
            | Self::Depth
            | Self::DescriptorNoObject
            | Self::DescriptorsNoArray
            | Self::FrameExtra
            | Self::InvalidEscape
            | Self::InvalidNumber
            | Self::InvalidUtf8
            | Self::NoDescriptors
            | Self::NoFrames
            | Self::NoObject
            | Self::NonFinite
            | Self::ScalarsNoObject
            | Self::TrailingData
            | Self::Unclosed
            | Self::UnexpectedByte => Needs::NOTHING,
        }
    }
}
