//! Tests on the simulated CUDA driver of `tests/simcuda`, and the same tests on a real one.
//!
//! ```ignore
//! #[test]
//! fn a_copy_is_late() {
//!     simulated::test("a_copy_is_late", || {
//!         // The adapter as it is; and `simulated::stall(..)`, `simulated::fail(..)` and so on.
//!     });
//! }
//! ```
//!
//! [`test`] runs the test binary again, for this test alone, with the simulated driver on the loader's path. After the
//! body it asserts that the driver noted no violation and that nothing is alive that the body made. A thread
//! that the body started has to be over by then.
//!
//! With `TENSORWIRE_CUDA=device` the bodies run in this process, on the driver that is there, whose answers nobody
//! scripts: bodies ask [`scripted`] first, or begin with [`needs_script`].

#![allow(dead_code, reason = "each test uses a part of it")]

mod control;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, OnceLock};

#[allow(unused_imports, reason = "each test uses a part of it")]
pub(crate) use control::*;

/// Says to a child that it is one.
pub(crate) const CHILD: &str = "TENSORWIRE_SIMCUDA";
/// `device`: the tests run on a real driver.
const DRIVER: &str = "TENSORWIRE_CUDA";
/// How long a child may take, in seconds; 0 for as long as it likes.
const LIMIT: &str = "TENSORWIRE_SIMCUDA_SECONDS";
/// Flags that the simulated driver is built with, for sanitizers.
const FLAGS: &str = "TENSORWIRE_SIMCUDA_RUSTFLAGS";

/// Runs `body` on the simulated driver, in a process of its own. `name` is the test's full name, modules and all.
pub(crate) fn test(name: &str, body: impl FnOnce()) {
    test_with(name, &[], body);
}

/// The same, with `environment` for the driver: see the head of `tests/simcuda/src/lib.rs`.
pub(crate) fn test_with(name: &str, environment: &[(&str, &str)], body: impl FnOnce()) {
    if on_device() {
        return body();
    }
    if env::var_os(CHILD).is_none() {
        let (passed, output) = run(name, environment);
        assert!(passed, "{name} on the simulated driver:\n{output}");
        for line in output.lines().filter(|line| line.contains("SKIP")) {
            println!("{line}");
        }
        return;
    }
    body();
    let found = settle();
    assert!(
        found.is_empty(),
        "the simulated driver says:\n{}",
        found.join("\n")
    );
    let expected = *LEFT.lock().unwrap();
    assert_eq!(live(), expected, "alive after the test");
}

/// What this test leaves alive, since it is to be leaked.
pub(crate) fn leaves(expected: Live) {
    *LEFT.lock().unwrap() = expected;
}

static LEFT: Mutex<Live> = Mutex::new(Live {
    pinned: 0,
    registered: 0,
    device: 0,
    events: 0,
    streams: 0,
    contexts: 0,
});

/// Whether the driver is the simulated one, to which scripts can be given.
pub(crate) fn scripted() -> bool {
    env::var_os(CHILD).is_some()
}

/// Whether this test can go on, which needs a script; says so if not.
#[must_use]
pub(crate) fn needs_script(name: &str) -> bool {
    if !scripted() {
        println!("SKIP: {name} needs the simulated driver");
    }
    scripted()
}

/// Whether the tests run on a real driver.
pub(crate) fn on_device() -> bool {
    env::var(DRIVER).is_ok_and(|driver| driver == "device")
}

/// Runs this test binary again, on the simulated driver, for the test `name`, be it one that is ignored; whether it
/// passed, and what it wrote.
pub(crate) fn run(name: &str, environment: &[(&str, &str)]) -> (bool, String) {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", name, "--include-ignored", "--nocapture"]);
    command.args(["--test-threads", "1"]);
    with_driver(&mut command, &folder());
    command.env(CHILD, "1").envs(environment.iter().copied());
    let seconds = env::var(LIMIT).map_or(300, |seconds| seconds.parse().unwrap());
    let (passed, output) = finish(&mut command, seconds);
    // Where the name is wrong, no test runs, and all is well.
    (passed && output.contains("1 passed"), output)
}

/// Runs a command, for so many seconds; whether it succeeded, and what it wrote.
fn finish(command: &mut Command, seconds: u64) -> (bool, String) {
    let mut watched = if seconds == 0 {
        Command::new(command.get_program())
    } else {
        let mut watched = Command::new("timeout");
        watched.args(["--kill-after=5", &seconds.to_string()]);
        watched.arg(command.get_program());
        watched
    };
    watched.args(command.get_args());
    for (key, value) in command.get_envs() {
        match value {
            Some(value) => watched.env(key, value),
            None => watched.env_remove(key),
        };
    }
    let output = watched.stdin(Stdio::null()).output().unwrap();
    let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.push_str(&String::from_utf8_lossy(&output.stderr));
    if output.status.code() == Some(124) {
        text.push_str(&format!("\nnot over after {seconds} s\n"));
    }
    (output.status.success(), text)
}

/// Puts a folder with a driver in front of the loader's path.
pub(crate) fn with_driver(command: &mut Command, folder: &Path) {
    let mut paths = vec![folder.to_owned()];
    let before = env::var_os("LD_LIBRARY_PATH");
    paths.extend(before.iter().flat_map(env::split_paths));
    command.env("LD_LIBRARY_PATH", env::join_paths(paths).unwrap());
}

/// The folder with the simulated driver, which is built once for a test binary.
pub(crate) fn folder() -> PathBuf {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(build).clone()
}

fn build() -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/simcuda");
    let flags = env::var(FLAGS).unwrap_or_default();
    let name = if flags.is_empty() {
        "simcuda"
    } else {
        "simcuda-flags"
    };
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--quiet", "--offline", "--manifest-path"]);
    cargo.arg(source.join("Cargo.toml"));
    cargo.arg("--target-dir").arg(&target);
    // What the tests are built with is no business of the driver: not the sanitizers, not the profile.
    for (key, _) in env::vars_os() {
        let text = key.to_string_lossy();
        if text.starts_with("CARGO_PROFILE_") || text.starts_with("CARGO_BUILD_") {
            cargo.env_remove(&key);
        }
    }
    cargo.env_remove("CARGO_ENCODED_RUSTFLAGS");
    cargo.env_remove("CARGO_TARGET_DIR");
    cargo.env("RUSTFLAGS", &flags);
    let output = cargo.output().unwrap();
    assert!(
        output.status.success(),
        "the simulated driver does not build:\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let built = target.join("debug").join("libsimcuda.so");
    let folder = target.join("driver");
    fs::create_dir_all(&folder).unwrap();
    // cudarc looks for the plain name first; others for the one with a number.
    for name in ["libcuda.so", "libcuda.so.1"] {
        replace(&built, &folder.join(name));
    }
    folder
}

/// Copies a file to where another process may be reading the one before.
fn replace(from: &Path, to: &Path) {
    if fs::read(from).ok() == fs::read(to).ok() {
        return;
    }
    let new = to.with_extension(format!("new-{}", std::process::id()));
    fs::copy(from, &new).unwrap();
    fs::rename(&new, to).unwrap();
}
