//! The format once more, written the simple way: recursive, allocating, slow.
//!
//! Shares no code with the crate. Verdicts and results are to be equal; where
//! in the frame an error lies, and which of several is told, is not compared.

use std::collections::{HashMap, HashSet};

use tensorwire::Limits;
use tensorwire::dtype::Generation;

/// A JSON value and the text that it stands in.
#[derive(Debug)]
pub struct Node<'a> {
    pub raw: &'a str,
    /// Where `raw` starts in the document.
    pub at: usize,
    pub json: Json<'a>,
}

/// Strings are code points: a lone surrogate is one of them.
#[derive(Debug)]
pub enum Json<'a> {
    Null,
    Bool(bool),
    /// One of `NaN`, `Infinity`, `-Infinity`.
    NonFinite,
    Number,
    Str(Vec<u32>),
    Array(Vec<Node<'a>>),
    Object(Vec<(Vec<u32>, Node<'a>)>),
}

impl<'a> Node<'a> {
    /// The document, if it is one, whatever its depth up to `max_depth`.
    pub fn parse(text: &'a str, max_depth: usize) -> Option<Self> {
        let mut parser = Parser {
            text,
            at: 0,
            max_depth,
        };
        parser.white();
        let node = parser.value(0)?;
        parser.white();
        (parser.at == text.len()).then_some(node)
    }

    pub fn depth(&self) -> usize {
        match &self.json {
            Json::Array(items) => 1 + items.iter().map(Self::depth).max().unwrap_or(0),
            Json::Object(members) => {
                1 + members
                    .iter()
                    .map(|(_, node)| node.depth())
                    .max()
                    .unwrap_or(0)
            }
            _ => 0,
        }
    }

    /// Whether the RFC's grammar has it too.
    pub fn is_strict(&self) -> bool {
        self.all(&mut |node| !matches!(node.json, Json::NonFinite))
    }

    /// Whether `holds` for this node and all inside it.
    pub fn all(&self, holds: &mut dyn FnMut(&Self) -> bool) -> bool {
        holds(self)
            && match &self.json {
                Json::Array(items) => items.iter().all(|node| node.all(holds)),
                Json::Object(members) => members.iter().all(|(_, node)| node.all(holds)),
                _ => true,
            }
    }

    /// Whether no string in it, key or value, holds a lone surrogate.
    pub fn is_text(&self) -> bool {
        self.all(&mut |node| match &node.json {
            Json::Str(points) => text(points).is_some(),
            Json::Object(members) => members.iter().all(|(key, _)| text(key).is_some()),
            _ => true,
        })
    }

    pub fn integer(&self) -> Option<&'a str> {
        let digits = self.raw.strip_prefix('-').unwrap_or(self.raw);
        (matches!(self.json, Json::Number) && digits.bytes().all(|byte| byte.is_ascii_digit()))
            .then_some(self.raw)
    }
}

/// The text of these code points, if they are one.
pub fn text(points: &[u32]) -> Option<String> {
    points.iter().copied().map(char::from_u32).collect()
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    max_depth: usize,
}

impl<'a> Parser<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn white(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start_matches([' ', '\t', '\n', '\r']).len();
    }

    fn take(&mut self, literal: &str) -> bool {
        let found = self.rest().starts_with(literal);
        if found {
            self.at += literal.len();
        }
        found
    }

    fn value(&mut self, depth: usize) -> Option<Node<'a>> {
        let at = self.at;
        let json = match self.rest().chars().next()? {
            '{' => self.object(depth + 1)?,
            '[' => self.array(depth + 1)?,
            '"' => Json::Str(self.string()?),
            't' => self.take("true").then_some(Json::Bool(true))?,
            'f' => self.take("false").then_some(Json::Bool(false))?,
            'n' => self.take("null").then_some(Json::Null)?,
            _ if self.take("NaN") || self.take("Infinity") || self.take("-Infinity") => {
                Json::NonFinite
            }
            _ => self.number()?,
        };
        let raw = &self.text[at..self.at];
        Some(Node { raw, at, json })
    }

    fn object(&mut self, depth: usize) -> Option<Json<'a>> {
        if depth > self.max_depth {
            return None;
        }
        let mut members = Vec::new();
        self.at += 1;
        self.white();
        if self.take("}") {
            return Some(Json::Object(members));
        }
        loop {
            let key = self.string()?;
            self.white();
            self.take(":").then_some(())?;
            self.white();
            members.push((key, self.value(depth)?));
            self.white();
            if self.take("}") {
                return Some(Json::Object(members));
            }
            self.take(",").then_some(())?;
            self.white();
        }
    }

    fn array(&mut self, depth: usize) -> Option<Json<'a>> {
        if depth > self.max_depth {
            return None;
        }
        let mut items = Vec::new();
        self.at += 1;
        self.white();
        if self.take("]") {
            return Some(Json::Array(items));
        }
        loop {
            items.push(self.value(depth)?);
            self.white();
            if self.take("]") {
                return Some(Json::Array(items));
            }
            self.take(",").then_some(())?;
            self.white();
        }
    }

    fn string(&mut self) -> Option<Vec<u32>> {
        self.take("\"").then_some(())?;
        let mut units = Vec::new();
        loop {
            let next = self.rest().chars().next()?;
            self.at += next.len_utf8();
            match next {
                '"' => break,
                '\0'..='\x1f' => return None,
                '\\' => {
                    let escape = self.rest().chars().next()?;
                    self.at += escape.len_utf8();
                    units.push(match escape {
                        '"' | '\\' | '/' => u32::from(escape),
                        'b' => 8,
                        'f' => 12,
                        'n' => 10,
                        'r' => 13,
                        't' => 9,
                        'u' => {
                            let digits = self.rest().get(..4)?;
                            if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
                                return None;
                            }
                            self.at += 4;
                            // Marked, since only two escapes make a pair.
                            ESCAPED | u32::from_str_radix(digits, 16).unwrap()
                        }
                        _ => return None,
                    });
                }
                plain => units.push(u32::from(plain)),
            }
        }
        Some(join_pairs(&units))
    }

    fn number(&mut self) -> Option<Json<'a>> {
        self.take("-");
        if !self.take("0") {
            self.digits()?;
        }
        if self.take(".") {
            self.digits()?;
        }
        if self.take("e") || self.take("E") {
            let _ = self.take("+") || self.take("-");
            self.digits()?;
        }
        Some(Json::Number)
    }

    fn digits(&mut self) -> Option<()> {
        let count = self.rest().bytes().take_while(u8::is_ascii_digit).count();
        self.at += count;
        (count > 0).then_some(())
    }
}

