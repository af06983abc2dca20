//! Manifests: as Python writes and reads them, as nobody should write them, and as made up.

#[path = "../common/mod.rs"]
mod common;
mod conflicts;
mod limits;
mod malformed;
#[cfg(all(feature = "alloc", feature = "_differential"))]
mod properties;
mod written;

use common::lines;
use tensorwire::error::{CastError, DecodeError, DecodeErrorKind};
use tensorwire::json::{Object, Value};
use tensorwire::transfer::manifest::{Entry, Field, Manifest, Plan, Storage, encode_into};
use tensorwire::{DType, Descriptor, TensorView};

/// Room for any of the cases here.
type Room = Box<Storage<64>>;

fn room() -> Room {
    Box::default()
}

fn object(text: &str) -> Object<'_> {
    Value::parse(text.as_bytes()).unwrap().as_object().unwrap()
}

fn decode<'f, 's>(
    text: &'f str,
    slot_len: usize,
    storage: &'s mut Room,
) -> Result<Manifest<'f, 's>, DecodeError> {
    Manifest::decode(object(text), slot_len, storage)
}

/// The members of a manifest as numbers and names, read by the JSON reader alone.
#[derive(Debug, Eq, PartialEq)]
struct Part {
    name: String,
    list_index: Option<u32>,
    dtype: DType,
    shape: Vec<usize>,
    offset: usize,
}

fn parts(manifest: Object<'_>) -> Vec<Part> {
    let mut parts = Vec::new();
    for (name, entries) in manifest {
        for entry in entries.as_array().unwrap() {
            let entry = entry.as_object().unwrap();
            let number = |value: Value<'_>| usize::try_from(value.as_u64().unwrap()).unwrap();
            let shape = entry.field("shape").unwrap().as_array().unwrap();
            let dtype = entry.field("dtype").unwrap().as_str().unwrap();
            parts.push(Part {
                name: name.to_string(),
                list_index: entry.get("list_index").map(|index| number(index) as u32),
                dtype: dtype.to_string().parse().unwrap(),
                shape: shape.iter().map(number).collect(),
                offset: number(entry.field("offset").unwrap()),
            });
        }
    }
    parts
}

impl Part {
    fn entry(&self) -> Entry<'_> {
        let shape = self.shape.as_slice();
        let descriptor = Descriptor::new(self.name.as_str(), self.dtype, shape).unwrap();
        let descriptor = match self.list_index {
            Some(index) => descriptor.with_list_index(index),
            None => descriptor,
        };
        Entry::new(descriptor, self.offset).unwrap()
    }

    fn of(entry: Entry<'_>) -> Self {
        let descriptor = entry.descriptor();
        Self {
            name: descriptor.name().to_string(),
            list_index: descriptor.list_index(),
            dtype: descriptor.dtype(),
            shape: descriptor.shape().dims().collect(),
            offset: entry.offset(),
        }
    }
}

#[test]
fn every_recorded_manifest_is_read_and_written_as_python_wrote_it() {
    let (mut storage, mut buffer) = (room(), [0xa5; 4096]);
    let mut count = 0;
    for line in lines("transfer.jsonl") {
        let frames = common::frames(&line);
        let payload = Value::parse(&frames[1]).unwrap().as_object().unwrap();
        let Some(manifest) = payload.get("manifest") else {
            continue;
        };
        let manifest = manifest.as_object().unwrap();
        let text = manifest.as_value().raw();
        let parts = parts(manifest);
        let decoded = Manifest::decode(manifest, 1 << 16, &mut storage).unwrap();
        assert!(
            decoded
                .entries()
                .map(Part::of)
                .eq(parts.iter().map(|part| Part::of(part.entry())))
        );
        // By its parts, and as it was read.
        let entries: Vec<_> = parts.iter().map(Part::entry).collect();
        assert_eq!(encode_into(&entries, &mut buffer).unwrap(), text.as_bytes());
        assert_eq!(
            encode_into(decoded.entries(), &mut buffer).unwrap(),
            text.as_bytes()
        );
        // One byte less than the last tensor needs, and one too few or many to attach.
        let used = decoded.used_len();
        let slot = vec![0; 1 << 16];
        assert!(decoded.attach(&slot[1..]).is_err());
        assert_eq!(decoded.attach(&slot).unwrap().len(), parts.len());
        if used > 0 {
            let short = Manifest::decode(manifest, used - 1, &mut storage);
            let kind = short.unwrap_err().kind();
            assert!(matches!(kind, DecodeErrorKind::OutOfSlot { .. }));
            assert!(Manifest::decode(manifest, used, &mut storage).is_ok());
        }
        count += 1;
    }
    assert_eq!(count, 121);
}

