//! What flags may be: parsers whose errors say it, since "invalid digit found in string" helps nobody.

use std::net::{Ipv4Addr, SocketAddr, ToSocketAddrs};
use std::str::FromStr;

use apimachinery::feature_gates::FeatureGates;
use apis::networking::service_ranges::ServiceRanges;
use apis::runtime_config::RuntimeConfig;
use apiserver::admission::plugins::PLUGINS;
use apiserver::authorization::config::Mode;
use controllers::selection;

/// As many nodes as a cluster takes: each is a kubelet of its own.
pub const MAX_NODES: u32 = 3000;

/// `--nodes`
pub fn nodes(text: &str) -> Result<u32, String> {
    let number = text.parse().ok().filter(|number| *number <= MAX_NODES);
    number.ok_or_else(|| format!("must be a whole number from 0 to {MAX_NODES}"))
}

/// `--seed`
pub fn seed(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("must be a whole number from 0 to {}", u64::MAX))
}

/// `--listen`: an address, a name that is looked up, or a port of this machine alone.
pub fn listener(text: &str) -> Result<SocketAddr, String> {
    let loopback = Ipv4Addr::LOCALHOST;
    let full = match text.strip_prefix(':').unwrap_or(text).parse::<u16>() {
        Ok(port) => format!("{loopback}:{port}"),
        Err(_) => text.to_owned(),
    };
    let found = full.to_socket_addrs().map_err(|error| {
        format!(
            "{error}; must be HOST:PORT, as 127.0.0.1:8443 or localhost:0, or a port of {loopback}, as :8443; \
             port 0 takes a free one"
        )
    })?;
    let mut found: Vec<SocketAddr> = found.collect();
    // A name of both families means the one that the default has.
    found.sort_by_key(SocketAddr::is_ipv6);
    found.first().copied().ok_or_else(|| "has no address".into())
}

/// An entry of `--authorization-mode`, in upstream's words with what it may be.
pub fn authorization_mode(text: &str) -> Result<Mode, String> {
    Mode::from_str(text).map_err(|why| {
        let names = Mode::ALL.map(Mode::name);
        format!("{why}; {}", choices("the modes are", text, &names))
    })
}

/// An entry of `--enable-admission-plugins` or `--disable-admission-plugins`.
pub fn admission_plugin(text: &str) -> Result<String, String> {
    let names: Vec<&str> = PLUGINS.iter().map(|entry| entry.name).collect();
    match names.contains(&text) {
        true => Ok(text.to_owned()),
        false => Err(format!("plugin {text:?} is unknown; {}", choices("the plugins are", text, &names))),
    }
}

/// An entry of `--runtime-config`.
pub fn runtime_config(text: &str) -> Result<String, String> {
    const FORMS: &str = "must be GROUP/VERSION=BOOL, GROUP/VERSION/RESOURCE=BOOL, or one of api/all, api/ga, \
                         api/beta, api/alpha and api/legacy with =BOOL";
    match RuntimeConfig::parse([text]) {
        Ok(_) => Ok(text.to_owned()),
        Err(why) => {
            let group = text.split(['/', '=']).next().unwrap_or_default();
            let near = nearest(group, &RuntimeConfig::groups());
            let tip = match near.as_slice() {
                [] => String::new(),
                near => format!("; a group of a similar name: {}", near.join(", ")),
            };
            Err(format!("{why}; {FORMS}{tip}"))
        }
    }
}

/// An entry of `--feature-gates`, checked with the whole of it later.
pub fn feature_gates(text: &str) -> Result<String, String> {
    match FeatureGates::parse(text) {
        Ok(_) => Ok(text.to_owned()),
        Err(why) => {
            let names = FeatureGates::names();
            let unknown = text.split(',').filter_map(|pair| pair.split('=').next()).map(str::trim);
            let near: Vec<&str> = unknown
                .filter(|name| !name.is_empty() && !names.contains(name))
                .flat_map(|name| nearest(name, &names))
                .collect();
            let tip = match near.as_slice() {
                [] => String::new(),
                near => format!("; did you mean {}?", near.join(" or ")),
            };
            Err(format!("{why}; must be NAME=true or NAME=false, several with commas{tip}"))
        }
    }
}

/// An entry of `--controllers`.
pub fn controller(text: &str) -> Result<String, String> {
    match selection::check(text) {
        Ok(()) => Ok(text.to_owned()),
        Err(why) => {
            let wanted = text.trim_start_matches('-');
            Err(format!("{why}; {}", choices("the controllers are", wanted, &selection::names())))
        }
    }
}

/// `--service-cluster-ip-range`
pub fn service_ranges(text: &str) -> Result<ServiceRanges, String> {
    let example = "must be one range, as 10.96.0.0/16, or one of each IP family with a comma";
    ServiceRanges::parse(text).map_err(|why| format!("{why}; {example}"))
}

/// The similar names when there are some, else all of them.
fn choices(all: &str, wanted: &str, names: &[&str]) -> String {
    match nearest(wanted, names).as_slice() {
        [] => format!("{all} {}", names.join(", ")),
        near => format!("did you mean {}? {all} {}", near.join(" or "), names.join(", ")),
    }
}

/// Names that a slip of the hand makes of `wanted`: other capitals, a letter or two, a part left out.
fn nearest<'a>(wanted: &str, names: &[&'a str]) -> Vec<&'a str> {
    let wanted = wanted.to_lowercase();
    if let Some(same) = names.iter().find(|name| name.to_lowercase() == wanted) {
        return vec![same];
    }
    let is_near = |name: &&&str| {
        let name = name.to_lowercase();
        let is_part = wanted.len() > 3 && (name.contains(&wanted) || wanted.contains(&name));
        is_part || distance(&wanted, &name) <= (wanted.chars().count() / 4).min(3)
    };
    names.iter().filter(is_near).take(3).copied().collect()
}

/// How many letters must be put in, taken out or changed (Levenshtein).
fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (at, letter) in left.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], at + 1);
        for (column, other) in right.iter().enumerate() {
            let changed = diagonal + usize::from(letter != *other);
            diagonal = row[column + 1];
            row[column + 1] = changed.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_is_an_address_a_name_or_a_port() {
        for (text, expected) in [
            ("127.0.0.1:8443", "127.0.0.1:8443"),
            ("0.0.0.0:1", "0.0.0.0:1"),
            ("[::1]:0", "[::1]:0"),
            ("localhost:0", "127.0.0.1:0"),
            (":8080", "127.0.0.1:8080"),
            ("8080", "127.0.0.1:8080"),
        ] {
            assert_eq!(listener(text).unwrap().to_string(), expected, "{text}");
        }
        for text in ["", "nowhere", "127.0.0.1", ":", "70000", "127.0.0.1:x"] {
            let why = listener(text).unwrap_err();
            assert!(why.contains("HOST:PORT, as 127.0.0.1:8443"), "{text}: {why}");
        }
    }

    #[test]
    fn similar_names_are_found() {
        assert_eq!([distance("", "abc"), distance("kitten", "sitting"), distance("a", "a")], [3, 3, 0]);
        let names = ["LimitRanger", "PodSecurity", "Priority", "ResourceQuota"];
        assert_eq!(nearest("limitranger", &names), ["LimitRanger"]);
        assert_eq!(nearest("rbac", &["ABAC", "RBAC"]), ["RBAC"]);
        assert_eq!(nearest("PodSecurty", &names), ["PodSecurity"]);
        assert_eq!(nearest("Quota", &names), ["ResourceQuota"]);
        assert_eq!(nearest("X", &names), [""; 0]);
    }
}
