//! The group `storage.k8s.io/v1`.

pub mod csi;
mod csi_validation;
pub mod storage_class;
pub mod volume_attachment;
pub mod volume_attributes_class;

use super::kind::Builtin;

/// Its kinds.
pub const KINDS: &[&Builtin] = &[
    &storage_class::STORAGE_CLASSES,
    &csi::CSI_DRIVERS,
    &csi::CSI_NODES,
    &csi::CSI_STORAGE_CAPACITIES,
    &volume_attachment::VOLUME_ATTACHMENTS,
    &volume_attributes_class::VOLUME_ATTRIBUTES_CLASSES,
];
