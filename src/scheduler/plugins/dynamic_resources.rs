//! DynamicResources, as far as it concerns pods without resource claims: there is none to take back.

use super::catalog::points_of;
use crate::framework::plugin::{
    CycleState, Plugin, PostFilterCycle, PostFilterResult, PreFilterResult, Snapshot,
};
use crate::framework::pod_info::PodInfo;
use crate::framework::points::Point;
use crate::framework::status::Status;

/// The plugin. Claims themselves are not served yet.
pub struct DynamicResources;

impl Plugin for DynamicResources {
    fn name(&self) -> &'static str {
        "DynamicResources"
    }

    fn points(&self) -> &'static [Point] {
        points_of(self.name()).unwrap_or(Point::ALL)
    }

    fn pre_filter(&self, _: &mut CycleState, pod: &PodInfo, _: &Snapshot) -> (PreFilterResult, Status) {
        match pod.pod.spec.resource_claims.first() {
            Some(claim) => (None, Status::unresolvable(format!("pod has claim {:?}", claim.name))),
            None => (None, Status::skip()),
        }
    }

    fn post_filter(&self, _: &PodInfo, _: &PostFilterCycle<'_>) -> (Option<PostFilterResult>, Status) {
        (None, Status::unschedulable("no new claims to deallocate"))
    }
}
