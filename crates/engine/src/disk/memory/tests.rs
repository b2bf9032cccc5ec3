//! What a power cut leaves, what a trace holds.

use std::io::IoSlice;
use std::path::Path;

use super::{MemoryDisk, Operation, Unsynced};
use crate::disk::{Access, Disk, DiskFile, OpenMode};
use crate::sync::Arc;

fn path(name: &str) -> &Path {
    Path::new(name)
}

fn create(disk: &MemoryDisk, name: &str) -> Arc<dyn DiskFile> {
    disk.open(path(name), OpenMode::CreateNew).unwrap()
}

/// A file that a power cut cannot take, with bytes that it cannot take.
fn durable(disk: &MemoryDisk, name: &str, bytes: &[u8]) -> Arc<dyn DiskFile> {
    let file = create(disk, name);
    write(&*file, 0, bytes);
    file.sync_data().unwrap();
    disk.sync_dir(path("")).unwrap();
    file
}

fn write(file: &dyn DiskFile, offset: u64, bytes: &[u8]) {
    let written = file.write_at(&[IoSlice::new(bytes)], offset, Access::Keep).unwrap();
    assert_eq!(written, bytes.len());
}

fn content(disk: &MemoryDisk, name: &str) -> Vec<u8> {
    let file = disk.open(path(name), OpenMode::Read).unwrap();
    let mut bytes = vec![0; usize::try_from(file.len().unwrap()).unwrap()];
    file.read_exact_at(&mut bytes, 0, Access::Keep).unwrap();
    bytes
}

fn names(disk: &MemoryDisk) -> Vec<String> {
    let names = disk.list(path("")).unwrap();
    names.into_iter().map(|name| name.into_string().unwrap()).collect()
}

fn lose_all(_: &Unsynced) -> bool {
    false
}

fn keep_all(_: &Unsynced) -> bool {
    true
}

#[test]
fn synced_bytes_survive_and_unsynced_ones_do_not() {
    let disk = MemoryDisk::new();
    let file = durable(&disk, "log", b"synced");
    write(&*file, 2, b"XX and more");
    let cut = disk.power_cut(lose_all).unwrap();
    assert_eq!(content(&cut, "log"), b"synced");
    assert_eq!(content(&disk.power_cut(keep_all).unwrap(), "log"), b"syXX and more");
    assert_eq!(content(&disk, "log"), b"syXX and more");
}

#[test]
fn a_synced_file_whose_folder_is_not_synced_is_gone() {
    let disk = MemoryDisk::new();
    let file = create(&disk, "log");
    write(&*file, 0, b"bytes");
    file.sync_data().unwrap();
    assert!(names(&disk.power_cut(lose_all).unwrap()).is_empty());
    assert_eq!(content(&disk.power_cut(keep_all).unwrap(), "log"), b"bytes");
}

#[test]
fn a_rename_without_a_folder_sync_may_be_lost_and_without_a_file_sync_names_an_empty_file() {
    let disk = MemoryDisk::new();
    durable(&disk, "manifest", b"old");
    let next = create(&disk, "manifest.new");
    write(&*next, 0, b"new");
    disk.rename(path("manifest.new"), path("manifest")).unwrap();
    let cut = disk.power_cut(lose_all).unwrap();
    assert_eq!(names(&cut), ["manifest"]);
    assert_eq!(content(&cut, "manifest"), b"old");
    let renamed = |unsynced: &Unsynced| matches!(unsynced, Unsynced::Rename { .. });
    let cut = disk.power_cut(renamed).unwrap();
    assert_eq!(names(&cut), ["manifest"]);
    assert_eq!(content(&cut, "manifest"), b"");
    let created = |unsynced: &Unsynced| matches!(unsynced, Unsynced::Create { .. });
    let cut = disk.power_cut(created).unwrap();
    assert_eq!(names(&cut), ["manifest", "manifest.new"]);
    disk.sync_dir(path("")).unwrap();
    next.sync_data().unwrap();
    let cut = disk.power_cut(lose_all).unwrap();
    assert_eq!(names(&cut), ["manifest"]);
    assert_eq!(content(&cut, "manifest"), b"new");
}

