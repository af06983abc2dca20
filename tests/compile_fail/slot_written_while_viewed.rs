//! A slot is not handed to its next writer while its tensors are looked at.

use tensorwire::Limits;
use tensorwire::json::Value;
use tensorwire::transfer::manifest::{Manifest, Storage};

fn main() {
    let text = br#"{"x":[{"offset":0,"shape":[3],"dtype":"uint8"}]}"#;
    let object = Value::parse(text).unwrap().as_object().unwrap();
    let mut storage = Storage::<1>::new();
    let manifest = Manifest::decode(object, 3, &mut storage, &Limits::new()).unwrap();
    let mut slot = vec![1, 2, 3];
    let view = manifest.attach(&slot).unwrap().tensor("x").unwrap();
    slot.fill(0);
    println!("{:?}", view.bytes());
}
