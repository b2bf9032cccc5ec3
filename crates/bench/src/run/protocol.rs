//! Between the parent and the process of a repeat: a task as one line of JSON on standard input,
//! the answer as one line of JSON on standard output, a failure as text on standard error.
//!
//! 1. The child ends when its standard input ends, so it never outlives the parent.
//! 2. A child that writes a tail answers and waits: the parent ends it with SIGKILL.
//! 3. The child has a process group of its own: Ctrl-C reaches the parent alone, which decides.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::cell::{self, CellSpec, Measurement};
use super::history::{self, HistorySpec};
use super::micro::Part;
use super::micro::cell::{self as micro, Oversize};
use super::overwrite::{self, OverwriteSpec};
use super::signal;
use super::tail::{self, Opening};
use crate::cli;
use crate::error::{Context, Failure, Result};
use crate::measure::amplification::WriteAmplification;
use crate::store::{Store, StoreKind, StoreTask};
use crate::verify::history::Verification;
use crate::verify::{self, Stage, VerifySpec};
use crate::workload::Workload;

/// How often the parent looks whether the child has ended.
const POLL: Duration = Duration::from_millis(5);

/// What a child process does with a store.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Task {
    pub(super) store: StoreKind,
    pub(super) cell: CellSpec,
    pub(super) action: Action,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum Action {
    Load,
    Run(Workload),
    Verify(VerifySpec),
    Overwrite(OverwriteSpec),
    /// Write a tail of this many records, and wait to be killed.
    Burst(u64),
    /// A part of the micro suite.
    Micro(Part),
    /// Open a store with a tail of this many records.
    Open(u64),
    /// Run a workload and check every answer.
    Check(HistorySpec),
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Answer {
    Measured(Measurement),
    Verified(Vec<Stage>),
    Overwritten(Measurement, WriteAmplification),
    MicroMeasured(Measurement, Option<Oversize>),
    WroteTail,
    Opened(Measurement, Opening),
    Checked(Measurement, Verification),
}

/// The child's side.
pub(super) fn serve() -> Result<()> {
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line).context(|| "cannot read the task")?;
    let task: Task = serde_json::from_str(&line).context(|| "cannot understand the task")?;
    thread::spawn(end_with_the_parent);
    let answer = task.store.with(&task)?;
    let mut line = serde_json::to_string(&answer).context(|| "cannot write the answer")?;
    line.push('\n');
    std::io::stdout().write_all(line.as_bytes()).context(|| "cannot write the answer")?;
    match answer {
        Answer::WroteTail => loop {
            thread::park();
        },
        _ => Ok(()),
    }
}

fn end_with_the_parent() {
    let mut rest = Vec::new();
    // An error of the pipe means the same as its end: nobody waits for an answer.
    drop(std::io::stdin().lock().read_to_end(&mut rest));
    std::process::exit(1);
}

impl StoreTask for &Task {
    type Output = Result<Answer>;

    fn with<S: Store>(self) -> Result<Answer> {
        let cell = &self.cell;
        match &self.action {
            Action::Load => cell::load::<S>(cell).map(Answer::Measured),
            Action::Run(workload) => cell::run::<S>(cell, *workload).map(Answer::Measured),
            Action::Verify(spec) => verify::pass::<S>(cell, spec).map(Answer::Verified),
            Action::Overwrite(spec) => overwrite::overwrite::<S>(cell, spec)
                .map(|(measurement, written)| Answer::Overwritten(measurement, written)),
            Action::Burst(tail) => tail::burst::<S>(cell, *tail).map(|()| Answer::WroteTail),
            Action::Open(tail) => tail::open::<S>(cell, *tail)
                .map(|(measurement, opening)| Answer::Opened(measurement, opening)),
            // Only some stores can, so it finds the store's type by itself.
            Action::Micro(part) => micro::perform(self.store, cell, *part)
                .map(|(measurement, oversize)| Answer::MicroMeasured(measurement, oversize)),
            Action::Check(spec) => history::verify::<S>(cell, spec)
                .map(|(measurement, verification)| Answer::Checked(measurement, verification)),
        }
    }
}

/// How the parent ends a child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    /// The child ends by itself after its answer.
    Exit,
    /// The parent kills it once it has answered.
    Kill,
}

enum Ended {
    /// With this line.
    Answered(String),
    Failed(ExitStatus),
}

/// The parent's side: runs `task` in a new process and waits for its answer, or for Ctrl-C.
pub(super) fn run(task: &Task) -> Result<Answer> {
    let mut child = start()?;
    let line = serde_json::to_string(task).context(|| "cannot write the task")? + "\n";
    let mut input = child.stdin.take();
    if let Some(pipe) = &mut input {
        // When the child has ended already, its exit tells why.
        drop(pipe.write_all(line.as_bytes()));
    }
    let answer = first_line(child.stdout.take());
    let errors = drain(child.stderr.take());
    let ending = match task.action {
        Action::Burst(_) => Ending::Kill,
        _ => Ending::Exit,
    };
    let ended = wait(&mut child, &answer, ending)?;
    // The pipe stays open for as long as the child lives.
    drop(input);
    match ended {
        Ended::Answered(line) => {
            serde_json::from_str(&line).context(|| "cannot understand a cell's answer")
        }
        Ended::Failed(status) => {
            let errors = errors.join().unwrap_or_default();
            let reason = errors.lines().rfind(|line| !line.trim().is_empty());
            let reason = reason.unwrap_or("no message");
            let reason = reason.strip_prefix("error: ").unwrap_or(reason);
            Err(Failure::new(format_args!("{reason} ({}, {status})", task.store.name())))
        }
    }
}

fn start() -> Result<Child> {
    let program = std::env::current_exe().context(|| "cannot find this program")?;
    Command::new(program)
        .arg(cli::CHILD)
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .context(|| "cannot start a process for the cell")
}

/// The answer, as soon as it is there; empty when the pipe ends without one.
fn first_line(pipe: Option<impl Read + Send + 'static>) -> Receiver<String> {
    let (sender, answer) = channel();
    thread::spawn(move || {
        let mut line = String::new();
        if let Some(pipe) = pipe {
            // What was read before an error of the pipe is what there is.
            drop(BufReader::new(pipe).read_line(&mut line));
        }
        // Nobody waits any more after Ctrl-C.
        drop(sender.send(line));
    });
    answer
}

fn drain(pipe: Option<impl Read + Send + 'static>) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            // As above.
            drop(pipe.read_to_end(&mut bytes));
        }
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

fn wait(child: &mut Child, answer: &Receiver<String>, ending: Ending) -> Result<Ended> {
    loop {
        if let Some(status) = child.try_wait().context(|| "cannot wait for a cell")? {
            return Ok(if status.success() {
                Ended::Answered(answer.recv().unwrap_or_default())
            } else {
                Ended::Failed(status)
            });
        }
        if signal::interrupted() {
            kill(child)?;
            return Err(Failure::Interrupted);
        }
        // An empty line is the end of the pipe: the child is about to end by itself.
        if ending == Ending::Kill
            && let Ok(line) = answer.try_recv()
            && !line.is_empty()
        {
            kill(child)?;
            return Ok(Ended::Answered(line));
        }
        thread::sleep(POLL);
    }
}

fn kill(child: &mut Child) -> Result<()> {
    // It may have ended in this moment; then there is nothing to kill.
    drop(child.kill());
    child.wait().map(drop).context(|| "cannot wait for a cell")
}
