//! The header: which tensors there are, and where their bytes lie.

mod header;
mod texts;

use core::ops::Range;

use std::borrow::Cow;
use std::collections::HashSet;
use std::string::String;
use std::vec::Vec;

use super::{Error, ErrorKind, MAX_HEADER_LEN, PREFIX_LEN};
use crate::convert::to_u64;
use crate::json::{Object, Str, Value};
use crate::tensor::Descriptor;
use header::{Header, RawTensor};
use texts::{Texts, names};

/// A checked header, apart from the tensors' bytes.
///
/// For reading a file piece by piece: the tensors need not be in memory.
///
/// # Examples
///
/// ```
/// use std::io::{Cursor, Read, Seek, SeekFrom};
///
/// use tensorwire::TensorView;
/// use tensorwire::interop::safetensors::{self, Index, PREFIX_LEN};
/// use tensorwire::message::NO_SCALARS;
///
/// let tensors = [TensorView::from_slice("x", &[3], &[1_u8, 2, 3])?];
/// let mut file = Cursor::new(safetensors::encode_to_vec(&tensors, &NO_SCALARS)?);
/// let total = file.get_ref().len() as u64;
///
/// let mut head = vec![0; PREFIX_LEN];
/// file.read_exact(&mut head)?;
/// head.resize(Index::len_from_prefix(&head, total)?, 0);
/// file.read_exact(&mut head[PREFIX_LEN..])?;
/// let index = Index::decode(&head, total)?;
///
/// let x = &index.entries()[0];
/// let mut bytes = vec![0; x.descriptor().byte_len()];
/// file.seek(SeekFrom::Start(x.range().start))?;
/// file.read_exact(&mut bytes)?;
/// assert_eq!(bytes, [1, 2, 3]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Index<'a> {
    entries: Vec<Entry<'a>>,
    /// One JSON object.
    scalars: String,
}

/// A tensor of a file.
#[derive(Clone, Debug)]
pub struct Entry<'a> {
    descriptor: Descriptor<'a>,
    range: Range<u64>,
}

impl<'a> Entry<'a> {
    /// Returns what is known of it besides the bytes.
    #[must_use]
    pub const fn descriptor(&self) -> Descriptor<'a> {
        self.descriptor
    }

    /// Returns where its bytes lie, from the start of the file.
    #[must_use]
    pub const fn range(&self) -> &Range<u64> {
        &self.range
    }
}

impl<'a> Index<'a> {
    /// Returns how many bytes come before the tensors.
    ///
    /// `bytes` begin with the first [`PREFIX_LEN`] of a file of `total` bytes.
    ///
    /// # Errors
    ///
    /// [`Truncated`](ErrorKind::Truncated) if `bytes` are fewer, or the file is shorter than its
    /// header; [`HeaderLimit`](ErrorKind::HeaderLimit).
    pub fn len_from_prefix(bytes: &[u8], total: u64) -> Result<usize, Error> {
        let truncated = |expected, actual| Error::new(ErrorKind::Truncated { expected, actual }, 0);
        let Some(prefix) = bytes.first_chunk::<PREFIX_LEN>() else {
            return Err(truncated(to_u64(PREFIX_LEN), to_u64(bytes.len())));
        };
        let stated = u64::from_le_bytes(*prefix);
        let limit = to_u64(MAX_HEADER_LEN);
        let length = usize::try_from(stated).ok();
        let Some(length) = length.filter(|&length| length <= MAX_HEADER_LEN) else {
            let actual = stated;
            return Err(Error::new(ErrorKind::HeaderLimit { limit, actual }, 0));
        };
        let length = length.saturating_add(PREFIX_LEN);
        if to_u64(length) > total {
            return Err(truncated(to_u64(length), total));
        }
        Ok(length)
    }

