//! Decides what depends on the machine's memory and on the state of the log: pure functions of what
//! they are told.

use std::time::Duration;

use crate::options::Reads;
use crate::segment::Regime;
use crate::sync::{AtomicBool, AtomicU64, Mutex, Ordering};

/// The longest wait that one group is asked for.
const DELAY_MAX: Duration = Duration::from_millis(1);

/// How long a group waits, by how full what it fills is (used, size): nothing below half, then
/// rising with the square, so that writers slow down before they would have to stop.
pub(crate) fn write_delay(fills: &[(u64, u64)]) -> Duration {
    let percent = |&(used, size): &(u64, u64)| used.saturating_mul(100) / size.max(1);
    let fill = fills.iter().map(percent).max().unwrap_or(0).min(100);
    let above_half = u32::try_from(fill.saturating_sub(50)).unwrap_or(50);
    DELAY_MAX * (above_half * above_half) / (50 * 50)
}

/// What decides how fast writers may go on while level 0 is merged into level 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Debt {
    /// Bytes in files that merging can free, or will when they are sealed: what a load of new ids
    /// adds is live, and what a snapshot keeps would be there after the sweep as well.
    pub(crate) excess_bytes: u64,
    /// Above this, writers pay.
    pub(crate) free_bytes: u64,
    /// What the excess must not exceed.
    pub(crate) limit_bytes: u64,
    /// Bytes that the sweep under way has still to read.
    pub(crate) remaining_bytes: u64,
    /// How many it reads in a second, as measured.
    pub(crate) bytes_per_second: u64,
    /// Runs of level 0 beyond those that a read should meet, for each of those, in percent.
    pub(crate) runs_excess_percent: u64,
}

/// The slowest that writers are made: the room below the limit is a goal, and a writer that waits
/// for ever helps nobody.
const RATE_MIN: u64 = 64 << 10;

/// Bytes a second at which writers may go on so that the excess reaches its limit no sooner than the
/// sweep its end; `None` where nothing limits them.
pub(crate) fn write_rate(debt: &Debt) -> Option<u64> {
    let speed = debt.bytes_per_second.max(1 << 20);
    let by_space = (debt.excess_bytes > debt.free_bytes && debt.remaining_bytes > 0).then(|| {
        let room = debt.limit_bytes.saturating_sub(debt.excess_bytes);
        let rate = u128::from(speed) * u128::from(room) / u128::from(debt.remaining_bytes);
        u64::try_from(rate).unwrap_or(u64::MAX)
    });
    // Twice as many runs as should be: at the speed of merging; four times: at a third of it.
    let by_runs = (debt.runs_excess_percent > 50)
        .then(|| speed / (debt.runs_excess_percent / 50).saturating_sub(1).max(1));
    by_space.into_iter().chain(by_runs).min().map(|rate| rate.max(RATE_MIN))
}

/// Lets bytes through at a rate, by telling how long to wait. Waits of less than
/// [`Throttle::GRAIN`] are saved up, since a thread cannot sleep so briefly.
///
/// A debt is measured when a job begins or a segment is sealed, and a job may take seconds. What is
/// let through meanwhile counts as excess at once, so that the rate falls while nobody looks.
#[derive(Debug, Default)]
pub(crate) struct Throttle {
    /// Bytes that were let through, ever.
    passed: AtomicU64,
    state: Mutex<Pace>,
}

#[derive(Debug, Default)]
struct Pace {
    /// The debt as it was last measured, and [`Throttle::passed`] by then; without, nothing limits
    /// writers.
    measured: Option<(Debt, u64)>,
    /// What was measured limited nobody, and what was let through since does.
    has_begun: bool,
    owed_ns: u64,
}

impl Pace {
    fn rate(&self, passed: u64) -> Option<u64> {
        let (debt, before) = self.measured?;
        let since = passed.saturating_sub(before);
        write_rate(&Debt { excess_bytes: debt.excess_bytes.saturating_add(since), ..debt })
    }
}

