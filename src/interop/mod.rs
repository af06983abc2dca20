//! Tensors as other crates have them: one module for each, behind the feature of its name.

#[cfg(feature = "safetensors")]
pub mod safetensors;
