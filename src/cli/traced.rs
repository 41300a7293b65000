//! Which object `kubarium trace` is asked for: in kubectl's own forms, in the namespace that kubectl would
//! take.

use super::kubeconfig::current::{self, CurrentContext};
use super::state::Record;
use super::{Failure, kubeconfig};
use apis::scheme::Scheme;
use flow::Trace as Story;

/// An object as a person names it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Traced {
    /// As `deploy` or `deployments.apps`.
    pub kind: String,
    /// Its name; empty: the requests about the kind that name no object and were refused.
    pub name: String,
}

impl Traced {
    /// Reads `KIND/NAME` or `KIND NAME`, or `KIND` alone.
    pub(crate) fn parse(words: &[String]) -> Result<Traced, Failure> {
        let parts: Vec<&str> = match words {
            [one] => one.split('/').collect(),
            [kind, name] if !kind.contains('/') && !name.contains('/') => vec![kind, name],
            _ => vec![],
        };
        match parts.as_slice() {
            [kind] if !kind.is_empty() => Ok(Traced { kind: (*kind).to_owned(), name: String::new() }),
            [kind, name] if !kind.is_empty() && !name.is_empty() => {
                Ok(Traced { kind: (*kind).to_owned(), name: (*name).to_owned() })
            }
            _ => {
                let given = words.join(" ");
                Err(Failure(format!(
                    "{given:?} names no object: say KIND/NAME or KIND NAME, one object at a time; try: kubarium \
                     trace deployment/web"
                )))
            }
        }
    }

    /// What is said when its story has no step.
    pub(crate) fn not_recorded(&self, story: &Story, namespace: &str, cluster: &str) -> Failure {
        let Failure(mut text) = self.nothing(story, namespace, cluster);
        for remark in story.remarks() {
            text += "; ";
            text += &remark;
        }
        Failure(text)
    }

    fn nothing(&self, story: &Story, namespace: &str, cluster: &str) -> Failure {
        let Traced { kind, name } = self;
        if name.is_empty() {
            return Failure(format!(
                "no refused request about {kind} that names no object is recorded in cluster {cluster:?}; of an \
                 object try: kubarium trace {kind}/web"
            ));
        }
        // Of what the record has forgotten it does not know whether it was.
        let made = match (story.forgotten, story.others.is_empty()) {
            (0, true) => "was it made since the cluster's start?",
            (_, true) => "it may be older than the record.",
            (_, false) => "no object of that name has such a uid.",
        };
        if self.is_cluster_scoped() {
            return Failure(format!("nothing is recorded of {kind}/{name} in cluster {cluster:?}; {made}"));
        }
        Failure(format!(
            "nothing is recorded of {kind}/{name} in namespace {namespace:?} of cluster {cluster:?}; {made} \
             Another namespace is looked into with -n NAMESPACE"
        ))
    }

    /// Of what is followed and is not there yet.
    pub(super) fn awaited(&self, namespace: &str, cluster: &str) -> String {
        let Traced { kind, name } = self;
        let what = match name.as_str() {
            "" => format!("refused requests about {kind}"),
            name => format!("{kind}/{name}"),
        };
        let place =
            if self.is_cluster_scoped() { String::new() } else { format!(" in namespace {namespace:?}") };
        format!("nothing is recorded of {what}{place} of cluster {cluster:?} yet; it is waited for")
    }

    /// Of what a definition has made at run time nothing is known here.
    fn is_cluster_scoped(&self) -> bool {
        Scheme::builtin().named(&self.kind).is_some_and(|kind| !kind.namespaced)
    }
}

/// The namespace that kubectl would look into: that of its current context if this is the cluster that it
/// talks to, else that of the cluster's own context, else `default`.
pub(crate) fn namespace(record: &Record) -> String {
    let own = || kubeconfig::namespace_of(&record.kubeconfig, &record.name);
    namespace_among(record, current::read(), own)
}

fn namespace_among(
    record: &Record,
    current: Option<CurrentContext>,
    own: impl FnOnce() -> Option<String>,
) -> String {
    let current = current.filter(|current| current.server.as_ref() == Some(&record.server));
    let namespace = match current {
        Some(current) => current.namespace,
        None => own(),
    };
    namespace.unwrap_or_else(|| "default".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Traced, Failure> {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        Traced::parse(&words)
    }

    #[test]
    fn objects_are_named_as_for_kubectl() {
        for line in ["deploy/web", "deploy web"] {
            let Traced { kind, name } = parse(line).unwrap();
            assert_eq!((kind.as_str(), name.as_str()), ("deploy", "web"), "{line}");
        }
        assert_eq!(parse("pods").unwrap(), Traced { kind: "pods".into(), name: String::new() });
        for line in ["/x", "pod/", "pod/x/y", "pod x y", "pod/x y", "pod x/y", ""] {
            let Failure(why) = parse(line).unwrap_err();
            assert!(why.contains(&format!("{line:?} names no object")), "{why}");
            assert!(why.contains("try: kubarium trace deployment/web"), "{why}");
        }
    }

    #[test]
    fn what_is_not_recorded_says_where_it_was_looked_for() {
        let of = |story: &Story, line: &str| parse(line).unwrap().not_recorded(story, "team", "a").0;
        let said = |line: &str| of(&Story::default(), line);
        assert!(
            said("pods x").contains("pods/x in namespace \"team\" of cluster \"a\""),
            "{}",
            said("pods x")
        );
        assert!(said("Foo/x").contains("namespace \"team\""));
        assert!(
            said("no/node-1").contains("no/node-1 in cluster \"a\"") && !said("no/node-1").contains("-n")
        );
        assert!(said("pods").contains("try: kubarium trace pods/web"), "{}", said("pods"));
        assert!(said("pods x").contains("was it made since the cluster's start?"), "{}", said("pods x"));
        let awaited = |line: &str| parse(line).unwrap().awaited("team", "a");
        assert!(awaited("pods x").contains("pods/x in namespace \"team\" of cluster \"a\" yet"));
        assert!(awaited("no").contains("refused requests about no of cluster"), "{}", awaited("no"));
        let forgetful = Story { forgotten: 7, ..Story::default() };
        let said = of(&forgetful, "pods x");
        assert!(said.contains("forgotten: the record holds the last 65536 steps, from #8 on"), "{said}");
        assert!(!said.contains("was it made"), "{said}");
    }

    #[test]
    fn the_namespace_is_kubectls_while_it_talks_to_this_cluster() {
        let text = r#"{"name": "a", "pid": 1, "server": "https://a", "nodes": 1, "kubeconfig": "/k"}"#;
        let record: Record = serde_json::from_str(text).unwrap();
        let current = |server: &str, namespace: Option<&str>| {
            Some(CurrentContext { server: Some(server.into()), namespace: namespace.map(str::to_owned) })
        };
        let own = || Some("own".to_owned());
        assert_eq!(namespace_among(&record, current("https://a", Some("team")), own), "team");
        assert_eq!(namespace_among(&record, current("https://a", None), own), "default");
        assert_eq!(namespace_among(&record, current("https://b", Some("team")), own), "own");
        assert_eq!(namespace_among(&record, None, || None), "default");
    }
}
