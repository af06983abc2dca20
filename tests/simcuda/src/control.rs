//! What tests tell this driver, and ask it.

use std::ffi::{CStr, c_char, c_void};
use std::sync::atomic::Ordering;

use crate::script::{Failure, Random};
use crate::state::{Code, PAGEABLE, State, lock, sim, wait};

/// # Safety
///
/// `text` ends with a zero and is UTF-8.
unsafe fn text(text: *const c_char) -> String {
    // SAFETY: the caller says so.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str().expect("a name in UTF-8").to_owned()
}

/// Writes as much of `text` as there is room for; returns how long it is.
///
/// # Safety
///
/// `target` has `room` bytes.
unsafe fn put(text: &str, target: *mut u8, room: usize) -> usize {
    // SAFETY: the caller says so.
    unsafe { target.copy_from_nonoverlapping(text.as_ptr(), text.len().min(room)) };
    text.len()
}

/// What has been noted so far, a line each.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn simcuda_violations(target: *mut u8, room: usize) -> usize {
    let text = lock().violations.join("\n");
    // SAFETY: the caller's promise.
    unsafe { put(&text, target, room) }
}

#[unsafe(no_mangle)]
pub extern "C" fn simcuda_forget_violations() {
    lock().violations.clear();
}

/// How many objects are alive: pinned memory, registered memory, device memory, events, streams, contexts. What a
/// script kept from being released does not count.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn simcuda_live(target: *mut [usize; 6]) {
    let live = live(&lock());
    // SAFETY: the caller's promise.
    unsafe { target.write(live) };
}

fn live(state: &State) -> [usize; 6] {
    let host = || state.host.values().filter(|memory| !memory.excused);
    let device = state.device.values();
    let streams = state.streams.values();
    let contexts = state.contexts.iter();
    [
        host().filter(|memory| memory.block.is_some()).count(),
        host().filter(|memory| memory.block.is_none()).count(),
        device
            .filter(|memory| !memory.freed && !memory.excused)
            .count(),
        state.events.values().filter(|event| !event.excused).count(),
        streams
            .filter(|stream| !stream.destroyed && !stream.excused && !stream.is_default)
            .count(),
        contexts
            .map(|context| context.retained.saturating_sub(context.excused))
            .sum(),
    ]
}

/// Bytes of device memory that are allocated and not freed, by all contexts.
#[unsafe(no_mangle)]
pub extern "C" fn simcuda_device_bytes() -> usize {
    let state = lock();
    let live = state.device.values().filter(|memory| !memory.freed);
    live.map(|memory| memory.len).sum()
}

/// How often a call of this name was made; `*` for any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn simcuda_calls(name: *const c_char) -> u64 {
    // SAFETY: the caller's promise.
    let name = unsafe { text(name) };
    lock().script.calls.get(&*name).copied().unwrap_or(0)
}

/// How many calls were made to fail.
#[unsafe(no_mangle)]
pub extern "C" fn simcuda_failed() -> u64 {
    lock().script.failed
}

/// How many copies have run, or were made to break.
#[unsafe(no_mangle)]
pub extern "C" fn simcuda_copies() -> u64 {
    lock().script.copies_run
}

/// One call of this name, `*` for any, fails with `code`, after `after` more that do not.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn simcuda_fail(name: *const c_char, after: u64, code: Code) {
    // SAFETY: the caller's promise.
    let name = unsafe { text(name) };
    lock().script.failures.push(Failure { name, after, code });
}

/// So many of a million calls fail with `code`.
#[unsafe(no_mangle)]
pub extern "C" fn simcuda_fail_by_chance(of_a_million: u64, code: Code) {
    lock().script.chance = Some((of_a_million, code));
}

/// No further call is made to fail, and no copy.
#[unsafe(no_mangle)]
pub extern "C" fn simcuda_fail_no_more() {
    let script = &mut lock().script;
    script.failures.clear();
    script.chance = None;
    script.broken_copy = None;
}

/// After `after` more copies have run one breaks its context with `code`, for good.
#[unsafe(no_mangle)]
pub extern "C" fn simcuda_break_copy(after: u64, code: Code) {
    lock().script.broken_copy = Some((after, code));
}

