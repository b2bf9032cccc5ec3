//! Where a 100-byte document lives: in the log, or with what finds it.
//!
//! Models of four layouts, each with its real cache lines, and a read that verifies what it found
//! (a checksum over id and document), as the engine's does.
//!
//! | layout | found by | the document |
//! |---|---|---|
//! | [`LogPlaced`] | nodes in a hash table, as in the memtable | in the log, as it arrived |
//! | [`NodeInline`] | the same | behind its node |
//! | [`PlacesLeaf`] | sorted entries of 12 bytes, as in level 0 | in the log, as it arrived |
//! | [`InlineLeaf`] | sorted leaves | in the leaf, as in level 1 |

mod leaves;
mod nodes;

pub use leaves::{InlineLeaf, PlacesLeaf};
pub use nodes::{LogPlaced, NodeInline};

use crate::ids::ID_BYTES;
use crate::records::{DOCUMENT_BYTES, Records};

/// What a read verifies: the id and the document.
const CONTENT_BYTES: usize = ID_BYTES + DOCUMENT_BYTES;

/// Finds documents, and goes on from them in the order of ids.
pub trait Layout {
    /// The layout of all records.
    fn new(records: &'static Records) -> Self;

    /// Verifies the document of an id: its checksum. 0 if there is none.
    fn get(&self, id: &[u8]) -> u32;

    /// Verifies the first `rows` documents from an id on, which must exist; a sum of checksums.
    fn scan(&self, from: &[u8], rows: usize) -> u32;

    /// The bytes of a document with its id and header: in what finds it and in the log, together.
    fn bytes_a_document() -> (usize, usize);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::Probes;

    fn check<L: Layout>(records: &'static Records) -> (Vec<u32>, Vec<u32>) {
        let layout = L::new(records);
        let (present, absent) = (Probes::present(500, 500, 9), Probes::absent(100, 9));
        assert!(absent.ids().iter().all(|id| layout.get(id) == 0));
        let gets = present.ids().iter().map(|id| layout.get(id)).collect();
        (gets, present.ids().iter().map(|id| layout.scan(id, 10)).collect())
    }

    #[test]
    fn all_layouts_find_the_same_documents() {
        let records = Records::leak(500);
        let expected = check::<LogPlaced>(records);
        assert_eq!(check::<NodeInline>(records), expected);
        assert_eq!(check::<PlacesLeaf>(records), expected);
        assert_eq!(check::<InlineLeaf>(records), expected);
        let by_id: std::collections::BTreeMap<_, _> =
            (0..500).map(|n| (*records.id(n), records.verified(Records::offset(n)).1)).collect();
        let present = Probes::present(500, 500, 9);
        for (i, id) in present.ids().iter().enumerate() {
            assert_eq!(expected.0[i], by_id[id]);
            let rows = by_id.range(*id..).take(10).map(|(_, sum)| *sum);
            assert_eq!(expected.1[i], rows.fold(0, u32::wrapping_add));
        }
    }
}
