//! One module for each file of `src/autoprepare`.

mod send;
mod unnamed;
