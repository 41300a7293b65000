//! Images that nobody uses go when the disk is nearly full (`pkg/kubelet/images`, `image_gc_manager.go`).
//!
//! How full it is follows from what pods use and from the images themselves; nodes whose pods say nothing of
//! what they use are not looked at.

use std::collections::BTreeSet;
use std::time::Duration;

use super::container_runtime::services::{RemovedImages, UnusedImages};
use super::kubelet::Kubelet;
use apimachinery::time::Time;

/// How often it is looked (`ImageGCPeriod`).
const IMAGE_GC_PERIOD: Duration = Duration::from_secs(300);

/// What is remembered from one look to the next.
#[derive(Default)]
pub(crate) struct ImageGarbage {
    looked_at: Option<Time>,
    /// The last one did not find enough.
    has_failed: bool,
}

impl Kubelet {
    /// Frees what is above the low threshold, if the disk is above the high one (`GarbageCollect`). `disk` is
    /// its size and what pods have left of it.
    pub(crate) fn collect_images(&self, garbage: &mut ImageGarbage, disk: (i64, i64), now: Time) {
        let is_early = |at: Time| (now - at).to_std().is_ok_and(|age| age < IMAGE_GC_PERIOD);
        if garbage.looked_at.is_some_and(is_early) {
            return;
        }
        garbage.looked_at = Some(now);
        let options = &self.shared.config.options;
        let images = self.shared.node.runtime.list_images(usize::MAX, now).0;
        let of_images = images.iter().map(|image| image.size).sum::<u64>();
        let high = options.image_gc_high_threshold;
        let low = options.image_gc_low_threshold;
        let wanted = to_free(disk, i64::try_from(of_images).unwrap_or(i64::MAX), (high, low));
        if wanted <= 0 {
            garbage.has_failed = false;
            return;
        }
        let freed = self.remove_unused_images(wanted, now);
        if freed >= wanted {
            garbage.has_failed = false;
            return;
        }
        let why = format!(
            "Failed to garbage collect required amount of images. Attempted to free {wanted} bytes, but only \
             found {freed} bytes eligible to free."
        );
        self.tell_of_node("Warning", "FreeDiskSpaceFailed", &why);
        if garbage.has_failed {
            self.tell_of_node("Warning", "ImageGCFailed", &why);
        }
        garbage.has_failed = true;
    }

    /// Takes away what no pod of the node uses, until so many bytes are free; says how many are.
    pub(crate) fn remove_unused_images(&self, bytes: i64, now: Time) -> i64 {
        let min_age = self.shared.config.options.minimum_image_ttl_duration;
        let removed = self.remove_images(min_age, bytes, None, now);
        self.shared.counted.collected_images("space", removed.count);
        self.shared.counted.called("remove_image", removed.count);
        removed.bytes
    }

    /// Takes away for as long as it is polled what nobody has used for too long (`freeOldImages`). Before the
    /// kubelet has run that long it does not know how long that is.
    pub(crate) async fn collect_old_images(self) {
        let (clock, longest) = (&self.shared.context.clock, self.options().image_maximum_gc_age);
        let begun = clock.elapsed();
        loop {
            clock.sleep(IMAGE_GC_PERIOD).await;
            let is_early = clock.elapsed().saturating_sub(begun) <= longest;
            // Those that are in use are noted also when none may go yet.
            let bytes = if is_early { 0 } else { i64::MAX };
            let removed = self.remove_images(Duration::ZERO, bytes, Some(longest), clock.now());
            self.shared.counted.collected_images("age", removed.count);
            self.shared.counted.called("remove_image", removed.count);
        }
    }

    fn remove_images(
        &self,
        min_age: Duration,
        bytes: i64,
        unused_for: Option<Duration>,
        now: Time,
    ) -> RemovedImages {
        let mut in_use = BTreeSet::new();
        for entry in self.pods.state().workers.values().filter(|entry| !entry.is_terminated) {
            in_use.extend(entry.pod().spec.all_containers().map(|container| container.image.clone()));
            // Of a worker that is lent out they are not known.
            let volumes = entry.resting().into_iter().flat_map(|worker| worker.image_volumes.references());
            in_use.extend(volumes.map(str::to_owned));
        }
        let unused = UnusedImages { in_use: &in_use, min_age, bytes, unused_for };
        let removed = self.shared.node.runtime.remove_images(&unused, now);
        if removed.count > 0 {
            self.shared.state.changed.notify_one();
        }
        removed
    }
}

/// How many bytes are to be freed: none as long as less is used than the high share, in percent.
fn to_free((capacity, left): (i64, i64), of_images: i64, (high, low): (u8, u8)) -> i64 {
    let used = capacity.saturating_sub(left).saturating_add(of_images);
    let share = |percent: u8| (i128::from(capacity) * i128::from(percent) / 100) as i64;
    // At 100 nothing is ever freed.
    if capacity <= 0 || high >= 100 || used < share(high) { 0 } else { used - share(low) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn above_the_high_share_all_goes_that_is_above_the_low_one() {
        for (left, of_images, expected) in
            [(900, 0, 0), (200, 40, 0), (200, 50, 50), (0, 0, 200), (900, 760, 60), (1000, 849, 0)]
        {
            assert_eq!(to_free((1000, left), of_images, (85, 80)), expected, "{left} {of_images}");
        }
        assert_eq!(to_free((0, 0), 0, (85, 80)), 0);
        assert_eq!(to_free((i64::MAX, 0), i64::MAX, (99, 0)), i64::MAX);
        assert_eq!(to_free((1000, 0), 1000, (100, 80)), 0);
    }
}