#[test]
fn a_removed_name_comes_back_until_the_folder_is_synced() {
    let disk = MemoryDisk::new();
    durable(&disk, "segment", b"bytes");
    disk.remove(path("segment")).unwrap();
    assert_eq!(content(&disk.power_cut(lose_all).unwrap(), "segment"), b"bytes");
    assert!(names(&disk.power_cut(keep_all).unwrap()).is_empty());
    let next = create(&disk, "segment");
    write(&*next, 0, b"next");
    let removed = |unsynced: &Unsynced| matches!(unsynced, Unsynced::Remove { .. });
    assert!(names(&disk.power_cut(removed).unwrap()).is_empty());
    disk.sync_dir(path("")).unwrap();
    assert_eq!(content(&disk.power_cut(lose_all).unwrap(), "segment"), b"");
}

#[test]
fn a_removal_that_survives_its_rename_leaves_the_file_that_had_the_name_before() {
    let disk = MemoryDisk::new();
    durable(&disk, "a", b"old");
    create(&disk, "x");
    disk.rename(path("x"), path("a")).unwrap();
    disk.remove(path("a")).unwrap();
    let removed = |unsynced: &Unsynced| matches!(unsynced, Unsynced::Remove { .. });
    assert_eq!(content(&disk.power_cut(removed).unwrap(), "a"), b"old");
}

#[test]
fn a_power_cut_asks_in_the_order_in_which_things_happened() {
    let disk = MemoryDisk::new();
    let first = create(&disk, "a");
    let second = create(&disk, "b");
    write(&*second, 0, b"1");
    write(&*first, 0, b"2");
    disk.remove(path("b")).unwrap();
    let mut asked = Vec::new();
    disk.power_cut(|unsynced| {
        asked.push(unsynced.clone());
        true
    })
    .unwrap();
    let expected = [
        Unsynced::Create { path: "a".into() },
        Unsynced::Create { path: "b".into() },
        Unsynced::Length { file: 1, len: 1 },
        Unsynced::Sector { file: 1, offset: 0 },
        Unsynced::Length { file: 0, len: 1 },
        Unsynced::Sector { file: 0, offset: 0 },
        Unsynced::Remove { path: "b".into() },
    ];
    assert_eq!(asked, expected);
}

#[test]
fn a_folder_sync_covers_its_own_names_only_and_folders_themselves_survive() {
    let disk = MemoryDisk::new();
    disk.create_dir_all(path("a/b")).unwrap();
    create(&disk, "a/file");
    create(&disk, "a/b/file");
    disk.sync_dir(path("a")).unwrap();
    let cut = disk.power_cut(lose_all).unwrap();
    assert_eq!(cut.list(path("a")).unwrap(), ["b", "file"]);
    assert!(cut.list(path("a/b")).unwrap().is_empty());
}

#[test]
fn each_sector_of_a_write_survives_by_itself() {
    let disk = MemoryDisk::new();
    let file = durable(&disk, "log", &[1; 2048]);
    write(&*file, 256, &[2; 1024]);
    let mut asked = Vec::new();
    let cut = disk
        .power_cut(|unsynced| {
            asked.push(unsynced.clone());
            matches!(unsynced, Unsynced::Sector { offset: 512, .. })
        })
        .unwrap();
    let sectors = [0, 512, 1024].map(|offset| Unsynced::Sector { file: 0, offset });
    assert_eq!(asked, sectors);
    let expected = [[1; 512], [2; 512], [1; 512], [1; 512]].concat();
    assert_eq!(content(&cut, "log"), expected);
}

