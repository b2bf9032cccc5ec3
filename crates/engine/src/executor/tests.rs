//! Both executors, from the outside.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use super::{Executor, Stepped, Threads};
use crate::clock::ManualClock;
use crate::sync::{Arc, AtomicBool, Ordering};

/// Long enough for a busy machine; reached only when a test fails.
const PATIENCE: Duration = Duration::from_secs(20);

fn stepped() -> (Arc<ManualClock>, Arc<Stepped>) {
    let clock = Arc::new(ManualClock::default());
    (Arc::clone(&clock), Arc::new(Stepped::new(clock)))
}

fn send(sender: &Sender<&'static str>, name: &'static str) -> Box<dyn FnOnce() + Send> {
    let sender = sender.clone();
    Box::new(move || sender.send(name).unwrap())
}

fn received(receiver: &Receiver<&'static str>) -> &'static str {
    receiver.recv_timeout(PATIENCE).expect("a job runs")
}

/// Sets its flag when it is dropped, to show that a job was dropped unrun.
struct Dropped(Arc<AtomicBool>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

#[test]
fn stepped_runs_jobs_in_the_order_of_their_submission_and_only_when_asked() {
    let (_, executor) = stepped();
    let (sender, receiver) = channel();
    for name in ["a", "b", "c"] {
        executor.submit(name, send(&sender, name));
    }
    assert!(receiver.try_recv().is_err());
    assert_eq!(executor.step(), Some("a"));
    assert_eq!(receiver.try_iter().collect::<Vec<_>>(), ["a"]);
    assert!(executor.help());
    assert_eq!(executor.run_until_idle(), 1);
    assert_eq!(receiver.try_iter().collect::<Vec<_>>(), ["b", "c"]);
    assert_eq!(executor.step(), None);
    assert!(!executor.help());
}

#[test]
fn stepped_orders_delayed_jobs_by_due_time_then_submission() {
    let (_, executor) = stepped();
    let (sender, _receiver) = channel();
    for (name, delay_ms) in
        [("late", 30), ("b1", 20), ("b2", 20), ("a", 10), ("b3", 20), ("b4", 20)]
    {
        executor.submit_after(Duration::from_millis(delay_ms), name, send(&sender, name));
    }
    assert_eq!(executor.step(), None);
    assert_eq!(executor.next_timer(), Some(Duration::from_millis(10)));
    assert_eq!(executor.advance(Duration::from_millis(9)), [""; 0]);
    assert_eq!(executor.advance(Duration::from_millis(11)), ["a", "b1", "b2", "b3", "b4"]);
    executor.submit("now", send(&sender, "now"));
    let names: Vec<_> = std::iter::from_fn(|| executor.step()).collect();
    assert_eq!(names, ["a", "b1", "b2", "b3", "b4", "now"]);
    assert_eq!(executor.advance(Duration::from_millis(10)), ["late"]);
}

#[test]
fn stepped_jobs_submit_jobs() {
    let (clock, executor) = stepped();
    let inner = Arc::clone(&executor);
    executor.submit(
        "outer",
        Box::new(move || {
            inner.submit("inner", Box::new(|| {}));
            inner.submit_after(Duration::from_secs(1), "later", Box::new(|| {}));
        }),
    );
    assert_eq!(executor.run_until_idle(), 2);
    clock.advance(Duration::from_secs(1));
    assert_eq!(executor.step(), Some("later"));
}

#[test]
fn stepped_shutdown_drops_queued_jobs_and_refuses_new_ones_also_from_inside_a_job() {
    let (_, executor) = stepped();
    let queued = Arc::new(AtomicBool::new(false));
    let inner = Arc::clone(&executor);
    executor.submit("stop", Box::new(move || inner.shutdown()));
    let token = Dropped(Arc::clone(&queued));
    executor.submit("queued", Box::new(move || drop(token)));
    assert_eq!(executor.run_until_idle(), 1);
    assert!(queued.load(Ordering::SeqCst));
    executor.submit("after", Box::new(|| panic!("runs after shutdown")));
    executor.submit_after(Duration::ZERO, "after", Box::new(|| panic!("runs after shutdown")));
    assert_eq!(executor.step(), None);
}

#[test]
fn stepped_shutdown_waits_for_a_job_on_another_thread() {
    let (_, executor) = stepped();
    let (started, wait_started) = channel();
    let finished = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&finished);
    executor.submit(
        "slow",
        Box::new(move || {
            started.send("slow").unwrap();
            std::thread::sleep(Duration::from_millis(50));
            flag.store(true, Ordering::SeqCst);
        }),
    );
    std::thread::scope(|scope| {
        scope.spawn(|| executor.step());
        received(&wait_started);
        executor.shutdown();
        assert!(finished.load(Ordering::SeqCst));
    });
}

#[test]
fn stepped_shows_a_panic_to_the_test_and_goes_on() {
    let (_, executor) = stepped();
    executor.submit("bad", Box::new(|| panic!("on purpose")));
    executor.submit("good", Box::new(|| {}));
    assert!(catch_unwind(AssertUnwindSafe(|| executor.step())).is_err());
    assert_eq!(executor.step(), Some("good"));
    executor.shutdown();
}

#[test]
fn threads_are_named_and_run_jobs_in_order() {
    let executor = Threads::new(1).unwrap();
    let (sender, receiver) = channel();
    for name in ["a", "b", "c"] {
        executor.submit(name, send(&sender, name));
    }
    assert_eq!([(); 3].map(|()| received(&receiver)), ["a", "b", "c"]);
    let (sender, names) = channel();
    executor.submit(
        "name",
        Box::new(move || {
            sender.send(std::thread::current().name().map(str::to_owned)).unwrap();
        }),
    );
    assert_eq!(names.recv_timeout(PATIENCE).unwrap().as_deref(), Some("sediment-0"));
    assert!(!executor.help());
}

#[test]
fn threads_start_delayed_jobs_when_they_are_due() {
    let executor = Threads::new(2).unwrap();
    let (sender, receiver) = channel();
    let start = Instant::now();
    executor.submit_after(Duration::from_millis(60), "late", send(&sender, "late"));
    executor.submit_after(Duration::from_millis(20), "early", send(&sender, "early"));
    assert_eq!(received(&receiver), "early");
    assert!(start.elapsed() >= Duration::from_millis(20));
    assert_eq!(received(&receiver), "late");
    assert!(start.elapsed() >= Duration::from_millis(60));
}

#[test]
fn threads_run_timers_that_are_due_together_in_parallel() {
    let executor = Threads::new(2).unwrap();
    let (to_first, from_second) = channel();
    let (done, receiver) = channel();
    let delay = Duration::from_millis(10);
    executor.submit_after(
        delay,
        "first",
        Box::new(move || {
            done.send(received(&from_second)).unwrap();
        }),
    );
    executor.submit_after(delay, "second", send(&to_first, "met"));
    assert_eq!(received(&receiver), "met");
}

#[test]
fn a_thread_survives_a_job_that_panics() {
    let executor = Threads::new(1).unwrap();
    let (sender, receiver) = channel();
    executor.submit("bad", Box::new(|| panic!("on purpose")));
    executor.submit("good", send(&sender, "good"));
    assert_eq!(received(&receiver), "good");
}

#[test]
fn threads_shutdown_drops_queued_jobs_and_waits_for_the_running_one() {
    let executor = Threads::new(1).unwrap();
    let (started, wait_started) = channel();
    let finished = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&finished);
    executor.submit(
        "slow",
        Box::new(move || {
            started.send("slow").unwrap();
            std::thread::sleep(Duration::from_millis(50));
            flag.store(true, Ordering::SeqCst);
        }),
    );
    let dropped = Arc::new(AtomicBool::new(false));
    for delay in [Duration::ZERO, Duration::from_secs(3600)] {
        let token = Dropped(Arc::clone(&dropped));
        executor.submit_after(
            delay,
            "queued",
            Box::new(move || {
                let _token = token;
                panic!("runs after shutdown");
            }),
        );
    }
    received(&wait_started);
    executor.shutdown();
    assert!(finished.load(Ordering::SeqCst));
    assert!(dropped.load(Ordering::SeqCst));
    executor.submit("after", Box::new(|| panic!("runs after shutdown")));
    executor.shutdown();
}

#[test]
fn threads_shut_down_from_a_worker_without_waiting_for_it() {
    let executor = Arc::new(Threads::new(2).unwrap());
    let (sender, receiver) = channel();
    let inner = Arc::clone(&executor);
    executor.submit(
        "stop",
        Box::new(move || {
            inner.shutdown();
            sender.send("stopped").unwrap();
        }),
    );
    assert_eq!(received(&receiver), "stopped");
    executor.shutdown();
}

#[test]
fn threads_whose_last_owner_is_a_job_end_without_hanging() {
    let executor = Arc::new(Threads::new(1).unwrap());
    let (sender, receiver) = channel();
    let (release, released) = channel();
    let shared = executor.watch();
    let inner = Arc::clone(&executor);
    executor.submit(
        "last",
        Box::new(move || {
            received(&released);
            drop(inner);
            sender.send("dropped").unwrap();
        }),
    );
    drop(executor);
    release.send("go").unwrap();
    assert_eq!(received(&receiver), "dropped");
    let deadline = Instant::now() + PATIENCE;
    while shared.strong_count() > 0 {
        assert!(Instant::now() < deadline, "the worker never ends");
        std::thread::sleep(Duration::from_millis(1));
    }
}
