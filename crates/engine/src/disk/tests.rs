//! What every disk does, with one body for all of them.

use std::io::{ErrorKind, IoSlice};
use std::path::Path;

use super::faulty::FaultyDisk;
use super::{Access, Disk, DiskFile, MemoryDisk, OpenMode, RealDisk};
use crate::sync::Arc;

/// Runs a test on an empty folder of each disk.
fn on_each_disk(test: impl Fn(&dyn Disk, &Path)) {
    let folder = tempfile::tempdir().unwrap();
    test(&RealDisk::new(), folder.path());
    let memory = MemoryDisk::new();
    memory.create_dir_all(Path::new("/db")).unwrap();
    test(&memory, Path::new("/db"));
    let memory = MemoryDisk::new();
    memory.create_dir_all(Path::new("relative/db")).unwrap();
    test(&FaultyDisk::new(Arc::new(memory)), Path::new("relative/db"));
}

fn create(disk: &dyn Disk, path: &Path, bytes: &[u8]) -> Arc<dyn DiskFile> {
    let file = disk.open(path, OpenMode::CreateNew).unwrap();
    assert_eq!(file.write_at(&[IoSlice::new(bytes)], 0, Access::Keep).unwrap(), bytes.len());
    file
}

fn content(file: &dyn DiskFile) -> Vec<u8> {
    let mut bytes = vec![0; usize::try_from(file.len().unwrap()).unwrap()];
    file.read_exact_at(&mut bytes, 0, Access::Keep).unwrap();
    bytes
}

#[test]
fn open_modes_treat_existence_and_writing_as_they_say() {
    on_each_disk(|disk, root| {
        let path = root.join("file");
        let open = |mode| disk.open(&path, mode).map(|_| ()).map_err(|e| e.kind());
        assert_eq!(open(OpenMode::Read), Err(ErrorKind::NotFound));
        assert_eq!(open(OpenMode::ReadWrite), Err(ErrorKind::NotFound));
        assert_eq!(open(OpenMode::CreateNew), Ok(()));
        assert_eq!(open(OpenMode::CreateNew), Err(ErrorKind::AlreadyExists));
        let missing = disk.open(&root.join("no/file"), OpenMode::CreateNew);
        assert_eq!(missing.map(|_| ()).unwrap_err().kind(), ErrorKind::NotFound);

        let read = disk.open(&path, OpenMode::Read).unwrap();
        let write = read.write_at(&[IoSlice::new(b"x")], 0, Access::Keep).unwrap_err();
        assert_eq!(write.raw_os_error(), Some(libc::EBADF));
        assert!(read.set_len(1).is_err());
        let both = disk.open(&path, OpenMode::ReadWrite).unwrap();
        both.write_at(&[IoSlice::new(b"x")], 0, Access::Keep).unwrap();
        assert_eq!(content(&*read), b"x");
    });
}

#[test]
fn vectored_writes_land_one_after_the_other_whatever_the_access() {
    on_each_disk(|disk, root| {
        for access in [Access::Keep, Access::Once] {
            let path = root.join(format!("{access:?}"));
            let file = disk.open(&path, OpenMode::CreateNew).unwrap();
            let bufs = [b"ab".as_slice(), b"", b"cde"].map(IoSlice::new);
            assert_eq!(file.write_at(&bufs, 3, access).unwrap(), 5);
            assert_eq!(file.write_at(&[], 0, access).unwrap(), 0);
            let mut all = [9; 10];
            assert_eq!(file.read_at(&mut all, 0, access).unwrap(), 8);
            assert_eq!(all, *b"\0\0\0abcde\x09\x09");
            assert_eq!(file.read_at(&mut all, 8, access).unwrap(), 0);
            let end = file.read_exact_at(&mut all, 0, access).unwrap_err();
            assert_eq!(end.kind(), ErrorKind::UnexpectedEof);
        }
    });
}

#[test]
fn more_buffers_than_one_call_takes_are_written_in_part() {
    on_each_disk(|disk, root| {
        let file = disk.open(&root.join("file"), OpenMode::CreateNew).unwrap();
        let bufs = vec![IoSlice::new(b"ab"); 3000];
        let written = file.write_at(&bufs, 0, Access::Keep).unwrap();
        assert!(written > 0 && written <= 6000 && written.is_multiple_of(2), "{written}");
        assert_eq!(content(&*file), b"ab".repeat(written / 2));
    });
}

#[test]
fn offsets_out_of_range_are_errors() {
    on_each_disk(|disk, root| {
        let file = create(disk, &root.join("file"), b"x");
        assert!(file.write_at(&[IoSlice::new(b"x")], 1 << 63, Access::Keep).is_err());
        assert!(
            file.read_at(&mut [0], 1 << 63, Access::Keep).is_ok_and(|n| n == 0)
                || file.read_at(&mut [0], 1 << 63, Access::Keep).is_err()
        );
        assert!(file.allocate(u64::MAX, 1).is_err());
        assert!(file.map(u64::MAX).is_err());
    });
}

