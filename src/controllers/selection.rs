//! `--controllers`: which controllers run (`genericcontrollermanager.IsControllerEnabled`).

golang::text_error! {
    /// A name that no controller has; in upstream's words.
    pub struct UnknownController;
}

/// Those of kube-controller-manager, and the names that they had before 1.28. Those that have no work in a
/// simulated cluster are known, and nothing is behind them.
const KNOWN: &[(&str, &str)] = &[
    ("bootstrap-signer-controller", "bootstrapsigner"),
    ("certificatesigningrequest-approving-controller", "csrapproving"),
    ("certificatesigningrequest-cleaner-controller", "csrcleaner"),
    ("certificatesigningrequest-signing-controller", "csrsigning"),
    ("cloud-node-lifecycle-controller", "cloud-node-lifecycle"),
    ("clusterrole-aggregation-controller", "clusterrole-aggregation"),
    ("cronjob-controller", "cronjob"),
    ("daemonset-controller", "daemonset"),
    ("deployment-controller", "deployment"),
    ("device-taint-eviction-controller", ""),
    ("disruption-controller", "disruption"),
    ("endpoints-controller", "endpoint"),
    ("endpointslice-controller", "endpointslice"),
    ("endpointslice-mirroring-controller", "endpointslicemirroring"),
    ("ephemeral-volume-controller", "ephemeral-volume"),
    ("garbage-collector-controller", "garbagecollector"),
    ("horizontal-pod-autoscaler-controller", "horizontalpodautoscaling"),
    ("job-controller", "job"),
    ("kube-apiserver-serving-clustertrustbundle-publisher-controller", ""),
    ("legacy-serviceaccount-token-cleaner-controller", "legacy-service-account-token-cleaner"),
    ("namespace-controller", "namespace"),
    ("node-ipam-controller", "nodeipam"),
    ("node-lifecycle-controller", "nodelifecycle"),
    ("node-route-controller", "route"),
    ("persistentvolume-attach-detach-controller", "attachdetach"),
    ("persistentvolume-binder-controller", "persistentvolume-binder"),
    ("persistentvolume-expander-controller", "persistentvolume-expander"),
    ("persistentvolume-protection-controller", "pv-protection"),
    ("persistentvolumeclaim-protection-controller", "pvc-protection"),
    ("pod-garbage-collector-controller", "podgc"),
    ("podcertificaterequest-cleaner-controller", ""),
    ("podgroup-protection-controller", ""),
    ("replicaset-controller", "replicaset"),
    ("replicationcontroller-controller", "replicationcontroller"),
    ("resourceclaim-controller", "resource-claim-controller"),
    ("resourcepoolstatusrequest-controller", ""),
    ("resourcequota-controller", "resourcequota"),
    ("root-ca-certificate-publisher-controller", "root-ca-cert-publisher"),
    ("selinux-warning-controller", ""),
    ("service-cidr-controller", ""),
    ("service-lb-controller", "service"),
    ("serviceaccount-controller", "serviceaccount"),
    ("serviceaccount-token-controller", "serviceaccount-token"),
    ("statefulset-controller", "statefulset"),
    ("storage-version-migrator-controller", ""),
    ("storageversion-garbage-collector-controller", "storage-version-gc"),
    ("taint-eviction-controller", ""),
    ("token-cleaner-controller", "tokencleaner"),
    ("ttl-after-finished-controller", "ttl-after-finished"),
    ("ttl-controller", "ttl"),
    ("validatingadmissionpolicy-status-controller", ""),
    ("volumeattributesclass-protection-controller", ""),
];

/// The names of all controllers, in order.
pub fn names() -> Vec<&'static str> {
    KNOWN.iter().map(|(name, _)| *name).collect()
}

/// Looks at one entry of the flag: `*`, `foo` or `-foo`. `-*`, which upstream does not know, is none.
///
/// # Errors
/// Upstream's words for a name that no controller has.
pub fn check(entry: &str) -> Result<(), UnknownController> {
    let name = entry.strip_prefix('-').unwrap_or(entry);
    if name == "*" || canonical(name).is_some() {
        Ok(())
    } else {
        Err(format!("{name:?} is not in the list of known controllers").into())
    }
}

/// The present name of a controller.
pub(super) fn canonical(name: &str) -> Option<&'static str> {
    let is_it = |(own, alias): &&(&str, &str)| *own == name || (*alias == name && !name.is_empty());
    KNOWN.iter().find(is_it).map(|(own, _)| *own)
}

/// Which controllers run; without being told, all.
///
/// The bootstrap signer and the token cleaner are among them, as kubeadm has it, although upstream's own
/// default leaves them out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection {
    /// Each with whether it is wanted: `*`, or the present name of a controller. The first that fits decides.
    entries: Vec<(String, bool)>,
}

impl Default for Selection {
    fn default() -> Selection {
        Selection { entries: vec![("*".into(), true)] }
    }
}

impl Selection {
    /// Reads the entries of the flag.
    ///
    /// # Errors
    /// As [`check`].
    pub fn parse<'a>(entries: impl IntoIterator<Item = &'a str>) -> Result<Selection, UnknownController> {
        let entry = |entry: &str| {
            check(entry)?;
            let name = entry.strip_prefix('-').unwrap_or(entry);
            Ok((canonical(name).unwrap_or(name).to_owned(), !entry.starts_with('-')))
        };
        let entries = entries.into_iter().map(entry).collect::<Result<_, UnknownController>>()?;
        Ok(Selection { entries })
    }

    /// Whether a controller runs: what is said of it alone counts more than the star.
    pub fn runs(&self, name: &str) -> bool {
        let said = |of: &str| self.entries.iter().find(|(own, _)| own == of).map(|(_, wanted)| *wanted);
        said(name).or_else(|| said("*")).unwrap_or(false)
    }

    /// Whether any does.
    pub fn runs_any(&self) -> bool {
        KNOWN.iter().any(|(name, _)| self.runs(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_mean_what_they_mean_to_upstream() {
        let runs = |flag: &str, name: &str| Selection::parse(flag.split(',')).unwrap().runs(name);
        for (flag, name, expected) in [
            ("*", "job-controller", true),
            ("*,-job-controller", "job-controller", false),
            ("*,-job", "job-controller", false),
            ("*,-job", "cronjob-controller", true),
            ("-job,*", "job-controller", false),
            ("job", "job-controller", true),
            ("job", "cronjob-controller", false),
            ("-job", "cronjob-controller", false),
            ("job,-job", "job-controller", true),
            ("-*", "job-controller", false),
            ("-*,job", "job-controller", true),
        ] {
            assert_eq!(runs(flag, name), expected, "{flag} {name}");
        }
        assert!(Selection::default().runs_any() && !Selection::parse(["-*"]).unwrap().runs_any());
        let why = Selection::parse(["*", "-jobs"]).unwrap_err();
        assert_eq!(why, "\"jobs\" is not in the list of known controllers");
        assert!(check("").is_err() && check("-").is_err());
    }

    #[test]
    fn names_are_in_order_and_no_two_are_alike() {
        assert!(names().is_sorted());
        let aliases = KNOWN.iter().map(|(_, alias)| *alias).filter(|alias| !alias.is_empty());
        let mut all: Vec<&str> = names().into_iter().chain(aliases).collect();
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
    }
}
