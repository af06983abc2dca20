//! A recycled list borrows from what is put into it, like any other.

use tensorwire::transport::Part;

fn main() {
    let mut list: Vec<Part<'static>> = Vec::with_capacity(8);
    for number in 0..3_u32 {
        let metadata = number.to_le_bytes();
        let mut parts = Part::recycle(list);
        parts.push(Part::from(&metadata[..]));
        // Not recycled once more: it still has the part.
        list = parts;
    }
    drop(list);
}
