//! What is in a file: tensors with the places of their bytes, and scalars.

use std::collections::BTreeSet;

use tensorwire::DType;
use tensorwire::json::{Object, Value};
use tensorwire::tensor::Descriptor;

use crate::exit::{Failure, Fault};
use crate::safe_text;

/// A tensor, its bytes elsewhere.
#[derive(Debug)]
pub(super) struct Tensor {
    pub(super) name: String,
    pub(super) list_index: Option<u32>,
    pub(super) dtype: DType,
    pub(super) shape: Vec<usize>,
    pub(super) place: Place,
    byte_len: usize,
}

/// Where the bytes of a tensor lie.
#[derive(Clone, Copy, Debug)]
pub(super) enum Place {
    /// So many bytes from the start of the file.
    At(u64),
    /// In this member of the archive, after so many bytes of it.
    Member { index: usize, skip: u64 },
}

impl Tensor {
    /// `None` if its size is more than memory could hold.
    pub(super) fn new(name: String, dtype: DType, shape: Vec<usize>, place: Place) -> Option<Self> {
        let byte_len = Descriptor::new("", dtype, &shape).ok()?.byte_len();
        Some(Self {
            name,
            list_index: None,
            dtype,
            shape,
            place,
            byte_len,
        })
    }

    pub(super) fn of(descriptor: &Descriptor<'_>, place: Place) -> Self {
        Self {
            // Whoever decoded it has seen to it that it is a text.
            name: descriptor.name().to_cow_lossy().into_owned(),
            list_index: descriptor.list_index(),
            dtype: descriptor.dtype(),
            shape: descriptor.shape().dims().collect(),
            place,
            byte_len: descriptor.byte_len(),
        }
    }

    pub(super) const fn byte_len(&self) -> usize {
        self.byte_len
    }

    /// The same for the library, which has checked it before.
    pub(super) fn descriptor(&self) -> Result<Descriptor<'_>, Failure> {
        let descriptor = Descriptor::new(&*self.name, self.dtype, &self.shape);
        let descriptor = descriptor.map_err(|error| Failure::Could(format!("{self}: {error}")))?;
        Ok(match self.list_index {
            Some(index) => descriptor.with_list_index(index),
            None => descriptor,
        })
    }
}

/// The name for people, whatever is in it and however long it is.
impl std::fmt::Display for Tensor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "tensor {}", shown(&self.name))?;
        match self.list_index {
            Some(index) => write!(f, "[{index}]"),
            None => Ok(()),
        }
    }
}

/// A name in quotes: its beginning, if it is a long one.
pub(super) fn shown(name: &str) -> String {
    let start: String = name.chars().take(SHOWN).collect();
    let text = safe_text::line(&start);
    if start.len() == name.len() {
        format!("{text:?}").replace("\\\\", "\\")
    } else {
        format!("\"{text}...\" ({} bytes)", name.len())
    }
}

/// Names that people make up are shorter.
const SHOWN: usize = 60;

/// What is in a file, but for the tensors' bytes.
#[derive(Debug)]
pub(super) struct Content {
    pub(super) tensors: Vec<Tensor>,
    /// One JSON object.
    scalars: String,
}

impl Content {
    pub(super) fn new(tensors: Vec<Tensor>, scalars: Object<'_>) -> Self {
        let scalars = scalars.as_value().raw().to_owned();
        Self { tensors, scalars }
    }

    pub(super) fn scalars(&self) -> Object<'_> {
        let value = Value::parse(self.scalars.as_bytes()).ok();
        value
            .and_then(|value| value.as_object().ok())
            .unwrap_or_default()
    }

    /// The tensors for the library, in order.
    pub(super) fn descriptors(&self) -> Result<Vec<Descriptor<'_>>, Failure> {
        self.tensors.iter().map(Tensor::descriptor).collect()
    }

    /// How many bytes the tensors have together.
    pub(super) fn byte_len(&self) -> u64 {
        let sizes = self.tensors.iter().map(|tensor| tensor.byte_len() as u64);
        sizes.fold(0, u64::saturating_add)
    }
}

/// What is wrong with a file that is no message.
pub(super) fn fault(kind: &str, offset: u64, text: String) -> Failure {
    Failure::Malformed(Fault {
        kind: kind.to_owned(),
        offset: usize::try_from(offset).unwrap_or(usize::MAX),
        text,
        hint: None,
    })
}

