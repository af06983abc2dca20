//! numpy and safetensors as the other reader, and the other writer.

use std::io::Write as _;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use tensorwire::DType;
use tensorwire::interop::safetensors;

use super::{NOT_NUMPYS, converted, dtypes_but, refused, rich};
use crate::support::{folder, read_bundle, run, text, write_bundle};

/// Python with numpy and safetensors; `None`, said aloud, where there is none.
fn python() -> Option<impl Fn(&str, &Path) -> Value> {
    let [python, modules] = ["TENSORWIRE_PYTHON", "TENSORWIRE_SAFETENSORS"].map(std::env::var_os);
    let (Some(python), Some(modules)) = (python, modules) else {
        // Not `eprintln!`, which the harness captures.
        let mut stderr = std::io::stderr();
        let reason =
            "TENSORWIRE_PYTHON and TENSORWIRE_SAFETENSORS are not set, see tests/interop/setup.sh";
        writeln!(stderr, "SKIP: files of tensors and Python: {reason}").unwrap();
        return None;
    };
    Some(move |what: &str, path: &Path| {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cli/convert/files.py");
        let mut command = Command::new(&python);
        command
            .arg(script)
            .arg(what)
            .arg(path)
            .env("PYTHONPATH", &modules);
        let done = command.output().unwrap();
        assert!(done.status.success(), "{}", text(&done.stderr));
        serde_json::from_slice(&done.stdout).unwrap_or_default()
    })
}

/// What a bundle holds: each name as it stands in other files, with its payload.
fn payloads(bundle: &Path) -> Vec<(String, String, Value, String)> {
    let shown = run([
        "inspect".as_ref(),
        "--json".as_ref(),
        "--bundle".as_ref(),
        bundle,
    ]);
    // Scalars that Python alone reads are not looked at.
    let shown = text(&shown.stdout).replace("NaN", "null");
    let shown: Value = serde_json::from_str(&shown).unwrap();
    let frames = read_bundle(bundle);
    let tensors = shown["tensors"]
        .as_array()
        .unwrap()
        .iter()
        .zip(&frames[1..]);
    let tensor = |(tensor, frame): (&Value, &Vec<u8>)| {
        let name = tensor["field_name"].as_str().unwrap();
        let name = match tensor["list_index"].as_i64() {
            Some(index) if index >= 0 => format!("{name}.{index}"),
            _ => name.to_owned(),
        };
        let digits = frame.iter().map(|byte| format!("{byte:02x}")).collect();
        (
            name,
            tensor["dtype"].as_str().unwrap().to_owned(),
            tensor["shape"].clone(),
            digits,
        )
    };
    tensors.map(tensor).collect()
}

#[test]
fn python_reads_what_is_written() {
    let Some(python) = python() else { return };
    let folder = folder();
    for (format, missing) in [("npz", NOT_NUMPYS), ("safetensors", &[DType::Complex128])] {
        let bundle = write_bundle(folder.path(), "in.bundle", &rich(&dtypes_but(missing)));
        let path = folder.path().join(format!("out.{format}"));
        converted(&bundle, &path);
        let seen = python("read", &path);
        let mut expected = payloads(&bundle);
        let row = |row: &Value| {
            let dtype = row[1].as_str().unwrap();
            let names = DType::ALL
                .iter()
                .find(|&&known| safetensors::dtype_name(known) == Some(dtype));
            let dtype = names.map_or(dtype, |dtype| dtype.name()).to_owned();
            (
                row[0].as_str().unwrap().to_owned(),
                dtype,
                row[2].clone(),
                row[3].as_str().unwrap().to_owned(),
            )
        };
        let mut tensors: Vec<_> = seen["tensors"]
            .as_array()
            .unwrap()
            .iter()
            .map(row)
            .collect();
        // Python's dictionaries of them have an order of their own.
        tensors.sort_by(|a, b| a.0.cmp(&b.0));
        expected.sort_by(|a, b| a.0.cmp(&b.0));
        assert_eq!(tensors, expected, "{format}");
        let texts = &seen["texts"];
        if format == "npz" {
            assert_eq!(texts["tensorwire.scalar_fields"]["request_id"], "r\u{e9}1");
            assert_eq!(texts["tensorwire.lists"], json!(["sk\u{ef}p"]));
        } else {
            assert_eq!(texts["request_id"], "r\u{e9}1");
            assert_eq!(texts["cfg"], r#"{"scale":[7.5,NaN]}"#);
            assert_eq!(texts["tensorwire.json"], r#"["seed","cfg","none"]"#);
        }
    }
}

#[test]
fn what_python_writes_is_read() {
    let Some(python) = python() else { return };
    let folder = folder();
    python("write", folder.path());
    let path = |name: &str| folder.path().join(name);
    let bundle = path("out.bundle");
    let named = |name: &str| {
        converted(&path(name), &bundle);
        let mut tensors = payloads(&bundle);
        tensors.sort_by(|a, b| a.0.cmp(&b.0));
        tensors
    };
    let latents: String = (0..6_u8)
        .flat_map(|n| f32::from(n).to_le_bytes())
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let row = |name: &str, dtype: &str, shape: Value, digits: &str| {
        (name.to_owned(), dtype.to_owned(), shape, digits.to_owned())
    };
    let mut expected = vec![
        row("a/../b", "bool", json!([2]), "0100"),
        row("empty", "complex128", json!([0, 4]), ""),
        row("latents", "float32", json!([2, 3]), &latents),
        row("layers.0", "int64", json!([]), "0700000000000000"),
        row("zeros", "uint16", json!([100_000]), &"0000".repeat(100_000)),
    ];
    assert!(named("in.npz") == expected);
    assert!(named("deflated.npz") == expected);
    expected.remove(1);
    assert!(named("in.safetensors") == expected);
    assert!(text(&read_bundle(&bundle)[0]).contains(r#""\u00e9":"\u00fc\n""#));
    assert_eq!(
        named("in.npy"),
        [row("in", "float32", json!([2, 3]), &latents)]
    );
    let raw = [
        row("b", "bfloat16", json!([2]), "803f0040"),
        row("f", "float8_e4m3fn", json!([3]), "010203"),
    ];
    assert_eq!(named("raw.safetensors"), raw);
    let said = refused(&path("fortran.npz"), &bundle, 1);
    assert!(
        said.contains("\"latents\" is in Fortran's order") && said.contains("ascontiguousarray"),
        "{said}"
    );
    assert!(refused(&path("objects.npz"), &bundle, 1).contains("never read"));
}
