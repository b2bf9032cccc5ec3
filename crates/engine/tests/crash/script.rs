//! Lives of a database: lists of steps, by hand and generated.

use engine::Durability;

use crate::faults::{BUFFERED, DURABLE, Random, Setup};

/// What happens to a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// So many puts of one document each, of new ids and of ones that exist.
    Put(usize),
    /// One batch of so many documents, in two collections.
    Batch(usize),
    /// One batch that is durable, whatever the database is.
    DurableBatch(usize),
    /// So many deletes, of ids that exist where there are some.
    Delete(usize),
    /// Everything answered becomes durable.
    Sync,
    /// A batch as large as a memtable: the log goes on in another segment.
    Roll,
    /// Background work that is due is done, but for the first `n` jobs: nothing more.
    Jobs(usize),
    /// All background work that is due is done: seals, merges within level 0, sweeps that are due.
    Work,
    /// The flush interval passes, and what is then due is done.
    Flush,
    /// Nothing is written for a long while: compaction goes on until little is left.
    Idle,
    /// Everything is merged into level 1.
    Compact,
    /// A snapshot is taken, and held.
    Snapshot,
    /// The oldest snapshot that is held is let go.
    Release,
    /// The second collection goes, with all that it holds.
    DropCollection,
    /// A clean close, and an open.
    Reopen,
    /// So many puts whose records all have the same length.
    EqualPut(usize),
    /// Puts of ids as long as several sectors, and of the empty document.
    OddPut(usize),
    /// Every document is deleted.
    DeleteAll,
    /// The disk has no space left from here on.
    Full,
    /// Documents are put until one is refused.
    Fill,
    /// The disk has space again.
    Freed,
}

/// A list of steps with what the database is opened with.
#[derive(Clone, Debug)]
pub(crate) struct Script {
    pub(crate) name: String,
    pub(crate) setup: Setup,
    pub(crate) steps: Vec<Step>,
    /// Chooses ids, and more where the script is generated.
    pub(crate) seed: u64,
}

impl Script {
    fn new(name: &str, setup: Setup, steps: &[Step]) -> Self {
        let seed = name.bytes().fold(7, |seed: u64, byte| seed * 31 % (1 << 40) + u64::from(byte));
        Self { name: name.to_owned(), setup, steps: steps.to_vec(), seed }
    }
}

/// Which writes are synced before they are answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Durable,
    Buffered,
}

impl Mode {
    pub(crate) const ALL: [Self; 2] = [Self::Durable, Self::Buffered];

    fn setup(self) -> Setup {
        match self {
            Self::Durable => DURABLE.tiny(),
            Self::Buffered => BUFFERED.tiny(),
        }
    }
}

impl From<Durability> for Mode {
    fn from(durability: Durability) -> Self {
        if durability == Durability::Durable { Self::Durable } else { Self::Buffered }
    }
}

