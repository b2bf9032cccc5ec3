//! Between the parent and the process of a repeat: a task as one line of JSON on standard input,
//! the answer as one line of JSON on standard output, a failure as text on standard error.
//!
//! 1. The child ends when its standard input ends, so it never outlives the parent.
//! 2. The child has a process group of its own: Ctrl-C reaches the parent alone, which decides.

use std::io::{BufRead, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::cell::{self, CellSpec, Measurement};
use super::signal;
use crate::cli;
use crate::error::{Context, Failure, Result};
use crate::store::{RocksDb, Sediment, Store, StoreKind};
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
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Answer {
    Measured(Measurement),
    Verified(Vec<Stage>),
}

/// The child's side.
pub(super) fn serve() -> Result<()> {
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line).context(|| "cannot read the task")?;
    let task: Task = serde_json::from_str(&line).context(|| "cannot understand the task")?;
    thread::spawn(end_with_the_parent);
    let answer = match task.store {
        StoreKind::Sediment => perform::<Sediment>(&task),
        StoreKind::RocksDb => perform::<RocksDb>(&task),
    }?;
    let mut line = serde_json::to_string(&answer).context(|| "cannot write the answer")?;
    line.push('\n');
    std::io::stdout().write_all(line.as_bytes()).context(|| "cannot write the answer")
}

fn end_with_the_parent() {
    let mut rest = Vec::new();
    // An error of the pipe means the same as its end: nobody waits for an answer.
    drop(std::io::stdin().lock().read_to_end(&mut rest));
    std::process::exit(1);
}

fn perform<S: Store>(task: &Task) -> Result<Answer> {
    match &task.action {
        Action::Load => cell::load::<S>(&task.cell).map(Answer::Measured),
        Action::Run(workload) => cell::run::<S>(&task.cell, *workload).map(Answer::Measured),
        Action::Verify(spec) => verify::pass::<S>(&task.cell, spec).map(Answer::Verified),
    }
}

/// The parent's side: runs `task` in a new process and waits for its answer, or for Ctrl-C.
pub(super) fn run(task: &Task) -> Result<Answer> {
    let program = std::env::current_exe().context(|| "cannot find this program")?;
    let mut child = Command::new(program)
        .arg(cli::CHILD)
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .context(|| "cannot start a process for the cell")?;
    let line = serde_json::to_string(task).context(|| "cannot write the task")? + "\n";
    let mut input = child.stdin.take();
    if let Some(pipe) = &mut input {
        // When the child has ended already, its exit tells why.
        drop(pipe.write_all(line.as_bytes()));
    }
    let output = drain(child.stdout.take());
    let errors = drain(child.stderr.take());
    let status = wait(&mut child)?;
    // The pipe stays open for as long as the child lives.
    drop(input);
    let text = |reader: thread::JoinHandle<String>| reader.join().unwrap_or_default();
    let (output, errors) = (text(output), text(errors));
    if status.success() {
        return serde_json::from_str(&output).context(|| "cannot understand a cell's answer");
    }
    let reason = errors.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("no message");
    let reason = reason.strip_prefix("error: ").unwrap_or(reason);
    Err(Failure::new(format_args!("{reason} ({}, {status})", task.store.name())))
}

fn drain(pipe: Option<impl Read + Send + 'static>) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            // What was read before an error of the pipe is what there is.
            drop(pipe.read_to_end(&mut bytes));
        }
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

fn wait(child: &mut Child) -> Result<std::process::ExitStatus> {
    loop {
        if let Some(status) = child.try_wait().context(|| "cannot wait for a cell")? {
            return Ok(status);
        }
        if signal::interrupted() {
            // It may have ended in this moment; then there is nothing to kill.
            drop(child.kill());
            child.wait().context(|| "cannot wait for a cell")?;
            return Err(Failure::Interrupted);
        }
        thread::sleep(POLL);
    }
}
