//! Tensors that Python reads where they were received, and sends from where it has them: a library for `ctypes`.
//!
//! ```text
//! cargo build --example dlpack --features dlpack
//! python3 examples/dlpack/demo.py target/debug/examples/libdlpack.so
//! ```
//!
//! `demo.py` is the other half. It needs numpy or torch, and no binding to Rust: a capsule is all that DLPack asks for.

use std::cell::RefCell;
use std::error::Error;
use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};

use tensorwire::interop::SharedFrame;
use tensorwire::interop::dlpack::{DlpackError, Export, Import};
use tensorwire::message::{NO_SCALARS, encode_to_vec};
use tensorwire::transport::{Buffer, Frames, Part, RecvFrames, SendFrames, Wait, loopback};
use tensorwire::{Decoder, TensorView};

thread_local! {
    /// Stands for a connection to some peer.
    static WIRE: RefCell<(loopback::Loopback, loopback::Loopback)> = RefCell::new(loopback::pair());
}

/// Frames that Python has.
static LENT: AtomicUsize = AtomicUsize::new(0);

/// A frame that is counted for as long as somebody has it.
struct Lent(SharedFrame);

impl Lent {
    fn new(frame: SharedFrame) -> Self {
        LENT.fetch_add(1, Ordering::Relaxed);
        Self(frame)
    }
}

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        self.0.as_ref()
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        LENT.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Receives a message with one tensor, and exports it: where it lies if that is aligned and no copy is asked for.
fn receive(copy: bool) -> Result<Export, Box<dyn Error>> {
    let elements: Vec<u8> = (0..1024_u16)
        .flat_map(|x| f32::from(x).to_le_bytes())
        .collect();
    WIRE.with_borrow_mut(|(sender, receiver)| {
        // What a peer would do.
        let shape = [4, 256];
        let x = TensorView::from_bytes("x", tensorwire::DType::Float32, &shape, &elements)?;
        sender.send(&[&encode_to_vec([x], &NO_SCALARS)?, x.bytes()])?;

        let received = SharedFrame::split(receiver.recv()?);
        let mut decoder = Decoder::new();
        let message = decoder.decode(&received)?;
        let x = message.tensor("x").ok_or("no x")?;
        if copy {
            return Ok(Export::copy(&x)?);
        }
        let frame = message.payload(0).ok_or("no frame")?.clone();
        match Export::new(&x.descriptor(), Buffer::new(Lent::new(frame))) {
            Ok(export) => Ok(export),
            // Misaligned.
            Err(_) => Ok(Export::copy(&x)?),
        }
    })
}

/// Sends the tensor of a capsule, and returns where the payload lay when it arrived.
fn send(import: Import) -> Result<*const u8, Box<dyn Error>> {
    WIRE.with_borrow_mut(|(sender, receiver)| {
        let metadata = encode_to_vec([import.descriptor("y")], &NO_SCALARS)?;
        let mut parts = vec![Part::from(metadata), Part::from(import)];
        sender.send_parts(&mut parts, Wait::Configured)?;

        // What a peer would do.
        let received = receiver.recv()?;
        let mut decoder = Decoder::new();
        let message = decoder.decode(received.frames())?;
        let y = message.tensor("y").ok_or("no y")?;
        println!("received y: {} of {}", y.dtype(), y.shape());
        Ok(y.bytes().as_ptr())
    })
}

/// Takes over the tensor of a capsule.
///
/// # Safety
///
/// `managed` is what a capsule named `dltensor_versioned` holds, or `dltensor` unless `versioned`.
unsafe fn import(managed: *mut c_void, versioned: bool) -> Result<Import, DlpackError> {
    // Of the three rules of `from_raw`:
    // 1. It is a capsule's, which the caller renames if this succeeds.
    // 2. The caller waits, and so writes to nothing meanwhile.
    // 3. The deleters of numpy and torch take Python's lock themselves where they need it.
    if versioned {
        // SAFETY: the rules above.
        unsafe { Import::from_raw_versioned(managed.cast()) }
    } else {
        // SAFETY: the rules above.
        unsafe { Import::from_raw(managed.cast()) }
    }
}

/// Receives a tensor. The pointer is for a capsule named `dltensor_versioned`, or `dltensor` unless `versioned`, whose consumer
/// gives it back; null if it fails.
#[unsafe(no_mangle)]
pub extern "C" fn tensorwire_receive(versioned: bool, copy: bool) -> *mut c_void {
    match receive(copy) {
        Ok(export) if versioned => export.into_raw_versioned().as_ptr().cast(),
        Ok(export) => export.into_raw().as_ptr().cast(),
        Err(error) => {
            eprintln!("receive: {error}");
            ptr::null_mut()
        }
    }
}

/// Gives back the tensor of a capsule that nobody took.
///
/// # Safety
///
/// As of [`tensorwire_send`]; and the capsule is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tensorwire_release(managed: *mut c_void, versioned: bool) {
    // SAFETY: as the caller promises.
    let import = unsafe { import(managed, versioned) };
    // It calls the deleter.
    drop(import);
}

/// Sends the tensor of a capsule, which is then used up; null, and the capsule is as it was, if it is refused.
///
/// # Safety
///
/// `managed` is what the capsule holds, which is named `dltensor_versioned`, or `dltensor` unless `versioned`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tensorwire_send(managed: *mut c_void, versioned: bool) -> *const u8 {
    // SAFETY: as the caller promises.
    let import = match unsafe { import(managed, versioned) } {
        Ok(import) => import,
        Err(error) => {
            eprintln!("send: {error}");
            return ptr::null();
        }
    };
    // From here on it is ours, and gone: sent or not.
    send(import).unwrap_or_else(|error| {
        eprintln!("send: {error}");
        ptr::dangling()
    })
}

/// Counts the frames that Python has.
#[unsafe(no_mangle)]
pub extern "C" fn tensorwire_lent() -> usize {
    LENT.load(Ordering::Relaxed)
}
