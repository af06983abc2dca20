//! What is known of each request.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;

use super::error::Step;
use crate::json::{Object, Value, ValueType};
use crate::transfer::RequestId;
use crate::transfer::message::SLOT_ID;

/// A worker: the stage of its role, and its index there.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct WorkerId {
    pub(super) stage: usize,
    pub(super) worker: usize,
}

/// A preallocated slot that is out.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Lease {
    pub(super) owner: WorkerId,
    pub(super) index: usize,
    /// The owner's number of it.
    pub(super) slot_id: u64,
    /// The owner's registration that brought the slot; void under another.
    pub(super) registration: u64,
}

/// How far a request is, and who has what of it.
#[derive(Clone, Copy, Debug)]
pub(super) enum State {
    /// `to` was asked for a slot for the output of `from`.
    Allocating { from: WorkerId, to: WorkerId },
    /// It is over. Once `user` is through with the slot it comes back if it is preallocated;
    /// if it was allocated and written to, its `owner` is told to free it.
    Over {
        user: WorkerId,
        usage: Use,
        owner: WorkerId,
        lease: Option<Lease>,
    },
    /// `from` was told where to.
    Pushing {
        from: WorkerId,
        to: WorkerId,
        slot_offset: u64,
        lease: Option<Lease>,
    },
    /// In the queue of `stage`; its work, or the output of `from`, waits.
    Queued {
        stage: usize,
        from: Option<WorkerId>,
    },
    /// `at` works, and may still read the slot.
    Working { at: WorkerId, lease: Option<Lease> },
}

/// What the last one that has a part in a request does with its slot.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Use {
    /// Makes one.
    Allocating,
    /// Reads it, if it has one, and works.
    Reading,
    Writing,
}

impl State {
    pub(super) const fn step(&self) -> Step {
        match self {
            Self::Allocating { .. } => Step::Allocating,
            Self::Over { .. } => Step::Over,
            Self::Pushing { .. } => Step::Pushing,
            Self::Queued { .. } => Step::Queued,
            Self::Working { .. } => Step::Working,
        }
    }

    /// The workers that have a part in it: the one with the output, and the one that works or will.
    pub(super) const fn places(&self) -> [Option<WorkerId>; 2] {
        match *self {
            Self::Allocating { from, to } | Self::Pushing { from, to, .. } => {
                [Some(from), Some(to)]
            }
            Self::Over { user, .. } => [None, Some(user)],
            Self::Queued { from, .. } => [from, None],
            Self::Working { at, .. } => [None, Some(at)],
        }
    }

    /// Tells whether a worker of `stage` has a part in it.
    pub(super) fn involves(&self, stage: usize) -> bool {
        let mut places = self.places().into_iter().flatten();
        places.any(|place| place.stage == stage)
    }
}

/// One attempt at a client's request.
#[derive(Debug)]
pub(super) struct Request {
    /// What the client named it.
    pub(super) client: RequestId,
    pub(super) attempt: u32,
    /// Grows with each attempt of any request: the order in which they came.
    pub(super) serial: u64,
    /// When the client's request fails.
    pub(super) deadline: Duration,
    /// When the machine has to look at this attempt again.
    pub(super) wake: Duration,
    /// What the first worker gets; gone once it is sent, unless it may be sent again.
    pub(super) work: Option<Arc<Vec<u8>>>,
    pub(super) output: Output,
    pub(super) state: State,
}

/// What the last worker said of its output, for the next.
#[derive(Debug, Default)]
pub(super) struct Output {
    pub(super) data_size: u64,
    manifest: String,
    scalars: String,
}

