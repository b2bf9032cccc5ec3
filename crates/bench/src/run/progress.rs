//! Progress on standard error: a bar with the time left, or without a terminal a line a cell.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use crate::error::{Context, Result};

/// Seconds; see `Progress::left`.
const PLAN_WEIGHT: f64 = 10.0;

/// The time left is estimated from the planned lengths of the steps and how the steps that are
/// done kept to theirs.
pub(super) struct Progress {
    bar: Option<ProgressBar>,
    started: Instant,
    planned: Vec<Duration>,
    done: usize,
}

impl Progress {
    /// `planned` has the expected length of each step.
    pub(super) fn start(planned: Vec<Duration>) -> Result<Self> {
        let bar = std::io::stderr().is_terminal().then(|| bar(planned.len())).transpose()?;
        Ok(Self { bar, started: Instant::now(), planned, done: 0 })
    }

    pub(super) fn step(&self, name: &str) {
        let left = clock(self.left());
        let (number, count) = (self.done + 1, self.planned.len());
        match &self.bar {
            Some(bar) => bar.set_message(format!("{left} left  {name}")),
            None => eprintln!("[{number}/{count}] {name} ({left} left)"),
        }
    }

    pub(super) fn step_done(&mut self) {
        self.done += 1;
        if let Some(bar) = &self.bar {
            bar.inc(1);
        }
    }

    /// A line that stays.
    pub(super) fn say(&self, line: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| eprintln!("{line}")),
            None => eprintln!("{line}"),
        }
    }

    /// The plan counts as much as `PLAN_WEIGHT` seconds of experience, so that the first short
    /// steps do not decide the estimate.
    fn left(&self) -> Duration {
        let sum = |steps: &[Duration]| steps.iter().sum::<Duration>().as_secs_f64();
        let (done, left) = self.planned.split_at(self.done);
        let elapsed = if done.is_empty() { 0.0 } else { self.started.elapsed().as_secs_f64() };
        let pace = (elapsed + PLAN_WEIGHT) / (sum(done) + PLAN_WEIGHT);
        Duration::try_from_secs_f64(sum(left) * pace).unwrap_or(Duration::MAX)
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn bar(steps: usize) -> Result<ProgressBar> {
    let style = ProgressStyle::with_template("{bar:30} {pos}/{len}  {elapsed} elapsed, {msg}")
        .context(|| "cannot draw a progress bar")?;
    let bar = ProgressBar::new(steps as u64).with_style(style);
    bar.enable_steady_tick(Duration::from_millis(500));
    Ok(bar)
}

/// `m:ss`.
fn clock(duration: Duration) -> String {
    let seconds = duration.as_secs();
    format!("{}:{:02}", seconds / 60, seconds % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_left_starts_as_planned_and_ends_at_zero() {
        let planned = vec![Duration::from_secs(10); 3];
        let mut progress = Progress { bar: None, started: Instant::now(), planned, done: 0 };
        assert_eq!(progress.left(), Duration::from_secs(30));
        progress.started = Instant::now().checked_sub(Duration::from_secs(20)).unwrap();
        progress.done = 1;
        assert_eq!(progress.left().as_secs(), 30, "the pace is 30 s for 20 s planned");
        progress.done = 3;
        assert_eq!(progress.left(), Duration::ZERO);
    }

    #[test]
    fn the_clock_has_two_digits_of_seconds() {
        assert_eq!(clock(Duration::from_secs(65)), "1:05");
    }
}
