//! What the simulated driver answers, and what it is told to do: `tests/simcuda/src/control.rs`, from the side of
//! a test.

use std::ffi::{CString, c_char, c_void};
use std::sync::OnceLock;

use cudarc::driver::CudaStream;
use cudarc::driver::sys::CUresult;
use libloading::Library;

use super::scripted;

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
        // SAFETY: the name is on the path before all others, and the driver does nothing when it is loaded.
        // cudarc gets the same.
        unsafe { Library::new("libcuda.so") }.unwrap()
    });
    // SAFETY: the callers here name the types that `tests/simcuda/src/control.rs` has.
    *unsafe { driver.get::<F>(name) }.unwrap()
}
