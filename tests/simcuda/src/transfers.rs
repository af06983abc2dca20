//! Memory of both sides, and copies between them.

use std::ffi::{c_uchar, c_uint, c_void};
use std::ops::Bound;
use std::sync::Arc;
use std::sync::MutexGuard;
use std::sync::atomic::Ordering;

use crate::clock::{Clock, Moment};
use crate::driver::{answer, enter_context, give};
use crate::memory::{Block, Copies, DeviceMemory, Hash, HostMemory, PENDING, Uses};
use crate::objects::{drain, find, order, push};
use crate::state::{
    ALREADY_REGISTERED, Code, INVALID_VALUE, NOT_REGISTERED, NOT_SUPPORTED, OUT_OF_MEMORY,
    PAGEABLE, State, lock, sim, wait,
};
use crate::stream::{Copy, Operation, Place};

/// Device memory begins at multiples of this, and so much at least lies between.
const DEVICE_ALIGN: u64 = 512;
const PAGE: usize = 4096;

// ---- memory of the device ----

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
        let block = Block::new(len, DEVICE_ALIGN as usize, true).ok_or(OUT_OF_MEMORY)?;
        Some(Arc::new(block))
    };
    state.contexts[context].allocated = allocated;
    let address = state.last_address;
    state.last_address = address + (len as u64).next_multiple_of(DEVICE_ALIGN) + DEVICE_ALIGN;
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
        crate::stream::free(&mut state, address);
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
            crate::stream::free(&mut state, address);
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

// ---- pinned memory ----

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

// ---- copies ----

/// The next operation of a stream, and what is known when it begins.
fn begin(state: &mut State, handle: usize) -> (Moment, Clock) {
    order(state, handle);
    let stream = state.streams.get_mut(&handle).expect("found before");
    let moment = stream.clock.tick(stream.number);
    (moment, stream.clock.clone())
}

