//! The group `networking.k8s.io/v1`.

pub mod ingress;
pub mod ingress_class;
pub mod ip_address;
pub mod ip_range;
pub mod network_policy;
pub mod port_range;
pub mod service_cidr;
pub mod service_ranges;

use super::kind::Builtin;

/// Its kinds.
pub const KINDS: &[&Builtin] = &[
    &ingress::INGRESSES,
    &ingress_class::INGRESS_CLASSES,
    &network_policy::NETWORK_POLICIES,
    &ip_address::IP_ADDRESSES,
    &service_cidr::SERVICE_CIDRS,
];