/// The names of the tensors where all stand in one line, as `skip.2`, and which of them are lists.
///
/// # Errors
///
/// [`Failure::Could`] where two could not be told apart again.
pub(super) fn flat_names(tensors: &[Tensor]) -> Result<(Vec<String>, BTreeSet<String>), Failure> {
    let lists = tensors.iter().filter(|tensor| tensor.list_index.is_some());
    let lists: BTreeSet<String> = lists.map(|tensor| tensor.name.clone()).collect();
    let mut seen = BTreeSet::new();
    let mut names = Vec::with_capacity(tensors.len());
    for tensor in tensors {
        let name = match tensor.list_index {
            Some(index) => format!("{}.{index}", tensor.name),
            None => tensor.name.clone(),
        };
        let like_a_member = tensor.list_index.is_none()
            && member(&name).is_some_and(|(list, _)| lists.contains(list));
        if like_a_member || lists.contains(&name) || !seen.insert(name.clone()) {
            return Err(Failure::Could(format!(
                "{tensor} would have the name that a list or a member of one has; rename it first"
            )));
        }
        names.push(name);
    }
    Ok((names, lists))
}

/// Makes members of lists of those which are.
///
/// # Errors
///
/// A tensor that has the name of a list.
pub(super) fn unflatten(tensors: &mut [Tensor], lists: &BTreeSet<String>) -> Result<(), Failure> {
    for tensor in tensors {
        if lists.contains(&tensor.name) {
            let text = format!("{tensor} has the name of a list");
            return Err(fault("MixedField", 0, text));
        }
        if let Some((list, index)) = member(&tensor.name)
            && lists.contains(list)
        {
            tensor.name = list.to_owned();
            tensor.list_index = Some(index);
        }
    }
    Ok(())
}

/// Takes `skip.2` apart; the number is as it is written here: no sign, no zero before it.
fn member(name: &str) -> Option<(&str, u32)> {
    let (list, digits) = name.rsplit_once('.')?;
    let index: u32 = digits.parse().ok()?;
    (index.to_string() == digits).then_some((list, index))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tensor(name: &str, list_index: Option<u32>) -> Tensor {
        let tensor = Tensor::new(name.to_owned(), DType::UInt8, vec![1], Place::At(0)).unwrap();
        Tensor {
            list_index,
            ..tensor
        }
    }

    #[test]
    fn flat_names_lead_back() {
        let tensors = [
            tensor("skip", Some(2)),
            tensor("skip.02", None),
            tensor("x", None),
            tensor("skip", Some(0)),
        ];
        let (names, lists) = flat_names(&tensors).unwrap();
        assert_eq!(names, ["skip.2", "skip.02", "x", "skip.0"]);
        let mut back: Vec<_> = names.iter().map(|name| tensor(name, None)).collect();
        unflatten(&mut back, &lists).unwrap();
        let seen = |tensors: &[Tensor]| -> Vec<_> {
            tensors
                .iter()
                .map(|tensor| (tensor.name.clone(), tensor.list_index))
                .collect()
        };
        assert_eq!(seen(&back), seen(&tensors));
    }

    #[test]
    fn names_that_would_not_lead_back_are_refused() {
        for tensors in [
            [tensor("skip", Some(2)), tensor("skip.2", None)],
            [tensor("skip.7", None), tensor("skip", Some(2))],
            [tensor("a", Some(0)), tensor("a.0", Some(1))],
        ] {
            assert!(matches!(flat_names(&tensors), Err(Failure::Could(_))));
        }
        let lists = BTreeSet::from(["x".to_owned()]);
        assert!(unflatten(&mut [tensor("x", None)], &lists).is_err());
    }

    #[test]
    fn a_name_is_shown_on_one_short_line() {
        assert_eq!(tensor("latents", None).to_string(), "tensor \"latents\"");
        assert_eq!(tensor("skip", Some(2)).to_string(), "tensor \"skip\"[2]");
        assert_eq!(shown("\x1b[2J"), "\"\\u{1b}[2J\"");
        let long = shown(&"é".repeat(70_000));
        assert!(
            long.ends_with("é...\" (140000 bytes)") && long.len() < 200,
            "{long}"
        );
    }
}
