//! The table of stores: a line each.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::{Durability, Loses, Scope, Settings, Store, StoreConfig};
use crate::workload::Workload;

/// What is compiled for each store, and done with the one of a kind.
pub(crate) trait StoreTask {
    type Output;

    fn with<S: Store>(self) -> Self::Output;
}

/// Without its feature a kind does not exist, but its name is known, so that the error says what
/// to build.
macro_rules! stores {
    ($(
        $(#[cfg(feature = $feature:literal)])?
        $kind:ident = $name:literal => $store:ty,
    )+) => {
        /// The stores that are built in.
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
        )]
        pub(crate) enum StoreKind {
            $(
                $(#[cfg(feature = $feature)])?
                #[serde(rename = $name)]
                $kind,
            )+
        }

        const NAMES: &[&str] = &[$($name),+];

        /// Stores that a feature builds in: name and feature.
        const OPTIONAL: &[(&str, &str)] = &[$($(($name, $feature),)?)+];

        impl StoreKind {
            pub(crate) const ALL: &[Self] = &[
                $(
                    $(#[cfg(feature = $feature)])?
                    Self::$kind,
                )+
            ];

            pub(crate) fn name(self) -> &'static str {
                match self {
                    $(
                        $(#[cfg(feature = $feature)])?
                        Self::$kind => $name,
                    )+
                }
            }

            /// Does something with the store's type.
            pub(crate) fn with<T: StoreTask>(self, task: T) -> T::Output {
                match self {
                    $(
                        $(#[cfg(feature = $feature)])?
                        Self::$kind => task.with::<$store>(),
                    )+
                }
            }

            pub(crate) fn version(self) -> &'static str {
                match self {
                    $(
                        $(#[cfg(feature = $feature)])?
                        Self::$kind => <$store>::VERSION,
                    )+
                }
            }

            pub(crate) fn scope(self) -> Scope {
                match self {
                    $(
                        $(#[cfg(feature = $feature)])?
                        Self::$kind => <$store>::SCOPE,
                    )+
                }
            }

            pub(crate) fn settings(self, config: &StoreConfig) -> Settings {
                match self {
                    $(
                        $(#[cfg(feature = $feature)])?
                        Self::$kind => <$store>::settings(config),
                    )+
                }
            }

            pub(crate) fn loses(self, durability: Durability) -> Loses {
                match self {
                    $(
                        $(#[cfg(feature = $feature)])?
                        Self::$kind => <$store>::loses(durability),
                    )+
                }
            }
        }
    };
}

stores! {
    Sediment = "sediment" => super::sediment::Sediment,
    RocksDb = "rocksdb" => super::rocksdb::RocksDb,
    Raw = "raw" => super::raw::Raw,
    Null = "null" => super::null::Null,
    Floor = "floor" => super::floor::Floor,
    #[cfg(feature = "lmdb")]
    Lmdb = "lmdb" => super::lmdb::Lmdb<super::flusher::Never>,
    #[cfg(feature = "lmdb")]
    LmdbFlushed = "lmdb-250ms" => super::lmdb::Lmdb<super::flusher::Every250Ms>,
    #[cfg(feature = "redb")]
    Redb = "redb" => super::redb::Redb<super::flusher::Never>,
    #[cfg(feature = "redb")]
    RedbFlushed = "redb-250ms" => super::redb::Redb<super::flusher::Every250Ms>,
    #[cfg(feature = "fjall")]
    Fjall = "fjall" => super::fjall::Fjall<super::flusher::Never>,
    #[cfg(feature = "fjall")]
    FjallFlushed = "fjall-250ms" => super::fjall::Fjall<super::flusher::Every250Ms>,
    #[cfg(feature = "canopydb")]
    Canopydb = "canopydb" => super::canopydb::Canopydb<super::flusher::Never>,
    #[cfg(feature = "canopydb")]
    CanopydbFlushed = "canopydb-250ms" => super::canopydb::Canopydb<super::flusher::Every250Ms>,
    #[cfg(feature = "sqlite")]
    Sqlite = "sqlite" => super::sqlite::Sqlite<super::flusher::Never>,
    #[cfg(feature = "sqlite")]
    SqliteFlushed = "sqlite-250ms" => super::sqlite::Sqlite<super::flusher::Every250Ms>,
}

impl StoreKind {
    /// The store that the others are compared with.
    pub(crate) const ORACLE: Self = Self::RocksDb;

    /// Whether timed cells of this workload are made of this store.
    pub(crate) fn runs(self, workload: Workload, durability: Durability) -> bool {
        self.scope().runs(workload, durability)
    }
}

impl FromStr for StoreKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(kind) = Self::ALL.iter().find(|kind| kind.name() == text) {
            return Ok(*kind);
        }
        if let Some((_, feature)) = OPTIONAL.iter().find(|(name, _)| *name == text) {
            return Err(format!("not built in: build the bench with `--features {feature}`"));
        }
        Err(format!("no such store; there are {}", NAMES.join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_parsed_back_and_is_what_a_task_carries() {
        for kind in StoreKind::ALL {
            assert_eq!(kind.name().parse(), Ok(*kind));
            let text = serde_json::to_string(kind).unwrap();
            assert_eq!(text, format!("\"{}\"", kind.name()));
            assert_eq!(serde_json::from_str::<StoreKind>(&text).unwrap(), *kind);
        }
    }

    #[test]
    fn a_store_that_is_not_built_in_names_its_feature() {
        for (name, feature) in OPTIONAL {
            let built_in = StoreKind::ALL.iter().any(|kind| kind.name() == *name);
            match name.parse::<StoreKind>() {
                Ok(kind) => assert_eq!((kind.name(), built_in), (*name, true)),
                Err(text) => {
                    assert!(!built_in && text.contains(&format!("--features {feature}")), "{text}");
                }
            }
        }
        let unknown = "wiredtiger".parse::<StoreKind>().unwrap_err();
        assert!(unknown.contains("sediment, rocksdb") && unknown.contains("lmdb"), "{unknown}");
    }

    /// A variant is what its store is, but for what a buffered cell can lose.
    #[test]
    fn a_variant_differs_from_its_store_in_what_it_loses() {
        for kind in StoreKind::ALL.iter().filter(|kind| kind.scope() == Scope::Buffered) {
            let store: StoreKind = kind.name().replace("-250ms", "").parse().unwrap();
            assert_eq!(kind.version(), store.version());
            assert_eq!(kind.loses(Durability::Durable), store.loses(Durability::Durable));
            assert_ne!(kind.loses(Durability::Buffered), store.loses(Durability::Buffered));
        }
    }

    #[test]
    fn what_a_durable_cell_answered_is_lost_by_no_store() {
        for kind in StoreKind::ALL.iter().filter(|kind| kind.scope().is_a_store()) {
            assert_eq!(kind.loses(Durability::Durable), Loses::nothing(), "{}", kind.name());
        }
    }
}
