//! Servers of others that tests talk to: the ones on PATH, or those that `make test` has unpacked below target.

use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;

/// A program of a Debian package; a test never passes by skipping.
pub(crate) fn of_debian(program: &str, package: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let brought = format!("{}/target/{package}/usr/bin", env!("CARGO_MANIFEST_DIR"));
    let folders = std::env::split_paths(&path).chain([PathBuf::from(brought)]);
    let found = folders.map(|folder| folder.join(program)).find(|file| file.exists());
    found.unwrap_or_else(|| panic!("no {program} on PATH: run `make {program}`, which brings Debian's"))
}

/// A port of loopback that nobody has right now.
pub(crate) fn free_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

/// The same, where only its number is asked for.
pub(crate) fn free_port() -> u16 {
    free_address().port()
}
