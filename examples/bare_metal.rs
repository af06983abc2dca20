//! Decodes a message, encodes it again, puts it into a bundle and its tensors into a slot, and
//! answers a control message, with neither `std` nor an allocator.
//!
//! ```text
//! cargo rustc --no-default-features --features _bare-metal --example bare_metal --release -- -C panic=abort -C link-arg=-lc
//! target/release/examples/bare_metal
//! ```
//!
//! Its exit status is 0 if every step gave what it was to give, and else the
//! number of the step. In a build that is not bare, with other features or
//! with panics that unwind, it is an ordinary program whose status is 100.

#![cfg_attr(
    all(panic = "abort", not(any(feature = "alloc", feature = "serde"))),
    no_std,
    no_main
)]

use tensorwire::bundle::{self, Bundle};
use tensorwire::json::Value;
use tensorwire::message::{CONTROL_MARKER, Message, Scalar, Storage, encode_into};
use tensorwire::transfer::manifest::{self, Manifest, Plan};
use tensorwire::transfer::message::{PreallocatedSlot, Pushed, Register};
use tensorwire::transfer::{Control, Role};
use tensorwire::{DType, TensorView};

/// As a peer in Python sends it; the floats lie at an odd address, as frames do.
const METADATA: &[u8] = br#"{"tensor_descriptors":[{"field_name":"latents","shape":[2,2],"dtype":"float32","list_index":-1},{"field_name":"skip","shape":[3],"dtype":"bool","list_index":2}],"scalar_fields":{"request_id":"caf\u00e9","seed":42,"guidance_scale":7.5}}"#;

/// What is to be written of its tensors in a slot.
const MANIFEST: &[u8] = br#"{"latents":[{"offset":0,"shape":[2,2],"dtype":"float32"}],"skip":[{"offset":512,"shape":[3],"dtype":"bool","list_index":2}]}"#;

#[repr(align(4))]
struct Aligned([u8; 17]);

static LATENTS: Aligned = Aligned([
    0xa5, 0, 0, 0x80, 0x3f, 0, 0, 0, 0x40, 0, 0, 0x40, 0x40, 0, 0, 0x80, 0x40,
]);

/// Does it all; the error is the number of the step that failed.
fn run() -> Result<(), u8> {
    let [_, latents @ ..] = &LATENTS.0;
    let frames: [&[u8]; 3] = [METADATA, latents, &[1, 0, 1]];
    let mut storage = Storage::<4>::new();
    let message = step(1, Message::decode(&frames, &mut storage).ok())?;

    let latents = step(2, message.tensor("latents"))?;
    demand(3, latents.dtype() == DType::Float32)?;
    demand(4, latents.shape().to_array::<2>() == Ok([2, 2]))?;
    demand(5, latents.as_slice::<f32>().is_err())?;
    let sum = step(6, latents.elements::<f32>().ok())?.sum::<f32>();
    demand(7, sum == 10.0)?;
    let mut scratch = [0.0; 4];
    let floats = step(8, latents.as_slice_or_copy::<f32>(&mut scratch).ok())?;
    demand(9, *floats == [1.0, 2.0, 3.0, 4.0])?;
    let skip = step(10, message.list("skip"))?;
    demand(11, skip.len() == 3 && skip.get(0).is_none())?;
    let skip = step(12, skip.get(2))?;
    demand(13, skip.as_slice::<bool>() == Ok(&[true, false, true][..]))?;

    let scalars = message.scalars();
    let seed = step(14, scalars.get("seed"))?;
    demand(15, seed.as_i64() == Ok(42))?;
    let scale = step(16, scalars.get("guidance_scale"))?;
    demand(17, scale.as_f64() == Ok(7.5))?;
    let id = step(
        18,
        scalars.get("request_id").and_then(|id| id.as_str().ok()),
    )?;
    let mut text = [0; 8];
    demand(19, id == "café" && id.copy_to(&mut text) == Ok("café"))?;

    // What was received, and the same put together from its parts.
    let mut buffer = [0xa5; 512];
    let again = encode_into(&[latents, skip], &scalars, &mut buffer);
    demand(20, again.is_ok_and(|again| *again == *METADATA))?;
    let latents = TensorView::from_slice("latents", &[2, 2], floats).ok();
    let skip = TensorView::from_slice("skip", &[3], &[true, false, true]).ok();
    let tensors = [step(21, latents)?, step(22, skip)?.with_list_index(2)];
    let scalars = [
        ("request_id", Scalar::from("café")),
        ("seed", Scalar::from(42)),
        ("guidance_scale", Scalar::from(7.5)),
    ];
    let again = encode_into(&tensors, &scalars, &mut buffer);
    demand(23, again.is_ok_and(|again| *again == *METADATA))?;

    let error = Message::decode(&frames[..2], &mut storage).err();
    demand(24, step(25, error)?.offset() == 22)?;

    // The message in one buffer.
    let mut buffer = [0xa5; 512];
    let bundle = bundle::encode_into(&frames, &mut buffer);
    let bundle = step(26, bundle.ok())?;
    let bundle = step(27, Bundle::decode(bundle).ok())?;
    let mut room = [&[][..]; 4];
    let frames = step(28, bundle.frames_in(&mut room).ok())?;
    let message = step(29, Message::decode(frames, &mut storage).ok())?;
    let latents = step(30, message.tensor("latents"))?;
    let sum = step(31, latents.elements::<f32>().ok())?.sum::<f32>();
    demand(32, sum == 10.0)?;

    answer_a_control_message()?;
    put_into_a_slot(&tensors)
}

