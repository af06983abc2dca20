//! The fuzz targets as plain tests: each over its seeds, and over every recorded message.
//!
//! `cargo test --features alloc,_differential --test fuzz_seeds`; with
//! `-- --ignored` it writes the seeds that are derived from the recordings.

#![cfg(all(feature = "alloc", feature = "_differential"))]

mod common;
#[path = "../fuzz/src/lib.rs"]
mod fuzz;

use std::path::PathBuf;

use common::{frames, lines, text};
use fuzz::bundle::{AS_IT_IS, FRAMES, PUT_RIGHT};
use fuzz::case::{DEFAULT, framed};
use fuzz::manifest::FITTING;

/// Recorded messages that are seeds, by name.
const GOLDEN: &[&str] = &[
    "bfloat16-scalar",
    "bool-3",
    "complex128-1",
    "complex64-3x0x2",
    "error-reply",
    "float16-2x3",
    "float32-2x3",
    "int64-1x1x1x1x1x1x1x1x1x2",
    "list-leading-hole",
    "list-with-holes",
    "mixed",
    "no-tensors",
    "uint8-0",
];

/// Hostile messages that are seeds, by id.
const HOSTILE: &[&str] = &[
    "D01", "D16", "D17", "D21b", "D31b", "D36", "D41", "D55", "E09", "E16", "E18", "E21", "E27",
    "E28", "E39", "E40", "E46", "E49", "E53", "L05", "L13", "L14", "L15", "L18", "L20",
];

/// The options bytes that each recorded message is tried with.
const FLAGS: &[u8] = &[
    DEFAULT,
    DEFAULT | 0x40,
    0x00,
    0x10,
    DEFAULT | 1,
    DEFAULT | 2,
    DEFAULT | 3,
    DEFAULT | 4,
    DEFAULT | 5,
    DEFAULT | 6,
    DEFAULT | 7,
    DEFAULT | 8,
];

/// Frames longer than this say nothing new and slow a debug build down.
const LONG: usize = 1 << 14;

#[test]
fn every_target_passes_over_its_seeds() {
    for (target, run) in fuzz::TARGETS {
        let mut count = 0;
        for entry in std::fs::read_dir(directory(target)).unwrap() {
            let path = entry.unwrap().path();
            let seed = std::fs::read(&path).unwrap();
            println!("{}", path.display());
            run(&seed);
            count += 1;
        }
        assert!((1..=48).contains(&count), "{target} has {count} seeds");
    }
}

#[test]
fn every_target_passes_over_every_recorded_message() {
    for file in ["tensors.jsonl", "hostile.jsonl", "transfer.jsonl"] {
        for line in lines(file) {
            let frames: Vec<_> = recorded(&line);
            if frames.iter().map(Vec::len).sum::<usize>() > LONG {
                continue;
            }
            println!("{file} {} {}", line["name"], line["id"]);
            for frame in &frames {
                fuzz::json::run(frame);
                #[cfg(feature = "serde")]
                fuzz::serde::run(frame);
                for flags in *b"012348" {
                    fuzz::transfer_message::run(&[&[flags], frame.as_slice()].concat());
                }
            }
            for flags in FLAGS {
                let mut fitting = vec![*flags];
                fitting.extend(frames.first().into_iter().flatten());
                for data in [Some(fitting), framed(*flags, &frames)].iter().flatten() {
                    fuzz::decode::run(data);
                    fuzz::differential::run(data);
                    fuzz::roundtrip::run(data);
                }
            }
            if let Some(data) = framed(FRAMES, &frames) {
                fuzz::bundle::run(&data);
            }
            if let Some(text) = manifest(&frames) {
                for flags in [DEFAULT, 0xc0, DEFAULT | FITTING] {
                    fuzz::manifest::run(&fuzz::manifest::seed(flags, 0xffff, &text));
                }
            }
        }
    }
    for case in lines("strings.jsonl") {
        let text = case["json"].as_str().unwrap().as_bytes();
        fuzz::json::run(text);
        #[cfg(feature = "serde")]
        fuzz::serde::run(text);
    }
    for line in text("floats.tsv").lines().step_by(9) {
        fuzz::json::run(line.rsplit('\t').next().unwrap().as_bytes());
    }
}

