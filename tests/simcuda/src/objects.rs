//! Streams and events.

use std::collections::VecDeque;
use std::ffi::{c_int, c_uint, c_void};
use std::sync::{Arc, MutexGuard};

use crate::clock::{Clock, Moment};
use crate::driver::{answer, enter_context, give};
use crate::state::{
    Code, Event, INVALID_HANDLE, INVALID_VALUE, NOT_READY, NOT_SUPPORTED, State, lock, sim, wait,
};
use crate::stream::{self, Operation, Stream, Token};

const LEGACY: usize = 1;
const PER_THREAD: usize = 2;

/// Makes a stream; the default one when `is_default`.
fn create(state: &mut State, context: usize, blocking: bool, is_default: bool) -> usize {
    let handle = state.handle();
    let number = state.stream_count;
    state.stream_count += 1;
    let stream = Stream {
        number,
        context,
        blocking,
        is_default,
        destroyed: false,
        excused: false,
        clock: Clock::default(),
        queue: VecDeque::new(),
        running: false,
        allowance: state.script.stall_new.then_some(0),
    };
    state.streams.insert(handle, stream);
    if !sim().settings.noop {
        stream::start(handle);
    }
    handle
}

/// The stream that a call names: its key.
pub(crate) fn find(
    state: &mut State,
    context: usize,
    stream: *mut c_void,
    name: &'static str,
) -> Result<usize, Code> {
    let handle = stream.addr();
    if handle == PER_THREAD {
        return Err(NOT_SUPPORTED);
    }
    if handle == 0 || handle == LEGACY {
        let found = state
            .streams
            .iter()
            .find(|(_, stream)| stream.is_default && stream.context == context)
            .map(|(handle, _)| *handle);
        return Ok(found.unwrap_or_else(|| create(state, context, false, true)));
    }
    match state.streams.get(&handle) {
        Some(found) if !found.destroyed => {
            if found.context != context {
                state.violation(format!("{name} on a stream of another context"));
                return Err(INVALID_HANDLE);
            }
            Ok(handle)
        }
        _ => {
            state.violation(format!("{name} on a stream that is destroyed or never was"));
            Err(INVALID_HANDLE)
        }
    }
}

/// What is known on a stream where its next operation begins; the default stream and blocking ones order each other.
fn order(state: &mut State, handle: usize) {
    if sim().settings.noop {
        return;
    }
    let (known, context) = (state.known.clone(), state.streams[&handle].context);
    let stream = state.streams.get_mut(&handle).expect("found before");
    stream.clock.join(&known);
    let (is_default, blocking) = (stream.is_default, stream.blocking);
    let others: Vec<usize> = state
        .streams
        .iter()
        .filter(|(_, other)| {
            other.context == context
                && ((is_default && other.blocking) || (blocking && other.is_default))
        })
        .map(|(other, _)| *other)
        .collect();
    for other in others {
        let (token, clock) = record(state, other);
        wait_for(state, handle, token, &clock);
    }
}

/// The next operation of a stream, and what is known when it begins.
pub(crate) fn begin(state: &mut State, handle: usize) -> (Moment, Clock) {
    order(state, handle);
    let stream = state.streams.get_mut(&handle).expect("found before");
    let moment = stream.clock.tick(stream.number);
    (moment, stream.clock.clone())
}

/// Puts an operation on a stream.
pub(crate) fn push(state: &mut State, handle: usize, operation: Operation) {
    let stream = state.streams.get_mut(&handle).expect("found before");
    stream.queue.push_back(operation);
    sim().changed.notify_all();
}

fn record(state: &mut State, handle: usize) -> (Arc<Token>, Clock) {
    let token = Arc::new(Token::default());
    if sim().settings.noop {
        token.fire();
        return (token, Clock::default());
    }
    let stream = state.streams.get_mut(&handle).expect("found before");
    let clock = stream.clock.clone();
    push(state, handle, Operation::Fire(token.clone()));
    (token, clock)
}

fn wait_for(state: &mut State, handle: usize, token: Arc<Token>, clock: &Clock) {
    let stream = state.streams.get_mut(&handle).expect("found before");
    stream.clock.join(clock);
    if !token.has_fired() {
        push(state, handle, Operation::Wait(token));
    }
}

