//! The program from outside: bad input, whole runs, their pages, Ctrl-C.

mod cli;
mod common;
mod compare;
mod interrupt;
mod jobs;
mod micro;
mod render;
mod report;
mod stores;
mod verification;
mod whole_run;
mod ycsb;
