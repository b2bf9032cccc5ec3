//! The program from outside: bad input, whole runs, Ctrl-C.

mod cli;
mod common;
mod interrupt;
mod whole_run;
