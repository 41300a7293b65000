//! The simulated disks, as classes and volumes name them.

/// What a StorageClass names to get simulated disks.
pub const PROVISIONER: &str = "kubarium.dev/simulated-disk";
/// What disks with attributes name as their CSI driver, whose name may have no slash.
pub(crate) const CSI_DRIVER: &str = "simulated-disk.kubarium.dev";

/// The names by which these disks are known.
pub(crate) const OWN_DRIVERS: [&str; 2] = [PROVISIONER, CSI_DRIVER];

/// Whether a driver is that of these disks.
pub(crate) fn is_own_driver(name: &str) -> bool {
    OWN_DRIVERS.contains(&name)
}
