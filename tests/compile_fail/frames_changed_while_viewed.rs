//! Frames stay as they are while a view of them lives.

use tensorwire::{Message, Storage};

fn main() {
    let metadata = br#"{"tensor_descriptors":[{"field_name":"x","shape":[2],"dtype":"uint8"}]}"#;
    let mut frames = [metadata.to_vec(), vec![1_u8, 2]];
    let mut storage = Storage::<16>::new();
    let message = Message::decode(&frames, &mut storage).unwrap();
    let view = message.tensor("x").unwrap();
    frames[1][0] = 3;
    println!("{:?}", view.bytes());
}
