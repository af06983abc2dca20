//! The header of numpy's arrays: magic, version, length, and a Python dictionary as text.
//!
//! ```text
//!  0        6       8          10, or 12
//! +--------+-------+----------+---------------------------------------------------------------+
//! | magic  | 1.0,  | length,  | {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }   |
//! |        | 2, 3  | u16, u32 | spaces up to a multiple of 64, line feed                      |
//! +--------+-------+----------+---------------------------------------------------------------+
//! ```

mod literal;

use std::io::{Read, Seek, SeekFrom};

use tensorwire::DType;
use tensorwire::json::Object;

use super::content::{Content, Place, Tensor, fault, shown};
use super::source::reading;
use crate::exit::Failure;
use literal::Literal;

/// What an array of numpy's says of itself.
#[derive(Debug, Eq, PartialEq)]
pub(super) struct Header {
    pub(super) elements: Elements,
    pub(super) shape: Vec<usize>,
    /// Of the header, in bytes: the elements follow.
    pub(super) length: u64,
}

/// What an array is of.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Elements {
    /// Numbers.
    Numbers(DType),
    /// Texts of so many bytes.
    Text(usize),
}

pub(super) const MAGIC: &[u8] = b"\x93NUMPY";

/// Longer ones numpy refuses to read unless told to.
const LIMIT: usize = 64 << 10;

/// The most dimensions that an array of numpy's has.
const MAX_RANK: usize = 64;

/// numpy's name for each dtype that it has.
const NAMES: &[(DType, &str)] = &[
    (DType::Bool, "|b1"),
    (DType::Complex128, "<c16"),
    (DType::Complex64, "<c8"),
    (DType::Float16, "<f2"),
    (DType::Float32, "<f4"),
    (DType::Float64, "<f8"),
    (DType::Int16, "<i2"),
    (DType::Int32, "<i4"),
    (DType::Int64, "<i8"),
    (DType::Int8, "|i1"),
    (DType::UInt16, "<u2"),
    (DType::UInt32, "<u4"),
    (DType::UInt64, "<u8"),
    (DType::UInt8, "|u1"),
];

/// Reads the header that comes first; `array` names what it is of.
///
/// # Errors
///
/// [`Failure::Malformed`]; [`Failure::Could`] for an array that no tensor can be.
pub(super) fn read(reader: &mut dyn Read, array: &str) -> Result<Header, Failure> {
    let mut start = [0; 8];
    fill(reader, &mut start, 0, array)?;
    let [magic @ .., major, _] = start;
    if magic != MAGIC {
        return Err(fault(
            "BadMagic",
            0,
            format!("{array} is no array of numpy's"),
        ));
    }
    let (length, before) = if major == 1 {
        let mut length = [0; 2];
        fill(reader, &mut length, 8, array)?;
        (usize::from(u16::from_le_bytes(length)), 10)
    } else if major == 2 || major == 3 {
        let mut length = [0; 4];
        fill(reader, &mut length, 8, array)?;
        (
            usize::try_from(u32::from_le_bytes(length)).unwrap_or(usize::MAX),
            12,
        )
    } else {
        return Err(fault(
            "UnknownVersion",
            6,
            format!("{array} has the unknown version {major}"),
        ));
    };
    if length > LIMIT {
        let text = format!("{array} has a header of {length} bytes where {LIMIT} is the limit");
        return Err(fault("HeaderLimit", 8, text));
    }
    let mut text = vec![0; length];
    fill(reader, &mut text, before, array)?;
    let bad = || {
        fault(
            "Header",
            before,
            format!("{array} has a header that numpy does not write"),
        )
    };
    let text = if major == 3 {
        String::from_utf8(text).map_err(|_| bad())?
    } else {
        // Latin-1, whose characters are the first of Unicode.
        text.into_iter().map(char::from).collect()
    };
    let (description, fortran, shape) = Literal(&text).dictionary().ok_or_else(bad)?;
    let elements = elements(description, array)?;
    // In one dimension that is longer than 1 both orders are the same, and without elements.
    let long = shape.iter().filter(|&&dim| dim != 1).count();
    if fortran && long > 1 && !shape.contains(&0) {
        return Err(Failure::Could(format!(
            "{array} is in Fortran's order, and tensors are in C's; in Python: numpy.ascontiguousarray(x)"
        )));
    }
    let length = before + u64::try_from(length).unwrap_or(u64::MAX);
    Ok(Header {
        elements,
        shape,
        length,
    })
}

/// The one tensor of a file of `total` bytes, under this name.
pub(super) fn content<R: Read + Seek>(
    reader: &mut R,
    total: u64,
    name: &str,
) -> Result<Content, Failure> {
    reader.seek(SeekFrom::Start(0)).map_err(reading)?;
    let header = read(reader, "the file")?;
    let place = Place::At(header.length);
    let tensor = header.tensor(name, total, place)?;
    Ok(Content::new(vec![tensor], Object::EMPTY))
}

