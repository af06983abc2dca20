//! Scans for the ends of tokens as Python writes them.
//!
//! None of these knows an error: what they do not take is left to the cursor,
//! which does.

use super::fingerprint::Fingerprint;

#[inline]
pub(crate) const fn starts_white(bytes: &[u8]) -> bool {
    matches!(bytes, [b' ' | b'\t' | b'\n' | b'\r', ..])
}

/// What follows the string here, or `None` if it has escapes or is none.
#[inline(always)]
pub(crate) fn past_plain_string(bytes: &[u8]) -> Option<&[u8]> {
    let rest = bytes.strip_prefix(b"\"")?;
    match rest.get(plain_run(rest)..)? {
        [b'"', rest @ ..] => Some(rest),
        _ => None,
    }
}

/// What follows the number here, or `None` if it has an exponent or is none.
#[inline(always)]
pub(crate) fn past_plain_number(bytes: &[u8]) -> Option<&[u8]> {
    let rest = match bytes {
        [b'-', rest @ ..] => rest,
        _ => bytes,
    };
    let rest = match rest {
        [b'1'..=b'9', rest @ ..] => past_digits(rest),
        [b'0', rest @ ..] => rest,
        _ => return None,
    };
    let rest = match rest {
        [b'.', b'0'..=b'9', rest @ ..] => past_digits(rest),
        _ => rest,
    };
    match rest {
        [b'0'..=b'9' | b'.' | b'e' | b'E', ..] => None,
        _ => Some(rest),
    }
}

#[inline]
pub(crate) fn past_digits(bytes: &[u8]) -> &[u8] {
    let mut rest = bytes;
    while let [b'0'..=b'9', tail @ ..] = rest {
        rest = tail;
    }
    rest
}

/// What follows the first members of an object, which starts at a key, as far
/// as they are written without white space and their values are plain.
///
/// Stops before a comma or brace, or wherever else a value ends.
pub(crate) fn past_plain_members(bytes: &[u8]) -> Option<&[u8]> {
    let mut members = bytes;
    let mut ended = None;
    while let Some(rest) = past_plain_member(members) {
        ended = Some(rest);
        match rest {
            [b',', next @ ..] => members = next,
            _ => break,
        }
    }
    ended
}

#[inline(always)]
fn past_plain_member(bytes: &[u8]) -> Option<&[u8]> {
    let [b':', value @ ..] = past_plain_string(bytes)? else {
        return None;
    };
    match value.first()? {
        b'"' => past_plain_string(value),
        b'-' | b'0'..=b'9' => past_plain_number(value),
        b't' => value.strip_prefix(b"true"),
        b'f' => value.strip_prefix(b"false"),
        b'n' => value.strip_prefix(b"null"),
        _ => None,
    }
}

/// How many bytes at the start of `bytes` are neither `"` nor `\` nor a control character.
#[inline(always)]
pub(crate) fn plain_run(bytes: &[u8]) -> usize {
    let mut rest = bytes;
    while let Some((chunk, tail)) = rest.split_first_chunk::<8>() {
        if let Some(bits) = special(u64::from_le_bytes(*chunk)) {
            let index = usize::try_from(bits >> 3).unwrap_or_default();
            return bytes.len().wrapping_sub(rest.len()).wrapping_add(index);
        }
        rest = tail;
    }
    let before = bytes.len().wrapping_sub(rest.len());
    before.wrapping_add(plain_bytes(rest))
}

/// As [`plain_run`], for the end of a text.
#[inline(never)]
fn plain_bytes(bytes: &[u8]) -> usize {
    let plain = |byte: &&u8| **byte >= b' ' && **byte != b'"' && **byte != b'\\';
    bytes.iter().take_while(plain).count()
}

