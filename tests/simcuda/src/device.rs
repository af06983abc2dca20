//! Memory of the device.

use std::ffi::c_void;
use std::ops::Bound;
use std::sync::Arc;

use crate::clock::{Clock, Moment};
use crate::driver::{answer, enter_context, give};
use crate::memory::{Block, DeviceMemory, Uses};
use crate::objects::{begin, find, push};
use crate::state::{Code, INVALID_VALUE, NOT_SUPPORTED, OUT_OF_MEMORY, State, lock, sim};
use crate::stream::{Operation, free};

/// It begins at multiples of this, and so much at least lies between.
const ALIGN: u64 = 512;

fn allocate(state: &mut State, context: usize, len: usize) -> Result<u64, Code> {
    if len == 0 {
        return Err(INVALID_VALUE);
    }
    let settings = &sim().settings;
    let allocated = state.contexts[context].allocated.saturating_add(len);
    if allocated > settings.memory {
        return Err(OUT_OF_MEMORY);
    }
    let block = if settings.noop {
        None
    } else {
        let block = Block::new(len, ALIGN as usize, true).ok_or(OUT_OF_MEMORY)?;
        Some(Arc::new(block))
    };
    state.contexts[context].allocated = allocated;
    let address = state.last_address;
    state.last_address = address + (len as u64).next_multiple_of(ALIGN) + ALIGN;
    let memory = DeviceMemory {
        len,
        context,
        block,
        freed: false,
        excused: false,
        uses: Uses::default(),
    };
    state.device.insert(address, memory);
    Ok(address)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemAlloc_v2(address: *mut u64, len: usize) -> Code {
    answer((|| {
        let (mut state, context) = enter_context("cuMemAlloc_v2")?;
        let allocated = allocate(&mut state, context, len)?;
        // SAFETY: the caller's promise.
        unsafe { give(address, allocated) }
    })())
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemAllocAsync(
    address: *mut u64,
    len: usize,
    stream: *mut c_void,
) -> Code {
    answer((|| {
        let (mut state, context) = enter_context("cuMemAllocAsync")?;
        if !sim().settings.pools {
            state.violation("cuMemAllocAsync where there is no stream-ordered allocation");
            return Err(NOT_SUPPORTED);
        }
        let handle = find(&mut state, context, stream, "cuMemAllocAsync")?;
        let allocated = allocate(&mut state, context, len)?;
        if !sim().settings.noop {
            let (moment, clock) = begin(&mut state, handle);
            // Whoever uses it comes after this.
            touch_device(
                &mut state,
                allocated,
                0,
                len,
                moment,
                &clock,
                true,
                "its allocation",
            );
        }
        // SAFETY: the caller's promise.
        unsafe { give(address, allocated) }
    })())
}

fn excuse_device(address: u64) {
    if let Some(memory) = lock().device.get_mut(&address) {
        memory.excused = true;
    }
}

/// Checks that memory may be freed, and notes that it is.
fn mark_freed(state: &mut State, address: u64, name: &'static str) -> Result<usize, Code> {
    match state.device.get_mut(&address) {
        Some(memory) if !memory.freed => {
            memory.freed = true;
            Ok(memory.len)
        }
        Some(_) => {
            state.violation(format!("{name} of device memory that is freed already"));
            Err(INVALID_VALUE)
        }
        None => {
            state.violation(format!("{name} of what is no device memory"));
            Err(INVALID_VALUE)
        }
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemFree_v2(address: u64) -> Code {
    answer((|| {
        let (mut state, _) =
            enter_context("cuMemFree_v2").inspect_err(|_| excuse_device(address))?;
        if address == 0 {
            return Ok(());
        }
        mark_freed(&mut state, address, "cuMemFree")?;
        let known = state.known.clone();
        if let Some(user) = state.device[&address].uses.unknown(&known) {
            state.violation(format!(
                "cuMemFree of device memory while nobody knows that {user} is over"
            ));
        }
        free(&mut state, address);
        Ok(())
    })())
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemFreeAsync(address: u64, stream: *mut c_void) -> Code {
    answer((|| {
        let (mut state, context) =
            enter_context("cuMemFreeAsync").inspect_err(|_| excuse_device(address))?;
        if address == 0 {
            return Ok(());
        }
        let handle = find(&mut state, context, stream, "cuMemFreeAsync")?;
        let len = mark_freed(&mut state, address, "cuMemFreeAsync")?;
        if sim().settings.noop {
            free(&mut state, address);
            return Ok(());
        }
        let (moment, clock) = begin(&mut state, handle);
        touch_device(
            &mut state, address, 0, len, moment, &clock, true, "its free",
        );
        push(&mut state, handle, Operation::Free { address });
        Ok(())
    })())
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemGetInfo_v2(free: *mut usize, total: *mut usize) -> Code {
    answer((|| {
        let (state, context) = enter_context("cuMemGetInfo_v2")?;
        let memory = sim().settings.memory;
        // SAFETY: the caller's promise.
        unsafe { give(free, memory - state.contexts[context].allocated) }?;
        // SAFETY: the caller's promise.
        unsafe { give(total, memory) }
    })())
}

#[expect(clippy::too_many_arguments)]
pub(crate) fn touch_device(
    state: &mut State,
    address: u64,
    offset: usize,
    len: usize,
    moment: Moment,
    clock: &Clock,
    writes: bool,
    what: &'static str,
) {
    let known = state.known.clone();
    let Some(memory) = state.device.get_mut(&address) else {
        return;
    };
    let bytes = offset..offset + len;
    let collision = memory
        .uses
        .touch(bytes, moment, writes, what, clock, &known);
    if let Some(earlier) = collision {
        state.violation(format!(
            "device memory: {what} is not ordered after {earlier}"
        ));
    }
}

/// The device memory that `len` bytes from `address` on lie in: where it begins, how far in, its bytes.
pub(crate) fn device_range(
    state: &mut State,
    address: u64,
    len: usize,
    name: &'static str,
) -> Result<(u64, usize, Arc<Block>), Code> {
    let below = state
        .device
        .range((Bound::Unbounded, Bound::Included(address)))
        .next_back();
    let Some((start, memory)) = below else {
        state.violation(format!("{name}: {address:#x} is no device memory"));
        return Err(INVALID_VALUE);
    };
    let (start, offset) = (*start, (address - start) as usize);
    let text = if offset >= memory.len {
        format!("{name}: {address:#x} is no device memory")
    } else if len > memory.len - offset {
        format!(
            "{name}: {len} bytes at {offset} of device memory that has {}",
            memory.len
        )
    } else if memory.freed {
        format!("{name}: the device memory is freed")
    } else if let Some(block) = memory.block.clone() {
        return Ok((start, offset, block));
    } else {
        format!("{name}: the device memory is gone")
    };
    state.violation(text);
    Err(INVALID_VALUE)
}
