//! How fast nodes may lose their pods: by zone, slower where much of it is silent, and not at all when
//! nobody is heard of, since then it is rather our own connection (`handleDisruption`, `ComputeZoneState`).

use std::collections::BTreeMap;
use std::time::Duration;

use component_base::metrics::{Family, Render, gauge};
use sync::Mutex;

use crate::options::ControllerManagerOptions;
use apimachinery::object::Object;
use apis::core::node_labels::{OLDER_REGION, OLDER_ZONE, REGION, ZONE};

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

/// A node: its name, its zone, and whether it is ready.
pub(super) type ZoneNode = (String, String, bool);

/// How many nodes of each zone are ready and how many are silent, kept as nodes come, change and go: nobody
/// counts them all again.
#[derive(Default)]
struct ZoneCounts {
    /// By node: its zone, and whether it is ready. Bound: the nodes.
    nodes: BTreeMap<String, (String, bool)>,
    /// By zone, with one of the nodes at least.
    zones: BTreeMap<String, (usize, usize)>,
    /// Those that there were from the start are among them.
    is_filled: bool,
}

impl ZoneCounts {
    fn put(&mut self, (node, zone, is_ready): ZoneNode) {
        let is_same = |(old, was_ready): &(String, bool)| *old == zone && *was_ready == is_ready;
        if self.nodes.get(&node).is_some_and(is_same) {
            return;
        }
        self.remove(&node);
        let (ready, silent) = self.zones.entry(zone.clone()).or_default();
        *(if is_ready { ready } else { silent }) += 1;
        self.nodes.insert(node, (zone, is_ready));
    }

    fn remove(&mut self, node: &str) {
        let Some((zone, was_ready)) = self.nodes.remove(node) else { return };
        let Some((ready, silent)) = self.zones.get_mut(&zone) else { return };
        *(if was_ready { &mut *ready } else { &mut *silent }) -= 1;
        if *ready + *silent == 0 {
            self.zones.remove(&zone);
        }
    }
}

/// The zones of a cluster.
pub(super) struct Zones {
    rate: f32,
    secondary_rate: f32,
    threshold: f32,
    large: usize,
    counts: Mutex<ZoneCounts>,
    /// When the next node of a zone may leave. Bound: the zones that there were.
    next: Mutex<BTreeMap<String, Duration>>,
    evictions: Family<1>,
}

impl Render for Zones {
    fn render(&self, out: &mut String) {
        self.evictions.render(out);
        let zones = self.counts.lock().zones.clone();
        for (name, help, value) in ZONE_GAUGES {
            let of_zone =
                |(zone, (ready, silent)): (&String, &(usize, usize))| ([shown(zone)], value(*ready, *silent));
            gauge(out, (name, help), ["zone"], zones.iter().map(of_zone));
        }
    }
}

/// The separators in a zone's key are not for people.
fn shown(zone: &str) -> String {
    zone.replace('\0', "")
}

type ZoneGauge = (&'static str, &'static str, fn(usize, usize) -> usize);
const ZONE_GAUGES: [ZoneGauge; 3] = [
    (
        "node_collector_unhealthy_nodes_in_zone",
        "[ALPHA] Gauge measuring number of not Ready Nodes per zones.",
        |_, silent| silent,
    ),
    (
        "node_collector_zone_health",
        "[ALPHA] Gauge measuring percentage of healthy nodes per zone.",
        |ready, silent| 100 * ready / (ready + silent).max(1),
    ),
    (
        "node_collector_zone_size",
        "[ALPHA] Gauge measuring number of registered Nodes per zones.",
        |ready, silent| ready + silent,
    ),
];

impl Zones {
    pub(super) fn new(options: &ControllerManagerOptions) -> Zones {
        Zones {
            rate: options.node_eviction_rate,
            secondary_rate: options.secondary_node_eviction_rate,
            threshold: options.unhealthy_zone_threshold,
            large: options.large_cluster_size_threshold as usize,
            counts: Mutex::default(),
            next: Mutex::default(),
            evictions: Family::counter(
                "node_collector_evictions_total",
                "[STABLE] Number of Node evictions that happened since current instance of NodeController started.",
                ["zone"],
            ),
        }
    }

    /// A node is there, and like this.
    pub(super) fn note(&self, node: ZoneNode) {
        self.counts.lock().put(node);
    }

    /// A node is gone.
    pub(super) fn forget(&self, node: &str) {
        self.counts.lock().remove(node);
    }

    /// Whether a node of this zone may lose its pods, or goes on losing them. Who may has used up what the
    /// zone may lose for a while. Whoever asks first says which nodes there are.
    pub(super) fn leave(
        &self,
        zone: &str,
        is_leaving: bool,
        now: Duration,
        nodes: impl FnOnce() -> Vec<ZoneNode>,
    ) -> Leave {
        let mut counts = self.counts.lock();
        if !std::mem::replace(&mut counts.is_filled, true) {
            nodes().into_iter().for_each(|node| counts.put(node));
        }
        let state = |(ready, silent): &(usize, usize)| compute(*ready, *silent, self.threshold);
        if counts.zones.values().all(|zone| state(zone) == ZoneState::FullDisruption) {
            return Leave::Never;
        }
        if is_leaving {
            return Leave::Now;
        }
        let own = counts.zones.get(zone).copied().unwrap_or_default();
        let rate = self.rate(state(&own), own.0 + own.1);
        self.next.lock().retain(|zone, _| counts.zones.contains_key(zone));
        drop(counts);
        self.take_turn(zone, rate, now)
    }

