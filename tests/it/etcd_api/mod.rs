//! etcd's API as clients of etcd use it, over sockets: etcdctl, and a client of a few lines.

mod alone;
mod etcdctl;
mod histories;
mod killed;
mod secured;
mod snapshots;

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use bytes::Bytes;
use clock::Clock;
use etcd_server::ProtoMessage;
use etcd_server::messages::*;
use network::grpc::{GrpcCall, GrpcStatus, call};
use tokio::net::TcpStream;

use crate::support::programs::of_debian;
use crate::support::{command, texts};

/// `kubarium etcd` on a data dir; killed when dropped.
struct EtcdProcess {
    child: Child,
    address: SocketAddr,
}

impl EtcdProcess {
    fn start(folder: &Path, flags: &[&str]) -> EtcdProcess {
        let mut etcd = command(folder);
        etcd.args(["etcd", "--data-dir"]).arg(folder.join("data")).args(flags);
        let mut child = etcd.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let mut said = String::new();
        let mut lines = BufReader::new(child.stderr.take().unwrap());
        let address = loop {
            let start = said.len();
            let read = lines.read_line(&mut said).unwrap();
            assert!(read > 0, "it ended: {said}");
            if let Some(address) = said[start..].trim().strip_prefix("serving client traffic on ") {
                break address.parse().unwrap();
            }
        };
        EtcdProcess { child, address }
    }

    /// As a power cut would, but for the disk.
    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for EtcdProcess {
    fn drop(&mut self) {
        if self.child.try_wait().unwrap().is_none() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// A program that goes with its test, however that ends.
struct KilledAtEnd(Child);

impl Drop for KilledAtEnd {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// etcdctl on an endpoint.
struct Etcdctl {
    flags: Vec<String>,
}

impl Etcdctl {
    fn new(endpoint: impl std::fmt::Display) -> Etcdctl {
        Etcdctl { flags: vec!["--endpoints".to_owned(), endpoint.to_string()] }
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut etcdctl = Command::new(of_debian("etcdctl", "etcd-client"));
        etcdctl.env("ETCDCTL_API", "3").args(&self.flags).args(words);
        etcdctl
    }

    fn run(&self, words: &[&str]) -> Output {
        self.command(words).stdin(Stdio::null()).output().unwrap()
    }

    /// What a command that must succeed prints.
    fn ok(&self, words: &[&str]) -> String {
        let output = self.run(words);
        let (out, err) = texts(&output);
        assert!(output.status.success(), "etcdctl {words:?}\n{out}{err}");
        out
    }

    /// What a command that must fail says.
    fn fails(&self, words: &[&str]) -> String {
        let output = self.run(words);
        let (out, err) = texts(&output);
        assert!(!output.status.success(), "etcdctl {words:?} should have failed:\n{out}{err}");
        err
    }
}

/// One call over a connection of its own; None where it breaks off.
async fn ask<A: ProtoMessage>(
    address: SocketAddr,
    path: &str,
    request: &impl ProtoMessage,
) -> Option<Result<A, GrpcStatus>> {
    let stream = TcpStream::connect(address).await.ok()?;
    let message = Bytes::from(request.encode());
    let authority = &address.to_string();
    let path = &format!("/etcdserverpb.{path}");
    let asked = GrpcCall { authority, path, agent: "test", message };
    let answered = call(&Clock::real(), stream, asked).await.ok()?;
    Some(answered.map(|message| A::decode(message).unwrap()))
}

fn bytes(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

fn write(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}
