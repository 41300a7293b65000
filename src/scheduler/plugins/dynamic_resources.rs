//! DynamicResources, as far as it concerns pods without resource claims: there is none to take back.

use crate::framework::plugin::{Plugin, PostFilterCycle, PostFilterResult};
use crate::framework::pod_info::PodInfo;
use crate::framework::status::Status;

/// The plugin. Claims themselves are not served yet.
pub struct DynamicResources;

impl Plugin for DynamicResources {
    fn name(&self) -> &'static str {
        "DynamicResources"
    }

    fn post_filter(&self, _: &PodInfo, _: &PostFilterCycle<'_>) -> (Option<PostFilterResult>, Status) {
        (None, Status::unschedulable("no new claims to deallocate"))
    }
}
