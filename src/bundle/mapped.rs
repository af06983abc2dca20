//! Bundles in files, mapped into memory.
#![allow(unsafe_code)]

use core::error::Error as StdError;
use core::fmt;

use std::fs::File;
use std::io;
use std::path::Path;

use memmap2::Mmap;

use super::{Bundle, Error};

/// A file that holds one bundle, mapped into memory and checked.
///
/// Nothing is read but header, table and padding until a frame is looked at;
/// nothing is copied. Maps start at a page, so every frame is aligned to 64.
///
/// # Examples
///
/// ```
/// use std::fs::File;
///
/// use tensorwire::bundle::{self, Mapped};
///
/// let path = std::env::temp_dir().join(format!("tensorwire-mapped-{}", std::process::id()));
/// bundle::write_to(&["metadata", "payload"], File::create(&path)?)?;
/// // SAFETY: the file is ours, and nobody writes to it any more.
/// let mapped = unsafe { Mapped::open(&path)? };
/// assert_eq!(mapped.bundle().frame(1), Some(&b"payload"[..]));
/// # drop(mapped);
/// # std::fs::remove_file(&path)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Mapped {
    map: Mmap,
    frames: usize,
}

impl Mapped {
    /// Maps the file at `path`, and checks the bundle in it.
    ///
    /// # Errors
    ///
    /// What the system says, or what [`Bundle::decode`] does.
    ///
    /// # Safety
    ///
    /// As long as the result lives, the file is
    ///
    /// 1. not written to, by this process or by another;
    /// 2. not made shorter.
    ///
    /// A reader's view of the bytes would change under it otherwise, or end the process.
    pub unsafe fn open<P: AsRef<Path>>(path: P) -> Result<Self, MappedError> {
        let file = File::open(path).map_err(MappedError::Io)?;
        // SAFETY: the caller promises the same of this file.
        unsafe { Self::from_file(&file) }
    }

    /// Maps an open file, and checks the bundle in it. The file may be closed then.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open).
    ///
    /// # Safety
    ///
    /// As [`open`](Self::open).
    pub unsafe fn from_file(file: &File) -> Result<Self, MappedError> {
        // SAFETY: `Mmap::map` asks that the file is not modified, within this
        // process or out of it, while the map lives. The caller promises so.
        let map = unsafe { Mmap::map(file) }.map_err(MappedError::Io)?;
        let frames = Bundle::decode(&map).map_err(MappedError::Bundle)?.len();
        Ok(Self { map, frames })
    }

    /// Returns the bundle, which was checked when the file was mapped.
    #[must_use]
    pub fn bundle(&self) -> Bundle<'_> {
        Bundle::checked_before(&self.map, self.frames)
    }
}

impl fmt::Debug for Mapped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mapped")
            .field("len", &self.frames)
            .field("total_len", &self.map.len())
            .finish()
    }
}

/// A file could not be mapped as a bundle.
#[derive(Debug)]
#[non_exhaustive]
pub enum MappedError {
    /// What lies in the file is no bundle.
    Bundle(Error),
    /// The file could not be opened or mapped.
    Io(io::Error),
}

impl fmt::Display for MappedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bundle(error) => error.fmt(f),
            Self::Io(error) => error.fmt(f),
        }
    }
}

impl StdError for MappedError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match self {
            Self::Bundle(error) => error.source(),
            Self::Io(error) => error.source(),
        }
    }
}
