//! The modules know each other in one direction, and `unsafe` stays where it is allowed.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// (a module, the modules that it may name)
///
/// A new module gets a row here, and with it a place in the order.
const MAY_KNOW: &[(&str, &[&str])] = &[
    ("convert", &[]),
    ("limits", &[]),
    ("dtype", &[]),
    // Errors name the type of a JSON value, and nothing else of `json`.
    ("error", &["dtype", "json::ValueType"]),
    ("json", &["error", "limits"]),
    ("tensor", &["dtype", "error", "json"]),
    ("message", &["dtype", "error", "json", "limits", "tensor"]),
    ("bundle", &["convert"]),
    (
        "transfer",
        &[
            "convert", "dtype", "error", "json", "limits", "message", "tensor",
        ],
    ),
    // Transports move frames and never look inside one.
    ("transport", &["bundle", "convert"]),
    (
        "plane",
        &[
            "convert",
            "dtype",
            "error",
            "json",
            "limits",
            "message",
            "tensor",
            "transfer",
            "transport",
        ],
    ),
    (
        "device",
        &[
            "convert",
            "dtype",
            "error",
            "json",
            "message",
            "tensor",
            "transport",
        ],
    ),
    (
        "cuda",
        &[
            "convert",
            "device",
            "dtype",
            "error",
            "json",
            "message",
            "plane",
            "tensor",
            "transfer",
            "transport",
        ],
    ),
    // Pages alone.
    ("guide", &[]),
    (
        "testing",
        &[
            "bundle", "dtype", "error", "json", "limits", "message", "tensor", "transfer",
        ],
    ),
    (
        "interop",
        &[
            "bundle",
            "convert",
            "device",
            "dtype",
            "error",
            "json",
            "limits",
            "message",
            "tensor",
            "transport",
        ],
    ),
];

/// Where `unsafe` may stand: the adapters of foreign functions.
const MAY_BE_UNSAFE: &[&str] = &[
    "bundle/mapped",
    "cuda/allocation",
    "cuda/buffer",
    "cuda/download",
    "cuda/driver",
    "cuda/landing",
    "cuda/library",
    "cuda/pinned",
    "cuda/region/load",
    "cuda/region/mod",
    "cuda/region/store",
    "cuda/ring/slots",
    "cuda/source",
    "cuda/staging",
    "cuda/tensor",
    "cuda/upload",
    "interop/dlpack",
    "interop/frame",
    "plane/region",
    "plane/shared",
    "transport/body",
    "transport/iceoryx2",
    "transport/nng",
    "transport/tokio/descriptor",
    "transport/zmq",
];

/// (path below `src`, code without comments, texts and tests)
fn sources() -> Vec<(String, String)> {
    fn walk(folder: &Path, root: &Path, found: &mut Vec<(String, String)>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(&path, root, found);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let name = path.strip_prefix(root).unwrap().to_str().unwrap();
                found.push((
                    name.replace('\\', "/"),
                    code(&fs::read_to_string(&path).unwrap()),
                ));
            }
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = Vec::new();
    walk(&root, &root, &mut found);
    found.sort();
    found
}

/// The code of a file: what stands before its tests, without comments, and with texts left empty.
fn code(source: &str) -> String {
    let source = source.split("\n#[cfg(test)]\nmod ").next().unwrap();
    let mut code = String::new();
    let mut rest = source;
    while let Some(next) = rest.chars().next() {
        if let Some(comment) = rest.strip_prefix("//") {
            rest = comment.find('\n').map_or("", |end| &comment[end..]);
        } else if let Some(raw) = rest.strip_prefix("r#\"") {
            rest = raw.split_once("\"#").map_or("", |(_, rest)| rest);
        } else if rest.starts_with("'\"'") || rest.starts_with("'\\'") || rest.starts_with("'\\\\'")
        {
            let end = rest[2..].find('\'').unwrap();
            rest = &rest[2 + end + 1..];
        } else if next == '"' {
            let mut escaped = false;
            let text = rest[1..].find(|c| {
                let ends = c == '"' && !escaped;
                escaped = c == '\\' && !escaped;
                ends
            });
            rest = text.map_or("", |end| &rest[1 + end + 1..]);
        } else {
            code.push(next);
            rest = &rest[next.len_utf8()..];
        }
    }
    code
}

/// The paths below the crate's root that the code of `file` names, groups of imports taken apart.
fn paths(file: &str, code: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    // From two levels down, `super::super` is the root as well.
    let module = file.trim_end_matches(".rs").trim_end_matches("/mod");
    let climb = "super::".repeat(module.split('/').count());
    for root in ["crate::", &climb] {
        for (at, _) in code.match_indices(root) {
            expand("", &code[at + root.len()..], &mut found);
        }
    }
    found
}

fn expand(prefix: &str, rest: &str, found: &mut BTreeSet<String>) {
    if let Some(group) = rest.strip_prefix('{') {
        let mut depth = 0;
        let mut start = 0;
        for (at, c) in group.char_indices() {
            match c {
                '{' => depth += 1,
                '}' if depth > 0 => depth -= 1,
                ',' | '}' if depth == 0 => {
                    let member = group[start..at].trim();
                    if !member.is_empty() {
                        expand(prefix, member, found);
                    }
                    start = at + 1;
                    if c == '}' {
                        return;
                    }
                }
                _ => {}
            }
        }
        return;
    }
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_');
    let (name, rest) = rest.split_at(end.unwrap_or(rest.len()));
    let path = format!("{prefix}{name}");
    match rest.strip_prefix("::") {
        Some(rest) => expand(&format!("{path}::"), rest, found),
        None => {
            found.insert(path);
        }
    }
}

