//! `make bench`: measures every budget and prints one table. A missed budget is said in the table, not by the exit
//! code: how fast a machine is, is no test.
//!
//! What is measured is the program that users start, over TLS, as one of its clients sees it; processor time and
//! memory are those of its process, as the kernel counts them. Each scenario has a process of its own.

mod autoscalers;
mod crowd;
mod durable;
mod faults;
mod forks;
mod forward;
mod kit;
mod network;
mod pods;
mod requests;
mod server;
mod shared;
mod start;
mod table;

#[allow(dead_code, reason = "the tests use the rest")]
#[path = "../../tests/it/support/mod.rs"]
mod support;

use table::{Row, Table};

/// What is measured in this process has the allocator that the program has.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.first().is_some_and(|argument| argument == start::IN_PROCESS) {
        return start::in_process();
    }
    match arguments.first().map(String::as_str) {
        Some(forks::IN_PROCESS) => return forks::in_process(),
        Some(kit::IN_PROCESS) => return kit::in_process(),
        Some(kit::MANY) => return kit::many(),
        _ => {}
    }
    let wanted: Vec<&String> = arguments.iter().filter(|argument| !argument.starts_with('-')).collect();
    let mut table = Table::default();
    let is_named = |name: &str| wanted.iter().any(|part| name.contains(part.as_str()));
    let usual = SCENARIOS.iter().filter(|(name, _)| wanted.is_empty() || is_named(name));
    for (name, measure) in usual.chain(LONG.iter().filter(|(name, _)| is_named(name))) {
        eprintln!("measuring: {name}");
        table.rows.extend(measure());
    }
    table.print();
}

/// A scenario's name (an argument picks those that contain it), and what measures it.
type Scenario = (&'static str, fn() -> Vec<Row>);

const SCENARIOS: &[Scenario] = &[
    ("start", start::measure),
    ("deployment", pods::deployment),
    ("stored", pods::stored),
    ("running", pods::running),
    ("creates", requests::creates),
    ("latency", requests::latency),
    ("watch", requests::watch),
    ("durable", durable::measure),
    ("autoscalers", autoscalers::measure),
    ("faults", faults::measure),
    ("forks", forks::measure),
    ("kit", kit::measure),
    ("network", network::measure),
    ("forward", forward::measure),
    ("shared", shared::measure),
];

/// Those that take minutes, and are measured when they are named: `cargo bench --bench budgets crowd`.
const LONG: &[Scenario] = &[
    ("placed", crowd::placed),
    ("idle pods", crowd::idle_pods),
    ("idle nodes", crowd::idle_nodes),
    ("crowd", crowd::crowd),
];
