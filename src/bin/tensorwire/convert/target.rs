//! Writing: a file that is there when all of it is written, or not at all.

#[cfg(unix)]
use std::fs::OpenOptions;
use std::fs::{self, File, Permissions};
use std::io::{self, Seek, SeekFrom, Write};
#[cfg(unix)]
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process;

use super::progress::Progress;
use super::source::{Sink, Stop};
use crate::exit::Failure;

/// A file that gets its name when it is whole.
pub(super) struct Target {
    file: File,
    /// The name that it has until then.
    draft: PathBuf,
    path: PathBuf,
    progress: Progress,
    /// Whether a write has failed: what comes after that is for nothing.
    failed: bool,
}

impl Target {
    /// Makes a file beside `path`, of another name.
    ///
    /// # Errors
    ///
    /// [`Failure::Could`].
    pub(super) fn create(path: &Path, progress: Progress) -> Result<Self, Failure> {
        let path = followed(path);
        let before = fs::metadata(&path).ok();
        if before.as_ref().is_some_and(|before| !before.is_file()) {
            return Err(Failure::Could(format!(
                "{} is no file; name one",
                path.display()
            )));
        }
        let before = before.map(|before| before.permissions());
        let mut number: u32 = 0;
        loop {
            let draft = path.with_file_name(format!(".tensorwire-{}-{number}.part", process::id()));
            match create_new(&draft, before.as_ref()) {
                Ok(file) => {
                    return Ok(Self {
                        file,
                        draft,
                        path,
                        progress,
                        failed: false,
                    });
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
                Err(error) => return Err(Failure::file("write", &path, &error)),
            }
        }
    }

    /// The name that it is to have.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Gives the file its name; what had it is gone.
    ///
    /// # Errors
    ///
    /// [`Failure::Could`]; then what had the name has it still.
    pub(super) fn finish(self) -> Result<(), Failure> {
        self.progress.clear();
        let named = self
            .file
            .sync_all()
            .and_then(|()| fs::rename(&self.draft, &self.path));
        named.map_err(|error| Failure::file("write", &self.path, &error))
    }
}

impl Write for Target {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // An archive is given an end when it is dropped, and would complain on stderr.
        if self.failed {
            return Ok(bytes.len());
        }
        let written = self.file.write(bytes);
        match &written {
            Ok(length) => self.progress.count(*length),
            Err(error) => self.failed = error.kind() != io::ErrorKind::Interrupted,
        }
        written
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Seek for Target {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}

impl Sink for Target {
    fn put(&mut self, bytes: &[u8]) -> Result<(), Stop> {
        let written = self.write_all(bytes);
        written.map_err(|error| Failure::file("write", &self.path, &error).into())
    }
}

/// Where a link leads: it stays one, and what it leads to is replaced.
fn followed(path: &Path) -> PathBuf {
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        let Ok(link) = fs::read_link(&path) else {
            break;
        };
        path.pop();
        path.push(link);
    }
    path
}

/// As many as Linux follows.
const MOST_LINKS: u32 = 40;

/// Makes a file; it has the permissions given from the start, so that nobody reads what nobody
/// else may.
#[cfg(unix)]
fn create_new(path: &Path, permissions: Option<&Permissions>) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    let Some(permissions) = permissions else {
        return options.open(path);
    };
    let file = options.mode(permissions.mode() & 0o777).open(path)?;
    let set = file.set_permissions(permissions.clone());
    if let Err(error) = set {
        let _ = fs::remove_file(path);
        return Err(error);
    }
    Ok(file)
}

#[cfg(not(unix))]
fn create_new(path: &Path, _: Option<&Permissions>) -> io::Result<File> {
    File::create_new(path)
}

/// What is not finished leaves nothing behind.
impl Drop for Target {
    fn drop(&mut self) {
        self.progress.clear();
        // It has another name if it is finished.
        let _ = fs::remove_file(&self.draft);
    }
}