const ESCAPED: u32 = 1 << 31;

fn join_pairs(units: &[u32]) -> Vec<u32> {
    let mut points = Vec::new();
    let mut at = 0;
    while at < units.len() {
        let unit = units[at] & !ESCAPED;
        let low = units.get(at + 1).map_or(0, |low| low & !ESCAPED);
        if (0xd800..0xdc00).contains(&unit) && (0xdc00..0xe000).contains(&low) {
            points.push(0x1_0000 + ((unit - 0xd800) << 10) + (low - 0xdc00));
            at += 2;
        } else {
            points.push(unit);
            at += 1;
        }
    }
    points
}

/// A tensor as the metadata describes it.
#[derive(Debug, PartialEq)]
pub struct Tensor {
    pub name: String,
    pub list_index: Option<u32>,
    pub dtype: String,
    pub shape: Vec<u64>,
    pub byte_len: u64,
}

/// A message, or why there is none.
#[derive(Debug)]
pub struct Message<'a> {
    pub tensors: Vec<Tensor>,
    /// The text of `scalar_fields`.
    pub scalars: &'a str,
    pub document: Node<'a>,
}

/// Why there is no message; for two tensors in conflict, which is the second.
#[derive(Debug, PartialEq)]
pub struct Refusal {
    pub why: &'static str,
    pub descriptor: Option<usize>,
}

impl From<&'static str> for Refusal {
    fn from(why: &'static str) -> Self {
        Self {
            why,
            descriptor: None,
        }
    }
}

/// (name, size, generation)
const DTYPES: &[(&str, u64, Generation)] = &[
    ("float16", 2, Generation::Oldest),
    ("float32", 4, Generation::Oldest),
    ("float64", 8, Generation::Oldest),
    ("bfloat16", 2, Generation::Oldest),
    ("int8", 1, Generation::Oldest),
    ("int16", 2, Generation::Oldest),
    ("int32", 4, Generation::Oldest),
    ("int64", 8, Generation::Oldest),
    ("uint8", 1, Generation::Oldest),
    ("bool", 1, Generation::Oldest),
    ("complex64", 8, Generation::Complex),
    ("complex128", 16, Generation::Complex),
    ("uint16", 2, Generation::Extended),
    ("uint32", 4, Generation::Extended),
    ("uint64", 8, Generation::Extended),
    ("float8_e4m3fn", 1, Generation::Extended),
    ("float8_e5m2", 1, Generation::Extended),
    ("float8_e4m3fnuz", 1, Generation::Extended),
    ("float8_e5m2fnuz", 1, Generation::Extended),
    ("float8_e8m0fnu", 1, Generation::Extended),
];