    /// Checks the header at the start of `bytes`, of a file of `total` bytes.
    ///
    /// # Errors
    ///
    /// Any [`ErrorKind`], at its byte of the file.
    pub fn decode(bytes: &'a [u8], total: u64) -> Result<Self, Error> {
        let start = Self::len_from_prefix(bytes, total)?;
        let Some(header) = bytes.get(PREFIX_LEN..start) else {
            let (expected, actual) = (to_u64(start), to_u64(bytes.len()));
            return Err(Error::new(ErrorKind::Truncated { expected, actual }, 0));
        };
        let Header { mut tensors, texts } = Header::read(header)?;
        check_data(&tensors, to_u64(start), total)?;
        let texts = Texts::sort(texts)?;
        let lists = texts.lists.as_ref().map(|(text, at)| names(text, *at));
        let lists = lists.transpose()?.unwrap_or_default();
        for tensor in &mut tensors {
            tensor.take_list_index(&lists)?;
        }
        let base = to_u64(start);
        let entry = |tensor: RawTensor<'a>| {
            let descriptor = tensor.descriptor;
            // Below `total`, which was checked.
            let range = base.saturating_add(tensor.start)..base.saturating_add(tensor.end);
            Entry { descriptor, range }
        };
        let entries = tensors.into_iter().map(entry).collect();
        let scalars = texts.scalars()?;
        Ok(Self { entries, scalars })
    }

    /// Returns the tensors, in the order of the header.
    #[must_use]
    pub fn entries(&self) -> &[Entry<'a>] {
        &self.entries
    }

    /// Returns the scalars: the texts of `__metadata__`, and what is JSON there as that.
    #[must_use]
    pub fn scalars(&self) -> Object<'_> {
        Object::new(Value::new(&self.scalars, 0))
    }
}

impl<'a> RawTensor<'a> {
    /// Makes it a member of its list, if it is one of `lists`.
    fn take_list_index(&mut self, lists: &HashSet<Cow<'_, str>>) -> Result<(), Error> {
        if lists.is_empty() {
            return Ok(());
        }
        let name = self.descriptor.name();
        let is_list = |name: Str<'_>| name.to_cow().is_ok_and(|name| lists.contains(&name));
        if is_list(name) {
            return Err(Error::new(ErrorKind::MixedField, self.at));
        }
        if let Some((list, index)) = member(name)
            && is_list(list)
        {
            let (dtype, shape) = (self.descriptor.dtype(), self.descriptor.shape());
            let layout = self.descriptor.layout();
            self.descriptor = Descriptor::from_parts(list, Some(index), dtype, shape, layout);
        }
        Ok(())
    }
}

/// Takes `skip.2` apart, however it is escaped; the number is as it is written here: no sign, no zero before it.
pub(super) fn member(name: Str<'_>) -> Option<(Str<'_>, u32)> {
    let mut points = name.code_points();
    let mut split = None;
    loop {
        let left = points.rest().len();
        let Some(point) = points.next() else { break };
        if point == u32::from(b'.') {
            split = Some((left, points.clone()));
        }
    }
    let (left, digits) = split?;
    let list = name.raw().get(..name.raw().len().checked_sub(left)?)?;
    let leading_zero = digits.clone().next() == Some(u32::from(b'0'));
    let (mut index, mut count) = (0_u32, 0_usize);
    for digit in digits {
        let digit = char::from_u32(digit)?.to_digit(10)?;
        index = index.checked_mul(10)?.checked_add(digit)?;
        count = count.saturating_add(1);
    }
    if count == 0 || (count > 1 && leading_zero) {
        return None;
    }
    Some((
        Str::from_json(list, name.is_escaped()).at(name.offset()),
        index,
    ))
}

/// Checks that the bytes of the tensors are the rest of the file, each in one of them.
fn check_data(tensors: &[RawTensor<'_>], start: u64, total: u64) -> Result<(), Error> {
    let mut order: Vec<_> = tensors.iter().collect();
    order.sort_by_key(|tensor| (tensor.start, tensor.end));
    let mut data_end: u64 = 0;
    for tensor in order {
        if tensor.start != data_end {
            let (expected, actual) = (data_end, tensor.start);
            return Err(Error::new(
                ErrorKind::Offsets { expected, actual },
                tensor.at,
            ));
        }
        data_end = tensor.end;
    }
    let expected = start.saturating_add(data_end);
    let actual = total;
    let at = usize::try_from(start).unwrap_or(usize::MAX);
    if actual < expected {
        return Err(Error::new(ErrorKind::Truncated { expected, actual }, at));
    }
    if actual > expected {
        return Err(Error::new(
            ErrorKind::TrailingBytes { expected, actual },
            at,
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