#[expect(clippy::too_many_arguments)]
fn touch_device(
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

/// One end of a copy.
#[derive(Clone, Copy)]
enum End {
    Device(u64),
    Host(*mut u8),
}

/// An end that was checked: which memory it lies in, and how far in.
enum Found {
    Device {
        start: u64,
        offset: usize,
        block: Arc<Block>,
    },
    Pageable(*mut u8),
    Pinned {
        start: usize,
        pointer: *mut u8,
    },
}

/// Checks one end of a copy.
fn resolve(state: &mut State, end: End, len: usize, name: &'static str) -> Result<Found, Code> {
    match end {
        End::Device(address) => {
            let (start, offset, block) = device_range(state, address, len, name)?;
            Ok(Found::Device {
                start,
                offset,
                block,
            })
        }
        End::Host(pointer) => match pinned_range(state, pointer.addr(), len, name) {
            Some(start) => Ok(Found::Pinned { start, pointer }),
            None if PAGEABLE.get() => Ok(Found::Pageable(pointer)),
            // Noted already. A driver would do it, at another pace; here it ends.
            None => Err(INVALID_VALUE),
        },
    }
}

/// Notes the use of one end.
fn place(
    state: &mut State,
    found: Found,
    len: usize,
    moment: Moment,
    clock: &Clock,
    writes: bool,
    name: &'static str,
) -> Place {
    match found {
        Found::Device {
            start,
            offset,
            block,
        } => {
            touch_device(state, start, offset, len, moment, clock, writes, name);
            Place {
                start: block.start().wrapping_add(offset),
                _block: Some(block),
                copies: None,
            }
        }
        Found::Pageable(pointer) => Place {
            start: pointer,
            _block: None,
            copies: None,
        },
        Found::Pinned { start, pointer } => {
            let known = state.known.clone();
            let memory = state.host.get_mut(&start).expect("found before");
            let (block, copies) = (memory.block.clone(), Some(memory.copies.clone()));
            let offset = pointer.addr() - start;
            let bytes = offset..offset + len;
            let collision = memory
                .uses
                .touch(bytes, moment, writes, name, clock, &known);
            if let Some(earlier) = collision {
                state.violation(format!(
                    "pinned memory: {name} is not ordered after {earlier}"
                ));
            }
            Place {
                start: pointer,
                _block: block,
                copies,
            }
        }
    }
}

/// The device memory that `len` bytes from `address` on lie in: where it begins, how far in, its bytes.
fn device_range(
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

/// The pinned memory that `len` bytes from `at` on lie in: where it begins. `None`, noted, where they do not.
fn pinned_range(state: &mut State, at: usize, len: usize, name: &'static str) -> Option<usize> {
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

fn copy(
    name: &'static str,
    from: End,
    to: End,
    len: usize,
    stream: Option<*mut c_void>,
) -> Result<(), Code> {
    let (mut state, context) = enter_context(name)?;
    let pageable = PAGEABLE.replace(PAGEABLE.get() || stream.is_none());
    let outcome = enqueue(&mut state, context, name, from, to, len, stream);
    PAGEABLE.set(pageable);
    let (handle, waits) = outcome?;
    match handle {
        Some(handle) if waits || stream.is_none() => drain(state, context, handle),
        _ => Ok(()),
    }
}

/// Puts a copy on its stream; returns that stream, and whether the call has to wait for it.
fn enqueue(
    state: &mut State,
    context: usize,
    name: &'static str,
    from: End,
    to: End,
    len: usize,
    stream: Option<*mut c_void>,
) -> Result<(Option<usize>, bool), Code> {
    let handle = find(state, context, stream.unwrap_or_default(), name)?;
    if len == 0 || sim().settings.noop {
        return Ok((None, false));
    }
    let from_found = resolve(state, from, len, name)?;
    let to_found = resolve(state, to, len, name)?;
    let (moment, clock) = begin(state, handle);
    let from_place = place(state, from_found, len, moment, &clock, false, name);
    let to_place = place(state, to_found, len, moment, &clock, true, name);
    let pageable_to = matches!(to, End::Host(_)) && to_place.copies.is_none();
    let pageable_from = matches!(from, End::Host(_)) && from_place.copies.is_none();
    let hash = matches!(from, End::Host(_)).then(|| {
        let mut hash = Hash::new();
        // SAFETY: the caller promises `len` bytes there; for pinned memory that was checked.
        hash.update(unsafe { std::slice::from_raw_parts(from_place.start, len) });
        hash
    });
    let pending = matches!(to, End::Host(_));
    if pending {
        // SAFETY: the caller gives the bytes away until the copy has run; for pinned memory they were checked.
        unsafe { to_place.start.write_bytes(PENDING, len) };
    }
    let copy = Copy {
        from: from_place,
        to: to_place,
        len,
        hash,
        pending,
        what: format!("{name} of {len} bytes"),
    };
    push(state, handle, Operation::Copy(copy));
    Ok((Some(handle), pageable_from || pageable_to))
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemcpyHtoDAsync_v2(
    to: u64,
    from: *const c_void,
    len: usize,
    stream: *mut c_void,
) -> Code {
    let from = End::Host(from.cast::<u8>().cast_mut());
    answer(copy(
        "cuMemcpyHtoDAsync_v2",
        from,
        End::Device(to),
        len,
        Some(stream),
    ))
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemcpyDtoHAsync_v2(
    to: *mut c_void,
    from: u64,
    len: usize,
    stream: *mut c_void,
) -> Code {
    let to = End::Host(to.cast());
    answer(copy(
        "cuMemcpyDtoHAsync_v2",
        End::Device(from),
        to,
        len,
        Some(stream),
    ))
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemcpyDtoDAsync_v2(
    to: u64,
    from: u64,
    len: usize,
    stream: *mut c_void,
) -> Code {
    let (from, to) = (End::Device(from), End::Device(to));
    answer(copy("cuMemcpyDtoDAsync_v2", from, to, len, Some(stream)))
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemcpyHtoD_v2(to: u64, from: *const c_void, len: usize) -> Code {
    let from = End::Host(from.cast::<u8>().cast_mut());
    answer(copy("cuMemcpyHtoD_v2", from, End::Device(to), len, None))
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemcpyDtoH_v2(to: *mut c_void, from: u64, len: usize) -> Code {
    answer(copy(
        "cuMemcpyDtoH_v2",
        End::Device(from),
        End::Host(to.cast()),
        len,
        None,
    ))
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemcpyDtoD_v2(to: u64, from: u64, len: usize) -> Code {
    let (from, to) = (End::Device(from), End::Device(to));
    answer(copy("cuMemcpyDtoD_v2", from, to, len, None))
}

fn fill(
    name: &'static str,
    to: u64,
    value: u8,
    len: usize,
    stream: Option<*mut c_void>,
) -> Result<(), Code> {
    let (mut state, context) = enter_context(name)?;
    let handle = find(&mut state, context, stream.unwrap_or_default(), name)?;
    if len == 0 || sim().settings.noop {
        return Ok(());
    }
    let found = resolve(&mut state, End::Device(to), len, name)?;
    let (moment, clock) = begin(&mut state, handle);
    let to = place(&mut state, found, len, moment, &clock, true, name);
    push(&mut state, handle, Operation::Fill { to, len, value });
    match stream {
        None => drain(state, context, handle),
        Some(_) => Ok(()),
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemsetD8Async(
    to: u64,
    value: c_uchar,
    len: usize,
    stream: *mut c_void,
) -> Code {
    answer(fill("cuMemsetD8Async", to, value, len, Some(stream)))
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemsetD8_v2(to: u64, value: c_uchar, len: usize) -> Code {
    answer(fill("cuMemsetD8_v2", to, value, len, None))
}
