//! The messages that are sent to Python, and what it should say of them.

use std::sync::{Arc, OnceLock};

use half::{bf16, f16};
use serde_json::json;

use super::common::sha256;
use super::python_dtypes;
use tensorwire::json::Value;
use tensorwire::message::{NO_TENSORS, encode_to_vec};
use tensorwire::tensor::{Descriptor, Element};
use tensorwire::{DType, Scalar, TensorView};

/// A message to send.
pub(crate) struct Message {
    pub(crate) name: &'static str,
    /// In the order of the wire.
    pub(crate) tensors: Vec<Tensor>,
    pub(crate) scalars: Sent,
    /// What the scalars are to Python, where it would spell them otherwise.
    python_scalars: Option<Sent>,
    /// Why Python does not read it.
    pub(crate) refusal: Option<String>,
}

/// Scalars to send.
#[derive(Clone)]
pub(crate) enum Sent {
    Parts(Vec<(&'static str, Scalar<'static>)>),
    Text(Value<'static>),
}

/// A tensor that owns what it is made of.
#[derive(Clone)]
pub(crate) struct Tensor {
    name: String,
    list_index: Option<u32>,
    dtype: DType,
    shape: Vec<usize>,
    pub(crate) bytes: Arc<[u8]>,
    sha256: String,
}

impl Message {
    pub(crate) fn views(&self) -> Vec<TensorView<'_>> {
        self.tensors.iter().map(Tensor::view).collect()
    }

    pub(crate) fn encode<'a, D: AsRef<Descriptor<'a>>>(
        &self,
        tensors: &[D],
        scalars: &Sent,
    ) -> Vec<u8> {
        match scalars {
            Sent::Parts(parts) => encode_to_vec(tensors, parts.as_slice()).unwrap(),
            Sent::Text(value) => encode_to_vec(tensors, value).unwrap(),
        }
    }

    /// Python holds fields in a dictionary: the members of a list come together and in order.
    pub(crate) fn in_python_order(&self) -> Vec<&Tensor> {
        let mut tensors: Vec<_> = self.tensors.iter().collect();
        let first = |name: &str| self.tensors.iter().position(|tensor| tensor.name == name);
        tensors.sort_by_key(|tensor| (first(&tensor.name), tensor.list_index));
        tensors
    }

    /// The metadata that `pack_tensors` makes of what `unpack_tensors` read.
    pub(crate) fn as_python_writes_it(&self) -> Vec<u8> {
        let views: Vec<_> = self
            .in_python_order()
            .into_iter()
            .map(Tensor::view)
            .collect();
        self.encode(&views, self.python_scalars())
    }

    /// The same of the scalars alone.
    pub(crate) fn scalars_as_python_writes_them(&self) -> Vec<u8> {
        let metadata = self.encode(NO_TENSORS, self.python_scalars());
        let text = metadata.strip_prefix(br#"{"tensor_descriptors":[],"scalar_fields":"#);
        text.and_then(|text| text.strip_suffix(b"}"))
            .unwrap()
            .to_vec()
    }

    fn python_scalars(&self) -> &Sent {
        self.python_scalars.as_ref().unwrap_or(&self.scalars)
    }

    /// What the peer says of the tensors that it read.
    pub(crate) fn account(&self) -> serde_json::Value {
        let mut fields = serde_json::Map::new();
        for tensor in self.in_python_order() {
            let Tensor {
                dtype,
                shape,
                sha256,
                ..
            } = tensor;
            let account = json!({"dtype": dtype.name(), "shape": shape, "sha256": sha256});
            match tensor.list_index {
                None => {
                    fields.insert(tensor.name.clone(), account);
                }
                Some(index) => {
                    let list = fields.entry(&tensor.name).or_insert_with(|| json!([]));
                    let list = list.as_array_mut().unwrap();
                    list.resize(index as usize, serde_json::Value::Null);
                    list.push(account);
                }
            }
        }
        fields.into()
    }

    fn read_as(self, scalars: &'static str) -> Self {
        let scalars = Some(Sent::text(scalars));
        Self {
            python_scalars: scalars,
            ..self
        }
    }

    fn refused(self, reason: String) -> Self {
        let refusal = Some(reason);
        Self { refusal, ..self }
    }
}

impl Sent {
    fn text(text: &'static str) -> Self {
        Self::Text(Value::parse(text.as_bytes()).unwrap())
    }
}

impl From<Vec<(&'static str, Scalar<'static>)>> for Sent {
    fn from(parts: Vec<(&'static str, Scalar<'static>)>) -> Self {
        Self::Parts(parts)
    }
}

impl Tensor {
    pub(crate) fn view(&self) -> TensorView<'_> {
        let shape = self.shape.as_slice();
        let view = TensorView::from_bytes(&self.name, self.dtype, shape, &self.bytes).unwrap();
        match self.list_index {
            Some(index) => view.with_list_index(index),
            None => view,
        }
    }

