//! The entries of `__metadata__`, as scalars.

use std::borrow::Cow;
use std::collections::HashSet;
use std::string::String;
use std::vec::Vec;

use super::super::{Error, ErrorKind, JSON_ENTRY, LISTS_ENTRY};
use super::header::Text;
use crate::Limits;
use crate::json::cursor::NonFinite;
use crate::json::writer::{self, Writer};
use crate::json::{Str, Value};

/// The entries of `__metadata__`, those of this module apart.
pub(super) struct Texts<'a> {
    plain: Vec<Text<'a>>,
    json: Option<(Cow<'a, str>, usize)>,
    pub(super) lists: Option<(Cow<'a, str>, usize)>,
}

impl<'a> Texts<'a> {
    pub(super) fn sort(all: Vec<Text<'a>>) -> Result<Self, Error> {
        let (mut plain, mut json, mut lists) = (Vec::new(), None, None);
        for text in all {
            let place = if text.key == JSON_ENTRY {
                &mut json
            } else if text.key == LISTS_ENTRY {
                &mut lists
            } else {
                plain.push(text);
                continue;
            };
            *place = Some((cow(text.value, text.at)?, text.at));
        }
        Ok(Self { plain, json, lists })
    }

    /// The scalars as one JSON object, written as Python does.
    pub(super) fn scalars(self) -> Result<String, Error> {
        let keys = self.json.as_ref().map(|(text, at)| names(text, *at));
        let keys = keys.transpose()?.unwrap_or_default();
        let mut members = Vec::with_capacity(self.plain.len());
        for text in self.plain {
            // The key of an entry that there is not is left alone.
            let json = !keys.is_empty() && keys.contains(&cow(text.key, text.at)?);
            let json = if json {
                let json = cow(text.value, text.at)?;
                let limits = Limits::new().with_depth(SCALAR_DEPTH);
                let value = Value::parse_document(json.as_bytes(), &limits, NonFinite::Accept);
                let value = value.map_err(|_| Error::new(ErrorKind::BadEntry, text.at))?;
                Some(String::from(value.raw()))
            } else {
                None
            };
            members.push((text.key, text.value, json));
        }
        let put = |writer: &mut Writer<'_>| {
            writer.put_raw(b"{");
            for (index, (key, value, json)) in members.iter().enumerate() {
                if index > 0 {
                    writer.put_raw(b",");
                }
                writer.put_str(*key);
                writer.put_raw(b":");
                match json {
                    Some(json) => writer.put_raw(json.as_bytes()),
                    None => writer.put_str(*value),
                }
            }
            writer.put_raw(b"}");
        };
        // It writes text alone.
        Ok(String::from_utf8(writer::to_vec(put)).unwrap_or_default())
    }
}

/// A scalar's own levels: it stands in two others in a message.
const SCALAR_DEPTH: usize = Limits::MAX_DEPTH.saturating_sub(2);

/// The strings of a JSON array.
pub(super) fn names(text: &str, at: usize) -> Result<HashSet<Cow<'_, str>>, Error> {
    let bad = Error::new(ErrorKind::BadEntry, at);
    let value = Value::parse(text.as_bytes()).map_err(|_| bad)?;
    let array = value.as_array().map_err(|_| bad)?;
    let name = |value: Value<'_>| {
        value
            .as_str()
            .and_then(|name| Ok(Cow::Owned(name.to_cow()?.into_owned())))
    };
    array
        .iter()
        .map(name)
        .collect::<Result<_, _>>()
        .map_err(|_| bad)
}

fn cow(text: Str<'_>, at: usize) -> Result<Cow<'_, str>, Error> {
    text.to_cow()
        .map_err(|_| Error::new(ErrorKind::LoneSurrogate, at))
}