impl Header {
    /// The tensor that an array of `total` bytes is, its header included.
    ///
    /// # Errors
    ///
    /// [`Failure::Could`] for texts, [`Failure::Malformed`] for another size than it says.
    pub(super) fn tensor(self, name: &str, total: u64, place: Place) -> Result<Tensor, Failure> {
        let Elements::Numbers(dtype) = self.elements else {
            return Err(Failure::Could(format!(
                "array {} holds texts, and tensors hold numbers; leave it out",
                shown(name)
            )));
        };
        let tensor = Tensor::new(name.to_owned(), dtype, self.shape, place);
        let Some(tensor) = tensor else {
            let text = format!("array {} has more bytes than memory can", shown(name));
            return Err(fault("ShapeOverflow", 0, text));
        };
        let expected = self.length.saturating_add(tensor.byte_len() as u64);
        if total != expected {
            let text = format!("{tensor} makes {expected} bytes, and there are {total}");
            return Err(fault("ByteLength", self.length, text));
        }
        Ok(tensor)
    }
}

fn fill(reader: &mut dyn Read, bytes: &mut [u8], at: u64, array: &str) -> Result<(), Failure> {
    let read = reader.read_exact(bytes);
    read.map_err(|error| {
        fault(
            "Truncated",
            at,
            format!("{array} ends in its header: {error}"),
        )
    })
}

fn elements(description: Option<&str>, array: &str) -> Result<Elements, Failure> {
    let Some(description) = description else {
        return Err(Failure::Could(format!(
            "{array} has fields, and tensors have none; in Python: save each field by itself"
        )));
    };
    // One byte has no order.
    let row = NAMES.iter().find(|(dtype, name)| {
        let same = description == *name;
        same || (dtype.size() == 1 && description.get(1..) == name.get(1..))
    });
    if let Some(&(dtype, _)) = row {
        return Ok(Elements::Numbers(dtype));
    }
    if let Some(digits) = description.strip_prefix("|S")
        && let Ok(length) = digits.parse()
    {
        return Ok(Elements::Text(length));
    }
    let why = if description.starts_with('>') {
        "is big-endian; in Python: x.astype(x.dtype.newbyteorder('<'))"
    } else if description.ends_with('O') {
        "holds Python objects, which are never read"
    } else if description.starts_with("|V") || description.starts_with("<V") {
        "is of no dtype of numpy's own; where it is a bfloat16 or an 8-bit float, save it as .safetensors"
    } else {
        "is of a dtype that tensors do not have"
    };
    Err(Failure::Could(format!(
        "{array} ({}) {why}",
        shown(description)
    )))
}

/// The header of a tensor's array.
///
/// # Errors
///
/// [`Failure::Could`] for what numpy does not have.
pub(super) fn of(tensor: &Tensor) -> Result<Vec<u8>, Failure> {
    let row = NAMES.iter().find(|(dtype, _)| *dtype == tensor.dtype);
    let Some((_, name)) = row else {
        return Err(Failure::Could(format!(
            "{tensor} is {}, which numpy does not have; convert to .safetensors instead",
            tensor.dtype
        )));
    };
    if tensor.shape.len() > MAX_RANK {
        return Err(Failure::Could(format!(
            "{tensor} has {} dimensions, and numpy no more than {MAX_RANK}; convert to .safetensors instead",
            tensor.shape.len()
        )));
    }
    Ok(header(name, &tensor.shape))
}

