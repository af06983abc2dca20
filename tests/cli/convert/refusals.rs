//! What another format cannot hold.

use std::fs;
use std::time::{Duration, Instant};

use tensorwire::interop::safetensors;
use tensorwire::message::{NO_SCALARS, encode_to_vec};
use tensorwire::{DType, TensorView};

use super::{converted, others, refused};
use crate::support::{folder, write_bundle};

#[test]
fn what_the_other_format_lacks_is_refused_by_name_with_a_way_out() {
    let one = |name: &str, dtype: DType, index: Option<u32>| {
        let bytes = vec![0; dtype.size()];
        let tensor = TensorView::from_bytes(name, dtype, &[1], &bytes).unwrap();
        let tensor = index.map_or(tensor, |index| tensor.with_list_index(index));
        let metadata = encode_to_vec([tensor], &NO_SCALARS).unwrap();
        vec![metadata, bytes]
    };
    let two = {
        let tensors = [
            TensorView::from_slice("skip.2", &[1], &[1_u8]).unwrap(),
            TensorView::from_slice("skip", &[1], &[1_u8])
                .unwrap()
                .with_list_index(0),
        ];
        vec![
            encode_to_vec(&tensors, &NO_SCALARS).unwrap(),
            vec![1],
            vec![1],
        ]
    };
    let member = |name: &str| {
        let scalars = tensorwire::json::Value::parse(br#"{"seed":1}"#).unwrap();
        let tensors = [
            TensorView::from_slice(name, &[1], &[1_u8]).unwrap(),
            TensorView::from_slice("a", &[1], &[1_u8]).unwrap(),
        ];
        let metadata = encode_to_vec(&tensors, &scalars).unwrap();
        vec![metadata, vec![1], vec![1]]
    };
    let deep = {
        let shape = [1; 64];
        let tensor = TensorView::from_slice("deep", &shape, &[1_u8]).unwrap();
        vec![encode_to_vec([tensor], &NO_SCALARS).unwrap(), vec![1]]
    };
    let (floats, bytes) = (DType::BFloat16, DType::UInt8);
    let cases = [
        (
            one("latents", floats, None),
            "npz",
            Some(("tensor \"latents\" is bfloat16", "convert to .safetensors")),
        ),
        (
            one("f", DType::Float8E5M2, Some(3)),
            "npz",
            Some(("tensor \"f\"[3] is float8_e5m2", "convert to .safetensors")),
        ),
        (
            one("z", DType::Complex128, None),
            "safetensors",
            Some(("tensor \"z\" is complex128", "convert to .npz")),
        ),
        (
            one("a\0b", bytes, None),
            "npz",
            Some(("tensor \"a\\u{0}b\" has a NUL", "rename it")),
        ),
        (one("a\0b", bytes, None), "safetensors", None),
        (
            one("__metadata__", bytes, None),
            "safetensors",
            Some(("tensor \"__metadata__\" ", "rename it")),
        ),
        (
            one("tensorwire.lists", bytes, None),
            "npz",
            Some(("tensor \"tensorwire.lists\" ", "rename it")),
        ),
        (
            two.clone(),
            "npz",
            Some(("tensor \"skip.2\" ", "rename it")),
        ),
        (
            two,
            "safetensors",
            Some(("tensor \"skip.2\" ", "rename it")),
        ),
        (
            member("a.npy"),
            "npz",
            Some(("tensor \"a.npy\" ", "rename it, or convert to .safetensors")),
        ),
        (
            member("tensorwire.scalar_fields.npy"),
            "npz",
            Some((
                "tensor \"tensorwire.scalar_fields.npy\" ",
                "rename it, or convert to .safetensors",
            )),
        ),
        (member("a.npy"), "safetensors", None),
        (member("b.npy"), "npz", None),
        (deep, "npz", None),
        (one("../../x", bytes, None), "npz", None),
    ];
    let folder = folder();
    for (frames, format, refusal) in cases {
        let first = write_bundle(folder.path(), "first.bundle", &frames);
        let target = folder.path().join(format!("out.{format}"));
        fs::write(&target, "before").unwrap();
        match refusal {
            None => converted(&first, &target),
            Some((who, next)) => {
                let said = refused(&first, &target, 1);
                assert!(said.contains(who) && said.contains(next), "{said}");
                assert_eq!(fs::read(&target).unwrap(), b"before");
            }
        }
        fs::remove_file(&target).unwrap();
        // Nothing is written anywhere else either, whatever the names.
        assert_eq!(others(&folder, &["first.bundle"]), [""; 0]);
    }
}

/// To look for two of one name among them would take minutes.
#[test]
fn more_tensors_than_a_message_may_have_are_refused_at_once() {
    let folder = folder();
    let path = |name: &str| folder.path().join(name);
    for (count, code) in [(4096, 0), (4097, 1), (100_000, 1)] {
        let entry =
            |index| format!(r#""{index}":{{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}"#);
        let entries: Vec<_> = (0..count).map(entry).collect();
        let header = format!("{{{}}}", entries.join(","));
        let file = [&(header.len() as u64).to_le_bytes()[..], header.as_bytes()].concat();
        fs::write(path("in.safetensors"), file).unwrap();
        converted(&path("in.safetensors"), &path("in.npz"));
        for input in ["in.safetensors", "in.npz"] {
            if code == 0 {
                converted(&path(input), &path("out.bundle"));
                continue;
            }
            let started = Instant::now();
            let said = refused(&path(input), &path("out.bundle"), code);
            let says = format!("{count} tensors where 4096 are allowed");
            assert!(said.contains(&says), "{said}");
            assert!(started.elapsed() < Duration::from_secs(30));
        }
    }
}

#[test]
fn a_name_of_any_length_is_kept_or_refused() {
    let folder = folder();
    let path = |name: &str| folder.path().join(name);
    let name = "n\u{e9}".repeat(24_000);
    let tensors = [TensorView::from_slice(&name, &[1], &[1_u8]).unwrap()];
    fs::write(
        path("in.safetensors"),
        safetensors::encode_to_vec(&tensors, &NO_SCALARS).unwrap(),
    )
    .unwrap();
    converted(&path("in.safetensors"), &path("again.safetensors"));
    let same = |a, b| fs::read(path(a)).unwrap() == fs::read(path(b)).unwrap();
    assert!(same("in.safetensors", "again.safetensors"));
    // With `.npy`, and what else an archive says of it, it is to fit into 65535 bytes.
    for (length, fits) in [(65_396, true), (65_397, false), (65_535, false)] {
        let name = "n".repeat(length);
        let tensors = [TensorView::from_slice(name.as_str(), &[1], &[1_u8]).unwrap()];
        let file = safetensors::encode_to_vec(&tensors, &NO_SCALARS).unwrap();
        fs::write(path("long.safetensors"), file).unwrap();
        if fits {
            converted(&path("long.safetensors"), &path("out.npz"));
            converted(&path("out.npz"), &path("again.safetensors"));
            assert!(same("long.safetensors", "again.safetensors"));
        } else {
            let said = refused(&path("long.safetensors"), &path("out.npz"), 1);
            assert!(said.contains("too long for an archive"), "{said}");
        }
    }
    for (target, why) in [
        ("out.npz", "too long for an archive"),
        (
            "out.bundle",
            "no message can hold this: name of 72000 bytes",
        ),
    ] {
        let said = refused(&path("in.safetensors"), &path(target), 1);
        assert!(
            said.contains("(72000 bytes)") && said.contains(why),
            "{said}"
        );
    }
}
