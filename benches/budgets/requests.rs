//! Single requests: what they cost the server, how long a client waits for them, and how long a watcher for the news.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use http::Method;
use serde_json::json;
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

use crate::server::{Process, Server, config_map, median, milliseconds, namespace, percentile, runtime};
use crate::support::wire::{Answer, Error, Target, Wire};
use crate::table::Row;

pub(crate) const CONNECTIONS: usize = 32;
const CREATES: usize = 20_000;
const SEQUENTIAL: usize = 2_000;
const WATCHED: usize = 500;
pub(crate) const PATH: &str = "/api/v1/namespaces/bench/configmaps";

/// 32 connections that create ConfigMaps of 1 KB as fast as they can.
pub(crate) fn creates() -> Vec<Row> {
    let server = Server::start(1);
    runtime().block_on(async { namespace(&mut server.target.http1().await.unwrap(), "bench").await });
    let Costs { create, get, update } = costs(&server);
    vec![
        Row::new("32 TLS connections creating ConfigMaps of 1 KB, CPU each", create.0, "ms")
            .budget(0.1)
            .real("0.55"),
        Row::new("the same, a second", create.1, "").real("3000"),
        Row::new("32 TLS connections getting them, CPU each", get.0, "ms").real("0.24"),
        Row::new("the same, a second", get.1, "").real("7200"),
        Row::new("32 TLS connections updating them, CPU each", update.0, "ms").real("0.65"),
        Row::new("the same, a second", update.1, "").real("2700"),
    ]
}

/// Of each verb: milliseconds of processor time each, and how many a second.
pub(crate) struct Costs {
    pub create: (f64, f64),
    pub get: (f64, f64),
    pub update: (f64, f64),
}

/// What many requests at once cost a server.
pub(crate) fn costs(process: &Process) -> Costs {
    let runtime = runtime();
    let measured = |work: &dyn Fn(Wire, usize) -> Work| {
        let before = process.cpu();
        let start = Instant::now();
        runtime.block_on(side_by_side(&process.target, work)).unwrap();
        let per_second = CREATES as f64 / start.elapsed().as_secs_f64();
        (milliseconds(process.wait_until_quiet() - before) / CREATES as f64, per_second)
    };
    Costs {
        create: measured(&|wire, first| Box::pin(create_each(wire, first))),
        get: measured(&|wire, first| Box::pin(get_each(wire, first))),
        update: measured(&|wire, first| Box::pin(update_each(wire, first))),
    }
}

/// What one connection does.
pub(crate) type Work = std::pin::Pin<Box<dyn Future<Output = ()> + Send>>;

pub(crate) async fn side_by_side(target: &Target, work: &dyn Fn(Wire, usize) -> Work) -> Result<(), Error> {
    let mut connections = JoinSet::new();
    for first in 0..CONNECTIONS {
        connections.spawn(work(target.http1().await?, first));
    }
    connections.join_all().await;
    Ok(())
}

async fn create_each(mut wire: Wire, first: usize) {
    for number in (first..CREATES).step_by(CONNECTIONS) {
        expect(201, wire.send(Method::POST, PATH, &config_map(&format!("c{number}"))).await.unwrap());
    }
}

async fn get_each(mut wire: Wire, first: usize) {
    for number in (first..CREATES).step_by(CONNECTIONS) {
        expect(200, wire.get(&format!("{PATH}/c{number}")).await.unwrap());
    }
}

async fn update_each(mut wire: Wire, first: usize) {
    for number in (first..CREATES).step_by(CONNECTIONS) {
        let name = format!("c{number}");
        let mut changed = config_map(&name);
        changed["data"]["changed"] = "yes".into();
        let path = format!("{PATH}/{name}");
        expect(200, wire.send(Method::PUT, &path, &changed).await.unwrap());
    }
}

/// One connection, a request after the other.
pub(crate) fn latency() -> Vec<Row> {
    let server = Server::start(1);
    let runtime = runtime();
    runtime.block_on(async { namespace(&mut server.target.http1().await.unwrap(), "bench").await });
    let real = ["1", "0.5", "1", "1.1", "1"];
    let latencies = runtime.block_on(latencies(&server.target)).unwrap();
    let row = |((verb, p50), real)| {
        Row::new(format!("one TLS connection, ConfigMap of 1 KB: {verb}, p50"), p50, "ms").real(real)
    };
    latencies.into_iter().zip(real).map(row).collect()
}

