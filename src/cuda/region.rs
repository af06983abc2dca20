//! Slots of a data plane, pinned: loaded and stored by manifest.
