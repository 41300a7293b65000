//! A `kubectl port-forward` that runs beside a test.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStdout, Command, Stdio};

use super::PATIENCE;

/// A `kubectl port-forward`. Dropped, it ends.
pub(crate) struct Forward {
    child: Child,
    address: String,
    /// It says something of each connection, and ends where nobody reads that.
    _out: BufReader<ChildStdout>,
}

impl Forward {
    /// Started, and ready for connections.
    pub(crate) fn start(mut port_forward: Command) -> Forward {
        let mut child = port_forward.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        out.read_line(&mut line).unwrap();
        // "Forwarding from 127.0.0.1:40123 -> 80"
        let address = line.split(' ').nth(2).unwrap_or_else(|| panic!("it said {line:?}")).to_owned();
        Forward { child, address, _out: out }
    }

    /// What is answered to a `GET`; empty where the connection ends before that.
    pub(crate) fn get(&self, path: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: pod\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        // A connection that is reset has said nothing more.
        let _ = stream.read_to_string(&mut answer);
        answer
    }
}

impl Drop for Forward {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
