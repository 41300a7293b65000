//! What to type instead: the words that other tools have for what we do.

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};

const DOWN: &str = "to stop a cluster: kubarium down [NAME]";
const CLUSTERS: &str = "to see what runs: kubarium get clusters";
const UP: &str = "to start a cluster: kubarium up";
const LOGS: &str = "what a pod prints: kubectl logs POD; where a cluster in the background prints to: kubarium get \
                    clusters -o wide; why something happened: kubarium trace KIND/NAME";
const RESTART: &str = "to start anew: kubarium down, then kubarium up (with --data-dir it keeps everything)";
const KUBECONFIG: &str = "to print a kubeconfig: kubarium get kubeconfig";
const APPLY: &str = "to apply manifests: kubectl apply -f FILE, or at the start: kubarium up -f FILE";
const KUBECTL: &str = "that is kubectl's: its current context is the cluster that was started last";

const TIPS: &[(&[&str], &str)] = &[
    (&["stop", "delete", "halt", "kill", "rm", "remove", "destroy", "shutdown", "quit"], DOWN),
    (&["status", "list", "ls", "ps", "info", "clusters", "show"], CLUSTERS),
    (&["start", "create", "run", "init", "new", "serve"], UP),
    (&["logs", "log", "events"], LOGS),
    (&["restart", "reset"], RESTART),
    (&["kubeconfig", "config", "context"], KUBECONFIG),
    (&["apply", "load"], APPLY),
    (&["describe", "exec", "scale", "rollout", "edit", "patch", "kubectl"], KUBECTL),
];

/// The error about an unknown subcommand with what to type instead.
pub(crate) fn with_tip(mut error: clap::Error) -> clap::Error {
    if error.kind() != ErrorKind::InvalidSubcommand {
        return error;
    }
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand) else { return error };
    if is_within_another(&error) {
        return error;
    }
    if let Some(tip) = tip_for(word) {
        let tip = ContextValue::StyledStrs(vec![StyledStr::from(tip)]);
        error.insert(ContextKind::Suggested, tip);
    }
    error
}

/// Whether it is the word behind one of our own: what `kubarium node delete` is to be stops no cluster.
fn is_within_another(error: &clap::Error) -> bool {
    let Some(ContextValue::StyledStr(usage)) = error.get(ContextKind::Usage) else { return false };
    let usage = usage.to_string();
    let behind = usage.split_once("kubarium").map(|(_, behind)| behind.trim_start());
    behind.is_some_and(|behind| behind.starts_with(char::is_alphabetic))
}

fn tip_for(word: &str) -> Option<&'static str> {
    let found = TIPS.iter().find(|(words, _)| words.contains(&word.to_lowercase().as_str()));
    found.map(|(_, tip)| *tip)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Arguments;
    use clap::Parser;

    fn said(word: &str) -> String {
        refused(&["kubarium", word])
    }

    fn refused(words: &[&str]) -> String {
        let error = Arguments::try_parse_from(words).err().expect("it is unknown");
        with_tip(error).render().to_string()
    }

    #[test]
    fn behind_a_word_of_ours_no_cluster_is_meant() {
        for words in [["node", "delete"], ["step", "list"], ["fault", "delete"], ["get", "start"]] {
            let said = refused(&["kubarium", words[0], words[1]]);
            assert!(said.contains("unrecognized subcommand") && !said.contains("cluster:"), "{said}");
            assert!(!said.contains("get clusters"), "{said}");
        }
    }

    #[test]
    fn the_words_of_other_tools_lead_to_ours() {
        for (word, wanted) in [
            ("stop", "kubarium down"),
            ("delete", "kubarium down"),
            ("status", "kubarium get clusters"),
            ("logs", "kubectl logs"),
            ("start", "kubarium up"),
            ("kubeconfig", "kubarium get kubeconfig"),
        ] {
            let said = said(word);
            assert!(said.contains(&format!("unrecognized subcommand '{word}'")), "{said}");
            assert!(said.contains("tip: ") && said.contains(wanted), "{said}");
        }
        assert!(!said("sideways").contains("kubarium down"));
    }

    #[test]
    fn no_word_is_ours_or_stands_twice() {
        let words: Vec<&str> = TIPS.iter().flat_map(|(words, _)| words.iter().copied()).collect();
        for (at, word) in words.iter().enumerate() {
            assert!(!words[..at].contains(word), "{word} stands twice");
            assert!(Arguments::try_parse_from(["kubarium", word]).is_err(), "{word} is ours");
        }
    }
}
