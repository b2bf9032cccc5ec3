//! Hands the program two facts that only the build knows: the target CPU of the whole build and
//! the version of RocksDB that is linked in. Both go into every row.

use std::env;
use std::path::Path;

fn main() {
    println!("cargo:rerun-if-env-changed=CARGO_ENCODED_RUSTFLAGS");
    println!("cargo:rustc-env=BENCH_TARGET_CPU={}", target_cpu());
    println!("cargo:rustc-env=BENCH_ROCKSDB_VERSION={}", rocksdb_version());
}

/// The last `-Ctarget-cpu` wins, as it does for the compiler.
fn target_cpu() -> String {
    let flags = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    let cpu = flags.split('\x1f').rev().find_map(|flag| flag.split_once("target-cpu="));
    cpu.map_or_else(|| "generic".to_owned(), |(_, name)| name.to_owned())
}

/// From the lock file: `librocksdb-sys` carries RocksDB's own version as build metadata.
fn rocksdb_version() -> String {
    let manifest = env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
    let lock = Path::new(&manifest).ancestors().map(|f| f.join("Cargo.lock")).find(|f| f.exists());
    let Some(lock) = lock else { return "unknown".to_owned() };
    println!("cargo:rerun-if-changed={}", lock.display());
    let text = std::fs::read_to_string(&lock).unwrap_or_default();
    let mut lines = text.lines().skip_while(|line| *line != "name = \"librocksdb-sys\"");
    let version = lines.nth(1).and_then(|line| line.strip_prefix("version = \""));
    let version = version.map(|rest| rest.trim_end_matches('"'));
    version.and_then(|v| v.split_once('+')).map_or("unknown", |(_, rocksdb)| rocksdb).to_owned()
}
