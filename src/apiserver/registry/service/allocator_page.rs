//! What the allocators have given away, and what there is left to give, in Prometheus' text format.

use super::allocator_metrics::cidr;
use super::allocators::Allocators;
use apis::networking::ip_range::IpRange;
use component_base::metrics::{Render, gauge, plain_gauge};

/// How many addresses of a range can be given to somebody (`hostsPerNetwork`): all but its own, and of IPv4
/// the last.
fn givable(range: &IpRange) -> u128 {
    range.size().saturating_sub(1 + u128::from(range.network.is_ipv4())).min(i64::MAX as u128)
}

impl Render for Allocators {
    /// How much is taken is told once the Services have been read, which the first that is written waits
    /// for. Of an etcd that several servers share it is not told: none of them keeps it in mind.
    fn render(&self, out: &mut String) {
        if self.loaded().initialized() {
            self.render_taken(out);
        }
        self.metrics().render(out);
    }
}

impl Allocators {
    fn render_taken(&self, out: &mut String) {
        let ranges = self.ranges();
        let taken = self.taken_of(&ranges);
        let name = "kube_apiserver_clusterip_allocator_allocated_ips";
        let about = (name, "[ALPHA] Gauge measuring the number of allocated IPs for Services");
        let each = || ranges.iter().zip(&taken.0);
        gauge(out, about, ["cidr"], each().map(|(range, taken)| ([cidr(*range)], *taken)));
        let name = "kube_apiserver_clusterip_allocator_available_ips";
        let about = (name, "[ALPHA] Gauge measuring the number of available IPs for Services");
        let free = |(range, taken): (&IpRange, &usize)| {
            ([cidr(*range)], givable(range).saturating_sub(*taken as u128))
        };
        gauge(out, about, ["cidr"], each().map(free));
        let name = "kube_apiserver_nodeport_allocator_allocated_ports";
        plain_gauge(
            out,
            (name, "[ALPHA] Gauge measuring the number of allocated NodePorts for Services"),
            taken.1,
        );
        let name = "kube_apiserver_nodeport_allocator_available_ports";
        let free = self.node_ports().count().saturating_sub(taken.1);
        plain_gauge(
            out,
            (name, "[ALPHA] Gauge measuring the number of available NodePorts for Services"),
            free,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::super::allocators::ServiceAllocations;
    use super::super::options::ServiceOptions;
    use super::*;
    use apis::networking::port_range::PortRange;
    use apis::networking::service_ranges::ServiceRanges;
    use chrono::DateTime;
    use clock::Clock;
    use entropy::Entropy;

    fn allocators() -> Allocators {
        let allocators = Allocators::new(Clock::stepped(DateTime::UNIX_EPOCH), Entropy::seeded(1));
        allocators.configure(ServiceOptions {
            service_cluster_ip_range: ServiceRanges::parse("10.1.0.0/29,fd00:7::/64").unwrap(),
            service_node_port_range: PortRange::parse("7000-7001").unwrap(),
        });
        allocators
    }

    #[track_caller]
    fn shows(allocators: &Allocators, samples: &[&str]) {
        let mut page = String::new();
        allocators.render(&mut page);
        for sample in samples {
            let sample = format!("kube_apiserver_{sample}");
            assert!(page.lines().any(|line| line == sample), "{sample} is not in\n{page}");
        }
    }

    #[test]
    fn what_is_given_and_refused_is_counted_by_range_and_by_who_chose() {
        let allocators = allocators();
        let mut dry = allocators.begin(true);
        allocators.next_ip(&mut dry, true).unwrap();
        allocators.port(&mut dry, 80).unwrap_err();
        drop(dry);
        let mut lost = allocators.begin_among(ServiceAllocations::default());
        allocators.next_ip(&mut lost, true).unwrap();
        lost.lose();
        let mut page = String::new();
        allocators.render(&mut page);
        assert_eq!(page, "");
        let mut allocation = allocators.begin(false);
        allocators.ip(&mut allocation, "10.1.0.3".parse().unwrap()).unwrap();
        allocators.ip(&mut allocation, "10.1.0.3".parse().unwrap()).unwrap_err();
        allocators.ip(&mut allocation, "10.1.0.7".parse().unwrap()).unwrap_err();
        for _ in 0..5 {
            allocators.next_ip(&mut allocation, true).unwrap();
        }
        allocators.next_ip(&mut allocation, true).unwrap_err();
        allocators.next_ip(&mut allocation, false).unwrap();
        allocators.port(&mut allocation, 7001).unwrap();
        allocators.port(&mut allocation, 80).unwrap_err();
        allocators.next_port(&mut allocation).unwrap();
        allocators.next_port(&mut allocation).unwrap_err();
        allocation.commit();
        allocators.loaded().set(()).unwrap();
        shows(
            &allocators,
            &[
                "clusterip_allocator_allocation_total{cidr=\"10.1.0.0/29\",scope=\"static\"} 1",
                "clusterip_allocator_allocation_total{cidr=\"10.1.0.0/29\",scope=\"dynamic\"} 5",
                "clusterip_allocator_allocation_total{cidr=\"fd00:7::/64\",scope=\"dynamic\"} 1",
                "clusterip_allocator_allocation_errors_total{cidr=\"10.1.0.0/29\",scope=\"static\"} 2",
                "clusterip_allocator_allocation_errors_total{cidr=\"10.1.0.0/29\",scope=\"dynamic\"} 1",
                "clusterip_allocator_allocation_duration_seconds_count{cidr=\"10.1.0.0/29\"} 6",
                "clusterip_allocator_allocated_ips{cidr=\"10.1.0.0/29\"} 6",
                "clusterip_allocator_available_ips{cidr=\"10.1.0.0/29\"} 0",
                "clusterip_allocator_allocated_ips{cidr=\"fd00:7::/64\"} 1",
                "clusterip_allocator_available_ips{cidr=\"fd00:7::/64\"} 9223372036854775806",
                "nodeport_allocator_allocation_total{scope=\"static\"} 1",
                "nodeport_allocator_allocation_total{scope=\"dynamic\"} 1",
                "nodeport_allocator_allocation_errors_total{scope=\"static\"} 1",
                "nodeport_allocator_allocation_errors_total{scope=\"dynamic\"} 1",
                "nodeport_allocator_allocated_ports 2",
                "nodeport_allocator_available_ports 0",
            ],
        );
    }

    #[test]
    fn what_is_given_back_is_free_again_and_was_given() {
        let allocators = allocators();
        allocators.loaded().set(()).unwrap();
        let mut allocation = allocators.begin(false);
        allocators.next_ip(&mut allocation, true).unwrap();
        drop(allocation);
        shows(
            &allocators,
            &[
                "clusterip_allocator_allocation_total{cidr=\"10.1.0.0/29\",scope=\"dynamic\"} 1",
                "clusterip_allocator_allocated_ips{cidr=\"10.1.0.0/29\"} 0",
                "clusterip_allocator_available_ips{cidr=\"10.1.0.0/29\"} 6",
            ],
        );
    }
}
