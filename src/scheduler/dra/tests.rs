//! Which devices are given to which claims.

use std::sync::Arc;

use serde_json::{Value, json};

use super::allocator::{DeviceSearch, SelectorCache, Wish};
use super::in_use::InUse;
use super::pools::{published, reachable};
use super::requests::{AllocationError, of_claim};
use crate::fixtures::object;
use apimachinery::object::{Object, ObjectMeta};
use apis::tree::{items, text};
use entropy::Entropy;

fn class(spec: Value) -> Arc<Object> {
    object(json!({"metadata": {"name": "gpu"}, "spec": spec}))
}

fn slice(node: Value, devices: Value, more: Value) -> Arc<Object> {
    let mut spec = json!({"driver": "gpu.example.com", "devices": devices,
        "pool": {"name": "pool", "generation": 1, "resourceSliceCount": 1}});
    json_patch::merge(&mut spec, &node);
    json_patch::merge(&mut spec, &more);
    object(json!({"metadata": {"name": "slice"}, "spec": spec}))
}

/// Four GPUs of a node `a`, of which the last is of another model.
fn gpus() -> Arc<Object> {
    let gpu = |index: i64, model: &str| {
        json!({"name": format!("gpu-{index}"), "attributes": {"index": {"int": index}, "model": {"string": model}},
            "capacity": {"memory": {"value": "80Gi"}}})
    };
    let all = json!([gpu(0, "new"), gpu(1, "new"), gpu(2, "new"), gpu(3, "old")]);
    slice(json!({"nodeName": "a"}), all, json!({}))
}

fn claim(requests: Value, more: Value) -> Value {
    let mut devices = json!({ "requests": requests });
    json_patch::merge(&mut devices, &more);
    json!({"metadata": {"name": "c", "namespace": "ns", "uid": "c"}, "spec": {"devices": devices}})
}

