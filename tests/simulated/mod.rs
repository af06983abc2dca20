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

use std::env;
use std::ffi::{CString, c_char, c_void};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, OnceLock};

use cudarc::driver::CudaStream;
use cudarc::driver::sys::CUresult;
use libloading::Library;

/// Says to a child that it is one.
pub(crate) const CHILD: &str = "TENSORWIRE_SIMCUDA";
/// `device`: the tests run on a real driver.
const DRIVER: &str = "TENSORWIRE_CUDA";
/// How long a child may take, in seconds; 0 for as long as it likes.
const LIMIT: &str = "TENSORWIRE_SIMCUDA_SECONDS";
/// Flags that the simulated driver is built with, for sanitizers.
const FLAGS: &str = "TENSORWIRE_SIMCUDA_RUSTFLAGS";

// ---- running a test ----

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

// ---- the driver's answers ----

/// Of each kind, how many objects are alive that the driver made. What a script kept from being released does
/// not count.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Live {
    pub(crate) pinned: usize,
    pub(crate) registered: usize,
    pub(crate) device: usize,
    pub(crate) events: usize,
    pub(crate) streams: usize,
    pub(crate) contexts: usize,
}

pub(crate) fn live() -> Live {
    let mut counts = [0; 6];
    // SAFETY: it writes six numbers.
    unsafe { function::<unsafe extern "C" fn(*mut [usize; 6])>("simcuda_live")(&raw mut counts) };
    let [pinned, registered, device, events, streams, contexts] = counts;
    Live {
        pinned,
        registered,
        device,
        events,
        streams,
        contexts,
    }
}

/// Bytes of device memory that are allocated and not freed.
pub(crate) fn device_bytes() -> usize {
    // SAFETY: it has no conditions.
    unsafe { function::<unsafe extern "C" fn() -> usize>("simcuda_device_bytes")() }
}

/// What the driver has noted so far, a line each.
pub(crate) fn violations() -> Vec<String> {
    let mut text = vec![0; 1 << 20];
    // SAFETY: it writes no more than it is told there is room for.
    let len = unsafe {
        function::<unsafe extern "C" fn(*mut u8, usize) -> usize>("simcuda_violations")(
            text.as_mut_ptr(),
            text.len(),
        )
    };
    text.truncate(len);
    let text = String::from_utf8(text).unwrap();
    text.lines().map(str::to_owned).collect()
}

/// The same, and the driver forgets them: for tests that commit them.
pub(crate) fn take_violations() -> Vec<String> {
    let found = violations();
    plain("simcuda_forget_violations");
    found
}

/// Lets all streams go and waits until nothing is on them; then what the driver has noted.
pub(crate) fn settle() -> Vec<String> {
    release(Streams::All);
    let_go();
    plain("simcuda_settle");
    violations()
}

/// How many calls of this name were made, `cuEventQuery` say; `*` for any.
pub(crate) fn calls(name: &str) -> u64 {
    let name = CString::new(name).unwrap();
    // SAFETY: it reads a text that ends with a zero.
    unsafe {
        function::<unsafe extern "C" fn(*const c_char) -> u64>("simcuda_calls")(name.as_ptr())
    }
}

/// How many calls were made to fail so far.
pub(crate) fn failed() -> u64 {
    // SAFETY: it has no conditions.
    unsafe { function::<unsafe extern "C" fn() -> u64>("simcuda_failed")() }
}

/// How many copies have run so far.
pub(crate) fn copies() -> u64 {
    // SAFETY: it has no conditions.
    unsafe { function::<unsafe extern "C" fn() -> u64>("simcuda_copies")() }
}

/// How many operations are on the streams and have not run.
pub(crate) fn pending() -> usize {
    // SAFETY: it has no conditions.
    unsafe { function::<unsafe extern "C" fn() -> usize>("simcuda_pending")() }
}

/// Whether the bytes lie in pinned or registered memory.
pub(crate) fn is_pinned(bytes: &[u8]) -> bool {
    // SAFETY: it reads nothing there.
    unsafe {
        function::<unsafe extern "C" fn(*const c_void, usize) -> bool>("simcuda_is_pinned")(
            bytes.as_ptr().cast(),
            bytes.len(),
        )
    }
}

// ---- scripts ----

/// One call of this name, `*` for any, fails with `code`, after `after` calls that do not. It has no effect then. What
/// it was to release counts as released.
pub(crate) fn fail(name: &str, after: u64, code: CUresult) {
    let name = CString::new(name).unwrap();
    // SAFETY: it reads a text that ends with a zero.
    unsafe {
        function::<unsafe extern "C" fn(*const c_char, u64, u32)>("simcuda_fail")(
            name.as_ptr(),
            after,
            code as u32,
        )
    };
}

/// Of a million calls so many fail with `code`, by chance.
pub(crate) fn fail_by_chance(of_a_million: u64, code: CUresult) {
    // SAFETY: it has no conditions.
    unsafe {
        function::<unsafe extern "C" fn(u64, u32)>("simcuda_fail_by_chance")(
            of_a_million,
            code as u32,
        )
    };
}