/// The head node says where to, the sender that it is done.
fn answer_a_control_message() -> Result<(), u8> {
    let push: [&[u8]; 2] = [
        CONTROL_MARKER,
        br#"{"msg_type":"transfer_push","request_id":"caf\u00e9","dest_session_id":"h:1","dest_addr":18446744073709551615,"transfer_size":24,"edge_id":"a->b"}"#,
    ];
    let control = step(33, Control::from_frames(&push).ok())?;
    let Control::Push(order) = control else {
        return Err(34);
    };
    demand(35, order.dest_addr == u64::MAX && order.transfer_size == 24)?;
    let edge = step(36, control.extra("edge_id"))?;
    demand(37, edge.raw() == r#""a->b""#)?;
    let mut buffer = [0xa5; 256];
    let again = control.encode_into(&mut buffer);
    demand(38, again.is_ok_and(|again| *again == *push[1]))?;
    let pushed = Control::from(Pushed::new(order.request_id));
    let payload = step(39, pushed.encode_into(&mut buffer).ok())?;
    let expected = br#"{"msg_type":"transfer_pushed","request_id":"caf\u00e9"}"#;
    demand(40, *payload == *expected)?;
    let slots = [PreallocatedSlot::new(0, 1 << 20, 0, 1 << 32)];
    let register = Register::new(Role::Decoder, "h:1", 1 << 32, 1 << 20, "tcp://h:2", &slots);
    let payload = step(41, Control::from(register).encode_into(&mut buffer).ok())?;
    let Some(Control::Register(register)) = Control::decode(payload).ok() else {
        return Err(42);
    };
    demand(43, register.preallocated_slots.iter().eq(slots))
}

/// The tensors of the message, and found there again.
fn put_into_a_slot(tensors: &[TensorView<'_>]) -> Result<(), u8> {
    let plan = step(44, Plan::new(tensors).ok())?;
    let mut slot = [0xa5; 1024];
    demand(45, plan.slot_len() == 515 && plan.store(&mut slot).is_ok())?;
    let mut buffer = [0xa5; 256];
    let text = step(46, plan.encode_into(&mut buffer).ok())?;
    demand(47, *text == *MANIFEST)?;
    let object = Value::parse(text).ok();
    let object = step(48, object.and_then(|text| text.as_object().ok()))?;
    let mut storage = manifest::Storage::<4>::new();
    let manifest = Manifest::decode(object, slot.len(), &mut storage);
    let tensors = step(
        49,
        manifest.and_then(|manifest| manifest.attach(&slot)).ok(),
    )?;
    let latents = step(50, tensors.tensor("latents"))?;
    let sum = step(51, latents.elements::<f32>().ok())?.sum::<f32>();
    demand(52, sum == 10.0)?;
    let skip = step(53, tensors.list("skip").and_then(|skip| skip.get(2)))?;
    demand(54, skip.bytes() == [1, 0, 1])?;
    let short = Manifest::decode(object, 514, &mut storage);
    demand(55, short.is_err())
}

/// What step `number` is to give.
fn step<T>(number: u8, result: Option<T>) -> Result<T, u8> {
    result.ok_or(number)
}

/// What step `number` is to find true.
fn demand(number: u8, holds: bool) -> Result<(), u8> {
    if holds { Ok(()) } else { Err(number) }
}

#[cfg(all(panic = "abort", not(any(feature = "alloc", feature = "serde"))))]
mod bare {
    #[panic_handler]
    fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
        loop {}
    }

    // SAFETY: nothing else of this program has the name; the C runtime calls it.
    #[unsafe(no_mangle)]
    extern "C" fn main() -> i32 {
        match super::run() {
            Ok(()) => 0,
            Err(step) => i32::from(step),
        }
    }

    /// `core` comes compiled with unwinding and names this; nothing here unwinds.
    // SAFETY: nothing else of this program has the name; nothing calls it.
    #[unsafe(no_mangle)]
    extern "C" fn rust_eh_personality() {}

    /// So does the library, which the command leaves with the profile's way to panic.
    // SAFETY: as above.
    #[unsafe(no_mangle)]
    extern "C" fn _Unwind_Resume() -> ! {
        loop {}
    }
}

#[cfg(not(all(panic = "abort", not(any(feature = "alloc", feature = "serde")))))]
fn main() -> std::process::ExitCode {
    let result = run();
    eprintln!("not a bare build, which proves nothing: {result:?}");
    std::process::ExitCode::from(100)
}
