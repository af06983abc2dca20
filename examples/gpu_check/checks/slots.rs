//! Slots of a data plane's region, pinned.

use crate::Result;
use crate::args::Run;
use crate::gpu::Gpu;

pub(super) fn load_and_store(gpu: &Gpu, run: &Run) -> Result<String> {
    let _ = (gpu, run);
    todo!()
}