/// Verbs, and the milliseconds that half of the requests take at most, one after the other.
pub(crate) async fn latencies(target: &Target) -> Result<Vec<(&'static str, f64)>, Error> {
    let mut wire = target.http1().await?;
    let verbs: [(&str, Method); 5] = [
        ("create", Method::POST),
        ("get", Method::GET),
        ("update", Method::PUT),
        ("merge patch", Method::PATCH),
        ("delete", Method::DELETE),
    ];
    let mut latencies = vec![];
    for (verb, method) in verbs {
        let mut taken = Vec::with_capacity(SEQUENTIAL);
        for number in 0..SEQUENTIAL {
            let name = format!("s{number}");
            let start = Instant::now();
            expect(if verb == "create" { 201 } else { 200 }, one(&mut wire, &method, &name).await?);
            taken.push(milliseconds(start.elapsed()));
        }
        latencies.push((verb, median(&mut taken)));
    }
    Ok(latencies)
}

async fn one(wire: &mut Wire, method: &Method, name: &str) -> Result<Answer, Error> {
    let path = format!("{PATH}/{name}");
    match *method {
        Method::POST => wire.send(Method::POST, PATH, &config_map(name)).await,
        Method::PUT => wire.send(Method::PUT, &path, &config_map(name)).await,
        Method::PATCH => {
            let patch = json!({"metadata": {"labels": {"app": "patched"}}}).to_string();
            wire.ask(Method::PATCH, &path, Some(("application/merge-patch+json", patch.into()))).await
        }
        _ => wire.ask(method.clone(), &path, None).await,
    }
}

/// From sending a create until the event is there.
pub(crate) fn watch() -> Vec<Row> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let server = Server::start(1);
    runtime.block_on(async { namespace(&mut server.target.http1().await.unwrap(), "bench").await });
    let mut rows = Vec::new();
    for (watchers, p50, p99) in [(1, "1.1", "4.2"), (100, "2.2", "4.2")] {
        let (mut taken, cost) = event_cost(&runtime, &server.process, watchers);
        let what = format!("watch, create sent to event received by all of {watchers}");
        rows.push(Row::new(format!("{what}, p50"), percentile(&mut taken, 50), "ms").real(p50));
        rows.push(Row::new(format!("{what}, p99"), percentile(&mut taken, 99), "ms").real(p99));
        rows.push(Row::new(format!("an event that one of {watchers} is told, server CPU"), cost, "us"));
    }
    rows
}

/// How long each create took until all watchers had it, and the microseconds of processor time for each event that
/// one of them was told, the creates among them.
pub(crate) fn event_cost(runtime: &Runtime, process: &Process, watchers: usize) -> (Vec<f64>, f64) {
    process.wait_until_quiet();
    let before = process.cpu();
    let taken = runtime.block_on(watched(&process.target, watchers)).unwrap();
    let spent = process.wait_until_quiet() - before;
    (taken, milliseconds(spent) * 1e3 / (watchers * WATCHED) as f64)
}

/// For each create, how long until the last watcher has it.
async fn watched(target: &Target, watchers: usize) -> Result<Vec<f64>, Error> {
    let mut wire = target.http1().await?;
    let mut reading = JoinSet::new();
    for _ in 0..watchers {
        let path = format!("{PATH}?watch=true&resourceVersion={}", newest(&mut wire).await?);
        let mut events = target.http1().await?.watch(&path).await?;
        reading.spawn(async move {
            let mut seen = Vec::with_capacity(WATCHED);
            while seen.len() < WATCHED {
                let line = events.next_line().await.unwrap().expect("the watch goes on");
                let received = Instant::now();
                let event: serde_json::Value = serde_json::from_slice(&line).unwrap();
                seen.push((event["object"]["metadata"]["name"].as_str().unwrap().to_owned(), received));
            }
            seen
        });
    }
    let mut sent = HashMap::new();
    for number in 0..WATCHED {
        let name = format!("w{watchers}-{number}");
        let body = config_map(&name);
        sent.insert(name, (Instant::now(), Duration::ZERO));
        expect(201, wire.send(Method::POST, PATH, &body).await?);
        // Each by itself: what is measured is the way of one event, not a queue.
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    for (name, received) in reading.join_all().await.into_iter().flatten() {
        let (sent, longest) = sent.get_mut(&name).expect("nobody else creates anything here");
        *longest = received.duration_since(*sent).max(*longest);
    }
    Ok(sent.into_values().map(|(_, longest)| milliseconds(longest)).collect())
}

async fn newest(wire: &mut Wire) -> Result<String, Error> {
    let list = wire.get(&format!("{PATH}?limit=1")).await?.json();
    Ok(list["metadata"]["resourceVersion"].as_str().unwrap_or_default().to_owned())
}

pub(crate) fn expect(code: u16, answer: Answer) {
    assert_eq!(answer.code, code, "{}", answer.json());
}
