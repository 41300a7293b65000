//! Services, as `kubectl describe` writes them.

use std::net::IpAddr;

use serde_json::Value;

use super::metadata::{head, joined, list, number, or_none, plain, text};
use super::page::TabbedPage;

/// So many endpoints are named.
const NAMED: usize = 3;

pub(super) fn service(page: &mut TabbedPage, own: &Value, slices: &[Value]) {
    let (spec, status) = (&own["spec"], &own["status"]);
    head(page, own);
    page.field(0, "Selector", joined(&spec["selector"]));
    page.field(0, "Type", text(spec, "type"));
    let mut told = |title: &str, field: &str| {
        if !text(spec, field).is_empty() {
            page.field(0, title, text(spec, field));
        }
    };
    told("IP Family Policy", "ipFamilyPolicy");
    let all = |value: &Value| list(value).iter().map(plain).collect::<Vec<_>>().join(",");
    page.field(0, "IP Families", or_none(&all(&spec["ipFamilies"])));
    page.field(0, "IP", text(spec, "clusterIP"));
    page.field(0, "IPs", or_none(&all(&spec["clusterIPs"])));
    let mut told = |title: &str, value: String| {
        if !value.is_empty() {
            page.field(0, title, value);
        }
    };
    told("External IPs", all(&spec["externalIPs"]));
    told("Desired LoadBalancer IP", text(spec, "loadBalancerIP").to_owned());
    told("External Name", text(spec, "externalName").to_owned());
    told("LoadBalancer Ingress", ingress(&status["loadBalancer"]["ingress"]));
    list(&spec["ports"]).iter().for_each(|own| port(page, own, slices));
    page.field(0, "Session Affinity", text(spec, "sessionAffinity"));
    let mut told = |title: &str, value: String| {
        if !value.is_empty() {
            page.field(0, title, value);
        }
    };
    told("External Traffic Policy", text(spec, "externalTrafficPolicy").to_owned());
    told("Internal Traffic Policy", text(spec, "internalTrafficPolicy").to_owned());
    let health = number(&spec["healthCheckNodePort"]);
    told("HealthCheck NodePort", if health == 0 { String::new() } else { health.to_string() });
    told("LoadBalancer Source Ranges", all(&spec["loadBalancerSourceRanges"]));
    told("Traffic Distribution", text(spec, "trafficDistribution").to_owned());
}

fn ingress(ingress: &Value) -> String {
    let told = list(ingress).iter().map(|own| match (text(own, "ip"), own["ipMode"].as_str()) {
        ("", _) => text(own, "hostname").to_owned(),
        (address, Some(mode)) => format!("{address} ({mode})"),
        (address, None) => address.to_owned(),
    });
    told.collect::<Vec<_>>().join(", ")
}

fn port(page: &mut TabbedPage, own: &Value, slices: &[Value]) {
    let (name, protocol) = (text(own, "name"), text(own, "protocol"));
    let shown = if name.is_empty() { "<unset>" } else { name };
    page.field(0, "Port", format!("{shown}\t{}/{protocol}", number(&own["port"])));
    page.field(0, "TargetPort", format!("{}/{protocol}", plain(&own["targetPort"])));
    if let Some(application) = own["appProtocol"].as_str() {
        page.field(0, "AppProtocol", application);
    }
    if number(&own["nodePort"]) != 0 {
        page.field(0, "NodePort", format!("{shown}\t{}/{protocol}", number(&own["nodePort"])));
    }
    page.field(0, "Endpoints", endpoints(slices, name));
}

/// Addresses of those that are ready, at the ports of that name.
fn endpoints(slices: &[Value], port_name: &str) -> String {
    if slices.is_empty() {
        return "<none>".to_owned();
    }
    let mut all = vec![];
    for slice in slices {
        let ports = list(&slice["ports"]);
        let own = ports.iter().filter(|port| text(port, "name") == port_name).map(Some);
        // Services without a port may have endpoints, too.
        let ports: Vec<Option<&Value>> = if ports.is_empty() { vec![None] } else { own.collect() };
        for port in ports {
            let ready = list(&slice["endpoints"]).iter().filter(|own| own["conditions"]["ready"] != false);
            all.extend(ready.map(|own| place(text_at(&own["addresses"]), port)));
        }
    }
    let named = all.iter().take(NAMED).cloned().collect::<Vec<_>>().join(",");
    match all.len().checked_sub(NAMED) {
        Some(more) if more > 0 => format!("{named} + {more} more..."),
        _ => named,
    }
}

fn text_at(addresses: &Value) -> &str {
    addresses[0].as_str().unwrap_or_default()
}

fn place(address: &str, port: Option<&Value>) -> String {
    let Some(port) = port else { return address.to_owned() };
    let number = number(&port["port"]);
    match address.parse() {
        Ok(IpAddr::V6(_)) => format!("[{address}]:{number}"),
        _ => format!("{address}:{number}"),
    }
}
