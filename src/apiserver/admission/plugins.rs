//! The list of all admission plugins, in the order in which they are asked
//! (`pkg/kubeapiserver/options.AllOrderedPlugins`), and which of them are on by default.

use std::collections::BTreeSet;

use super::always::{AlwaysAdmit, AlwaysDeny};
use super::always_pull_images::AlwaysPullImages;
use super::certificate_approval::CertificateApproval;
use super::certificate_signing::CertificateSigning;
use super::certificate_subject_restriction::CertificateSubjectRestriction;
use super::config::AdmissionOptions;
use super::config::BadAdmissionConfig;
use super::default_ingress_class::DefaultIngressClass;
use super::default_storage_class::DefaultStorageClass;
use super::default_toleration_seconds::DefaultTolerationSeconds;
use super::deny_service_external_ips::DenyServiceExternalIps;
use super::event_rate_limit::EventRateLimit;
use super::extended_resource_toleration::ExtendedResourceToleration;
use super::image_policy_webhook::ImagePolicyWebhook;
use super::initial_resources::InitialResources;
use super::initializers::Initializers;
use super::limit_pod_hard_anti_affinity_topology::LimitPodHardAntiAffinityTopology;
use super::limit_ranger::LimitRanger;
use super::namespace_auto_provision::NamespaceAutoProvision;
use super::namespace_exists::NamespaceExists;
use super::namespace_lifecycle::NamespaceLifecycle;
use super::node_declared_feature_validator::NodeDeclaredFeatureValidator;
use super::node_restriction::NodeRestriction;
use super::owner_references_permission_enforcement::OwnerReferencesPermissionEnforcement;
use super::persistent_volume_claim_resize::PersistentVolumeClaimResize;
use super::pod_node_selector::PodNodeSelector;
use super::pod_resize_validator::PodResizeValidator;
use super::pod_security::PodSecurity;
use super::pod_toleration_restriction::PodTolerationRestriction;
use super::pod_topology_labels::PodTopologyLabels;
use super::priority::Priority;
use super::resource_quota::ResourceQuota;
use super::runtime_class::RuntimeClass;
use super::service_account::ServiceAccount;
use super::storage_object_in_use_protection::StorageObjectInUseProtection;
use super::taint_nodes_by_condition::TaintNodesByCondition;
use super::{AdmissionPlugin, Initializer};
use apimachinery::feature_gates::{INITIALIZERS, NODE_DECLARED_FEATURES, POD_TOPOLOGY_LABELS};
use component_base::flags::choices;

use super::policy::mutating::MutatingAdmissionPolicy;
use super::policy::validating::ValidatingAdmissionPolicy;
use super::webhook::mutating::MutatingAdmissionWebhook;
use super::webhook::validating::ValidatingAdmissionWebhook;

/// Makes a plugin, or says what is wrong with its configuration.
pub type Make = fn(&Initializer) -> Result<Box<dyn AdmissionPlugin>, BadAdmissionConfig>;

/// One plugin of the list.
pub struct PluginEntry {
    /// As in `--enable-admission-plugins`.
    pub name: &'static str,
    /// Whether it runs unless it is disabled.
    pub on_by_default: bool,
    /// The feature without which there is no such plugin.
    pub gate: Option<&'static str>,
    /// None: the name is known, so that upstream's flags are understood, and nothing is behind it; upstream's
    /// does nothing either as long as its feature is off.
    pub make: Option<Make>,
}

const fn on(name: &'static str, make: Make) -> PluginEntry {
    PluginEntry { name, on_by_default: true, gate: None, make: Some(make) }
}

const fn off(name: &'static str, make: Make) -> PluginEntry {
    PluginEntry { name, on_by_default: false, gate: None, make: Some(make) }
}

/// Behind a feature gate that is off upstream, of kinds that are not served here.
const fn gated(name: &'static str) -> PluginEntry {
    PluginEntry { name, on_by_default: true, gate: None, make: None }
}