/// The scripts by hand. Each has about twenty steps; together they have every kind of step, and
/// each kind of merge.
pub(crate) fn scripted(mode: Mode) -> Vec<Script> {
    use Step::*;
    let setup = mode.setup();
    let named = |name: &str| format!("{name}, {mode:?}");
    vec![
        // The log alone: appends, batches, rolls whose seal comes late, flushes.
        Script::new(
            &named("log"),
            setup.manual(),
            &[
                Put(3),
                Batch(5),
                Flush,
                Put(2),
                Delete(1),
                Roll,
                Put(2),
                DurableBatch(3),
                Put(1),
                Roll,
                Jobs(1),
                Put(2),
                Sync,
                Roll,
                Work,
                Put(2),
                Reopen,
                Put(3),
                Batch(2),
                Delete(2),
            ],
        ),
        // Level 0: indexes merge, and merged runs merge again.
        Script::new(
            &named("level 0"),
            setup,
            &[
                Batch(20),
                Roll,
                Delete(4),
                Work,
                Roll,
                Put(3),
                Work,
                Delete(3),
                Roll,
                Flush,
                Batch(9),
                Roll,
                Work,
                Put(2),
                Sync,
                Roll,
                Delete(2),
                Work,
                Reopen,
                Work,
                Put(1),
            ],
        ),
        // Sweeps, with writes between their steps, tombstones, and a second sweep over the first.
        Script::new(
            &named("sweep"),
            Setup { level0_runs: 64, ..setup },
            &[
                Batch(30),
                Roll,
                Batch(30),
                Roll,
                Work,
                Compact,
                Delete(9),
                Batch(12),
                Roll,
                Put(2),
                Roll,
                Jobs(3),
                Put(2),
                Flush,
                Jobs(2),
                Delete(2),
                Work,
                Idle,
                Compact,
                Put(2),
            ],
        ),
        // Snapshots across merges, and a past that is kept.
        Script::new(
            &named("snapshots"),
            Setup { history: 40, ..setup },
            &[
                Batch(10),
                Snapshot,
                Put(3),
                Delete(3),
                Roll,
                Work,
                Snapshot,
                Batch(8),
                Roll,
                Compact,
                Put(2),
                Release,
                Delete(2),
                Compact,
                Sync,
                Release,
                Roll,
                Compact,
                Put(1),
                Reopen,
                Batch(3),
                Compact,
            ],
        ),
        // Collections come and go, with what they hold in the log, in level 0 and in level 1.
        Script::new(
            &named("collections"),
            setup,
            &[
                Batch(8),
                DropCollection,
                Batch(6),
                Roll,
                Work,
                DropCollection,
                Put(2),
                Compact,
                Batch(9),
                Compact,
                DropCollection,
                Flush,
                Roll,
                Batch(4),
                Compact,
                Reopen,
                DropCollection,
                Compact,
                Batch(2),
                Sync,
            ],
        ),
        // What is merged, deleted and merged again, until nothing is left; records of equal length,
        // of long ids, of empty documents.
        Script::new(
            &named("rounds"),
            setup,
            &[
                EqualPut(12),
                OddPut(3),
                Compact,
                DeleteAll,
                Compact,
                EqualPut(12),
                Sync,
                EqualPut(9),
                Compact,
                DeleteAll,
                Roll,
                OddPut(4),
                Work,
                EqualPut(12),
                Compact,
                DeleteAll,
                Compact,
                Reopen,
                OddPut(2),
                EqualPut(4),
            ],
        ),
    ]
}

/// A disk that runs full: documents are refused and deletes go on, over a close, an open, and what
/// frees space.
pub(crate) fn full_disk(mode: Mode) -> Script {
    use Step::*;
    Script::new(
        &format!("full disk, {mode:?}"),
        mode.setup(),
        &[
            Batch(20),
            Roll,
            Work,
            Put(3),
            Full,
            Fill,
            Delete(3),
            Put(1),
            Flush,
            Full,
            DropCollection,
            Work,
            Delete(2),
            Compact,
            Freed,
            Put(2),
            Sync,
            Full,
            Fill,
            Reopen,
            Delete(2),
            Work,
            Freed,
            Put(2),
            Reopen,
            Full,
            Reopen,
            Delete(1),
            Freed,
            Put(1),
        ],
    )
}

/// So many segments that the manifest outgrows the space that was reserved for it.
pub(crate) fn long() -> Script {
    let steps: Vec<Step> = (0..400).map(|n| [Step::Roll, Step::Work][n % 2]).collect();
    Script::new("long", DURABLE.tiny().manual(), &steps)
}

/// A script from a seed: any steps in any order, and other options.
pub(crate) fn generated(mode: Mode, seed: u64) -> Script {
    use Step::*;
    let mut random = Random::seeded(seed);
    let mut setup = mode.setup();
    setup.level0_runs = [2, 3, 6, 64][pick(&mut random, 4)];
    setup.history = [0, 0, 5, 60][pick(&mut random, 4)];
    if random.below(4) == 0 {
        setup = setup.manual();
    }
    if random.below(3) == 0 {
        setup.reads = engine::Reads::Pread;
    }
    let mut steps = vec![Batch(5)];
    for _ in 0..18 {
        let amount = 1 + pick(&mut random, 4);
        steps.push(match random.below(24) {
            0..4 => Put(amount),
            4..6 => Batch(3 * amount),
            6 => DurableBatch(amount),
            7..9 => Delete(amount),
            9 => Sync,
            10..14 => Roll,
            14 => Jobs(amount),
            15..17 => Work,
            17 => Flush,
            18 => Idle,
            19 => Compact,
            20 => Snapshot,
            21 => Release,
            22 => DropCollection,
            _ => Reopen,
        });
    }
    Script { name: format!("seed {seed:#x}, {mode:?}"), setup, steps, seed }
}

fn pick(random: &mut Random, n: u64) -> usize {
    usize::try_from(random.below(n)).unwrap()
}
