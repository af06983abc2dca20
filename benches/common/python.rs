//! The Python codec on the same bytes, timed in a process of its own.
//!
//! Wants `TENSORWIRE_PYTHON`, an interpreter with torch, and `TENSORWIRE_CODEC`,
//! sglang's `codec.py`; `tests/interop/setup.sh` prints both. The other end is
//! `tests/interop/peer.py`, whose head says how it is called, what is in the
//! file of frames, and what it prints.

use std::io::Write as _;
use std::path::Path;
use std::process::Command;

/// How long Python takes, in nanoseconds: the codec, and `json.loads` alone.
pub(crate) struct Times {
    pub(crate) unpack: f64,
    pub(crate) json: f64,
}

/// The interpreter, and the arguments that every call of `peer.py` begins with;
/// or why there is none.
pub(crate) fn peer() -> Result<(String, Vec<String>), String> {
    let variable = |name: &str| std::env::var(name).map_err(|_| format!("{name} is not set"));
    let python = variable("TENSORWIRE_PYTHON")?;
    let codec = variable("TENSORWIRE_CODEC")?;
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/interop/peer.py");
    if !Path::new(script).exists() {
        return Err(format!("{script} is not there"));
    }
    Ok((python, vec![script.to_owned(), codec]))
}

/// Times the codec, or says why it cannot.
pub(crate) fn time(frames: &[&[u8]], iterations: u32) -> Result<Times, String> {
    let (python, arguments) = peer()?;
    let file = std::env::temp_dir().join(format!("tensorwire-bench-{}", std::process::id()));
    write(&file, frames).map_err(|error| format!("{}: {error}", file.display()))?;
    let output = Command::new(python)
        .args(arguments)
        .arg("bench")
        .arg(format!("file:{}", file.display()))
        .arg(iterations.to_string())
        .output();
    // What is left behind in the folder for such things is no reason to fail.
    let _ = std::fs::remove_file(&file);
    let output = output.map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    // The line before it says READY.
    let line = output
        .stdout
        .trim_ascii_end()
        .rsplit(|&byte| byte == b'\n')
        .next();
    let times: serde_json::Value =
        serde_json::from_slice(line.unwrap_or_default()).map_err(|error| error.to_string())?;
    let field = |name: &str| {
        times[name]
            .as_f64()
            .ok_or_else(|| format!("no {name} in {times}"))
    };
    Ok(Times {
        unpack: field("unpack_ns")?,
        json: field("json_loads_ns")?,
    })
}

fn write(file: &Path, frames: &[&[u8]]) -> std::io::Result<()> {
    let mut file = std::io::BufWriter::new(std::fs::File::create(file)?);
    let count = u32::try_from(frames.len()).map_err(std::io::Error::other)?;
    file.write_all(&count.to_le_bytes())?;
    for frame in frames {
        file.write_all(&(frame.len() as u64).to_le_bytes())?;
        file.write_all(frame)?;
    }
    file.flush()
}
