//! Annotations of a pod, read.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use serde::{Deserialize, Deserializer};

use super::forward::{self, PodForwarding};
use super::routes::WebRoutes;
use super::talk::Talk;
use apis::views::pod_answers::{ANSWERS_FROM, AnswersFrom};

/// What annotations begin with that say what a pod does.
pub(super) const PREFIX: &str = "kubarium.dev/";
/// Those that name a port behind them.
pub(super) const LISTENERS: [&str; 4] = ["http", "tcp", "udp", "forward"];

/// Who answers at a port.
#[derive(Debug)]
pub(crate) enum DeclaredPort {
    Http(WebRoutes),
    Tcp(Talk),
    Forward(SocketAddr),
}

/// A duration in Go's form.
pub(super) fn duration<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let text = String::deserialize(deserializer)?;
    let parsed = apimachinery::duration::parse(&text);
    parsed.ok_or_else(|| serde::de::Error::custom(format!("{text:?} is no duration")))
}

/// Whether an annotation is one that says what a pod does.
pub(crate) fn is_ours(name: &str) -> bool {
    name.starts_with(PREFIX)
}

/// Whether annotations that say what a pod does are not the same.
pub(crate) fn differ(old: &BTreeMap<String, String>, new: &BTreeMap<String, String>) -> bool {
    let ours = |(name, _): &(&String, &String)| is_ours(name);
    !old.iter().filter(ours).eq(new.iter().filter(ours))
}

/// Whether annotations name a listener at a port: `udp` or, for connections, any other.
pub(crate) fn listens(annotations: &BTreeMap<String, String>, is_udp: bool, port: u16) -> bool {
    let kinds = LISTENERS.iter().filter(|kind| (**kind == "udp") == is_udp);
    !annotations.is_empty()
        && kinds.into_iter().any(|kind| annotations.contains_key(&format!("{PREFIX}{kind}.{port}")))
}

/// The ports that annotations name, and whether for datagrams.
pub(crate) fn ports(annotations: &BTreeMap<String, String>) -> Vec<(u16, bool)> {
    let named = annotations.keys().filter_map(|name| {
        let (kind, port) = name.strip_prefix(PREFIX)?.split_once('.')?;
        Some((port.parse().ok()?, kind == "udp")).filter(|_| LISTENERS.contains(&kind))
    });
    named.collect()
}

/// An annotation that says who takes connections at a port, not read yet.
pub(crate) struct Declaration<'a> {
    annotations: &'a BTreeMap<String, String>,
    kind: &'static str,
    port: u16,
    pub(crate) text: &'a str,
}

/// Who takes connections at a port because an annotation says so.
pub(crate) fn declaration(annotations: &BTreeMap<String, String>, port: u16) -> Option<Declaration<'_>> {
    let kinds = LISTENERS.into_iter().filter(|kind| *kind != "udp");
    let mut found = kinds.filter_map(|kind| {
        let text = annotations.get(&format!("{PREFIX}{kind}.{port}"))?;
        Some(Declaration { annotations, kind, port, text })
    });
    found.next()
}

/// What is wrong with an annotation, in a sentence that names it.
#[derive(Debug)]
pub(crate) struct WrongDeclaration(pub(crate) String);

impl Declaration<'_> {
    /// What it means.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn read(&self, forwarding: PodForwarding) -> Result<DeclaredPort, WrongDeclaration> {
        let Declaration { annotations, kind, port, text } = *self;
        let place = || place(annotations, &format!("{kind}.{port}"));
        let wrong = |why| WrongDeclaration(format!("{} {why}", place()));
        read(kind, text, forwarding).map_err(wrong)
    }
}

fn read(kind: &str, text: &str, forwarding: PodForwarding) -> Result<DeclaredPort, String> {
    match kind {
        "http" => Ok(DeclaredPort::Http(WebRoutes::parse(text)?)),
        "tcp" => Ok(DeclaredPort::Tcp(Talk::parse(text)?)),
        _ => {
            let address = forward::parse(text)?;
            forwarding.check(address)?;
            Ok(DeclaredPort::Forward(address))
        }
    }
}

/// Where it stands what is said under a name: in an annotation, or as a key of the ConfigMap.
fn place(annotations: &BTreeMap<String, String>, name: &str) -> String {
    match AnswersFrom::of(annotations) {
        Some(from) => format!("annotation {PREFIX}{name}, or the key {name} of ConfigMap {:?},", from.name),
        None => format!("annotation {PREFIX}{name}"),
    }
}

/// What is wrong with annotations that name listeners, each in a sentence.
pub(crate) fn problems(annotations: &BTreeMap<String, String>, forwarding: PodForwarding) -> Vec<String> {
    let ours = annotations.iter().filter_map(|(name, text)| Some((name.strip_prefix(PREFIX)?, text)));
    let problem = |(rest, text): (&str, &String)| {
        let (kind, port) = rest.split_once('.')?;
        if !LISTENERS.contains(&kind) {
            return None;
        }
        let wrong = match port.parse::<u16>() {
            Ok(1..) if kind == "udp" => (text.trim() != "echo").then(|| "may be \"echo\" only".to_owned()),
            Ok(1..) => read(kind, text, forwarding).err(),
            _ => Some(format!("ends with {port:?}, which is no port from 1 to 65535")),
        };
        Some(format!("{} {}", place(annotations, rest), wrong?))
    };
    let problems = ours.filter_map(problem);
    let from = annotations.get(ANSWERS_FROM).filter(|text| AnswersFrom::parse(text).is_none());
    let from = from.map(|text| {
        format!(
            "annotation {ANSWERS_FROM} is {text:?}: it may be the name of a ConfigMap, and \", optional\" \
             behind it"
        )
    });
    problems.chain(from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn annotations(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(name, text)| (format!("{PREFIX}{name}"), (*text).to_owned())).collect()
    }

    #[test]
    fn listeners_are_found_by_their_ports() {
        let all = annotations(&[
            ("http.8080", "[{body: hi}]"),
            ("tcp.6379", "echo"),
            ("udp.53", "echo"),
            ("stage", "x"),
        ]);
        let found = |port| declaration(&all, port).map(|found| found.read(PodForwarding::Nowhere).is_ok());
        assert_eq!((found(8080), found(6379), found(53), found(80)), (Some(true), Some(true), None, None));
        assert!(listens(&all, true, 53) && !listens(&all, true, 8080) && listens(&all, false, 8080));
        assert_eq!(problems(&all, PodForwarding::Nowhere), Vec::<String>::new());
    }

    #[test]
    fn what_is_wrong_is_told_with_the_annotation() {
        for ((name, text), wanted) in [
            (("http.8080", "nonsense"), "annotation kubarium.dev/http.8080 is no list of routes"),
            (("http.x", "[]"), "annotation kubarium.dev/http.x ends with \"x\", which is no port"),
            (("tcp.0", "echo"), "ends with \"0\", which is no port"),
            (
                ("answers-from", "two names"),
                "annotation kubarium.dev/answers-from is \"two names\": it may be",
            ),
            (("udp.53", "shout"), "annotation kubarium.dev/udp.53 may be \"echo\" only"),
            (("forward.80", "127.0.0.1:3000"), "needs `kubarium up --forward-pods loopback`"),
        ] {
            let told = problems(&annotations(&[(name, text)]), PodForwarding::Nowhere);
            assert!(told.len() == 1 && told[0].contains(wanted), "{told:?}");
        }
    }
}
