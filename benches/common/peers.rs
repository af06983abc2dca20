//! The same decoding done with other libraries, each as a careful user of it would.
//!
//! Each maps the dtype, checks the product of the shape and the length of the
//! frame, and keeps names, shapes and payloads at hand. None of them is asked
//! for what else [`tensorwire`] checks (duplicate keys, names and list indices,
//! names both plain and list, caps): the comparison leans to their side. Beside
//! the leanest of them stands [`SimdJson::decode_checked`], which is asked.

use std::borrow::Cow;
use std::collections::HashMap;

use serde::Deserialize;
use serde_json::value::RawValue;
use simd_json::{Buffers, INPUT_PADDING, Node, StaticNode, Tape};
use smallvec::SmallVec;
use tensorwire::DType;

/// Dimensions in place up to rank 6, which is more than the messages have.
pub(crate) type Dims = SmallVec<[usize; 6]>;

/// Why a peer refused a message; these benches have none that is.
#[derive(Debug)]
pub(crate) struct Refused;

/// The checks that are the same for all.
fn check(dims: &[usize], dtype: &str, frame: &[u8]) -> Result<DType, Refused> {
    let dtype = DType::from_name(dtype).ok_or(Refused)?;
    let bytes = dims
        .iter()
        .try_fold(dtype.size(), |product, &dim| product.checked_mul(dim));
    match bytes {
        Some(bytes) if bytes == frame.len() => Ok(dtype),
        _ => Err(Refused),
    }
}

const fn plain() -> i64 {
    -1
}

/// serde_json into structs that borrow; scalars stay text, as they do in `tensorwire`.
pub(crate) mod serde_borrowed {
    use super::*;

    #[derive(Deserialize)]
    pub(crate) struct Metadata<'f> {
        #[serde(borrow)]
        pub(crate) tensor_descriptors: Vec<Descriptor<'f>>,
        #[serde(borrow)]
        pub(crate) scalar_fields: &'f RawValue,
    }

    #[derive(Deserialize)]
    pub(crate) struct Descriptor<'f> {
        #[serde(borrow)]
        pub(crate) field_name: Cow<'f, str>,
        pub(crate) shape: Dims,
        #[serde(borrow)]
        pub(crate) dtype: Cow<'f, str>,
        #[serde(default = "plain")]
        pub(crate) list_index: i64,
    }

    pub(crate) fn decode<'f>(frames: &[&'f [u8]]) -> Result<Metadata<'f>, Refused> {
        let (metadata, payloads) = frames.split_first().ok_or(Refused)?;
        let metadata: Metadata<'f> = serde_json::from_slice(metadata).map_err(|_| Refused)?;
        if metadata.tensor_descriptors.len() != payloads.len() {
            return Err(Refused);
        }
        for (tensor, frame) in metadata.tensor_descriptors.iter().zip(payloads) {
            check(&tensor.shape, &tensor.dtype, frame)?;
        }
        Ok(metadata)
    }

    /// The same with the scalars in a borrowed map, which costs more.
    #[derive(Deserialize)]
    pub(crate) struct MappedMetadata<'f> {
        #[serde(borrow)]
        pub(crate) tensor_descriptors: Vec<Descriptor<'f>>,
        #[serde(borrow)]
        pub(crate) scalar_fields: HashMap<Cow<'f, str>, &'f RawValue>,
    }

    pub(crate) fn decode_mapped<'f>(frames: &[&'f [u8]]) -> Result<MappedMetadata<'f>, Refused> {
        let (metadata, payloads) = frames.split_first().ok_or(Refused)?;
        let metadata: MappedMetadata<'f> = serde_json::from_slice(metadata).map_err(|_| Refused)?;
        if metadata.tensor_descriptors.len() != payloads.len() {
            return Err(Refused);
        }
        for (tensor, frame) in metadata.tensor_descriptors.iter().zip(payloads) {
            check(&tensor.shape, &tensor.dtype, frame)?;
        }
        Ok(metadata)
    }
}

/// sonic-rs into the same structs; scalars stay text there too.
pub(crate) mod sonic {
    use super::serde_borrowed::Descriptor;
    use super::*;

