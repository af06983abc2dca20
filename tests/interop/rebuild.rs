//! What was received, taken apart and put together again from parts of our own.

use std::borrow::Cow;

use tensorwire::json::{Object, Str, Value, ValueType};
use tensorwire::{Descriptor, Scalar, TensorView};

/// The same tensors under names and shapes that are not the text of a message.
///
/// The parts live as long as the test: there is no owner for a tree of them.
pub(crate) fn tensors(views: &[TensorView<'_>]) -> Vec<Descriptor<'static>> {
    let descriptor = |view: &TensorView<'_>| {
        let name = leaked(view.name()).unwrap();
        let shape: &'static [usize] = view.dims().collect::<Vec<_>>().leak();
        let descriptor = Descriptor::new(name, view.dtype(), shape).unwrap();
        assert_eq!(descriptor.byte_len(), view.bytes().len());
        match view.list_index() {
            Some(index) => descriptor.with_list_index(index),
            None => descriptor,
        }
    };
    views.iter().map(descriptor).collect()
}

/// The same members, each value read and made anew; `None` if a key is no text.
pub(crate) fn members<'a>(object: Object<'a>) -> Option<Vec<(&'static str, Scalar<'a>)>> {
    let member = |(key, value)| Some((leaked(key)?, scalar(value)?));
    object.iter().map(member).collect()
}

fn scalar(value: Value<'_>) -> Option<Scalar<'_>> {
    Some(match value.value_type() {
        ValueType::Array => {
            let items: Option<Vec<_>> = value.as_array().unwrap().iter().map(scalar).collect();
            Scalar::List(items?.leak())
        }
        ValueType::Bool => Scalar::from(value.as_bool().unwrap()),
        ValueType::Null => Scalar::Null,
        ValueType::Number => number(value),
        ValueType::Object => Scalar::Object(members(value.as_object().unwrap())?.leak()),
        ValueType::String => {
            let text = value.as_str().unwrap();
            leaked(text).map_or(Scalar::Str(text), Scalar::from)
        }
        other => panic!("{other} is new"),
    })
}

fn number(value: Value<'_>) -> Scalar<'_> {
    if !value.is_integer() {
        return Scalar::from(value.as_f64().unwrap());
    }
    let signed = value.as_i128().map(Scalar::from);
    let unsigned = signed.or_else(|_| value.as_u128().map(Scalar::from));
    // Past those it is carried as text.
    unsigned.unwrap_or(Scalar::Json(value))
}

fn leaked(text: Str<'_>) -> Option<&'static str> {
    text.to_cow()
        .ok()
        .map(Cow::into_owned)
        .map(|text| &*text.leak())
}
