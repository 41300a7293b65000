//! Fits the desired endpoints into the slices that there are, so that as few as possible are written
//! (`reconcileByPortMapping`). Pure.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::desired::EndpointGroup;
use apimachinery::object::Object;
use apis::views::endpoints::{Endpoint, EndpointSlice};

/// Upstream's `--max-endpoints-per-slice`.
pub(crate) const MAX_ENDPOINTS_PER_SLICE: usize = 100;

/// What has to be written.
#[derive(Default)]
pub(crate) struct SlicePlan {
    /// Created or updated.
    pub write: Vec<Packed>,
    /// Deleted afterwards, so that no endpoint is missing in between.
    pub delete: Vec<Arc<Object>>,
}

/// The future content of a slice.
pub(crate) struct Packed {
    /// None for a new one.
    pub slice: Option<Arc<Object>>,
    /// What its endpoints share.
    pub group: EndpointGroup,
    /// All of them.
    pub endpoints: Vec<Endpoint>,
}

/// What to do about `slices` so that they hold `groups`, at most `most` endpoints each, and bear `labels`.
pub(crate) fn plan(
    slices: Vec<Arc<Object>>,
    groups: BTreeMap<EndpointGroup, Vec<Endpoint>>,
    labels: &BTreeMap<String, String>,
    most: usize,
) -> SlicePlan {
    let mut plan = SlicePlan::default();
    let mut by_group: BTreeMap<EndpointGroup, Vec<Arc<Object>>> = BTreeMap::new();
    let mut strays = Vec::new();
    for slice in slices {
        match groups.keys().find(|group| is_of(&slice, group)) {
            Some(group) => by_group.entry(group.clone()).or_default().push(slice),
            None => strays.push(slice),
        }
    }
    for (group, endpoints) in groups {
        let slices = by_group.remove(&group).unwrap_or_default();
        plan_group(&mut plan, slices, &mut strays, (group, endpoints), labels, most);
    }
    plan.delete.extend(strays);
    plan
}

fn is_of(slice: &Object, group: &EndpointGroup) -> bool {
    let view = slice.view::<EndpointSlice>();
    let mut ports = view.ports.clone();
    ports.sort();
    view.address_type == group.address_type && ports == group.ports
}

/// Endpoints stay where they are; new ones go first into slices that are written anyway, then into the
/// fullest that takes them all, then into new slices.
fn plan_group(
    plan: &mut SlicePlan,
    slices: Vec<Arc<Object>>,
    strays: &mut Vec<Arc<Object>>,
    (group, endpoints): (EndpointGroup, Vec<Endpoint>),
    labels: &BTreeMap<String, String>,
    most: usize,
) {
    let mut wanted: BTreeMap<String, Endpoint> =
        endpoints.into_iter().map(|it| (identity(&it), it)).collect();
    let has_any = !wanted.is_empty();
    let mut kept: Vec<(Arc<Object>, Vec<Endpoint>, bool)> = slices
        .into_iter()
        .map(|slice| {
            let current = slice.view::<EndpointSlice>();
            let stay = current.endpoints.iter().filter_map(|it| wanted.remove(&identity(it)));
            let endpoints: Vec<Endpoint> = stay.collect();
            let differs = endpoints != current.endpoints || slice.metadata.labels != *labels;
            (slice, endpoints, differs)
        })
        .collect();
    let mut new: Vec<Endpoint> = wanted.into_values().collect();
    for (_, endpoints, _) in kept.iter_mut().filter(|(_, _, differs)| *differs) {
        let room = most.saturating_sub(endpoints.len()).min(new.len());
        endpoints.extend(new.drain(..room));
    }
    let fits = |(_, endpoints, _): &&mut (Arc<Object>, Vec<Endpoint>, bool)| {
        !new.is_empty() && endpoints.len() + new.len() <= most
    };
    if let Some((_, endpoints, differs)) = kept.iter_mut().filter(fits).max_by_key(|(_, it, _)| it.len()) {
        endpoints.append(&mut new);
        *differs = true;
    }
    let mut is_placed = false;
    for (slice, endpoints, differs) in kept {
        // The last empty slice of a service without endpoints is what shows that there are none.
        if endpoints.is_empty() && (has_any || is_placed) {
            plan.delete.push(slice);
            continue;
        }
        is_placed = true;
        if differs {
            plan.write.push(Packed { slice: Some(slice), group: group.clone(), endpoints });
        }
    }
    let chunks: Vec<Vec<Endpoint>> = if new.is_empty() && !is_placed {
        vec![vec![]]
    } else {
        new.chunks(most).map(<[Endpoint]>::to_vec).collect()
    };
    for endpoints in chunks {
        let same_type =
            strays.iter().position(|stray| stray.view::<EndpointSlice>().address_type == group.address_type);
        let slice = same_type.map(|at| strays.remove(at));
        plan.write.push(Packed { slice, group: group.clone(), endpoints });
    }
}

