//! The values of Kubernetes' libraries, which only their own functions look into.

use std::net::IpAddr;
use std::sync::Arc;

use apimachinery::quantity::Quantity;

use super::named_format::NamedFormat;
use super::net::Cidr;
use super::semver::Semver;
use super::url::Url;

/// A value of a library.
#[derive(Clone, Debug, PartialEq)]
pub enum Opaque {
    /// `kubernetes.URL`
    Url(Arc<Url>),
    /// `kubernetes.Quantity`
    Quantity(Arc<Quantity>),
    /// `net.IP`
    Ip(IpAddr),
    /// `net.CIDR`
    Cidr(Cidr),
    /// `kubernetes.Semver`
    Semver(Arc<Semver>),
    /// `kubernetes.NamedFormat`
    Format(&'static NamedFormat),
}

impl Opaque {
    /// As `type(x)` gives it.
    pub fn type_name(&self) -> &'static str {
        match self {
            Opaque::Url(_) => "kubernetes.URL",
            Opaque::Quantity(_) => "kubernetes.Quantity",
            Opaque::Ip(_) => "net.IP",
            Opaque::Cidr(_) => "net.CIDR",
            Opaque::Semver(_) => "kubernetes.Semver",
            Opaque::Format(_) => "kubernetes.NamedFormat",
        }
    }

    /// `traits.Sizer`, for what is charged: the bytes of an address, and of what counts of a network.
    pub(super) fn length(&self) -> u64 {
        match self {
            Opaque::Ip(IpAddr::V4(_)) => 4,
            Opaque::Ip(IpAddr::V6(_)) => 16,
            Opaque::Cidr(network) => u64::from(network.bits).div_ceil(8),
            _ => 1,
        }
    }
}