#[test]
fn lengths_follow_writes_cuts_and_reservations() {
    on_each_disk(|disk, root| {
        let file = create(disk, &root.join("file"), b"abcdef");
        file.set_len(2).unwrap();
        file.set_len(4).unwrap();
        assert_eq!(content(&*file), b"ab\0\0");
        file.allocate(0, 3).unwrap();
        assert_eq!(file.len().unwrap(), 4);
        file.allocate(0, 0).unwrap();
        file.allocate(8192, 4096).unwrap();
        assert_eq!(file.len().unwrap(), 12_288);
        file.sync_data().unwrap();
        file.start_writeback(0, 4096).unwrap();
        assert!(file.allocated().unwrap() >= 4096);
        assert_eq!(file.allocated().unwrap() % 512, 0);
    });
}

#[test]
fn a_map_shows_later_writes_and_refuses_ranges_outside() {
    on_each_disk(|disk, root| {
        let file = create(disk, &root.join("file"), b"abc");
        let map = file.map(1 << 20).unwrap();
        assert_eq!(map.len(), 1 << 20);
        map.advise_random().unwrap();
        map.advise_willneed(0..1 << 30).unwrap();
        map.advise_willneed(1 << 30..1 << 31).unwrap();
        assert_eq!(map.bytes(0..3), Some(b"abc".as_slice()));
        file.write_at(&[IoSlice::new(b"later")], 5000, Access::Keep).unwrap();
        assert_eq!(map.bytes(5000..5005), Some(b"later".as_slice()));
        assert_eq!(map.bytes(1 << 20..1 << 20), Some(b"".as_slice()));
        assert_eq!(map.bytes((1 << 20) - 1..(1 << 20) + 1), None);
        let reversed = std::ops::Range { start: 2, end: 1 };
        assert_eq!(map.bytes(reversed), None);
        let empty = file.map(0).unwrap();
        assert!(empty.is_empty());
        empty.advise_random().unwrap();
        assert_eq!(empty.bytes(0..1), None);
    });
}

#[test]
fn a_removed_file_stays_readable_through_handles_and_maps() {
    on_each_disk(|disk, root| {
        let path = root.join("file");
        let file = create(disk, &path, b"kept");
        let map = file.map(4).unwrap();
        disk.remove(&path).unwrap();
        assert_eq!(disk.remove(&path).unwrap_err().kind(), ErrorKind::NotFound);
        create(disk, &path, b"other");
        assert_eq!(content(&*file), b"kept");
        drop(file);
        assert_eq!(map.bytes(0..4), Some(b"kept".as_slice()));
    });
}

#[test]
fn a_rename_replaces_its_target() {
    on_each_disk(|disk, root| {
        let (new, old) = (root.join("new"), root.join("old"));
        let replaced = create(disk, &old, b"old");
        create(disk, &new, b"new");
        disk.rename(&new, &old).unwrap();
        disk.sync_dir(root).unwrap();
        assert_eq!(disk.list(root).unwrap(), ["old"]);
        assert_eq!(content(&*disk.open(&old, OpenMode::Read).unwrap()), b"new");
        assert_eq!(content(&*replaced), b"old");
        disk.rename(&old, &old).unwrap();
        assert_eq!(disk.list(root).unwrap(), ["old"]);
        assert_eq!(disk.rename(&new, &old).unwrap_err().kind(), ErrorKind::NotFound);
        let no_folder = disk.rename(&old, &root.join("no/old")).unwrap_err();
        assert_eq!(no_folder.kind(), ErrorKind::NotFound);
    });
}

#[test]
fn a_folder_lists_its_own_names_sorted() {
    on_each_disk(|disk, root| {
        assert_eq!(disk.list(&root.join("no")).unwrap_err().kind(), ErrorKind::NotFound);
        assert_eq!(disk.sync_dir(&root.join("no")).unwrap_err().kind(), ErrorKind::NotFound);
        disk.create_dir_all(&root.join("sub/deeper/deepest")).unwrap();
        disk.create_dir_all(&root.join("sub/deeper")).unwrap();
        create(disk, &root.join("sub/hidden"), b"");
        for name in ["b", "a", "10", "9"] {
            create(disk, &root.join(name), b"");
        }
        assert_eq!(disk.list(root).unwrap(), ["10", "9", "a", "b", "sub"]);
        assert_eq!(disk.list(&root.join("sub/")).unwrap(), ["deeper", "hidden"]);
        assert!(disk.list(&root.join("sub/deeper/deepest")).unwrap().is_empty());
        assert!(disk.create_dir_all(&root.join("a")).is_err());
        assert!(disk.create_dir_all(&root.join("a/below")).is_err());
        assert!(disk.remove(&root.join("sub")).is_err());
    });
}

#[test]
fn a_lock_excludes_others_until_dropped() {
    on_each_disk(|disk, root| {
        let path = root.join("LOCK");
        let lock = disk.lock(&path).unwrap();
        assert_eq!(disk.list(root).unwrap(), ["LOCK"]);
        assert_eq!(disk.lock(&path).unwrap_err().kind(), ErrorKind::WouldBlock);
        let other = disk.lock(&root.join("OTHER")).unwrap();
        drop(lock);
        let again = disk.lock(&path).unwrap();
        drop((again, other));
    });
}