#[test]
fn a_sector_is_never_torn_between_two_writes() {
    let disk = MemoryDisk::new();
    let file = durable(&disk, "log", &[1; 512]);
    write(&*file, 0, &[2; 100]);
    write(&*file, 100, &[3; 100]);
    let nth = |keep: usize| {
        let mut asked = 0;
        let cut = disk.power_cut(|_| {
            asked += 1;
            asked == keep
        });
        content(&cut.unwrap(), "log")
    };
    assert_eq!(nth(1), [[2; 100].as_slice(), &[1; 412]].concat());
    assert_eq!(nth(2), [[2; 100].as_slice(), &[3; 100], &[1; 312]].concat());
}

#[test]
fn a_length_may_survive_without_its_bytes_and_bytes_bring_their_length() {
    let disk = MemoryDisk::new();
    let file = durable(&disk, "log", b"ab");
    write(&*file, 2, &[7; 1000]);
    let length = |unsynced: &Unsynced| matches!(unsynced, Unsynced::Length { .. });
    let mut expected = b"ab".to_vec();
    expected.resize(1002, 0);
    assert_eq!(content(&disk.power_cut(length).unwrap(), "log"), expected);
    let second = |unsynced: &Unsynced| matches!(unsynced, Unsynced::Sector { offset: 512, .. });
    expected[512..].fill(7);
    assert_eq!(content(&disk.power_cut(second).unwrap(), "log"), expected);
}

#[test]
fn cuts_and_reservations_of_a_file_are_unsynced_until_its_sync() {
    let disk = MemoryDisk::new();
    let file = durable(&disk, "log", &[5; 1000]);
    file.set_len(700).unwrap();
    file.allocate(0, 800).unwrap();
    assert_eq!(content(&disk.power_cut(lose_all).unwrap(), "log"), [5; 1000]);
    let expected = [[5; 700].as_slice(), &[0; 100]].concat();
    assert_eq!(content(&disk.power_cut(keep_all).unwrap(), "log"), expected);
    file.sync_data().unwrap();
    assert_eq!(content(&disk.power_cut(lose_all).unwrap(), "log"), expected);
    file.set_len(0).unwrap();
    file.set_len(1000).unwrap();
    file.sync_data().unwrap();
    assert_eq!(content(&disk.power_cut(lose_all).unwrap(), "log"), [0; 1000]);
}

#[test]
fn what_a_power_cut_left_is_durable_and_its_locks_are_free() {
    let disk = MemoryDisk::new();
    let file = durable(&disk, "log", b"ab");
    let _lock = disk.lock(path("LOCK")).unwrap();
    write(&*file, 2, b"cd");
    let once = disk.power_cut(keep_all).unwrap();
    drop(once.lock(path("LOCK")).unwrap());
    assert!(disk.lock(path("LOCK")).is_err());
    let twice = once.power_cut(|unsynced| panic!("{unsynced:?} is unsynced")).unwrap();
    assert_eq!(content(&twice, "log"), b"abcd");
}

#[test]
fn handles_of_one_disk_share_files_and_locks() {
    let disk = MemoryDisk::new();
    let other = disk.clone();
    let lock = disk.lock(path("LOCK")).unwrap();
    assert!(other.lock(path("./LOCK")).is_err());
    drop(lock);
    other.lock(path("LOCK")).unwrap();
    write(&*create(&disk, "a"), 0, b"shared");
    assert_eq!(content(&other, "./a"), b"shared");
}

#[test]
fn files_that_nothing_refers_to_give_their_memory_back() {
    let disk = MemoryDisk::new();
    let file = durable(&disk, "a", b"bytes");
    let node = Arc::downgrade(&disk.shared.state.lock().names[path("a")]);
    disk.remove(path("a")).unwrap();
    drop(file);
    assert!(node.upgrade().is_some(), "a power cut can bring it back");
    disk.sync_dir(path("")).unwrap();
    assert!(node.upgrade().is_none());
}

