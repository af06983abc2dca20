//! What libzmq lets pass of an endpoint, and should not.

use super::Error;

/// What an endpoint is for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Use {
    Bind,
    Connect,
}

/// Checks the ports of a `tcp` endpoint: libzmq reads the digits that a port starts
/// with, takes them modulo 65536, and so has `99999` mean 34463.
///
/// What else may be wrong libzmq sees by itself.
pub(super) fn check(endpoint: &str, using: Use) -> Result<(), Error> {
    let Some(address) = endpoint.strip_prefix("tcp://") else {
        return Ok(());
    };
    let (source, peer) = match address.rsplit_once(';') {
        Some((source, peer)) => (Some(source), peer),
        None => (None, address),
    };
    // The source is an address of this host, to which the socket is bound.
    let source_is_fine = source.is_none_or(|source| has_port(source, Use::Bind));
    if source_is_fine && has_port(peer, using) {
        return Ok(());
    }
    let errno = zmq_sys::errno::EINVAL;
    Err(Error::Endpoint { errno })
}

/// Tells whether `address` ends in a port; any port, `*` or 0, is one to bind to only.
fn has_port(address: &str, using: Use) -> bool {
    let Some((_, port)) = address.rsplit_once(':') else {
        return false;
    };
    // A number may have a sign as Rust reads it.
    let digits = port.bytes().all(|byte| byte.is_ascii_digit());
    match (port, using) {
        ("*", using) => using == Use::Bind,
        _ if !digits => false,
        (port, using) => match port.parse::<u16>() {
            Ok(0) => using == Use::Bind,
            Ok(_) => true,
            Err(_) => false,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// (endpoint, whether to bind to it, whether to connect to it)
    const ENDPOINTS: &[(&str, bool, bool)] = &[
        ("tcp://127.0.0.1:1", true, true),
        ("tcp://127.0.0.1:65535", true, true),
        ("tcp://[::1]:5555", true, true),
        ("tcp://eth0:*;10.0.0.1:5555", true, true),
        ("tcp://eth0:0;[::1]:5555", true, true),
        ("ipc:///tmp/a:99999", true, true),
        ("inproc://a:-1", true, true),
        ("tcp://127.0.0.1:*", true, false),
        ("tcp://*:0", true, false),
        ("tcp://[::1]:*", true, false),
        ("tcp://127.0.0.1:65536", false, false),
        ("tcp://127.0.0.1:99999", false, false),
        ("tcp://127.0.0.1:18446744073709551617", false, false),
        ("tcp://127.0.0.1:-1", false, false),
        ("tcp://127.0.0.1:+80", false, false),
        ("tcp://127.0.0.1: 80", false, false),
        ("tcp://127.0.0.1:80x", false, false),
        ("tcp://127.0.0.1:8*", false, false),
        ("tcp://127.0.0.1:", false, false),
        ("tcp://127.0.0.1", false, false),
        ("tcp://[::1]", false, false),
        ("tcp://[::1]:65536", false, false),
        ("tcp://eth0:65536;10.0.0.1:5555", false, false),
        ("tcp://eth0:1;10.0.0.1:65536", false, false),
    ];

    #[test]
    fn a_port_is_a_number_that_fits_or_any_to_bind_to() {
        for &(endpoint, bind, connect) in ENDPOINTS {
            assert_eq!(check(endpoint, Use::Bind).is_ok(), bind, "bind {endpoint}");
            let connected = check(endpoint, Use::Connect).is_ok();
            assert_eq!(connected, connect, "connect {endpoint}");
        }
    }
}
