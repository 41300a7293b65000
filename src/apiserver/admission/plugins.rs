//! The list of all admission plugins, in the order in which they are asked
//! (`pkg/kubeapiserver/options.AllOrderedPlugins`), and which of them are on by default.

use super::{
    Initializer, Plugin, default_toleration_seconds, namespace_lifecycle, priority, service_account,
    taint_nodes_by_condition,
};

/// Makes a plugin, or says what is wrong with its configuration.
pub type Make = fn(&Initializer) -> Result<Box<dyn Plugin>, String>;

/// One plugin of the list.
pub struct Entry {
    /// As in `--enable-admission-plugins`.
    pub name: &'static str,
    /// Whether it runs unless it is disabled.
    pub on_by_default: bool,
    /// None: the name is known, so that upstream's flags are understood, and nothing is behind it.
    pub make: Option<Make>,
}

const fn on(name: &'static str, make: Make) -> Entry {
    Entry { name, on_by_default: true, make: Some(make) }
}

/// Behind a feature gate that is off upstream, of kinds that are not served here.
const fn gated(name: &'static str) -> Entry {
    Entry { name, on_by_default: true, make: None }
}

/// A name of upstream's with nothing behind it yet.
const fn named(name: &'static str, on_by_default: bool) -> Entry {
    Entry { name, on_by_default, make: None }
}

/// Both phases go through the list in this order.
pub const PLUGINS: &[Entry] = &[
    named("AlwaysAdmit", false),
    // Before the plugins that want the namespace to be there.
    named("NamespaceAutoProvision", false),
    // In a namespace that is going away nothing else needs to be asked.
    on("NamespaceLifecycle", |with| {
        Ok(Box::new(namespace_lifecycle::NamespaceLifecycle::new(with.registry, with.scheme, with.clock)))
    }),
    named("NamespaceExists", false),
    named("LimitPodHardAntiAffinityTopology", false),
    named("LimitRanger", true),
    on("ServiceAccount", |with| {
        let Initializer { registry, scheme, clock, entropy, .. } = with;
        Ok(Box::new(service_account::ServiceAccount::new(registry, scheme, clock, entropy)))
    }),
    named("NodeRestriction", false),
    on("TaintNodesByCondition", |_| Ok(Box::new(taint_nodes_by_condition::TaintNodesByCondition))),
    named("AlwaysPullImages", false),
    named("ImagePolicyWebhook", false),
    named("PodSecurity", true),
    named("PodNodeSelector", false),
    // Before the tolerations: a class may come with a preemption policy.
    on("Priority", |with| Ok(Box::new(priority::Priority::new(with.registry, with.scheme)))),
    on("DefaultTolerationSeconds", |with| {
        Ok(Box::new(default_toleration_seconds::DefaultTolerationSeconds::new(with.config)))
    }),
    // Behind the defaults, which it may find in conflict with the namespace's.
    named("PodTolerationRestriction", false),
    named("EventRateLimit", false),
    named("ExtendedResourceToleration", false),
    named("DefaultStorageClass", true),
    named("StorageObjectInUseProtection", true),
    gated("PodGroupProtection"),
    named("OwnerReferencesPermissionEnforcement", false),
    named("PersistentVolumeClaimResize", true),
    named("RuntimeClass", true),
    named("CertificateApproval", true),
    named("CertificateSigning", true),
    gated("ClusterTrustBundleAttest"),
    named("CertificateSubjectRestriction", true),
    named("DefaultIngressClass", true),
    named("DenyServiceExternalIPs", false),
    named("PodTopologyLabels", true),
    gated("PodGroupWorkloadExists"),
    gated("NodeDeclaredFeatureValidator"),
    gated("JobValidation"),
    named("PodResizeValidator", true),
    // What people add themselves sees what the built-in ones have made of the object.
    named("MutatingAdmissionPolicy", true),
    named("MutatingAdmissionWebhook", true),
    named("ValidatingAdmissionPolicy", true),
    named("ValidatingAdmissionWebhook", true),
    // Behind all that may refuse: what it has counted is as good as written.
    named("ResourceQuota", true),
    named("AlwaysDeny", false),
];

/// Whether there is a plugin of that name.
pub fn is_known(name: &str) -> bool {
    PLUGINS.iter().any(|entry| entry.name == name)
}
