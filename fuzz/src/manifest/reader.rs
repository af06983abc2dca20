//! The manifest once more, read and written the simple way.
//!
//! Shares no code with the crate, and compares every tensor with every other.

use std::collections::{BTreeMap, BTreeSet};

use tensorwire::Limits;
use tensorwire::dtype::Generation;
use tensorwire::error::DecodeErrorKind;

use super::super::naive::{self, Json, Node, Sizes, Tensor, is, quoted, require, unknown};

/// A tensor, and where it is.
#[derive(Debug, PartialEq)]
pub struct Placed {
    pub tensor: Tensor,
    pub offset: u64,
    /// Where the entry stands in the text.
    pub at: usize,
}

impl Placed {
    pub fn end(&self) -> u128 {
        u128::from(self.offset) + u128::from(self.tensor.byte_len)
    }
}

/// Why there is no manifest.
#[derive(Debug, PartialEq)]
pub enum Refusal {
    /// Two entries of one place: the kind, and the second.
    Entries(DecodeErrorKind, usize),
    /// Two fields of one name.
    Fields,
    /// Tensors share bytes, the first of which is this; each pair with the bytes that it shares.
    Overlap {
        first: u64,
        pairs: Vec<((usize, usize), u64, u64)>,
    },
    /// Anything else.
    Schema(&'static str),
}

impl From<&'static str> for Refusal {
    fn from(why: &'static str) -> Self {
        Self::Schema(why)
    }
}

