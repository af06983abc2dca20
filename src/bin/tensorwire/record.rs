//! Messages saved as they go by, a bundle each.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};

use tensorwire::bundle;

use crate::exit::Failure;

/// Where messages are saved, and how many were.
#[derive(Debug)]
pub(crate) struct Recorder {
    folder: PathBuf,
    next: u64,
}

impl Recorder {
    /// Makes the folder, if it is not there; what is in it is kept.
    pub(crate) fn new(folder: &Path) -> Result<Self, Failure> {
        make_folder(folder)?;
        // A folder that takes no files is told now, not when the first message is at stake.
        let trial = folder.join(format!(".tensorwire-{}", std::process::id()));
        let tried = File::create(&trial).and_then(|_| fs::remove_file(&trial));
        tried.map_err(|error| Failure::file("write to", folder, &error))?;
        Ok(Self {
            folder: folder.to_owned(),
            next: 0,
        })
    }

    /// Saves a message under the next name that is free; `what` stands in it.
    pub(crate) fn save(&mut self, what: &str, frames: &[&[u8]]) -> Result<(), Failure> {
        let (path, file) = self.create(what)?;
        let mut file = BufWriter::new(file);
        let written = bundle::write_to(frames, &mut file).and_then(|_| file.flush());
        written.map_err(|error| {
            // A part of a message is worse than none.
            let _ = fs::remove_file(&path);
            Failure::file("write", &path, &error)
        })
    }

    /// Makes the file of the next name that is free.
    fn create(&mut self, what: &str) -> Result<(PathBuf, File), Failure> {
        loop {
            let path = self.folder.join(format!("{what}{:06}.bundle", self.next));
            self.next += 1;
            match File::create_new(&path) {
                Ok(file) => return Ok((path, file)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(Failure::file("write", &path, &error)),
            }
        }
    }
}

/// Makes a folder, and those above it.
pub(crate) fn make_folder(folder: &Path) -> Result<(), Failure> {
    fs::create_dir_all(folder).map_err(|error| Failure::file("make", folder, &error))
}
