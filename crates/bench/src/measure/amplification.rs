//! Write amplification: bytes written for each byte that was handed to the store.

use serde::{Deserialize, Serialize};

/// Of a cell of overwrites; `docs/bench/README.md` defines each field.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct WriteAmplification {
    pub(crate) user_bytes: u64,
    pub(crate) turnover: f64,
    pub(crate) write_amplification_process: f64,
    pub(crate) store_written_bytes: Option<u64>,
    pub(crate) write_amplification_store: Option<f64>,
}

impl WriteAmplification {
    /// `user_bytes` are those of ids and documents; `turnover` is how often the live bytes were to
    /// be overwritten; `process` bytes went to the storage layer and `store` bytes are what the
    /// store says it wrote, both until it was idle.
    pub(crate) fn new(user_bytes: u64, turnover: f64, process: u64, store: Option<u64>) -> Self {
        let for_each = |bytes: u64| bytes as f64 / user_bytes.max(1) as f64;
        Self {
            user_bytes,
            turnover,
            write_amplification_process: for_each(process),
            store_written_bytes: store,
            write_amplification_store: store.map(for_each),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amplification_is_written_over_handed_in() {
        let amplification = WriteAmplification::new(1_000, 2.0, 3_500, Some(3_000));
        assert!((amplification.write_amplification_process - 3.5).abs() < 1e-12);
        assert!((amplification.write_amplification_store.unwrap() - 3.0).abs() < 1e-12);
    }

    #[test]
    fn a_store_that_says_nothing_has_no_figure_of_its_own() {
        let amplification = WriteAmplification::new(1_000, 2.0, 1_000, None);
        assert_eq!(amplification.write_amplification_store, None);
        assert_eq!(amplification.store_written_bytes, None);
    }

    #[test]
    fn nothing_handed_in_is_no_division_by_zero() {
        assert!(WriteAmplification::new(0, 2.0, 0, Some(0)).write_amplification_process < 1e-12);
    }
}
