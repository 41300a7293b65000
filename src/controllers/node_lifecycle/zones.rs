//! How fast nodes may lose their pods: by zone, slower where much of it is silent, and not at all when
//! nobody is heard of, since then it is rather our own connection (`handleDisruption`, `ComputeZoneState`).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use sync::Mutex;

use crate::options::ControllerManagerOptions;
use apimachinery::object::Object;

/// For so long what is known of the zones is good, when no node has changed since.
const GOOD_FOR: Duration = Duration::from_secs(1);
/// With so many silent nodes or fewer a zone is never taken to be partly disrupted.
const FEW: usize = 2;

/// `ZoneState`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ZoneState {
    /// Most of it is well.
    Normal,
    /// Much of it is silent.
    PartialDisruption,
    /// All of it is.
    FullDisruption,
}

/// Whether a node may lose its pods now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Leave {
    /// It may.
    Now,
    /// It is looked at again then.
    After(Duration),
    /// Nobody may, and who was to stays.
    Never,
}

/// The zones by their keys: what they are like, and how many nodes they have. Bound: the zones that nodes
/// have.
type States = BTreeMap<String, (ZoneState, usize)>;

/// The zones of a cluster.
pub(super) struct Zones {
    rate: f32,
    secondary_rate: f32,
    threshold: f32,
    large: usize,
    /// Counts changes of nodes' readiness.
    changes: AtomicU64,
    /// What was found last, after how many changes and when.
    known: Mutex<Option<(u64, Duration, Arc<States>)>>,
    /// When the next node of a zone may leave. Bound: the zones that there were.
    next: Mutex<BTreeMap<String, Duration>>,
}

impl Zones {
    pub(super) fn new(options: &ControllerManagerOptions) -> Zones {
        Zones {
            rate: options.node_eviction_rate,
            secondary_rate: options.secondary_node_eviction_rate,
            threshold: options.unhealthy_zone_threshold,
            large: options.large_cluster_size_threshold as usize,
            changes: AtomicU64::new(0),
            known: Mutex::default(),
            next: Mutex::default(),
        }
    }

    /// A node is ready, or not any more.
    pub(super) fn note_change(&self) {
        self.changes.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether a node of this zone may lose its pods, or goes on losing them. Who may has used up what the
    /// zone may lose for a while.
    pub(super) fn leave(
        &self,
        zone: &str,
        is_leaving: bool,
        now: Duration,
        nodes: impl FnOnce() -> Vec<(String, bool)>,
    ) -> Leave {
        let states = self.states(now, nodes);
        if states.values().all(|(state, _)| *state == ZoneState::FullDisruption) {
            return Leave::Never;
        }
        if is_leaving {
            return Leave::Now;
        }
        let (state, size) = states.get(zone).copied().unwrap_or((ZoneState::Normal, 0));
        let rate = match state {
            ZoneState::Normal | ZoneState::FullDisruption => self.rate,
            ZoneState::PartialDisruption if size > self.large => self.secondary_rate,
            ZoneState::PartialDisruption => 0.0,
        };
        if rate <= 0.0 {
            return Leave::After(Duration::MAX);
        }
        let mut next = self.next.lock();
        next.retain(|zone, _| states.contains_key(zone));
        let at = next.entry(zone.to_owned()).or_insert(now);
        if *at > now {
            return Leave::After(*at - now);
        }
        *at =
            now + Duration::try_from_secs_f32(1.0 / rate).unwrap_or(Duration::from_secs(u64::from(u32::MAX)));
        Leave::Now
    }

    fn states(&self, now: Duration, nodes: impl FnOnce() -> Vec<(String, bool)>) -> Arc<States> {
        let changes = self.changes.load(Ordering::Relaxed);
        let mut known = self.known.lock();
        if let Some((at, when, states)) = &*known
            && *at == changes
            && now < *when + GOOD_FOR
        {
            return states.clone();
        }
        let mut counts: BTreeMap<String, (usize, usize)> = BTreeMap::new();
        for (zone, is_ready) in nodes() {
            let (ready, silent) = counts.entry(zone).or_default();
            *(if is_ready { ready } else { silent }) += 1;
        }
        let state = |(ready, silent)| (compute(ready, silent, self.threshold), ready + silent);
        let states: Arc<States> =
            Arc::new(counts.into_iter().map(|(zone, counts)| (zone, state(counts))).collect());
        *known = Some((changes, now, states.clone()));
        states
    }
}

/// `ComputeZoneState`
fn compute(ready: usize, silent: usize, threshold: f32) -> ZoneState {
    let share = silent as f32 / (ready + silent).max(1) as f32;
    match (ready, silent) {
        (0, 1..) => ZoneState::FullDisruption,
        (_, silent) if silent > FEW && share >= threshold => ZoneState::PartialDisruption,
        _ => ZoneState::Normal,
    }
}

/// `GetZoneKey`
pub(super) fn zone_of(node: &Object) -> String {
    let label = |names: [&str; 2]| {
        let labels = &node.metadata.labels;
        names.iter().find_map(|name| labels.get(*name)).map(String::as_str).unwrap_or_default()
    };
    let region = label(["topology.kubernetes.io/region", "failure-domain.beta.kubernetes.io/region"]);
    let zone = label(["topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"]);
    format!("{region}:\0:{zone}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn nodes(counts: &[(&str, usize, usize)]) -> Vec<(String, bool)> {
        let of = |(zone, ready, silent): &(&str, usize, usize)| {
            let zone = (*zone).to_owned();
            let all = [true].repeat(*ready).into_iter().chain([false].repeat(*silent));
            all.map(move |is_ready| (zone.clone(), is_ready)).collect::<Vec<_>>()
        };
        counts.iter().flat_map(of).collect()
    }

    #[test]
    fn a_zone_is_as_its_nodes_are() {
        let states =
            [(3, 0), (0, 1), (1, 2), (2, 3), (5, 5)].map(|(ready, silent)| compute(ready, silent, 0.55));
        use ZoneState::{FullDisruption, Normal, PartialDisruption};
        assert_eq!(states, [Normal, FullDisruption, Normal, PartialDisruption, Normal]);
    }

    #[test]
    fn one_node_leaves_in_ten_seconds() {
        let zones = Zones::new(&ControllerManagerOptions::default());
        let look = |at: Duration| zones.leave("a", false, at, || nodes(&[("a", 10, 2)]));
        assert_eq!(look(SECOND), Leave::Now);
        assert_eq!(look(2 * SECOND), Leave::After(9 * SECOND));
        assert_eq!(look(11 * SECOND), Leave::Now);
    }

    #[test]
    fn much_silence_slows_down_and_all_silence_stops() {
        let zones = Zones::new(&ControllerManagerOptions::default());
        let look = |counts: &[(&str, usize, usize)], is_leaving| {
            zones.note_change();
            zones.leave("a", is_leaving, SECOND, || nodes(counts))
        };
        // A small zone waits; a large one goes on, slowly.
        assert_eq!(look(&[("a", 2, 8), ("b", 1, 0)], false), Leave::After(Duration::MAX));
        assert_eq!(look(&[("a", 20, 80), ("b", 1, 0)], false), Leave::Now);
        assert!(matches!(look(&[("a", 20, 80)], false), Leave::After(wait) if wait > 99 * SECOND));
        assert_eq!(look(&[("a", 0, 3)], true), Leave::Never);
        assert_eq!(look(&[("a", 0, 3), ("b", 1, 0)], true), Leave::Now);
    }
}
