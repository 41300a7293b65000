//! controllers: kube-controller-manager. Loops that bring what is nearer to what should be.
//!
//! In: a [`ComponentContext`], the kinds, and the certificate of the cluster's authority. Out: writes through
//! the API, and nothing else. Every controller is level-based and idempotent: it may be stopped and started
//! at any point, and knows the cluster only by its informers. It must not know the apiserver, the store, the
//! scheduler or a kubelet, nor any other controller: they meet in the objects.
//!
//! Read [`controller`] first (what a controller is), then the machinery that several share, then any
//! controller.

#![warn(missing_docs, unreachable_pub)]

pub mod cidr_set;
pub mod configz;
pub mod controller;
pub mod load_balancer_ranges;
pub mod manager;
pub mod options;
pub mod own;
pub mod queue_names;
pub mod selection;

mod conditions;
mod status;

mod controller_ref;
mod dependents;
mod expectations;
mod history;
mod pod_control;
mod pod_state;
mod pod_template_hash;

mod daemon_set;
mod data_source_validator;
mod deployment;
mod replica_set;
mod stateful_set;

mod cron_job;
mod horizontal_pod_autoscaler;
mod job;
mod ttl_after_finished;

mod certificates;

mod disruption;

mod endpoint_slice;
mod endpoint_slice_mirroring;
mod endpoint_slice_mirroring_counts;
mod endpoints;
mod service_cidr;
mod service_load_balancer;
mod service_pods;

mod bootstrap;
mod cluster_role_aggregation;
mod controller_accounts;
mod legacy_token_cleaner;
mod namespace;
mod root_ca_publisher;
mod service_account;
mod service_account_tokens;
mod validating_admission_policy_status;

mod garbage_collector;
mod pod_garbage_collector;

mod resource_quota;

mod attach_detach;
mod device_taint_eviction;
mod ephemeral_volume;
mod pv_protection;
mod pvc_protection;
mod resource_claim;
mod resource_claim_counts;
mod simulated_disks;
mod vac_protection;
mod volume_binder;
mod volume_counts;
mod volume_expander;
mod volume_fit;
mod volume_modify;
mod volume_provisioner;
mod volume_recycler;
mod volume_resize;
mod volume_snapshots;
mod volume_writes;

mod node_ipam;
mod node_lifecycle;
mod taint_eviction;
mod ttl;

use std::sync::Arc;

pub use certificates::signer::CertificateAuthority;
use controller::{spawn, spawn_workers};
pub use service_account_tokens::TokenGenerator;
pub use simulated_disks::PROVISIONER as SIMULATED_DISK_PROVISIONER;

use apimachinery::feature_gates::FeatureGates;
use apis::scheme::Scheme;
use client_go::ComponentContext;
use options::ControllerManagerOptions;
use validating_admission_policy_status::ValidatingAdmissionPolicyStatusController;

/// What kube-controller-manager is made of.
#[derive(Clone)]
pub struct ControllerManagerConfig {
    /// What its flags say.
    pub options: ControllerManagerOptions,
    /// What is switched on and off (`--feature-gates`).
    pub feature_gates: FeatureGates,
    /// The kinds that the namespace controller deletes and the garbage collector follows.
    pub scheme: Arc<Scheme>,
    /// The certificate of the cluster's authority in PEM (`--root-ca-file`).
    pub root_ca: String,
    /// What makes tokens for Secrets (`--service-account-private-key-file`); without, none are made.
    pub tokens: Option<Arc<dyn TokenGenerator>>,
    /// What signs certificates (`--cluster-signing-cert-file`); without, none are signed.
    pub authority: Option<Arc<dyn CertificateAuthority>>,
}

impl ControllerManagerConfig {
    /// Without what signs.
    pub fn new(
        options: ControllerManagerOptions,
        scheme: Arc<Scheme>,
        root_ca: &str,
    ) -> ControllerManagerConfig {
        let feature_gates = FeatureGates::default();
        ControllerManagerConfig {
            options,
            feature_gates,
            scheme,
            root_ca: root_ca.into(),
            tokens: None,
            authority: None,
        }
    }
}

/// Starts a controller.
type StartController = fn(&ComponentContext, &ControllerManagerConfig);

