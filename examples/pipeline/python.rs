//! Python in the place of a stage: sglang's codec, run by the interop test's peer.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::Result;
use crate::progress::Progress;

/// How long a Python stage waits for anything, in seconds.
const TIMEOUT: &str = "60";

/// An interpreter with torch and pyzmq, and the codec.
pub(crate) struct Python {
    interpreter: OsString,
    codec: OsString,
    peer: PathBuf,
}

impl Python {
    /// The arguments that make this program run the peer under guard; what the peer does comes after.
    pub(crate) fn guarded_peer(&self) -> [OsString; 6] {
        [
            "--guard".into(),
            self.interpreter.clone(),
            self.peer.clone().into(),
            "--timeout".into(),
            TIMEOUT.into(),
            self.codec.clone(),
        ]
    }
}

/// Takes what the environment says, or has the interop test's script find or install it.
pub(crate) fn find(progress: &mut Progress) -> Result<Python> {
    let interop = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/interop");
    let peer = interop.join("peer.py");
    if !peer.exists() {
        let peer = peer.display();
        return Err(format!("no {peer}: --python needs a checkout of the repository").into());
    }
    let set = |name| env::var_os(name).filter(|value| !value.is_empty());
    if let (Some(interpreter), Some(codec)) = (set(INTERPRETER), set(CODEC)) {
        return Ok(Python {
            interpreter,
            codec,
            peer,
        });
    }
    let script = interop.join("setup.sh");
    progress.say(&format!(
        "looking for Python, or installing it: bash {}",
        script.display()
    ));
    let mut command = Command::new("bash");
    let output = command
        .arg(script)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()?;
    let text = String::from_utf8(output.stdout)?;
    let value = |name: &str| {
        let values = text.lines().filter_map(|line| line.split_once('='));
        values
            .rev()
            .find(|(key, _)| *key == name)
            .map(|(_, value)| value.into())
    };
    match (output.status.success(), value(INTERPRETER), value(CODEC)) {
        (true, Some(interpreter), Some(codec)) => Ok(Python {
            interpreter,
            codec,
            peer,
        }),
        _ => Err(
            "no Python stage without what setup.sh looks for; it said above what is missing".into(),
        ),
    }
}

const INTERPRETER: &str = "TENSORWIRE_PYTHON";
const CODEC: &str = "TENSORWIRE_CODEC";
