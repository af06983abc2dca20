//! A device that is the host: tensors in aligned memory of their own.