    /// How many nodes of a zone may leave in a second.
    fn rate(&self, state: ZoneState, size: usize) -> f32 {
        match state {
            ZoneState::Normal | ZoneState::FullDisruption => self.rate,
            ZoneState::PartialDisruption if size > self.large => self.secondary_rate,
            ZoneState::PartialDisruption => 0.0,
        }
    }

    fn take_turn(&self, zone: &str, rate: f32, now: Duration) -> Leave {
        if rate <= 0.0 {
            return Leave::After(Duration::MAX);
        }
        let mut next = self.next.lock();
        let at = next.entry(zone.to_owned()).or_insert(now);
        if *at > now {
            return Leave::After(*at - now);
        }
        *at =
            now + Duration::try_from_secs_f32(1.0 / rate).unwrap_or(Duration::from_secs(u64::from(u32::MAX)));
        self.evictions.count([&shown(zone)]);
        Leave::Now
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

/// `GetZoneKey`: the older labels count more; nothing where there is none.
pub(super) fn zone_of(node: &Object) -> String {
    let label = |names: [&str; 2]| {
        let labels = &node.metadata.labels;
        names.iter().find_map(|name| labels.get(*name)).map(String::as_str).unwrap_or_default()
    };
    let region = label([OLDER_REGION, REGION]);
    let zone = label([OLDER_ZONE, ZONE]);
    if region.is_empty() && zone.is_empty() { String::new() } else { format!("{region}:\0:{zone}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn nodes(counts: &[(&str, usize, usize)]) -> Vec<ZoneNode> {
        let of = |(zone, ready, silent): &(&str, usize, usize)| {
            let zone = (*zone).to_owned();
            let all = [true].repeat(*ready).into_iter().chain([false].repeat(*silent)).enumerate();
            all.map(move |(at, is_ready)| (format!("{zone}-{at}"), zone.clone(), is_ready))
                .collect::<Vec<_>>()
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
    fn a_zone_is_named_by_the_older_labels_first() {
        let zone = |labels: serde_json::Value| {
            let tree = serde_json::json!({"metadata": {"name": "n", "labels": labels}});
            zone_of(&Object::from_value(&tree, vec![]).unwrap())
        };
        assert_eq!(zone(serde_json::json!({})), "");
        assert_eq!(zone(serde_json::json!({ZONE: "a"})), ":\0:a");
        assert_eq!(zone(serde_json::json!({ZONE: "a", REGION: "r", OLDER_ZONE: "b"})), "r:\0:b");
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
        let zones = || Zones::new(&ControllerManagerOptions::default());
        let look = |counts: &[(&str, usize, usize)], is_leaving| {
            zones().leave("a", is_leaving, SECOND, || nodes(counts))
        };
        // A small zone waits; a large one goes on, slowly.
        assert_eq!(look(&[("a", 2, 8), ("b", 1, 0)], false), Leave::After(Duration::MAX));
        let large = zones();
        let look_at_large = || large.leave("a", false, SECOND, || nodes(&[("a", 20, 80), ("b", 1, 0)]));
        assert_eq!(look_at_large(), Leave::Now);
        assert!(matches!(look_at_large(), Leave::After(wait) if wait > 99 * SECOND));
        assert_eq!(look(&[("a", 0, 3)], true), Leave::Never);
        assert_eq!(look(&[("a", 0, 3), ("b", 1, 0)], true), Leave::Now);
    }

    #[test]
    fn what_becomes_of_nodes_is_counted_as_it_comes() {
        let zones = Zones::new(&ControllerManagerOptions::default());
        let look = || zones.leave("a", true, SECOND, || nodes(&[("a", 0, 1), ("b", 0, 1)]));
        assert_eq!(look(), Leave::Never, "all are silent");
        let node = |zone: &str, is_ready| (format!("{zone}-0"), zone.to_owned(), is_ready);
        zones.note(node("b", true));
        assert_eq!(look(), Leave::Now);
        zones.note(node("b", false));
        assert_eq!(look(), Leave::Never);
        zones.note(("b-0".into(), "c".into(), true));
        assert_eq!(zones.counts.lock().zones.keys().collect::<Vec<_>>(), ["a", "c"], "it has moved");
        zones.forget("b-0");
        zones.forget("b-0");
        assert_eq!(look(), Leave::Never);
        let mut page = String::new();
        zones.render(&mut page);
        for line in
            ["unhealthy_nodes_in_zone{zone=\"a\"} 1", "zone_size{zone=\"a\"} 1", "zone_health{zone=\"a\"} 0"]
        {
            assert!(page.contains(&format!("node_collector_{line}\n")), "{line}: {page}");
        }
    }
}
