//! Files in `/dev/shm` that iceoryx2 began and did not finish.
//!
//! The counter of nodes is one file for all channels of a user. It stays for good, iceoryx2
//! makes it open to all, and waits without end for one that is empty. So one that nobody
//! finishes is removed before iceoryx2 looks, and one that is finished is closed to
//! the others. Numbers that start again do no harm: a node is known by its process and the
//! time, too.
//!
//! Other files have an owner that removes them, but for a pool that found no address space.

use core::time::Duration;

use std::fs::{self, DirEntry, File, Metadata, Permissions};
use std::io::Read;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Instant;

use super::Error;
use super::channel::RETRY_PAUSE;

/// Removes the counter if it was not finished, and stays so.
///
/// # Errors
///
/// [`Error::Failed`] if it is not the user's own: then only its owner can remove it.
pub(super) fn mend_counter(folder: &Path, prefix: &str, user: u32) -> Result<(), Error> {
    let start = Instant::now();
    loop {
        let mut unfinished = None;
        for (path, found) in files(folder, prefix, COUNTER) {
            if !found.is_file() || found.uid() != user {
                return Err(Error::Failed { doing: COUNT });
            }
            if !is_finished(&path, &found) {
                unfinished = Some(path);
            }
        }
        let Some(path) = unfinished else {
            return Ok(());
        };
        if start.elapsed() >= PATIENCE {
            // Whoever goes on with it later has it for itself.
            return fs::remove_file(path).map_err(|_| Error::Failed { doing: COUNT });
        }
        thread::sleep(RETRY_PAUSE);
    }
}

/// Closes the counter to other users.
pub(super) fn close_counter(folder: &Path, prefix: &str, user: u32) {
    for (path, found) in files(folder, prefix, COUNTER) {
        // One that is not finished has another mode, which says so.
        let open = found.mode() & 0o400 != 0 && found.mode() & 0o077 != 0;
        if open && found.is_file() && found.uid() == user {
            fs::set_permissions(path, Permissions::from_mode(0o600)).ok();
        }
    }
}

/// Removes what nobody has finished for so long that nobody will.
pub(super) fn remove_old(folder: &Path, prefix: &str, user: u32) {
    for (path, found) in files(folder, prefix, "") {
        let age = found.modified().ok().and_then(|time| time.elapsed().ok());
        let begun = found.mode() & 0o777 == 0o200;
        if begun && found.is_file() && found.uid() == user && age > Some(OLD) {
            fs::remove_file(path).ok();
        }
    }
}

/// Finds the files with such names.
fn files(folder: &Path, prefix: &str, suffix: &str) -> impl Iterator<Item = (PathBuf, Metadata)> {
    let is_named = move |entry: &DirEntry| {
        let name = entry.file_name();
        let name = name.to_str().unwrap_or_default();
        name.starts_with(prefix) && name.ends_with(suffix)
    };
    // What cannot be read is iceoryx2's to tell.
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    // Not what a link points to.
    entries
        .filter(is_named)
        .filter_map(|entry| Some((entry.path(), entry.metadata().ok()?)))
}

/// Tells whether whoever made it got to the end: it may be read, and has a version.
fn is_finished(path: &Path, found: &Metadata) -> bool {
    let mut version = [0; 8];
    let read = |mut file: File| file.read_exact(&mut version);
    found.mode() & 0o400 != 0 && File::open(path).and_then(read).is_ok() && version != [0; 8]
}

/// Where the files are.
pub(super) const FOLDER: &str = "/dev/shm";

/// What the name of the counter ends with; each version of iceoryx2 has one.
const COUNTER: &str = ".global_mgmt";

/// What failed, and what helps.
const COUNT: &str = "count its nodes: remove /dev/shm/tw_<number of the user>_*.global_mgmt";

/// How long a counter may take to be made: it is a matter of microseconds.
const PATIENCE: Duration = Duration::from_secs(1);