    /// Arbitrary bytes, the same in every run; floats are NaNs and subnormals too.
    fn arbitrary(name: &str, dtype: DType, shape: &[usize]) -> Self {
        let len = shape.iter().product::<usize>() * dtype.size();
        let mut state = name.bytes().fold(len as u32 + 1, |state, byte| {
            state.wrapping_mul(31).wrapping_add(byte.into())
        });
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let byte = (state >> 24) as u8;
            if dtype == DType::Bool { byte & 1 } else { byte }
        };
        let bytes: Vec<u8> = (0..len).map(|_| next()).collect();
        Self::of_bytes(name, dtype, shape, bytes)
    }

    fn of_bytes(name: &str, dtype: DType, shape: &[usize], bytes: Vec<u8>) -> Self {
        Self {
            name: name.to_owned(),
            list_index: None,
            dtype,
            shape: shape.to_vec(),
            sha256: sha256(&bytes),
            bytes: bytes.into(),
        }
    }

    /// What the view of a slice says it is.
    fn of_slice<T: Element>(name: &str, elements: &[T]) -> Self {
        let shape = [elements.len()];
        let view = TensorView::from_slice(name, &shape, elements).unwrap();
        let shape: Vec<_> = view.dims().collect();
        Self::of_bytes(name, view.dtype(), &shape, view.bytes().to_vec())
    }

    fn at(self, index: u32) -> Self {
        let list_index = Some(index);
        Self { list_index, ..self }
    }
}

/// All messages that Python reads.
pub(crate) fn all() -> &'static [Message] {
    static ALL: OnceLock<Vec<Message>> = OnceLock::new();
    ALL.get_or_init(|| {
        let mut messages = of_dtypes();
        messages.extend(of_shapes());
        messages.extend(of_names());
        messages.extend(of_scalars());
        messages.push(video());
        messages
    })
}

/// Messages of the dtypes that this crate has and Python has not.
pub(crate) fn unknown_to_python() -> &'static [Message] {
    static UNKNOWN: OnceLock<Vec<Message>> = OnceLock::new();
    UNKNOWN.get_or_init(|| {
        let unknown = DType::ALL
            .iter()
            .filter(|&&dtype| python_dtypes().all(|known| known != dtype));
        let message = |&dtype: &DType| {
            let tensors = vec![
                u8s("known", &[3]),
                Tensor::arbitrary("unknown", dtype, &[2, 2]),
            ];
            message(dtype.name(), tensors, vec![])
                .refused(format!("ValueError: Unknown dtype string: {dtype}"))
        };
        unknown.map(message).collect()
    })
}

/// What ends the peer's echo.
pub(crate) fn stop() -> Message {
    message("stop", vec![], vec![("stop", true.into())])
}

fn message(name: &'static str, tensors: Vec<Tensor>, scalars: impl Into<Sent>) -> Message {
    Message {
        name,
        tensors,
        scalars: scalars.into(),
        python_scalars: None,
        refusal: None,
    }
}

fn u8s(name: &str, shape: &[usize]) -> Tensor {
    Tensor::arbitrary(name, DType::UInt8, shape)
}

