//! Each kind of fault, on a disk in memory.

use std::io::{ErrorKind, IoSlice};
use std::path::Path;

use super::{Call, Fault, FaultyDisk, Outcome, Repeat, Syncs};
use crate::disk::{Access, Disk, DiskFile, MemoryDisk, OpenMode};
use crate::sync::Arc;

fn faulty() -> (MemoryDisk, FaultyDisk) {
    let memory = MemoryDisk::new();
    (memory.clone(), FaultyDisk::new(Arc::new(memory)))
}

fn create(disk: &FaultyDisk, name: &str) -> Arc<dyn DiskFile> {
    disk.open(Path::new(name), OpenMode::CreateNew).unwrap()
}

/// Writes in two buffers, and says how many bytes or which error number.
fn write(file: &dyn DiskFile, offset: u64, bytes: &[u8]) -> Result<usize, Option<i32>> {
    let (left, right) = bytes.split_at(bytes.len() / 2);
    let bufs = [IoSlice::new(left), IoSlice::new(right)];
    file.write_at(&bufs, offset, Access::Keep).map_err(|e| e.raw_os_error())
}

fn content(file: &dyn DiskFile) -> Vec<u8> {
    let mut bytes = vec![0; usize::try_from(file.len().unwrap()).unwrap()];
    file.read_exact_at(&mut bytes, 0, Access::Keep).unwrap();
    bytes
}

#[test]
fn one_call_of_a_set_fails_once_and_reaches_nothing() {
    let (_, disk) = faulty();
    let file = create(&disk, "a");
    disk.fail_once(&[Call::Write, Call::SyncData], 2, libc::EIO);
    assert_eq!(write(&*file, 0, b"1"), Ok(1));
    file.sync_data().unwrap();
    assert!(disk.list(Path::new("")).is_ok());
    assert_eq!(write(&*file, 1, b"2"), Err(Some(libc::EIO)));
    assert_eq!(content(&*file), b"1");
    assert_eq!(write(&*file, 1, b"3"), Ok(1));
    assert_eq!(content(&*file), b"13");
}

#[test]
fn calls_fail_onward_until_healed() {
    let (_, disk) = faulty();
    let file = create(&disk, "a");
    disk.fail_from(&[Call::SyncData], 1, libc::ENOSPC);
    file.sync_data().unwrap();
    for _ in 0..3 {
        assert_eq!(file.sync_data().unwrap_err().kind(), ErrorKind::StorageFull);
    }
    disk.heal();
    file.sync_data().unwrap();
    assert_eq!(disk.calls(Call::SyncData), 5);
}

#[test]
fn every_kind_of_call_is_counted_and_can_fail() {
    type Act = fn(&FaultyDisk, &dyn DiskFile) -> std::io::Result<()>;
    let kinds: [(Call, Act); 13] = [
        (Call::Open, |disk, _| disk.open(Path::new("a"), OpenMode::Read).map(|_| ())),
        (Call::Read, |_, file| file.read_at(&mut [0], 0, Access::Keep).map(|_| ())),
        (Call::Write, |_, file| file.write_at(&[], 0, Access::Keep).map(|_| ())),
        (Call::SyncData, |_, file| file.sync_data()),
        (Call::SetLen, |_, file| file.set_len(1)),
        (Call::Allocate, |_, file| file.allocate(0, 1)),
        (Call::Map, |_, file| file.map(1).map(|_| ())),
        (Call::Rename, |disk, _| disk.rename(Path::new("a"), Path::new("a"))),
        (Call::List, |disk, _| disk.list(Path::new("")).map(|_| ())),
        (Call::CreateDir, |disk, _| disk.create_dir_all(Path::new("d"))),
        (Call::SyncDir, |disk, _| disk.sync_dir(Path::new(""))),
        (Call::Lock, |disk, _| disk.lock(Path::new("l")).map(|_| ())),
        (Call::Remove, |disk, _| disk.remove(Path::new("a"))),
    ];
    let (_, disk) = faulty();
    let file = create(&disk, "a");
    for (call, act) in kinds {
        let before = disk.calls(call);
        disk.fail_once(&[call], 0, libc::EIO);
        let error = act(&disk, &*file).expect_err("the fault hits");
        assert_eq!(error.raw_os_error(), Some(libc::EIO), "{call:?}");
        act(&disk, &*file).unwrap_or_else(|e| panic!("{call:?}: {e}"));
        assert_eq!(disk.calls(call), before + 2, "{call:?}");
    }
    assert_eq!(disk.calls_of(&kinds.map(|(call, _)| call)), 27);
}

#[test]
fn an_error_after_the_effect_leaves_the_effect() {
    let (_, disk) = faulty();
    let file = create(&disk, "a");
    let calls = vec![Call::Write, Call::Rename];
    let outcome = Outcome::ErrorAfter(libc::EIO);
    disk.inject(Fault { calls, skip: 0, outcome, repeat: Repeat::Onward });
    assert_eq!(write(&*file, 0, b"done"), Err(Some(libc::EIO)));
    assert!(disk.rename(Path::new("a"), Path::new("b")).is_err());
    assert_eq!(content(&*file), b"done");
    assert_eq!(disk.list(Path::new("")).unwrap(), ["b"]);
}