/// A manifest as Python's `json.dumps` writes it.
pub fn naive_text<'t>(
    tensors: impl Iterator<Item = &'t Tensor>,
    offsets: impl Iterator<Item = u64>,
) -> String {
    let mut fields: Vec<(&str, Vec<String>)> = Vec::new();
    for (tensor, offset) in tensors.zip(offsets) {
        let shape: Vec<_> = tensor.shape.iter().map(u64::to_string).collect();
        let index = tensor.list_index;
        let index = index.map_or(String::new(), |index| format!(r#","list_index":{index}"#));
        let entry = format!(
            r#"{{"offset":{offset},"shape":[{}],"dtype":"{}"{index}}}"#,
            shape.join(","),
            tensor.dtype,
        );
        match fields.iter_mut().find(|(name, _)| *name == tensor.name) {
            Some((_, entries)) => entries.push(entry),
            None => fields.push((&tensor.name, vec![entry])),
        }
    }
    let fields: Vec<_> = fields
        .iter()
        .map(|(name, entries)| format!("{}:[{}]", quoted(name), entries.join(",")))
        .collect();
    format!("{{{}}}", fields.join(","))
}

/// Reads a manifest by the rules alone.
pub fn read(
    text: &str,
    limits: &Limits,
    generation: Generation,
    slot_len: u128,
) -> Result<Vec<Placed>, Refusal> {
    let document = Node::parse(text, naive::PARSE_DEPTH).ok_or("syntax")?;
    let Json::Object(members) = &document.json else {
        return Err("top level".into());
    };
    require(document.raw.len() <= limits.metadata_bytes(), "long")?;
    let mut fields: Vec<(String, Vec<Placed>)> = Vec::new();
    for (key, value) in members {
        let name = naive::text(key).ok_or("lone surrogate in a name")?;
        require(name.len() <= limits.name_bytes(), "length of a name")?;
        let Json::Array(entries) = &value.json else {
            return Err("field type".into());
        };
        let entries = entries
            .iter()
            .map(|node| entry(node, &name, limits, generation, slot_len));
        fields.push((name.clone(), entries.collect::<Result<_, _>>()?));
    }
    let all = || fields.iter().flat_map(|(_, entries)| entries);
    require(all().count() <= limits.descriptors(), "entries")?;
    let sum: u128 = all().map(|placed| u128::from(placed.tensor.byte_len)).sum();
    require(sum <= limits.tensor_bytes() as u128, "tensor bytes")?;
    refuse_namesakes(&fields)?;
    let placed: Vec<Placed> = fields
        .into_iter()
        .flat_map(|(_, entries)| entries)
        .collect();
    refuse_overlap(&placed)?;
    Ok(placed)
}

fn entry(
    node: &Node<'_>,
    name: &str,
    limits: &Limits,
    generation: Generation,
    slot_len: u128,
) -> Result<Placed, &'static str> {
    let Json::Object(members) = &node.json else {
        return Err("entry type");
    };
    let mut known: BTreeMap<&str, &Node<'_>> = BTreeMap::new();
    for (key, value) in members {
        let name = ["offset", "shape", "dtype", "list_index"];
        match name.into_iter().find(|name| is(key, name)) {
            Some(name) => require(known.insert(name, value).is_none(), "key twice")?,
            None => unknown(value, 3, limits)?,
        }
    }
    let get = |key: &str| known.get(key).copied();
    let natural = |node: &Node<'_>, what: &'static str| {
        let text = node.integer().filter(|text| !text.starts_with('-'));
        text.and_then(|text| text.parse::<u64>().ok()).ok_or(what)
    };
    let offset = natural(get("offset").ok_or("no offset")?, "offset")?;
    let Sizes {
        dtype,
        shape,
        byte_len,
    } = naive::sizes(get("dtype"), get("shape"), limits, generation)?;
    let list_index = match get("list_index") {
        None => None,
        Some(node) => {
            let index = natural(node, "list_index")?;
            require(index <= limits.list_index() as u64, "large list_index")?;
            Some(u32::try_from(index).map_err(|_| "large list_index")?)
        }
    };
    let placed = Placed {
        tensor: Tensor {
            name: name.to_string(),
            list_index,
            dtype,
            shape,
            byte_len,
        },
        offset,
        at: node.at,
    };
    require(placed.end() <= slot_len, "out of the slot")?;
    Ok(placed)
}

/// Refuses the first entry or field, in wire order, that an earlier one is in conflict with.
fn refuse_namesakes(fields: &[(String, Vec<Placed>)]) -> Result<(), Refusal> {
    for (at, (name, entries)) in fields.iter().enumerate() {
        let mut earlier = fields[..at].iter();
        if !entries.is_empty() && earlier.any(|(other, list)| other == name && !list.is_empty()) {
            return Err(Refusal::Fields);
        }
        for (at, placed) in entries.iter().enumerate() {
            let index = placed.tensor.list_index;
            for other in &entries[..at] {
                let kind = match (other.tensor.list_index, index) {
                    (None, None) => DecodeErrorKind::DuplicateField,
                    (Some(a), Some(b)) if a != b => continue,
                    (Some(a), Some(_)) => DecodeErrorKind::DuplicateListIndex {
                        list_index: a as usize,
                    },
                    _ => DecodeErrorKind::MixedField,
                };
                return Err(Refusal::Entries(kind, placed.at));
            }
        }
    }
    // A field without entries is told last.
    let empty = fields.iter().filter(|(_, entries)| entries.is_empty());
    let full = fields.iter().filter(|(_, entries)| !entries.is_empty());
    let full: BTreeSet<&str> = full.map(|(name, _)| name.as_str()).collect();
    for (name, _) in empty {
        if full.contains(name.as_str()) {
            return Err(Refusal::Fields);
        }
    }
    Ok(())
}

/// Compares every tensor with every other.
fn refuse_overlap(placed: &[Placed]) -> Result<(), Refusal> {
    let mut pairs = Vec::new();
    for (b, later) in placed.iter().enumerate() {
        for (a, other) in placed[..b].iter().enumerate() {
            let start = later.offset.max(other.offset);
            let end = later.end().min(other.end());
            let full = later.tensor.byte_len > 0 && other.tensor.byte_len > 0;
            if full && u128::from(start) < end {
                pairs.push(((a, b), start, u64::try_from(end).unwrap()));
            }
        }
    }
    let Some(first) = pairs.iter().map(|(_, start, _)| *start).min() else {
        return Ok(());
    };
    Err(Refusal::Overlap { first, pairs })
}
