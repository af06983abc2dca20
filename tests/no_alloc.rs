//! Nothing is allocated, and nothing freed, between a frame and the elements in it.

mod common;
#[path = "no_alloc/control.rs"]
mod control;
#[path = "common/counting.rs"]
mod counting;

use std::fmt::Write as _;

use tensorwire::bundle::{self, Bundle, Index};
use tensorwire::error::{CastError, DecodeError, DecodeErrorKind, EncodeError, ValueErrorKind};
use tensorwire::json::Value;
use tensorwire::message::{
    Message, MessageKind, Options, Scalar, Storage, classify, encode_into, encoded_len,
};
use tensorwire::transfer::manifest::{self, Entry, Manifest, Plan};
use tensorwire::{Descriptor, TensorView};

#[cfg(feature = "alloc")]
use counting::calls;
use counting::none;

/// A message of this many descriptors: plain, members of lists in any order, escaped names.
fn message(descriptors: usize) -> Vec<Vec<u8>> {
    let mut metadata = String::from(r#"{"tensor_descriptors":["#);
    let mut frames = vec![Vec::new()];
    for index in 0..descriptors {
        // Descending, so that they must be sorted.
        let name = descriptors - index;
        let (name, list_index) = match index % 4 {
            0 => (format!("plain{name}"), -1),
            1 => ("list".to_string(), name as i64),
            2 => (format!(r"caf\u00e9 {name}"), -1),
            _ => (r"l\u0069st".to_string(), name as i64),
        };
        let comma = if index == 0 { "" } else { "," };
        let _ = write!(
            metadata,
            r#"{comma}{{"field_name":"{name}","shape":[2,3],"dtype":"float32","list_index":{list_index}}}"#
        );
        frames.push((0..24).collect());
    }
    metadata += r#"],"scalar_fields":{"request_id":"caf\u00e9","seed":42,"scale":7.5,"deep":{"list":[1,{"yes":true}],"none":null},"nan":NaN,"lone":"\ud800"}}"#;
    frames[0] = metadata.into_bytes();
    frames
}

const COUNTS: [usize; 5] = [0, 1, 4, 16, 64];

#[test]
fn decoding_into_storage_does_not_allocate() {
    let mut storage = Box::new(Storage::<64>::new());
    for count in COUNTS {
        let frames = message(count);
        let message = none(|| Message::decode(&frames, &mut *storage)).unwrap();
        assert_eq!(message.len(), count);
    }
}

#[test]
fn no_recorded_message_makes_the_decoder_allocate() {
    let mut storage = Box::new(Storage::<300>::new());
    for file in ["tensors.jsonl", "hostile.jsonl"] {
        for line in common::lines(file) {
            let frames = match file {
                "hostile.jsonl" => common::hostile::message(&line),
                _ => common::frames(&line),
            };
            let kind = none(|| classify(&frames));
            let message = none(|| Message::decode(&frames, &mut *storage));
            assert!(message.is_err() || kind == MessageKind::Tensors);
        }
    }
}

#[test]
fn decoding_in_two_phases_does_not_allocate() {
    let mut storage = Box::new(Storage::<64>::new());
    let options = Options::new().with_strict_json(false);
    for count in COUNTS {
        let frames = message(count);
        none(|| {
            let metadata = options.decode_metadata(&frames[0], &mut storage).unwrap();
            let sum: usize = metadata.descriptors().map(|x| x.byte_len()).sum();
            assert_eq!((metadata.len(), sum), (count, metadata.tensor_bytes()));
            for index in 0..count {
                let descriptor = metadata.descriptor(index).unwrap();
                if let Some(name) = descriptor.name().as_plain()
                    && descriptor.list_index().is_none()
                {
                    assert_eq!(metadata.position(name), Some(index));
                }
            }
            let message = metadata.attach(&frames[1..]).unwrap();
            assert_eq!(message.cost().payload_bytes(), 24 * count);
        });
    }
}

#[test]
fn reading_tensors_does_not_allocate() {
    let frames = message(16);
    let mut storage = Storage::<16>::new();
    let message = Message::decode(&frames, &mut storage).unwrap();
    let mut room = [0.0_f32; 6];
    none(|| {
        assert_eq!((message.tensors().count(), message.is_empty()), (16, false));
        let _ = message.cost();
        for tensor in message.tensors() {
            let _ = tensor.as_slice::<f32>();
            assert!(tensor.as_slice::<u8>().is_err());
            assert_eq!(tensor.elements::<f32>().unwrap().count(), 6);
            tensor.copy_to_slice(&mut room).unwrap();
            assert_eq!(tensor.as_slice_or_copy(&mut room).unwrap().len(), 6);
            assert_eq!((tensor.rank(), tensor.dims().sum::<usize>()), (2, 5));
            assert_eq!(tensor.shape().to_array::<2>(), Ok([2, 3]));
            assert!(tensor.shape().to_array::<3>().is_err());
            assert_eq!(tensor.shape().copy_to(&mut [0; 4]), Ok(&[2, 3][..]));
            let row = tensor.index(1).unwrap();
            assert_eq!(row.bytes(), &tensor.bytes()[12..]);
            assert_eq!(tensor.flatten().shape().to_array::<1>(), Ok([6]));
            assert_eq!(tensor.shape(), tensor.shape());
            let _ = (tensor.alignment(), tensor.is_aligned());
        }
        assert!(message.tensor("plain16").is_some() && message.tensor("plain").is_none());
        assert!(message.tensor("café 14").is_some() && message.field("café 14").is_some());
        assert!(message.list("plain16").is_none());

        let list = message.list("list").unwrap();
        assert_eq!(
            (list.len(), list.present_len(), list.is_empty()),
            (16, 8, false)
        );
        assert_eq!(list.iter().flatten().count(), 8);
        assert!(list.get(15).is_some() && list.get(0).is_none() && list.get(16).is_none());
        assert!(list.present().map(|(index, _)| index).is_sorted());
    });
}

#[test]
fn reading_scalars_does_not_allocate() {
    let frames = message(1);
    let mut storage = Storage::<1>::new();
    let message = Message::decode(&frames, &mut storage).unwrap();
    let mut buffer = [0; 16];
    none(|| {
        let scalars = message.scalars();
        assert_eq!(scalars.field("seed").unwrap().as_i64(), Ok(42));
        assert_eq!(scalars.field("seed").unwrap().as_u128(), Ok(42));
        assert_eq!(scalars.field("scale").unwrap().as_f64(), Ok(7.5));
        assert!(scalars.field("nan").unwrap().as_f64().unwrap().is_nan());
        let deep = scalars.field("deep").unwrap().as_object().unwrap();
        let list = deep.field("list").unwrap().as_array().unwrap();
        let inner = list.get(1).unwrap().as_object().unwrap();
        assert_eq!(inner.field("yes").unwrap().as_bool(), Ok(true));
        assert!(deep.field("none").unwrap().is_null());
        assert_eq!((list.iter().count(), scalars.iter().count()), (2, 6));

        let id = scalars.field("request_id").unwrap().as_str().unwrap();
        assert!(id == "café" && id != "cafe" && id.as_plain().is_none());
        assert_eq!(
            (id.decoded_len(), id.copy_to(&mut buffer)),
            (Ok(5), Ok("café"))
        );
        assert_eq!(id.code_points().count(), 4);

        let kind = |error: tensorwire::error::ValueError| error.kind();
        assert_eq!(
            scalars.field("x").map_err(kind).err(),
            Some(ValueErrorKind::Missing)
        );
        let lone = scalars.field("lone").unwrap().as_str().unwrap();
        let copied = lone.copy_to(&mut buffer);
        assert_eq!(copied.map_err(kind), Err(ValueErrorKind::LoneSurrogate));
        assert!(Value::parse(scalars.as_value().raw().as_bytes()).is_ok());
    });
}

#[test]
fn encoding_into_a_buffer_does_not_allocate() {
    let mut storage = Box::new(Storage::<64>::new());
    let mut buffer = [0; 1 << 14];
    for count in COUNTS {
        let frames = message(count);
        let message = Message::decode(&frames, &mut *storage).unwrap();
        let views: Vec<TensorView<'_>> = message.tensors().collect();
        none(|| {
            let scalars = message.scalars();
            let length = encoded_len(&views, &scalars).unwrap();
            let metadata = encode_into(&views, &scalars, &mut buffer).unwrap();
            assert_eq!(metadata.len(), length);
            let error = encode_into(&views, &scalars, &mut []).err();
            let (needed, capacity) = (length, 0);
            assert_eq!(
                error,
                Some(EncodeError::BufferTooSmall { needed, capacity })
            );
        });
    }
    let floats = [1.0_f32; 6];
    none(|| {
        let view = TensorView::from_slice("x", &[2, 3], &floats).unwrap();
        let other = Descriptor::new("é", view.dtype(), &[1])
            .unwrap()
            .with_list_index(3);
        let nested = [("a", Scalar::from(i64::MIN)), ("b", Scalar::Null)];
        let list = [
            Scalar::from(1e300),
            Scalar::from("\u{1f600}\n"),
            Scalar::from(u128::MAX),
        ];
        let scalars = [
            ("list", Scalar::List(&list)),
            ("object", Scalar::Object(&nested)),
            ("bool", Scalar::from(true)),
        ];
        let tensors = [view.descriptor(), other];
        assert!(encode_into(&tensors, &scalars, &mut buffer).is_ok());
    });
}

#[test]
fn bundles_do_not_allocate() {
    let mut storage = Storage::<64>::new();
    let mut buffer = [0xa5; 1 << 14];
    for count in COUNTS {
        let frames = message(count);
        none(|| {
            let lengths = frames.iter().map(Vec::len);
            let length = bundle::encoded_len(lengths.clone()).unwrap();
            for (place, frame) in bundle::lend(lengths, &mut buffer).unwrap().zip(&frames) {
                place.copy_from_slice(frame);
            }
            let bytes = bundle::encode_into(&frames, &mut buffer).unwrap();
            assert_eq!(bytes.len(), length);
            let bundle = Bundle::decode(bytes).unwrap();
            assert!(bundle.frames().eq(&frames));
            assert_eq!(bundle.index().ranges().len(), count + 1);
            let mut room = [&[][..]; 65];
            let read = bundle.frames_in(&mut room).unwrap();
            let message = Message::decode(read, &mut storage).unwrap();
            assert_eq!(message.len(), count);
            let copy: [u8; 2048] = *bytes.first_chunk().unwrap_or(&[0; 2048]);
            let index = Index::len_from_header(&copy, length)
                .and_then(|prefix| Index::decode(&copy[..prefix], length));
            assert!(index.is_ok() || length < copy.len());

            bytes[0] = b'X';
            assert!(show(Bundle::decode(bytes).unwrap_err()) > 0);
            let small = bundle::encode_into(&frames, &mut buffer[..length - 1]);
            assert!(show(small.unwrap_err()) > 0);
        });
    }
}

/// A manifest of this many tensors of 24 bytes: plain, members of one list with holes, escaped
/// names; in descending order of offsets, so that they must be sorted.
fn manifest_of(tensors: usize) -> String {
    let mut fields = String::from("{");
    let mut list = String::from(r#""l\u0069st":["#);
    for index in 0..tensors {
        let offset = 32 * (tensors - index);
        let entry = format!(r#"{{"offset":{offset},"shape":[2,3],"dtype":"float32""#);
        let _ = match index % 3 {
            0 => write!(fields, r#""plain{index}":[{entry}}}],"#),
            1 => write!(fields, r#""caf\u00e9 {index}":[{entry}}}],"#),
            _ => write!(list, r#"{entry},"list_index":{index}}},"#),
        };
    }
    format!("{fields}{}]}}", list.trim_end_matches(','))
}

#[test]
fn reading_a_manifest_does_not_allocate() {
    let mut storage = Box::new(manifest::Storage::<64>::new());
    let slot = [0; 32 * 65];
    for count in COUNTS {
        let text = manifest_of(count);
        let object = Value::parse(text.as_bytes()).unwrap().as_object().unwrap();
        none(|| {
            let manifest = Manifest::decode(object, slot.len(), &mut storage);
            let manifest = manifest.unwrap();
            let sum: usize = manifest.entries().map(|entry| entry.range().len()).sum();
            assert_eq!((manifest.len(), sum), (count, manifest.tensor_bytes()));
            assert_eq!(
                manifest.used_len(),
                if count == 0 { 0 } else { 32 * count + 24 }
            );
            let tensors = manifest.attach(&slot).unwrap();
            assert_eq!((tensors.len(), tensors.tensors().count()), (count, count));
            for tensor in tensors.tensors() {
                assert_eq!(tensor.elements::<f32>().unwrap().sum::<f32>(), 0.0);
            }
            assert_eq!(tensors.tensor("plain0").is_some(), count > 0);
            assert_eq!(tensors.tensor("café 1").is_some(), count > 1);
            if let Some(list) = tensors.list("list") {
                assert_eq!(list.iter().flatten().count(), list.present_len());
                assert!(list.get(2).is_some() && list.get(0).is_none());
                assert!(list.present().map(|(index, _)| index).is_sorted());
                assert!(
                    list.position(2)
                        .is_some_and(|index| manifest.entry(index).is_some())
                );
            }
            let fields = tensors.fields().count();
            assert_eq!(fields, count - (count / 3).saturating_sub(1));
            let error = manifest.attach(&slot[1..]).unwrap_err();
            assert!(show(error) > 0);
        });
    }
}

#[test]
fn refusing_a_manifest_does_not_allocate() {
    let mut storage = Box::new(manifest::Storage::<64>::new());
    let text = manifest_of(64);
    for (from, to) in [
        (r#""offset":2048"#, r#""offset":2025"#),
        (r#""offset":2048"#, r#""offset":18446744073709551615"#),
        ("plain0", r"plain\u0033"),
        (r#""list_index":5"#, r#""list_index":2"#),
        (r#","list_index":5"#, ""),
        ("{\"plain0\"", r#"{"plain3":[],"plain0""#),
    ] {
        let text = text.replacen(from, to, 1);
        let object = Value::parse(text.as_bytes()).unwrap().as_object().unwrap();
        let error = none(|| {
            let result = Manifest::decode(object, 2081, &mut storage);
            let error = result.unwrap_err();
            assert!(show(error) > 0);
            error
        });
        assert!(error.offset() < text.len(), "{error}");
    }
}

#[test]
fn laying_tensors_out_does_not_allocate() {
    let mut storage = Box::new(manifest::Storage::<64>::new());
    let mut buffer = [0; 1 << 13];
    let mut stored = vec![0; 512 * 64];
    let slot = [0x5a; 32 * 65];
    for count in COUNTS {
        let text = manifest_of(count);
        let object = Value::parse(text.as_bytes()).unwrap().as_object().unwrap();
        let manifest = Manifest::decode(object, slot.len(), &mut storage);
        let tensors = manifest.unwrap().attach(&slot).unwrap();
        let views: Vec<TensorView<'_>> = tensors.tensors().collect();
        let entries: Vec<Entry<'_>> = tensors.manifest().entries().collect();
        none(|| {
            let plan = Plan::new(&views).unwrap();
            assert_eq!(plan.entries().count(), count);
            plan.store(&mut stored[..plan.slot_len()]).unwrap();
            assert_eq!(plan.store(&mut []).is_err(), count > 0);
            let length = plan.encoded_len();
            assert_eq!(plan.encode_into(&mut buffer).unwrap().len(), length);
            assert!(show(plan.encode_into(&mut []).unwrap_err()) > 0);
            let length = manifest::encoded_len(&entries).unwrap();
            let written = manifest::encode_into(&entries, &mut buffer).unwrap();
            assert_eq!(written.len(), length);
            let twice = entries.iter().chain(entries.first());
            assert_eq!(manifest::encoded_len(twice).is_err(), count > 0);
        });
    }
}

#[cfg(feature = "serde")]
#[test]
fn the_callers_own_structs_do_not_allocate() {
    use serde::{Deserialize, Serialize};
    use tensorwire::json::Object;
    use tensorwire::message::{NO_TENSORS, Serialized};

    #[derive(Debug, Deserialize, Eq, PartialEq, Serialize)]
    enum Mode {
        Off,
        Range(u8, i8),
    }
    #[derive(Debug, Deserialize, Serialize)]
    struct Request<'a> {
        request_id: &'a str,
        seed: u128,
        scale: Option<f64>,
        size: (u16, u16),
        modes: [Mode; 2],
        #[serde(borrow)]
        extra: Value<'a>,
        deep: Object<'a>,
        #[serde(default)]
        absent: f32,
    }
    let text = r#"{"request_id":"r1","se\u0065d":42,"scale":null,"x":[{"y":"\ud800"}],
        "size":[480,832],"modes":["\u004fff",{"Range":[1,-1]}],"\ud800":{},
        "extra":[NaN, "\ud800"],"deep":{"a":1e2}}"#;
    let value = Value::parse(text.as_bytes()).unwrap();
    let request: Request<'_> = none(|| value.deserialize()).unwrap();
    assert_eq!((request.seed, request.size), (42, (480, 832)));
    assert_eq!(request.modes, [Mode::Off, Mode::Range(1, -1)]);

    let mut buffer = [0; 512];
    none(|| {
        let scalars = Serialized(&request);
        let length = encoded_len(NO_TENSORS, &scalars).unwrap();
        let metadata = encode_into(NO_TENSORS, &scalars, &mut buffer).unwrap();
        assert_eq!(metadata.len(), length);
        assert!(metadata.ends_with(br#"NaN, "\ud800"],"deep":{"a":1e2},"absent":0.0}}"#));
        assert!(encode_into(NO_TENSORS, &scalars, &mut [0; 64]).is_err());

        // Nor to fail, and say why.
        let error = value.deserialize::<[Mode; 2]>().unwrap_err();
        assert!(show(error) > 0 && show(error.kind()) > 0);
        let error = value.as_object().unwrap().field("modes").unwrap();
        let error = error.deserialize::<(Mode, u8)>().unwrap_err();
        assert!(show(error) > 0);
        assert!(encoded_len(NO_TENSORS, &Serialized(request.modes.as_slice())).is_err());
    });
}

/// Text in a buffer on the stack.
struct Text {
    bytes: [u8; 128],
    length: usize,
}

impl std::fmt::Write for Text {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        let end = self.length + text.len();
        let room = self
            .bytes
            .get_mut(self.length..end)
            .ok_or(std::fmt::Error)?;
        room.copy_from_slice(text.as_bytes());
        self.length = end;
        Ok(())
    }
}

fn show(error: impl std::fmt::Display) -> usize {
    let (bytes, length) = ([0; 128], 0);
    let mut text = Text { bytes, length };
    write!(text, "{error}").unwrap();
    text.length
}

#[test]
fn failing_and_saying_why_does_not_allocate() {
    let mut storage = Storage::<2>::new();
    let faults: &[&[&[u8]]] = &[
        &[],
        &[b"__transfer__", b"{}"],
        &[b"\xff"],
        &[b"{"],
        &[b"{} x"],
        &[br#"{"tensor_descriptors":[{"field_name":"\ud800","shape":[1],"dtype":"int8"}]}"#],
        &[br#"{"tensor_descriptors":[{"field_name":"x","shape":[1e3],"dtype":"int8"}]}"#],
        &[br#"{"tensor_descriptors":[{"field_name":"x","shape":[3],"dtype":"int8"}]}"#, b""],
        &[br#"{"tensor_descriptors":[{"field_name":"x","shape":[],"dtype":"int8"},{"field_name":"x","shape":[],"dtype":"int8"}]}"#],
        &[br#"{"tensor_descriptors":[{"field_name":"x","shape":[],"dtype":"int8"},{"field_name":"y","shape":[],"dtype":"int8"},{}]}"#],
        &[br#"{"tensor_descriptors":[],"scalar_fields":{"a":tru}}"#],
    ];
    let mut kinds = Vec::with_capacity(faults.len());
    for frames in faults {
        none(|| {
            let error: DecodeError = Message::decode(frames, &mut storage).err().unwrap();
            assert!(show(error) > 0 && show(error.kind()) > 0);
            kinds.push(error.kind());
        });
    }
    assert!(kinds.contains(&DecodeErrorKind::StorageFull { capacity: 2 }));
    none(|| {
        let index = 1;
        assert!(show(CastError::InvalidBool { index, byte: 9 }) > 0);
        assert!(show(EncodeError::DuplicateField { index }) > 0);
        let value = Value::parse(b"\"\\ud800\x7f\"").unwrap();
        assert!(show(value.as_i64().unwrap_err()) > 0);
        assert!(show(value.as_str().unwrap()) > 0);
    });
}

#[cfg(feature = "alloc")]
#[test]
fn a_warm_decoder_does_not_allocate() {
    let mut decoder = tensorwire::Decoder::new();
    // The first message, and each that is larger than all before it, may.
    let frames = message(64);
    let (cold, _) = calls(|| decoder.decode(&frames).map(|message| message.len()));
    assert!(cold > 0);
    for count in [64, 0, 16, 1, 63, 4, 64] {
        let frames = message(count);
        let length = none(|| decoder.decode(&frames).map(|message| message.len()));
        assert_eq!(length, Ok(count));
        let length = none(|| {
            decoder
                .decode_metadata(&frames[0])
                .map(|metadata| metadata.len())
        });
        assert_eq!(length, Ok(count));
        let short = none(|| decoder.decode(&frames[..count]).err());
        assert!(short.is_some());
    }
    for line in common::lines("hostile.jsonl") {
        let frames = common::hostile::message(&line);
        let _ = none(|| decoder.decode(&frames).map(|message| message.len()));
    }
}

/// The stack of a small thread. What lies on it is the storage and a few
/// frames, whatever is sent.
const STACK: usize = 32 * 1024;

fn on_a_small_stack(work: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().stack_size(STACK);
    thread.spawn(work).unwrap().join().unwrap();
}

#[test]
fn a_stack_of_32_kib_is_enough() {
    let deep = |text: &str, tail: &str| {
        let head = r#"{"tensor_descriptors":[],"scalar_fields":{"a":"#;
        vec![format!("{head}{}{tail}", text.repeat(100_000)).into_bytes()]
    };
    let hostile = [
        deep("[", ""),
        deep(r#"{"a":"#, ""),
        deep("[[],", ""),
        deep(r#"[{"a":"#, ""),
        vec![r#"{"a":"#.repeat(100_000).into_bytes()],
    ];
    let nested = "[".repeat(126) + &"]".repeat(126);
    let deepest = deep("", &format!("{nested}}}}}"));
    let frames = message(16);
    on_a_small_stack(move || {
        let mut storage = Storage::<16>::new();
        for frames in &hostile {
            let error = Message::decode(frames, &mut storage).err().unwrap();
            let limit = 128;
            assert_eq!(error.kind(), DecodeErrorKind::DepthLimit { limit });
        }
        // As deep as is allowed, walked to the bottom.
        let message = Message::decode(&deepest, &mut storage).unwrap();
        let mut value = message.scalars().field("a").unwrap();
        let mut levels = 1;
        while let Some(inner) = value.as_array().unwrap().get(0) {
            value = inner;
            levels += 1;
        }
        assert_eq!(levels, 126);

        let message = Message::decode(&frames, &mut storage).unwrap();
        let mut room = [0.0_f32; 6];
        for tensor in message.tensors() {
            tensor.as_slice_or_copy::<f32>(&mut room).unwrap();
        }
        assert_eq!(message.list("list").unwrap().present_len(), 8);
        assert_eq!(message.scalars().field("seed").unwrap().as_i64(), Ok(42));
        let tensor = [message.get(0).unwrap()];
        let mut buffer = [0; 1024];
        assert!(encode_into(&tensor, &message.scalars(), &mut buffer).is_ok());
    });
}
