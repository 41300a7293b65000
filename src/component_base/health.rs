//! What is answered at `healthz`, `livez` and `readyz`, a line for each thing that was looked at
//! (`server/healthz`).

/// The paths at which a component is asked how it is.
pub const HEALTH_PATHS: [&str; 3] = ["healthz", "livez", "readyz"];

/// Whether one of them is well. Why it is not stands in the log, and is told to nobody who asks.
pub fn check_line(check: &str, is_well: bool) -> String {
    if is_well { format!("[+]{check} ok\n") } else { format!("[-]{check} failed: reason withheld\n") }
}

/// These lines, and whether all was well of what a path is about.
pub fn told(lines: &str, path: &str, is_well: bool) -> String {
    let verdict = if is_well { "passed" } else { "failed" };
    format!("{lines}{path} check {verdict}\n")
}