impl Throttle {
    /// The shortest wait that is asked for.
    const GRAIN: Duration = Duration::from_micros(200);
    /// The longest, for [`Throttle::PIECE_BYTES`]: a large document is let through sooner rather
    /// than wait for long.
    const WAIT_MAX: Duration = Duration::from_millis(5);
    /// A group waits as long as pieces of this size would: it must not outrun them.
    const PIECE_BYTES: u64 = 64 << 10;
    /// Up to so many of them: others wait behind it.
    const PIECES_MAX: u32 = 20;

    /// What was let through by now; whoever measures a debt asks before.
    pub(crate) fn passed(&self) -> u64 {
        self.passed.load(Ordering::Acquire)
    }

    /// Goes by a debt that was measured when so many bytes had been let through, unless a newer one
    /// is known.
    pub(crate) fn set(&self, debt: Debt, passed: u64) {
        let mut state = self.state.lock();
        if state.measured.is_none_or(|(_, known)| known <= passed) {
            state.measured = Some((debt, passed));
            state.has_begun = write_rate(&debt).is_some();
        }
    }

    /// Lets everything through until a debt is set.
    pub(crate) fn open(&self) {
        *self.state.lock() = Pace::default();
    }

    /// Whether there is a rate.
    pub(crate) fn is_on(&self) -> bool {
        self.state.lock().rate(self.passed()).is_some()
    }

    /// How long the caller waits before it writes so many bytes. One caller at a time. Calls `begin`
    /// when writers are slowed down and the debt as it was measured did not tell: whoever can pay it
    /// may not have seen that it is due.
    pub(crate) fn wait(&self, bytes: u64, begin: impl FnOnce()) -> Duration {
        let passed = self.passed.fetch_add(bytes, Ordering::AcqRel) + bytes;
        let mut state = self.state.lock();
        let Some(rate) = state.rate(passed) else {
            state.owed_ns = 0;
            return Duration::ZERO;
        };
        let cost = u128::from(bytes) * 1_000_000_000 / u128::from(rate);
        let owed = u64::try_from(u128::from(state.owed_ns) + cost).unwrap_or(u64::MAX);
        let pieces = u32::try_from(bytes.div_ceil(Self::PIECE_BYTES)).unwrap_or(u32::MAX);
        let longest = Self::WAIT_MAX * pieces.clamp(1, Self::PIECES_MAX);
        let wait = Duration::from_nanos(owed).min(longest);
        let wait = if wait < Self::GRAIN { Duration::ZERO } else { wait };
        // What is beyond the longest wait is forgiven.
        state.owed_ns = if wait.is_zero() { owed } else { 0 };
        let has_begun = std::mem::replace(&mut state.has_begun, true);
        drop(state);
        if !has_begun {
            begin();
        }
        wait
    }
}

/// The read regime for files of so many bytes on a machine, or in a group, with so much memory.
pub(crate) fn regime(reads: Reads, file_bytes: u64, memory_bytes: Option<u64>) -> Regime {
    match (reads, memory_bytes) {
        (Reads::Mapped, _) => Regime::Mapped,
        (Reads::Pread, _) => Regime::Pread,
        (Reads::Automatic, Some(memory)) if file_bytes > memory / 2 => Regime::Pread,
        (Reads::Automatic, _) => Regime::Mapped,
    }
}

/// The memory that this process may use for pages: the machine's, or its control group's limit if
/// lower.
fn memory_bytes() -> Option<u64> {
    let machine = std::fs::read_to_string("/proc/meminfo").ok().and_then(|text| total(&text));
    let groups = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"];
    let own = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let own = own.lines().filter_map(group_path);
    groups
        .into_iter()
        .map(str::to_owned)
        .chain(own)
        .filter_map(|path| std::fs::read_to_string(path).ok()?.trim().parse().ok())
        .chain(machine)
        .min()
}

