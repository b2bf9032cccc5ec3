//! Nodes in one array of words, named by their place in it.
//!
//! An id's first record is an *id node*: it carries what the order needs (collection, heads,
//! links). Its later records are *version nodes* of half the size, in a doubly linked chain that
//! ends at the id node. A node is written once; afterwards only its links change, each by a single
//! store.

use std::cmp::Ordering as Order;

use super::Entry;
use crate::disk::Words;
use crate::format::{CollectionId, Kind, Sequence};
use crate::sync::{AtomicU32, Ordering};

/// The tallest node: enough for 4^12 ids.
pub(super) const HEIGHT_MAX: usize = 12;
/// The bytes of an id that its node holds.
pub(super) const HEAD_BYTES: usize = 16;

/// Nodes begin at multiples of this many words.
const UNIT: usize = 2;

// Two words, the low one first.
const SEQUENCE: usize = 0;
// Two words: offset << 16 | length class of the id << 8 | kind.
const PLACE: usize = 2;
// In a version node the next older version. An id node is its id's oldest version, so that it has
// none: there the word names the newest one.
const OLDER: usize = 4;
const NEWEST: usize = 4;
const NEWER: usize = 5;
const VERSION_WORDS: usize = 6;
// From here on in id nodes only.
const COLLECTION: usize = 6;
// Four words: two big-endian heads.
const HEADS: usize = 7;
const TOWER: usize = 11;

/// The words of the lowest id node.
const ID_WORDS: usize = id_words(1);
/// The words a record takes on average: the heights follow a geometric distribution with ratio 1/4,
/// which comes to 12.5. What is left over lets a memtable have more tall nodes than expected.
const MEAN_WORDS: usize = 13;

const fn id_words(height: usize) -> usize {
    (TOWER + height).next_multiple_of(UNIT)
}

/// A node's place, in units. The default is no node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Node(pub(super) u32);

impl Node {
    pub(super) const NONE: Self = Self(0);

    fn at(word: usize) -> Self {
        Self(u32::try_from(word / UNIT).expect("the array's length was checked"))
    }

    fn word(self) -> usize {
        self.0 as usize * UNIT
    }
}

/// What an id node is ordered by, besides the id's bytes beyond the heads.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head {
    pub(super) collection: CollectionId,
    /// The id's first 16 bytes, zeros appended, as two big-endian integers.
    pub(super) heads: [u64; 2],
    /// The id's length, at most [`HEAD_BYTES`] + 1: orders ids that differ only in zeros at the
    /// end.
    pub(super) class: u8,
}

impl Head {
    pub(super) fn new(collection: CollectionId, id: &[u8]) -> Self {
        let mut bytes = [0; HEAD_BYTES];
        let len = id.len().min(HEAD_BYTES);
        bytes[..len].copy_from_slice(&id[..len]);
        let value = u128::from_be_bytes(bytes);
        let class = u8::try_from(id.len().min(HEAD_BYTES + 1)).expect("at most 17");
        Self { collection, heads: [high_half(value), low_half(value)], class }
    }

    /// Whether equal heads leave the order to the rest of the ids.
    pub(super) fn is_longer_than_heads(&self) -> bool {
        usize::from(self.class) > HEAD_BYTES
    }
}

/// The array. Place 0 is no node; the first node is the head of the skip list.
pub(super) struct Nodes {
    words: Words,
    /// The words that nodes take.
    used: AtomicU32,
}

impl Nodes {
    /// Before every other node of the skip list. Has all levels and no record.
    pub(super) const HEAD: Node = Node(1);

    /// Room for `records` records, whatever their heights.
    pub(super) fn with_capacity(records: usize) -> Self {
        let begin = Self::HEAD.word() + id_words(HEIGHT_MAX);
        let words = begin + records * MEAN_WORDS;
        Self {
            words: Words::zeroed(words),
            used: AtomicU32::new(u32::try_from(begin).expect("a few words")),
        }
    }

    /// A place is less than this.
    pub(super) fn places(&self) -> usize {
        self.words.len().div_ceil(UNIT)
    }

    pub(super) fn bytes(&self) -> usize {
        self.words.len() * size_of::<AtomicU32>()
    }

    /// Writes an id's first record, not yet reachable. `records_left` more must fit afterwards,
    /// which can make the node lower than asked for.
    pub(super) fn add_id(
        &self,
        head: &Head,
        entry: Entry,
        height: usize,
        records_left: usize,
    ) -> (Node, usize) {
        let free = self.words.len() - self.used.load(Ordering::Relaxed) as usize;
        let fits = id_words(height) + records_left * ID_WORDS <= free;
        let height = if fits { height } else { 1 };
        let node = self.allocate(id_words(height));
        self.set_entry(node, entry, head.class);
        self.set_word(node, NEWEST, node.0);
        self.set_word(node, COLLECTION, head.collection.0);
        self.set_pair(node, HEADS, head.heads[0]);
        self.set_pair(node, HEADS + 2, head.heads[1]);
        (node, height)
    }

