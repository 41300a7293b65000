//! The search: requests one after the other, each device that will do, until all have theirs
//! (`allocateOne`). The first solution is taken.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use serde_json::{Value, json};
use sync::Mutex;

use super::constraints::DeviceConstraint;
use super::in_use::{DeviceCapacity, InUse};
use super::pools::{DeviceId, DevicePool, NodeDevice};
use super::requests::{AllocationError, DeviceRequest};
use apimachinery::object::object_key;
use apis::resource::device_selector::DeviceSelector;
use apis::tree::{items, text, texts};
use entropy::Entropy;

/// A claim has no more devices (`AllocationResultsMaxSize`).
const MOST_RESULTS: usize = 32;
/// A request has no more alternatives (`FirstAvailableDeviceRequestMaxSize`).
const MOST_ALTERNATIVES: i64 = 8;
/// So many devices are tried for the claims of one pod on one node; then the node counts as one that has
/// none. Upstream bounds the time instead (`filterTimeout`), which here would stand still meanwhile.
const MOST_STEPS: usize = 100_000;
/// So many compiled selectors are kept; past it all are forgotten.
const MOST_SELECTORS: usize = 256;

/// Selectors that were compiled, by expression.
#[derive(Default)]
pub(crate) struct SelectorCache {
    compiled: Mutex<HashMap<String, Arc<Result<DeviceSelector, String>>>>,
}

impl SelectorCache {
    fn get(&self, expression: &str) -> Arc<Result<DeviceSelector, String>> {
        let mut compiled = self.compiled.lock();
        if let Some(found) = compiled.get(expression) {
            return found.clone();
        }
        if compiled.len() >= MOST_SELECTORS {
            compiled.clear();
        }
        let selector = Arc::new(DeviceSelector::compile(expression).map_err(|error| error.0));
        compiled.insert(expression.to_owned(), selector.clone());
        selector
    }
}

/// A claim that wants devices.
pub(crate) struct Wish {
    /// As it stands.
    pub claim: Value,
    /// Its requests with their alternatives.
    pub requests: Vec<Vec<DeviceRequest>>,
    constraints: Vec<DeviceConstraint>,
}

impl Wish {
    /// Of a claim.
    pub(crate) fn new(claim: Value, requests: Vec<Vec<DeviceRequest>>) -> Wish {
        Wish { constraints: DeviceConstraint::of_claim(&claim), claim, requests }
    }

    /// Whether a request names several kinds of devices, the best first.
    pub(crate) fn has_alternatives(&self) -> bool {
        let requests = items(&self.claim, "spec.devices.requests");
        requests.iter().any(|request| !items(request, "firstAvailable").is_empty())
    }

    /// What a node earns for what it has: the more the earlier its devices stand among the alternatives
    /// (`computeScore`).
    pub(crate) fn score(&self, allocation: &Value) -> i64 {
        let results = items(allocation, "devices.results");
        let given: BTreeSet<&str> = results.iter().map(|result| text(result, "request")).collect();
        let of_request = |request: &Value| -> i64 {
            let name = text(request, "name");
            let alternatives = items(request, "firstAvailable").iter().enumerate();
            let has = |it: &Value| given.contains(format!("{name}/{}", text(it, "name")).as_str());
            alternatives.filter(|(_, it)| has(it)).map(|(place, _)| MOST_ALTERNATIVES - place as i64).sum()
        };
        items(&self.claim, "spec.devices.requests").iter().map(of_request).sum()
    }
}

/// A device for a request.
struct Pick<'a> {
    wish: usize,
    request: &'a DeviceRequest,
    device: &'a NodeDevice,
    /// What is taken of it, if others may have it, too.
    share: Option<DeviceCapacity>,
    /// What others had of it before.
    before: Option<DeviceCapacity>,
}

/// The search for one node.
pub(crate) struct DeviceSearch<'a> {
    /// What the pod's claims want.
    pub wishes: &'a [&'a Wish],
    /// What the node can reach.
    pub pools: &'a [DevicePool],
    /// Compiled selectors.
    pub selectors: &'a SelectorCache,
    picks: Vec<Pick<'a>>,
    in_use: InUse,
    matches: HashMap<(*const DeviceRequest, DeviceId), bool>,
    steps: usize,
}

