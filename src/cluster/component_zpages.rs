//! `/statusz` and `/flagz` of the components beside the apiserver.

use apiserver::endpoints::routes::version::VersionInfo;
use apiserver::endpoints::routes::zpages::ShownFlags;
use clock::Clock;
use component_base::zpages;

/// What both pages of one component show.
#[derive(Clone)]
pub(crate) struct ComponentZPages {
    /// As upstream calls it: each kubelet is `kubelet`.
    pub(crate) component: String,
    pub(crate) clock: Clock,
    pub(crate) flags: ShownFlags,
}

impl ComponentZPages {
    /// The page of that name, if there is one.
    pub(crate) fn page(&self, name: &str) -> Option<String> {
        match name {
            "flagz" => Some(zpages::flagz(&self.component, &(self.flags)())),
            "statusz" => Some(self.statusz()),
            _ => None,
        }
    }

    /// All components are as old as the cluster, and of one version.
    fn statusz(&self) -> String {
        let up = self.clock.elapsed();
        let started = (self.clock.now() - up).format(zpages::UNIX_DATE).to_string();
        zpages::statusz(&self.component, &started, up, &VersionInfo::default().git_version, &[])
    }
}
