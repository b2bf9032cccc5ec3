//! Sediment
