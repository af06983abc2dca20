//! Messages to try, and every way to spell one.

use proptest::collection::vec;
use proptest::prelude::*;
use tensorwire::message::encode_to_vec;
use tensorwire::testing::{self, Parameters, TensorMessage};
use tensorwire::{Descriptor, Message, TensorView};

use crate::fuzz::check::{Summary, Tensor};
use crate::fuzz::tree::{self, Tree};

/// What somebody sends.
#[derive(Clone, Debug)]
pub(crate) struct Sent {
    pub(crate) tensors: Vec<Tensor>,
    pub(crate) scalars: Vec<(String, Tree)>,
}

impl Sent {
    /// The frames as this crate writes them.
    pub(crate) fn frames(&self) -> Vec<Vec<u8>> {
        let places = tree::places(&self.scalars);
        let scalars = tree::scalars(&self.scalars, &mut places.as_slice());
        let views: Vec<_> = self.tensors.iter().map(view).collect();
        self.frames_after(encode_to_vec(&views, scalars.as_slice()).unwrap())
    }

    /// Another spelling of the metadata, and the same payloads.
    pub(crate) fn spelled(&self, spelling: &Spelling) -> Vec<Vec<u8>> {
        self.frames_after(spelling.write(&self.node()).into_bytes())
    }

    /// These payloads behind another metadata frame.
    pub(crate) fn frames_after(&self, metadata: Vec<u8>) -> Vec<Vec<u8>> {
        let payloads = self.tensors.iter().map(|tensor| tensor.bytes.clone());
        std::iter::once(metadata).chain(payloads).collect()
    }

    /// Asserts that a message says all this.
    pub(crate) fn assert_read<F: AsRef<[u8]>>(&self, message: &Message<'_, '_, F>) {
        assert_eq!(Summary::of(message).tensors, self.tensors);
        tree::assert_members(&self.scalars, message.scalars());
    }

    fn node(&self) -> Node {
        let descriptors = self.tensors.iter().map(|tensor| {
            let dims = tensor.shape.iter().map(|dim| Node::Raw(dim.to_string()));
            let list_index = tensor.list_index.map_or(-1, i64::from);
            Node::Schema(vec![
                ("field_name", Node::Str(tensor.name.clone())),
                ("shape", Node::Array(dims.collect())),
                ("dtype", Node::Str(tensor.dtype.name().to_string())),
                ("list_index", Node::Raw(list_index.to_string())),
            ])
        });
        let scalars = self.scalars.iter();
        Node::Schema(vec![
            ("tensor_descriptors", Node::Array(descriptors.collect())),
            (
                "scalar_fields",
                Node::Object(
                    scalars
                        .map(|(key, value)| (key.clone(), scalar(value)))
                        .collect(),
                ),
            ),
        ])
    }
}

/// A tensor on its way out.
pub(crate) fn view(tensor: &Tensor) -> TensorView<'_> {
    TensorView::new(descriptor(tensor), &tensor.bytes).unwrap()
}

pub(crate) fn descriptor(tensor: &Tensor) -> Descriptor<'_> {
    let shape = tensor.shape.as_slice();
    let descriptor = Descriptor::new(&tensor.name, tensor.dtype, shape).unwrap();
    match tensor.list_index {
        Some(index) => descriptor.with_list_index(index),
        None => descriptor,
    }
}

/// Messages of every kind: no tensors, plain ones, lists with holes, in any order.
pub(crate) fn sent() -> impl Strategy<Value = Sent> {
    (tensors(), scalars()).prop_map(|(tensors, scalars)| Sent { tensors, scalars })
}

/// Tensors of one message, none in conflict with another.
pub(crate) fn tensors() -> impl Strategy<Value = Vec<Tensor>> {
    let parameters = prop_oneof![
        9 => Just(Parameters::new().with_rank(4).with_tensors(4).with_bytes(1 << 10)),
        1 => Just(Parameters::new().with_rank(64).with_tensors(1)),
    ];
    let messages = parameters.prop_flat_map(any_with::<TensorMessage>);
    messages.prop_map(|message| message.tensors().iter().map(owned).collect())
}

/// A tensor of any dtype and shape.
pub(crate) fn contents() -> impl Strategy<Value = Tensor> {
    tensors().prop_filter_map("no tensor", |tensors| tensors.into_iter().next())
}

