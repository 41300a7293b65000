//! What the allocators have given away and refused (`ipallocator/metrics.go`, `portallocator/metrics.go`). A
//! dry run is not counted.

use std::time::Duration;

use apis::networking::ip_range::IpRange;
use component_base::metrics::{DEFAULT_BUCKETS, Family};

/// Who has chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AllocationScope {
    /// Somebody asked for this one.
    Static,
    /// Any free one.
    Dynamic,
}

/// Something that was given.
#[derive(Clone, Copy, Debug)]
pub(super) enum Given {
    /// An address of a range, found in so long.
    Ip(IpRange, AllocationScope, Duration),
    /// A node port.
    Port(AllocationScope),
}

/// The counters of one apiserver. Services are written so seldom that the name of a range is written anew
/// for each address.
pub(super) struct AllocatorMetrics {
    ips: Family<2>,
    ip_errors: Family<2>,
    ip_durations: Family<1>,
    ports: Family<1>,
    port_errors: Family<1>,
}

impl AllocationScope {
    fn name(self) -> &'static str {
        match self {
            AllocationScope::Static => "static",
            AllocationScope::Dynamic => "dynamic",
        }
    }
}

impl Default for AllocatorMetrics {
    fn default() -> AllocatorMetrics {
        AllocatorMetrics {
            ips: Family::counter(
                "kube_apiserver_clusterip_allocator_allocation_total",
                "[ALPHA] Number of Cluster IPs allocations",
                ["cidr", "scope"],
            ),
            ip_errors: Family::counter(
                "kube_apiserver_clusterip_allocator_allocation_errors_total",
                "[ALPHA] Number of errors trying to allocate Cluster IPs",
                ["cidr", "scope"],
            ),
            ip_durations: Family::histogram(
                "kube_apiserver_clusterip_allocator_allocation_duration_seconds",
                "[ALPHA] Duration in seconds to allocate a Cluster IP by ServiceCIDR",
                ["cidr"],
                &DEFAULT_BUCKETS,
            ),
            ports: Family::counter(
                "kube_apiserver_nodeport_allocator_allocation_total",
                "[ALPHA] Number of NodePort allocations",
                ["scope"],
            ),
            port_errors: Family::counter(
                "kube_apiserver_nodeport_allocator_allocation_errors_total",
                "[ALPHA] Number of errors trying to allocate NodePort",
                ["scope"],
            ),
        }
    }
}

impl AllocatorMetrics {
    /// Something was given away.
    pub(super) fn gave(&self, given: Given) {
        match given {
            Given::Ip(range, scope, took) => {
                let cidr = cidr(range);
                self.ips.count([&cidr, scope.name()]);
                self.ip_durations.observe([&cidr], took);
            }
            Given::Port(scope) => self.ports.count([scope.name()]),
        }
    }

    /// An address of a range was not to be had.
    pub(super) fn refused_ip(&self, range: IpRange, scope: AllocationScope) {
        self.ip_errors.count([&cidr(range), scope.name()]);
    }

    /// A node port was not to be had.
    pub(super) fn refused_port(&self, scope: AllocationScope) {
        self.port_errors.count([scope.name()]);
    }

    /// In Prometheus' text format.
    pub(super) fn render(&self, out: &mut String) {
        self.ips.render(out);
        self.ip_errors.render(out);
        self.ip_durations.render(out);
        self.ports.render(out);
        self.port_errors.render(out);
    }
}

/// As `10.96.0.0/16`, by its own address.
pub(super) fn cidr(range: IpRange) -> String {
    IpRange { network: range.address(0), ..range }.to_string()
}