/// How many bytes at the start of `bytes` Python writes as they are.
#[inline]
pub(crate) fn bare_run(bytes: &[u8]) -> usize {
    let (words, end) = bytes.as_chunks::<8>();
    let mut run: usize = 0;
    for word in words {
        let word = u64::from_le_bytes(*word);
        // As in `special`; DEL and whatever is not ASCII are sought as well.
        let quote = (word ^ QUOTES).wrapping_sub(ONES);
        let backslash = (word ^ BACKSLASHES).wrapping_sub(ONES);
        let delete = (word ^ DELETES).wrapping_sub(ONES);
        let control = word.wrapping_sub(SPACES);
        let found = (quote | backslash | delete | control | word) & HIGHS;
        if found != 0 {
            let index = usize::try_from(found.trailing_zeros() >> 3).unwrap_or_default();
            return run.wrapping_add(index);
        }
        run = run.wrapping_add(8);
    }
    let bare = |byte: &&u8| is_bare(**byte);
    run.wrapping_add(end.iter().take_while(bare).count())
}

/// Whether Python writes the byte as it is.
pub(crate) const fn is_bare(byte: u8) -> bool {
    matches!(byte, b' '..=b'~') && byte != b'"' && byte != b'\\'
}

/// As [`plain_run`], with the fingerprint of the run, whose words are at hand.
#[inline(always)]
pub(crate) fn plain_run_hashed(bytes: &[u8], key: u64) -> (usize, u32) {
    let mut fingerprint = Fingerprint::new(key);
    let mut rest = bytes;
    let mut previous: u64 = 0;
    while let Some((chunk, tail)) = rest.split_first_chunk::<8>() {
        let word = u64::from_le_bytes(*chunk);
        if let Some(bits) = special(word) {
            let index = usize::try_from(bits >> 3).unwrap_or_default();
            let length = bytes.len().wrapping_sub(rest.len()).wrapping_add(index);
            // The last eight bytes of the run, or with zeros below what there is.
            let new = word.wrapping_shl(63_u32.wrapping_sub(bits)) << 1;
            let window = previous.wrapping_shr(bits) | new;
            let hash = fingerprint.finish_with(window, length);
            return (length, Fingerprint::upper(hash));
        }
        fingerprint.mix(word);
        previous = word;
        rest = tail;
    }
    // No descriptor ends this close to the end of its frame.
    (bytes.len(), 0)
}

/// Where in a word of eight bytes, in bits, the first `"` or `\` or control character is.
#[inline(always)]
fn special(word: u64) -> Option<u32> {
    // In each term the lowest high bit set marks the first byte sought, or
    // one that is not ASCII: a borrow only runs from such a byte upwards.
    let quote = (word ^ QUOTES).wrapping_sub(ONES);
    let backslash = (word ^ BACKSLASHES).wrapping_sub(ONES);
    let control = word.wrapping_sub(SPACES);
    let found = (quote | backslash | control) & !word & HIGHS;
    (found != 0).then(|| found.trailing_zeros() & 56)
}

const ONES: u64 = u64::from_le_bytes([0x01; 8]);
const HIGHS: u64 = u64::from_le_bytes([0x80; 8]);
const QUOTES: u64 = u64::from_le_bytes([b'"'; 8]);
const BACKSLASHES: u64 = u64::from_le_bytes([b'\\'; 8]);
const DELETES: u64 = u64::from_le_bytes([0x7f; 8]);
const SPACES: u64 = u64::from_le_bytes([b' '; 8]);

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec;

    #[test]
    fn a_run_ends_at_the_first_special_byte_wherever_it_lies() {
        for special in (0..=255_u8).filter(|&b| b < 0x20 || b == b'"' || b == b'\\') {
            for length in 0..40 {
                for filler in [
                    b'a', b' ', b'!', b'#', b'[', b']', 0x7f, 0x80, 0xff, 0xa2, 0xdc,
                ] {
                    let mut bytes = vec![filler; length];
                    assert_eq!(plain_run(&bytes), length);
                    bytes.push(special);
                    bytes.extend([b'"', b'\\', 0, filler]);
                    assert_eq!(plain_run(&bytes), length, "{special} after {filler}");
                }
            }
        }
    }

    #[test]
    fn a_bare_run_ends_at_the_first_byte_that_is_escaped_wherever_it_lies() {
        for byte in 0..=255 {
            for length in 0..40 {
                let mut bytes = vec![b'~'; length];
                bytes.extend([byte, b'"', 0x7f, 0x80]);
                let expected = bytes.iter().position(|&byte| !is_bare(byte));
                assert_eq!(Some(bare_run(&bytes)), expected, "{byte} at {length}");
            }
        }
    }
}
