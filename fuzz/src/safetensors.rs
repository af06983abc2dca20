//! Whatever is a `.safetensors` file is written again as one that says the same, and all else is refused in bounds.
//!
//! ```text
//! byte 0    how many bytes of data follow the header
//! the rest  the header, whose length is put before it
//! ```

use tensorwire::interop::safetensors::{SafeTensors, encode_to_vec};

pub fn run(data: &[u8]) {
    let Some((&count, header)) = data.split_first() else {
        return;
    };
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend_from_slice(header);
    file.extend((0..count).map(|byte| byte ^ 0x5a));
    let read = match SafeTensors::decode(&file) {
        Ok(read) => read,
        Err(error) => {
            assert!(error.offset() <= file.len(), "{error}");
            return;
        }
    };
    let total: usize = read.tensors().iter().map(|tensor| tensor.byte_len()).sum();
    assert_eq!(total, usize::from(count));
    let range = file.as_ptr_range();
    for tensor in read.tensors() {
        let at = tensor.bytes().as_ptr_range();
        assert!(range.start <= at.start && at.end <= range.end);
    }
    // Nothing that was read cannot be written.
    let again = encode_to_vec(read.tensors(), &read.scalars()).unwrap();
    let back = SafeTensors::decode(&again).unwrap();
    assert_eq!(
        back.scalars().as_value().raw(),
        read.scalars().as_value().raw()
    );
    assert_eq!(back.to_metadata().unwrap(), read.to_metadata().unwrap());
    let bytes = |file: &SafeTensors<'_>| -> Vec<Vec<u8>> {
        let tensors = file.tensors().iter();
        tensors.map(|tensor| tensor.bytes().to_vec()).collect()
    };
    assert_eq!(bytes(&back), bytes(&read));
    // The first writing settles all that has more spellings than one.
    assert_eq!(
        encode_to_vec(back.tensors(), &back.scalars()).unwrap(),
        again
    );
}
