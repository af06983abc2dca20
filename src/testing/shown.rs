//! Bytes in the output of a failed test.

use core::fmt;

/// Bytes as a text, the first of them if they are many.
pub(super) struct Shown<'a>(pub(super) &'a [u8]);

impl fmt::Debug for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let start = self.0.get(..MOST).unwrap_or(self.0);
        write!(f, "b\"{}\"", start.escape_ascii())?;
        match self.0.len().checked_sub(start.len()) {
            None | Some(0) => Ok(()),
            Some(more) => write!(f, " and {more} bytes"),
        }
    }
}

/// Bytes shown.
const MOST: usize = 4096;

#[cfg(test)]
mod tests {
    use alloc::format;

    use super::*;

    #[test]
    fn the_first_bytes_are_shown_and_the_others_counted() {
        assert_eq!(format!("{:?}", Shown(b"a\"\xff")), "b\"a\\\"\\xff\"");
        let shown = format!("{:?}", Shown(&[b'x'; MOST + 7]));
        assert_eq!(shown, format!("b\"{}\" and 7 bytes", "x".repeat(MOST)));
    }
}
