//! Files in the folder: made, found, and swept away.
//!
//! One rule holds for all of them: who made a file holds its lock for as long as it
//! lives. A file whose lock is free belongs to nobody any more. The lock is the file's,
//! not a process id's: it is right between containers that share the folder and count
//! their processes apart, and no later process is taken for one that died.

use alloc::borrow::ToOwned;
use alloc::string::ToString;
use alloc::vec;
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use zerocopy::IntoBytes;

use super::layout::{HEADER_LEN, Layout};
use super::name::{Name, Session, Writer};
use crate::convert::to_u64;

/// What every file of ours may be: read and written by its owner.
const MODE: u32 = 0o600;

/// How often a file is made anew that a sweep took for a stale one.
const ATTEMPTS: usize = 16;

/// The folder, and who we are in it.
#[derive(Clone, Debug)]
pub(super) struct Folder {
    path: PathBuf,
    user: u32,
}

/// A file that we made, locked. Dropping it takes it away.
#[derive(Debug)]
pub(super) struct Held {
    file: File,
    path: PathBuf,
}

/// A file that another plane made, of which all was checked but what lies in it.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) file: File,
    pub(super) len: u64,
}

/// Why a file of another plane is not to be used.
#[derive(Debug)]
pub(super) enum FindError {
    /// Who made it is dead.
    Abandoned,
    /// It is no plain file, not ours, open to others, or linked twice.
    Foreign,
    /// The system's.
    Io(io::Error),
    /// There is none.
    Missing,
}

impl Folder {
    /// Enters the folder at `path`, which is made if it is not there, and takes away
    /// what dead planes of this user left in it. Returns a new session, and the file
    /// that marks it as living.
    ///
    /// # Errors
    ///
    /// The system's.
    pub(super) fn enter(path: &Path) -> io::Result<(Self, Session, Held)> {
        // To nobody else; a folder that is there already is as it is.
        DirBuilder::new().recursive(true).mode(0o700).create(path)?;
        let (held, session) = hold(path, || {
            let session = Session::random()?;
            Ok((Name::Plane(session.writer()), session))
        })?;
        let folder = Self {
            path: path.to_owned(),
            user: held.file.metadata()?.uid(),
        };
        folder.sweep()?;
        Ok((folder, session, held))
    }

    /// Makes the file of a pool, with room for all of it. `next` gives its name, and a
    /// further one where another plane's sweep was faster.
    ///
    /// # Errors
    ///
    /// The system's; [`io::ErrorKind::StorageFull`] where there is no room. Then there
    /// is no file.
    pub(super) fn create_segment(
        &self,
        next: impl FnMut() -> io::Result<(Name, Layout)>,
    ) -> io::Result<(Held, Layout)> {
        let (held, layout) = hold(&self.path, next)?;
        held.reserve(&layout)?;
        Ok((held, layout))
    }

    /// Opens a file that another plane made and still holds.
    ///
    /// # Errors
    ///
    /// As [`FindError`] says.
    pub(super) fn find(&self, name: Name) -> Result<Found, FindError> {
        let found = self.open(&self.path.join(name.to_string()))?;
        if !is_held(&found.file) {
            return Err(FindError::Abandoned);
        }
        Ok(found)
    }

    /// Tells whether a writer may still be writing: whether its plane lives.
    ///
    /// In doubt it does.
    pub(super) fn lives(&self, writer: Writer) -> bool {
        let found = self.find(Name::Plane(writer));
        !matches!(found, Err(FindError::Abandoned | FindError::Missing))
    }

    /// Takes away what dead planes of this user left.
    fn sweep(&self) -> io::Result<()> {
        for entry in fs::read_dir(&self.path)? {
            let entry = entry?;
            if entry.file_name().to_str().and_then(Name::parse).is_none() {
                continue;
            }
            let path = entry.path();
            // What cannot be opened is not ours, or gone already.
            let Ok(found) = self.open(&path) else {
                continue;
            };
            // While we hold it, who is just making it sees that it is taken.
            if found.file.try_lock().is_ok() {
                // Another sweep may have been faster.
                let _ = fs::remove_file(&path);
            }
        }
        Ok(())
    }

