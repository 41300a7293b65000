//! `/etc/resolv.conf` of a pod, and what of its `dnsConfig` is too much for it (`pkg/kubelet/network/dns`).

use serde_json::Value;

use super::facts::VolumeFacts;
use apis::views::pod_detail::PodDetail;

/// Who a node itself asks for names, as a node of kind does; nobody answers there.
const NODE_DNS: &str = "172.18.0.1";
/// As many servers as a resolver asks (`MaxDNSNameservers`); further ones are left out.
const MAX_NAMESERVERS: usize = 3;
/// As many searches as it knows (`MaxDNSSearchPaths`); further ones are left out.
const MAX_SEARCHES: usize = 32;
/// As long as their line may be (`MaxDNSSearchListChars`).
const MAX_SEARCH_CHARS: usize = 2048;

/// What names are asked for in a pod.
struct ResolverLines {
    servers: Vec<String>,
    searches: Vec<String>,
    options: Vec<String>,
}

/// The file.
pub(super) fn resolv_conf(facts: &VolumeFacts<'_>) -> String {
    let namespace = &facts.metadata.namespace;
    let made = resolver(facts.pod.spec.host_network, facts.detail, namespace, facts.cluster_dns);
    let ResolverLines { mut servers, searches, options } = made;
    servers.truncate(MAX_NAMESERVERS);
    let searches = fitting(&searches);
    let mut text = String::new();
    if !searches.is_empty() {
        text.push_str(&format!("search {}\n", searches.join(" ")));
    }
    servers.iter().for_each(|server| text.push_str(&format!("nameserver {server}\n")));
    if !options.is_empty() {
        text.push_str(&format!("options {}\n", options.join(" ")));
    }
    text
}

/// What is left out, as the event `DNSConfigForming` says it.
pub(crate) fn problems(
    is_on_node: bool,
    detail: &PodDetail,
    namespace: &str,
    cluster_dns: &str,
) -> Vec<String> {
    let ResolverLines { mut servers, searches, .. } = resolver(is_on_node, detail, namespace, cluster_dns);
    let mut problems = Vec::new();
    if servers.len() > MAX_NAMESERVERS {
        servers.truncate(MAX_NAMESERVERS);
        let line = servers.join(" ");
        problems.push(format!(
            "Nameserver limits were exceeded, some nameservers have been omitted, the applied nameserver line is: {line}"
        ));
    }
    let fitting = fitting(&searches);
    if fitting.len() < searches.len() {
        let line = fitting.join(" ");
        problems.push(format!(
            "Search Line limits were exceeded, some search paths have been omitted, the applied search line is: {line}"
        ));
    }
    problems
}

/// As many as fit.
fn fitting(searches: &[String]) -> &[String] {
    let mut most = searches.len().min(MAX_SEARCHES);
    while searches[..most].join(" ").len() > MAX_SEARCH_CHARS {
        most -= 1;
    }
    &searches[..most]
}

fn resolver(is_on_node: bool, detail: &PodDetail, namespace: &str, cluster_dns: &str) -> ResolverLines {
    let mut made = ResolverLines { servers: vec![], searches: vec![], options: vec![] };
    // Pods of the node's network have the node's names, unless they say that they want the cluster's.
    let policy = match detail.spec.dns_policy.as_str() {
        "ClusterFirst" | "" if is_on_node => "Default",
        policy => policy,
    };
    if policy == "Default" {
        made.servers.push(NODE_DNS.to_owned());
    } else if policy != "None" {
        made.servers.push(cluster_dns.to_owned());
        made.searches.push(format!("{namespace}.svc.cluster.local"));
        made.searches.extend(["svc.cluster.local".to_owned(), "cluster.local".to_owned()]);
        made.options.push("ndots:5".to_owned());
    }
    if let Some(config) = &detail.spec.dns_config {
        add(&mut made, config);
    }
    made
}

/// What a pod says itself comes behind; each search and server once (`omitDuplicates`).
fn add(made: &mut ResolverLines, config: &Value) {
    let texts = |name: &str| {
        let list = config[name].as_array().cloned().unwrap_or_default();
        list.iter().filter_map(|text| text.as_str().map(str::to_owned)).collect::<Vec<_>>()
    };
    let add = |all: &mut Vec<String>, more: Vec<String>| {
        for one in more {
            if !all.contains(&one) {
                all.push(one);
            }
        }
    };
    add(&mut made.servers, texts("nameservers"));
    add(&mut made.searches, texts("searches"));
    for option in config["options"].as_array().into_iter().flatten() {
        let name = option["name"].as_str().unwrap_or_default();
        made.options.retain(|old| old.split(':').next() != Some(name));
        made.options.push(option["value"].as_str().map_or(name.into(), |value| format!("{name}:{value}")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_too_much_is_left_out_and_told() {
        let told = |config: Value| {
            let detail = serde_json::from_value(json!({"spec": {"dnsConfig": config}})).unwrap();
            problems(false, &detail, "ns", "10.96.0.10")
        };
        let own = "10.96.0.10";
        assert!(told(json!({"nameservers": ["1.1.1.1", "2.2.2.2", own], "searches": ["a.b"]})).is_empty());
        let told_servers = told(json!({"nameservers": ["1.1.1.1", "2.2.2.2", "3.3.3.3"]}));
        let servers = "Nameserver limits were exceeded, some nameservers have been omitted, the applied nameserver line is: \
            10.96.0.10 1.1.1.1 2.2.2.2";
        assert_eq!(told_servers, [servers]);
        let many: Vec<String> = (0..30).map(|at| format!("s{at}")).collect();
        let told_searches = told(json!({"searches": many}));
        assert!(told_searches[0].starts_with("Search Line limits were exceeded"), "{told_searches:?}");
        assert!(told_searches[0].ends_with(" s28"), "{told_searches:?}");
        let long: Vec<String> = (0..9).map(|at| format!("{at}{}", "x".repeat(250))).collect();
        assert!(told(json!({"searches": long}))[0].ends_with(&format!("6{}", "x".repeat(250))));
    }
}