    /// Adds a record of an id that has a node.
    pub(super) fn add_version(&self, id: Node, entry: Entry) {
        let older = self.newest(id);
        debug_assert!(self.sequence(older) < entry.sequence, "sequences of one id only rise");
        let node = self.allocate(VERSION_WORDS);
        self.set_entry(node, entry, 0);
        self.set_word(node, OLDER, older.0);
        // The node is complete: both stores make it reachable, and pair with the loads of `newer`
        // and `newest`. A reader may find it by one way before the other; its sequence is not
        // visible yet.
        self.slot(older, NEWER).store(node.0, Ordering::Release);
        self.slot(id, NEWEST).store(node.0, Ordering::Release);
    }

    /// An id's newest record.
    pub(super) fn newest(&self, id: Node) -> Node {
        Node(self.slot(id, NEWEST).load(Ordering::Acquire))
    }

    /// The next older record of a version node; the chain ends at the id node, which must not be
    /// asked.
    pub(super) fn older(&self, version: Node) -> Node {
        // Set before the version was reachable and never changed. What it leads to was reachable
        // earlier still, by the same writer, so that the reader sees all of that too.
        Node(self.word(version, OLDER))
    }

    /// The next newer record of the same id.
    pub(super) fn newer(&self, node: Node) -> Node {
        Node(self.slot(node, NEWER).load(Ordering::Acquire))
    }

    /// The next id node at a level.
    pub(super) fn next(&self, id: Node, level: usize) -> Node {
        Node(self.slot(id, TOWER + level).load(Ordering::Acquire))
    }

    /// Puts an id node behind another at a level, lowest level first: a reader that meets it at a
    /// level meets it at all lower ones.
    pub(super) fn link(&self, previous: Node, node: Node, level: usize) {
        let next = self.word(previous, TOWER + level);
        self.set_word(node, TOWER + level, next);
        // The node's fields and its own link are written: pairs with the load of `next`.
        self.slot(previous, TOWER + level).store(node.0, Ordering::Release);
    }

    /// Has the processor load an id node of the usual height, which may span two cache lines.
    #[inline]
    pub(super) fn prefetch(&self, id: Node) {
        self.words.prefetch(id.word());
        self.words.prefetch(id.word() + ID_WORDS - 1);
    }

    pub(super) fn collection(&self, id: Node) -> CollectionId {
        CollectionId(self.word(id, COLLECTION))
    }

    pub(super) fn head(&self, id: Node) -> Head {
        Head {
            collection: self.collection(id),
            heads: [self.pair(id, HEADS), self.pair(id, HEADS + 2)],
            class: self.class(id),
        }
    }

    /// Compares a node's head with another, reading no more of the node than that takes.
    pub(super) fn compare(&self, id: Node, head: &Head) -> Order {
        (self.collection(id).cmp(&head.collection))
            .then_with(|| self.pair(id, HEADS).cmp(&head.heads[0]))
            .then_with(|| self.pair(id, HEADS + 2).cmp(&head.heads[1]))
            .then_with(|| self.class(id).cmp(&head.class))
    }

    fn class(&self, id: Node) -> u8 {
        self.pair(id, PLACE).to_le_bytes()[1]
    }

    pub(super) fn sequence(&self, node: Node) -> Sequence {
        Sequence(self.pair(node, SEQUENCE))
    }

    pub(super) fn offset(&self, node: Node) -> u64 {
        self.pair(node, PLACE) >> 16
    }

    pub(super) fn entry(&self, node: Node) -> Entry {
        let place = self.pair(node, PLACE);
        Entry {
            offset: place >> 16,
            sequence: self.sequence(node),
            kind: Kind::from_byte(place.to_le_bytes()[0]).expect("was written from a kind"),
        }
    }

    fn set_entry(&self, node: Node, entry: Entry, class: u8) {
        debug_assert!(entry.offset < 1 << 48, "no segment is that long");
        let place = entry.offset << 16 | u64::from(class) << 8 | u64::from(entry.kind as u8);
        self.set_pair(node, SEQUENCE, entry.sequence.0);
        self.set_pair(node, PLACE, place);
    }

    fn allocate(&self, words: usize) -> Node {
        let begin = self.used.load(Ordering::Relaxed) as usize;
        let end = u32::try_from(begin + words).expect("the array's length was checked");
        self.used.store(end, Ordering::Relaxed);
        Node::at(begin)
    }

    fn slot(&self, node: Node, field: usize) -> &AtomicU32 {
        &self.words[node.word() + field]
    }

    // Fields that do not change once the node is reachable: the load that found the node ordered
    // them.
    fn word(&self, node: Node, field: usize) -> u32 {
        self.slot(node, field).load(Ordering::Relaxed)
    }

    fn set_word(&self, node: Node, field: usize, value: u32) {
        self.slot(node, field).store(value, Ordering::Relaxed);
    }

    fn pair(&self, node: Node, field: usize) -> u64 {
        u64::from(self.word(node, field)) | u64::from(self.word(node, field + 1)) << 32
    }

    fn set_pair(&self, node: Node, field: usize, value: u64) {
        let [a, b, c, d, e, f, g, h] = value.to_le_bytes();
        self.set_word(node, field, u32::from_le_bytes([a, b, c, d]));
        self.set_word(node, field + 1, u32::from_le_bytes([e, f, g, h]));
    }
}

fn high_half(value: u128) -> u64 {
    (value >> 64) as u64
}

#[expect(clippy::cast_possible_truncation, reason = "the other half is taken apart")]
fn low_half(value: u128) -> u64 {
    value as u64
}
