//! Whatever `Value::parse` takes, reads and refuses is what serde_json and a naive parser say.

use serde::de::IgnoredAny;
use tensorwire::error::DecodeErrorKind;
use tensorwire::json::Value;

use super::check;
use super::naive::Node;

/// [`tensorwire::Limits::MAX_DEPTH`], which `Value::parse` allows.
const MAX_DEPTH: usize = 128;

pub fn run(data: &[u8]) {
    let result = Value::parse(data);
    let strict = Value::parse_strict(data);
    for error in [result.err(), strict.err()].into_iter().flatten() {
        check::error(error, &[data]);
    }
    let Ok(text) = str::from_utf8(data) else {
        for error in [result.unwrap_err(), strict.unwrap_err()] {
            assert_eq!(error.kind(), DecodeErrorKind::InvalidUtf8);
        }
        return;
    };

    let node = Node::parse(text, MAX_DEPTH);
    assert_eq!(result.is_ok(), node.is_some());
    let is_strict = node.as_ref().is_some_and(Node::is_strict);
    assert_eq!(strict.is_ok(), is_strict);

    // serde_json, reading for syntax alone, has the RFC's grammar: it takes
    // lone surrogates and numbers of any size. It differs in depth alone.
    let accepted = serde_json::from_str::<IgnoredAny>(text).is_ok();
    let too_deep = DecodeErrorKind::DepthLimit { limit: MAX_DEPTH };
    if strict.is_err_and(|error| error.kind() == too_deep) {
        assert!(
            text.bytes()
                .filter(|byte| matches!(byte, b'[' | b'{'))
                .count()
                > MAX_DEPTH
        );
    } else {
        assert_eq!(strict.is_ok(), accepted);
    }

    if let (Ok(value), Some(node)) = (result, node) {
        check::value(text, value, &node);
    }
}
