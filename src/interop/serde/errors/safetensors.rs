//! The errors of `.safetensors` files.

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use super::{Kind, Report};
use crate::interop::safetensors::{Error, ErrorKind, Key, WriteError};

kinds! { ErrorKind:
    BadEntry;
    ByteLength { expected, actual };
    DuplicateName;
    Header @ header;
    HeaderLimit { limit, actual };
    LoneSurrogate;
    MissingKey(key);
    MixedField;
    OffsetPair;
    Offsets { expected, actual };
    TrailingBytes { expected, actual };
    Truncated { expected, actual };
    UnknownDType;
    UnsupportedDType;
}

kinds! { WriteError:
    Clash { index };
    DuplicateScalar { index };
    HeaderLimit { limit, actual };
    InvalidScalar { index };
    Message @ message;
    ReservedName { index };
    ReservedScalar { index };
    ScalarDepth;
    TooLarge;
    UnsupportedDType { index, dtype };
}

reports! {
    Error: |this| Report::at(this.kind(), this.offset());
    WriteError: |this| Report::of(*this);
}

names!(Key);

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    use serde_json::{json, to_value};

    use crate::dtype::DType;
    use crate::error::EncodeError;
    use crate::interop::safetensors::SafeTensors;

    /// A file with this header.
    fn error_of(header: &str) -> Error {
        let length = u64::try_from(header.len()).unwrap();
        SafeTensors::decode(&[&length.to_le_bytes(), header.as_bytes()].concat()).unwrap_err()
    }

    #[test]
    fn a_file_that_is_none_says_what_and_where() {
        for (header, kind, numbers) in [
            (
                "{]",
                "Header",
                json!({ "header": "Syntax", "syntax": "UnexpectedByte", "found": 0x5d }),
            ),
            (
                r#"{"x":{"dtype":"U8"}}"#,
                "MissingKey",
                json!({ "key": "shape" }),
            ),
            (
                r#"{"x":{"dtype":"U8","shape":[2],"data_offsets":[0,3]}}"#,
                "ByteLength",
                json!({ "expected": 2, "actual": 3 }),
            ),
        ] {
            let error = error_of(header);
            let map = json!({
                "kind": kind,
                "offset": error.offset(),
                "numbers": numbers,
                "message": error.to_string(),
            });
            assert_eq!(to_value(error).unwrap(), map);
        }
    }

    #[test]
    fn a_message_that_makes_no_file_says_which_tensor() {
        let dtype = DType::Complex128;
        for (error, numbers) in [
            (
                WriteError::UnsupportedDType { index: 3, dtype },
                json!({ "index": 3, "dtype": "complex128" }),
            ),
            (
                WriteError::Message(EncodeError::DuplicateField { index: 1 }),
                json!({ "message": "DuplicateField", "index": 1 }),
            ),
        ] {
            let map = to_value(error).unwrap();
            assert_eq!(
                (&map["numbers"], &map["message"]),
                (&numbers, &json!(error.to_string()))
            );
        }
    }
}