/// How old a file is that is not finished, and will not be.
const OLD: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::string::ToString;

    use std::time::SystemTime;

    use super::*;

    const PREFIX: &str = "tw_7_";

    /// A folder that goes when it is dropped.
    struct Folder(PathBuf);

    impl Folder {
        fn new(test: &str) -> Self {
            let name = format!("tw-counter-{test}-{}", std::process::id());
            let path = std::env::temp_dir().join(name);
            fs::create_dir(&path).unwrap();
            Self(path)
        }

        fn counter(&self, content: &[u8], mode: u32) -> PathBuf {
            let path = self.0.join("tw_7_abc_node.0_10_0.global_mgmt");
            fs::write(&path, content).unwrap();
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            path
        }

        fn user(&self) -> u32 {
            fs::metadata(&self.0).unwrap().uid()
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_counter_that_nobody_finishes_is_removed() {
        let folder = Folder::new("unfinished");
        let cases: [(&[u8], u32); 4] = [
            (b"", 0o200),
            (b"", 0o666),
            (&[0; 16], 0o666),
            (&[1; 16], 0o200),
        ];
        for (content, mode) in cases {
            let path = folder.counter(content, mode);
            let start = Instant::now();
            assert_eq!(mend_counter(&folder.0, PREFIX, folder.user()), Ok(()));
            assert!(start.elapsed() >= PATIENCE);
            assert!(!path.exists(), "{content:?} {mode:o}");
        }
    }

    #[test]
    fn a_counter_that_is_or_gets_finished_stays() {
        let folder = Folder::new("finished");
        let path = folder.counter(&[1; 16], 0o600);
        let start = Instant::now();
        assert_eq!(mend_counter(&folder.0, PREFIX, folder.user()), Ok(()));
        assert!(start.elapsed() < PATIENCE);
        fs::write(&path, b"").unwrap();
        thread::scope(|scope| {
            let mending = scope.spawn(|| mend_counter(&folder.0, PREFIX, folder.user()));
            thread::sleep(PATIENCE / 4);
            fs::write(&path, [1; 16]).unwrap();
            assert_eq!(mending.join().unwrap(), Ok(()));
        });
        assert!(path.exists());
    }

    #[test]
    fn a_counter_of_somebody_else_is_an_error_that_names_it() {
        let folder = Folder::new("foreign");
        let path = folder.counter(&[1; 16], 0o666);
        let somebody = folder.user() + 1;
        let error = mend_counter(&folder.0, PREFIX, somebody).unwrap_err();
        assert!(error.to_string().contains("global_mgmt"), "{error}");
        fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink("/dev/null", &path).unwrap();
        assert!(mend_counter(&folder.0, PREFIX, folder.user()).is_err());
        // Other files are nobody's concern.
        assert_eq!(mend_counter(&folder.0, "tw_8_", somebody), Ok(()));
    }

    #[test]
    fn a_counter_is_closed_to_others_once_it_is_finished() {
        let folder = Folder::new("modes");
        for (before, after) in [(0o666, 0o600), (0o600, 0o600), (0o200, 0o200)] {
            let path = folder.counter(&[1; 16], before);
            close_counter(&folder.0, PREFIX, folder.user());
            assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, after);
            fs::remove_file(path).unwrap();
        }
    }

    #[test]
    fn what_nobody_finishes_is_removed_when_it_is_old() {
        let folder = Folder::new("old");
        let ours = folder.user();
        // (mode, how old, whose, whether it stays)
        let cases = [
            (0o200, OLD * 2, ours, false),
            (0o200, OLD / 2, ours, true),
            (0o600, OLD * 2, ours, true),
            (0o200, OLD * 2, ours + 1, true),
        ];
        for (mode, age, user, stays) in cases {
            let path = folder.0.join("tw_7_abc_12.data");
            let file = File::create(&path).unwrap();
            file.set_modified(SystemTime::now() - age).unwrap();
            file.set_permissions(Permissions::from_mode(mode)).unwrap();
            remove_old(&folder.0, PREFIX, user);
            assert_eq!(path.exists(), stays, "{mode:o} {age:?} {user}");
            let _ = fs::remove_file(path);
        }
    }
}
