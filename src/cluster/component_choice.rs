//! `Components`: which components of a cluster run from the start.

/// Which components run from the start.
///
/// ```
/// use kubarium::Components;
///
/// let quota_and_garbage_work_but_no_pod_runs = Components::NONE.controllers(true);
/// let pods_stay_pending = Components::ALL.scheduler(false);
/// # assert!(quota_and_garbage_work_but_no_pod_runs.controllers && !pods_stay_pending.scheduler);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Components {
    /// kube-controller-manager
    pub controllers: bool,
    /// kube-scheduler
    pub scheduler: bool,
    /// The kubelets
    pub kubelets: bool,
}

impl Components {
    /// All: a whole cluster.
    pub const ALL: Components = Components { controllers: true, scheduler: true, kubelets: true };
    /// None: an apiserver alone, as envtest has it.
    pub const NONE: Components = Components { controllers: false, scheduler: false, kubelets: false };

    /// Says whether kube-controller-manager runs.
    #[must_use]
    pub fn controllers(self, controllers: bool) -> Components {
        Components { controllers, ..self }
    }

    /// Says whether kube-scheduler runs.
    #[must_use]
    pub fn scheduler(self, scheduler: bool) -> Components {
        Components { scheduler, ..self }
    }

    /// Says whether the kubelets run.
    #[must_use]
    pub fn kubelets(self, kubelets: bool) -> Components {
        Components { kubelets, ..self }
    }
}
