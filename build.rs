//! Tells the linker how the program is laid out.

use std::env;

/// As Go links Kubernetes' own programs: at a fixed address. A program that can lie anywhere has a table of
/// addresses to be corrected at each start, which then stay in memory, two megabytes with the table.
fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let target = |part: &str| env::var(format!("CARGO_CFG_TARGET_{part}")).unwrap_or_default();
    if target("OS") == "linux" && target("ENV") == "gnu" {
        println!("cargo:rustc-link-arg-bin=kubarium=-no-pie");
    }
}