    fn open(&self, path: &Path) -> Result<Found, FindError> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            // Neither through a link nor waiting for the other end of a pipe.
            .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
            .open(path)
            .map_err(|error| match error.kind() {
                io::ErrorKind::NotFound => FindError::Missing,
                io::ErrorKind::PermissionDenied | io::ErrorKind::IsADirectory => FindError::Foreign,
                _ if error.raw_os_error() == Some(libc::ELOOP) => FindError::Foreign,
                // A socket, or a pipe or device without its other end.
                _ if error.raw_os_error() == Some(libc::ENXIO) => FindError::Foreign,
                _ => FindError::Io(error),
            })?;
        let metadata = file.metadata().map_err(FindError::Io)?;
        let is_plain = metadata.is_file() && metadata.mode() & 0o7777 == MODE;
        if !is_plain || metadata.uid() != self.user || metadata.nlink() > 1 {
            return Err(FindError::Foreign);
        }
        if metadata.nlink() == 0 {
            return Err(FindError::Missing);
        }
        Ok(Found {
            file,
            len: metadata.len(),
        })
    }
}

impl Found {
    /// Tells whether the file still has its name and its maker.
    pub(super) fn is_current(&self) -> bool {
        let linked = self.file.metadata().is_ok_and(|found| found.nlink() > 0);
        linked && is_held(&self.file)
    }

    /// Reads the header of a segment into a private copy, and checks that.
    ///
    /// `None` if the file is no segment of the pool `number`.
    ///
    /// # Errors
    ///
    /// The system's.
    pub(super) fn layout(&self, number: u32) -> io::Result<Option<Layout>> {
        let mut header = [0; HEADER_LEN];
        match self.file.read_exact_at(&mut header, 0) {
            Ok(()) => Ok(Layout::decode(&header, number, self.len)),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl Held {
    /// Returns the file.
    pub(super) const fn file(&self) -> &File {
        &self.file
    }

    /// Tells whether the file still has its name.
    pub(super) fn is_linked(&self) -> bool {
        self.file.metadata().is_ok_and(|file| file.nlink() > 0)
    }

    /// Gives the file its length and its header, and takes memory for all of it now:
    /// later, where there is none left, a touch would end the process.
    fn reserve(&self, layout: &Layout) -> io::Result<()> {
        self.file.set_len(to_u64(layout.total_len()))?;
        self.write_zeros(0, layout.windows_end())?;
        self.write_zeros(layout.pool_offset(), layout.pool_len())?;
        self.file.write_all_at(layout.header().as_bytes(), 0)
    }

    fn write_zeros(&self, start: usize, len: usize) -> io::Result<()> {
        let zeros = vec![0; 1 << 20];
        let mut offset = to_u64(start);
        let mut left = len;
        while left > 0 {
            let part = zeros.get(..left).unwrap_or(&zeros);
            self.file.write_all_at(part, offset)?;
            offset = offset.saturating_add(to_u64(part.len()));
            left = left.saturating_sub(part.len());
        }
        Ok(())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // First the name, then, with the file, the lock. It may be gone already.
        let _ = fs::remove_file(&self.path);
    }
}

/// Makes a file under one of the names that `next` gives, and locks it.
fn hold<T>(
    folder: &Path,
    mut next: impl FnMut() -> io::Result<(Name, T)>,
) -> io::Result<(Held, T)> {
    for _ in 0..ATTEMPTS {
        let (name, value) = next()?;
        let path = folder.join(name.to_string());
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .mode(MODE)
            .open(&path)?;
        let held = Held { file, path };
        // Whatever the process takes off the modes of its files.
        held.file.set_permissions(Permissions::from_mode(MODE))?;
        // A sweep that comes between the two lines above takes the file for a stale one.
        let is_locked = held.file.try_lock().is_ok();
        if is_locked && held.file.metadata()?.nlink() > 0 {
            return Ok((held, value));
        }
    }
    Err(io::ErrorKind::ResourceBusy.into())
}

/// Tells whether somebody holds the lock of a file; in doubt somebody does.
fn is_held(file: &File) -> bool {
    match file.try_lock_shared() {
        Ok(()) => {
            // The file is closed otherwise, and the lock gone with it.
            let _ = file.unlock();
            false
        }
        Err(TryLockError::WouldBlock) => true,
        Err(TryLockError::Error(_)) => true,
    }
}
