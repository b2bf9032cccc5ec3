//! Operations that compact, look back in time, and read between the steps of both.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use engine::{Batch, CompactionReason, Error, Stats, bson};

use crate::common::accounted;
use crate::content::{Stored, page};
use crate::history::content_bytes;
use crate::world::{Past, World};

/// More tiny documents than the segments have room for that two indexes can be over: 64 segments of
/// 64 records each.
const DEEP: usize = 9000;

fn sweeps(stats: &Stats) -> u64 {
    let is_sweep =
        |reason| !matches!(reason, CompactionReason::Indexes | CompactionReason::Documents);
    let did = stats.compactions.iter().filter(|did| is_sweep(did.reason));
    did.map(|did| did.count).sum()
}

impl World {
    pub(crate) fn compact(&mut self) {
        self.say(|| "compact".to_owned());
        self.database().compact().unwrap();
        self.totals.compacted += 1;
        self.check_compacted();
        if self.random.percent(50) {
            for at in 0..self.snapshots.len() {
                self.read_all_of_snapshot(at);
            }
        }
        let before = self.database().stats();
        // What is pinned may be reclaimed as soon as another history is asked for.
        if before.pinned_bytes == 0 && self.snapshots.is_empty() && self.random.percent(30) {
            let before = accounted(&before);
            self.close_and_reopen();
            assert_eq!(
                accounted(&self.database().stats()),
                before,
                "as they were before the close"
            );
        }
    }

    /// All is in level 1, and counted as the model counts it.
    fn check_compacted(&mut self) {
        let stats = self.database().stats();
        assert_eq!((stats.level0_segments, stats.level0_bytes), (0, 0), "{stats:?}");
        let estimated = stats.superseded_bytes + stats.superseded_estimated_bytes;
        assert_eq!((estimated, stats.reclaimable_bytes), (0, 0), "{stats:?}");

        let live = self.collections.values().flat_map(|live| &live.rows);
        let live: u64 = live.map(|(id, stored)| content_bytes(id, stored)).sum();
        // A dropped collection that a snapshot sees is not told apart from those that live.
        let held = self.history.dropped_above(stats.horizon);
        if held.is_empty() {
            assert_eq!(stats.live_bytes, live, "{stats:?}");
        } else {
            assert!(stats.live_bytes >= live, "{live} bytes live: {stats:?}");
        }
        if self.snapshots.is_empty() && self.open.as_ref().unwrap().history == 0 {
            assert_eq!(stats.pinned_bytes, 0, "{stats:?}");
            assert_eq!(stats.level1_bytes, live, "{stats:?}");
            assert_eq!(stats.horizon, self.history.newest);
            self.totals.figures_compared += 1;
        }
        let known = self.collections.values().map(|live| live.number).chain(held);
        let pinned = self.history.pinned_bytes(&known.collect::<Vec<_>>(), stats.horizon);
        // Some more may be in segments that nothing was to be freed in, all in all.
        assert!(stats.pinned_bytes >= pinned, "{pinned} bytes pinned: {stats:?}");
        self.totals.pinned_seen += u64::from(pinned > 0);
    }

    /// A snapshot of a sequence of the past, or of one that cannot be read.
    pub(crate) fn read_the_past(&mut self) {
        self.note_horizon();
        let database = self.database();
        let (oldest, newest) = (database.stats().horizon, self.history.newest);
        let random = &mut self.random;
        let mut between = |low: u64, high: u64| low + random.next() % (high - low + 1);
        let at = match between(0, 4) {
            0 => newest + between(1, 3),
            1 if oldest > 0 => between(0, oldest - 1),
            2 => between(oldest, newest),
            _ => between(self.horizon_max, newest),
        };
        self.say(|| format!("read the past at {at}, {oldest} to {newest}"));
        let snapshot = match database.snapshot_at(at) {
            Ok(snapshot) => snapshot,
            Err(Error::HistoryGone { sequence, oldest: horizon, newest: last }) => {
                assert_eq!((sequence, last), (at, newest));
                assert!(horizon >= oldest && horizon <= self.horizon_max, "{oldest}, {horizon}");
                assert!(at < horizon || at > newest, "{at} is within {horizon} to {newest}");
                self.totals.history_gone += 1;
                return;
            }
            Err(e) => panic!("{e:?}"),
        };
        assert!(at >= oldest && at <= newest, "{at} is not within {oldest} to {newest}");
        assert_eq!(snapshot.sequence(), at);
        for dropped in self.dropped.iter().filter(|dropped| dropped.at <= at) {
            let answer = snapshot.get(&dropped.handle, 1);
            assert!(matches!(answer, Err(Error::CollectionDropped { .. })), "{answer:?}");
        }
        let dropped = self.dropped.iter().filter(|dropped| dropped.at > at);
        let dropped = dropped.map(|dropped| (dropped.number, dropped.handle.clone()));
        let live = self.collections.values().map(|live| (live.number, live.handle.clone()));
        let collections: BTreeMap<_, _> = live
            .chain(dropped)
            .map(|(number, handle)| (number, (handle, self.history.rows(number, at))))
            .collect();
        self.snapshots.push(Past { snapshot, collections });
        self.read_all_of_snapshot(self.snapshots.len() - 1);
        self.totals.past_read += 1;
        if self.random.percent(70) {
            drop(self.snapshots.pop());
        }
    }

