//! What is in volumes goes with them: whoever deletes a PersistentVolume, its files are forgotten. Nothing is
//! watched before a pod has written into one.

use std::sync::Arc;

use super::inside::{Inside, MASTERS};
use apimachinery::object::Object;
use apimachinery::user::UserInfo;
use apis::core::persistent_volume::PERSISTENT_VOLUMES;
use client_go::ComponentContext;
use client_go::shared_informer::{Deleted, ResourceEventHandler};
use kubelet::volume_manager::claimed_files::ClaimedFiles;

/// Who watches.
const NAME: &str = "kubarium:volumes";

/// [`follow`], which settles with everything else.
pub(super) fn following(inside: Arc<Inside>) -> impl Future<Output = ()> {
    inside.clock.named(NAME).tracked(follow(inside))
}

async fn follow(inside: Arc<Inside>) {
    let files = inside.running.claimed_files.clone();
    files.wanted().await;
    let client = inside.client().acting_as(UserInfo::authenticated(NAME, &[MASTERS]));
    let (clock, entropy) = (inside.clock.clone(), inside.config.entropy.clone());
    let context = ComponentContext::new(NAME, (NAME, ""), client, clock, entropy);
    let _tasks = context.tasks.stop_on_drop();
    context.informers.informer(&PERSISTENT_VOLUMES).add_handler(VolumesHeard(files));
    context.informers.start(&context.tasks);
    std::future::pending::<()>().await;
}

struct VolumesHeard(ClaimedFiles);

impl ResourceEventHandler for VolumesHeard {
    fn on_add(&self, _: &Arc<Object>, _is_initial_list: bool) {}

    fn on_update(&self, _: &Arc<Object>, _: &Arc<Object>) {}

    fn on_delete(&self, last: &Deleted) {
        self.0.remove(&last.last().metadata.name);
    }
}