impl<'a> DeviceSearch<'a> {
    /// Among what is not in use.
    pub(crate) fn new(
        wishes: &'a [&'a Wish],
        pools: &'a [DevicePool],
        selectors: &'a SelectorCache,
        in_use: &InUse,
    ) -> DeviceSearch<'a> {
        let in_use = in_use.clone();
        DeviceSearch { wishes, pools, selectors, picks: vec![], in_use, matches: HashMap::new(), steps: 0 }
    }

    /// The allocations of all wishes in their order; none when the node has not got the devices.
    ///
    /// # Errors
    /// What is wrong with a claim, a class or a device that was looked at.
    pub(crate) fn run(mut self, entropy: &Entropy) -> Result<Option<Vec<Value>>, AllocationError> {
        if !self.request(0, 0)? {
            return Ok(None);
        }
        Ok(Some((0..self.wishes.len()).map(|wish| self.result(wish, entropy)).collect()))
    }

    fn request(&mut self, wish: usize, request: usize) -> Result<bool, AllocationError> {
        let wishes = self.wishes;
        let Some(current) = wishes.get(wish) else { return Ok(true) };
        let Some(alternatives) = current.requests.get(request) else { return self.request(wish + 1, 0) };
        for alternative in alternatives {
            let found = match alternative.count {
                Some(count) => self.some(wish, request, alternative, count, 0)?,
                None => self.every(wish, request, alternative)?,
            };
            if found {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// So many more devices, from those that come after `from`: the order within a request does not matter.
    fn some(
        &mut self,
        wish: usize,
        request: usize,
        wanted: &'a DeviceRequest,
        count: usize,
        from: usize,
    ) -> Result<bool, AllocationError> {
        if count == 0 {
            return self.request(wish, request + 1);
        }
        let pools = self.pools;
        let devices = pools.iter().filter(|pool| !pool.is_incomplete);
        let devices = devices.flat_map(|pool| pool.devices.iter().map(move |device| (pool, device)));
        for (place, (pool, device)) in devices.enumerate().skip(from) {
            if !self.pick(wish, wanted, pool, device)? {
                continue;
            }
            if self.some(wish, request, wanted, count - 1, place + 1)? {
                return Ok(true);
            }
            self.undo();
        }
        Ok(false)
    }

    /// All devices that match: none of them may be in use.
    fn every(
        &mut self,
        wish: usize,
        request: usize,
        wanted: &'a DeviceRequest,
    ) -> Result<bool, AllocationError> {
        let pools = self.pools;
        let picked = self.picks.len();
        let mut is_possible = true;
        for pool in pools {
            let name = &pool.name;
            for device in &pool.devices {
                if !is_possible || !self.is_selected(wish, wanted, device)? {
                    continue;
                }
                if pool.is_incomplete {
                    return Err(AllocationError(format!(
                        "claim {}, request {}: asks for all devices, but resource pool {name} is currently \
                         being updated",
                        self.key(wish),
                        wanted.name
                    )));
                }
                is_possible = self.pick(wish, wanted, pool, device)?;
            }
        }
        if is_possible && self.picks.len() > picked && self.request(wish, request + 1)? {
            return Ok(true);
        }
        while self.picks.len() > picked {
            self.undo();
        }
        Ok(false)
    }

    /// Gives the device back that was picked last.
    fn undo(&mut self) {
        let Some(Pick { request, device, share, before, .. }) = self.picks.pop() else { return };
        if !request.is_admin {
            self.in_use.give_back(&device.id, share.is_some(), before);
        }
    }

    /// Takes a device if it will do (`allocateDevice`).
    fn pick(
        &mut self,
        wish: usize,
        wanted: &'a DeviceRequest,
        pool: &DevicePool,
        device: &'a NodeDevice,
    ) -> Result<bool, AllocationError> {
        self.steps += 1;
        if self.steps > MOST_STEPS {
            return Ok(false);
        }
        let is_own = |pick: &Pick<'_>| pick.wish == wish && pick.device.id == device.id;
        let is_shared = apis::tree::flag(&device.tree, "allowMultipleAllocations");
        let own = self.picks.iter().filter(|pick| pick.wish == wish);
        let is_taken =
            if wanted.is_admin { self.picks.iter().any(is_own) } else { self.in_use.has(&device.id) };
        if is_taken || own.clone().count() >= MOST_RESULTS || wanted.is_kept_away(&device.tree) {
            return Ok(false);
        }
        let goes = |it: &DeviceConstraint| {
            it.allows(&wanted.name, device, own.clone().map(|pick| (pick.request.name.as_str(), pick.device)))
        };
        if !self.wishes[wish].constraints.iter().all(goes) || !self.is_selected(wish, wanted, device)? {
            return Ok(false);
        }
        let share = if is_shared { self.in_use.share(device, wanted) } else { None };
        if !wanted.is_admin && (is_shared && share.is_none() || !self.in_use.has_room(device, pool)) {
            return Ok(false);
        }
        let share = share.filter(|_| is_shared);
        let before = share.as_ref().and_then(|_| self.in_use.shared(&device.id).cloned());
        if !wanted.is_admin {
            self.in_use.take(&device.id, share.as_ref());
        }
        self.picks.push(Pick { wish, request: wanted, device, share, before });
        Ok(true)
    }

    /// `isSelectable`: what was found of a device once holds for the whole search.
    fn is_selected(
        &mut self,
        wish: usize,
        wanted: &'a DeviceRequest,
        device: &NodeDevice,
    ) -> Result<bool, AllocationError> {
        let key = (std::ptr::from_ref(wanted), device.id.clone());
        if let Some(known) = self.matches.get(&key) {
            return Ok(*known);
        }
        let mut is_selected = true;
        for (index, expression) in wanted.selectors.iter().enumerate() {
            let selector = self.selectors.get(expression);
            let outcome = match &*selector {
                Ok(selector) => selector.matches(&device.id.0, &device.tree).map_err(|error| error.0),
                Err(why) => Err(why.clone()),
            };
            let failed = |why: String| {
                let (driver, pool, name) = &device.id;
                let claim = self.key(wish);
                let place = format!("claim {claim}: selector #{index} on device {driver}/{pool}/{name}");
                AllocationError(format!("{place}: {why}"))
            };
            if !outcome.map_err(failed)? {
                is_selected = false;
                break;
            }
        }
        self.matches.insert(key, is_selected);
        Ok(is_selected)
    }

    fn key(&self, wish: usize) -> String {
        let claim = &self.wishes[wish].claim;
        object_key(text(claim, "metadata.namespace"), text(claim, "metadata.name"))
    }

    /// `resourceapi.AllocationResult`
    fn result(&self, wish: usize, entropy: &Entropy) -> Value {
        let picks: Vec<&Pick<'_>> = self.picks.iter().filter(|pick| pick.wish == wish).collect();
        let results: Vec<Value> = picks.iter().map(|pick| device_result(pick, entropy)).collect();
        let mut allocation = json!({"devices": {"results": results}});
        let config = configuration(&self.wishes[wish].claim, &picks);
        if !config.is_empty() {
            allocation["devices"]["config"] = config.into();
        }
        if let Some(selector) = node_selector(&picks) {
            allocation["nodeSelector"] = selector;
        }
        allocation
    }
}

fn device_result(pick: &Pick<'_>, entropy: &Entropy) -> Value {
    let (driver, pool, device) = &pick.device.id;
    let mut result = json!({"request": pick.request.name, "driver": driver, "pool": pool, "device": device});
    if pick.request.is_admin {
        result["adminAccess"] = true.into();
    }
    let tolerations = items(&pick.request.tree, "tolerations");
    if !tolerations.is_empty() {
        result["tolerations"] = tolerations.to_vec().into();
    }
    if let Some(share) = &pick.share {
        result["shareID"] = entropy.uid().into();
        let amounts = share.iter().map(|(name, amount)| (name.clone(), amount.to_string().into()));
        result["consumedCapacity"] = Value::Object(amounts.collect());
    }
    for list in ["bindingConditions", "bindingFailureConditions"] {
        if let Some(conditions) = pick.device.tree.get(list) {
            result[list] = conditions.clone();
        }
    }
    result
}

/// What drivers are told: first what classes say, then the claim.
fn configuration(claim: &Value, picks: &[&Pick<'_>]) -> Vec<Value> {
    let mut all: Vec<Value> = Vec::new();
    let mut by_request: BTreeMap<&str, &DeviceRequest> = BTreeMap::new();
    by_request.extend(picks.iter().map(|pick| (pick.request.name.as_str(), pick.request)));
    for (name, request) in &by_request {
        for config in items(&request.class.to_value(), "spec.config") {
            all.push(json!({"source": "FromClass", "requests": [name], "opaque": config["opaque"]}));
        }
    }
    for config in items(claim, "spec.devices.config") {
        let about = texts(config, "requests");
        let is_used =
            |request: &&DeviceRequest| about.contains(&&*request.base) || about.contains(&&*request.name);
        if about.is_empty() || by_request.values().any(is_used) {
            let mut own = json!({"source": "FromClaim", "opaque": config["opaque"]});
            if !about.is_empty() {
                own["requests"] = config["requests"].clone();
            }
            all.push(own);
        }
    }
    all
}

/// Where all devices can be reached: a node's own make it that node; otherwise the terms of all together.
fn node_selector(picks: &[&Pick<'_>]) -> Option<Value> {
    let selectors: Vec<&Value> = picks.iter().filter_map(|pick| pick.device.node_selector.as_ref()).collect();
    let is_one_node =
        |selector: &&&Value| !items(&selector["nodeSelectorTerms"][0], "matchFields").is_empty();
    if let Some(local) = selectors.iter().find(is_one_node) {
        return Some((**local).clone());
    }
    let mut together: Vec<Value> = Vec::new();
    for selector in selectors {
        let expressions = items(&selector["nodeSelectorTerms"][0], "matchExpressions");
        together.extend(expressions.iter().filter(|it| !together.contains(it)).cloned().collect::<Vec<_>>());
    }
    (!together.is_empty()).then(|| json!({"nodeSelectorTerms": [{"matchExpressions": together}]}))
}
