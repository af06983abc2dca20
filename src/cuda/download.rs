//! Tensors of the device to the host, into frames that are sent from where they lie.