/// Touches every kind of call that a trace holds.
fn run(disk: &MemoryDisk) {
    disk.create_dir_all(path("db")).unwrap();
    let file = create(disk, "db/a");
    write(&*file, 0, &[1; 700]);
    file.sync_data().unwrap();
    disk.sync_dir(path("db")).unwrap();
    disk.rename(path("db/a"), path("db/b")).unwrap();
    let next = create(disk, "db/a");
    write(&*file, 700, b"to the renamed file");
    write(&*next, 0, b"to the new one");
    next.allocate(0, 100).unwrap();
    next.set_len(50).unwrap();
    drop(next);
    let again = disk.open(path("db/a"), OpenMode::ReadWrite).unwrap();
    write(&*again, 3, b"again");
    create(disk, "db/c");
    disk.remove(path("db/c")).unwrap();
}

#[test]
fn equal_runs_have_equal_traces_and_nothing_is_traced_before_the_start() {
    let traces = [(); 2].map(|()| {
        let disk = MemoryDisk::new();
        assert!(disk.trace().is_empty());
        disk.start_trace();
        run(&disk);
        assert!(disk.open(path("db/no"), OpenMode::Read).is_err());
        content(&disk, "db/a");
        disk.trace()
    });
    assert_eq!(traces[0], traces[1]);
    assert_eq!(traces[0].len(), 16);
    assert_eq!(traces[0][0], Operation::CreateDir { dir: "db".into() });
    assert_eq!(traces[0][1], Operation::Create { file: 0, path: "db/a".into() });
    let write = Operation::Write { file: 0, offset: 700, bytes: b"to the renamed file".to_vec() };
    assert!(traces[0].contains(&write));
}

#[test]
fn a_replayed_trace_gives_the_same_disk_live_and_durable() {
    let disk = MemoryDisk::new();
    disk.start_trace();
    run(&disk);
    let replayed = MemoryDisk::replay(&disk.trace()).unwrap();
    let state = |disk: &MemoryDisk| {
        let names = disk.list(path("db")).unwrap();
        let full =
            |name: &std::ffi::OsString| content(disk, path("db").join(name).to_str().unwrap());
        names.iter().map(|name| (name.clone(), full(name))).collect::<Vec<_>>()
    };
    assert_eq!(state(&replayed), state(&disk));
    for keep in [lose_all, keep_all] {
        let cuts = [&replayed, &disk].map(|disk| state(&disk.power_cut(keep).unwrap()));
        assert_eq!(cuts[0], cuts[1]);
    }
    for operations in 0..disk.trace().len() {
        MemoryDisk::replay(&disk.trace()[..operations]).unwrap();
    }
    assert!(MemoryDisk::replay(&disk.trace()[2..]).is_err());
}

/// A plain vector is the model to compare with.
#[test]
fn random_changes_survive_a_power_cut_that_keeps_all_or_that_follows_a_sync() {
    use rand::{RngExt, SeedableRng};
    let seed: u64 = 0x5eed_d15c;
    let mut random = rand_xoshiro::Xoshiro256PlusPlus::seed_from_u64(seed);
    for round in 0..200 {
        let disk = MemoryDisk::new();
        let file = durable(&disk, "f", b"");
        let mut model: Vec<u8> = Vec::new();
        let mut synced = model.clone();
        for _ in 0..random.random_range(1..12) {
            match random.random_range(0..4) {
                0 => {
                    let len = random.random_range(0..3000);
                    file.set_len(len as u64).unwrap();
                    model.resize(len, 0);
                }
                1 => {
                    file.sync_data().unwrap();
                    synced.clone_from(&model);
                }
                _ => {
                    let offset = random.random_range(0..2500);
                    let bytes = vec![random.random_range(1..=255); random.random_range(0..1500)];
                    write(&*file, offset as u64, &bytes);
                    if !bytes.is_empty() {
                        model.resize(model.len().max(offset + bytes.len()), 0);
                        model[offset..offset + bytes.len()].copy_from_slice(&bytes);
                    }
                }
            }
        }
        let context = format!("seed {seed:#x}, round {round}");
        assert_eq!(content(&disk, "f"), model, "{context}");
        assert_eq!(content(&disk.power_cut(keep_all).unwrap(), "f"), model, "{context}");
        assert_eq!(content(&disk.power_cut(lose_all).unwrap(), "f"), synced, "{context}");
    }
}
