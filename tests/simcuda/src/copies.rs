//! Copies between memory of both sides.

use std::ffi::{c_uchar, c_void};
use std::sync::Arc;

use crate::clock::{Clock, Moment};
use crate::device::{device_range, touch_device};
use crate::driver::{answer, enter_context};
use crate::memory::{Block, Hash, PENDING};
use crate::objects::{begin, drain, find, push};
use crate::pinned::pinned_range;
use crate::state::{Code, INVALID_VALUE, PAGEABLE, State, sim};
use crate::stream::{Copy, Operation, Place};

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
