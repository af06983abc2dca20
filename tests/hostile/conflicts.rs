//! Two tensors of one place, whatever lies between them.

use super::caps::metadata_of;
use super::*;

/// Every message of up to four tensors on few places, against a reader that compares all pairs.
#[test]
fn of_several_conflicts_the_first_on_the_wire_is_named() {
    // Spelled in two ways each.
    const PLACES: &[(&str, &str, Option<usize>)] = &[
        ("a", "a", None),
        (r"\u0061", "a", Some(0)),
        ("a", "a", Some(1)),
        ("a", "a", Some(2)),
        ("b", "b", None),
        ("b", "b", Some(0)),
    ];
    let mut storage = room();
    let mut verdicts = [0; 2];
    for length in 1..=4 {
        for number in 0..PLACES.len().pow(length) {
            let places: Vec<_> = (0..length)
                .map(|digit| PLACES[number / PLACES.len().pow(digit) % PLACES.len()])
                .collect();
            let mut starts = Vec::new();
            let mut metadata = String::from(r#"{"tensor_descriptors":["#);
            for (spelling, _, index) in &places {
                starts.push(metadata.len());
                let index = index.map_or(-1, |index| index as i64);
                metadata += &format!(
                    r#"{{"field_name":"{spelling}","shape":[1],"dtype":"uint8","list_index":{index}}},"#
                );
            }
            metadata.pop();
            metadata += "]}";
            let conflict = places.iter().enumerate().find_map(|(later, place)| {
                places[..later].iter().find_map(|earlier| {
                    let kind = match (earlier.2, place.2) {
                        _ if earlier.1 != place.1 => return None,
                        (None, None) => DuplicateField,
                        (Some(a), Some(b)) if a == b => DuplicateListIndex { list_index: a },
                        (Some(_), Some(_)) => return None,
                        _ => MixedField,
                    };
                    Some(Reject(kind, starts[later], Some(later)))
                })
            });
            let result = Options::new().decode_metadata(metadata.as_bytes(), &mut storage);
            let expected = conflict.unwrap_or(Accept);
            assert_eq!(Verdict::of(&result), expected, "{metadata}");
            verdicts[usize::from(expected == Accept)] += 1;
        }
    }
    assert!(verdicts[0] > 1000 && verdicts[1] > 100, "{verdicts:?}");
}

/// Thousands of names that differ at their last byte only, in the worst order.
#[test]
fn a_flood_of_names_alike_is_sorted_and_found() {
    const COUNT: usize = 4096;
    let prefix = "p".repeat(150);
    let name = |index: usize| format!("{prefix}{:04x}", COUNT - 1 - index);
    let mut descriptors: Vec<_> = (0..COUNT)
        .map(|index| {
            format!(
                r#"{{"field_name":"{}","shape":[],"dtype":"uint8"}}"#,
                name(index)
            )
        })
        .collect();
    let metadata = metadata_of(&descriptors);
    let mut storage = Box::<Storage<COUNT>>::default();
    let decoded = Options::new()
        .decode_metadata(metadata.as_bytes(), &mut storage)
        .unwrap();
    for index in 0..COUNT {
        assert_eq!(decoded.position(&name(index)), Some(index));
    }
    assert_eq!(decoded.position(&prefix), None);

    // Two of one name as far apart as can be.
    descriptors[COUNT - 1] = descriptors[0].clone();
    let at = metadata.rfind("{\"field_name\"").unwrap();
    let metadata = metadata_of(&descriptors);
    let result = Options::new().decode_metadata(metadata.as_bytes(), &mut storage);
    let verdict = Reject(DuplicateField, at, Some(COUNT - 1));
    assert_eq!(Verdict::of(&result), verdict);
}
