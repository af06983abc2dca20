//! Messages with all that is wrong in them, and some with nothing.

use tensorwire::json::{Object, Value};
use tensorwire::transfer::message::{
    Abort, Alloc, Allocated, Done, Location, PreallocatedSlot, Push, Pushed, Ready, Register,
    RegisterAck, Staged,
};
use tensorwire::transfer::{Control, Role};

/// xorshift64.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self((seed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    pub fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % limit
    }

    pub fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }

    pub fn number(&mut self) -> u64 {
        self.pick(NUMBERS)
    }
}

const TOP: u64 = u64::MAX;

const NUMBERS: &[u64] = &[
    0,
    1,
    8,
    512,
    1024,
    2048,
    8192,
    1 << 20,
    (1 << 63) - 1,
    1 << 63,
    TOP - 1023,
    TOP - 1,
    TOP,
];

const MANIFESTS: &[&str] = &[
    "{}",
    r#"{"x":[]}"#,
    r#"{"x":[{"offset":0,"shape":[8],"dtype":"uint8"}]}"#,
    r#"{"x":[{"offset":1020,"shape":[8],"dtype":"uint8"}]}"#,
    r#"{"x":[{"offset":18446744073709551615,"shape":[8],"dtype":"uint8"}]}"#,
    r#"{"x":[{"offset":0,"shape":[18446744073709551615],"dtype":"uint8"}]}"#,
    r#"{"x":[{"offset":0,"shape":[8],"dtype":"uint8"}],"y":[{"offset":7,"shape":[1],"dtype":"uint8"}]}"#,
];

const SCALARS: &[&str] = &[
    "{}",
    r#"{"a":NaN,"image_path":1e999}"#,
    r#"{"_prealloc_slot_id":1}"#,
    r#"{"_prealloc_slot_id":-1}"#,
    r#"{"_prealloc_slot_id":null}"#,
    r#"{"_prealloc_slot_id":18446744073709551616}"#,
];

/// How many ids there are that are not wrong in themselves.
pub const IDS: usize = 9;

pub fn id(random: &mut Random) -> String {
    match random.below(40) {
        0 => "x".repeat(2000),
        1 => String::new(),
        _ => format!("r{}", random.below(IDS)),
    }
}

fn object(json: &str) -> Object<'_> {
    Value::parse(json.as_bytes()).unwrap().as_object().unwrap()
}

/// The frames of some control message; `slot` is the number and place of a slot that there is.
pub fn message(random: &mut Random, slot: (u64, u64)) -> [Vec<u8>; 2] {
    let id = id(random);
    let id = id.as_str();
    let session = random.pick(&["encoder", "denoiser", "decoder", "here", ""]);
    let (pool_ptr, size) = (random.number(), random.number());
    let offset = random.number();
    let offset = random.pick(&[slot.1, offset]);
    let manifest = object(random.pick(MANIFESTS));
    let own = format!(r#"{{"_prealloc_slot_id":{}}}"#, slot.0);
    let other = random.pick(SCALARS);
    let scalars = object(random.pick(&[&own, other]));
    let location = Location::new(session, pool_ptr, offset);
    let staged = Staged::new(id, size, manifest, location, scalars);
    let control = match random.below(14) {
        0 | 1 => Control::Alloc(Alloc::new(id, size, session)),
        2 => Control::Allocated(Allocated::new(id, location, size)),
        3 => Control::Done(Done::failed(id, "out of memory")),
        4 => Control::Done(Done::finished(id)),
        5 => Control::Done(Done::staged(staged)),
        6 => Control::Push(Push::new(id, session, pool_ptr, size)),
        7 => Control::Pushed(Pushed::new(id)),
        8 | 9 => Control::Ready(Ready::new(id, manifest, offset, scalars)),
        10 if random.below(16) == 0 => {
            let role = random.pick(Role::ALL);
            let endpoint = format!("{role}{}", random.below(3));
            let slots: Vec<_> = (0..random.below(4) as u64)
                .map(|number| {
                    let offset = random.number();
                    let addr = pool_ptr.wrapping_add(offset);
                    PreallocatedSlot::new(offset, random.number(), number, addr)
                })
                .collect();
            let register = Register::new(role, session, pool_ptr, size, &*endpoint, &slots[..]);
            return frames(Control::Register(register).to_vec());
        }
        10 => Control::RegisterAck(RegisterAck::new()),
        11 => Control::Staged(staged),
        _ => return frames(Abort::new(id, "", "").to_vec()),
    };
    frames(control.to_vec())
}

fn frames(payload: Vec<u8>) -> [Vec<u8>; 2] {
    [b"__transfer__".to_vec(), payload]
}