/// What comes by chance from now on comes the same for the same seed, in one thread.
#[unsafe(no_mangle)]
pub extern "C" fn simcuda_seed(seed: u64) {
    lock().script.random = Random(seed);
}

/// Calls of this name wait, after `after` more that do not, until they are let go.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn simcuda_hold(name: *const c_char, after: u64) {
    // SAFETY: the caller's promise.
    let name = unsafe { text(name) };
    lock().script.held.push((name, after));
}

#[unsafe(no_mangle)]
pub extern "C" fn simcuda_let_go() {
    lock().script.held.clear();
    sim().changed.notify_all();
}

/// Blocks until so many calls wait since they are held.
#[unsafe(no_mangle)]
pub extern "C" fn simcuda_await_held(count: u64) {
    let mut state = lock();
    while state.script.held_now < count {
        state = wait(state);
    }
}

/// Which streams: null for all, those to come too.
fn each(state: &mut State, stream: *mut c_void, mut change: impl FnMut(&mut Option<u64>)) {
    for (handle, found) in &mut state.streams {
        if stream.is_null() || *handle == stream.addr() {
            change(&mut found.allowance);
        }
    }
    sim().changed.notify_all();
}

/// The stream, null for all and those to come, runs nothing more.
#[unsafe(no_mangle)]
pub extern "C" fn simcuda_stall(stream: *mut c_void) {
    let mut state = lock();
    if stream.is_null() {
        state.script.stall_new = true;
    }
    each(&mut state, stream, |allowance| *allowance = Some(0));
}

/// The stream, null for all, runs so many operations more: copies, records, waits, frees.
#[unsafe(no_mangle)]
pub extern "C" fn simcuda_step(stream: *mut c_void, operations: u64) {
    each(&mut lock(), stream, |allowance| {
        if let Some(allowance) = allowance {
            *allowance += operations;
        }
    });
}

/// The stream, null for all and those to come, runs as it likes.
#[unsafe(no_mangle)]
pub extern "C" fn simcuda_release(stream: *mut c_void) {
    let mut state = lock();
    if stream.is_null() {
        state.script.stall_new = false;
    }
    each(&mut state, stream, |allowance| *allowance = None);
}

/// How many operations wait on the streams, or run.
#[unsafe(no_mangle)]
pub extern "C" fn simcuda_pending() -> usize {
    pending(&lock())
}

fn pending(state: &State) -> usize {
    let streams = state.streams.values();
    streams
        .map(|stream| stream.queue.len() + usize::from(stream.running))
        .sum()
}

/// Blocks until nothing waits on the streams. What is known of what is over stays as it is.
#[unsafe(no_mangle)]
pub extern "C" fn simcuda_settle() {
    let mut state = lock();
    while pending(&state) > 0 {
        state = wait(state);
    }
}

/// The streams that are alive, in the order of their creation, without default ones; returns how many there are.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn simcuda_streams(target: *mut *mut c_void, room: usize) -> usize {
    let state = lock();
    let streams = state.streams.iter();
    let mut count = 0;
    for (handle, stream) in streams {
        if stream.is_default || stream.destroyed {
            continue;
        }
        if count < room {
            // SAFETY: the caller has room for so many.
            unsafe { target.add(count).write(*handle as *mut c_void) };
        }
        count += 1;
    }
    count
}

/// Whether this thread may copy from and to memory that is not pinned; returns whether it might before.
#[unsafe(no_mangle)]
pub extern "C" fn simcuda_allow_pageable(allowed: bool) -> bool {
    PAGEABLE.replace(allowed)
}

/// Whether the bytes are pinned, by either way.
#[unsafe(no_mangle)]
pub extern "C" fn simcuda_is_pinned(pointer: *const c_void, len: usize) -> bool {
    let state = lock();
    let below = state.host.range(..=pointer.addr()).next_back();
    below.is_some_and(|(start, memory)| {
        !memory.copies.cancelled.load(Ordering::SeqCst)
            && pointer.addr() + len <= start + memory.len
    })
}
