//! Feature gates: what can be switched on and off by name (`k8s.io/component-base/featuregate`).

use std::collections::BTreeMap;
use std::sync::LazyLock;

golang::text_error! {
    /// A gate that nobody knows or that cannot be changed, or a value that is none; in upstream's words.
    pub struct BadGate;
}

/// Objects that wait for initializers before anybody sees them: in Kubernetes 1.7 to 1.13, alpha all the
/// time, and gone since.
pub const INITIALIZERS: &str = "Initializers";

/// PodTopologyLabels
pub const POD_TOPOLOGY_LABELS: &str = "PodTopologyLabelsAdmission";

/// Acting as others only for some requests, and as a node or an account without its groups.
pub const CONSTRAINED_IMPERSONATION: &str = "ConstrainedImpersonation";

/// Nodes that say which changes of pods they can follow.
pub const NODE_DECLARED_FEATURES: &str = "NodeDeclaredFeatures";

/// All that switch something here. What is behind the others is there or not, whatever they say.
const EFFECTIVE: &[&str] = &[
    CONSTRAINED_IMPERSONATION,
    INITIALIZERS,
    // Of the autoscaler.
    "HPAConfigurableTolerance",
    "HPAScaleToZero",
    NODE_DECLARED_FEATURES,
    POD_TOPOLOGY_LABELS,
    // Of the controller of StatefulSets; what it is off for is dropped, too.
    "MaxUnavailableStatefulSet",
    "StatefulSetSemanticRevisionComparison",
    // Fields that are dropped while they are off.
    "ClusterTrustBundleProjection",
    "ContainerStopSignals",
    "CoordinatedLeaderElection",
    "CrossNamespaceVolumeDataSource",
    "DRAConsumableCapacity",
    "DRAListTypeAttributes",
    "DRANodeAllocatableResources",
    "DRAPartitionableDevices",
    "GenericWorkload",
    "InPlacePodLevelResourcesVerticalScaling",
    "PodCertificateRequest",
    "VolumeLimitScaling",
];

/// A gate, whether it is on by default, its stage, and whether that can be changed: one a line.
const LINES: &str = include_str!("feature_gates.txt");

/// Read when somebody first asks, and then asked by every write of a pod.
static KNOWN: LazyLock<BTreeMap<&'static str, KnownGate>> = LazyLock::new(|| {
    let gate = |line: &'static str| {
        let mut words = line.split(' ');
        let (name, default, stage) = (words.next()?, words.next()? == "on", words.next()?);
        let locked = words.next() == Some("locked");
        Some((name, KnownGate { name, default, stage, locked }))
    };
    LINES.lines().filter(|line| !line.starts_with('#')).filter_map(gate).collect()
});

#[derive(Clone, Copy)]
struct KnownGate {
    name: &'static str,
    default: bool,
    /// As upstream's lists have it: `Alpha`, `Beta`, `GA`, `Deprecated`.
    stage: &'static str,
    locked: bool,
}

impl KnownGate {
    /// As upstream's metrics have it, where what is done has no stage.
    fn shown_stage(self) -> String {
        if self.stage == "GA" { String::new() } else { self.stage.to_uppercase() }
    }
}

fn find(name: &str) -> Option<KnownGate> {
    KNOWN.get(name).copied()
}

/// Which gates differ from their defaults. Bound: one entry for each known gate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FeatureGates(BTreeMap<&'static str, bool>);

impl FeatureGates {
    /// Reads `--feature-gates=A=true,B=false`.
    ///
    /// # Errors
    /// Upstream's words for a gate that nobody knows, a value that is no boolean, a gate that is locked.
    pub fn parse(text: &str) -> Result<FeatureGates, BadGate> {
        let mut gates = FeatureGates::default();
        for pair in text.split(',').map(str::trim).filter(|pair| !pair.is_empty()) {
            let (name, value) =
                pair.split_once('=').ok_or_else(|| format!("missing bool value for {pair}"))?;
            gates.set(name.trim(), parse_bool(name.trim(), value.trim())?)?;
        }
        Ok(gates)
    }