fn of_dtypes() -> Vec<Message> {
    let mut messages = Vec::new();
    for dtype in python_dtypes() {
        let tensors = vec![
            Tensor::arbitrary("latents", dtype, &[2, 3, 5]),
            Tensor::arbitrary("sigma", dtype, &[]),
            Tensor::arbitrary("nothing", dtype, &[0]),
            Tensor::arbitrary("flat", dtype, &[2, 0, 3]),
        ];
        messages.push(message(
            dtype.name(),
            tensors,
            vec![("guidance_scale", 7.5.into())],
        ));
    }
    let all = python_dtypes().map(|dtype| Tensor::arbitrary(dtype.name(), dtype, &[7]));
    messages.push(message("all dtypes", all.collect(), vec![]));
    let slices = vec![
        Tensor::of_slice("f16", &[f16::MIN, f16::NAN, f16::MIN_POSITIVE_SUBNORMAL]),
        Tensor::of_slice("bf16", &[bf16::ONE, bf16::NEG_INFINITY]),
        Tensor::of_slice("f32", &[0.1_f32, -0.0, f32::NAN, f32::INFINITY]),
        Tensor::of_slice("f64", &[f64::MAX, f64::MIN_POSITIVE]),
        Tensor::of_slice("i8", &[i8::MIN, -1, i8::MAX]),
        Tensor::of_slice("i16", &[i16::MIN, -1, i16::MAX]),
        Tensor::of_slice("i32", &[i32::MIN, -1, i32::MAX]),
        Tensor::of_slice("i64", &[i64::MIN, -1, i64::MAX]),
        Tensor::of_slice("u8", b"\x00\x7f\xff"),
        Tensor::of_slice("bool", &[true, false, true]),
        Tensor::of_slice("complex64", &[[1.0_f32, -2.0], [f32::NAN, 0.0]]),
        Tensor::of_slice("complex128", &[[1.0_f64, -2.0], [f64::INFINITY, -0.0]]),
    ];
    messages.push(message("typed slices", slices, vec![]));
    messages
}

fn of_shapes() -> Vec<Message> {
    let step = |index: u32| {
        let rows = index as usize % 5;
        Tensor::arbitrary("steps", DType::Float32, &[rows, 3]).at(index)
    };
    let member = |index: u32| u8s("embeds", &[index as usize, 2]).at(index);
    let sizes = [
        28, 32, 33, 34, 64, 255, 256, 4095, 4096, 8191, 8192, 8193, 65_536, 65_537,
    ];
    vec![
        message("rank 64", vec![u8s("deep", &[1; 64])], vec![]),
        message("64 tensors", (0..64).map(step).collect(), vec![]),
        message(
            "list with holes",
            vec![member(1), member(4), member(7)],
            vec![],
        ),
        message(
            "list out of order",
            vec![member(2), member(0), member(5), member(1)],
            vec![],
        ),
        message("list of one", vec![member(0)], vec![]),
        message(
            "list among others",
            vec![member(3), u8s("a", &[3]), member(1), u8s("", &[1])],
            vec![("embeds", 1.into())],
        ),
        message(
            "sizes",
            sizes
                .iter()
                .map(|&size| u8s(&size.to_string(), &[size]))
                .collect(),
            vec![],
        ),
        message(
            "300 tensors",
            (0..300).map(|i| u8s(&format!("f{i}"), &[i])).collect(),
            vec![],
        ),
    ]
}

fn of_names() -> Vec<Message> {
    const NAMES: &[&str] = &[
        "",
        " ",
        "é",
        "潜在",
        "😀",
        "\0",
        "a\0b",
        "q\"q",
        "b\\s",
        "/",
        "\n\r\t\u{8}\u{c}",
        "\x7f",
        "\x1f",
        "\u{2028}",
        "\u{fffd}",
        "\u{ffff}",
        "\u{10ffff}",
        "\\u0061",
        "name with spaces",
    ];
    let tensors = NAMES
        .iter()
        .enumerate()
        .map(|(size, name)| u8s(name, &[size]));
    let scalars = NAMES.iter().map(|&name| (name, Scalar::from(name)));
    let long = "é".repeat(512);
    vec![
        message("names", tensors.collect(), scalars.collect::<Vec<_>>()),
        message("longest name", vec![u8s(&long, &[1])], vec![]),
        message(
            "tensor and scalar of one name",
            vec![u8s("seed", &[8])],
            vec![("seed", 42.into())],
        ),
    ]
}

