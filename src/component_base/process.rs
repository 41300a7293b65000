//! What a process costs, as Prometheus' clients in every language say it (`process_*`).

use std::fs;

use crate::metrics::{plain_counter, plain_gauge};

/// Linux' `USER_HZ`: the unit of times in `/proc`.
const TICKS_PER_SECOND: f64 = 100.0;
const PAGE_BYTES: u64 = 4096;

/// Of the whole process, which may hold more than one cluster; nothing where there is no `/proc`.
pub fn render(out: &mut String) {
    let Ok(stat) = fs::read_to_string("/proc/self/stat") else { return };
    // The second field is a name in brackets, which may hold blanks.
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let field = |at: usize| fields.get(at).and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
    let cpu_seconds = (field(11) + field(12)) as f64 / TICKS_PER_SECOND;
    let help = "Total user and system CPU time spent in seconds.";
    plain_counter(out, ("process_cpu_seconds_total", help), cpu_seconds);
    let memory = field(21) * PAGE_BYTES;
    plain_gauge(out, ("process_resident_memory_bytes", "Resident memory size in bytes."), memory);
    plain_gauge(out, ("process_virtual_memory_bytes", "Virtual memory size in bytes."), field(20));
    let started = booted() as f64 + field(19) as f64 / TICKS_PER_SECOND;
    let help = "Start time of the process since unix epoch in seconds.";
    plain_gauge(out, ("process_start_time_seconds", help), started);
    let files = fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
    plain_gauge(out, ("process_open_fds", "Number of open file descriptors."), files);
    plain_gauge(out, ("process_max_fds", "Maximum number of open file descriptors."), max_files());
}

/// When the machine was started, in seconds since 1970.
fn booted() -> u64 {
    let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
    let line = stat.lines().find_map(|line| line.strip_prefix("btime "));
    line.and_then(|seconds| seconds.trim().parse().ok()).unwrap_or(0)
}

fn max_files() -> u64 {
    let limits = fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"));
    let soft = line.and_then(|limits| limits.split_whitespace().next());
    soft.and_then(|files| files.parse().ok()).unwrap_or(0)
}
