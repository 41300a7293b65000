//! Files of bbolt, read whole: what etcd's members keep, and what `etcdctl snapshot save` writes.
//!
//! Nothing of a file is believed: pages must be within it, of the kind that is expected, and are visited
//! once.

use std::collections::{BTreeMap, BTreeSet};

use bytes::{Buf, Bytes};
use golang::fnv;

use crate::bolt::{BRANCH, ELEMENT_BYTES, FORMAT, HEAD_BYTES, IS_BUCKET, LEAF, MAGIC, META, META_BYTES};

/// Sizes that a page may have; bbolt takes that of the operating system.
const PAGE_SIZES: std::ops::RangeInclusive<u32> = 9..=16;

/// What is wrong with a file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum DamagedBolt {
    /// Neither of its two first pages is one.
    #[error("it is no file of bbolt")]
    NotBolt,
    /// Which page, and what about it.
    #[error("page {0} {1}")]
    Page(u64, &'static str),
}

/// A file, and by which page everything in it is found.
pub(crate) struct BoltFile {
    bytes: Bytes,
    page_bytes: usize,
    root: u64,
}

/// A head of a page.
struct PageHead {
    kind: u16,
    count: usize,
}

impl BoltFile {
    /// Opens a file: of the two first pages the newer one counts that is whole.
    ///
    /// # Errors
    /// [`DamagedBolt::NotBolt`].
    pub(crate) fn open(bytes: Bytes) -> Result<BoltFile, DamagedBolt> {
        let first = meta(&bytes, 0).into_iter();
        let second = PAGE_SIZES.filter_map(|power| {
            let size = 1_usize << power;
            meta(&bytes, size).filter(|meta| meta.page_bytes == size)
        });
        let newest = first.chain(second).max_by_key(|meta| meta.transaction).ok_or(DamagedBolt::NotBolt)?;
        Ok(BoltFile { bytes, page_bytes: newest.page_bytes, root: newest.root })
    }

    /// The items of all buckets, in the order of their keys. Buckets within buckets are left out: etcd has
    /// none.
    ///
    /// # Errors
    /// [`DamagedBolt::Page`].
    pub(crate) fn buckets(&self) -> Result<BTreeMap<Bytes, Vec<(Bytes, Bytes)>>, DamagedBolt> {
        let mut visited = BTreeSet::new();
        let mut buckets = BTreeMap::new();
        for (flags, name, value) in self.leaves(self.root, &mut visited)? {
            if flags & IS_BUCKET == 0 {
                continue;
            }
            let items = self.bucket(value, &mut visited)?;
            buckets.insert(name, items.into_iter().map(|(_, key, value)| (key, value)).collect());
        }
        Ok(buckets)
    }

    /// A small bucket stands in the value itself, as a page.
    fn bucket(&self, mut value: Bytes, visited: &mut BTreeSet<u64>) -> Result<Vec<LeafElement>, DamagedBolt> {
        let damaged = DamagedBolt::Page(self.root, "has a bucket that is cut short");
        let root = value.try_get_u64_le().map_err(|_| damaged.clone())?;
        value.try_get_u64_le().map_err(|_| damaged)?;
        match root {
            0 => elements(&value, self.root),
            root => self.leaves(root, visited),
        }
    }

    /// The elements of all leaves below a page, in their order.
    fn leaves(&self, root: u64, visited: &mut BTreeSet<u64>) -> Result<Vec<LeafElement>, DamagedBolt> {
        let mut found = Vec::new();
        let mut waiting = vec![root];
        while let Some(number) = waiting.pop() {
            let page = self.page(number)?;
            // With those that it goes on for: what is read is no more than what is there.
            for part in number..number + (page.len() / self.page_bytes) as u64 {
                if !visited.insert(part) {
                    return Err(DamagedBolt::Page(part, "is named twice"));
                }
            }
            let head = head(&page).ok_or(DamagedBolt::Page(number, "is cut short"))?;
            match head.kind {
                LEAF => found.extend(elements(&page, number)?),
                BRANCH => waiting.extend(below(&page, head.count, number)?.into_iter().rev()),
                _ => return Err(DamagedBolt::Page(number, "is neither a leaf nor a branch")),
            }
        }
        Ok(found)
    }

