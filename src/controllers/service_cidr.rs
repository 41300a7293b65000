//! The ServiceCIDR controller (`pkg/controller/servicecidrs`): a range is ready, and stays as long as
//! addresses of it are in use that no other range holds.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use super::conditions::{conditions_value, new_condition};
use super::controller::{Action, Controller, Key, Reconcile, Watches};
use super::pv_protection::keep_finalizer;
use super::status::update_status;
use apimachinery::object::Object;
use apimachinery::options::ListOptions;
use apimachinery::status::Status;
use apis::networking::ip_address::IP_ADDRESSES;
use apis::networking::ip_range::IpRange;
use apis::networking::service_cidr::SERVICE_CIDRS;
use apis::tree::{items, text, texts};
use client_go::ComponentContext;
use client_go::lister::Lister;

const FINALIZER: &str = "networking.k8s.io/service-cidr-finalizer";
/// So long after its deletion a range may still be given addresses of by an apiserver that has not heard.
const DELETION_GRACE_PERIOD: Duration = Duration::from_secs(10);
/// How often a range that is in use is looked at again. IPAddresses are not watched for that: they are as
/// many as Services, and ranges are hardly ever deleted.
const IN_USE: Duration = Duration::from_secs(1);

/// Looks after ranges of Services' addresses.
pub(crate) struct ServiceCidrController {
    ranges: Lister,
}

impl ServiceCidrController {
    /// With its informer.
    pub(crate) fn new(ctx: &ComponentContext) -> ServiceCidrController {
        ServiceCidrController { ranges: ctx.informers.informer(&SERVICE_CIDRS).lister() }
    }

    /// Whether an address would be left without a range (`canDeleteCIDR`, turned around).
    async fn is_used(&self, ctx: &Reconcile, range: &Object) -> Result<bool, Status> {
        let all = self.ranges.all();
        let others = all.iter().filter(|other| other.metadata.uid != range.metadata.uid);
        let others: Vec<IpRange> = others.flat_map(|other| ranges_of(other)).collect();
        let mut alone = ranges_of(range);
        alone.retain(|own| !others.iter().any(|other| other.contains_range(own)));
        if alone.is_empty() {
            return Ok(false);
        }
        let addresses = ctx.client.list(&IP_ADDRESSES, "", &ListOptions::default()).await?;
        let is_left = |address: IpAddr| {
            let within = |ranges: &[IpRange]| ranges.iter().any(|range| range.contains(address));
            within(&alone) && !within(&others)
        };
        Ok(addresses.items.iter().filter_map(|object| object.metadata.name.parse().ok()).any(is_left))
    }

    async fn release(&self, ctx: &Reconcile, range: &Arc<Object>) -> Result<Action, Status> {
        if self.is_used(ctx, range).await? {
            let why = "There are still IPAddresses referencing the ServiceCIDR, please remove them or create a new \
                       ServiceCIDR";
            say(ctx, range, "False", "Terminating", why).await?;
            return Ok(Action::RequeueAfter(IN_USE));
        }
        let deleted = range.metadata.deletion_timestamp.unwrap_or_default();
        let since = (ctx.clock.now() - deleted).to_std().unwrap_or_default();
        if since < DELETION_GRACE_PERIOD {
            return Ok(Action::RequeueAfter(DELETION_GRACE_PERIOD - since));
        }
        keep_finalizer(ctx, &SERVICE_CIDRS, range, FINALIZER, false).await
    }
}

impl Controller for ServiceCidrController {
    const NAME: &'static str = "service-cidr";
    const EVENT_SOURCE: &'static str = "service-cidrs-controller";
    const SERVICE_ACCOUNT: &'static str = "service-cidrs-controller";
    const WORKERS: usize = 1;

    fn watches(&self) -> Watches {
        Watches::of(&SERVICE_CIDRS)
    }

    async fn reconcile(&self, ctx: &Reconcile, key: &Key) -> Result<Action, Status> {
        let Some(range) = self.ranges.get("", key) else { return Ok(Action::Done) };
        if range.is_deleting() {
            return self.release(ctx, &range).await;
        }
        keep_finalizer(ctx, &SERVICE_CIDRS, &range, FINALIZER, true).await?;
        say(ctx, &range, "True", "", "Kubernetes Service CIDR is ready").await?;
        Ok(Action::Done)
    }
}

/// The Ready condition, written when it changes.
async fn say(
    ctx: &Reconcile,
    range: &Object,
    status: &str,
    reason: &str,
    message: &str,
) -> Result<(), Status> {
    let tree = range.to_value();
    let mut known = items(&tree, "status.conditions").iter();
    if known
        .any(|one| (text(one, "type"), text(one, "status"), text(one, "reason")) == ("Ready", status, reason))
    {
        return Ok(());
    }
    let ready = new_condition("Ready", status, reason, message, ctx.clock.now());
    let conditions = conditions_value(&[ready], true);
    let put =
        |status: &mut serde_json::Map<_, _>| drop(status.insert("conditions".into(), conditions.clone()));
    match update_status(&ctx.client, &SERVICE_CIDRS, range, put).await {
        Err(error) if !error.is_not_found() => Err(error),
        _ => Ok(()),
    }
}

fn ranges_of(range: &Object) -> Vec<IpRange> {
    texts(&range.to_value(), "spec.cidrs").into_iter().filter_map(IpRange::parse).collect()
}