    #[derive(Deserialize)]
    pub(crate) struct Metadata<'f> {
        #[serde(borrow)]
        pub(crate) tensor_descriptors: Vec<Descriptor<'f>>,
        #[serde(borrow)]
        pub(crate) scalar_fields: sonic_rs::LazyValue<'f>,
    }

    pub(crate) fn decode<'f>(frames: &[&'f [u8]]) -> Result<Metadata<'f>, Refused> {
        let (metadata, payloads) = frames.split_first().ok_or(Refused)?;
        let metadata: Metadata<'f> = sonic_rs::from_slice(metadata).map_err(|_| Refused)?;
        if metadata.tensor_descriptors.len() != payloads.len() {
            return Err(Refused);
        }
        for (tensor, frame) in metadata.tensor_descriptors.iter().zip(payloads) {
            check(&tensor.shape, &tensor.dtype, frame)?;
        }
        Ok(metadata)
    }
}

/// simd-json's tape, every buffer used again, the input padded so that it makes no copy of its own.
///
/// It unescapes in place, so a received frame is copied first: frames are
/// shared and not to be written to.
pub(crate) struct SimdJson {
    input: Vec<u8>,
    buffers: Buffers,
    tape: Option<Tape<'static>>,
}

impl SimdJson {
    pub(crate) fn new() -> Self {
        Self {
            input: Vec::new(),
            buffers: Buffers::new(1 << 16),
            tape: Some(Tape::null()),
        }
    }

    /// Decodes; the names lie in a buffer of the decoder, so the tensors are given to `each`.
    pub(crate) fn decode(
        &mut self,
        frames: &[&[u8]],
        mut each: impl FnMut(&str, &[usize], DType, i64, &[u8]),
    ) -> Result<usize, Refused> {
        self.with_tape(frames, |nodes, payloads| {
            walk::<false>(nodes, payloads, &mut each)
        })
    }

    /// As [`decode`](Self::decode), and refuses what a receiver of messages by
    /// strangers has to: schema keys that come twice, two tensors of one place,
    /// names both plain and list, and what is over a cap.
    pub(crate) fn decode_checked(
        &mut self,
        frames: &[&[u8]],
        mut each: impl FnMut(&str, &[usize], DType, i64, &[u8]),
    ) -> Result<usize, Refused> {
        if frames
            .first()
            .is_none_or(|metadata| metadata.len() > 1 << 20)
            || frames.len() > 4097
        {
            return Err(Refused);
        }
        self.with_tape(frames, |nodes, payloads| {
            let mut places = SmallVec::<[(&str, i64); 16]>::new();
            let scalars = walk::<true>(nodes, payloads, &mut |name, dims, dtype, index, bytes| {
                places.push((name, index));
                each(name, dims, dtype, index, bytes);
            })?;
            places.sort_unstable();
            let conflict = places.windows(2).any(|pair| {
                let ((name, index), (next, other)) = (pair[0], pair[1]);
                name == next && (index == other || index < 0)
            });
            if conflict { Err(Refused) } else { Ok(scalars) }
        })
    }