/// What makes it the same endpoint, though its conditions differ: its pod and its addresses.
pub(super) fn identity(endpoint: &Endpoint) -> String {
    let pod = endpoint.target_ref.as_ref().map_or("", |target| target.uid.as_str());
    format!("{pod}/{}", endpoint.addresses.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn group(ports: &[i64]) -> EndpointGroup {
        let port = |number: &i64| apis::views::endpoints::EndpointPort {
            port: Some(*number),
            protocol: "TCP".into(),
            ..Default::default()
        };
        EndpointGroup { address_type: "IPv4", ports: ports.iter().map(port).collect() }
    }

    fn endpoints(numbers: std::ops::Range<usize>) -> Vec<Endpoint> {
        numbers
            .map(|number| Endpoint { addresses: vec![format!("10.0.0.{number}")], ..Default::default() })
            .collect()
    }

    fn slice(name: &str, group: &EndpointGroup, endpoints: &[Endpoint]) -> Arc<Object> {
        let tree = json!({
            "metadata": {"name": name}, "addressType": "IPv4", "ports": group.ports, "endpoints": endpoints});
        Arc::new(Object::from_value(&tree, vec![]).unwrap())
    }

    fn sizes(plan: &SlicePlan) -> Vec<(Option<String>, usize)> {
        let name = |slice: &Arc<Object>| slice.metadata.name.clone();
        plan.write.iter().map(|it| (it.slice.as_ref().map(name), it.endpoints.len())).collect()
    }

    #[test]
    fn endpoints_fill_slices_of_a_hundred() {
        let labels = BTreeMap::new();
        let first =
            plan(vec![], [(group(&[80]), endpoints(0..250))].into(), &labels, MAX_ENDPOINTS_PER_SLICE);
        assert_eq!(sizes(&first), [(None, 100), (None, 100), (None, 50)]);
        let none = plan(vec![], [(group(&[]), vec![])].into(), &labels, MAX_ENDPOINTS_PER_SLICE);
        assert_eq!(sizes(&none), [(None, 0)]);
    }

    #[test]
    fn what_is_right_is_not_written() {
        let (labels, group) = (BTreeMap::new(), group(&[80]));
        let full = slice("full", &group, &endpoints(0..100));
        let half = slice("half", &group, &endpoints(100..150));
        let same = plan(
            vec![full.clone(), half.clone()],
            [(group.clone(), endpoints(0..150))].into(),
            &labels,
            MAX_ENDPOINTS_PER_SLICE,
        );
        assert!(same.write.is_empty() && same.delete.is_empty());
        let grown = plan(
            vec![full.clone(), half.clone()],
            [(group.clone(), endpoints(0..160))].into(),
            &labels,
            MAX_ENDPOINTS_PER_SLICE,
        );
        assert_eq!(sizes(&grown), [(Some("half".into()), 60)]);
        let moved = plan(
            vec![full, half.clone()],
            [(group.clone(), endpoints(10..160))].into(),
            &labels,
            MAX_ENDPOINTS_PER_SLICE,
        );
        assert_eq!(sizes(&moved), [(Some("full".into()), 100)]);
        let gone = plan(vec![half], [(group, vec![])].into(), &labels, MAX_ENDPOINTS_PER_SLICE);
        assert_eq!(sizes(&gone), [(Some("half".into()), 0)]);
    }

    #[test]
    fn slices_of_other_ports_are_used_again_or_deleted() {
        let labels = BTreeMap::new();
        let old = [slice("a", &group(&[80]), &endpoints(0..2)), slice("b", &group(&[81]), &endpoints(2..4))];
        let plan =
            plan(old.to_vec(), [(group(&[90]), endpoints(0..2))].into(), &labels, MAX_ENDPOINTS_PER_SLICE);
        assert_eq!(sizes(&plan), [(Some("a".into()), 2)]);
        assert_eq!(plan.delete.len(), 1);
    }
}
