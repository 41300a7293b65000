//! The images of a node: which are present, and since when.

use std::collections::BTreeMap;

use super::services::Image;
use apimachinery::time::Time;
use machine::images::{reference, size_bytes};
use sync::{Mutex, MutexGuard};

/// At most so many images are remembered of a node; the one that was first in the alphabet is forgotten.
const MAX_IMAGES: usize = 2000;

/// The images that a node has: by the names that pods used.
#[derive(Debug, Default)]
pub(crate) struct ImageStore {
    present: Mutex<BTreeMap<String, Time>>,
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