/// The header of an array, as numpy writes it.
pub(super) fn header(description: &str, shape: &[usize]) -> Vec<u8> {
    let dims: Vec<_> = shape.iter().map(usize::to_string).collect();
    let comma = if shape.len() == 1 { "," } else { "" };
    let shape = format!("({}{comma})", dims.join(", "));
    let mut text =
        format!("{{'descr': '{description}', 'fortran_order': False, 'shape': {shape}, }}");
    // 64 dimensions of 20 digits each fit in a header of version 1.
    let before = MAGIC.len() + 4;
    let length = (before + text.len() + 1).next_multiple_of(64) - before;
    while text.len() + 1 < length {
        text.push(' ');
    }
    text.push('\n');
    let mut bytes = MAGIC.to_vec();
    bytes.extend([1, 0]);
    bytes.extend(u16::try_from(length).unwrap_or(u16::MAX).to_le_bytes());
    bytes.extend(text.into_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(version: u8, text: &str) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend([version, 0]);
        if version == 1 {
            bytes.extend((text.len() as u16).to_le_bytes());
        } else {
            bytes.extend((text.len() as u32).to_le_bytes());
        }
        bytes.extend(text.as_bytes());
        bytes
    }

    fn header_of(bytes: &[u8]) -> Result<Header, Failure> {
        read(&mut &bytes[..], "x")
    }

    #[test]
    fn what_is_written_is_numpys_and_is_read() {
        let bytes = header("<f4", &[2, 3]);
        let text = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }";
        assert_eq!(bytes.len(), 128);
        assert!(bytes.starts_with(b"\x93NUMPY\x01\x00\x76\x00"));
        assert_eq!(str::from_utf8(&bytes[10..]).unwrap().trim_end(), text);
        for shape in [&[][..], &[5], &[1, 2, 3], &[usize::MAX; 64]] {
            for &(dtype, name) in NAMES {
                let bytes = header(name, shape);
                assert_eq!((bytes.len() % 64, bytes.last()), (0, Some(&b'\n')));
                let length = bytes.len() as u64;
                let expected = Header {
                    elements: Elements::Numbers(dtype),
                    shape: shape.to_vec(),
                    length,
                };
                assert_eq!(header_of(&bytes).unwrap(), expected);
            }
        }
    }

    #[test]
    fn other_spellings_are_read() {
        let numbers = |dtype| Some(Elements::Numbers(dtype));
        for (version, text, elements) in [
            (
                1,
                "{'shape':(2,),'descr':'<i8','fortran_order':False}\n",
                numbers(DType::Int64),
            ),
            (
                2,
                " { \"descr\" : \"|u1\", \"fortran_order\" : True , \"shape\" : ( 2L , ) } ",
                numbers(DType::UInt8),
            ),
            (
                3,
                "{'descr': '<u1', 'fortran_order': False, 'shape': (2,), }",
                numbers(DType::UInt8),
            ),
            (
                1,
                "{'descr': '|S12', 'fortran_order': False, 'shape': (2,), }",
                Some(Elements::Text(12)),
            ),
        ] {
            let header = header_of(&file(version, text)).unwrap();
            assert_eq!(
                (Some(header.elements), header.shape),
                (elements, vec![2]),
                "{text}"
            );
        }
    }

    #[test]
    fn what_is_malformed_or_no_tensor_is_refused() {
        let ends = "'fortran_order': False, 'shape': (2, 3)}";
        for (text, malformed) in [
            ("", true),
            ("{}", true),
            ("{'descr': '<f4', 'fortran_order': False}", true),
            (
                "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': ()}",
                true,
            ),
            (
                "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}",
                true,
            ),
            (
                "{'descr': '<f4', 'fortran_order': False, 'shape': (2 3)}",
                true,
            ),
            (
                "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}",
                true,
            ),
            (
                "{'descr': '<f4', 'fortran_order': False, 'shape': ()} x",
                true,
            ),
            ("{'descr': '<f4', 'fortran_order': False, 'shape': ", true),
            ("{'descr': '<f4', 'fortran_order': 0, 'shape': ()}", true),
            ("{'descr': '<f4', 'x': 0, 'shape': ()}", true),
            (
                "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3)}",
                false,
            ),
            (&format!("{{'descr': [('a', '<f4')], {ends}"), false),
            (&format!("{{'descr': [('\u{e9}', '<f4')], {ends}"), false),
            (&format!("{{'descr': '>f4', {ends}"), false),
            (&format!("{{'descr': '|O', {ends}"), false),
            (&format!("{{'descr': '<V2', {ends}"), false),
            (&format!("{{'descr': '<U2', {ends}"), false),
            (&format!("{{'descr': '\u{e9}', {ends}"), false),
        ] {
            let failure = header_of(&file(2, text)).unwrap_err();
            assert_eq!(
                matches!(failure, Failure::Malformed(_)),
                malformed,
                "{text}: {failure:?}"
            );
            let whole = file(2, text);
            for length in 0..whole.len() {
                assert!(matches!(
                    header_of(&whole[..length]),
                    Err(Failure::Malformed(_))
                ));
            }
        }
        // In the first two versions a header is Latin-1, and any bytes are that.
        let fields = b"{'descr': [('\xe9', '<f4')], 'fortran_order': False, 'shape': (2,), }";
        for (version, malformed) in [(1, false), (2, false), (3, true)] {
            let mut bytes = file(version, &" ".repeat(fields.len()));
            let start = bytes.len() - fields.len();
            bytes[start..].copy_from_slice(fields);
            let failure = header_of(&bytes).unwrap_err();
            assert_eq!(matches!(failure, Failure::Malformed(_)), malformed);
        }
        let mut long = file(2, "");
        long[8..12].copy_from_slice(&u32::MAX.to_le_bytes());
        assert!(matches!(header_of(&long), Err(Failure::Malformed(_))));
    }
}
