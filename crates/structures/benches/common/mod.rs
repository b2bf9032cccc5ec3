//! How everything here is measured: short, so that a whole run takes minutes.

use std::time::Duration;

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion, SamplingMode, Throughput};

/// Ten samples of 30 ms, or of one iteration where that takes longer.
pub(crate) fn criterion() -> Criterion {
    Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(50))
        .measurement_time(Duration::from_millis(300))
        .nresamples(1000)
        .without_plots()
        .configure_from_args()
}

/// A group whose iterations are `operations` operations each: figures are divided by that.
pub(crate) fn group<'a>(
    criterion: &'a mut Criterion,
    name: &str,
    operations: usize,
) -> BenchmarkGroup<'a, WallTime> {
    let mut group = criterion.benchmark_group(name);
    group.throughput(Throughput::Elements(operations as u64));
    group.sampling_mode(SamplingMode::Flat);
    group
}