/// The controllers by the names that `--controllers` calls them; the order means nothing to them. The garbage
/// collector starts later. What a controller of upstream's is made of here has the same name twice; the
/// simulated disks come and go with what binds them.
const CONTROLLERS: &[(&str, StartController)] = &[
    ("serviceaccount-controller", |ctx, _| {
        drop(spawn(ctx, service_account::ServiceAccountsController::new(ctx)));
    }),
    ("token-cleaner-controller", |ctx, _| drop(spawn(ctx, bootstrap::cleaner::TokenCleaner::new(ctx)))),
    ("bootstrap-signer-controller", |ctx, _| drop(spawn(ctx, bootstrap::signer::BootstrapSigner::new(ctx)))),
    ("serviceaccount-token-controller", spawn_tokens_controller),
    ("legacy-serviceaccount-token-cleaner-controller", |ctx, config| {
        let period = config.options.legacy_service_account_token_clean_up_period;
        drop(spawn(ctx, legacy_token_cleaner::LegacyTokenCleaner::new(ctx, period)));
    }),
    ("root-ca-certificate-publisher-controller", |ctx, config| {
        drop(spawn(ctx, root_ca_publisher::RootCaPublisher::new(ctx, &config.root_ca)));
    }),
    ("certificatesigningrequest-signing-controller", spawn_csr_signer),
    ("certificatesigningrequest-approving-controller", |ctx, _| {
        drop(spawn(ctx, certificates::approver::CsrApprovingController::new(ctx)));
    }),
    ("certificatesigningrequest-cleaner-controller", |ctx, _| {
        drop(spawn(ctx, certificates::cleaner::CsrCleanerController::new(ctx)));
    }),
    ("deployment-controller", |ctx, config| {
        drop(spawn_workers(
            ctx,
            deployment::DeploymentController::new(ctx),
            config.options.concurrent_deployment_syncs,
        ))
    }),
    ("replicaset-controller", |ctx, config| {
        drop(spawn_workers(
            ctx,
            replica_set::ReplicaSetController::new(ctx),
            config.options.concurrent_replicaset_syncs,
        ))
    }),
    ("replicationcontroller-controller", |ctx, config| {
        drop(spawn_workers(
            ctx,
            replica_set::ReplicationManager::new(ctx),
            config.options.concurrent_rc_syncs,
        ));
    }),
    ("daemonset-controller", |ctx, config| {
        drop(spawn_workers(
            ctx,
            daemon_set::DaemonSetController::new(ctx),
            config.options.concurrent_daemonset_syncs,
        ))
    }),
    ("statefulset-controller", |ctx, config| {
        drop(spawn_workers(
            ctx,
            stateful_set::StatefulSetController::new(ctx, &config.feature_gates),
            config.options.concurrent_statefulset_syncs,
        ))
    }),
    ("job-controller", |ctx, config| {
        drop(spawn_workers(ctx, job::JobController::new(ctx), config.options.concurrent_job_syncs))
    }),
    ("job-controller", |ctx, _| drop(spawn(ctx, job::orphans::OrphanPodController::new(ctx)))),
    ("cronjob-controller", |ctx, config| {
        drop(spawn_workers(
            ctx,
            cron_job::CronJobController::new(ctx),
            config.options.concurrent_cron_job_syncs,
        ))
    }),
    ("horizontal-pod-autoscaler-controller", |ctx, config| {
        drop(spawn_workers(
            ctx,
            horizontal_pod_autoscaler::HorizontalController::new(
                ctx,
                config.scheme.clone(),
                &config.options,
                &config.feature_gates,
            ),
            config.options.concurrent_horizontal_pod_autoscaler_syncs,
        ));
    }),
    ("ttl-after-finished-controller", |ctx, config| {
        drop(spawn_workers(
            ctx,
            ttl_after_finished::TtlAfterFinishedController::new(ctx),
            config.options.concurrent_ttl_after_finished_syncs,
        ));
    }),
    ("endpoints-controller", |ctx, config| {
        drop(spawn_workers(
            ctx,
            endpoints::EndpointsController::new(ctx),
            config.options.concurrent_endpoint_syncs,
        ))
    }),
    ("endpointslice-controller", |ctx, config| {
        drop(spawn_workers(
            ctx,
            endpoint_slice::EndpointSliceController::new(ctx),
            config.options.concurrent_service_endpoint_syncs,
        ));
    }),
    ("endpointslice-mirroring-controller", |ctx, _| {
        drop(spawn(ctx, endpoint_slice_mirroring::EndpointSliceMirroringController::new(ctx)));
    }),
    ("service-cidr-controller", |ctx, _| drop(spawn(ctx, service_cidr::ServiceCidrController::new(ctx)))),
    ("service-lb-controller", |ctx, config| {
        if let Some(ranges) = config.options.load_balancer_range {
            drop(spawn(ctx, service_load_balancer::ServiceLoadBalancerController::new(ctx, ranges)));
        }
    }),
    ("disruption-controller", |ctx, config| {
        drop(spawn(ctx, disruption::DisruptionController::new(ctx, config.scheme.clone())));
    }),
    ("namespace-controller", |ctx, config| {
        drop(spawn_workers(
            ctx,
            namespace::NamespaceController::new(ctx, config.scheme.clone(), &config.options),
            config.options.concurrent_namespace_syncs,
        ));
    }),
    ("validatingadmissionpolicy-status-controller", |ctx, config| {
        let scheme = config.scheme.clone();
        drop(spawn_workers(
            ctx,
            ValidatingAdmissionPolicyStatusController::new(ctx, scheme),
            config.options.concurrent_validating_admission_policy_status_syncs,
        ));
    }),
    ("node-ipam-controller", |ctx, config| {
        if let Some(controller) = node_ipam::NodeIpamController::new(ctx, &config.options) {
            drop(spawn(ctx, controller));
        }
    }),
    ("ttl-controller", |ctx, _| drop(spawn(ctx, ttl::TtlController::new(ctx)))),
    ("node-lifecycle-controller", |ctx, config| {
        drop(spawn(ctx, node_lifecycle::NodeLifecycleController::new(ctx, &config.options)));
    }),
    ("taint-eviction-controller", |ctx, _| {
        drop(spawn(ctx, taint_eviction::TaintEvictionController::new(ctx)));
    }),
    ("pod-garbage-collector-controller", |ctx, config| {
        let threshold = config.options.terminated_pod_gc_threshold;
        drop(spawn(ctx, pod_garbage_collector::PodGarbageCollector::new(ctx, threshold)));
    }),
    ("ephemeral-volume-controller", |ctx, config| {
        drop(spawn_workers(
            ctx,
            ephemeral_volume::EphemeralVolumeController::new(ctx),
            config.options.concurrent_ephemeralvolume_syncs,
        ));
    }),
    ("resourceclaim-controller", |ctx, _| {
        drop(spawn(ctx, resource_claim::ResourceClaimController::new(ctx)));
    }),
    ("device-taint-eviction-controller", |ctx, _| {
        drop(spawn(ctx, device_taint_eviction::DeviceTaintEvictionController::new(ctx)));
    }),
    ("persistentvolumeclaim-protection-controller", |ctx, _| {
        drop(spawn(ctx, pvc_protection::PvcProtectionController::new(ctx)));
    }),
    ("persistentvolume-protection-controller", |ctx, _| {
        drop(spawn(ctx, pv_protection::PvProtectionController::new(ctx)));
    }),
    ("volumeattributesclass-protection-controller", |ctx, _| {
        drop(spawn(ctx, vac_protection::VacProtectionController::new(ctx)));
    }),
    ("persistentvolume-attach-detach-controller", |ctx, _| {
        drop(spawn(ctx, attach_detach::AttachDetachController::new(ctx)));
    }),
    ("persistentvolume-attach-detach-controller", |ctx, _| {
        drop(spawn(ctx, attach_detach::attacher::SimulatedAttacher::new(ctx)));
    }),
    ("persistentvolume-binder-controller", |ctx, config| {
        drop(spawn(ctx, volume_binder::VolumeBinder::new(ctx, &config.options)));
    }),
    ("persistentvolume-binder-controller", |ctx, config| {
        drop(spawn(ctx, data_source_validator::DataSourceValidator::new(ctx, &config.scheme)));
    }),
    ("persistentvolume-binder-controller", |ctx, config| volume_snapshots::spawn(ctx, &config.scheme)),
    ("persistentvolume-binder-controller", |ctx, config| {
        drop(spawn(ctx, volume_provisioner::VolumeProvisioner::new(ctx, &config.scheme)));
    }),
    ("persistentvolume-expander-controller", |ctx, _| {
        drop(spawn(ctx, volume_expander::VolumeExpander::new(ctx)));
    }),
    ("resourcequota-controller", |ctx, config| {
        resource_quota::spawn(ctx, config.scheme.clone(), &config.options)
    }),
    ("clusterrole-aggregation-controller", |ctx, _| {
        drop(spawn(ctx, cluster_role_aggregation::ClusterRoleAggregationController::new(ctx)));
    }),
];