#[test]
fn short_writes_write_what_they_say_or_fail() {
    let (_, disk) = faulty();
    let file = create(&disk, "a");
    let short = |outcome| {
        disk.inject(Fault { calls: vec![Call::Write], skip: 0, outcome, repeat: Repeat::Once });
    };
    short(Outcome::Short(3));
    assert_eq!(write(&*file, 0, b"abcd"), Ok(3));
    assert_eq!(content(&*file), b"abc");
    short(Outcome::ShortThenError(1, libc::EIO));
    assert_eq!(write(&*file, 3, b"XY"), Err(Some(libc::EIO)));
    assert_eq!(content(&*file), b"abcX");
    short(Outcome::Short(100));
    assert_eq!(write(&*file, 4, b"Z"), Ok(1));
    short(Outcome::Short(0));
    assert_eq!(write(&*file, 5, b"Z"), Ok(0));
    assert_eq!(content(&*file), b"abcXZ");
}

#[test]
fn a_full_disk_cuts_a_write_short_then_refuses_until_there_is_space() {
    let (_, disk) = faulty();
    let file = create(&disk, "a");
    disk.set_free_space(Some(10));
    assert_eq!(write(&*file, 0, b"12345678"), Ok(8));
    assert_eq!(write(&*file, 8, b"9abc"), Ok(2));
    assert_eq!(write(&*file, 10, b"bc"), Err(Some(libc::ENOSPC)));
    assert_eq!(write(&*file, 0, b"overwriting"), Ok(10));
    assert_eq!(content(&*file), b"overwritin");
    disk.set_free_space(Some(1));
    assert_eq!(write(&*file, 10, b"g!"), Ok(1));
    assert_eq!(disk.free_space(), Some(0));
    disk.set_free_space(None);
    assert_eq!(write(&*file, 11, b"!"), Ok(1));
}

#[test]
fn reserved_space_is_taken_once_and_given_back_by_cuts_removals_and_replacements() {
    let (memory, disk) = faulty();
    let old = memory.open(Path::new("old"), OpenMode::CreateNew).unwrap();
    assert_eq!(write(&*old, 0, b"1234567"), Ok(7));
    let file = create(&disk, "a");
    disk.set_free_space(Some(100));
    file.allocate(0, 60).unwrap();
    assert_eq!(disk.free_space(), Some(40));
    assert_eq!(write(&*file, 0, &[1; 60]), Ok(60));
    assert_eq!(disk.free_space(), Some(40));
    assert_eq!(file.allocate(50, 51).unwrap_err().kind(), ErrorKind::StorageFull);
    assert_eq!(disk.free_space(), Some(40));
    file.set_len(1000).unwrap();
    assert_eq!(disk.free_space(), Some(40));
    assert_eq!(write(&*file, 500, b"past a hole"), Err(Some(libc::ENOSPC)));
    file.set_len(20).unwrap();
    assert_eq!(disk.free_space(), Some(80));
    disk.rename(Path::new("a"), Path::new("old")).unwrap();
    assert_eq!(disk.free_space(), Some(87), "the replaced file's 7 bytes come back");
    let again = disk.open(Path::new("old"), OpenMode::ReadWrite).unwrap();
    assert_eq!(write(&*again, 20, b"123"), Ok(3));
    assert_eq!(disk.free_space(), Some(84));
    disk.remove(Path::new("old")).unwrap();
    assert_eq!(disk.free_space(), Some(107));
}

#[test]
fn lying_syncs_succeed_and_make_nothing_durable() {
    let (memory, disk) = faulty();
    disk.set_syncs(Syncs::Lying);
    let file = create(&disk, "a");
    assert_eq!(write(&*file, 0, b"bytes"), Ok(5));
    let left = || {
        file.sync_data().unwrap();
        disk.sync_dir(Path::new("")).unwrap();
        memory.power_cut(|_| false).unwrap().list(Path::new("")).unwrap()
    };
    assert!(left().is_empty());
    disk.set_syncs(Syncs::Honest);
    assert_eq!(left(), ["a"]);
}

#[test]
fn two_faults_that_hit_one_call_do_so_one_after_the_other() {
    let (_, disk) = faulty();
    let file = create(&disk, "a");
    disk.fail_once(&[Call::Write], 0, libc::EIO);
    disk.fail_once(&[Call::Write], 0, libc::ENOSPC);
    assert_eq!(write(&*file, 0, b"x"), Err(Some(libc::EIO)));
    assert_eq!(write(&*file, 0, b"x"), Err(Some(libc::ENOSPC)));
    assert_eq!(write(&*file, 0, b"x"), Ok(1));
}