/// The largest size that this reader knows: the platforms tested have 64 bits.
const MAX_SIZE: u128 = i64::MAX as u128;

/// Deeper than any limit, shallow enough for the stack.
pub const PARSE_DEPTH: usize = 200;

/// Decodes `frames` by the rules alone.
pub fn decode<'a, F: AsRef<[u8]>>(
    frames: &'a [F],
    limits: &Limits,
    strict: bool,
    generation: Generation,
) -> Result<Message<'a>, Refusal> {
    let (metadata, payloads) = frames.split_first().ok_or("no frames")?;
    let metadata = metadata.as_ref();
    require(metadata != b"__transfer__", "control")?;
    require(metadata.len() <= limits.metadata_bytes(), "long")?;
    let text = str::from_utf8(metadata).map_err(|_| "utf-8")?;
    let document = Node::parse(text, PARSE_DEPTH).ok_or("syntax")?;
    let Json::Object(members) = &document.json else {
        return Err("top level".into());
    };

    let mut list = None;
    let mut scalars = None;
    for (key, value) in members {
        if is(key, "tensor_descriptors") {
            require(list.replace(value).is_none(), "tensor_descriptors twice")?;
        } else if is(key, "scalar_fields") {
            require(scalars.replace(value).is_none(), "scalar_fields twice")?;
        } else {
            unknown(value, 1, limits)?;
        }
    }
    if let Some(scalars) = scalars {
        require(matches!(scalars.json, Json::Object(_)), "scalars type")?;
        require(scalars.depth() < limits.depth(), "scalars depth")?;
        require(!strict || scalars.is_strict(), "scalars strict")?;
    }
    let Json::Array(list) = &list.ok_or("no tensor_descriptors")?.json else {
        return Err("tensor_descriptors type".into());
    };
    require(list.len() <= limits.descriptors(), "descriptors")?;
    let tensors = list
        .iter()
        .map(|descriptor| tensor(descriptor, limits, generation))
        .collect::<Result<Vec<_>, _>>()?;
    let sum: u128 = tensors
        .iter()
        .map(|tensor| u128::from(tensor.byte_len))
        .sum();
    require(sum <= limits.tensor_bytes() as u128, "tensor bytes")?;

    let mut places = HashSet::new();
    let mut lists = HashMap::new();
    for (index, tensor) in tensors.iter().enumerate() {
        let is_list = tensor.list_index.is_some();
        let why = if *lists.entry(&tensor.name).or_insert(is_list) != is_list {
            "mixed"
        } else if !places.insert((&tensor.name, tensor.list_index)) {
            "twice"
        } else {
            continue;
        };
        let descriptor = Some(index);
        return Err(Refusal { why, descriptor });
    }

    require(tensors.len() == payloads.len(), "frame count")?;
    for (tensor, payload) in tensors.iter().zip(payloads) {
        require(
            tensor.byte_len == payload.as_ref().len() as u64,
            "frame length",
        )?;
    }
    Ok(Message {
        tensors,
        scalars: scalars.map_or("{}", |scalars| scalars.raw),
        document,
    })
}

fn tensor(
    node: &Node<'_>,
    limits: &Limits,
    generation: Generation,
) -> Result<Tensor, &'static str> {
    let Json::Object(members) = &node.json else {
        return Err("descriptor type");
    };
    let mut known: HashMap<&str, &Node<'_>> = HashMap::new();
    for (key, value) in members {
        let name = ["field_name", "shape", "dtype", "list_index"];
        match name.into_iter().find(|name| is(key, name)) {
            Some(name) => require(known.insert(name, value).is_none(), "key twice")?,
            None => unknown(value, 3, limits)?,
        }
    }
    let get = |key: &str| known.get(key).copied();

    let Json::Str(name) = &get("field_name").ok_or("no field_name")?.json else {
        return Err("field_name type");
    };
    let name = text(name).ok_or("lone surrogate in field_name")?;
    require(name.len() <= limits.name_bytes(), "field_name length")?;

    let Sizes {
        dtype,
        shape,
        byte_len,
    } = sizes(get("dtype"), get("shape"), limits, generation)?;

    let list_index = match get("list_index").map(|node| node.integer().ok_or("list_index")) {
        None => None,
        Some(text) => match text? {
            "-1" => None,
            text => {
                require(!text.starts_with('-'), "negative list_index")?;
                let index: u32 = text.parse().map_err(|_| "large list_index")?;
                require(index as usize <= limits.list_index(), "large list_index")?;
                Some(index)
            }
        },
    };
    Ok(Tensor {
        name,
        list_index,
        dtype,
        shape,
        byte_len,
    })
}

