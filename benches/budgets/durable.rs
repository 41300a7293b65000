//! Writes to a data dir: with an fdatasync before each answer, as etcd does it, and without.

use std::io::{Seek, Write};
use std::path::Path;
use std::time::Instant;

use http::Method;

use crate::requests::{CONNECTIONS, PATH, expect, side_by_side};
use crate::server::{Server, config_map, median, milliseconds, namespace, percentile, runtime};
use crate::support::wire::{Target, Wire};
use crate::table::Row;

const CREATES: usize = 4_000;
const SEQUENTIAL: usize = 200;
const SYNCS: usize = 200;

/// Both, beside what etcd asks of a disk.
pub(crate) fn measure() -> Vec<Row> {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let mut syncs = syncs(&folder.path().join("file"));
    let (mut synced, synced_seconds) = creates(&folder.path().join("synced"), &[]);
    let (mut unsynced, unsynced_seconds) = creates(&folder.path().join("unsynced"), &["--unsafe-no-fsync"]);
    let a_second = |seconds: f64| CREATES as f64 / seconds;
    let ratio = synced_seconds / unsynced_seconds;
    vec![
        Row::new("fdatasync of 4 KB on this disk, p50", median(&mut syncs), "ms"),
        Row::new("the same, p99 (the real one: what etcd asks of a disk)", percentile(&mut syncs, 99), "ms")
            .real("<10"),
        Row::new("data dir, one TLS connection: create, p50", median(&mut synced), "ms"),
        Row::new("the same with --unsafe-no-fsync", median(&mut unsynced), "ms"),
        Row::new("data dir, 32 TLS connections creating, a second", a_second(synced_seconds), "")
            .real("3000"),
        Row::new("the same with --unsafe-no-fsync", a_second(unsynced_seconds), ""),
        Row::new("time of the former over that of the latter", ratio, "").budget(2.0),
    ]
}

/// Milliseconds of each create of one connection, and the seconds that many take side by side.
fn creates(data_dir: &Path, more: &[&str]) -> (Vec<f64>, f64) {
    let server = Server::start_with(1, &[&["--data-dir", data_dir.to_str().unwrap()], more].concat());
    let runtime = runtime();
    let taken = runtime.block_on(one_after_the_other(&server.target));
    let start = Instant::now();
    runtime
        .block_on(side_by_side(&server.target, &|wire, first| Box::pin(create_each(wire, first))))
        .unwrap();
    (taken, start.elapsed().as_secs_f64())
}

async fn one_after_the_other(target: &Target) -> Vec<f64> {
    let mut wire = target.http1().await.unwrap();
    namespace(&mut wire, "bench").await;
    let mut taken = Vec::with_capacity(SEQUENTIAL);
    for number in 0..SEQUENTIAL {
        let start = Instant::now();
        expect(201, wire.send(Method::POST, PATH, &config_map(&format!("s{number}"))).await.unwrap());
        taken.push(milliseconds(start.elapsed()));
    }
    taken
}

async fn create_each(mut wire: Wire, first: usize) {
    for number in (first..CREATES).step_by(CONNECTIONS) {
        expect(201, wire.send(Method::POST, PATH, &config_map(&format!("c{number}"))).await.unwrap());
    }
}

/// What the disk needs for each of as many.
fn syncs(path: &Path) -> Vec<f64> {
    let mut file = std::fs::File::create(path).unwrap();
    let mut sync = |number: usize| {
        file.seek(std::io::SeekFrom::Start(4096 * number as u64)).unwrap();
        file.write_all(&[7; 4096]).unwrap();
        let start = Instant::now();
        file.sync_data().unwrap();
        milliseconds(start.elapsed())
    };
    (0..SYNCS).map(&mut sync).collect()
}
