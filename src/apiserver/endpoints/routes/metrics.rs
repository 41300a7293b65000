//! `/metrics`: what the server counts, and what it costs, in Prometheus' text format.

use std::fmt::Write;
use std::fs;

use http::HeaderValue;
use http::header::CONTENT_TYPE;

use crate::endpoints::Endpoints;
use crate::metrics::heading;
use apimachinery::wire::{ApiResponse, text_response};

/// Linux' `USER_HZ`: the unit of times in `/proc`.
const TICKS_PER_SECOND: f64 = 100.0;
const PAGE_BYTES: u64 = 4096;

/// The whole text.
pub(crate) async fn respond(server: &Endpoints) -> ApiResponse {
    let mut out = String::new();
    server.metrics.render(&mut out);
    server.flow_control.render(&mut out);
    storage_objects(server, &mut out).await;
    process(&mut out);
    let mut response = text_response(http::StatusCode::OK, out);
    let plain = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, plain);
    response
}

async fn storage_objects(server: &Endpoints, out: &mut String) {
    let name = "apiserver_storage_objects";
    heading(out, name, "gauge", "Number of stored objects at the time of last check split by kind.");
    for kind in server.scheme.storage_kinds() {
        // Who counts them asks for them. A store that fails here has nothing to count either.
        drop(server.registry.bootstrap(&kind).await);
        if let Ok(count) = server.registry.count(&kind).await {
            let resource = kind.resource();
            let _ = writeln!(out, "{name}{{resource=\"{resource}\"}} {count}");
        }
    }
}

/// Of the whole process, which may hold more than one cluster; nothing where there is no `/proc`.
fn process(out: &mut String) {
    let Ok(stat) = fs::read_to_string("/proc/self/stat") else { return };
    // The second field is a name in brackets, which may hold blanks.
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let field = |at: usize| fields.get(at).and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
    let gauge = "gauge";
    let cpu_seconds = (field(11) + field(12)) as f64 / TICKS_PER_SECOND;
    let name = "process_cpu_seconds_total";
    heading(out, name, "counter", "Total user and system CPU time spent in seconds.");
    let _ = writeln!(out, "{name} {cpu_seconds}");
    let name = "process_resident_memory_bytes";
    heading(out, name, gauge, "Resident memory size in bytes.");
    let _ = writeln!(out, "{name} {}", field(21) * PAGE_BYTES);
    let name = "process_virtual_memory_bytes";
    heading(out, name, gauge, "Virtual memory size in bytes.");
    let _ = writeln!(out, "{name} {}", field(20));
    let name = "process_open_fds";
    heading(out, name, gauge, "Number of open file descriptors.");
    let _ = writeln!(out, "{name} {}", fs::read_dir("/proc/self/fd").map_or(0, Iterator::count));
}