fn owned(tensor: &testing::Tensor) -> Tensor {
    Tensor {
        name: tensor.name().to_string(),
        list_index: tensor.list_index(),
        dtype: tensor.dtype(),
        shape: tensor.shape().to_vec(),
        bytes: tensor.bytes().to_vec(),
    }
}

/// Names: identifiers, the schema's own words, and whatever needs an escape.
pub(crate) fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[a-z_]{1,12}",
        2 => vec(any::<char>(), 0..8).prop_map(String::from_iter),
        1 => proptest::sample::select(&[
            "", "\0", "\u{7f}", "é", "😀", "\"\\/", "shape", "tensor_descriptors", "a b", "\u{ffff}",
        ]).prop_map(str::to_string),
    ]
}

/// Scalars by key.
pub(crate) fn scalars() -> impl Strategy<Value = Vec<(String, Tree)>> {
    vec((name(), tree()), 0..5)
}

/// A scalar, with others inside it or not.
pub(crate) fn tree() -> impl Strategy<Value = Tree> {
    let integers = [
        0,
        -1,
        i128::from(i64::MAX),
        i128::from(u64::MAX),
        1 << 100,
        i128::MIN,
    ];
    let floats = [
        -0.0,
        5e-324,
        1e16,
        1e-5,
        f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
    ];
    let leaf = prop_oneof![
        Just(Tree::Null),
        any::<bool>().prop_map(Tree::Bool),
        any::<i8>().prop_map(Tree::Small),
        any::<i128>().prop_map(Tree::Int),
        proptest::sample::select(integers.to_vec()).prop_map(Tree::Int),
        any::<u128>().prop_map(Tree::UInt),
        any::<f64>().prop_map(Tree::Float),
        proptest::sample::select(floats.to_vec()).prop_map(Tree::Float),
        name().prop_map(Tree::Str),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Tree::List),
            vec((name(), inner), 0..4).prop_map(Tree::Object),
        ]
    })
}

/// A JSON value on its way to some spelling of it.
#[derive(Debug)]
enum Node {
    Raw(String),
    Str(String),
    Array(Vec<Self>),
    /// Among the scalars: order counts, no key is unknown.
    Object(Vec<(String, Self)>),
    /// Of the schema: order does not count, unknown keys say nothing.
    Schema(Vec<(&'static str, Self)>),
}

fn scalar(tree: &Tree) -> Node {
    match tree {
        Tree::Null => Node::Raw("null".to_string()),
        Tree::Bool(value) => Node::Raw(value.to_string()),
        Tree::Int(value) => Node::Raw(value.to_string()),
        Tree::Small(value) => Node::Raw(value.to_string()),
        Tree::UInt(value) => Node::Raw(value.to_string()),
        Tree::Float(value) if value.is_nan() => Node::Raw("NaN".to_string()),
        Tree::Float(value) if *value == f64::INFINITY => Node::Raw("Infinity".to_string()),
        Tree::Float(value) if *value == f64::NEG_INFINITY => Node::Raw("-Infinity".to_string()),
        // Rust's own text: no matter which, if it reads back.
        Tree::Float(value) => Node::Raw(format!("{value:?}")),
        Tree::Str(value) => Node::Str(value.clone()),
        Tree::List(items) => Node::Array(items.iter().map(scalar).collect()),
        Tree::Object(members) => {
            let members = members.iter();
            Node::Object(
                members
                    .map(|(key, value)| (key.clone(), scalar(value)))
                    .collect(),
            )
        }
    }
}

/// Which of the freedoms of JSON to take; with none it is Python's own spelling,
/// but for characters that need no escape.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Spelling {
    pub(crate) white_space: bool,
    pub(crate) key_order: bool,
    pub(crate) unknown_keys: bool,
    pub(crate) escapes: bool,
    pub(crate) seed: u64,
}

/// Spellings that take any of the freedoms.
pub(crate) fn spelling() -> impl Strategy<Value = Spelling> {
    any::<(bool, bool, bool, bool, u64)>().prop_map(
        |(white_space, key_order, unknown_keys, escapes, seed)| Spelling {
            white_space,
            key_order,
            unknown_keys,
            escapes,
            seed,
        },
    )
}

impl Spelling {
    fn write(self, node: &Node) -> String {
        let mut speller = Speller {
            spelling: self,
            state: self.seed,
            text: String::new(),
        };
        speller.white();
        speller.node(node);
        speller.white();
        speller.text
    }
}

struct Speller {
    spelling: Spelling,
    state: u64,
    text: String,
}

/// Unknown keys, near misses among them, and values for them.
const UNKNOWN: &[(&str, &str)] = &[
    ("strides", "[4,1]"),
    ("device", "\"cuda:0\""),
    ("Shape", "null"),
    ("shapes", "{\"a\":[1,{\"b\":[]}]}"),
    ("list_index ", "-5"),
    ("fieldname", "1e999"),
    ("", "[[[[]]],{},\"\\ud800\"]"),
    ("\\ud800", "true"),
    ("tensor_descriptor", "{\"shape\":[-1]}"),
    ("\\u0000", "123456789012345678901234567890"),
];

impl Speller {
    fn roll(&mut self, sides: usize) -> usize {
        next(&mut self.state) as usize % sides
    }

