//! `protocol.py` on the same messages, timed in a process of its own.
//!
//! Wants `TENSORWIRE_PYTHON`, an interpreter, and `TENSORWIRE_CODEC`, sglang's `codec.py`,
//! beside which lies its `protocol.py`; `tests/interop/setup.sh` prints both.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use super::json::Kind;

/// Nanoseconds by message.
pub(crate) struct Times {
    pub(crate) decode: f64,
    pub(crate) encode: f64,
}

/// Times it on the messages of each kind, or says why it cannot.
pub(crate) fn time(kinds: &BTreeMap<Kind, Vec<Vec<u8>>>) -> Result<BTreeMap<Kind, Times>, String> {
    let variable = |name: &str| std::env::var(name).map_err(|_| format!("{name} is not set"));
    let python = variable("TENSORWIRE_PYTHON")?;
    let protocol = Path::new(&variable("TENSORWIRE_CODEC")?).with_file_name("protocol.py");
    if !protocol.exists() {
        return Err(format!("{} is not there", protocol.display()));
    }
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/transfer/protocol.py");
    let mut input = String::new();
    for (index, payloads) in kinds.values().enumerate() {
        for payload in payloads {
            writeln!(input, "{index} {}", String::from_utf8_lossy(payload)).unwrap();
        }
    }
    let mut process = Command::new(python)
        .arg(script)
        .arg(protocol)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| error.to_string())?;
    let mut stdin = process.stdin.take().ok_or("no stdin")?;
    // It reads all before it writes anything.
    let written = stdin.write_all(input.as_bytes());
    drop(stdin);
    let output = process
        .wait_with_output()
        .map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    written.map_err(|error| error.to_string())?;
    let times: Vec<[f64; 2]> =
        serde_json::from_slice(&output.stdout).map_err(|error| error.to_string())?;
    let times = times
        .into_iter()
        .map(|[decode, encode]| Times { decode, encode });
    Ok(kinds.keys().copied().zip(times).collect())
}