/// What `transport/buffer.py` of sglang 0.5.23 wrote of these tensors, and what it read again.
#[test]
fn tensors_are_laid_out_where_python_puts_them() {
    let (mut storage, mut buffer) = (room(), [0xa5; 4096]);
    let (mut tensors_seen, mut holes) = (0, 0);
    for line in lines("manifests.jsonl") {
        let text = line["manifest"].as_str().unwrap();
        let sent: Vec<_> = line["tensors"]
            .as_array()
            .unwrap()
            .iter()
            .map(Sent::new)
            .collect();
        let views: Vec<_> = sent.iter().map(Sent::view).collect();
        let plan = Plan::new(&views).unwrap();
        assert_eq!(plan.encode_into(&mut buffer).unwrap(), text.as_bytes());
        assert_eq!(plan.encoded_len(), text.len());
        assert_eq!(plan.slot_len() as u64, line["used"].as_u64().unwrap());

        let mut slot = vec![0xa5; plan.slot_len() + 1];
        plan.store(&mut slot).unwrap();
        assert_eq!(slot.pop(), Some(0xa5));
        let manifest = decode(text, slot.len(), &mut storage).unwrap();
        let tensors = manifest.attach(&slot).unwrap();
        for (tensor, sent) in tensors.tensors().zip(&sent) {
            assert_eq!(tensor.bytes(), sent.bytes);
            assert_eq!(tensor.shape(), *sent.shape);
        }
        let read = line["read"].as_object().unwrap();
        assert_eq!(tensors.fields().count(), read.len());
        for (name, field) in tensors.fields() {
            let shape =
                |tensor: TensorView<'_>| serde_json::json!(tensor.dims().collect::<Vec<_>>());
            let here = match field {
                Field::Tensor(tensor) => shape(tensor),
                Field::List(list) => list.iter().map(|member| member.map(shape)).collect(),
                _ => panic!("a field of a new kind"),
            };
            holes += here
                .as_array()
                .unwrap()
                .iter()
                .filter(|x| x.is_null())
                .count();
            assert_eq!(here, read[&name.to_string()], "{name}");
        }
        tensors_seen += sent.len();
    }
    assert_eq!((tensors_seen, holes > 10), (155, true));
}

/// A tensor that was recorded.
struct Sent {
    name: String,
    list_index: Option<u32>,
    dtype: DType,
    shape: Vec<usize>,
    bytes: Vec<u8>,
}

impl Sent {
    fn new(tensor: &serde_json::Value) -> Self {
        let shape = tensor["shape"].as_array().unwrap().iter();
        Self {
            name: tensor["name"].as_str().unwrap().to_string(),
            list_index: tensor["list_index"].as_u64().map(|index| index as u32),
            dtype: tensor["dtype"].as_str().unwrap().parse().unwrap(),
            shape: shape.map(|dim| dim.as_u64().unwrap() as usize).collect(),
            bytes: common::hex(tensor["bytes_hex"].as_str().unwrap()),
        }
    }

    fn view(&self) -> TensorView<'_> {
        let shape = self.shape.as_slice();
        let view = TensorView::from_bytes(self.name.as_str(), self.dtype, shape, &self.bytes);
        match (view.unwrap(), self.list_index) {
            (view, Some(index)) => view.with_list_index(index),
            (view, None) => view,
        }
    }
}

