//! The Python codec on the same bytes, timed in a process of its own.
//!
//! Wants `TENSORWIRE_PYTHON`, an interpreter with torch, and `TENSORWIRE_CODEC`,
//! sglang's `codec.py`. The other end is `tests/interop/peer.py`, started as
//! `peer.py bench --codec PATH --iterations N FILE`, which prints medians:
//! `{"unpack_ns": .., "json_ns": ..}`. The file holds the frames:
//!
//! ```text
//! count: u32, then per frame length: u64, bytes        (little-endian)
//! ```

use std::io::Write as _;
use std::path::PathBuf;
use std::process::Command;

/// How long Python takes, in nanoseconds: the codec, and `json.loads` alone.
pub(crate) struct Times {
    pub(crate) unpack: f64,
    pub(crate) json: f64,
}

/// Times the codec, or says why it cannot.
pub(crate) fn time(frames: &[&[u8]], iterations: u32) -> Result<Times, String> {
    let variable = |name: &str| std::env::var(name).map_err(|_| format!("{name} is not set"));
    let python = variable("TENSORWIRE_PYTHON")?;
    let codec = variable("TENSORWIRE_CODEC")?;
    let peer = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/interop/peer.py");
    if !peer.exists() {
        return Err("tests/interop/peer.py is not there".into());
    }
    let file = std::env::temp_dir().join(format!("tensorwire-bench-{}", std::process::id()));
    write(&file, frames).map_err(|error| format!("{}: {error}", file.display()))?;
    let output = Command::new(python)
        .arg(peer)
        .args(["bench", "--codec", &codec, "--iterations"])
        .arg(iterations.to_string())
        .arg(&file)
        .output();
    // What is left behind in the folder for such things is no reason to fail.
    let _ = std::fs::remove_file(&file);
    let output = output.map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    let times: serde_json::Value =
        serde_json::from_slice(&output.stdout).map_err(|error| error.to_string())?;
    let field = |name: &str| {
        times[name]
            .as_f64()
            .ok_or_else(|| format!("no {name} in {times}"))
    };
    Ok(Times {
        unpack: field("unpack_ns")?,
        json: field("json_ns")?,
    })
}

fn write(file: &std::path::Path, frames: &[&[u8]]) -> std::io::Result<()> {
    let mut file = std::io::BufWriter::new(std::fs::File::create(file)?);
    let count = u32::try_from(frames.len()).map_err(std::io::Error::other)?;
    file.write_all(&count.to_le_bytes())?;
    for frame in frames {
        file.write_all(&(frame.len() as u64).to_le_bytes())?;
        file.write_all(frame)?;
    }
    file.flush()
}
