//! Prints the tables of `docs/performance.md` from what criterion has left.
//!
//! `tables` lists their names; `tables NAME` prints one.

use std::error::Error;
use std::path::{Path, PathBuf};

use structures::allocation::Counting;
use structures::report::{Estimates, TABLES, table};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn main() -> Result<(), Box<dyn Error>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    match std::env::args().nth(1) {
        None => TABLES.into_iter().for_each(|name| println!("{name}")),
        Some(name) => {
            let target = std::env::var_os("CARGO_TARGET_DIR")
                .map_or_else(|| root.join("target"), PathBuf::from);
            let estimates = Estimates::read(&target.join("criterion"))?;
            println!("{}", table(&name, &estimates, &root)?);
        }
    }
    Ok(())
}
