//! How many endpoints each zone is due, by its share of the nodes' CPUs (`topologycache.SetNodes`,
//! `getAllocations`). Pure.

use std::collections::BTreeMap;
use std::sync::Arc;

use apimachinery::object::Object;
use apimachinery::quantity::Quantity;
use apis::core::node_labels::ZONE;
use apis::views::meta::is_true;
use apis::views::node::Node;

/// Nodes with one of these run the cluster itself, and do not count.
const EXCLUDED: [&str; 2] = ["node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"];
/// No endpoint may be asked for so much more than its share (`overloadThreshold`).
const OVERLOAD_THRESHOLD: f64 = 0.2;

const INSUFFICIENT_NODES: &str =
    "Insufficient Node information: allocatable CPU or zone not specified on one or more nodes";
const FEW_ENDPOINTS: &str = "Insufficient number of endpoints";
const OVERLOAD: &str =
    "Unable to allocate minimum required endpoints to each zone without exceeding overload threshold";

/// Why a service has no hints.
#[derive(Debug, PartialEq)]
pub(super) struct NoHints(pub(super) String);

/// How many endpoints are there for each zone.
pub(super) type EndpointsByZone = BTreeMap<String, usize>;

/// What part of all CPUs each zone has.
#[derive(Debug, Default, PartialEq)]
pub(super) struct CpuRatios(BTreeMap<String, f64>);

/// How many endpoints a zone may have, and how many it should (`allocation`).
#[derive(Debug, PartialEq)]
pub(super) struct ZoneShare {
    /// No more.
    pub(super) maximum: usize,
    /// As near to it as can be.
    pub(super) desired: f64,
}

/// What of a node counts here; nothing for one that does not count.
pub(super) fn cpu_of(node: &Object) -> Option<(Option<String>, i64)> {
    let (view, labels) = (node.view::<Node>(), &node.metadata.labels);
    if EXCLUDED.iter().any(|label| labels.contains_key(*label)) || !is_true(&view.status.conditions, "Ready")
    {
        return None;
    }
    let cpu = view.status.allocatable.get("cpu").and_then(|cpu| Quantity::parse(cpu).ok());
    let zone = labels.get(ZONE).filter(|zone| !zone.is_empty()).cloned();
    Some((zone, cpu.map_or(0, |cpu| cpu.milli_value())))
}