/// What Python writes, so that the fast path takes it whole.
const CANONICAL: &str = concat!(
    r#"{"tensor_descriptors":[{"field_name":"ab","shape":[2,10],"dtype":"int8","list_index":-1},"#,
    r#"{"field_name":"l","shape":[],"dtype":"bool","list_index":12}],"scalar_fields":{"a":-1.5e3}}"#,
);

#[test]
fn the_oracles_agree_on_every_small_edit_of_a_message() {
    let edit = |at: usize, removed: usize, inserted: &[u8]| {
        let mut data = vec![DEFAULT];
        data.extend(CANONICAL.as_bytes());
        data.splice(1 + at..1 + at + removed, inserted.iter().copied());
        fuzz::differential::run(&data);
    };
    for at in 0..CANONICAL.len() {
        edit(at, 1, b"");
        for inserted in [
            "{",
            "}",
            "[",
            "]",
            ",",
            ":",
            "\"",
            "\\",
            "-",
            "0",
            "1",
            "00",
            "9",
            "e1",
            ".0",
            " ",
            "\n",
            "\0",
            "\x7f",
            "é",
            "n",
            "NaN",
            "\\u0061",
            "999999999999999999",
            "9223372036854775807",
        ] {
            edit(at, 0, inserted.as_bytes());
            edit(at, 1, inserted.as_bytes());
        }
    }
}

#[test]
fn derived_seeds_are_what_they_are_derived_from() {
    for (target, name, bytes) in derived_seeds() {
        let read = std::fs::read(directory(target).join(&name)).unwrap_or_default();
        assert!(read == bytes, "{target}/{name}: run with --ignored");
    }
}

#[test]
#[ignore = "writes the seeds"]
fn write_the_derived_seeds() {
    for (target, name, bytes) in derived_seeds() {
        std::fs::create_dir_all(directory(target)).unwrap();
        std::fs::write(directory(target).join(name), bytes).unwrap();
    }
}

