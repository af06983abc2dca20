//! What NNG counts by itself.
#![allow(unsafe_code)]

use core::ffi::{CStr, c_int};
use core::ptr::{self, NonNull};

use nng_sys::{nng_socket, nng_stat};

/// Tells for each connection of a socket how many messages it has taken: written to
/// the system in full, over ipc and tcp. Over inproc none are counted.
pub(in crate::transport::nng) fn each_transmitted(
    socket: nng_socket,
    mut tell: impl FnMut(c_int, u64),
) {
    let mut root = ptr::null_mut();
    // SAFETY: `nng_stats_get` asks for a place to put the pointer.
    if unsafe { nng_sys::nng_stats_get(&raw mut root) } != 0 {
        return;
    }
    let Some(root) = NonNull::new(root) else {
        return;
    };
    let snapshot = Snapshot(root);
    // SAFETY: `nng_socket_id` asks nothing.
    let socket = u64::try_from(unsafe { nng_sys::nng_socket_id(socket) }).ok();
    for scope in snapshot.children(root) {
        let value = |name| snapshot.value(scope, name);
        if snapshot.name(scope) != c"pipe" || value(c"socket") != socket {
            continue;
        }
        let pipe = value(c"id").and_then(|pipe| c_int::try_from(pipe).ok());
        if let (Some(pipe), Some(sent)) = (pipe, value(c"tx_msgs")) {
            tell(pipe, sent);
        }
    }
}

/// NNG's statistics at one time: a tree of its own.
struct Snapshot(NonNull<nng_stat>);

impl Snapshot {
    fn children(&self, of: NonNull<nng_stat>) -> impl Iterator<Item = NonNull<nng_stat>> {
        // SAFETY: `nng_stat_child` asks for a node of a tree: `of` is one, and the
        // tree lives as long as this value.
        let mut next = NonNull::new(unsafe { nng_sys::nng_stat_child(of.as_ptr()) });
        core::iter::from_fn(move || {
            let this = next?;
            // SAFETY: `nng_stat_next` asks the same.
            next = NonNull::new(unsafe { nng_sys::nng_stat_next(this.as_ptr()) });
            Some(this)
        })
    }

    fn name(&self, of: NonNull<nng_stat>) -> &CStr {
        // SAFETY: `nng_stat_name` asks for a node, as above.
        let name = unsafe { nng_sys::nng_stat_name(of.as_ptr()) };
        // SAFETY: `CStr::from_ptr` asks for a text that ends in NUL and does not change:
        // the names are texts of NNG's own code.
        unsafe { CStr::from_ptr(name) }
    }

    fn value(&self, of: NonNull<nng_stat>, name: &CStr) -> Option<u64> {
        let found = self.children(of).find(|&child| self.name(child) == name)?;
        // SAFETY: `nng_stat_value` asks for a node, as above. A number that identifies
        // lies in the lower half of it; the rest is zero.
        Some(unsafe { nng_sys::nng_stat_value(found.as_ptr()) })
    }
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        // SAFETY: `nng_stats_free` asks for a tree that is not used afterwards.
        unsafe { nng_sys::nng_stats_free(self.0.as_ptr()) };
    }
}