/// Both phases go through the list in this order.
pub const PLUGINS: &[PluginEntry] = &[
    off("AlwaysAdmit", |_| Ok(Box::new(AlwaysAdmit))),
    // Before the plugins that want the namespace to be there.
    off("NamespaceAutoProvision", |with| Ok(Box::new(NamespaceAutoProvision::new(with)))),
    // In a namespace that is going away nothing else needs to be asked.
    on("NamespaceLifecycle", |with| {
        Ok(Box::new(NamespaceLifecycle::new(with.registry, with.scheme, with.clock)))
    }),
    off("NamespaceExists", |with| Ok(Box::new(NamespaceExists::new(with)))),
    off("LimitPodHardAntiAffinityTopology", |_| Ok(Box::new(LimitPodHardAntiAffinityTopology))),
    // As in the releases that had it: before limits are looked at.
    off("InitialResources", |with| Ok(Box::new(InitialResources::new(with)))),
    on("LimitRanger", |with| Ok(Box::new(LimitRanger::new(with)))),
    on("ServiceAccount", |with| {
        let Initializer { registry, scheme, clock, entropy, .. } = with;
        Ok(Box::new(ServiceAccount::new(registry, scheme, clock, entropy)))
    }),
    // Off upstream unless it is asked for, which every installer does; here too.
    on("NodeRestriction", |with| Ok(Box::new(NodeRestriction::new(with)))),
    on("TaintNodesByCondition", |_| Ok(Box::new(TaintNodesByCondition))),
    off("AlwaysPullImages", |_| Ok(Box::new(AlwaysPullImages))),
    off("ImagePolicyWebhook", |with| Ok(Box::new(ImagePolicyWebhook::new(with)?))),
    on("PodSecurity", |with| Ok(Box::new(PodSecurity::new(with)?))),
    off("PodNodeSelector", |with| Ok(Box::new(PodNodeSelector::new(with)?))),
    // Before the tolerations: a class may come with a preemption policy.
    on("Priority", |with| Ok(Box::new(Priority::new(with.registry, with.scheme)))),
    on("DefaultTolerationSeconds", |with| Ok(Box::new(DefaultTolerationSeconds::new(with.config)))),
    // Behind the defaults, which it may find in conflict with the namespace's.
    off("PodTolerationRestriction", |with| Ok(Box::new(PodTolerationRestriction::new(with)))),
    off("EventRateLimit", |with| Ok(Box::new(EventRateLimit::new(with)?))),
    off("ExtendedResourceToleration", |_| Ok(Box::new(ExtendedResourceToleration))),
    on("DefaultStorageClass", |with| Ok(Box::new(DefaultStorageClass::new(with)))),
    on("StorageObjectInUseProtection", |_| Ok(Box::new(StorageObjectInUseProtection))),
    gated("PodGroupProtection"),
    off("OwnerReferencesPermissionEnforcement", |with| {
        Ok(Box::new(OwnerReferencesPermissionEnforcement::new(with)))
    }),
    on("PersistentVolumeClaimResize", |with| Ok(Box::new(PersistentVolumeClaimResize::new(with)))),
    on("RuntimeClass", |with| Ok(Box::new(RuntimeClass::new(with)))),
    on("CertificateApproval", |with| Ok(Box::new(CertificateApproval::new(with.authorizer.clone())))),
    on("CertificateSigning", |with| Ok(Box::new(CertificateSigning::new(with.authorizer.clone())))),
    gated("ClusterTrustBundleAttest"),
    on("CertificateSubjectRestriction", |_| Ok(Box::new(CertificateSubjectRestriction))),
    on("DefaultIngressClass", |with| Ok(Box::new(DefaultIngressClass::new(with)))),
    off("DenyServiceExternalIPs", |_| Ok(Box::new(DenyServiceExternalIps))),
    PluginEntry {
        name: "PodTopologyLabels",
        on_by_default: true,
        gate: Some(POD_TOPOLOGY_LABELS),
        make: Some(|with| Ok(Box::new(PodTopologyLabels::new(with)))),
    },
    gated("PodGroupWorkloadExists"),
    PluginEntry {
        name: "NodeDeclaredFeatureValidator",
        on_by_default: true,
        gate: Some(NODE_DECLARED_FEATURES),
        make: Some(|with| Ok(Box::new(NodeDeclaredFeatureValidator::new(with)))),
    },
    gated("JobValidation"),
    on("PodResizeValidator", |with| Ok(Box::new(PodResizeValidator::new(with)))),
    // What people add themselves sees what the built-in ones have made of the object.
    on("MutatingAdmissionPolicy", |with| Ok(Box::new(MutatingAdmissionPolicy::new(with)))),
    on("MutatingAdmissionWebhook", |with| Ok(Box::new(MutatingAdmissionWebhook::new(with)))),
    // As in the releases that had it: what it makes wait is complete.
    PluginEntry {
        name: "Initializers",
        on_by_default: true,
        gate: Some(INITIALIZERS),
        make: Some(|with| Ok(Box::new(Initializers::new(with)))),
    },
    on("ValidatingAdmissionPolicy", |with| Ok(Box::new(ValidatingAdmissionPolicy::new(with)))),
    on("ValidatingAdmissionWebhook", |with| Ok(Box::new(ValidatingAdmissionWebhook::new(with)))),
    // Behind all that may refuse: what it has counted is as good as written.
    on("ResourceQuota", |with| Ok(Box::new(ResourceQuota::new(with)?))),
    off("AlwaysDeny", |_| Ok(Box::new(AlwaysDeny))),
];

/// Whether there is a plugin of that name.
pub fn is_known(name: &str) -> bool {
    PLUGINS.iter().any(|entry| entry.name == name)
}

/// Which of the list run: the flags.
impl AdmissionOptions {
    /// What is wrong with the flags (`AdmissionOptions.Validate`), in upstream's words.
    pub fn validate(&self) -> Vec<String> {
        let mut errors = Vec::new();
        let flags =
            [("enable-admission-plugins", &self.enable), ("disable-admission-plugins", &self.disable)];
        for (flag, names) in flags {
            let unknown = names.iter().filter(|name| !is_known(name));
            errors.extend(unknown.map(|name| {
                let all: Vec<&str> = PLUGINS.iter().map(|entry| entry.name).collect();
                let choices = choices("the plugins are", name, &all);
                format!("{flag} plugin {name:?} is unknown; {choices}")
            }));
        }
        let enabled: BTreeSet<&String> = self.enable.iter().collect();
        let both: BTreeSet<&str> =
            self.disable.iter().filter(|name| enabled.contains(name)).map(String::as_str).collect();
        if !both.is_empty() {
            let both: Vec<&str> = both.into_iter().collect();
            errors.push(format!(
                "[{}] in enable-admission-plugins and disable-admission-plugins overlapped",
                both.join(" ")
            ));
        }
        errors
    }

    /// Whether a plugin runs.
    pub fn is_enabled(&self, name: &str) -> bool {
        let has = |names: &[String]| names.iter().any(|known| known == name);
        let on_by_default = PLUGINS.iter().any(|entry| entry.name == name && entry.on_by_default);
        has(&self.enable) || on_by_default && !has(&self.disable)
    }
}