/// (target, file name, bytes)
fn derived_seeds() -> Vec<(&'static str, String, Vec<u8>)> {
    let mut messages = Vec::new();
    for line in lines("tensors.jsonl") {
        let name = line["name"].as_str().unwrap();
        if GOLDEN.contains(&name) {
            messages.push((format!("golden-{name}"), recorded(&line), true));
        }
    }
    assert_eq!(messages.len(), GOLDEN.len());
    for line in lines("hostile.jsonl") {
        let id = line["id"].as_str().unwrap();
        if HOSTILE.contains(&id) {
            let accepted = line["expected"].as_str().unwrap();
            let accepted = accepted.to_ascii_lowercase().starts_with("accept");
            messages.push((
                format!("hostile-{}", id.to_lowercase()),
                recorded(&line),
                accepted,
            ));
        }
    }
    assert_eq!(messages.len(), GOLDEN.len() + HOSTILE.len());

    let mut seeds = Vec::new();
    for (index, (name, frames, accepted)) in messages.into_iter().enumerate() {
        // Half of them with their own payloads, half with such as fit.
        let case = if index % 2 == 0 || !accepted {
            framed(DEFAULT, &frames).unwrap()
        } else {
            [&[DEFAULT], frames[0].as_slice()].concat()
        };
        if accepted {
            seeds.push(("roundtrip", name.clone(), case.clone()));
        }
        seeds.push(("decode", name.clone(), case.clone()));
        seeds.push(("differential", name.clone(), case));
        seeds.push(("json", name, frames[0].clone()));
    }
    for (name, text) in [
        (
            "numbers",
            "[0,-0,7,-1.5,1e16,1E-05,5e-324,1e999,9223372036854775808,18446744073709551616]",
        ),
        ("tokens", "[NaN,Infinity,-Infinity,true,false,null]"),
        (
            "escapes",
            r#"["\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00","\ud800","é😀"]"#,
        ),
        ("white", " {\"a\" :\t[ 1 ,\n{ } ] ,\r\"a\": \"\" } "),
    ] {
        seeds.push(("json", name.to_string(), text.as_bytes().to_vec()));
        seeds.push(("serde", name.to_string(), text.as_bytes().to_vec()));
    }
    for (name, text) in [
        (
            "request",
            r#"{"a":7,"bb":["Off",{"Scale":7.5},{"Range":[-1,255]},{"Schedule":{"from":1,"to":null}}],"c":{"a":null,"\u0065":"x\n"},"d":null,"f":{"é":"\u00e9","":null},"\ud800":[{}]}"#,
        ),
        ("duplicates", r#"{"a":1,"\u0061":2,"b":[],"bb":[]}"#),
        (
            "floats",
            r#"{"1":0.5,"NaN":1e-5,"-0":-0.0,"18446744073709551616":1e22}"#,
        ),
        (
            "integer-keys",
            r#"{"-9223372036854775808":[true,null],"\u0031":[]}"#,
        ),
        (
            "integers",
            "[[255,-170141183460469231731687303715884105728],[0,7]]",
        ),
        (
            "lazy",
            r#"{"a": [1e2, "\ud800"],"b":[{}, NaN],"c":{"a" : 1},"d":"plain"}"#,
        ),
        ("tagged", r#"{"b":[0,255],"a":"On"}"#),
        ("flat", r#"{"x":true,"a":1,"y":false}"#),
        ("struct-of-array", r#"[1,[],null,null,"",{}]"#),
        (
            "lossy-keys",
            r#"{"\ud800":1,"\udfff":2,"\ufffd":340282366920938463463374607431768211456}"#,
        ),
    ] {
        seeds.push(("serde", name.to_string(), text.as_bytes().to_vec()));
    }
    seeds.extend(bundles());
    seeds.extend(manifests());
    seeds.extend(controls());
    seeds.extend(pools());
    let conflict = |list_indices: [i32; 3]| {
        let descriptors = list_indices.map(|list_index| {
            let rest = r#""shape":[0],"dtype":"bool""#;
            format!(r#"{{"field_name":"x",{rest},"list_index":{list_index}}}"#)
        });
        format!("0{{\"tensor_descriptors\":[{}]}}", descriptors.join(","))
    };
    for (name, list_indices) in [
        ("conflict-list-plain-list", [5, -1, 0]),
        ("conflict-plain-list-list", [-1, 5, 5]),
    ] {
        for target in ["decode", "differential"] {
            seeds.push((
                target,
                name.to_string(),
                conflict(list_indices).into_bytes(),
            ));
        }
    }
    // The bytes decide on the shape of the tree; any will do.
    let mut state: u32 = 1;
    let mut bytes = |length| -> Vec<u8> {
        let bytes = std::iter::repeat_with(|| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state.to_le_bytes()[3]
        });
        bytes.take(length).collect()
    };
    for (target, lengths) in [
        ("scalars", [8, 32, 64, 128, 256, 512, 1024]),
        ("roles", [32, 96, 192, 384, 512, 768, 1280]),
    ] {
        for length in lengths {
            seeds.push((target, format!("bytes-{length}"), bytes(length)));
        }
    }
    // Of each kind, as it is; then with edits.
    for (kind, name) in (0..).zip(["message", "bundle", "control", "slot"]) {
        for length in [24, 96, 320] {
            let seed = [&[0, kind], &*bytes(length)].concat();
            seeds.push(("generated", format!("{name}-{length}"), seed));
        }
    }
    for length in [64, 128, 256] {
        let seed = [&[3], &*bytes(length)].concat();
        seeds.push(("generated", format!("edited-{length}"), seed));
    }
    seeds
}

/// Recorded payloads, and some that no writer emits.
fn controls() -> Vec<(&'static str, String, Vec<u8>)> {
    const RECORDED: &[&str] = &[
        "abort",
        "alloc-0",
        "allocated-0",
        "dag-push",
        "done-0",
        "done-2",
        "done-staged-5",
        "push-0",
        "pushed-0",
        "ready-12",
        "ready-34",
        "register-0",
        "staged-33",
        "staged-no-scalars",
    ];
    let mut seeds = Vec::new();
    let mut add = |name: String, flags: u8, payload: &[u8]| {
        let seed = [&[flags], payload].concat();
        seeds.push(("transfer_message", name, seed));
    };
    for line in lines("transfer.jsonl") {
        let name = line["name"].as_str().unwrap();
        if RECORDED.contains(&name) {
            add(format!("golden-{name}"), DEFAULT, &recorded(&line)[1]);
        }
    }
    for (name, payload) in [
        (
            "ready-fast-path",
            r#"{"msg_type":"transfer_ready","request_id":"r","manifest":{},"slot_offset":1,"scalar_fields":{"a":NaN,"_prealloc_slot_id":3}}"#,
        ),
        (
            "ready-slot-in-the-middle",
            r#"{"msg_type":"transfer_ready","request_id":"r","manifest":{},"slot_offset":1,"scalar_fields":{ "_prealloc_slot_id" : -0 , "a":[1],"\u005fprealloc_slot_id":7 }}"#,
        ),
        (
            "staged-by-an-image-encoder",
            r#"{"msg_type":"transfer_staged","request_id":"r","staged_for_decoder":false,"session_id":"s","pool_ptr":18446744073709551615,"slot_offset":0,"data_size":1,"manifest":{"x":[]},"scalar_fields":{}}"#,
        ),
        (
            "done-of-both-layouts",
            r#"{"error":"","manifest":{},"msg_type":"transfer_done","request_id":"r","staged_for_decoder":true,"x":{}}"#,
        ),
        (
            "done-not-staged",
            r#"{"msg_type":"transfer_done","request_id":"r","staged_for_decoder":false,"data_size":1,"error":null}"#,
        ),
        (
            "spelled-otherwise",
            r#" { "slot_size" : 1 , "\u006dsg_type":"transfer\u005fallocated","pool_ptr":2,"session_id":"\ud800","slot_offset":3,"request_id":"é","x":1,"x":{"y":[]}} "#,
        ),
        (
            "register-slots",
            r#"{"msg_type":"transfer_register","role":"decoder","session_id":"s","pool_ptr":0,"pool_size":1,"preallocated_slots":[ {"addr":4,"slot_id":3,"size":2,"offset":1,"node":[{}]} , {"offset":0,"size":0,"slot_id":0,"addr":0}]}"#,
        ),
        (
            "register-ack",
            r#"{"msg_type":"transfer_register_ack","request_id":"r","ok":true}"#,
        ),
        (
            "numbers",
            r#"{"msg_type":"transfer_push","request_id":"r","dest_session_id":"s","dest_addr":18446744073709551616,"transfer_size":1e2}"#,
        ),
        (
            "twice",
            r#"{"msg_type":"transfer_pushed","request_id":"r","request_id":"r"}"#,
        ),
        ("missing", r#"{"request_id":"r"}"#),
        ("no-object", r#"["msg_type","transfer_push"]"#),
    ] {
        add(name.into(), DEFAULT, payload.as_bytes());
    }
    for flags in *b"12348" {
        let payload = br#"{"msg_type":"transfer_ready","request_id":"r","manifest":{"a":[{}]},"slot_offset":1,"scalar_fields":{"a":[[NaN]]},"x":[]}"#;
        let name = format!("caps-{}", char::from(flags));
        add(name, flags, payload);
    }
    seeds
}

/// Whole bundles, some with one field changed, and frames to make one of.
fn bundles() -> Vec<(&'static str, String, Vec<u8>)> {
    let mut seeds = Vec::new();
    let mut add = |name: String, bytes: Vec<u8>| seeds.push(("bundle", name, bytes));
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/bundle");
    for name in [
        "empty-frame",
        "error-reply",
        "last-frame-empty",
        "mixed",
        "table-full",
        "three-frames",
    ] {
        let bundle = std::fs::read(format!("{folder}/{name}.bundle")).unwrap();
        let seed = |flags: u8, bundle: &[u8]| [&[flags], bundle].concat();
        add(format!("golden-{name}"), seed(AS_IT_IS, &bundle));
        add(
            format!("half-{name}"),
            seed(PUT_RIGHT, &bundle[..bundle.len() / 2]),
        );
        for (field, at) in [("count", 12), ("offset", 24), ("length", 32)] {
            let mut bundle = bundle.clone();
            bundle[at] ^= 1;
            add(format!("{field}-{name}"), seed(PUT_RIGHT, &bundle));
        }
    }
    for line in lines("tensors.jsonl") {
        let name = line["name"].as_str().unwrap();
        if ["list-with-holes", "mixed", "uint8-0"].contains(&name) {
            let frames = framed(FRAMES, &recorded(&line)).unwrap();
            add(format!("frames-{name}"), frames);
        }
    }
    seeds
}

/// Manifests as they were recorded, and such as are read by each of the rules.
fn manifests() -> Vec<(&'static str, String, Vec<u8>)> {
    let mut seeds = Vec::new();
    let mut add = |name: &str, slot_len: u16, text: &str| {
        let bytes = fuzz::manifest::seed(DEFAULT, slot_len, text);
        seeds.push(("manifest", name.to_string(), bytes));
    };
    for line in lines("transfer.jsonl").iter().step_by(60) {
        if let Some(text) = manifest(&recorded(line)) {
            add(
                &format!("golden-{}", line["name"].as_str().unwrap()),
                0xffff,
                &text,
            );
        }
    }
    for line in lines("manifests.jsonl").iter().step_by(8) {
        let (name, text) = (
            line["name"].as_str().unwrap(),
            line["manifest"].as_str().unwrap(),
        );
        add(
            name,
            u16::try_from(line["used"].as_u64().unwrap()).unwrap(),
            text,
        );
    }
    let entry = |offset: &str, shape: &str, rest: &str| {
        format!(r#"{{"offset":{offset},"shape":[{shape}],"dtype":"int8"{rest}}}"#)
    };
    let (a, b) = (entry("0", "4", ""), entry("4", "4", ""));
    let member =
        |offset: &str, index: &str| entry(offset, "2", &format!(r#","list_index":{index}"#));
    for (name, text) in [
        ("empty", "{}".to_string()),
        ("absent", r#"{"x":[],"y":[ ],"x":[]}"#.to_string()),
        ("absent-and-not", format!(r#"{{"x":[],"y":[],"x":[{a}]}}"#)),
        ("side-by-side", format!(r#"{{"y":[{b}],"x":[{a}]}}"#)),
        ("escapes", format!(r#"{{"\u0078":[{a}],"caf\u00e9":[{b}],"\ud83d\ude00":[]}}"#)),
        ("twice", format!(r#"{{"x":[{a}],"\u0078":[{b}]}}"#)),
        ("several-plain", format!(r#"{{"x":[{a},{b}]}}"#)),
        ("holes", format!(r#"{{"x":[{},{}]}}"#, member("4", "3"), member("0", "1"))),
        ("index-twice", format!(r#"{{"x":[{},{}]}}"#, member("4", "3"), member("0", "3"))),
        ("list-twice", format!(r#"{{"x":[{}],"x":[{}]}}"#, member("4", "3"), member("0", "1"))),
        ("mixed", format!(r#"{{"x":[{},{b}]}}"#, member("0", "0"))),
        ("minus-one", format!(r#"{{"x":[{}]}}"#, member("0", "-1"))),
        ("overlap", format!(r#"{{"x":[{}],"y":[{a}]}}"#, entry("3", "1", ""))),
        ("inside", format!(r#"{{"x":[{}],"y":[{}]}}"#, entry("0", "8", ""), entry("2", "1", ""))),
        ("no-bytes", format!(r#"{{"x":[{a}],"y":[{}],"z":[{}]}}"#, entry("2", "0", ""), entry("64", "3,0", ""))),
        ("past-the-end", format!(r#"{{"x":[{}]}}"#, entry("61", "4", ""))),
        ("wraps-around", format!(r#"{{"x":[{}]}}"#, entry("18446744073709551615", "2", ""))),
        ("offset-overflow", format!(r#"{{"x":[{}]}}"#, entry("18446744073709551616", "0", ""))),
        ("large-dims", format!(r#"{{"x":[{}]}}"#, entry("0", "9223372036854775807,9", ""))),
        ("unknown-keys", format!(r#"{{"x":[{}]}}"#, entry("0", "4", r#", "new" : {"offset":[1e2,"\ud800",null]} "#))),
        ("any-order", r#" { "x" : [ { "list_index" : 0 , "dtype" : "float32" , "shape" : [ 2 , 1 ] , "offset" : 9 } ] } "#.to_string()),
    ] {
        add(name, 64, &text);
    }
    seeds
}

/// The text of the manifest in a control message, if it has one.
fn manifest(frames: &[Vec<u8>]) -> Option<String> {
    let payload = tensorwire::json::Value::parse(frames.get(1)?).ok()?;
    let manifest = payload.as_object().ok()?.get("manifest")?;
    Some(manifest.raw().to_string())
}

/// Operations on pools: three bytes each, after three of the pool.
fn pools() -> Vec<(&'static str, String, Vec<u8>)> {
    let pool = |shift: u8, half_blocks: u16, operations: &[(u8, u16)]| {
        let mut data = vec![shift];
        data.extend(half_blocks.to_le_bytes());
        for (what, number) in operations {
            data.push(*what);
            data.extend(number.to_le_bytes());
        }
        data
    };
    let (take, give) = (0_u8, 4_u8);
    let fill: Vec<_> = (0..20).map(|_| (take, 1)).collect();
    let empty: Vec<_> = (0..20).map(|number| (give, number * 7)).collect();
    let churn: Vec<_> = (0..200_u16)
        .map(|step| {
            let number = step.wrapping_mul(40503) >> 3;
            ([0, 1, 2, 3, 4, 4, 5][usize::from(step % 7)], number)
        })
        .collect();
    [
        (
            "none",
            pool(0, 0, &[(take, 0), (take, 1), (take, 1), (give, 0)]),
        ),
        ("fill", pool(9, 32, &[&fill[..], &empty, &fill].concat())),
        (
            "invalid",
            pool(
                12,
                8,
                &[
                    (6, 0),
                    (take, 1),
                    (6, 1),
                    (6, 0),
                    (6, 0),
                    (7, 0),
                    (7, 4095),
                    (6, 65535),
                ],
            ),
        ),
        ("churn", pool(4, 600, &churn)),
        (
            "split-and-merge",
            pool(1, 64, &[(3, 64), (take, 1), (give, 0), (3, 64), (3, 64)]),
        ),
        (
            "quarantine",
            pool(
                9,
                16,
                &[
                    &fill[..8],
                    &[(8, 3), (8, 0), (8, 5), (6, 6), (9, 1), (9, 0)],
                ]
                .concat(),
            ),
        ),
    ]
    .map(|(name, data)| ("pool", name.to_string(), data))
    .into()
}

/// The frames of a recorded message, without the note that hostile ones begin with.
fn recorded(line: &serde_json::Value) -> Vec<Vec<u8>> {
    let mut frames = frames(line);
    if line.get("id").is_some() {
        frames.remove(0);
    }
    frames
}

fn directory(target: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("fuzz/seeds")
        .join(target)
}
