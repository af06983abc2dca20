//! Two tensors of one name, or of one byte.

use super::malformed::refused;
use super::*;
use tensorwire::error::DecodeErrorKind::*;

pub(super) const fn overlap(other: usize, start: usize, end: usize) -> DecodeErrorKind {
    Overlap { other, start, end }
}

/// (text with a `^` before the byte at which it is wrong, kind, entry)
const CONFLICTS: &[(&str, DecodeErrorKind, Option<usize>)] = &[
    // Names that two entries have.
    (
        r#"{"x":[{"offset":0,"shape":[1],"dtype":"bool"},^{"offset":1,"shape":[1],"dtype":"bool"}]}"#,
        DuplicateField,
        Some(1),
    ),
    (
        r#"{"x":[{"offset":0,"shape":[1],"dtype":"bool"},^{"offset":1,"shape":[1],"dtype":"bool","list_index":0}]}"#,
        MixedField,
        Some(1),
    ),
    (
        r#"{"x":[{"offset":0,"shape":[1],"dtype":"bool","list_index":3},^{"offset":1,"shape":[1],"dtype":"bool"}]}"#,
        MixedField,
        Some(1),
    ),
    (
        r#"{"x":[{"offset":0,"shape":[1],"dtype":"bool","list_index":3},{"offset":1,"shape":[1],"dtype":"bool","list_index":0},^{"offset":2,"shape":[1],"dtype":"bool","list_index":3}]}"#,
        DuplicateListIndex { list_index: 3 },
        Some(2),
    ),
    // Names that are written twice.
    (
        r#"{"x":[{"offset":0,"shape":[1],"dtype":"bool"}],^"x":[{"offset":1,"shape":[1],"dtype":"bool"}]}"#,
        DuplicateField,
        None,
    ),
    (
        r#"{"x":[{"offset":0,"shape":[1],"dtype":"bool"}],^"\u0078":[{"offset":1,"shape":[1],"dtype":"bool"}]}"#,
        DuplicateField,
        None,
    ),
    (
        r#"{"x":[{"offset":0,"shape":[1],"dtype":"bool","list_index":0}],^"x":[{"offset":1,"shape":[1],"dtype":"bool","list_index":1}]}"#,
        DuplicateField,
        None,
    ),
    (
        r#"{"x":[{"offset":0,"shape":[1],"dtype":"bool","list_index":0}],^"x":[{"offset":1,"shape":[1],"dtype":"bool"}]}"#,
        DuplicateField,
        None,
    ),
    (
        r#"{"x":[{"offset":0,"shape":[1],"dtype":"bool","list_index":0}],"y":[],^"x":[{"offset":1,"shape":[1],"dtype":"bool","list_index":7}],"x":[{"offset":1,"shape":[1],"dtype":"bool","list_index":1}]}"#,
        DuplicateField,
        None,
    ),
    // The later field stands first among the list's members.
    (
        r#"{"x":[{"offset":0,"shape":[1],"dtype":"bool","list_index":5}],^"x":[{"offset":1,"shape":[1],"dtype":"bool","list_index":4},{"offset":2,"shape":[1],"dtype":"bool","list_index":6}]}"#,
        DuplicateField,
        None,
    ),
    (
        r#"{"x":[],^"x":[{"offset":1,"shape":[1],"dtype":"bool"}]}"#,
        DuplicateField,
        None,
    ),
    (
        r#"{"x":[{"offset":1,"shape":[1],"dtype":"bool"}],"y":[],^"x":[ ]}"#,
        DuplicateField,
        None,
    ),
    (
        r#"{"y":[],"\u0078":[],"x":[],^"x":[{"offset":1,"shape":[1],"dtype":"bool"}],"y":[]}"#,
        DuplicateField,
        None,
    ),
    // Of several conflicts the first on the wire.
    (
        r#"{"x":[{"offset":0,"shape":[1],"dtype":"bool","list_index":0},^{"offset":1,"shape":[1],"dtype":"bool","list_index":0}],"x":[]}"#,
        DuplicateListIndex { list_index: 0 },
        Some(1),
    ),
    // Bytes that two tensors have.
    (
        r#"{"x":[{"offset":0,"shape":[4],"dtype":"bool"}],"y":[^{"offset":3,"shape":[2],"dtype":"bool"}]}"#,
        overlap(0, 3, 4),
        Some(1),
    ),
    (
        r#"{"x":[{"offset":3,"shape":[2],"dtype":"bool"}],"y":[^{"offset":0,"shape":[4],"dtype":"bool"}]}"#,
        overlap(0, 3, 4),
        Some(1),
    ),
    (
        r#"{"x":[{"offset":8,"shape":[4],"dtype":"bool"}],"y":[^{"offset":8,"shape":[4],"dtype":"bool"}]}"#,
        overlap(0, 8, 12),
        Some(1),
    ),
    (
        r#"{"x":[{"offset":0,"shape":[8],"dtype":"float64"}],"y":[{"offset":0,"shape":[0],"dtype":"bool"}],"z":[^{"offset":63,"shape":[1],"dtype":"bool"}]}"#,
        overlap(0, 63, 64),
        Some(2),
    ),
    // The lowest of two, inside of another, after one without bytes.
    (
        r#"{"x":[{"offset":40,"shape":[4],"dtype":"bool","list_index":0},{"offset":42,"shape":[4],"dtype":"bool","list_index":1}],"a":[{"offset":0,"shape":[20],"dtype":"bool"}],"b":[{"offset":9,"shape":[0],"dtype":"bool"}],"c":[^{"offset":10,"shape":[3],"dtype":"bool"}]}"#,
        overlap(2, 10, 13),
        Some(4),
    ),
];

#[test]
fn tensors_that_no_reader_could_tell_apart_or_that_share_bytes_are_refused() {
    refused(CONFLICTS);
}