fn spawn_tokens_controller(ctx: &ComponentContext, config: &ControllerManagerConfig) {
    if let Some(tokens) = &config.tokens {
        let controller = service_account_tokens::TokensController::new(ctx, tokens.clone(), &config.root_ca);
        spawn_workers(ctx, controller, config.options.concurrent_serviceaccount_token_syncs);
    }
}

fn spawn_csr_signer(ctx: &ComponentContext, config: &ControllerManagerConfig) {
    if let Some(authority) = &config.authority {
        let (authority, longest) = (authority.clone(), config.options.cluster_signing_duration);
        spawn(ctx, certificates::signer::CsrSigningController::new(ctx, authority, longest));
    }
}

/// Starts the garbage collector, once the others have their caches: it watches every kind, and nobody is to
/// wait for that.
fn spawn_garbage_collector(ctx: &ComponentContext, config: &ControllerManagerConfig) {
    let (collected, scheme) = (ctx.clone(), config.scheme.clone());
    let workers = config.options.concurrent_gc_syncs;
    ctx.tasks.spawn("garbage collector: start", async move {
        collected.informers.wait_for_cache_sync().await;
        garbage_collector::spawn(&collected, scheme, workers);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_runs_has_a_name_that_can_be_selected() {
        let names = selection::names();
        assert!(CONTROLLERS.iter().all(|(name, _)| names.contains(name)));
        assert!(names.contains(&manager::GARBAGE_COLLECTOR));
    }
}
