//! The machine on which a configuration is read, as far as a configuration refers to it.
//!
//! This crate reads no files and asks no kernel. The program gives it a [`Machine`]; tests and the
//! simulator read configurations on [`NoMachine`], which has neither files nor addresses.

use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

/// An address with the mask of its network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    /// The address.
    pub address: IpAddr,
    /// The mask, of the same family.
    pub mask: IpAddr,
}

/// A machine: its files and its network interfaces.
pub trait Machine {
    /// Reads a file of text.
    ///
    /// # Errors
    /// If there is no such file, if it cannot be read, or if it is not UTF-8.
    fn read(&self, path: &Path) -> io::Result<String>;

    /// Returns the paths of the files in a directory, in any order.
    ///
    /// # Errors
    /// If there is no such directory, or if it cannot be read.
    fn files_in(&self, directory: &Path) -> io::Result<Vec<PathBuf>>;

    /// Returns the addresses of the network interfaces.
    ///
    /// # Errors
    /// If the kernel does not tell them.
    fn networks(&self) -> io::Result<Vec<Network>>;

    /// Returns the working directory, to which the paths of a `pgbouncer.ini` are relative.
    ///
    /// # Errors
    /// If there is none, or if it cannot be read.
    fn directory(&self) -> io::Result<PathBuf> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Returns the addresses of a name.
    ///
    /// # Errors
    /// If it has none, or if nobody can be asked.
    fn look_up(&self, _name: &str) -> io::Result<Vec<IpAddr>> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// A machine without files and network interfaces.
#[derive(Clone, Copy, Debug)]
pub struct NoMachine;

impl Machine for NoMachine {
    fn read(&self, _: &Path) -> io::Result<String> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn files_in(&self, _: &Path) -> io::Result<Vec<PathBuf>> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn networks(&self) -> io::Result<Vec<Network>> {
        Err(io::ErrorKind::Unsupported.into())
    }
}
