//! A folder without room.

use std::io::ErrorKind;
use std::process::Command;

use tensorwire::plane::shared::Builder;
use tensorwire::plane::{self, DataPlane, PlaneError, RegionOptions};

use crate::{Folder, MIB, alone, fill, is_filled};

#[test]
fn a_pool_that_finds_no_room_is_refused_and_leaves_nothing() {
    // In name spaces of its own, where anybody may mount.
    let folder = Folder::new();
    let unshare = |script: &str| {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--mount", "sh", "-c"]);
        command.args([script, folder.text()]);
        command
    };
    let mount = "mount -t tmpfs -o size=8m none \"$0\"";
    let can = unshare(mount).output();
    if !can.is_ok_and(|can| can.status.success()) {
        eprintln!("skipped: nothing can be mounted here");
        return;
    }
    let test = alone::command("room::in_a_small_folder", &[folder.text()]);
    let variables = test.get_envs();
    let mut unshare = unshare(&format!("{mount} && exec \"$@\""));
    unshare.arg(test.get_program()).args(test.get_args());
    unshare.envs(variables.filter_map(|(name, value)| Some((name, value?))));
    let output = unshare.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && text.contains("1 passed"),
        "{text}"
    );
}

#[test]
#[ignore = "a process of another test"]
fn in_a_small_folder() {
    let [folder] = &alone::arguments()[..] else {
        return;
    };
    let builder = Builder::new().with_folder(folder);
    for prefault in [false, true] {
        let mut plane = builder.clone().with_prefault(prefault).build().unwrap();
        for len in [16 * MIB, 8 * MIB, 1 << 40] {
            let error = plane.register(RegionOptions::new(len)).unwrap_err();
            assert_eq!(error.kind(), plane::ErrorKind::Backend);
            assert_eq!(error.io_kind(), Some(ErrorKind::StorageFull), "{error}");
            assert_eq!(std::fs::read_dir(folder).unwrap().count(), 1);
        }
        // What there is room for can be used to the last byte.
        let region = plane.register(RegionOptions::new(4 * MIB)).unwrap();
        let error = plane.register(RegionOptions::new(4 * MIB)).unwrap_err();
        assert_eq!(error.io_kind(), Some(ErrorKind::StorageFull));
        let mut slot = region.pool().allocate(4 * MIB).unwrap();
        fill(region.bytes_mut(&mut slot).unwrap(), 1);
        assert!(is_filled(region.bytes(&slot).unwrap(), 1));
        drop((slot, region));
        drop(plane.register(RegionOptions::new(4 * MIB)).unwrap());
    }
}
