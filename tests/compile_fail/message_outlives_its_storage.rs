//! A decoded message borrows the storage of its descriptors.

use tensorwire::{Message, Storage};

fn main() {
    let frames: [&[u8]; 1] = [br#"{"tensor_descriptors":[]}"#];
    let message = {
        let mut storage = Storage::<16>::new();
        Message::decode(&frames, &mut storage).unwrap()
    };
    println!("{}", message.len());
}
