//! Tensors of the host to the device.