/// Blocks until `token` has fired, and notes what the host knows then; or fails as the context has.
fn block(
    mut state: MutexGuard<'static, State>,
    context: usize,
    token: &Token,
    clock: &Clock,
) -> Result<(), Code> {
    loop {
        if let Some(code) = state.contexts[context].fault {
            return Err(code);
        }
        if token.has_fired() {
            state.known.join(clock);
            return Ok(());
        }
        state = wait(state);
    }
}

/// Blocks until what is on the stream by now is over.
pub(crate) fn drain(
    mut state: MutexGuard<'static, State>,
    context: usize,
    handle: usize,
) -> Result<(), Code> {
    if sim().settings.noop {
        return Ok(());
    }
    order(&mut state, handle);
    let (token, clock) = record(&mut state, handle);
    block(state, context, &token, &clock)
}

unsafe fn create_stream(
    name: &'static str,
    target: *mut *mut c_void,
    flags: c_uint,
) -> Result<(), Code> {
    let (mut state, context) = enter_context(name)?;
    if target.is_null() || flags > 1 {
        return Err(INVALID_VALUE);
    }
    let handle = create(&mut state, context, flags == 0, false);
    // SAFETY: the caller's promise.
    unsafe { give(target, handle as *mut c_void) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuStreamCreate(stream: *mut *mut c_void, flags: c_uint) -> Code {
    // SAFETY: the caller's promise.
    answer(unsafe { create_stream("cuStreamCreate", stream, flags) })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuStreamCreateWithPriority(
    stream: *mut *mut c_void,
    flags: c_uint,
    _priority: c_int,
) -> Code {
    // SAFETY: the caller's promise.
    answer(unsafe { create_stream("cuStreamCreateWithPriority", stream, flags) })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuStreamDestroy_v2(stream: *mut c_void) -> Code {
    answer((|| {
        let (mut state, context) = enter_context("cuStreamDestroy_v2").inspect_err(|_| {
            if let Some(stream) = lock().streams.get_mut(&stream.addr()) {
                stream.excused = true;
            }
        })?;
        let handle = stream.addr();
        if handle <= PER_THREAD {
            state.violation("cuStreamDestroy of a default stream");
            return Err(INVALID_HANDLE);
        }
        find(&mut state, context, stream, "cuStreamDestroy")?;
        // It goes when what is on it is over; the call does not wait.
        if sim().settings.noop {
            state.streams.remove(&handle);
        } else if let Some(stream) = state.streams.get_mut(&handle) {
            stream.destroyed = true;
        }
        sim().changed.notify_all();
        Ok(())
    })())
}

#[unsafe(no_mangle)]
pub extern "C" fn cuStreamSynchronize(stream: *mut c_void) -> Code {
    answer((|| {
        let (mut state, context) = enter_context("cuStreamSynchronize")?;
        let handle = find(&mut state, context, stream, "cuStreamSynchronize")?;
        drain(state, context, handle)
    })())
}

#[unsafe(no_mangle)]
pub extern "C" fn cuStreamQuery(stream: *mut c_void) -> Code {
    answer((|| {
        let (mut state, context) = enter_context("cuStreamQuery")?;
        let handle = find(&mut state, context, stream, "cuStreamQuery")?;
        let found = &state.streams[&handle];
        if found.running || !found.queue.is_empty() {
            return Err(NOT_READY);
        }
        let clock = found.clock.clone();
        state.known.join(&clock);
        Ok(())
    })())
}

#[unsafe(no_mangle)]
pub extern "C" fn cuCtxSynchronize() -> Code {
    answer((|| {
        let (mut state, context) = enter_context("cuCtxSynchronize")?;
        if sim().settings.noop {
            return Ok(());
        }
        let handles: Vec<usize> = state
            .streams
            .iter()
            .filter(|(_, stream)| stream.context == context && !stream.destroyed)
            .map(|(handle, _)| *handle)
            .collect();
        let recorded: Vec<_> = handles
            .into_iter()
            .map(|handle| record(&mut state, handle))
            .collect();
        drop(state);
        for (token, clock) in recorded {
            block(lock(), context, &token, &clock)?;
        }
        Ok(())
    })())
}

#[unsafe(no_mangle)]
pub extern "C" fn cuStreamWaitEvent(
    stream: *mut c_void,
    event: *mut c_void,
    _flags: c_uint,
) -> Code {
    answer((|| {
        let (mut state, context) = enter_context("cuStreamWaitEvent")?;
        let handle = find(&mut state, context, stream, "cuStreamWaitEvent")?;
        check_event(&mut state, event, "cuStreamWaitEvent")?;
        order(&mut state, handle);
        if let Some((token, clock)) = state.events[&event.addr()].recorded.clone() {
            wait_for(&mut state, handle, token, &clock);
        }
        Ok(())
    })())
}

fn check_event(state: &mut State, event: *mut c_void, name: &'static str) -> Result<(), Code> {
    if state.events.contains_key(&event.addr()) {
        return Ok(());
    }
    state.violation(format!("{name} of an event that is destroyed or never was"));
    Err(INVALID_HANDLE)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuEventCreate(event: *mut *mut c_void, _flags: c_uint) -> Code {
    answer((|| {
        let (mut state, context) = enter_context("cuEventCreate")?;
        if event.is_null() {
            return Err(INVALID_VALUE);
        }
        let handle = state.handle();
        let made = Event {
            context,
            recorded: None,
            excused: false,
        };
        state.events.insert(handle, made);
        // SAFETY: the caller's promise.
        unsafe { give(event, handle as *mut c_void) }
    })())
}

#[unsafe(no_mangle)]
pub extern "C" fn cuEventDestroy_v2(event: *mut c_void) -> Code {
    answer((|| {
        let (mut state, _) = enter_context("cuEventDestroy_v2").inspect_err(|_| {
            if let Some(event) = lock().events.get_mut(&event.addr()) {
                event.excused = true;
            }
        })?;
        check_event(&mut state, event, "cuEventDestroy")?;
        state.events.remove(&event.addr());
        Ok(())
    })())
}

#[unsafe(no_mangle)]
pub extern "C" fn cuEventRecord(event: *mut c_void, stream: *mut c_void) -> Code {
    answer((|| {
        let (mut state, context) = enter_context("cuEventRecord")?;
        let handle = find(&mut state, context, stream, "cuEventRecord")?;
        check_event(&mut state, event, "cuEventRecord")?;
        if state.events[&event.addr()].context != context {
            state.violation("cuEventRecord of an event of another context");
            return Err(INVALID_HANDLE);
        }
        order(&mut state, handle);
        let recorded = record(&mut state, handle);
        let event = state.events.get_mut(&event.addr()).expect("checked before");
        event.recorded = Some(recorded);
        Ok(())
    })())
}

#[unsafe(no_mangle)]
pub extern "C" fn cuEventQuery(event: *mut c_void) -> Code {
    answer((|| {
        let (mut state, _) = enter_context("cuEventQuery")?;
        check_event(&mut state, event, "cuEventQuery")?;
        match state.events[&event.addr()].recorded.clone() {
            // One that was never recorded is over.
            None => Ok(()),
            Some((token, clock)) if token.has_fired() => {
                state.known.join(&clock);
                Ok(())
            }
            Some(_) => Err(NOT_READY),
        }
    })())
}

#[unsafe(no_mangle)]
pub extern "C" fn cuEventSynchronize(event: *mut c_void) -> Code {
    answer((|| {
        let (mut state, context) = enter_context("cuEventSynchronize")?;
        check_event(&mut state, event, "cuEventSynchronize")?;
        match state.events[&event.addr()].recorded.clone() {
            None => Ok(()),
            Some((token, clock)) => block(state, context, &token, &clock),
        }
    })())
}

/// There is no time here: any two events are a millisecond apart.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuEventElapsedTime_v2(
    milliseconds: *mut f32,
    _start: *mut c_void,
    _end: *mut c_void,
) -> Code {
    answer((|| {
        let _entered = enter_context("cuEventElapsedTime_v2")?;
        // SAFETY: the caller's promise.
        unsafe { give(milliseconds, 1.0) }
    })())
}
