//! The search: requests one after the other, each device that will do, until all have theirs
//! (`allocateOne`). The first solution is taken.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use serde_json::Value;
use sync::Mutex;

use super::constraints::DeviceConstraint;
use super::in_use::InUse;
use super::pools::{DeviceId, DevicePool, NodeDevice};
use super::requests::{AllocationError, DeviceRequest};
use super::results::{Pick, allocation_result};
use apimachinery::object::object_key;
use apis::resource::device_selector::DeviceSelector;
use apis::tree::{items, text};
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

/// A device that may be picked.
type Candidate<'a> = (&'a DevicePool, &'a NodeDevice);

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
    /// For each request for all devices what all is.
    all: HashMap<*const DeviceRequest, Vec<Candidate<'a>>>,
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
        DeviceSearch {
            wishes,
            pools,
            selectors,
            picks: Vec::new(),
            in_use: in_use.clone(),
            all: HashMap::new(),
            matches: HashMap::new(),
            steps: 0,
        }
    }

    /// The allocations of all wishes in their order; none when the node has not got the devices.
    ///
    /// # Errors
    /// What is wrong with a claim, a class or a device that was looked at.
    pub(crate) fn run(mut self, entropy: &Entropy) -> Result<Option<Vec<Value>>, AllocationError> {
        for wish in 0..self.wishes.len() {
            self.count_devices(wish)?;
        }
        if !self.request(0, 0)? {
            return Ok(None);
        }
        let of_wish = |wish: usize| {
            let picks: Vec<&Pick<'_>> = self.picks.iter().filter(|pick| pick.wish == wish).collect();
            allocation_result(&self.wishes[wish].claim, &picks, entropy)
        };
        Ok(Some((0..self.wishes.len()).map(of_wish).collect()))
    }

    /// Finds out what all devices are, and that a claim does not need more than it can have whatever is
    /// picked (`validateDeviceRequest`).
    fn count_devices(&mut self, wish: usize) -> Result<(), AllocationError> {
        let wishes = self.wishes;
        let mut fewest = 0;
        for alternatives in &wishes[wish].requests {
            let mut counts = Vec::with_capacity(alternatives.len());
            for wanted in alternatives {
                counts.push(match wanted.count {
                    Some(count) => count,
                    None => self.find_all(wish, wanted)?,
                });
            }
            fewest += counts.into_iter().min().unwrap_or(0);
        }
        if fewest <= MOST_RESULTS {
            return Ok(());
        }
        let claim = self.key(wish);
        Err(AllocationError(format!(
            "claim {claim}: number of requested devices {fewest} exceeds the claim limit of {MOST_RESULTS}"
        )))
    }

    /// All devices that match, of pools that are all there; how many they are.
    fn find_all(&mut self, wish: usize, wanted: &'a DeviceRequest) -> Result<usize, AllocationError> {
        let mut found = Vec::new();
        for pool in self.pools {
            if !pool.is_usable() {
                let claim = self.key(wish);
                let why = if pool.is_incomplete { "being updated" } else { "invalid" };
                return Err(AllocationError(format!(
                    "claim {claim}, request {}: asks for all devices, but resource pool {} is currently {why}",
                    wanted.own_name(),
                    pool.id
                )));
            }
            for device in &pool.devices {
                if self.is_selected(wish, wanted, device)? && self.in_use.share(device, wanted).is_some() {
                    found.push((pool, device));
                }
            }
        }
        let count = found.len();
        self.all.insert(std::ptr::from_ref(wanted), found);
        Ok(count)
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
        let devices = pools.iter().filter(|pool| pool.is_usable());
        let devices = devices.flat_map(|pool| pool.devices.iter().map(move |device| (pool, device)));
        for (place, (pool, device)) in devices.enumerate().skip(from) {
            if !self.pick(wish, wanted, (pool, device))? {
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
        let all = self.all.get(&std::ptr::from_ref(wanted)).cloned().unwrap_or_default();
        let picked = self.picks.len();
        let mut is_possible = !all.is_empty();
        for candidate in all {
            is_possible = is_possible && self.pick(wish, wanted, candidate)?;
        }
        if is_possible && self.request(wish, request + 1)? {
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
        (pool, device): Candidate<'a>,
    ) -> Result<bool, AllocationError> {
        self.steps += 1;
        let own = self.picks.iter().filter(|pick| pick.wish == wish).count();
        if self.steps > MOST_STEPS || own >= MOST_RESULTS || self.is_taken(wish, wanted, device) {
            return Ok(false);
        }
        if !self.is_selected(wish, wanted, device)? {
            return Ok(false);
        }
        let Some(share) = self.in_use.share(device, wanted) else { return Ok(false) };
        let has_room = wanted.is_admin || self.in_use.has_room(device, pool);
        if !has_room || wanted.is_kept_away(&device.tree) || !self.is_in_accord(wish, wanted, device)? {
            return Ok(false);
        }
        let is_shared = apis::tree::flag(&device.tree, "allowMultipleAllocations");
        let share = is_shared.then_some(share);
        let before = share.as_ref().and_then(|_| self.in_use.shared(&device.id).cloned());
        if !wanted.is_admin {
            self.in_use.take(&device.id, share.as_ref());
        }
        self.picks.push(Pick { wish, request: wanted, device, share, before });
        Ok(true)
    }

    /// An administrator's claim may have what others have, but not twice.
    fn is_taken(&self, wish: usize, wanted: &DeviceRequest, device: &NodeDevice) -> bool {
        let is_own = |pick: &Pick<'_>| pick.wish == wish && pick.device.id == device.id;
        if wanted.is_admin { self.picks.iter().any(is_own) } else { self.in_use.has(&device.id) }
    }

    /// Whether a device goes with what the claim has already. A claim for all devices that do not go together
    /// is a mistake.
    fn is_in_accord(
        &self,
        wish: usize,
        wanted: &DeviceRequest,
        device: &NodeDevice,
    ) -> Result<bool, AllocationError> {
        let own = self.picks.iter().filter(|pick| pick.wish == wish);
        let own = own.map(|pick| (pick.request.name.as_str(), pick.device));
        let allows = |it: &DeviceConstraint| it.allows(&wanted.name, device, own.clone());
        if self.wishes[wish].constraints.iter().all(allows) {
            return Ok(true);
        }
        if wanted.count.is_some() {
            return Ok(false);
        }
        let (driver, pool, name) = &device.id;
        let claim = self.key(wish);
        Err(AllocationError(format!(
            "claim {claim}, request {}: cannot add device {driver}/{pool}/{name} because a claim constraint \
             would not be satisfied",
            wanted.own_name()
        )))
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
        let claim = || format!("claim {}", self.key(wish));
        let class = || format!("class {}", wanted.class.metadata.name);
        let is_selected = self.is_meant(&wanted.class_selectors, device, &class)?
            && self.is_meant(&wanted.selectors, device, &claim)?;
        self.matches.insert(key, is_selected);
        Ok(is_selected)
    }

    /// `selectorsMatch`
    fn is_meant(
        &self,
        selectors: &[String],
        device: &NodeDevice,
        whose: &dyn Fn() -> String,
    ) -> Result<bool, AllocationError> {
        let (driver, pool, name) = &device.id;
        for (index, expression) in selectors.iter().enumerate() {
            let selector = self.selectors.get(expression);
            let compiled = selector.as_ref().as_ref();
            let compiled =
                compiled.map_err(|why| AllocationError(format!("{}: selector #{index}: {why}", whose())))?;
            let is_meant = compiled.matches(driver, &device.tree).map_err(|error| {
                let place = format!("{}: selector #{index} on device {driver}/{pool}/{name}", whose());
                AllocationError(format!("{place}: {}", error.0))
            })?;
            if !is_meant {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn key(&self, wish: usize) -> String {
        let claim = &self.wishes[wish].claim;
        object_key(text(claim, "metadata.namespace"), text(claim, "metadata.name"))
    }
}
