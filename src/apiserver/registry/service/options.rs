//! The flags about Services (`options.Extra`).

use clap::Args;

use apis::networking::port_range::PortRange;
use apis::networking::service_ranges::ServiceRanges;
use component_base::flags::defaults;

/// Where Services take their addresses and ports from.
#[derive(Args, Clone, Copy, Debug)]
#[command(next_help_heading = "What runs")]
pub struct ServiceOptions {
    /// The range that Services take their addresses from, or one of each IP family with a comma between them;
    /// the Service kubernetes has the first address. A data dir keeps the range that it was made with.
    #[arg(long, default_value = "10.96.0.0/16", value_name = "CIDR", value_parser = service_ranges)]
    pub service_cluster_ip_range: ServiceRanges,
    /// The ports that Services of type NodePort and LoadBalancer take on nodes, both ends included.
    #[arg(long, default_value = "30000-32767", value_name = "FIRST-LAST", value_parser = port_range)]
    pub service_node_port_range: PortRange,
}

impl Default for ServiceOptions {
    fn default() -> ServiceOptions {
        defaults()
    }
}

fn service_ranges(text: &str) -> Result<ServiceRanges, String> {
    let example = "must be one range, as 10.96.0.0/16, or one of each IP family with a comma";
    ServiceRanges::parse(text).map_err(|why| format!("{why}; {example}"))
}

fn port_range(text: &str) -> Result<PortRange, String> {
    let example = "must be the first and the last port, as 30000-32767";
    PortRange::parse(text).map_err(|why| format!("{why}; {example}"))
}
