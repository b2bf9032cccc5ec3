//! Hands the program facts that only the build knows: the target CPU of the whole build and the
//! versions of the stores that are linked in. They go into every row.

use std::env;
use std::fs;
use std::path::Path;

/// Peers whose version is that of their crate, and the variables that hand it over.
const PEERS: [(&str, &str); 4] = [
    ("canopydb", "BENCH_CANOPYDB_VERSION"),
    ("fjall", "BENCH_FJALL_VERSION"),
    ("heed", "BENCH_HEED_VERSION"),
    ("redb", "BENCH_REDB_VERSION"),
];

fn main() {
    println!("cargo:rerun-if-env-changed=CARGO_ENCODED_RUSTFLAGS");
    println!("cargo:rustc-env=BENCH_TARGET_CPU={}", target_cpu());
    let lock = lock_file();
    // `librocksdb-sys` carries RocksDB's own version as build metadata.
    let rocksdb = version(&lock, "librocksdb-sys").and_then(|version| version.split_once('+'));
    let rocksdb = rocksdb.map_or("unknown", |(_, rocksdb)| rocksdb);
    println!("cargo:rustc-env=BENCH_ROCKSDB_VERSION={rocksdb}");
    for (package, variable) in PEERS {
        let version = version(&lock, package).unwrap_or("unknown");
        println!("cargo:rustc-env={variable}={version}");
    }
}

/// The last `-Ctarget-cpu` wins, as it does for the compiler.
fn target_cpu() -> String {
    let flags = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    let cpu = flags.split('\x1f').rev().find_map(|flag| flag.split_once("target-cpu="));
    cpu.map_or_else(|| "generic".to_owned(), |(_, name)| name.to_owned())
}

/// The text of the workspace's lock file.
fn lock_file() -> String {
    let manifest = env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
    let lock = Path::new(&manifest).ancestors().map(|f| f.join("Cargo.lock")).find(|f| f.exists());
    let Some(lock) = lock else { return String::new() };
    println!("cargo:rerun-if-changed={}", lock.display());
    fs::read_to_string(&lock).unwrap_or_default()
}

fn version<'a>(lock: &'a str, package: &str) -> Option<&'a str> {
    let name = format!("name = \"{package}\"");
    let line = lock.lines().skip_while(|line| *line != name).nth(1)?;
    line.strip_prefix("version = \"")?.strip_suffix('"')
}
