//! Changes of names, as they wait for a folder's sync.
//!
//! Invariant: a change names the file it is about, so that any part of the changes can be applied
//! in order and none touches a name that another file has taken since.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::{Node, Unsynced};
use crate::sync::Arc;

#[derive(Clone)]
pub(super) enum NameChange {
    Create { path: PathBuf, node: Arc<Node> },
    Rename { from: PathBuf, to: PathBuf, node: Arc<Node> },
    Remove { path: PathBuf, node: Arc<Node> },
}

impl NameChange {
    pub(super) fn apply(&self, names: &mut BTreeMap<PathBuf, Arc<Node>>) {
        match self {
            Self::Create { path, node } => {
                names.insert(path.clone(), Arc::clone(node));
            }
            Self::Rename { from, to, node } => {
                forget(names, from, node);
                names.insert(to.clone(), Arc::clone(node));
            }
            Self::Remove { path, node } => forget(names, path, node),
        }
    }

    pub(super) fn unsynced(&self) -> Unsynced {
        match self {
            Self::Create { path, .. } => Unsynced::Create { path: path.clone() },
            Self::Rename { from, to, .. } => {
                Unsynced::Rename { from: from.clone(), to: to.clone() }
            }
            Self::Remove { path, .. } => Unsynced::Remove { path: path.clone() },
        }
    }

    pub(super) fn node(&self) -> &Arc<Node> {
        match self {
            Self::Create { node, .. } | Self::Rename { node, .. } | Self::Remove { node, .. } => {
                node
            }
        }
    }

    /// The folder whose sync makes the change durable; of a rename, the one it leads to.
    pub(super) fn dir(&self) -> &Path {
        let path = match self {
            Self::Create { path, .. } | Self::Remove { path, .. } => path,
            Self::Rename { to, .. } => to,
        };
        path.parent().unwrap_or(path)
    }
}

fn forget(names: &mut BTreeMap<PathBuf, Arc<Node>>, path: &Path, node: &Arc<Node>) {
    if names.get(path).is_some_and(|named| named.number == node.number) {
        names.remove(path);
    }
}

/// One spelling for each path: no trailing slash, no `.` within.
pub(super) fn normal(path: &Path) -> PathBuf {
    let path: PathBuf = path.components().collect();
    path.strip_prefix(".").map(Path::to_path_buf).unwrap_or(path)
}