    /// A page with those that it goes on for.
    fn page(&self, number: u64) -> Result<Bytes, DamagedBolt> {
        let outside = DamagedBolt::Page(number, "is not within the file");
        let start = usize::try_from(number).ok().and_then(|number| number.checked_mul(self.page_bytes));
        let mut rest = start.and_then(|start| self.bytes.get(start..)).ok_or_else(|| outside.clone())?;
        let overflow = rest.get(12..16).ok_or_else(|| outside.clone())?.get_u32_le() as usize;
        if rest.get_u64_le() != number {
            return Err(DamagedBolt::Page(number, "says another number"));
        }
        let start = start.unwrap_or_default();
        let end = (overflow + 1).checked_mul(self.page_bytes).and_then(|bytes| start.checked_add(bytes));
        let end = end.filter(|end| *end <= self.bytes.len()).ok_or(outside)?;
        Ok(self.bytes.slice(start..end))
    }
}

/// Flags, key and value.
type LeafElement = (u32, Bytes, Bytes);

struct BoltMeta {
    page_bytes: usize,
    root: u64,
    transaction: u64,
}

/// A first page, if there is a whole one.
fn meta(bytes: &Bytes, at: usize) -> Option<BoltMeta> {
    let mut page = bytes.get(at..)?.get(..HEAD_BYTES + META_BYTES)?;
    if page.get(8..10)?.get_u16_le() != META {
        return None;
    }
    page.advance(HEAD_BYTES);
    let checksum = fnv::sum_64a(page[..META_BYTES - 8].iter().copied());
    let (magic, format, page_bytes) = (page.get_u32_le(), page.get_u32_le(), page.get_u32_le());
    page.advance(4);
    let root = page.get_u64_le();
    page.advance(8 + 8 + 8);
    let transaction = page.get_u64_le();
    let is_whole = page.get_u64_le() == checksum && magic == MAGIC && format == FORMAT;
    let is_known = PAGE_SIZES.contains(&page_bytes.trailing_zeros()) && page_bytes.is_power_of_two();
    (is_whole && is_known).then_some(BoltMeta { page_bytes: page_bytes as usize, root, transaction })
}

fn head(page: &[u8]) -> Option<PageHead> {
    let mut head = page.get(..HEAD_BYTES)?;
    head.advance(8);
    Some(PageHead { kind: head.get_u16_le(), count: usize::from(head.get_u16_le()) })
}

/// The elements of a leaf.
fn elements(page: &Bytes, number: u64) -> Result<Vec<LeafElement>, DamagedBolt> {
    let damaged = || DamagedBolt::Page(number, "has an element that is not within it");
    let PageHead { kind, count } = head(page).ok_or_else(damaged)?;
    if kind != LEAF {
        return Err(DamagedBolt::Page(number, "is no leaf"));
    }
    let mut found = Vec::with_capacity(count.min(page.len() / ELEMENT_BYTES));
    let mut content = 0;
    for at in 0..count {
        let place = HEAD_BYTES + at * ELEMENT_BYTES;
        let mut element = page.get(place..place + ELEMENT_BYTES).ok_or_else(damaged)?;
        let flags = element.get_u32_le();
        let [begin, key, value] = [element.get_u32_le(), element.get_u32_le(), element.get_u32_le()];
        let begin = place + begin as usize;
        let (middle, end) = (begin + key as usize, begin + key as usize + value as usize);
        content += end - begin;
        // Several that share bytes would be more than the file.
        if end > page.len() || content > page.len() {
            return Err(damaged());
        }
        found.push((flags, page.slice(begin..middle), page.slice(middle..end)));
    }
    Ok(found)
}

/// The pages below a branch.
fn below(page: &Bytes, count: usize, number: u64) -> Result<Vec<u64>, DamagedBolt> {
    let element = |at: usize| {
        let place = HEAD_BYTES + at * ELEMENT_BYTES;
        let mut element = page.get(place..place + ELEMENT_BYTES)?;
        element.advance(8);
        Some(element.get_u64_le())
    };
    let pages: Option<Vec<u64>> = (0..count).map(element).collect();
    pages.ok_or(DamagedBolt::Page(number, "has an element that is not within it"))
}