    /// One job of the background, and reads that meet what it left half done.
    pub(crate) fn step_and_read(&mut self) -> Option<&'static str> {
        let stepped = self.open.as_ref().unwrap().stepped.clone()?;
        let name = stepped.step();
        self.say(|| format!("step: {name:?}"));
        self.get();
        match self.random.below(10) {
            0..3 => self.scan_live(),
            3 if !self.snapshots.is_empty() => self.read_snapshot(),
            4 => self.read_the_past(),
            5 => self.put(),
            6 => self.delete(),
            _ => {}
        }
        name
    }

    /// Level 1 of several segments, then as much of level 0 as is merged into it, most of it in a
    /// part of the ids; read between all steps.
    pub(crate) fn pressure(&mut self) {
        let Some(name) = self.some_collection() else { return };
        self.say(|| "pressure".to_owned());
        let mut ids = self.ids.clone();
        ids.sort();
        ids.dedup();
        for id in &ids {
            let page = page(&mut self.random);
            self.put_this(name, id.clone(), page);
        }
        self.compact();
        if !self.collections.contains_key(name) {
            return;
        }
        // A little elsewhere, which is carried forward.
        self.put_this(name, ids[ids.len() - 1].clone(), bson::doc! { "little": 1 });
        let half = ids.len() / 2;
        for _ in 0..2 + self.random.below(4) {
            for id in &ids[..half] {
                let page = page(&mut self.random);
                self.put_this(name, id.clone(), page);
            }
        }
        self.step_through();
    }

    /// Runs what is due in the background, and reads between its jobs.
    fn step_through(&mut self) {
        let Some(stepped) = self.open.as_ref().unwrap().stepped.clone() else {
            return self.database().wait_idle().unwrap();
        };
        if self.random.percent(50) {
            stepped.advance(Duration::from_millis(300));
        }
        let mut sweeps = sweeps(&self.database().stats());
        // As of the beginning of the sweep under way: seals, and files of level 0.
        let mut begun = None;
        for _ in 0..300 {
            if self.step_and_read().is_none() {
                break;
            }
            let stats = self.database().stats();
            if self::sweeps(&stats) > sweeps {
                sweeps = self::sweeps(&stats);
                begun = Some((stats.seals, stats.level0_segments));
            }
            // A seal adds one, and so does what is carried forward; at its end the sweep takes all
            // others away.
            if let Some((seals, segments)) = begun
                && (stats.seals != seals || stats.level0_segments != segments)
            {
                let is_carried = stats.seals == seals && stats.level0_segments > 0;
                self.totals.carried += u64::from(is_carried);
                begun = None;
            }
        }
        stepped.run_until_idle();
    }

    /// So many small segments that one index cannot be over all of them, while too little is in
    /// level 0 for a sweep.
    pub(crate) fn deep(&mut self) {
        if self.collections.len() < 2 {
            return;
        }
        self.say(|| "deep".to_owned());
        let names: Vec<_> = self.collections.keys().copied().collect();
        let ids = self.ids.clone();
        for id in &ids {
            let pages = bson::doc! { "pages": "p".repeat(7000) };
            self.put_this(names[0], id.clone(), pages);
        }
        self.database().compact().unwrap();
        let stored = Stored::new(bson::Document::new());
        let short: Vec<_> = ids.into_iter().filter(|id| content_bytes(id, &stored) < 16).collect();
        for _ in 0..DEEP / 50 {
            let mut batch = Batch::new();
            for _ in 0..50 {
                let id = self.random.pick(&short).clone();
                let live = self.collections.get_mut(names[1]).unwrap();
                batch.put(&live.handle, &id, &stored.fields).unwrap();
                self.wrote(names[1], id, Some(Arc::clone(&stored)));
            }
            self.database().write(batch).unwrap();
            self.background();
        }
        self.step_through();
        self.verify();
    }

    /// What may be gone by now at most: what is below the oldest snapshot, or the newest write, less
    /// the history.
    pub(crate) fn note_horizon(&mut self) {
        let oldest = self.snapshots.iter().map(|past| past.snapshot.sequence()).min();
        let oldest = oldest.unwrap_or(self.history.newest);
        let open = self.open.as_ref().unwrap();
        self.horizon_max = self.horizon_max.max(oldest.saturating_sub(open.history));
    }

    /// What stats() tells at any moment.
    pub(crate) fn check_stats(&mut self) {
        self.note_horizon();
        let stats = self.database().stats();
        assert_eq!(stats.visible_sequence, self.history.newest);
        assert!(stats.horizon <= self.horizon_max, "{} {}", stats.horizon, self.horizon_max);
        assert_eq!((stats.compaction_failures, stats.last_compaction_error), (0, None));
    }
}
