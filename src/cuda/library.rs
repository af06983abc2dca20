//! The driver's library, looked for before cudarc does.
