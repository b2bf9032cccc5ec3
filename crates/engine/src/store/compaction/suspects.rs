//! Ids that may be those of damaged records.
//!
//! A segment with a record whose id is damaged is kept beside what it was merged into. Whether a
//! version that was merged is older than that record, or newer and so heals it, only its sequence
//! tells. So such versions keep their sequences, and tombstones stay.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use super::super::tables::Tables;
use crate::error::{Error, Result};
use crate::format::{CollectionId, Key, SegmentId};
use crate::segment::{Regime, SealedSegment};
use crate::sync::Arc;

/// The segments that have such records, as far as they are known.
pub(super) struct Suspects<'a> {
    tables: &'a Tables,
    regime: Regime,
    segments: RefCell<BTreeMap<SegmentId, Arc<SealedSegment>>>,
}

impl<'a> Suspects<'a> {
    /// Those in quarantine, and those that are known to be damaged.
    pub(super) fn new(tables: &'a Tables, damaged: &BTreeSet<SegmentId>, regime: Regime) -> Self {
        let quarantined = tables.quarantined.iter();
        let quarantined = quarantined.map(|held| (held.id(), Arc::clone(held.segment())));
        let suspects = Self { tables, regime, segments: RefCell::new(quarantined.collect()) };
        suspects.add(damaged);
        suspects
    }

    fn add(&self, damaged: &BTreeSet<SegmentId>) {
        let mut segments = self.segments.borrow_mut();
        for id in damaged {
            if let Some(data) = self.tables.file(*id) {
                segments.entry(*id).or_insert_with(|| SealedSegment::of(Arc::clone(data)));
            }
        }
    }

    /// Whether a damaged record may be a version of the key. `lost` are the segments in which the
    /// merge has found some by now: it has passed their places when it comes to the key.
    pub(super) fn have(
        &self,
        (collection, id): (CollectionId, &[u8]),
        lost: &BTreeSet<SegmentId>,
    ) -> Result<bool> {
        self.add(lost);
        let segments = self.segments.borrow();
        // Nearly always: then a record costs a look at two empty sets, and no hash.
        if segments.is_empty() {
            return Ok(false);
        }
        let key = Key::new(collection, id);
        for segment in segments.values() {
            match segment.find_newest(key, self.regime) {
                Ok(_) => {}
                Err(Error::Corrupt { .. }) => return Ok(true),
                Err(e) => return Err(e),
            }
        }
        Ok(false)
    }
}
