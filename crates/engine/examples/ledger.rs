//! A small ledger: accounts, transfers that happen whole or not at all, and a report as of one
//! moment.
//!
//! ```text
//! cargo run -p engine --example ledger [FOLDER]
//! ```
//!
//! Without a folder it works in a temporary one. Run it twice on the same folder: the second run
//! goes on from the first.

use std::error::Error;
use std::sync::Mutex;

use engine::{Batch, Collection, Database, Options, WriteDurability};
use serde::{Deserialize, Serialize};

#[derive(Debug, Deserialize, Serialize)]
struct Account {
    owner: String,
    cents: i64,
}

/// A batch is atomic and has no conditions: what was read must not change before it is written.
static TRANSFERS: Mutex<()> = Mutex::new(());

fn transfer(
    database: &Database,
    accounts: &Collection,
    from: &str,
    to: &str,
    cents: i64,
) -> Result<(), Box<dyn Error>> {
    let _alone = TRANSFERS.lock().map_err(|_| "an earlier transfer panicked")?;
    let load = |id: &str| -> Result<Account, Box<dyn Error>> {
        Ok(accounts.get(id)?.ok_or_else(|| format!("no account {id}"))?.decode()?)
    };
    let (mut payer, mut payee) = (load(from)?, load(to)?);
    if payer.cents < cents {
        return Err(format!("{from} has {} cents, not {cents}", payer.cents).into());
    }
    payer.cents -= cents;
    payee.cents += cents;

    let transfers = database.collection("transfers")?;
    let number = match transfers.scan_ids(..)?.next_back() {
        Some(last) => match last? {
            engine::Id::Integer(number) => number + 1,
            other => return Err(format!("{other} is no transfer's number").into()),
        },
        None => 1,
    };
    let mut batch = Batch::new();
    batch.put(accounts, from, &payer)?;
    batch.put(accounts, to, &payee)?;
    batch.put(
        &transfers,
        number,
        &serde_json::json!({ "from": from, "to": to, "cents": cents }),
    )?;
    // Synced before it is answered, whatever the database's own durability.
    database.write_with(batch, WriteDurability::Durable)?;
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let temporary = tempfile::tempdir()?;
    let folder =
        std::env::args_os().nth(1).unwrap_or_else(|| temporary.path().join("ledger").into());
    let database = Database::open(&folder, Options::default())?;

    let accounts = database.collection("accounts")?;
    for owner in ["ada", "grace"] {
        let account = Account { owner: owner.to_owned(), cents: 10_000 };
        match accounts.insert(owner, &account) {
            Ok(()) | Err(engine::Error::AlreadyExists { .. }) => {}
            Err(e) => return Err(e.into()),
        }
    }

    let before = database.snapshot()?;
    transfer(&database, &accounts, "ada", "grace", 250)?;
    for row in accounts.scan(..)? {
        let (id, now) = row?;
        let then = before.get(&accounts, &id)?.ok_or("it was there before")?;
        println!("{id}: {:?} cents, was {:?}", now.get_i64("cents")?, then.get_i64("cents")?);
    }
    drop(before);
    let transfers = database.collection("transfers")?;
    println!("{} transfers so far", transfers.scan_ids(..)?.count());
    database.close()?;
    Ok(())
}
