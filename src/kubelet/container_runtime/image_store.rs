//! The images of a node: which are present, and since when.

use std::collections::BTreeMap;

use super::services::{Image, RemovedImages, UnusedImages};
use apimachinery::time::Time;
use machine::images::{reference, size_bytes};
use sync::{Mutex, MutexGuard};

/// At most so many images are remembered of a node; the one that was first in the alphabet is forgotten.
const MAX_IMAGES: usize = 2000;

/// The images that a node has: by the names that pods used.
#[derive(Debug, Default)]
pub(crate) struct ImageStore {
    present: Mutex<BTreeMap<String, Time>>,
    /// When it was last seen that a container is of it.
    used: Mutex<BTreeMap<String, Time>>,
    /// Whether the user says which there are: nobody has brought others.
    pub(crate) are_listed: bool,
}

impl ImageStore {
    /// With these from `since` on.
    pub(crate) fn with(images: &[String], are_listed: bool, since: Time) -> ImageStore {
        let store = ImageStore { are_listed, ..ImageStore::default() };
        images.iter().for_each(|image| drop(store.add(image, since)));
        store
    }

    /// The image, when it is there at `now`.
    pub(crate) fn get(&self, image: &str, now: Time) -> Option<Image> {
        self.lock().get(image).filter(|since| **since <= now).map(|_| of_name(image))
    }

    /// It is there from `since` on.
    pub(crate) fn add(&self, image: &str, since: Time) -> Image {
        let mut present = self.lock();
        let known = present.entry(image.to_owned()).or_insert(since);
        *known = since.min(*known);
        while present.len() > MAX_IMAGES {
            present.pop_first();
        }
        of_name(image)
    }

    /// Those that are there, the biggest first, as nodes report them; at most `limit` of them. And how many
    /// there are.
    pub(crate) fn list(&self, limit: usize, now: Time) -> (Vec<Image>, usize) {
        let present = self.lock();
        let there = present.iter().filter(|(_, since)| **since <= now);
        let mut images: Vec<Image> = there.map(|(name, _)| of_name(name)).collect();
        let count = images.len();
        images.sort_by(|a, b| b.size.cmp(&a.size).then_with(|| a.reference.cmp(&b.reference)));
        images.dedup();
        images.truncate(limit);
        (images, count)
    }

    /// Takes images away that nobody uses, those first that nobody has used for longest (`freeSpace`).
    pub(crate) fn remove(&self, unused: &UnusedImages<'_>, now: Time) -> RemovedImages {
        let mut present = self.lock();
        let mut used = self.used.lock();
        used.extend(unused.in_use.iter().map(|image| (image.clone(), now)));
        used.retain(|image, _| present.contains_key(image));
        let is_old = |since: &Time| (now - *since).to_std().is_ok_and(|age| age >= unused.min_age);
        // One that was never seen in use has not been for any time.
        let is_left = |image: &String| {
            let age = |at: &Time| (now - *at).to_std().unwrap_or_default();
            unused.unused_for.is_none_or(|longest| used.get(image).is_none_or(|at| age(at) > longest))
        };
        let may_go = present
            .iter()
            .filter(|(image, since)| !unused.in_use.contains(*image) && is_old(since) && is_left(image));
        let mut may_go: Vec<_> =
            may_go.map(|(image, since)| (used.get(image).copied(), *since, image.clone())).collect();
        may_go.sort();
        let mut freed = RemovedImages::default();
        for (_, _, image) in may_go {
            if freed.bytes >= unused.bytes {
                break;
            }
            freed.count += 1;
            freed.bytes = freed.bytes.saturating_add(i64::try_from(size_bytes(&image)).unwrap_or(i64::MAX));
            present.remove(&image);
            used.remove(&image);
        }
        freed
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Time>> {
        self.present.lock()
    }
}

fn of_name(name: &str) -> Image {
    Image { reference: reference(name), size: size_bytes(name) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn images_go_that_nobody_has_used_for_longest() {
        let (store, now) = (ImageStore::default(), Time::UNIX_EPOCH);
        let at = |seconds: u64| now + Duration::from_secs(seconds);
        for image in ["a", "b", "c"] {
            store.add(image, now);
        }
        store.add("young", at(590));
        let min_age = Duration::from_secs(120);
        let remove = |in_use: &[&str], bytes: i64, seconds: u64| {
            let in_use = in_use.iter().map(|image| (*image).to_owned()).collect();
            store
                .remove(&UnusedImages { in_use: &in_use, min_age, bytes, unused_for: None }, at(seconds))
                .bytes
        };
        assert_eq!(remove(&["a", "c"], 0, 300), 0);
        assert_eq!(remove(&["c"], 0, 400), 0);
        let has = |image: &str| store.get(image, at(600)).is_some();
        assert!(remove(&["c"], 1, 600) > 0, "b has never been used");
        assert!(!has("b") && has("a") && has("c") && has("young"));
        assert!(remove(&["c"], i64::MAX, 600) > 0);
        assert!(!has("a") && has("c") && has("young"));
    }

    #[test]
    fn images_are_there_when_their_pull_has_ended() {
        let (store, now) = (ImageStore::default(), Time::UNIX_EPOCH);
        let later = now + Duration::from_secs(3);
        store.add("nginx", later);
        assert_eq!((store.get("nginx", now), store.list(9, now).1), (None, 0));
        let nginx = store.get("nginx", later).unwrap();
        assert_eq!(nginx.reference, "docker.io/library/nginx:latest");
        store.add("nginx", now);
        store.add("pause", now);
        assert_eq!(store.list(1, now), (vec![nginx], 2));
    }
}