    /// The names of all gates, in order.
    pub fn names() -> Vec<&'static str> {
        KNOWN.keys().copied().collect()
    }

    /// Switches one gate.
    ///
    /// # Errors
    /// One that nobody knows, or that is locked to the other value.
    pub fn set(&mut self, name: &str, value: bool) -> Result<(), BadGate> {
        let known = find(name).ok_or_else(|| format!("unrecognized feature gate: {name}"))?;
        if known.locked && known.default != value {
            let locked = known.default;
            return Err(
                format!("cannot set feature gate {name} to {value}, feature is locked to {locked}").into()
            );
        }
        self.0.insert(known.name, value);
        Ok(())
    }

    /// Whether it is on. A gate that nobody knows is off.
    pub fn enabled(&self, name: &str) -> bool {
        self.0.get(name).copied().unwrap_or_else(|| find(name).is_some_and(|known| known.default))
    }

    /// All that are known, in order: the name of each, its stage as `ALPHA`, `BETA`, `DEPRECATED` or
    /// nothing, and whether it is on.
    pub fn states(&self) -> impl Iterator<Item = ([String; 2], bool)> {
        let state = |gate: &KnownGate| ([gate.name.to_owned(), gate.shown_stage()], self.enabled(gate.name));
        KNOWN.values().map(state)
    }

    /// Those that were set to something else than their default, and change nothing here.
    pub fn without_effect(&self) -> impl Iterator<Item = &'static str> {
        let is_changed = |name: &str, value: bool| find(name).is_none_or(|known| known.default != value);
        let changed = self.0.iter().filter(move |(name, value)| is_changed(name, **value));
        changed.map(|(name, _)| *name).filter(|name| !EFFECTIVE.contains(name))
    }
}

/// `strconv.ParseBool`
fn parse_bool(name: &str, text: &str) -> Result<bool, String> {
    match text {
        "1" | "t" | "T" | "TRUE" | "true" | "True" => Ok(true),
        "0" | "f" | "F" | "FALSE" | "false" | "False" => Ok(false),
        _ => Err(format!(
            "invalid value of {name}={text}, err: strconv.ParseBool: parsing {text:?}: invalid syntax"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gates_are_read_as_upstream_reads_them() {
        let gates = FeatureGates::parse("Initializers=true").unwrap();
        assert!(gates.enabled(INITIALIZERS) && !FeatureGates::default().enabled(INITIALIZERS));
        let refused = [
            ("Initializers", "missing bool value for Initializers"),
            ("Nonsense=true", "unrecognized feature gate: Nonsense"),
            (
                "Initializers=maybe",
                "invalid value of Initializers=maybe, err: strconv.ParseBool: parsing \"maybe\": invalid \
                 syntax",
            ),
            (
                "SidecarContainers=false",
                "cannot set feature gate SidecarContainers to false, feature is locked to true",
            ),
            (
                "GitRepoVolumeDriver=true",
                "cannot set feature gate GitRepoVolumeDriver to true, feature is locked to false",
            ),
        ];
        for (given, expected) in refused {
            assert_eq!(FeatureGates::parse(given).unwrap_err(), expected);
        }
        let gates =
            "ImageVolume=true,EventedPLEG=true,WatchList=false,Initializers=true,SidecarContainers=true";
        let gates = FeatureGates::parse(gates).unwrap();
        assert_eq!(gates.without_effect().collect::<Vec<_>>(), ["EventedPLEG", "WatchList"]);
        assert!(gates.enabled("EventedPLEG") && !gates.enabled("WatchList") && gates.enabled("KubeletPSI"));
        for line in LINES.lines().filter(|line| !line.starts_with('#')) {
            let words: Vec<&str> = line.split(' ').collect();
            let is_whole = matches!(
                *words,
                [_, "on" | "off", "Alpha" | "Beta" | "GA" | "Deprecated"]
                    | [_, "on" | "off", "GA" | "Deprecated", "locked"]
            );
            assert!(is_whole, "{line}");
        }
    }

    #[test]
    fn each_gate_is_told_with_its_stage() {
        let gates = FeatureGates::parse("EventedPLEG=true,WatchList=false").unwrap();
        let states: BTreeMap<String, (String, bool)> =
            gates.states().map(|([name, stage], is_on)| (name, (stage, is_on))).collect();
        assert_eq!(states.len(), FeatureGates::names().len());
        let told = [
            ("EventedPLEG", "ALPHA", true),
            ("WatchList", "BETA", false),
            ("SidecarContainers", "", true),
            ("GitRepoVolumeDriver", "DEPRECATED", false),
        ];
        for (name, stage, is_on) in told {
            assert_eq!(states[name], (stage.to_owned(), is_on), "{name}");
        }
    }
}