#[allow(clippy::cast_precision_loss, reason = "shares need no more than a float has")]
fn float(number: usize) -> f64 {
    number as f64
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of a count is one")]
fn least(share: f64) -> usize {
    (share / (1.0 + OVERLOAD_THRESHOLD)).ceil() as usize
}

impl CpuRatios {
    /// Of the nodes that count; nothing when one of them does not say enough, or all are in one zone.
    pub(super) fn of(nodes: &[Arc<Object>]) -> CpuRatios {
        let mut by_zone: BTreeMap<String, i64> = BTreeMap::new();
        for (zone, cpu) in nodes.iter().filter_map(|node| cpu_of(node)) {
            let (Some(zone), 1..) = (zone, cpu) else { return CpuRatios::default() };
            let sum = by_zone.entry(zone).or_default();
            *sum = sum.saturating_add(cpu);
        }
        if by_zone.len() < 2 {
            return CpuRatios::default();
        }
        let float = |cpu: i64| float(usize::try_from(cpu).unwrap_or(usize::MAX));
        let total: f64 = by_zone.values().map(|cpu| float(*cpu)).sum();
        CpuRatios(by_zone.into_iter().map(|(zone, cpu)| (zone, float(cpu) / total)).collect())
    }

    /// What each zone gets of so many endpoints.
    ///
    /// # Errors
    /// Why they cannot be shared out.
    pub(super) fn allocate(&self, endpoints: usize) -> Result<BTreeMap<String, ZoneShare>, NoHints> {
        let counted = |why: &str| NoHints(format!("{why} ({endpoints} endpoints, {} zones)", self.0.len()));
        if self.0.is_empty() {
            return Err(NoHints(INSUFFICIENT_NODES.to_owned()));
        }
        if self.0.len() > endpoints {
            return Err(counted(FEW_ENDPOINTS));
        }
        let minimum = |ratio: f64| least(ratio * float(endpoints));
        let at_least: usize = self.0.values().map(|ratio| minimum(*ratio)).sum();
        let spare = endpoints.checked_sub(at_least).ok_or_else(|| counted(OVERLOAD))?;
        let share = |ratio: f64| ZoneShare {
            maximum: minimum(ratio) + spare,
            desired: (ratio * float(endpoints)).max(float(minimum(ratio))),
        };
        Ok(self.0.iter().map(|(zone, ratio)| (zone.clone(), share(*ratio))).collect())
    }

    /// Whether a zone has too few of a service's endpoints (`serviceOverloaded`).
    pub(super) fn overload(&self, given: &EndpointsByZone) -> bool {
        let total: usize = given.values().sum();
        let has_few =
            |(zone, ratio): (&String, &f64)| given.get(zone).copied() < Some(least(float(total) * ratio));
        !given.is_empty() && (self.0.is_empty() || self.0.iter().any(has_few))
    }
}

/// Who gives endpoints and who gets them, so that each zone comes near to what it should have
/// (`getGivingAndReceivingZones`).
pub(super) fn exchange(
    shares: &BTreeMap<String, ZoneShare>,
    given: &EndpointsByZone,
) -> (EndpointsByZone, EndpointsByZone) {
    let surplus = |(zone, share): (&String, &ZoneShare)| {
        (zone.clone(), float(given.get(zone).copied().unwrap_or(0)) - share.desired)
    };
    let mut surpluses: BTreeMap<String, f64> = shares.iter().map(surplus).collect();
    let mut giving = EndpointsByZone::new();
    let mut receiving = EndpointsByZone::new();
    loop {
        let most = |sign: f64| {
            let signed = surpluses.iter().map(|(zone, surplus)| (zone.clone(), surplus * sign));
            signed.filter(|(_, surplus)| *surplus > 0.0).max_by(|a, b| a.1.total_cmp(&b.1))
        };
        let (Some((giver, gives)), Some((receiver, gets))) = (most(1.0), most(-1.0)) else { break };
        if (gives < 1.0 && gets < 1.0) || gives < 0.5 || gets < 0.5 {
            break;
        }
        *giving.entry(giver.clone()).or_default() += 1;
        *receiving.entry(receiver.clone()).or_default() += 1;
        *surpluses.entry(giver).or_default() -= 1.0;
        *surpluses.entry(receiver).or_default() += 1.0;
    }
    (giving, receiving)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn node(name: &str, zone: &str, cpu: &str, ready: &str) -> Arc<Object> {
        let tree = json!({
            "metadata": {"name": name, "labels": {ZONE: zone}},
            "status": {"allocatable": {"cpu": cpu}, "conditions": [{"type": "Ready", "status": ready}]},
        });
        Arc::new(Object::from_value(&tree, vec![]).unwrap())
    }

    fn ratios(zones: &[(&str, f64)]) -> CpuRatios {
        CpuRatios(zones.iter().map(|(zone, ratio)| ((*zone).to_owned(), *ratio)).collect())
    }

    /// Of upstream's `TestSetNodes`.
    #[test]
    fn zones_have_the_cpus_of_nodes_that_count() {
        let two = [node("a", "a", "1000m", "True"), node("b", "b", "3", "True")];
        assert_eq!(CpuRatios::of(&two), ratios(&[("a", 0.25), ("b", 0.75)]));
        let silent = [two[0].clone(), two[1].clone(), node("c", "", "8", "False")];
        assert_eq!(CpuRatios::of(&silent), CpuRatios::of(&two), "one that is not ready does not count");
        for bad in [node("c", "", "8", "True"), node("c", "c", "0", "True")] {
            let nodes = [two[0].clone(), two[1].clone(), bad];
            assert_eq!(CpuRatios::of(&nodes), CpuRatios::default());
        }
        assert_eq!(CpuRatios::of(&two[..1]), CpuRatios::default(), "one zone");
    }

    /// Of upstream's `TestGetAllocations`.
    #[test]
    fn endpoints_are_shared_out_by_zones() {
        let said = |ratios: &CpuRatios, endpoints| {
            let allocated = ratios.allocate(endpoints).map_err(|why| why.0)?;
            Ok::<_, String>(allocated.into_values().map(|it| (it.maximum, it.desired)).collect::<Vec<_>>())
        };
        assert_eq!(said(&ratios(&[]), 3), Err(INSUFFICIENT_NODES.to_owned()));
        let thirds = ratios(&[("a", 1.0 / 3.0), ("b", 1.0 / 3.0), ("c", 1.0 / 3.0)]);
        assert_eq!(said(&thirds, 2), Err(format!("{FEW_ENDPOINTS} (2 endpoints, 3 zones)")));
        assert_eq!(said(&ratios(&[("a", 0.5), ("b", 0.5)]), 2), Ok(vec![(1, 1.0), (1, 1.0)]));
        let uneven = ratios(&[("a", 0.8), ("b", 0.1), ("c", 0.1)]);
        assert_eq!(said(&uneven, 3), Err(format!("{OVERLOAD} (3 endpoints, 3 zones)")));
        assert_eq!(said(&ratios(&[("a", 0.25), ("b", 0.75)]), 4), Ok(vec![(1, 1.0), (3, 3.0)]));
        // 2.5 each: at least 3 of 5 would be needed twice.
        let odd = said(&ratios(&[("a", 0.5), ("b", 0.5)]), 5);
        assert_eq!(odd, Err(format!("{OVERLOAD} (5 endpoints, 2 zones)")));
    }

    #[test]
    fn zones_give_what_others_lack() {
        let of = |counts: &[(&str, usize)]| -> EndpointsByZone {
            counts.iter().map(|(zone, count)| ((*zone).to_owned(), *count)).collect()
        };
        let shares = ratios(&[("a", 0.25), ("b", 0.75)]).allocate(4).unwrap();
        assert_eq!(exchange(&shares, &of(&[("a", 3), ("b", 1)])), (of(&[("a", 2)]), of(&[("b", 2)])));
        assert_eq!(exchange(&shares, &of(&[("a", 1), ("b", 3)])), (of(&[]), of(&[])));
        let shared = ratios(&[("a", 0.25), ("b", 0.75)]);
        assert!(shared.overload(&of(&[("a", 4)])) && shared.overload(&of(&[("a", 2), ("b", 2)])));
        assert!(!shared.overload(&of(&[("a", 1), ("b", 3)])) && !shared.overload(&of(&[])));
        assert!(CpuRatios::default().overload(&of(&[("a", 1), ("b", 3)])), "no longer known");
    }
}