/// What a tensor's dtype and shape come to.
pub struct Sizes {
    pub dtype: String,
    pub shape: Vec<u64>,
    pub byte_len: u64,
}

/// Reads these two members of a descriptor, or of an entry of a manifest.
pub fn sizes(
    dtype: Option<&Node<'_>>,
    shape: Option<&Node<'_>>,
    limits: &Limits,
    generation: Generation,
) -> Result<Sizes, &'static str> {
    let Json::Str(dtype) = &dtype.ok_or("no dtype")?.json else {
        return Err("dtype type");
    };
    let dtype = text(dtype).ok_or("dtype")?;
    let &(_, size, since) = DTYPES
        .iter()
        .find(|(name, ..)| *name == dtype)
        .ok_or("dtype")?;
    require(since <= generation, "dtype generation")?;

    let Json::Array(dims) = &shape.ok_or("no shape")?.json else {
        return Err("shape type");
    };
    require(dims.len() <= limits.rank(), "rank")?;
    let mut shape = Vec::new();
    let mut nonzero: u128 = size.into();
    for dim in dims {
        let dim = dim.integer().ok_or("dim")?;
        require(!dim.starts_with('-'), "negative dim")?;
        let dim: u64 = dim.parse().map_err(|_| "large dim")?;
        require(u128::from(dim) <= MAX_SIZE, "large dim")?;
        // Both are below 2^63.
        nonzero *= u128::from(dim.max(1));
        require(nonzero <= MAX_SIZE, "large shape")?;
        shape.push(dim);
    }
    let byte_len = if shape.contains(&0) { 0 } else { nonzero };
    Ok(Sizes {
        dtype,
        shape,
        byte_len: u64::try_from(byte_len).map_err(|_| "large shape")?,
    })
}

/// The value of an unknown key, inside of `levels` containers.
pub fn unknown(node: &Node<'_>, levels: usize, limits: &Limits) -> Result<(), &'static str> {
    require(node.is_strict(), "token outside the scalars")?;
    // Of a bare value the levels around it do not count: the schema has them anyway.
    let depth = node.depth();
    require(depth == 0 || levels + depth <= limits.depth(), "depth")
}

pub fn is(key: &[u32], name: &str) -> bool {
    key.iter().copied().eq(name.chars().map(u32::from))
}

pub fn require(holds: bool, what: &'static str) -> Result<(), &'static str> {
    if holds { Ok(()) } else { Err(what) }
}

/// The metadata frame that Python writes for these tensors, `scalars` as they stand.
pub fn encode(tensors: &[Tensor], scalars: &str) -> String {
    let descriptors: Vec<_> = tensors
        .iter()
        .map(|tensor| {
            let shape: Vec<_> = tensor.shape.iter().map(u64::to_string).collect();
            format!(
                r#"{{"field_name":{},"shape":[{}],"dtype":"{}","list_index":{}}}"#,
                quoted(&tensor.name),
                shape.join(","),
                tensor.dtype,
                tensor.list_index.map_or(-1, i64::from),
            )
        })
        .collect();
    format!(
        r#"{{"tensor_descriptors":[{}],"scalar_fields":{scalars}}}"#,
        descriptors.join(",")
    )
}

/// A string as Python's `json.dumps` writes it.
pub fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for unit in text.encode_utf16() {
        match u8::try_from(unit).map(char::from) {
            Ok('"') => quoted += "\\\"",
            Ok('\\') => quoted += "\\\\",
            Ok('\n') => quoted += "\\n",
            Ok('\r') => quoted += "\\r",
            Ok('\t') => quoted += "\\t",
            Ok('\x08') => quoted += "\\b",
            Ok('\x0c') => quoted += "\\f",
            Ok(plain @ ' '..='~') => quoted.push(plain),
            _ => quoted += &format!("\\u{unit:04x}"),
        }
    }
    quoted + "\""
}