/// Name, list index and offset.
type Place = (&'static str, Option<u32>, usize);

/// (text, what is read from it)
const READ: &[(&str, &[Place])] = &[
    ("{}", &[]),
    (r#"{"x":[]}"#, &[]),
    (r#" { "x" : [ ] , "y" : [ ] } "#, &[]),
    // Twice absent is absent.
    (r#"{"x":[],"x":[]}"#, &[]),
    (
        r#"{"x":[{"dtype":"uint8","shape":[2],"offset":7}]}"#,
        &[("x", None, 7)],
    ),
    // Keys by escapes, unknown keys with whatever in them.
    (
        r#"{"\u0078":[{"\u006fffset":7,"new":{"offset":[9,"\ud800"]},"shape":[2],"dtype":"uin\u00748"}]}"#,
        &[("x", None, 7)],
    ),
    // A list in any order, with holes, and gaps between all.
    (
        r#"{"l":[{"offset":20,"shape":[1],"dtype":"bool","list_index":4},
                  {"offset":3,"shape":[2],"dtype":"int8","list_index":0}],
            "m":[{"list_index":1,"offset":9,"shape":[],"dtype":"int16"}]}"#,
        &[("l", Some(4), 20), ("l", Some(0), 3), ("m", Some(1), 9)],
    ),
    // Without bytes, tensors share places, and the end of the slot is one.
    (
        r#"{"a":[{"offset":64,"shape":[0],"dtype":"float64"}],
            "b":[{"offset":64,"shape":[3,0,2],"dtype":"float64"}],
            "c":[{"offset":0,"shape":[8],"dtype":"float64"}],
            "d":[{"offset":4,"shape":[0],"dtype":"float64"}]}"#,
        &[
            ("a", None, 64),
            ("b", None, 64),
            ("c", None, 0),
            ("d", None, 4),
        ],
    ),
    // Side by side, the first last.
    (
        r#"{"a":[{"offset":32,"shape":[4],"dtype":"float64"}],"b":[{"offset":0,"shape":[4],"dtype":"float64"}]}"#,
        &[("a", None, 32), ("b", None, 0)],
    ),
];

#[test]
fn entries_are_read_in_any_order_and_spelling() {
    let mut storage = room();
    for &(text, expected) in READ {
        let manifest =
            decode(text, 64, &mut storage).unwrap_or_else(|error| panic!("{error} in {text}"));
        let read: Vec<_> = manifest.entries().map(Part::of).collect();
        let read: Vec<_> = read
            .iter()
            .map(|part| (part.name.as_str(), part.list_index, part.offset))
            .collect();
        assert_eq!(read, expected, "{text}");
        assert_eq!(
            manifest.attach(&[0; 64]).unwrap().tensors().count(),
            expected.len()
        );
    }
}

#[test]
fn views_lie_in_the_slot_wherever_it_starts() {
    let text = r#"{"odd":[{"offset":9,"shape":[2],"dtype":"float32"}],
        "latents":[{"offset":24,"shape":[2,2],"dtype":"float32"}],
        "mask":[{"offset":40,"shape":[3],"dtype":"bool","list_index":1}]}"#;
    let mut storage = room();
    let manifest = decode(text, 64, &mut storage).unwrap();
    let buffer = [0_u8; 96];
    let to_aligned = buffer.as_ptr().addr().wrapping_neg() % 16;
    for shift in 0..16 {
        let mut buffer = buffer;
        let slot = &mut buffer[to_aligned + shift..][..64];
        for (at, value) in [
            (9, 1.5_f32),
            (13, 2.5),
            (24, 1.0),
            (28, 2.0),
            (32, 3.0),
            (36, 4.0),
        ] {
            slot[at..at + 4].copy_from_slice(&value.to_le_bytes());
        }
        slot[41] = 1;
        let slot = &*slot;
        let tensors = manifest.attach(slot).unwrap();
        let latents = tensors.tensor("latents").unwrap();
        let odd = tensors.tensor("odd").unwrap();
        assert_eq!(latents.bytes().as_ptr(), slot[24..].as_ptr());
        assert_eq!(odd.bytes().as_ptr(), slot[9..].as_ptr());
        assert!(latents.elements::<f32>().unwrap().eq([1.0, 2.0, 3.0, 4.0]));
        assert!(odd.elements::<f32>().unwrap().eq([1.5, 2.5]));
        for tensor in [latents, odd] {
            match tensor.as_slice::<f32>() {
                Ok(floats) => {
                    assert!(floats.len() == tensor.element_count() && tensor.is_aligned())
                }
                Err(error) => {
                    assert!(matches!(error, CastError::Misaligned { required: 4, .. }));
                    assert!(!tensor.is_aligned());
                }
            }
        }
        let address = slot.as_ptr().addr();
        assert_eq!(
            latents.as_slice::<f32>().is_ok(),
            (address + 24).is_multiple_of(4)
        );
        let list = tensors.list("mask").unwrap();
        assert_eq!(
            (list.len(), list.position(1), list.position(0)),
            (2, Some(2), None)
        );
        assert_eq!(
            list.get(1).unwrap().as_slice::<bool>(),
            Ok(&[false, true, false][..])
        );
        assert_eq!(manifest.entry(2).unwrap().offset(), 40);
    }
}

#[test]
fn what_is_read_outlives_the_storage_that_it_was_read_with() {
    let text = r#"{"x":[{"offset":1,"shape":[2],"dtype":"uint8"}]}"#;
    let slot = [7, 8, 9];
    let tensor = {
        let mut storage = Storage::<1>::new();
        let manifest = Manifest::decode(object(text), 3, &mut storage).unwrap();
        manifest.attach(&slot).unwrap().tensor("x").unwrap()
    };
    assert_eq!(tensor.bytes(), [8, 9]);
}
