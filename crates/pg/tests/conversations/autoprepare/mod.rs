//! One module for each file of `src/autoprepare`.

mod repeat;
mod send;
mod unnamed;
mod verify;