fn of_scalars() -> Vec<Message> {
    let floats = [
        0.0,
        -0.0,
        5.0,
        1e16,
        1e15,
        1e-4,
        1e-5,
        5e-324,
        f64::MAX,
        f64::MIN_POSITIVE,
        0.1,
        1.0 / 3.0,
        123_456_789.123_456_79,
        1e22,
        9_007_199_254_740_993.0,
    ];
    let list = |items: Vec<Scalar<'static>>| Scalar::List(items.leak());
    let object = |members: Vec<(&'static str, Scalar<'static>)>| Scalar::Object(members.leak());
    let mut deep = object(vec![]);
    for level in 0..60 {
        deep = if level % 2 == 0 {
            list(vec![deep])
        } else {
            object(vec![("k", deep)])
        };
    }
    let integers = vec![
        ("zero", Scalar::from(0)),
        ("i64", list(vec![i64::MIN.into(), i64::MAX.into()])),
        ("u64", u64::MAX.into()),
        ("i128", list(vec![i128::MIN.into(), i128::MAX.into()])),
        ("u128", u128::MAX.into()),
    ];
    // Longer than any integer type.
    let digits: &'static str = format!("-{}", "9876543210".repeat(40)).leak();
    let huge = Value::parse(digits.as_bytes()).unwrap();
    let error = "RuntimeError: \"CUDA out of memory\"\n\tnode é";
    vec![
        message("no tensors", vec![], vec![]),
        message(
            "error reply",
            vec![],
            vec![("request_id", "r1".into()), ("_disagg_error", error.into())],
        ),
        message(
            "odd floats",
            vec![u8s("x", &[1])],
            vec![
                ("nan", f64::NAN.into()),
                ("inf", f64::INFINITY.into()),
                (
                    "list",
                    list(vec![f64::NEG_INFINITY.into(), list(vec![f64::NAN.into()])]),
                ),
                ("f32", 0.1_f32.into()),
            ],
        ),
        message(
            "floats",
            vec![],
            vec![("floats", list(floats.map(Scalar::from).to_vec()))],
        ),
        message("integers", vec![], integers),
        message("integer of 400 digits", vec![], vec![("huge", huge.into())]),
        message(
            "nested",
            vec![u8s("x", &[1])],
            vec![
                ("null", Scalar::Null),
                ("yes", true.into()),
                ("no", false.into()),
                ("none", None::<i64>.into()),
                ("empty", list(vec![object(vec![]), list(vec![]), "".into()])),
                (
                    "mixed",
                    list(vec![
                        1.into(),
                        "1".into(),
                        1.0.into(),
                        object(vec![("é", Scalar::Null)]),
                    ]),
                ),
                ("deep", deep),
            ],
        ),
        message(
            "every character",
            vec![],
            vec![("every", every_character().into())],
        ),
        message(
            "lone surrogates",
            vec![u8s("x", &[1])],
            Sent::text(r#"{"high":"\ud83d","low":"a\ude00b","turned":"\ude00\ud83d","\udc80":1}"#),
        ),
        message(
            "spelled by others",
            vec![u8s("x", &[1])],
            Sent::text("{ \"a\" : [ 150e-1 , -0, 1E400 ] ,\n\"\\u0061b\":\"é\\/\\u00E9\\u007f\"}"),
        )
        .read_as(r#"{"a":[15.0,0,Infinity],"ab":"\u00e9/\u00e9\u007f"}"#),
        message(
            "a key twice",
            vec![],
            vec![("k", 1.into()), ("j", 2.into()), ("k", 3.into())],
        )
        .read_as(r#"{"k":3,"j":2}"#),
    ]
}

/// The first two pages of Unicode, the edges of the surrogates, and the last characters.
fn every_character() -> &'static str {
    let characters = '\0'..='\u{1ff}';
    let edges = [
        '\u{d7ff}',
        '\u{e000}',
        '\u{fffe}',
        '\u{ffff}',
        '\u{10000}',
        '😀',
        '\u{10ffff}',
    ];
    characters.chain(edges).collect::<String>().leak()
}

/// 81 frames of 480 x 832: 97,044,480 bytes.
fn video() -> Message {
    let shape = [1, 3, 81, 480, 832];
    let block: Vec<u8> = (0..65_537_u32).map(|i| (i ^ (i >> 8)) as u8).collect();
    let len = shape.iter().product();
    let bytes: Vec<u8> = block.repeat(len / block.len() + 1)[..len].to_vec();
    let output = Tensor::of_bytes("output", DType::UInt8, &shape, bytes);
    message(
        "video",
        vec![output],
        vec![("request_id", "wan-test-001".into())],
    )
}
