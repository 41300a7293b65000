//! The IP families of a Service (`initIPFamilyFields`): those that it asks for, those that follow from its
//! addresses, and those that the cluster has.

use std::net::IpAddr;

use serde_json::{Value, json};

use super::super::metadata::member_mut;
use super::fields::{NONE, invalid};
use apimachinery::status::Status;
use apis::networking::service_ranges::ServiceRanges;

/// `IPv4`
pub(super) const V4: &str = "IPv4";
/// `IPv6`
pub(super) const V6: &str = "IPv6";
const SINGLE: &str = "SingleStack";
const REQUIRE_DUAL: &str = "RequireDualStack";
const POLICY: &str = "spec.ipFamilyPolicy";

/// Fills in `ipFamilyPolicy` and `ipFamilies` of a service that has cluster IPs.
pub(super) fn set(ranges: &ServiceRanges, new: &mut Value, old: Option<&Value>) -> Result<(), Status> {
    if old.is_some_and(|old| is_settled(new, old)) {
        return Ok(());
    }
    set_policy(new, old);
    if let Some(old) = old {
        release_second(new, old)?;
    }
    check_single(new)?;
    follow_addresses(ranges, new)?;
    let of_cluster: Vec<&str> = ranges.all().map(|range| family_of(range.network)).collect();
    if is_headless(new) && has_no_selector(new) {
        add_missing(new, of_cluster[0], true);
        return Ok(());
    }
    check_configured(new, &of_cluster)?;
    add_missing(new, of_cluster[0], of_cluster.len() == 2);
    Ok(())
}

fn family_of(address: IpAddr) -> &'static str {
    if address.is_ipv4() { V4 } else { V6 }
}

fn is_headless(service: &Value) -> bool {
    service["spec"]["clusterIP"] == NONE
}

fn has_no_selector(service: &Value) -> bool {
    service["spec"]["selector"].as_object().is_none_or(serde_json::Map::is_empty)
}

fn list(service: &Value, field: &str) -> Vec<Value> {
    service["spec"][field].as_array().cloned().unwrap_or_default()
}

fn set_list(service: &mut Value, field: &str, items: Vec<Value>) {
    member_mut(service, "spec").insert(field.into(), items.into());
}

/// `isMatchingPreferDualStackClusterIPFields`: a service that takes what there is does not change with the
/// cluster.
fn is_settled(new: &Value, old: &Value) -> bool {
    let same = |field: &str| new["spec"][field] == old["spec"][field];
    old["spec"]["type"] != "ExternalName"
        && new["spec"]["ipFamilyPolicy"] == "PreferDualStack"
        && ["ipFamilyPolicy", "clusterIP", "clusterIPs", "ipFamilies"].into_iter().all(same)
}

fn set_policy(new: &mut Value, old: Option<&Value>) {
    if !new["spec"]["ipFamilyPolicy"].is_null() {
        return;
    }
    let policy = match old.map(|old| &old["spec"]["ipFamilyPolicy"]) {
        Some(Value::String(before)) => before.clone(),
        _ if is_headless(new) && has_no_selector(new) => REQUIRE_DUAL.into(),
        _ => SINGLE.into(),
    };
    member_mut(new, "spec").insert("ipFamilyPolicy".into(), policy.into());
}

/// Who asks for one address gives up the second; who gives it up without asking for that is refused.
fn release_second(new: &mut Value, old: &Value) -> Result<(), Status> {
    let fields = [("clusterIPs", "cluster IP"), ("ipFamilies", "IP family")];
    for (field, what) in fields {
        let (mut now, before) = (list(new, field), list(old, field));
        if new["spec"]["ipFamilyPolicy"] == SINGLE {
            if now == before && now.len() > 1 {
                now.truncate(1);
                set_list(new, field, now);
            }
        } else if before.len() == 2 && now.len() == 1 && now[0] == before[0] {
            let detail = format!("must be 'SingleStack' to release the secondary {what}");
            return Err(invalid(new, POLICY, &new["spec"]["ipFamilyPolicy"], &detail));
        }
    }
    Ok(())
}

fn check_single(new: &Value) -> Result<(), Status> {
    if new["spec"]["ipFamilyPolicy"] != SINGLE {
        return Ok(());
    }
    for (field, what) in [("clusterIPs", "cluster IPs"), ("ipFamilies", "IP families")] {
        if list(new, field).len() == 2 {
            let detail =
                format!("must be 'RequireDualStack' or 'PreferDualStack' when multiple {what} are specified");
            return Err(invalid(new, POLICY, &json!(SINGLE), &detail));
        }
    }
    Ok(())
}

/// The family of each address that is asked for.
fn follow_addresses(ranges: &ServiceRanges, new: &mut Value) -> Result<(), Status> {
    let mut families = list(new, "ipFamilies");
    for (at, ip) in list(new, "clusterIPs").iter().enumerate().skip(families.len()) {
        // What is no address is left to validation, and `None` has no family.
        let Some(ip) = ip.as_str().and_then(|ip| ip.parse::<IpAddr>().ok()) else { break };
        if !ranges.all().any(|range| range.network.is_ipv4() == ip.is_ipv4()) {
            let detail = format!("{} is not configured on this cluster", family_of(ip));
            let path = format!("spec.clusterIPs[{at}]");
            return Err(invalid(new, &path, &new["spec"]["clusterIPs"], &detail));
        }
        families.push(family_of(ip).into());
    }
    if !families.is_empty() {
        set_list(new, "ipFamilies", families);
    }
    Ok(())
}

fn check_configured(new: &Value, of_cluster: &[&str]) -> Result<(), Status> {
    if new["spec"]["ipFamilyPolicy"] == REQUIRE_DUAL && of_cluster.len() < 2 {
        let detail = "this cluster is not configured for dual-stack services";
        return Err(invalid(new, POLICY, &json!(REQUIRE_DUAL), detail));
    }
    let families = list(new, "ipFamilies");
    let is_strange = |family: &Value| !of_cluster.iter().any(|own| family == own);
    if let Some(at) = families.iter().position(is_strange) {
        let path = format!("spec.ipFamilies[{at}]");
        return Err(invalid(new, &path, &families[at], "not configured on this cluster"));
    }
    Ok(())
}

/// The cluster's own family when none is named, and the other one for who wants both.
fn add_missing(new: &mut Value, default: &str, has_both: bool) {
    let mut families = list(new, "ipFamilies");
    if families.is_empty() {
        families.push(default.into());
    }
    if has_both && families.len() == 1 && new["spec"]["ipFamilyPolicy"] != SINGLE {
        families.push(if families[0] == V4 { V6 } else { V4 }.into());
    }
    set_list(new, "ipFamilies", families);
}
