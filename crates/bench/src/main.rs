//! `bench`: YCSB A-F against Sediment and its peers. See `docs/bench/README.md`.

use std::process::ExitCode;

fn main() -> ExitCode {
    bench::main()
}
