//! Strings on their way into a type.

use serde::de::Visitor;

use crate::error::DeserializeError;
use crate::json::Str;

/// A string, and where it stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Text<'a> {
    pub(super) text: Str<'a>,
    pub(super) offset: usize,
}

impl<'a> Text<'a> {
    pub(super) const fn new(text: Str<'a>, offset: usize) -> Self {
        Self {
            text: text.at(offset),
            offset,
        }
    }

    pub(super) fn visit<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, DeserializeError> {
        match self.text.as_plain() {
            Some(text) => visitor.visit_borrowed_str(text),
            None => self.visit_unescaped(visitor),
        }
    }

    pub(super) fn visit_bytes<V: Visitor<'a>>(
        self,
        visitor: V,
    ) -> Result<V::Value, DeserializeError> {
        match self.text.as_plain() {
            Some(text) => visitor.visit_borrowed_bytes(text.as_bytes()),
            None => self.visit_unescaped(visitor),
        }
    }

    // Not inlined, so that the recursion over containers does not hold the buffer.
    #[inline(never)]
    fn visit_unescaped<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, DeserializeError> {
        #[cfg(feature = "alloc")]
        if self.text.decoded_len()? > SCRATCH_BYTES {
            return visitor.visit_string(self.text.to_cow()?.into_owned());
        }
        visitor.visit_str(self.text.copy_to(&mut [0; SCRATCH_BYTES])?)
    }

    /// Whether [`visit`](Self::visit) can give it to anybody.
    pub(super) fn is_visitable(&self) -> bool {
        let fits = |len| cfg!(feature = "alloc") || len <= SCRATCH_BYTES;
        self.text.as_plain().is_some() || self.text.decoded_len().is_ok_and(fits)
    }
}

/// Room for an unescaped string that is not allocated: names and enumerations,
/// not prose, and little next to the rest of a stack.
const SCRATCH_BYTES: usize = 256;
