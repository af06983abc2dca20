//! Moving frames between processes.