    fn white(&mut self) {
        while self.spelling.white_space && self.roll(3) == 0 {
            let white = [" ", "\t", "\n", "\r", "        "][self.roll(5)];
            self.text += white;
        }
    }

    fn separator(&mut self, text: &str) {
        self.white();
        self.text += text;
        self.white();
    }

    fn node(&mut self, node: &Node) {
        match node {
            Node::Raw(text) => self.text += text,
            Node::Str(text) => self.string(text),
            Node::Array(items) => {
                self.text.push('[');
                self.white();
                for (index, item) in items.iter().enumerate() {
                    if index > 0 {
                        self.separator(",");
                    }
                    self.node(item);
                }
                self.white();
                self.text.push(']');
            }
            Node::Object(members) => {
                self.text.push('{');
                self.white();
                for (index, (key, value)) in members.iter().enumerate() {
                    if index > 0 {
                        self.separator(",");
                    }
                    self.string(key);
                    self.separator(":");
                    self.node(value);
                }
                self.white();
                self.text.push('}');
            }
            Node::Schema(members) => self.schema(members),
        }
    }

    fn schema(&mut self, members: &[(&'static str, Node)]) {
        let mut order: Vec<Option<&(&str, Node)>> = members.iter().map(Some).collect();
        if self.spelling.unknown_keys {
            for _ in 0..self.roll(3) {
                let at = self.roll(order.len() + 1);
                order.insert(at, None);
            }
        }
        if self.spelling.key_order {
            for index in (1..order.len()).rev() {
                let other = self.roll(index + 1);
                order.swap(index, other);
            }
        }
        self.text.push('{');
        self.white();
        for (index, member) in order.into_iter().enumerate() {
            if index > 0 {
                self.separator(",");
            }
            if let Some((key, value)) = member {
                self.string(key);
                self.separator(":");
                self.node(value);
            } else {
                let (key, value) = UNKNOWN[self.roll(UNKNOWN.len())];
                self.text += &format!("\"{key}\"");
                self.separator(":");
                self.text += value;
            }
        }
        self.white();
        self.text.push('}');
    }

    fn string(&mut self, text: &str) {
        self.text.push('"');
        for c in text.chars() {
            let must = c < ' ' || c == '"' || c == '\\';
            let escaped = must || self.spelling.escapes && self.roll(2) == 0;
            if !escaped {
                self.text.push(c);
                continue;
            }
            let short = match c {
                '"' | '\\' | '/' => Some(c),
                '\x08' => Some('b'),
                '\x0c' => Some('f'),
                '\n' => Some('n'),
                '\r' => Some('r'),
                '\t' => Some('t'),
                _ => None,
            };
            if let (Some(short), true) = (short, self.roll(2) == 0) {
                self.text.extend(['\\', short]);
                continue;
            }
            for unit in c.encode_utf16(&mut [0; 2]) {
                let escape = match self.roll(2) {
                    0 => format!("\\u{unit:04x}"),
                    _ => format!("\\u{unit:04X}"),
                };
                self.text += &escape;
            }
        }
        self.text.push('"');
    }
}

/// Numbers that look random: splitmix64.
pub(crate) fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    // The low bits alone are used.
    (mixed ^ (mixed >> 31)) >> 8
}