/// `MemTotal` of `/proc/meminfo`, in bytes.
fn total(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

/// Where a line of `/proc/self/cgroup` says that the memory limit stands.
fn group_path(line: &str) -> Option<String> {
    let mut fields = line.splitn(3, ':').skip(1);
    let (controllers, path) = (fields.next()?, fields.next()?);
    let path = path.trim_end_matches('/');
    if controllers.is_empty() {
        Some(format!("/sys/fs/cgroup{path}/memory.max"))
    } else if controllers.split(',').any(|name| name == "memory") {
        Some(format!("/sys/fs/cgroup/memory{path}/memory.limit_in_bytes"))
    } else {
        None
    }
}

/// Holds the decisions that reads look at.
#[derive(Debug)]
pub(crate) struct Governor {
    reads: Reads,
    memory: Option<u64>,
    is_mapped: AtomicBool,
}

impl Governor {
    pub(crate) fn new(reads: Reads) -> Self {
        let memory = memory_bytes();
        let is_mapped = regime(reads, 0, memory) == Regime::Mapped;
        Self { reads, memory, is_mapped: AtomicBool::new(is_mapped) }
    }

    /// The sealed files have this many bytes now.
    pub(crate) fn observe_files(&self, bytes: u64) {
        let is_mapped = regime(self.reads, bytes, self.memory) == Regime::Mapped;
        self.is_mapped.store(is_mapped, Ordering::Relaxed);
    }

    /// Memory that this process may use, its pages of files included; unknown without.
    pub(crate) fn memory_bytes(&self) -> Option<u64> {
        self.memory
    }

    pub(crate) fn regime(&self) -> Regime {
        if self.is_mapped.load(Ordering::Relaxed) { Regime::Mapped } else { Regime::Pread }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn the_delay_rises_gradually_with_whichever_is_fuller() {
        let table = [
            ((0, 100), (0, 100), 0),
            ((50, 100), (0, 100), 0),
            ((60, 100), (0, 100), 40),
            ((0, 100), (75, 100), 250),
            ((75, 100), (60, 100), 250),
            ((100, 100), (0, 100), 1000),
            ((300, 100), (0, 0), 1000),
        ];
        for (memtable, log, micros) in table {
            let delay = write_delay(&[memtable, log]);
            assert_eq!(delay, Duration::from_micros(micros), "{memtable:?} {log:?}");
        }
        assert_eq!(write_delay(&[]), Duration::ZERO);
    }

    #[test]
    fn the_rate_falls_with_the_room_that_is_left() {
        const MIB: u64 = 1 << 20;
        let debt = |excess: u64, remaining: u64| Debt {
            excess_bytes: excess * MIB,
            free_bytes: 500 * MIB,
            limit_bytes: 700 * MIB,
            remaining_bytes: remaining * MIB,
            bytes_per_second: 400 * MIB,
            runs_excess_percent: 0,
        };
        let table = [
            (debt(500, 1000), None),
            (debt(501, 0), None),
            (debt(501, 1000), Some(199 * 400 * MIB / 1000)),
            (debt(600, 1000), Some(40 * MIB)),
            (debt(600, 100), Some(400 * MIB)),
            (debt(690, 1000), Some(4 * MIB)),
            (debt(700, 1000), Some(RATE_MIN)),
            (debt(900, 1000), Some(RATE_MIN)),
            (Debt { runs_excess_percent: 50, ..debt(0, 0) }, None),
            (Debt { runs_excess_percent: 100, ..debt(0, 0) }, Some(400 * MIB)),
            (Debt { runs_excess_percent: 200, ..debt(0, 0) }, Some(400 * MIB / 3)),
            (Debt { runs_excess_percent: 200, ..debt(690, 1000) }, Some(4 * MIB)),
        ];
        for (debt, rate) in table {
            assert_eq!(write_rate(&debt), rate, "{debt:?}");
        }
    }

    /// A debt that limits writers to a rate by its runs alone.
    fn at_rate(bytes_per_second: u64) -> Debt {
        Debt {
            excess_bytes: 0,
            free_bytes: 0,
            limit_bytes: 0,
            remaining_bytes: 0,
            bytes_per_second,
            runs_excess_percent: 100,
        }
    }

    #[test]
    fn the_throttle_lets_bytes_through_at_its_rate() {
        let throttle = Throttle::default();
        assert_eq!(throttle.wait(1 << 30, || {}), Duration::ZERO, "without a debt");
        throttle.set(at_rate(2_000_000), throttle.passed());
        let waited: Duration = (0..1000).map(|_| throttle.wait(200, || {})).sum();
        assert_eq!(waited, Duration::from_millis(100), "200 kB at 2 MB a second");
        assert!(throttle.is_on());
        assert_eq!(throttle.wait(60 << 10, || {}), Throttle::WAIT_MAX);
        assert_eq!(throttle.wait(100, || {}), Duration::ZERO, "the rest is forgiven");
        throttle.open();
        assert!(!throttle.is_on());
        assert_eq!(throttle.wait(1 << 30, || {}), Duration::ZERO);
    }

    /// A batch waited no longer than a document: batches went by the limit many times as fast.
    #[test]
    fn a_batch_is_let_through_no_faster_than_its_pieces() {
        let throttle = Throttle::default();
        throttle.set(at_rate(16 << 20), throttle.passed());
        assert_eq!(throttle.wait(1 << 20, || {}), Duration::from_nanos(1_000_000_000 / 16));
        throttle.set(at_rate(1 << 20), throttle.passed());
        assert_eq!(throttle.wait(1 << 20, || {}), 16 * Throttle::WAIT_MAX);
        assert_eq!(throttle.wait(1 << 30, || {}), Throttle::PIECES_MAX * Throttle::WAIT_MAX);
    }

    /// A debt was measured when a job began, and the rate stayed as it was until the job's end:
    /// while a merge took seconds, what came in went by the limit.
    #[test]
    fn what_is_let_through_counts_before_the_debt_is_measured_again() {
        const MIB: u64 = 1 << 20;
        let debt = Debt {
            excess_bytes: 400 * MIB,
            free_bytes: 450 * MIB,
            limit_bytes: 630 * MIB,
            remaining_bytes: 1500 * MIB,
            bytes_per_second: 300 * MIB,
            runs_excess_percent: 0,
        };
        let throttle = Throttle::default();
        throttle.set(debt, throttle.passed());
        for _ in 0..50 {
            assert_eq!(throttle.wait(MIB, || {}), Duration::ZERO, "up to what is free");
        }
        assert!(!throttle.is_on());
        let (mut waited, begun) = (Duration::ZERO, Cell::new(0));
        for n in 51..=200 {
            let wait = throttle.wait(MIB, || begun.set(begun.get() + 1));
            let rate = 300 * (230 - n) * MIB / 1500;
            let expected = Duration::from_nanos(1_000_000_000 * MIB / rate);
            assert_eq!(wait, expected.min(16 * Throttle::WAIT_MAX), "{n} MiB");
            waited += wait;
        }
        assert!(throttle.is_on());
        assert_eq!(begun.get(), 1, "once, when it began");
        assert!(waited > Duration::from_secs(5), "{waited:?}: the time of the sweep");

        let passed = throttle.passed();
        throttle.set(Debt { excess_bytes: 600 * MIB, ..debt }, passed);
        throttle.wait(MIB, || panic!("the debt has told"));
        throttle.set(Debt { excess_bytes: 300 * MIB, ..debt }, passed);
        assert_eq!(throttle.wait(MIB, || {}), Duration::ZERO, "files went meanwhile");
        throttle.set(Debt { excess_bytes: 600 * MIB, ..debt }, passed - 1);
        assert_eq!(throttle.wait(MIB, || {}), Duration::ZERO, "measured before, told after");
    }

    #[test]
    fn files_beyond_half_of_memory_are_not_mapped() {
        assert_eq!(regime(Reads::Automatic, 49, Some(100)), Regime::Mapped);
        assert_eq!(regime(Reads::Automatic, 51, Some(100)), Regime::Pread);
        assert_eq!(regime(Reads::Automatic, 51, None), Regime::Mapped);
        assert_eq!(regime(Reads::Mapped, 1000, Some(1)), Regime::Mapped);
        assert_eq!(regime(Reads::Pread, 0, None), Regime::Pread);
    }

    #[test]
    fn limits_are_read_where_the_kernel_puts_them() {
        assert_eq!(total("MemTotal:       16 kB\nMemFree: 3 kB\n"), Some(16384));
        assert_eq!(total("nothing"), None);
        assert_eq!(group_path("0::/a/b"), Some("/sys/fs/cgroup/a/b/memory.max".to_owned()));
        assert_eq!(
            group_path("5:cpu,memory:/x"),
            Some("/sys/fs/cgroup/memory/x/memory.limit_in_bytes".to_owned())
        );
        assert_eq!(group_path("5:cpu:/x"), None);
    }
}
