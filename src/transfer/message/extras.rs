//! Members that the schema does not know.

use super::keys::TYPE_ALONE;
use crate::error::SchemaKey;
use crate::json::{Object, Str, Value};

/// The members of a message that are not of its schema: what newer peers say.
///
/// Kept as they came, and written again after the keys of the schema, in the
/// order received.
///
/// # Examples
///
/// ```
/// use tensorwire::json::Value;
/// use tensorwire::transfer::Control;
///
/// let payload = br#"{"msg_type":"transfer_pushed","request_id":"r1","node":"n2","edge_id":3}"#;
/// let pushed = Control::decode(payload)?;
/// assert_eq!(pushed.extra("edge_id").map(|edge| edge.as_u64()), Some(Ok(3)));
/// assert_eq!(pushed.extras().iter().count(), 2);
/// assert!(pushed.extra("request_id").is_none());
/// # Ok::<(), tensorwire::error::DecodeError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Extras<'a> {
    members: Object<'a>,
    /// The keys of `members` that are none.
    schema: &'static [SchemaKey],
}

impl<'a> Extras<'a> {
    /// No such members.
    pub const NONE: Extras<'static> = Extras {
        members: Object::EMPTY,
        schema: &[],
    };

    pub(super) const fn new(message: Object<'a>, schema: &'static [SchemaKey]) -> Self {
        Self {
            members: message,
            schema,
        }
    }

    /// All of `message` but its type.
    pub(super) const fn all(message: Object<'a>) -> Self {
        Self::new(message, TYPE_ALONE)
    }

    /// Iterates over the members in wire order; a duplicate key comes as often as it was written.
    pub fn iter(&self) -> impl Iterator<Item = (Str<'a>, Value<'a>)> + Clone + use<'a> {
        let schema = self.schema;
        let members = self.members.iter();
        members.filter(move |(key, _)| !knows(schema, *key))
    }

    /// Returns the value of `key`, or `None` if there is no such member.
    ///
    /// Of several with one name it is the last, as it is to Python.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<Value<'a>> {
        let members = self.iter().filter(|(name, _)| name == key);
        members.map(|(_, value)| value).last()
    }

    /// Tells whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.iter().next().is_none()
    }
}

impl Default for Extras<'_> {
    fn default() -> Self {
        Extras::NONE
    }
}

/// The members of an object of the caller's; one whose key the message's schema knows is not written.
impl<'a> From<Object<'a>> for Extras<'a> {
    fn from(members: Object<'a>) -> Self {
        Self::new(members, &[])
    }
}

/// Tells whether `key` is one of the schema, in whatever spelling.
pub(super) fn knows(schema: &[SchemaKey], key: Str<'_>) -> bool {
    schema.iter().any(|known| key == known.name())
}
