//! Pinned memory of the host.

use std::ffi::{c_uint, c_void};
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard};

use crate::driver::{answer, enter_context, give};
use crate::memory::{Block, Copies, HostMemory, Uses};
use crate::state::{
    ALREADY_REGISTERED, Code, INVALID_VALUE, NOT_REGISTERED, OUT_OF_MEMORY, PAGEABLE, State, lock,
    sim, wait,
};

const PAGE: usize = 4096;

fn overlapping(state: &State, start: usize, len: usize) -> bool {
    let before = state.host.range(..start.saturating_add(len)).next_back();
    before.is_some_and(|(at, memory)| at + memory.len > start)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemHostAlloc(
    target: *mut *mut c_void,
    len: usize,
    _flags: c_uint,
) -> Code {
    answer((|| {
        let (mut state, _) = enter_context("cuMemHostAlloc")?;
        if len == 0 || target.is_null() {
            return Err(INVALID_VALUE);
        }
        let block = Block::new(len, PAGE, !sim().settings.noop).ok_or(OUT_OF_MEMORY)?;
        let start = block.start();
        pin(&mut state, start.addr(), len, Some(Arc::new(block)));
        // SAFETY: the caller's promise.
        unsafe { give(target, start.cast()) }
    })())
}

fn pin(state: &mut State, start: usize, len: usize, block: Option<Arc<Block>>) {
    state
        .host_freed
        .retain(|(at, freed)| at + freed <= start || start + len <= *at);
    let memory = HostMemory {
        len,
        block,
        excused: false,
        copies: Arc::new(Copies::default()),
        uses: Uses::default(),
    };
    state.host.insert(start, memory);
}

fn excuse_host(start: usize) {
    if let Some(memory) = lock().host.get_mut(&start) {
        memory.excused = true;
    }
}

/// Takes pinned memory out of use; a copy that still uses it is a fault of the caller's, and does not run.
fn unpin(
    mut state: MutexGuard<'static, State>,
    start: usize,
    registered: bool,
    name: &'static str,
) -> Result<(), Code> {
    let Some(memory) = state.host.get(&start) else {
        state.violation(format!(
            "{name} of memory that is not pinned, or not from there on"
        ));
        return Err(if registered {
            NOT_REGISTERED
        } else {
            INVALID_VALUE
        });
    };
    if memory.block.is_none() != registered {
        state.violation(format!("{name} of memory that was pinned in another way"));
        return Err(INVALID_VALUE);
    }
    let known = state.known.clone();
    let (copies, user) = (memory.copies.clone(), memory.uses.unknown(&known));
    if let Some(user) = user {
        state.violation(format!(
            "{name} of pinned memory while nobody knows that {user} is over"
        ));
        copies.cancelled.store(true, Ordering::SeqCst);
        while copies.running.load(Ordering::SeqCst) > 0 {
            state = wait(state);
        }
    }
    if let Some(memory) = state.host.remove(&start) {
        state.host_freed.push((start, memory.len));
    }
    Ok(())
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemFreeHost(pointer: *mut c_void) -> Code {
    answer((|| {
        let start = pointer.addr();
        let (state, _) = enter_context("cuMemFreeHost").inspect_err(|_| excuse_host(start))?;
        unpin(state, start, false, "cuMemFreeHost")
    })())
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemHostRegister_v2(pointer: *mut c_void, len: usize, _flags: c_uint) -> Code {
    answer((|| {
        let (mut state, _) = enter_context("cuMemHostRegister_v2")?;
        if len == 0 || pointer.is_null() {
            return Err(INVALID_VALUE);
        }
        if overlapping(&state, pointer.addr(), len) {
            return Err(ALREADY_REGISTERED);
        }
        pin(&mut state, pointer.addr(), len, None);
        Ok(())
    })())
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemHostUnregister(pointer: *mut c_void) -> Code {
    answer((|| {
        let start = pointer.addr();
        let (state, _) =
            enter_context("cuMemHostUnregister").inspect_err(|_| excuse_host(start))?;
        unpin(state, start, true, "cuMemHostUnregister")
    })())
}

/// The pinned memory that `len` bytes from `at` on lie in: where it begins. `None`, noted, where they do not.
pub(crate) fn pinned_range(
    state: &mut State,
    at: usize,
    len: usize,
    name: &'static str,
) -> Option<usize> {
    let below = state.host.range(..=at).next_back();
    if let Some((start, memory)) = below.filter(|(start, memory)| at - *start < memory.len) {
        let room = memory.len - (at - start);
        if len <= room {
            return Some(*start);
        }
        state.violation(format!(
            "{name}: {len} bytes of pinned memory where {room} are left"
        ));
        return None;
    }
    if PAGEABLE.get() {
        return None;
    }
    let freed = state
        .host_freed
        .iter()
        .any(|(start, freed)| at < start + freed && *start < at + len);
    state.violation(if freed {
        format!("{name}: memory that was pinned, and was freed")
    } else {
        format!("{name}: memory that is not pinned")
    });
    None
}
