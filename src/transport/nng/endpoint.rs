//! Endpoints: what NNG would take and never connect to, and what it calls its own.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;

use ::nng::options::{LocalAddr, Options as _, Url};
use ::nng::{Listener, SocketAddr};

use super::Error;

/// Refuses an endpoint over tcp whose port is none.
///
/// To listen at, the port may be 0, or not be said. NNG looks ports up, as it does
/// hosts, when it connects, and would try again without end.
pub(super) fn check(endpoint: &str, listens: bool) -> Result<(), Error> {
    let Some((_, authority)) = tcp(endpoint) else {
        return Ok(());
    };
    // That of IPv6 has colons of its own.
    let after = authority.rfind(']').unwrap_or_default();
    let after = authority.get(after..).unwrap_or_default();
    let Some((_, port)) = after.split_once(':') else {
        return Ok(());
    };
    // One with a letter is the name of a service.
    let lawful = match port.parse::<u16>() {
        Ok(number) => listens || number > 0,
        Err(_) => port.contains(|c: char| c.is_ascii_alphabetic()),
    };
    match lawful {
        true => Ok(()),
        false => Err(Error::Endpoint(::nng::Error::AddressInvalid)),
    }
}

/// Returns the endpoint that `listener` listens at: `endpoint` with what the system chose.
pub(super) fn actual(listener: &Listener, endpoint: &str) -> String {
    let url = listener.get_opt::<Url>();
    let url = url.unwrap_or_else(|_| endpoint.to_owned());
    match tcp(&url) {
        // NNG leaves the host out that stands for all addresses.
        Some((scheme, port)) if port.starts_with(':') => {
            let all = match listener.get_opt::<LocalAddr>() {
                Ok(SocketAddr::Inet6(_)) => "[::]",
                _ => "0.0.0.0",
            };
            format!("{scheme}://{all}{port}")
        }
        _ => url,
    }
}

/// Returns the scheme, and the host and port, if it is an endpoint over tcp.
fn tcp(endpoint: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = endpoint.split_once("://")?;
    let known = ["tcp", "tcp4", "tcp6"];
    known.iter().find(|tcp| scheme.eq_ignore_ascii_case(tcp))?;
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    Some((scheme, rest.get(..end)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_that_are_none_are_refused_before_anything_waits_for_them() {
        // (endpoint, whether to listen at, whether to dial)
        let cases = [
            ("tcp://127.0.0.1:5555", true, true),
            ("tcp://127.0.0.1:65535/", true, true),
            ("tcp://[::1]:5555", true, true),
            ("tcp6://[::1]:5555", true, true),
            ("tcp://host:http", true, true),
            ("tcp://127.0.0.1:0", true, false),
            ("tcp://127.0.0.1:00", true, false),
            ("tcp://*:0", true, false),
            ("tcp://[::]:0", true, false),
            ("tcp://127.0.0.1:*", false, false),
            ("tcp://[::1]:*", false, false),
            ("TCP4://127.0.0.1:*/", false, false),
            ("tcp://127.0.0.1:65536", false, false),
            ("tcp://127.0.0.1:99999999999999999999", false, false),
            ("tcp://127.0.0.1:-1", false, false),
            ("tcp://127.0.0.1:", false, false),
            ("tcp://127.0.0.1:80 ", false, false),
            ("tcp://::1:80", false, false),
            // Not ours to tell.
            ("tcp://127.0.0.1", true, true),
            ("ipc:///tmp/a:*", true, true),
            ("inproc://a:*", true, true),
            ("a:*", true, true),
        ];
        for (endpoint, listens, dials) in cases {
            assert_eq!(check(endpoint, true).is_ok(), listens, "{endpoint}");
            assert_eq!(check(endpoint, false).is_ok(), dials, "{endpoint}");
        }
    }
}
