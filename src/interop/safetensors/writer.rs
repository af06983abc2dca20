//! Writing a message as a file.

use core::cmp::Reverse;

use std::borrow::Cow;
use std::collections::HashSet;
use std::format;
use std::io;
use std::string::String;
use std::vec::Vec;

use super::index::member;
use super::{
    JSON_ENTRY, LISTS_ENTRY, MAX_HEADER_LEN, METADATA, PREFIX_LEN, WriteError, dtype_name,
};
use crate::Limits;
use crate::convert::to_u64;
use crate::error::EncodeError;
use crate::json::cursor::NonFinite;
use crate::json::writer::{self, Writer};
use crate::json::{Object, Str, Value};
use crate::message::{self, NO_TENSORS, ScalarFields};
use crate::tensor::{Descriptor, TensorView};

/// The header of a file to be written, and the order in which the tensors' bytes follow it.
///
/// For writing a file piece by piece: the tensors need not be in memory, nor be there yet.
///
/// # Examples
///
/// ```
/// use tensorwire::DType;
/// use tensorwire::interop::safetensors::{Plan, SafeTensors};
/// use tensorwire::message::NO_SCALARS;
/// use tensorwire::tensor::Descriptor;
///
/// let tensors = [
///     Descriptor::new("mask", DType::Bool, &[3])?,
///     Descriptor::new("latents", DType::Float32, &[1])?,
/// ];
/// let plan = Plan::new(&tensors, &NO_SCALARS)?;
/// assert_eq!(plan.order(), [1, 0]);
///
/// let mut file = plan.header().to_vec();
/// file.extend(0.5_f32.to_le_bytes());
/// file.extend([1, 0, 1]);
/// assert_eq!(file.len() as u64, plan.total_len());
/// assert_eq!(SafeTensors::decode(&file)?.tensors()[0].as_slice::<bool>()?, [true, false, true]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Plan {
    header: Vec<u8>,
    order: Vec<usize>,
    total_len: u64,
}

impl Plan {
    /// Plans the file of these tensors and scalars.
    ///
    /// # Errors
    ///
    /// Any [`WriteError`].
    pub fn new<'t, T, S>(tensors: T, scalars: &S) -> Result<Self, WriteError>
    where
        T: IntoIterator<Item: AsRef<Descriptor<'t>>>,
        S: ScalarFields + ?Sized,
    {
        let mut named = Vec::new();
        for (index, tensor) in tensors.into_iter().enumerate() {
            named.push(Named::new(*tensor.as_ref(), index)?);
        }
        let lists = check_names(&named)?;
        let order = order(&named);
        let total = place(&mut named, &order).ok_or(WriteError::TooLarge)?;
        let metadata = message::encode_to_vec(NO_TENSORS, scalars)?;
        let texts = Texts::new(&metadata, &lists)?;
        let mut header = writer::to_vec(|writer| {
            writer.put_raw(&[0; PREFIX_LEN]);
            put_header(writer, &named, &texts);
        });
        header.resize(header.len().next_multiple_of(PREFIX_LEN), b' ');
        let actual = header.len().saturating_sub(PREFIX_LEN);
        let limit = MAX_HEADER_LEN;
        if actual > limit {
            return Err(WriteError::HeaderLimit { limit, actual });
        }
        if let Some(prefix) = header.first_chunk_mut() {
            *prefix = to_u64(actual).to_le_bytes();
        }
        let total_len = to_u64(header.len())
            .checked_add(total)
            .ok_or(WriteError::TooLarge)?;
        Ok(Self {
            header,
            order,
            total_len,
        })
    }

    /// Returns what stands before the tensors' bytes.
    #[must_use]
    pub fn header(&self) -> &[u8] {
        &self.header
    }

    /// Returns which tensor's bytes come first, second and so on, with nothing between them.
    #[must_use]
    pub fn order(&self) -> &[usize] {
        &self.order
    }

    /// Returns the length of the whole file in bytes.
    #[must_use]
    pub const fn total_len(&self) -> u64 {
        self.total_len
    }
}