impl Output {
    /// Keeps what a worker said, in the storage of what was said before.
    ///
    /// A slot id among the scalars can only be one of a step that is past. It
    /// is left out, so that no receiver takes it for its own.
    pub(super) fn keep(&mut self, data_size: u64, manifest: Object<'_>, scalars: Object<'_>) {
        self.data_size = data_size;
        self.manifest.clear();
        self.manifest.push_str(manifest.as_value().raw());
        self.scalars.clear();
        if scalars.get(SLOT_ID).is_none() {
            self.scalars.push_str(scalars.as_value().raw());
            return;
        }
        self.scalars.push('{');
        for (key, value) in scalars.iter().filter(|(key, _)| *key != SLOT_ID) {
            if self.scalars.len() > 1 {
                self.scalars.push(',');
            }
            for part in ["\"", key.raw(), "\":", value.raw()] {
                self.scalars.push_str(part);
            }
        }
        self.scalars.push('}');
    }

    pub(super) fn manifest(&self) -> Object<'_> {
        object(&self.manifest)
    }

    pub(super) fn scalars(&self) -> Object<'_> {
        object(&self.scalars)
    }

    /// Forgets what is not needed any more, but not the storage.
    pub(super) fn clear(&mut self) {
        self.data_size = 0;
        self.manifest.clear();
        self.scalars.clear();
    }
}

/// The object of a text that was checked when it came.
fn object(text: &str) -> Object<'_> {
    Value::new(text, 0).as_object().unwrap_or_default()
}

/// Tells whether Python takes a value for true.
pub(super) fn is_true(value: Value<'_>) -> bool {
    match value.value_type() {
        ValueType::Array => value.as_array().is_ok_and(|array| array.get(0).is_some()),
        ValueType::Bool => value.as_bool() == Ok(true),
        ValueType::Null => false,
        // An integer past every float is an error here, and no zero.
        ValueType::Number => value.as_f64() != Ok(0.0),
        ValueType::Object => value.as_object().is_ok_and(|object| !object.is_empty()),
        ValueType::String => value.as_str().is_ok_and(|text| !text.raw().is_empty()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Object<'_> {
        Value::parse(text.as_bytes()).unwrap().as_object().unwrap()
    }

    #[test]
    fn python_and_we_take_the_same_values_for_true() {
        for (text, expected) in [
            ("null", false),
            ("false", false),
            ("true", true),
            ("0", false),
            ("-0", false),
            ("0.0", false),
            ("-0.0", false),
            ("0e5", false),
            ("1", true),
            ("NaN", true),
            ("1e-400", false),
            ("\"\"", false),
            ("\" \"", true),
            ("[]", false),
            ("[ ]", false),
            ("[null]", true),
            ("{}", false),
            ("{ \"a\":0}", true),
        ] {
            let value = Value::parse(text.as_bytes()).unwrap();
            assert_eq!(is_true(value), expected, "{text}");
        }
        let long = std::format!("1{}", "0".repeat(400));
        assert!(is_true(Value::parse(long.as_bytes()).unwrap()));
    }

    /// (scalars received, kept)
    const SCALARS: &[(&str, &str)] = &[
        ("{}", "{}"),
        ("{ }", "{ }"),
        (r#"{"a":[1],"b":"}"}"#, r#"{"a":[1],"b":"}"}"#),
        (r#"{"_prealloc_slot_id":3}"#, "{}"),
        (
            r#"{"\u0061":1, "_prealloc_slot_\u0069d" : 3,"b":NaN,"_prealloc_slot_id":4}"#,
            r#"{"\u0061":1,"b":NaN}"#,
        ),
    ];

    #[test]
    fn a_slot_id_of_a_step_before_is_left_out() {
        let mut output = Output::default();
        for (received, kept) in SCALARS {
            output.keep(5, parse("{\"x\":[]}"), parse(received));
            assert_eq!(output.scalars().as_value().raw(), *kept);
            assert_eq!(output.manifest().as_value().raw(), "{\"x\":[]}");
            assert!(Value::parse(kept.as_bytes()).is_ok());
        }
        output.clear();
        assert!(output.scalars().is_empty() && output.manifest().is_empty());
    }
}
