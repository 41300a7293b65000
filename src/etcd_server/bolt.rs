//! Files of bbolt (`go.etcd.io/bbolt`, `internal/common`), written in one go: every page is used, none is
//! free, and keys come in their order.
//!
//! A page begins with its number, what it is, how many elements it has, and how many pages it goes on for.
//! Leaves have keys and values, branches the first keys of pages below them; a bucket is a value that names
//! its first page.

use bytes::BufMut;
use golang::fnv;

/// A key and a value.
pub(crate) type Item = (Vec<u8>, Vec<u8>);

/// Items under a name, in the order of their keys.
pub(crate) struct BoltBucket {
    pub(crate) name: &'static str,
    pub(crate) items: Vec<Item>,
}

const PAGE_BYTES: usize = 4096;
pub(crate) const HEAD_BYTES: usize = 16;
pub(crate) const ELEMENT_BYTES: usize = 16;
pub(crate) const BRANCH: u16 = 1;
pub(crate) const LEAF: u16 = 2;
pub(crate) const META: u16 = 4;
const FREE_LIST: u16 = 16;
/// On an element of a leaf: its value is a bucket.
pub(crate) const IS_BUCKET: u32 = 1;
pub(crate) const MAGIC: u32 = 0xED0C_DAED;
pub(crate) const FORMAT: u32 = 2;
const META_PAGES: u64 = 2;
/// Of what stands behind the head of a first page, its checksum included.
pub(crate) const META_BYTES: usize = 64;

/// One element of a page, written behind all heads of elements.
struct PageElement {
    key: Vec<u8>,
    value: Vec<u8>,
    /// What stands in its head beside lengths: flags in a leaf, the page below in a branch.
    detail: u64,
}

/// A file with these buckets, which come in the order of their names.
pub(crate) fn file(buckets: Vec<BoltBucket>) -> Vec<u8> {
    let mut pages = vec![0; 2 * PAGE_BYTES];
    let free_list = next_page(&pages);
    write_page(&mut pages, FREE_LIST, &[]);
    let roots = buckets.into_iter().map(|bucket| {
        let elements = bucket.items.into_iter().map(|(key, value)| PageElement { key, value, detail: 0 });
        let mut value = Vec::new();
        value.put_u64_le(write_tree(&mut pages, elements.collect()));
        value.put_u64_le(0);
        PageElement { key: bucket.name.into(), value, detail: u64::from(IS_BUCKET) }
    });
    let roots: Vec<PageElement> = roots.collect();
    let root = write_tree(&mut pages, roots);
    let end = next_page(&pages);
    for number in 0..META_PAGES {
        let meta = meta(number, root, free_list, end);
        pages[number as usize * PAGE_BYTES..][..meta.len()].copy_from_slice(&meta);
    }
    pages
}

fn next_page(pages: &[u8]) -> u64 {
    (pages.len() / PAGE_BYTES) as u64
}

/// Writes leaves, then branches above them until there is one; its number.
fn write_tree(pages: &mut Vec<u8>, elements: Vec<PageElement>) -> u64 {
    let mut level = write_level(pages, LEAF, elements);
    while level.len() > 1 {
        level = write_level(pages, BRANCH, level);
    }
    level.first().map_or(0, |root| root.detail)
}

/// Writes pages of elements; the elements of the branches above them.
fn write_level(pages: &mut Vec<u8>, kind: u16, elements: Vec<PageElement>) -> Vec<PageElement> {
    let mut above = Vec::new();
    let mut rest = &elements[..];
    loop {
        let (page, later) = rest.split_at(fitting(rest));
        let key = page.first().map(|first| first.key.clone()).unwrap_or_default();
        above.push(PageElement { key, value: Vec::new(), detail: next_page(pages) });
        write_page(pages, kind, page);
        if later.is_empty() {
            return above;
        }
        rest = later;
    }
}

/// How many elements fit onto one page; one at least, however long it is.
fn fitting(elements: &[PageElement]) -> usize {
    let mut bytes = HEAD_BYTES;
    let fits = |element: &&PageElement| {
        bytes += ELEMENT_BYTES + element.key.len() + element.value.len();
        bytes <= PAGE_BYTES
    };
    elements.iter().take_while(fits).count().max(1).min(elements.len())
}

fn write_page(pages: &mut Vec<u8>, kind: u16, elements: &[PageElement]) {
    let number = next_page(pages);
    let content: usize = elements.iter().map(|element| element.key.len() + element.value.len()).sum();
    let bytes = HEAD_BYTES + elements.len() * ELEMENT_BYTES + content;
    let overflow = (bytes - 1) / PAGE_BYTES;
    let end = pages.len() + (1 + overflow) * PAGE_BYTES;
    write_head(pages, number, kind, elements.len(), overflow);
    // Counted from the head of each element.
    let mut place = elements.len() * ELEMENT_BYTES;
    for element in elements {
        write_element(pages, kind, element, place as u32);
        place = place + element.key.len() + element.value.len() - ELEMENT_BYTES;
    }
    for element in elements {
        pages.extend_from_slice(&element.key);
        pages.extend_from_slice(&element.value);
    }
    pages.resize(end, 0);
}

fn write_head(out: &mut Vec<u8>, number: u64, kind: u16, count: usize, overflow: usize) {
    out.put_u64_le(number);
    out.put_u16_le(kind);
    out.put_u16_le(count as u16);
    out.put_u32_le(overflow as u32);
}

fn write_element(out: &mut Vec<u8>, kind: u16, element: &PageElement, place: u32) {
    if kind == BRANCH {
        out.put_u32_le(place);
        out.put_u32_le(element.key.len() as u32);
        out.put_u64_le(element.detail);
        return;
    }
    out.put_u32_le(element.detail as u32);
    out.put_u32_le(place);
    out.put_u32_le(element.key.len() as u32);
    out.put_u32_le(element.value.len() as u32);
}

/// The page that everything is found by; there are two, of two transactions.
fn meta(number: u64, root: u64, free_list: u64, end: u64) -> Vec<u8> {
    let mut page = Vec::new();
    write_head(&mut page, number, META, 0, 0);
    let start = page.len();
    page.put_u32_le(MAGIC);
    page.put_u32_le(FORMAT);
    page.put_u32_le(PAGE_BYTES as u32);
    page.put_u32_le(0);
    page.put_u64_le(root);
    page.put_u64_le(0);
    page.put_u64_le(free_list);
    page.put_u64_le(end);
    page.put_u64_le(number);
    let checksum = fnv::sum_64a(page[start..].iter().copied());
    page.put_u64_le(checksum);
    page
}