/// Writes these tensors and scalars as a file in a new vector.
///
/// # Errors
///
/// Any [`WriteError`].
pub fn encode_to_vec<S>(tensors: &[TensorView<'_>], scalars: &S) -> Result<Vec<u8>, WriteError>
where
    S: ScalarFields + ?Sized,
{
    let plan = Plan::new(tensors, scalars)?;
    let mut bytes = plan.header;
    let total = usize::try_from(plan.total_len).map_err(|_| WriteError::TooLarge)?;
    bytes.reserve_exact(total.saturating_sub(bytes.len()));
    for tensor in plan.order.iter().filter_map(|&index| tensors.get(index)) {
        bytes.extend_from_slice(tensor.bytes());
    }
    Ok(bytes)
}

/// Writes these tensors and scalars to `writer`, without a second copy of them in memory.
///
/// Returns how many bytes that were. The header and each tensor are written in one piece each;
/// `writer` is not flushed.
///
/// # Errors
///
/// `InvalidInput` with a [`WriteError`] inside; then nothing was written. Otherwise the writer's
/// own, in the middle of the file.
///
/// # Examples
///
/// ```
/// use std::fs::{self, File};
///
/// use tensorwire::interop::safetensors::{SafeTensors, write_to};
/// use tensorwire::message::Scalar;
/// use tensorwire::TensorView;
///
/// let path = std::env::temp_dir().join(format!("tensorwire-{}.safetensors", std::process::id()));
/// let tensors = [TensorView::from_slice("x", &[2], &[1.5_f32, 2.5])?];
/// write_to(&tensors, &[("format", Scalar::from("pt"))], File::create(&path)?)?;
///
/// let bytes = fs::read(&path)?; // or a map of it
/// fs::remove_file(&path)?;
/// assert_eq!(SafeTensors::decode(&bytes)?.tensors()[0].bytes(), tensors[0].bytes());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn write_to<S, W>(tensors: &[TensorView<'_>], scalars: &S, mut writer: W) -> io::Result<u64>
where
    S: ScalarFields + ?Sized,
    W: io::Write,
{
    let plan = Plan::new(tensors, scalars);
    let plan = plan.map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
    writer.write_all(&plan.header)?;
    for tensor in plan.order.iter().filter_map(|&index| tensors.get(index)) {
        writer.write_all(tensor.bytes())?;
    }
    Ok(plan.total_len)
}

/// A tensor with its name in the file.
struct Named<'a> {
    tensor: Descriptor<'a>,
    /// Of the tensor or its list.
    field: Cow<'a, str>,
    name: Cow<'a, str>,
    dtype: &'static str,
    start: u64,
    end: u64,
}

impl<'a> Named<'a> {
    fn new(tensor: Descriptor<'a>, index: usize) -> Result<Self, WriteError> {
        let field = tensor.name().to_cow();
        let field = field.map_err(|_| EncodeError::InvalidName { index })?;
        let name = match tensor.list_index() {
            None => field.clone(),
            Some(member) => Cow::Owned(format!("{field}.{member}")),
        };
        let dtype = tensor.dtype();
        let unsupported = WriteError::UnsupportedDType { index, dtype };
        let dtype = dtype_name(dtype).ok_or(unsupported)?;
        Ok(Self {
            tensor,
            field,
            name,
            dtype,
            start: 0,
            end: 0,
        })
    }
}

/// Checks that each tensor can be told from the others again, and gives the names of the lists.
fn check_names(named: &[Named<'_>]) -> Result<Vec<String>, WriteError> {
    let (mut order, mut lists) = (Vec::new(), HashSet::new());
    for member in named
        .iter()
        .filter(|named| named.tensor.list_index().is_some())
    {
        if lists.insert(&*member.field) {
            order.push(String::from(&*member.field));
        }
    }
    let mut plain = HashSet::new();
    let mut members = HashSet::new();
    for (index, named) in named.iter().enumerate() {
        if let Some(list_index) = named.tensor.list_index() {
            if !members.insert((&*named.field, list_index)) {
                return Err(EncodeError::DuplicateListIndex { index }.into());
            }
            // Of a list `skip`, beside a list `skip.2`.
            if lists.contains(&*named.name) {
                return Err(WriteError::Clash { index });
            }
        } else if !plain.insert(&*named.name) {
            return Err(EncodeError::DuplicateField { index }.into());
        } else if lists.contains(&*named.name) {
            return Err(EncodeError::MixedField { index }.into());
        } else if is_member(&named.name, &lists) {
            return Err(WriteError::Clash { index });
        }
        if named.name == METADATA {
            return Err(WriteError::ReservedName { index });
        }
    }
    Ok(order)
}

/// Whether a reader would take a plain tensor of this name for a member of one of the lists.
fn is_member(name: &str, lists: &HashSet<&str>) -> bool {
    member(name.into()).is_some_and(|(list, _)| lists.contains(list.raw()))
}

/// Largest elements first: each tensor then starts at a multiple of the size of its elements.
fn order(named: &[Named<'_>]) -> Vec<usize> {
    let mut order: Vec<_> = named.iter().enumerate().collect();
    order.sort_by_key(|(_, named)| Reverse(named.tensor.dtype().size()));
    order.into_iter().map(|(index, _)| index).collect()
}

/// Says where each lies, and how many bytes there are.
fn place(named: &mut [Named<'_>], order: &[usize]) -> Option<u64> {
    let mut end: u64 = 0;
    for &index in order {
        let named = named.get_mut(index)?;
        named.start = end;
        end = end.checked_add(to_u64(named.tensor.byte_len()))?;
        named.end = end;
    }
    Some(end)
}

/// The entries of `__metadata__`.
struct Texts<'a> {
    scalars: Vec<(Str<'a>, Value<'a>)>,
    /// The keys of those which are JSON text, and the names of the lists, each as JSON text.
    json: Option<String>,
    lists: Option<String>,
}

impl<'a> Texts<'a> {
    /// Of the frame of a message that has no tensors.
    fn new(metadata: &'a [u8], lists: &[String]) -> Result<Self, WriteError> {
        let limits = Limits::new();
        let scalars = Value::parse_document(metadata, &limits, NonFinite::Accept)
            .map_err(|_| WriteError::ScalarDepth)?;
        let scalars = scalars
            .as_object()
            .and_then(|message| message.field("scalar_fields"));
        let scalars = scalars.and_then(|scalars| scalars.as_object());
        let scalars: Object<'_> = scalars.map_err(|_| WriteError::ScalarDepth)?;
        let mut seen = HashSet::new();
        let mut json = Vec::new();
        for (index, (key, value)) in scalars.iter().enumerate() {
            if key.decoded_len().is_err() {
                return Err(WriteError::InvalidScalar { index });
            }
            if !seen.insert(key) {
                return Err(WriteError::DuplicateScalar { index });
            }
            if key == JSON_ENTRY || key == LISTS_ENTRY {
                return Err(WriteError::ReservedScalar { index });
            }
            if plain(value).is_none() {
                json.push(key);
            }
        }
        Ok(Self {
            scalars: scalars.iter().collect(),
            json: array(json.into_iter()),
            lists: array(lists.iter().map(Str::from)),
        })
    }

    fn is_empty(&self) -> bool {
        self.scalars.is_empty() && self.lists.is_none()
    }
}

/// The text that a scalar is, unless it is anything else.
fn plain(value: Value<'_>) -> Option<Str<'_>> {
    let text = value.as_str().ok()?;
    text.decoded_len().ok().map(|_| text)
}

/// Strings as the text of a JSON array, unless there are none.
fn array<'a>(names: impl Iterator<Item = Str<'a>> + Clone) -> Option<String> {
    names.clone().next()?;
    let text = writer::to_vec(|writer| {
        for (index, name) in names.clone().enumerate() {
            writer.put_raw(if index > 0 { b"," } else { b"[" });
            writer.put_str(name);
        }
        writer.put_raw(b"]");
    });
    // It writes ASCII alone.
    String::from_utf8(text).ok()
}

fn put_header(writer: &mut Writer<'_>, named: &[Named<'_>], texts: &Texts<'_>) {
    writer.put_raw(b"{");
    if !texts.is_empty() {
        put_key(writer, METADATA.into(), true);
        put_texts(writer, texts);
    }
    for (index, named) in named.iter().enumerate() {
        put_key(
            writer,
            (&*named.name).into(),
            index == 0 && texts.is_empty(),
        );
        writer.put_raw(br#"{"dtype":""#);
        writer.put_raw(named.dtype.as_bytes());
        writer.put_raw(br#"","shape":["#);
        for (index, dim) in named.tensor.shape().dims().enumerate() {
            if index > 0 {
                writer.put_raw(b",");
            }
            writer.put_usize(dim);
        }
        writer.put_raw(br#"],"data_offsets":["#);
        writer.put_u64(named.start);
        writer.put_raw(b",");
        writer.put_u64(named.end);
        writer.put_raw(b"]}");
    }
    writer.put_raw(b"}");
}

fn put_texts(writer: &mut Writer<'_>, texts: &Texts<'_>) {
    writer.put_raw(b"{");
    let mut first = true;
    for &(key, value) in &texts.scalars {
        put_key(writer, key, core::mem::take(&mut first));
        match plain(value) {
            Some(text) => writer.put_str(text),
            None => writer.put_str(value.raw().into()),
        }
    }
    let ours = [(JSON_ENTRY, &texts.json), (LISTS_ENTRY, &texts.lists)];
    for (key, text) in ours {
        if let Some(text) = text {
            put_key(writer, key.into(), core::mem::take(&mut first));
            writer.put_str(text.into());
        }
    }
    writer.put_raw(b"}");
}

fn put_key(writer: &mut Writer<'_>, key: Str<'_>, first: bool) {
    if !first {
        writer.put_raw(b",");
    }
    writer.put_str(key);
    writer.put_raw(b":");
}