/// No further call fails, and no copy breaks. A context that is broken stays so.
pub(crate) fn fail_no_more() {
    plain("simcuda_fail_no_more");
}

/// After `after` more copies have run, the next breaks its context with `code`: it does nothing, nothing
/// runs after it, and every call fails with that code, those that free as well.
pub(crate) fn break_copy(after: u64, code: CUresult) {
    // SAFETY: it has no conditions.
    unsafe { function::<unsafe extern "C" fn(u64, u32)>("simcuda_break_copy")(after, code as u32) };
}

/// What comes by chance, failures and delays, comes from this number on.
pub(crate) fn seed(seed: u64) {
    // SAFETY: it has no conditions.
    unsafe { function::<unsafe extern "C" fn(u64)>("simcuda_seed")(seed) };
}

/// Calls of this name wait in the driver, after `after` that do not, until [`let_go`].
pub(crate) fn hold(name: &str, after: u64) {
    let name = CString::new(name).unwrap();
    // SAFETY: it reads a text that ends with a zero.
    unsafe {
        function::<unsafe extern "C" fn(*const c_char, u64)>("simcuda_hold")(name.as_ptr(), after)
    };
}

/// Waits until so many calls wait because of [`hold`].
pub(crate) fn await_held(count: u64) {
    // SAFETY: it has no conditions.
    unsafe { function::<unsafe extern "C" fn(u64)>("simcuda_await_held")(count) };
}

/// Ends all [`hold`]s.
pub(crate) fn let_go() {
    plain("simcuda_let_go");
}

/// Some of the driver's streams.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Streams<'a> {
    /// All that there are, and those to come.
    All,
    /// The one that was made so many-th of those that are alive, counted from 0. Default streams do not count.
    Made(usize),
    /// This one.
    One(&'a CudaStream),
}

impl Streams<'_> {
    fn handle(self) -> *mut c_void {
        match self {
            Self::All => std::ptr::null_mut(),
            Self::Made(number) => {
                let mut handles = [std::ptr::null_mut(); 64];
                let list = function::<unsafe extern "C" fn(*mut *mut c_void, usize) -> usize>(
                    "simcuda_streams",
                );
                // SAFETY: it writes no more handles than it is told there is room for.
                let count = unsafe { list(handles.as_mut_ptr(), handles.len()) };
                assert!(number < count, "stream {number} of {count}");
                handles[number]
            }
            Self::One(stream) => {
                let handle: *mut c_void = stream.cu_stream().cast();
                assert!(!handle.is_null(), "the default stream has no handle");
                handle
            }
        }
    }
}

/// The streams run nothing more: no copy, no record, no wait, no free.
pub(crate) fn stall(streams: Streams<'_>) {
    // SAFETY: it only compares the handle.
    unsafe { function::<unsafe extern "C" fn(*mut c_void)>("simcuda_stall")(streams.handle()) };
}

/// The stalled streams run so many operations more, each.
pub(crate) fn step(streams: Streams<'_>, operations: u64) {
    // SAFETY: it only compares the handle.
    unsafe {
        function::<unsafe extern "C" fn(*mut c_void, u64)>("simcuda_step")(
            streams.handle(),
            operations,
        )
    };
}

/// The streams run again as they like.
pub(crate) fn release(streams: Streams<'_>) {
    // SAFETY: it only compares the handle.
    unsafe { function::<unsafe extern "C" fn(*mut c_void)>("simcuda_release")(streams.handle()) };
}

/// What `work` copies, on this thread, may come from and go to memory that is not pinned, as in `clone_htod` and
/// `clone_dtoh` of cudarc. Elsewhere that is a violation.
pub(crate) fn pageable<T>(work: impl FnOnce() -> T) -> T {
    if !scripted() {
        return work();
    }
    let allow = function::<unsafe extern "C" fn(bool) -> bool>("simcuda_allow_pageable");
    // SAFETY: it has no conditions.
    let before = unsafe { allow(true) };
    let result = work();
    // SAFETY: as above.
    unsafe { allow(before) };
    result
}

fn plain(name: &str) {
    // SAFETY: those that are named here take and return nothing, and have no conditions.
    unsafe { function::<unsafe extern "C" fn()>(name)() };
}

/// A function of the driver that this process uses, of the type that it has there.
fn function<F: Copy>(name: &str) -> F {
    assert!(scripted(), "{name} needs the simulated driver");
    static DRIVER: OnceLock<Library> = OnceLock::new();
    let driver = DRIVER.get_or_init(|| {
        // SAFETY: the name is on the path before all others, and the driver does nothing when it is loaded. cudarc gets the same.
        unsafe { Library::new("libcuda.so") }.unwrap()
    });
    // SAFETY: the callers here name the types that `tests/simcuda/src/control.rs` has.
    *unsafe { driver.get::<F>(name) }.unwrap()
}
