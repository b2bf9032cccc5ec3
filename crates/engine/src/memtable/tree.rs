//! The order of ids: a skip list over id nodes, with the versions of each id hanging off its node.
//!
//! Insertion only, and one writer, so that a reader needs no retry: every link it follows was valid
//! when it was set and leads forward still. As in LevelDB, a step back searches from the top.

use std::cmp::Ordering as Order;

use super::Ids;
use super::node::{HEAD_BYTES, HEIGHT_MAX, Head, Node, Nodes};
use crate::format::{CollectionId, Direction, Position, Side};
use crate::sync::{AtomicUsize, Ordering};

/// A record's place in the order. Valid as long as the memtable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NodeRef {
    id: Node,
    version: Node,
}

impl NodeRef {
    pub(super) fn id(self) -> Node {
        self.id
    }

    pub(super) fn version(self) -> Node {
        self.version
    }
}

/// An id that is searched for.
pub(super) struct Target<'a> {
    pub(super) head: Head,
    id: &'a [u8],
}

impl<'a> Target<'a> {
    pub(super) fn new(collection: CollectionId, id: &'a [u8]) -> Self {
        Self { head: Head::new(collection, id), id }
    }
}

/// For each level the last node before a place.
pub(super) type Path = [Node; HEIGHT_MAX];

pub(super) struct Tree {
    pub(super) nodes: Nodes,
    /// The tallest node's height. May lag in a reader, whose search then begins lower, or lead,
    /// where the head's link is still empty.
    height: AtomicUsize,
}

impl Tree {
    pub(super) fn new(nodes: Nodes) -> Self {
        Self { nodes, height: AtomicUsize::new(1) }
    }

    pub(super) fn is(&self, node: Node, target: &Target<'_>, ids: &impl Ids) -> bool {
        self.compare(node, target, ids) == Order::Equal
    }

    /// Where an id that has no node belongs.
    pub(super) fn path(&self, target: &Target<'_>, ids: &impl Ids) -> Path {
        let mut path = [Nodes::HEAD; HEIGHT_MAX];
        self.search(target, Side::Before, ids, |level, node| path[level] = node);
        path
    }

    /// Makes a node reachable, at the place that [`Self::path`] found.
    pub(super) fn link(&self, node: Node, height: usize, path: &Path) {
        for (level, &previous) in path.iter().enumerate().take(height) {
            self.nodes.link(previous, node, level);
        }
        if height > self.height.load(Ordering::Relaxed) {
            self.height.store(height, Ordering::Relaxed);
        }
    }

    pub(super) fn seek(
        &self,
        position: Position<'_>,
        direction: Direction,
        ids: &impl Ids,
    ) -> Option<NodeRef> {
        let target = Target::new(position.collection, position.id);
        let (before, after) = self.search(&target, position.side, ids, |_, _| ());
        match direction {
            Direction::Forward => self.newest(after),
            Direction::Reverse => Self::oldest(before),
        }
    }

    pub(super) fn step(
        &self,
        node: NodeRef,
        direction: Direction,
        ids: &impl Ids,
    ) -> Option<NodeRef> {
        let NodeRef { id, version } = node;
        match direction {
            Direction::Forward if version == id => self.newest(self.nodes.next(id, 0)),
            Direction::Forward => Some(NodeRef { id, version: self.nodes.older(version) }),
            Direction::Reverse => match self.nodes.newer(version) {
                Node::NONE => {
                    let head = self.nodes.head(id);
                    let bytes = match head.is_longer_than_heads() {
                        true => ids.id_at(self.nodes.offset(id)),
                        false => &[],
                    };
                    let target = Target { head, id: bytes };
                    Self::oldest(self.search(&target, Side::Before, ids, |_, _| ()).0)
                }
                newer => Some(NodeRef { id, version: newer }),
            },
        }
    }

    /// Has the processor load what a step forward to the next id will read.
    #[inline]
    pub(super) fn prefetch_next(&self, node: NodeRef) {
        self.nodes.prefetch(self.nodes.next(node.id, 0));
    }

    fn newest(&self, id: Node) -> Option<NodeRef> {
        (id != Node::NONE).then(|| NodeRef { id, version: self.nodes.newest(id) })
    }

    fn oldest(id: Node) -> Option<NodeRef> {
        (id != Nodes::HEAD).then_some(NodeRef { id, version: id })
    }

    /// The last id node before a place (or the list's head) and the first one behind it (or none).
    fn search(
        &self,
        target: &Target<'_>,
        side: Side,
        ids: &impl Ids,
        mut visit: impl FnMut(usize, Node),
    ) -> (Node, Node) {
        let mut before = Nodes::HEAD;
        let mut after = Node::NONE;
        for level in (0..self.height.load(Ordering::Relaxed)).rev() {
            let mut next = self.nodes.next(before, level);
            // The node that ended the level above is not compared again.
            if level > 0 {
                // Where the search goes if it goes no further here: that miss overlaps with this
                // level's.
                self.nodes.prefetch(self.nodes.next(before, level - 1));
            }
            while next != after && next != Node::NONE {
                let is_before = match self.compare(next, target, ids) {
                    Order::Less => true,
                    Order::Equal => side == Side::After,
                    Order::Greater => false,
                };
                if !is_before {
                    break;
                }
                before = next;
                next = self.nodes.next(before, level);
                if level > 0 {
                    self.nodes.prefetch(self.nodes.next(before, level - 1));
                }
            }
            after = next;
            visit(level, before);
        }
        (before, after)
    }

    fn compare(&self, node: Node, target: &Target<'_>, ids: &impl Ids) -> Order {
        let order = self.nodes.compare(node, &target.head);
        if order != Order::Equal || !target.head.is_longer_than_heads() {
            return order;
        }
        let id = ids.id_at(self.nodes.offset(node));
        tail(id).cmp(tail(target.id))
    }
}

/// What the heads do not hold.
fn tail(id: &[u8]) -> &[u8] {
    id.get(HEAD_BYTES..).unwrap_or_default()
}