    fn with_tape<R>(
        &mut self,
        frames: &[&[u8]],
        read: impl FnOnce(&[Node<'_>], &[&[u8]]) -> Result<R, Refused>,
    ) -> Result<R, Refused> {
        let (metadata, payloads) = frames.split_first().ok_or(Refused)?;
        let mut tape = self.tape.take().unwrap_or_else(Tape::null).reset();
        self.input.clear();
        self.input.extend_from_slice(metadata);
        self.input.resize(metadata.len() + INPUT_PADDING, 0);
        simd_json::fill_tape_padded(
            &mut self.input,
            metadata.len(),
            &mut self.buffers,
            &mut tape,
        )
        .map_err(|_| Refused)?;
        let result = read(&tape.0, payloads)?;
        self.tape = Some(tape.reset());
        Ok(result)
    }
}

/// Reads the tape front to back; gives how many scalars there are.
///
/// `CHECKED` is whether keys that come twice, and what is over a cap, are refused.
fn walk<'t, const CHECKED: bool>(
    nodes: &[Node<'t>],
    payloads: &[&[u8]],
    each: &mut impl FnMut(&'t str, &[usize], DType, i64, &[u8]),
) -> Result<usize, Refused> {
    let Some(Node::Object { len, .. }) = nodes.first() else {
        return Err(Refused);
    };
    let mut at = 1;
    let mut descriptors = None;
    let mut scalars = None;
    for _ in 0..*len {
        let Node::String(key) = nodes[at] else {
            return Err(Refused);
        };
        at += 1;
        match (key, nodes[at]) {
            ("tensor_descriptors", _) if CHECKED && descriptors.is_some() => return Err(Refused),
            ("scalar_fields", _) if CHECKED && scalars.is_some() => return Err(Refused),
            ("tensor_descriptors", Node::Array { len, .. }) => {
                if len != payloads.len() {
                    return Err(Refused);
                }
                descriptors = Some(at + 1);
            }
            ("scalar_fields", Node::Object { len, .. }) => scalars = Some(len),
            ("tensor_descriptors" | "scalar_fields", _) => return Err(Refused),
            _ => {}
        }
        at += width(nodes[at]);
    }
    let mut at = descriptors.ok_or(Refused)?;
    for payload in payloads {
        let Node::Object { len, .. } = nodes[at] else {
            return Err(Refused);
        };
        at += 1;
        let (mut name, mut dtype, mut list_index) = (None, None, None);
        let mut dims: Option<Dims> = None;
        for _ in 0..len {
            let Node::String(key) = nodes[at] else {
                return Err(Refused);
            };
            at += 1;
            let twice = match key {
                "field_name" => name.is_some(),
                "dtype" => dtype.is_some(),
                "list_index" => list_index.is_some(),
                "shape" => dims.is_some(),
                _ => false,
            };
            if CHECKED && twice {
                return Err(Refused);
            }
            match (key, nodes[at]) {
                ("field_name", Node::String(text)) => name = Some(text),
                ("dtype", Node::String(text)) => dtype = Some(text),
                ("list_index", Node::Static(StaticNode::I64(index))) => list_index = Some(index),
                ("list_index", Node::Static(StaticNode::U64(index))) => {
                    list_index = Some(i64::try_from(index).map_err(|_| Refused)?);
                }
                ("shape", Node::Array { len, .. }) => {
                    let shape = nodes[at + 1..=at + len].iter().map(|node| match *node {
                        Node::Static(StaticNode::U64(dim)) => {
                            usize::try_from(dim).map_err(|_| Refused)
                        }
                        Node::Static(StaticNode::I64(dim)) => {
                            usize::try_from(dim).map_err(|_| Refused)
                        }
                        _ => Err(Refused),
                    });
                    dims = Some(shape.collect::<Result<_, _>>()?);
                }
                ("field_name" | "dtype" | "list_index" | "shape", _) => return Err(Refused),
                _ => {}
            }
            at += width(nodes[at]);
        }
        let (Some(name), Some(dtype), Some(dims)) = (name, dtype, dims) else {
            return Err(Refused);
        };
        let dtype = check(&dims, dtype, payload)?;
        let list_index = list_index.unwrap_or(-1);
        let capped = name.len() <= 1024 && dims.len() <= 64 && (-1..=4096).contains(&list_index);
        if CHECKED && !capped {
            return Err(Refused);
        }
        each(name, &dims, dtype, list_index, payload);
    }
    Ok(scalars.unwrap_or_default())
}

/// How many nodes a value takes on the tape.
fn width(node: Node<'_>) -> usize {
    match node {
        Node::Object { count, .. } | Node::Array { count, .. } => 1 + count,
        Node::String(_) | Node::Static(_) => 1,
    }
}

/// The plain port of the Python code: owned values, and a copy of each payload.
pub(crate) mod owned {
    use super::*;

    #[derive(Deserialize)]
    struct Metadata {
        tensor_descriptors: Vec<Descriptor>,
        #[serde(default)]
        scalar_fields: HashMap<String, serde_json::Value>,
    }

    #[derive(Deserialize)]
    struct Descriptor {
        field_name: String,
        shape: Vec<usize>,
        dtype: String,
        #[serde(default = "plain")]
        list_index: i64,
    }

    pub(crate) struct Tensor {
        pub(crate) name: String,
        pub(crate) shape: Vec<usize>,
        pub(crate) dtype: DType,
        pub(crate) list_index: i64,
        pub(crate) bytes: Vec<u8>,
    }

    type Message = (Vec<Tensor>, HashMap<String, serde_json::Value>);

    pub(crate) fn decode(frames: &[&[u8]]) -> Result<Message, Refused> {
        let (metadata, payloads) = frames.split_first().ok_or(Refused)?;
        let metadata: Metadata = serde_json::from_slice(metadata).map_err(|_| Refused)?;
        if metadata.tensor_descriptors.len() != payloads.len() {
            return Err(Refused);
        }
        let tensors = metadata
            .tensor_descriptors
            .into_iter()
            .zip(payloads)
            .map(|(tensor, frame)| {
                let dtype = check(&tensor.shape, &tensor.dtype, frame)?;
                Ok(Tensor {
                    name: tensor.field_name,
                    shape: tensor.shape,
                    dtype,
                    list_index: tensor.list_index,
                    bytes: frame.to_vec(),
                })
            })
            .collect::<Result<_, Refused>>()?;
        Ok((tensors, metadata.scalar_fields))
    }
}
