//! The kinds that Kubernetes 1.36 serves: the roots from which every other published type is reached.
//!
//! k8s-openapi has no registry of its types, so they are named here, one line for each group and version.

use k8s_openapi::api::*;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions;
use k8s_openapi::apimachinery::pkg::apis::meta::v1 as meta;
use k8s_openapi::apimachinery::pkg::runtime::RawExtension as Raw;
use k8s_openapi::kube_aggregator::pkg::apis::apiregistration;

use crate::Definitions;

/// Registers every served kind, and its list where it has one.
pub fn register(d: &mut Definitions) {
    workloads(d);
    cluster(d);
    policies(d);
    extensions(d);
    machinery(d);
}

fn workloads(d: &mut Definitions) {
    d.listed::<core::v1::ComponentStatus>();
    d.listed::<core::v1::ConfigMap>();
    d.listed::<core::v1::Endpoints>();
    d.listed::<core::v1::Event>();
    d.listed::<core::v1::LimitRange>();
    d.listed::<core::v1::Namespace>();
    d.listed::<core::v1::Node>();
    d.listed::<core::v1::PersistentVolume>();
    d.listed::<core::v1::PersistentVolumeClaim>();
    d.listed::<core::v1::Pod>();
    d.listed::<core::v1::PodTemplate>();
    d.listed::<core::v1::ReplicationController>();
    d.listed::<core::v1::ResourceQuota>();
    d.listed::<core::v1::Secret>();
    d.listed::<core::v1::Service>();
    d.listed::<core::v1::ServiceAccount>();
    d.kind::<core::v1::Binding>();
    d.listed::<apps::v1::ControllerRevision>();
    d.listed::<apps::v1::DaemonSet>();
    d.listed::<apps::v1::Deployment>();
    d.listed::<apps::v1::ReplicaSet>();
    d.listed::<apps::v1::StatefulSet>();
    d.listed::<batch::v1::CronJob>();
    d.listed::<batch::v1::Job>();
    d.listed::<autoscaling::v1::HorizontalPodAutoscaler>();
    d.kind::<autoscaling::v1::Scale>();
    d.listed::<autoscaling::v2::HorizontalPodAutoscaler>();
    d.listed::<scheduling::v1::PriorityClass>();
    d.listed::<scheduling::v1alpha2::PodGroup>();
    d.listed::<scheduling::v1alpha2::Workload>();
    d.listed::<policy::v1::PodDisruptionBudget>();
    d.kind::<policy::v1::Eviction>();
}

fn cluster(d: &mut Definitions) {
    d.listed::<networking::v1::IPAddress>();
    d.listed::<networking::v1::Ingress>();
    d.listed::<networking::v1::IngressClass>();
    d.listed::<networking::v1::NetworkPolicy>();
    d.listed::<networking::v1::ServiceCIDR>();
    d.listed::<networking::v1beta1::IPAddress>();
    d.listed::<networking::v1beta1::ServiceCIDR>();
    d.listed::<discovery::v1::EndpointSlice>();
    d.listed::<events::v1::Event>();
    d.listed::<coordination::v1::Lease>();
    d.listed::<coordination::v1beta1::LeaseCandidate>();
    d.listed::<coordination::v1alpha2::LeaseCandidate>();
    d.listed::<node::v1::RuntimeClass>();
    d.listed::<storage::v1::CSIDriver>();
    d.listed::<storage::v1::CSINode>();
    d.listed::<storage::v1::CSIStorageCapacity>();
    d.listed::<storage::v1::StorageClass>();
    d.listed::<storage::v1::VolumeAttachment>();
    d.listed::<storage::v1::VolumeAttributesClass>();
    d.listed::<storage::v1beta1::VolumeAttributesClass>();
    d.listed::<storagemigration::v1beta1::StorageVersionMigration>();
    d.listed::<resource::v1::DeviceClass>();
    d.listed::<resource::v1::ResourceClaim>();
    d.listed::<resource::v1::ResourceClaimTemplate>();
    d.listed::<resource::v1::ResourceSlice>();
    d.listed::<resource::v1beta1::DeviceClass>();
    d.listed::<resource::v1beta1::ResourceClaim>();
    d.listed::<resource::v1beta1::ResourceClaimTemplate>();
    d.listed::<resource::v1beta1::ResourceSlice>();
    d.listed::<resource::v1beta2::DeviceClass>();
    d.listed::<resource::v1beta2::DeviceTaintRule>();
    d.listed::<resource::v1beta2::ResourceClaim>();
    d.listed::<resource::v1beta2::ResourceClaimTemplate>();
    d.listed::<resource::v1beta2::ResourceSlice>();
    d.listed::<resource::v1alpha3::DeviceTaintRule>();
    d.listed::<resource::v1alpha3::ResourcePoolStatusRequest>();
}

fn policies(d: &mut Definitions) {
    d.listed::<rbac::v1::ClusterRole>();
    d.listed::<rbac::v1::ClusterRoleBinding>();
    d.listed::<rbac::v1::Role>();
    d.listed::<rbac::v1::RoleBinding>();
    d.kind::<authentication::v1::SelfSubjectReview>();
    d.kind::<authentication::v1::TokenRequest>();
    d.kind::<authentication::v1::TokenReview>();
    d.kind::<authorization::v1::LocalSubjectAccessReview>();
    d.kind::<authorization::v1::SelfSubjectAccessReview>();
    d.kind::<authorization::v1::SelfSubjectRulesReview>();
    d.kind::<authorization::v1::SubjectAccessReview>();
    d.listed::<certificates::v1::CertificateSigningRequest>();
    d.listed::<certificates::v1beta1::ClusterTrustBundle>();
    d.listed::<certificates::v1beta1::PodCertificateRequest>();
    d.listed::<certificates::v1alpha1::ClusterTrustBundle>();
    d.listed::<flowcontrol::v1::FlowSchema>();
    d.listed::<flowcontrol::v1::PriorityLevelConfiguration>();
    d.listed::<apiserverinternal::v1alpha1::StorageVersion>();
}

fn extensions(d: &mut Definitions) {
    d.listed::<admissionregistration::v1::MutatingAdmissionPolicy>();
    d.listed::<admissionregistration::v1::MutatingAdmissionPolicyBinding>();
    d.listed::<admissionregistration::v1::MutatingWebhookConfiguration>();
    d.listed::<admissionregistration::v1::ValidatingAdmissionPolicy>();
    d.listed::<admissionregistration::v1::ValidatingAdmissionPolicyBinding>();
    d.listed::<admissionregistration::v1::ValidatingWebhookConfiguration>();
    d.listed::<admissionregistration::v1beta1::MutatingAdmissionPolicy>();
    d.listed::<admissionregistration::v1beta1::MutatingAdmissionPolicyBinding>();
    d.listed::<admissionregistration::v1alpha1::MutatingAdmissionPolicy>();
    d.listed::<admissionregistration::v1alpha1::MutatingAdmissionPolicyBinding>();
    d.listed::<apiextensions::v1::CustomResourceDefinition>();
    d.listed::<apiregistration::v1::APIService>();
}

fn machinery(d: &mut Definitions) {
    d.kind::<meta::APIGroup>();
    d.kind::<meta::APIGroupList>();
    d.kind::<meta::APIResourceList>();
    d.kind::<meta::APIVersions>();
    d.kind::<meta::Status>();
    d.plain::<meta::DeleteOptions>();
    d.plain::<meta::Patch>();
    d.plain::<meta::WatchEvent<Raw>>();
    d.plain::<k8s_openapi::apimachinery::pkg::version::Info>();
}
