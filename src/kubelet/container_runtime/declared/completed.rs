//! Annotations of a pod, with those that a ConfigMap has for it: its keys are the names of annotations
//! without `kubarium.dev/`.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::read::{self, LISTENERS, PREFIX};

/// What a ConfigMap holds.
type AnswerKeys = BTreeMap<String, Arc<Vec<u8>>>;

/// Keys that say something by themselves.
const WHOLE: [&str; 2] = ["logs", "listens"];
/// What stands before a dot and what the key is about.
const DOTTED: [&str; 2] = ["exec", "logs"];

/// The annotations of a pod with what the keys of its ConfigMap add: where both say something of the same,
/// the pod does.
pub(crate) fn completed(own: &BTreeMap<String, String>, keys: &AnswerKeys) -> BTreeMap<String, String> {
    let mut all = own.clone();
    for (key, text) in keys.iter().filter(|(key, _)| is_known(key)) {
        if !is_said(own, key) {
            let text = String::from_utf8_lossy(text).into_owned();
            all.entry(format!("{PREFIX}{key}")).or_insert(text);
        }
    }
    all
}

/// What is wrong with the keys of a ConfigMap of answers, each in a sentence.
pub(crate) fn unknown_keys(name: &str, keys: &AnswerKeys) -> Vec<String> {
    let unknown = keys.keys().filter(|key| !is_known(key));
    let sentence = |key: &String| {
        format!(
            "the key {key:?} of ConfigMap {name:?} says nothing: keys may be http.PORT, tcp.PORT, udp.PORT, \
             forward.PORT, exec.COMMAND, logs, logs.CONTAINER and listens"
        )
    };
    unknown.map(sentence).collect()
}

fn is_known(key: &str) -> bool {
    let kind = key.split_once('.').map(|(kind, _)| kind);
    WHOLE.contains(&key) || kind.is_some_and(|kind| LISTENERS.contains(&kind) || DOTTED.contains(&kind))
}

/// Whether a pod says itself who listens where a key says it.
fn is_said(own: &BTreeMap<String, String>, key: &str) -> bool {
    let Some((kind, port)) = key.split_once('.') else { return false };
    let port = port.parse().ok().filter(|_| LISTENERS.contains(&kind));
    port.is_some_and(|port| read::listens(own, kind == "udp", port))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(pairs: &[(&str, &str)]) -> AnswerKeys {
        pairs.iter().map(|(key, text)| ((*key).to_owned(), Arc::new(text.as_bytes().to_vec()))).collect()
    }

    #[test]
    fn a_config_map_says_what_the_pod_does_not() {
        let own = [("kubarium.dev/tcp.80", "echo"), ("kubarium.dev/logs", "mine"), ("app", "x")];
        let own = BTreeMap::from(own.map(|(name, text)| (name.to_owned(), text.to_owned())));
        let said = [("http.80", "a"), ("udp.80", "echo"), ("logs", "b"), ("exec.date", "now"), ("app", "y")];
        let all = completed(&own, &keys(&said));
        let all: Vec<(&str, &str)> = all.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
        let wanted = [
            ("app", "x"),
            ("kubarium.dev/exec.date", "now"),
            ("kubarium.dev/logs", "mine"),
            ("kubarium.dev/tcp.80", "echo"),
            ("kubarium.dev/udp.80", "echo"),
        ];
        assert_eq!(all, wanted);
    }

    #[test]
    fn keys_that_say_nothing_are_told() {
        let told = unknown_keys("web", &keys(&[("htp.80", "a"), ("listens", "declared"), ("logs.web", "b")]));
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].starts_with("the key \"htp.80\" of ConfigMap \"web\" says nothing"), "{told:?}");
    }
}