/// What `lib.rs` re-exports: (name at the root, path)
fn exports(lib: &str) -> Vec<(String, String)> {
    let mut exports = Vec::new();
    for (at, _) in lib.match_indices("pub use ") {
        let mut found = BTreeSet::new();
        expand("", &lib[at + "pub use ".len()..], &mut found);
        for path in found {
            let name = path.rsplit("::").next().unwrap().to_string();
            exports.push((name, path));
        }
    }
    exports
}

/// What `file` names of other modules without being allowed to.
fn strangers(file: &str, code: &str, exports: &[(String, String)]) -> Vec<String> {
    let module = file.split(['/', '.']).next().unwrap();
    let Some((_, may_know)) = MAY_KNOW.iter().find(|(name, _)| *name == module) else {
        return vec![format!("{file}: {module} has no row in MAY_KNOW")];
    };
    let resolve = |path: String| {
        let head = path.split("::").next().unwrap_or_default();
        let export = exports.iter().find(|(name, _)| name == head);
        export.map_or_else(|| path.clone(), |(_, whole)| whole.clone())
    };
    let known = |path: &String| {
        let below = |root: &str| {
            let rest = path.strip_prefix(root);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
        };
        below(module) || may_know.iter().any(|root| below(root))
    };
    let paths = paths(file, code).into_iter().map(resolve);
    paths
        .filter(|path| !known(path))
        .map(|path| format!("{file} knows {path}"))
        .collect()
}

fn is_unsafe(code: &str) -> bool {
    let word = |c: char| c.is_alphanumeric() || c == '_';
    code.split(|c| !word(c)).any(|token| token == "unsafe")
        || code.contains("allow(unsafe_code)")
        || code.contains("expect(unsafe_code)")
}

#[test]
fn modules_know_only_what_lies_below_them() {
    let sources = sources();
    assert!(sources.len() >= 20);
    let (_, lib) = sources.iter().find(|(file, _)| file == "lib.rs").unwrap();
    let exports = exports(lib);
    assert!(exports.contains(&("Limits".into(), "limits::Limits".into())));
    let found: Vec<_> = sources
        .iter()
        .filter(|(file, _)| file != "lib.rs" && !file.starts_with("bin/"))
        .flat_map(|(file, code)| strangers(file, code, &exports))
        .collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn unsafe_code_stands_in_the_adapters_alone() {
    for (file, code) in sources() {
        let allowed = MAY_BE_UNSAFE.iter().any(|path| file.starts_with(path));
        assert!(allowed || !is_unsafe(&code), "{file}");
    }
}

#[test]
fn what_is_looked_for_would_be_found() {
    let exports = exports("pub use message::{Decoder, Message};\npub use dtype::DType;");
    let found = |file: &str, source: &str| strangers(file, &code(source), &exports);
    assert_eq!(
        found(
            "json/mod.rs",
            "use crate::{DType, error::{DecodeError, X}, tensor::Layout};"
        ),
        [
            "json/mod.rs knows dtype::DType",
            "json/mod.rs knows tensor::Layout"
        ]
    );
    assert_eq!(
        found("transport/zmq.rs", "fn f() { crate::Message::decode() }"),
        ["transport/zmq.rs knows message::Message"]
    );
    assert_eq!(
        found(
            "json/ser/raw.rs",
            "use super::super::super::tensor::Layout; use super::super::de::Key;"
        ),
        ["json/ser/raw.rs knows tensor::Layout"]
    );
    assert_eq!(
        found("error.rs", "use crate::json::{ValueType, Value};"),
        ["error.rs knows json::Value"]
    );
    assert_eq!(found("new.rs", ""), ["new.rs: new has no row in MAY_KNOW"]);
    let quiet = "// use crate::message::A;\nconst A: &str = \"crate::tensor::B\\\"\";\n#[cfg(test)]\nmod tests { use crate::message::C; }";
    assert!(found("limits.rs", quiet).is_empty());
    assert!(is_unsafe(&code("fn f() { unsafe { g() } }")));
    assert!(is_unsafe(&code("#![allow(unsafe_code)]")));
    assert!(!is_unsafe(&code(
        "#![deny(unsafe_code)] // unsafe\nconst A: &str = r#\"unsafe\"#;"
    )));
}

/// Addresses of peers are numbers: what makes a pointer of one does not occur where they are read.
#[test]
fn no_address_of_a_peer_becomes_a_pointer() {
    let makers = [
        "*const",
        "*mut",
        "NonNull",
        "provenance",
        "with_addr",
        "map_addr",
        "from_raw",
        "transmute",
    ];
    let mut seen = 0;
    for (file, code) in sources() {
        if !["transfer/", "message/", "json/"]
            .iter()
            .any(|module| file.starts_with(module))
        {
            continue;
        }
        seen += 1;
        for maker in makers {
            assert!(!code.contains(maker), "{file} has {maker}");
        }
    }
    assert!(seen > 50, "{seen}");
}