fn one(more: Value) -> Value {
    let mut request = json!({"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1});
    json_patch::merge(&mut request, &more);
    json!({"name": "r", "exactly": request})
}

fn node(name: &str) -> ObjectMeta {
    let labels = [("zone".to_owned(), "1".to_owned())].into();
    ObjectMeta { name: name.into(), labels, ..ObjectMeta::default() }
}

fn allocate_on(
    name: &str,
    slices: &[Arc<Object>],
    claims: &[Value],
    taken: &[Value],
) -> Result<Option<Vec<Value>>, AllocationError> {
    let of_class = |name: &str| (name == "gpu").then(|| class(json!({})));
    let wishes: Result<Vec<Wish>, AllocationError> =
        claims.iter().map(|claim| Ok(Wish::new(claim.clone(), of_claim(claim, &of_class)?))).collect();
    let (wishes, selectors) = (wishes?, SelectorCache::default());
    let wishes: Vec<&Wish> = wishes.iter().collect();
    let pools = reachable(&published(slices), &node(name));
    let mut in_use = InUse::default();
    taken.iter().for_each(|allocation| in_use.add(allocation));
    DeviceSearch::new(&wishes, &pools, &selectors, &in_use).run(&Entropy::seeded(7))
}

/// The devices of the first claim on node `a`; nothing when there are none.
fn devices(slices: &[Arc<Object>], claims: &[Value], taken: &[Value]) -> Vec<String> {
    let found = allocate_on("a", slices, claims, taken).unwrap();
    let all = found.into_iter().flatten().flat_map(|it| items(&it, "devices.results").to_vec());
    all.map(|result| text(&result, "device").to_owned()).collect()
}

fn took(device: &str) -> Value {
    json!({"devices": {"results": [{"driver": "gpu.example.com", "pool": "pool", "device": device}]}})
}

#[test]
fn devices_are_counted_selected_and_given_once() {
    let cel = |expression: &str| json!([{"cel": {"expression": expression}}]);
    let old = "device.attributes['gpu.example.com'].model == 'old'";
    let cases: Vec<(Value, Vec<Value>, &[&str])> = vec![
        (json!([one(json!({}))]), vec![], &["gpu-0"]),
        (json!([one(json!({}))]), vec![took("gpu-0")], &["gpu-1"]),
        (json!([one(json!({"count": 4}))]), vec![], &["gpu-0", "gpu-1", "gpu-2", "gpu-3"]),
        (json!([one(json!({"count": 5}))]), vec![], &[]),
        (json!([one(json!({"selectors": cel(old)}))]), vec![], &["gpu-3"]),
        (json!([one(json!({"selectors": cel(old)}))]), vec![took("gpu-3")], &[]),
        (json!([one(json!({"selectors": cel(old), "adminAccess": true}))]), vec![took("gpu-3")], &["gpu-3"]),
        (json!([one(json!({"allocationMode": "All"}))]), vec![], &["gpu-0", "gpu-1", "gpu-2", "gpu-3"]),
        (json!([one(json!({"allocationMode": "All"}))]), vec![took("gpu-2")], &[]),
    ];
    for (requests, taken, expected) in cases {
        assert_eq!(devices(&[gpus()], &[claim(requests.clone(), json!({}))], &taken), expected, "{requests}");
    }
    let wants = claim(json!([one(json!({}))]), json!({}));
    assert!(
        allocate_on("b", &[gpus()], std::slice::from_ref(&wants), &[]).unwrap().is_none(),
        "they are on a"
    );
    let two = devices(&[gpus()], &[wants.clone(), wants], &[]);
    assert_eq!(two, ["gpu-0", "gpu-1"], "two claims of a pod have different devices");
}

#[test]
fn later_requests_may_need_what_earlier_ones_took_first() {
    let first = json!({"name": "any", "exactly": {"deviceClassName": "gpu", "count": 3}});
    let cel = json!([{"cel": {"expression": "device.attributes['gpu.example.com'].index == 0"}}]);
    let second = json!({"name": "zero", "exactly": {"deviceClassName": "gpu", "selectors": cel}});
    let found = devices(&[gpus()], &[claim(json!([first, second]), json!({}))], &[]);
    assert_eq!(found, ["gpu-1", "gpu-2", "gpu-3", "gpu-0"]);
}

#[test]
fn alternatives_are_tried_in_their_order() {
    let alternative = |name: &str, count: i64| json!({"name": name, "deviceClassName": "gpu", "allocationMode": "ExactCount", "count": count});
    let request = json!({"name": "r", "firstAvailable": [alternative("many", 9), alternative("few", 2)]});
    let found = allocate_on("a", &[gpus()], &[claim(json!([request]), json!({}))], &[]).unwrap().unwrap();
    let names: Vec<&str> = items(&found[0], "devices.results").iter().map(|it| text(it, "request")).collect();
    assert_eq!(names, ["r/few", "r/few"]);
}

#[test]
fn devices_of_a_claim_have_something_in_common_or_not() {
    let same = json!({"constraints": [{"matchAttribute": "gpu.example.com/model"}]});
    let other = json!({"constraints": [{"distinctAttribute": "gpu.example.com/model"}]});
    let missing = json!({"constraints": [{"matchAttribute": "gpu.example.com/nothing"}]});
    let wants = |count: i64, more: &Value| claim(json!([one(json!({ "count": count }))]), more.clone());
    assert_eq!(devices(&[gpus()], &[wants(3, &same)], &[]), ["gpu-0", "gpu-1", "gpu-2"]);
    assert!(devices(&[gpus()], &[wants(4, &same)], &[]).is_empty());
    assert_eq!(devices(&[gpus()], &[wants(2, &other)], &[]), ["gpu-0", "gpu-3"]);
    assert!(devices(&[gpus()], &[wants(1, &missing)], &[]).is_empty());
}

#[test]
fn tainted_devices_are_for_those_who_bear_it() {
    let taint = json!({"key": "broken", "value": "yes", "effect": "NoSchedule"});
    let slices = [slice(json!({"allNodes": true}), json!([{"name": "gpu-0", "taints": [taint]}]), json!({}))];
    assert!(devices(&slices, &[claim(json!([one(json!({}))]), json!({}))], &[]).is_empty());
    for (toleration, is_borne) in [
        (json!({"key": "broken", "operator": "Exists"}), true),
        (json!({"operator": "Exists"}), true),
        (json!({"key": "broken", "value": "no"}), false),
        (json!({"key": "broken", "value": "yes", "effect": "NoExecute"}), false),
    ] {
        let wants = claim(json!([one(json!({"tolerations": [toleration]}))]), json!({}));
        assert_eq!(!devices(&slices, &[wants], &[]).is_empty(), is_borne, "{toleration}");
    }
}

#[test]
fn parts_of_a_device_share_its_counters() {
    let part = |name: &str, memory: &str| json!({"name": name, "consumesCounters": [{"counterSet": "gpu", "counters": {"memory": {"value": memory}}}]});
    let counters = json!({"sharedCounters": [{"name": "gpu", "counters": {"memory": {"value": "80Gi"}}}]});
    let all = json!([part("whole", "80Gi"), part("half-0", "40Gi"), part("half-1", "40Gi")]);
    let slices = [slice(json!({"nodeName": "a"}), all, counters)];
    let wants = claim(json!([one(json!({}))]), json!({}));
    assert_eq!(devices(&slices, std::slice::from_ref(&wants), &[]), ["whole"]);
    assert_eq!(devices(&slices, std::slice::from_ref(&wants), &[took("half-0")]), ["half-1"]);
    assert!(devices(&slices, std::slice::from_ref(&wants), &[took("whole")]).is_empty());
    let two = claim(json!([one(json!({"count": 2}))]), json!({}));
    assert_eq!(devices(&slices, &[two], &[]), ["half-0", "half-1"]);
}

#[test]
fn several_share_a_device_as_long_as_it_has_capacity() {
    let policy = json!({"default": "10Gi", "validRange": {"min": "10Gi", "step": "10Gi"}});
    let device = json!({"name": "nic", "allowMultipleAllocations": true,
        "capacity": {"bandwidth": {"value": "40Gi", "requestPolicy": policy}}});
    let slices = [slice(json!({"nodeName": "a"}), json!([device]), json!({}))];
    let wants = |amount: Option<&str>| match amount {
        Some(amount) => {
            claim(json!([one(json!({"capacity": {"requests": {"bandwidth": amount}}}))]), json!({}))
        }
        None => claim(json!([one(json!({}))]), json!({})),
    };
    let mut taken: Vec<Value> = Vec::new();
    for (amount, consumed) in [(Some("15Gi"), Some("20Gi")), (None, Some("10Gi")), (Some("11Gi"), None)] {
        let found = allocate_on("a", &slices, &[wants(amount)], &taken).unwrap();
        let result = found.as_ref().map(|found| found[0]["devices"]["results"][0].clone());
        let shown = result.as_ref().map(|result| text(&result["consumedCapacity"], "bandwidth"));
        assert_eq!(shown, consumed, "{amount:?}");
        assert!(result.is_none_or(|result| !text(&result, "shareID").is_empty()));
        taken.extend(found.into_iter().flatten());
    }
}

#[test]
fn what_is_given_says_where_pods_must_be_and_what_drivers_are_told() {
    let opaque = |name: &str| json!({"driver": "gpu.example.com", "parameters": {"from": name}});
    let config = json!({"config": [{"requests": ["r"], "opaque": opaque("claim")}]});
    let wants = claim(json!([one(json!({}))]), config);
    let found = allocate_on("a", &[gpus()], &[wants], &[]).unwrap().unwrap();
    let field = &found[0]["nodeSelector"]["nodeSelectorTerms"][0]["matchFields"][0];
    assert_eq!(*field, json!({"key": "metadata.name", "operator": "In", "values": ["a"]}));
    assert_eq!(found[0]["devices"]["config"][0]["source"], "FromClaim");
    let terms = json!({"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "Exists"}]}]});
    let in_zone = slice(json!({ "nodeSelector": terms }), json!([{"name": "x"}]), json!({}));
    let found =
        allocate_on("a", &[in_zone], &[claim(json!([one(json!({}))]), json!({}))], &[]).unwrap().unwrap();
    assert_eq!(found[0]["nodeSelector"], terms);
}

#[test]
fn what_drivers_publish_badly_is_left_alone() {
    let of = |generation: i64, count: i64, name: &str| {
        let pool = json!({"pool": {"name": "pool", "generation": generation, "resourceSliceCount": count}});
        slice(json!({"nodeName": "a"}), json!([{ "name": name }]), pool)
    };
    let wants = claim(json!([one(json!({}))]), json!({}));
    let take = |slices: &[Arc<Object>]| devices(slices, std::slice::from_ref(&wants), &[]);
    assert_eq!(take(&[of(1, 1, "old"), of(2, 1, "new")]), ["new"], "an older generation counts for nothing");
    assert!(take(&[of(1, 2, "half")]).is_empty(), "half of a pool is none");
    let all = claim(json!([one(json!({"allocationMode": "All"}))]), json!({}));
    let said = allocate_on("a", &[of(1, 2, "half")], &[all], &[]).unwrap_err().0;
    assert!(said.ends_with("resource pool gpu.example.com/pool is currently being updated"), "{said}");
    let bad = json!([{"cel": {"expression": "device.attributes['x'].y"}}]);
    let said = allocate_on("a", &[gpus()], &[claim(json!([one(json!({"selectors": bad}))]), json!({}))], &[]);
    assert!(
        said.unwrap_err().0.starts_with("claim ns/c: selector #0 on device gpu.example.com/pool/gpu-0: CEL")
    );
}

#[test]
fn a_search_that_leads_nowhere_ends() {
    let many: Vec<Value> = (0..60)
        .map(|index| json!({"name": format!("d{index}"), "attributes": {"i": {"int": index}}}))
        .collect();
    let slices = [slice(json!({"nodeName": "a"}), many.into(), json!({}))];
    let same = json!({"constraints": [{"distinctAttribute": "gpu.example.com/i"}, {"matchAttribute": "gpu.example.com/none", "requests": ["last"]}]});
    let first = json!({"name": "many", "exactly": {"deviceClassName": "gpu", "count": 20}});
    let last = json!({"name": "last", "exactly": {"deviceClassName": "gpu", "count": 1}});
    let wants = claim(json!([first, last]), same);
    assert!(allocate_on("a", &slices, &[wants], &[]).unwrap().is_none());
    let classless = json!([{"name": "r", "exactly": {"deviceClassName": "nothing"}}]);
    let said = allocate_on("a", &slices, &[claim(classless, json!({}))], &[]).unwrap_err().0;
    assert_eq!(said, "request r: device class nothing does not exist");
}

#[test]
fn devices_that_are_ready_go_before_those_that_have_to_become_so() {
    let slow = json!({"name": "slow", "bindingConditions": ["A"], "bindingFailureConditions": ["B"],
        "bindsToNode": true});
    let first = slice(json!({"allNodes": true}), json!([slow]), json!({"pool": {"name": "a"}}));
    let ready = slice(json!({"allNodes": true}), json!([{"name": "ready"}]), json!({"pool": {"name": "b"}}));
    let slices = [first, ready];
    let two = [claim(json!([one(json!({}))]), json!({})), claim(json!([one(json!({}))]), json!({}))];
    let found = allocate_on("a", &slices, &two, &[]).unwrap().unwrap();
    let names = found.iter().map(|it| text(&it["devices"]["results"][0], "device"));
    assert_eq!(names.collect::<Vec<_>>(), ["ready", "slow"]);
    assert_eq!(found[0]["nodeSelector"], Value::Null);
    let field = &found[1]["nodeSelector"]["nodeSelectorTerms"][0]["matchFields"][0];
    assert_eq!(field["values"], json!(["a"]));
    assert_eq!(found[1]["devices"]["results"][0]["bindingConditions"], json!(["A"]));
}

#[test]
fn the_first_of_alternatives_is_worth_most() {
    let alternative = |name: &str, count: i64| json!({"name": name, "deviceClassName": "gpu", "allocationMode": "ExactCount", "count": count});
    for (many, points) in [(3, 8), (9, 7)] {
        let request =
            json!({"name": "r", "firstAvailable": [alternative("many", many), alternative("few", 2)]});
        let wants = claim(json!([request]), json!({}));
        let found = allocate_on("a", &[gpus()], std::slice::from_ref(&wants), &[]).unwrap().unwrap();
        let wish = Wish::new(wants, vec![]);
        assert!(wish.has_alternatives());
        assert_eq!(wish.score(&found[0]), points);
    }
    assert!(!Wish::new(claim(json!([one(json!({}))]), json!({})), vec![]).has_alternatives());
}

/// What is said against a claim on node `a`.
fn said(slices: &[Arc<Object>], wants: Value) -> String {
    allocate_on("a", slices, &[wants], &[]).unwrap_err().0
}

#[test]
fn pools_that_cannot_be_are_left_alone() {
    let part = |set: &str, counter: &str| {
        let consumed = json!([{"counterSet": set, "counters": {counter: {"value": "1"}}}]);
        json!([{"name": "part", "consumesCounters": consumed}])
    };
    let set = json!({"name": "card", "counters": {"memory": {"value": "1"}}});
    let on_a = |devices: Value, sets: Value| {
        slice(json!({"nodeName": "a"}), devices, json!({ "sharedCounters": sets }))
    };
    let one_of = claim(json!([one(json!({}))]), json!({}));
    let all_of = || claim(json!([one(json!({"allocationMode": "All"}))]), json!({}));
    for (slices, is_valid) in [
        (on_a(part("card", "memory"), json!([set])), true),
        (on_a(part("card", "cores"), json!([set])), false),
        (on_a(part("disk", "memory"), json!([set])), false),
        (on_a(part("card", "memory"), json!([set, set])), false),
        (on_a(json!([{"name": "twin"}, {"name": "twin"}]), json!([])), false),
    ] {
        let found = devices(std::slice::from_ref(&slices), std::slice::from_ref(&one_of), &[]);
        assert_eq!(found == ["part"], is_valid, "{slices:?}");
        if !is_valid {
            assert_eq!(
                said(&[slices], all_of()),
                "claim ns/c, request r: asks for all devices, but resource pool gpu.example.com/pool is \
                 currently invalid"
            );
        }
    }
}

#[test]
fn counters_are_shared_with_devices_of_other_nodes() {
    let part = |name: &str, node: &str| json!({"name": name, "nodeName": node, "consumesCounters": [{"counterSet": "card", "counters": {"memory": {"value": "40Gi"}}}]});
    let counters = json!({"sharedCounters": [{"name": "card", "counters": {"memory": {"value": "60Gi"}}}]});
    let both = json!([part("here", "a"), part("there", "b")]);
    let slices = [slice(json!({"perDeviceNodeSelection": true}), both, counters)];
    let wants = claim(json!([one(json!({}))]), json!({}));
    assert_eq!(devices(&slices, std::slice::from_ref(&wants), &[]), ["here"]);
    assert!(devices(&slices, &[wants], &[took("there")]).is_empty(), "there is room for one of them");
}

#[test]
fn a_device_has_the_capacity_that_is_asked_for() {
    let wants = |name: &str, amount: &str| one(json!({"capacity": {"requests": {name: amount}}, "count": 1}));
    for (name, amount, is_enough) in
        [("memory", "80Gi", true), ("memory", "81Gi", false), ("cores", "1", false)]
    {
        let found = devices(&[gpus()], &[claim(json!([wants(name, amount)]), json!({}))], &[]);
        assert_eq!(!found.is_empty(), is_enough, "{name} {amount}");
    }
    let found = allocate_on("a", &[gpus()], &[claim(json!([wants("memory", "1Gi")]), json!({}))], &[]);
    let result = found.unwrap().unwrap()[0]["devices"]["results"][0].clone();
    assert_eq!(result.get("consumedCapacity"), None, "it is had whole");
}

#[test]
fn claims_that_no_node_can_fulfil_are_errors() {
    let all = one(json!({"allocationMode": "All"}));
    let same = json!({"constraints": [{"matchAttribute": "gpu.example.com/index"}]});
    assert_eq!(
        said(&[gpus()], claim(json!([all]), same)),
        "claim ns/c, request r: cannot add device gpu.example.com/pool/gpu-1 because a claim constraint would \
         not be satisfied"
    );
    let many = |name: &str| json!({"name": name, "exactly": {"deviceClassName": "gpu", "count": 20}});
    assert_eq!(
        said(&[gpus()], claim(json!([many("r"), many("s")]), json!({}))),
        "claim ns/c: number of requested devices 40 exceeds the claim limit of 32"
    );
}

#[test]
fn an_expression_that_fails_is_said_with_its_class() {
    let cel = |expression: &str| json!({"cel": {"expression": expression}});
    let of_class = |_: &str| {
        let right = cel("device.driver == 'gpu.example.com'");
        Some(class(json!({"selectors": [right, cel("device.attributes['x'].y == 1")]})))
    };
    let wants = claim(json!([one(json!({}))]), json!({}));
    let wish = Wish::new(wants.clone(), of_claim(&wants, &of_class).unwrap());
    let (wishes, selectors) = ([&wish], SelectorCache::default());
    let pools = reachable(&published(&[gpus()]), &node("a"));
    let search = DeviceSearch::new(&wishes, &pools, &selectors, &InUse::default());
    let said = search.run(&Entropy::seeded(7)).unwrap_err().0;
    assert!(
        said.starts_with("class gpu: selector #1 on device gpu.example.com/pool/gpu-0: CEL runtime error"),
        "{said}"
    );
}

#[test]
fn what_a_class_says_is_told_once_for_all_its_requests() {
    let of_class = |name: &str| {
        let opaque = json!({"driver": "gpu.example.com", "parameters": {"of": name}});
        let spec = json!({"config": [{ "opaque": opaque }]});
        Some(object(json!({"metadata": {"name": name}, "spec": spec})))
    };
    let request = |name: &str, class: &str| json!({"name": name, "exactly": {"deviceClassName": class}});
    let requests = json!([request("z", "big"), request("a", "small"), request("b", "big")]);
    let wants = claim(requests, json!({}));
    let wish = Wish::new(wants.clone(), of_claim(&wants, &of_class).unwrap());
    let (wishes, selectors) = ([&wish], SelectorCache::default());
    let pools = reachable(&published(&[gpus()]), &node("a"));
    let search = DeviceSearch::new(&wishes, &pools, &selectors, &InUse::default());
    let found = search.run(&Entropy::seeded(7)).unwrap().unwrap();
    let told = items(&found[0], "devices.config").iter();
    let told: Vec<(Value, Value)> =
        told.map(|it| (it["opaque"]["parameters"]["of"].clone(), it["requests"].clone())).collect();
    assert_eq!(told, [(json!("big"), json!(["z", "b"])), (json!("small"), json!(["a"]))]);
}
