//! Traces: `snug record` writes one, `snug replay` and `snug tune` run it. The format and what it promises stand in
//! docs/lab-traces.md.
//!
//!     region   the memory that a recorded program shares with the tool
//!     record   empties it into a file while the program runs
//!     format   the file: blocks with checksums
//!     reader   finds the blocks of a file, and says what is wrong with it
//!     events   what stands in a block; the events of all threads in one order
//!     program  the events as operations for snugreplay    operations  the file that it runs
//!     summary  what a trace holds, for people and as JSON
//!     replay   the programs on several allocators      footprint, footprint_report  only their memory, exactly

pub mod events;
pub mod footprint;
mod footprint_report;
pub mod format;
pub mod operations;
pub mod program;
pub mod reader;
pub mod record;
pub mod region;
pub mod replay;
pub mod summary;
