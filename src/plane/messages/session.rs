//! What sessions and planes are called.

use core::hash::BuildHasher;

use alloc::format;
use alloc::string::String;
use std::hash::RandomState;

/// Makes a session id of an inlet's endpoint: `endpoint#` and 16 hexadecimal digits, which
/// are others each time.
///
/// A push for an inlet that has ended reaches the one that was started at the same
/// endpoint after it, as ZeroMQ connects again by itself. By the digits the new one knows
/// that the push is not for it.
///
/// # Examples
///
/// ```
/// use tensorwire::plane::messages::session_id;
///
/// let session = session_id("tcp://127.0.0.1:5555");
/// assert!(session.starts_with("tcp://127.0.0.1:5555#"));
/// assert_ne!(session, session_id("tcp://127.0.0.1:5555"));
/// ```
#[must_use]
pub fn session_id(endpoint: &str) -> String {
    format!("{endpoint}#{:016x}", unlikely())
}

/// Returns the endpoint that a session id was made of: all of it, if it was made otherwise.
#[cfg(feature = "zmq")]
pub(super) fn endpoint(session: &str) -> &str {
    let made = |digits: &str| digits.len() == 16 && digits.bytes().all(|b| b.is_ascii_hexdigit());
    match session.rsplit_once('#') {
        Some((endpoint, digits)) if made(digits) => endpoint,
        _ => session,
    }
}

/// Draws a number that no other plane or inlet has, but by an unlikely chance.
///
/// It is no secret: it is enough that two of them differ.
pub(super) fn unlikely() -> u64 {
    // Its keys are of the system's randomness, and others for each.
    RandomState::new().hash_one(0)
}

#[cfg(all(test, feature = "zmq"))]
mod tests {
    use super::*;

    #[test]
    fn the_endpoint_is_found_in_its_session_id() {
        for endpoint_given in [
            "tcp://[::1]:5555",
            "ipc:///tmp/#1",
            "ipc://a#0123456789abcdef",
            "",
        ] {
            assert_eq!(endpoint(&session_id(endpoint_given)), endpoint_given);
        }
        for whole in [
            "tcp://127.0.0.1:5555",
            "ipc:///tmp/#1",
            "x#0123456789abcdeg",
        ] {
            assert_eq!(endpoint(whole), whole);
        }
    }
}
