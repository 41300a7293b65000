//! Snapshots that are read again, whole and damaged.

use etcd::{EventKind, StoreImage};

use super::histories::Numbers;
use super::*;
use crate::restored::{self, EtcdSnapshotError, LeasesOf};

/// A store with a past: overwritten, deleted, made again, on a lease, compacted.
async fn with_a_past() -> (Kv, EtcdServer) {
    let kv = Kv::open(Options::default(), Clock::real()).unwrap();
    let server = server_on(kv.clone());
    for at in 0..300 {
        put(&server, &format!("/registry/a/{at:03}"), &"v".repeat(at * 5)).await;
    }
    let granted = LeaseGrantRequest { ttl: 1000, id: 77 };
    let _: LeaseGrantResponse = call(&server, "Lease/LeaseGrant", &granted).await.unwrap();
    let leased = PutRequest { key: bytes("/registry/leased"), lease: 77, ..PutRequest::default() };
    let _: PutResponse = call(&server, "KV/Put", &leased).await.unwrap();
    put(&server, "/registry/a/007", "second").await;
    kv.compact(kv.revision()).await.unwrap();
    put(&server, "/registry/a/007", "third").await;
    let gone = DeleteRangeRequest { key: bytes("/registry/a/008"), ..DeleteRangeRequest::default() };
    let _: DeleteRangeResponse = call(&server, "KV/DeleteRange", &gone).await.unwrap();
    put(&server, "/registry/a/008", "again").await;
    put(&server, "/others", "theirs").await;
    (kv, server)
}

fn decode(file: Bytes, prefix: &str) -> Result<StoreImage, EtcdSnapshotError> {
    restored::decode(file, prefix, LeasesOf::Snapshot)
}

fn load(image: &StoreImage) -> Kv {
    Kv::load(image, Options::default(), Clock::real()).unwrap()
}

#[tokio::test]
async fn what_is_read_again_has_the_same_revisions_leases_and_history() {
    let (kv, server) = with_a_past().await;
    let file = Bytes::from(snapshot(&server).await.concat());
    let read = load(&decode(file.clone(), "/registry").unwrap());
    assert_eq!((read.revision(), read.compact_revision()), (kv.revision(), kv.compact_revision()));
    let all = |kv: &Kv| kv.range("/registry/", None, None, None).unwrap().kvs;
    assert_eq!(all(&read), all(&kv));
    assert_eq!(read.get("/others", None).unwrap().0, None, "they are nobody's");
    let before = Some(kv.compact_revision() + 1);
    assert_eq!(read.get("/registry/a/008", before).unwrap(), kv.get("/registry/a/008", before).unwrap());
    let mut watch = read.watch("/registry/", kv.compact_revision()).unwrap();
    let events = watch.next().await.unwrap().events;
    let told: Vec<(EventKind, &str)> = events.iter().map(|event| (event.kind, &*event.kv.key)).collect();
    let (put, delete) = (EventKind::Put, EventKind::Delete);
    let expected = [(put, "/registry/a/007"), (delete, "/registry/a/008"), (put, "/registry/a/008")];
    assert_eq!(told, expected);
    assert_eq!(&*events[0].previous.as_ref().unwrap().value, b"second");
    let lease = &read.leases()[0];
    assert_eq!((lease.name, lease.ttl.as_secs()), (77, 1000));
    assert_eq!(read.lease_keys(lease.lease).unwrap(), ["/registry/leased".into()]);
    let for_ever = load(&restored::decode(file, "/registry", LeasesOf::Nobody).unwrap());
    assert!(for_ever.leases().is_empty());
    assert!(for_ever.get("/registry/leased", None).unwrap().0.is_some_and(|kv| kv.lease.is_none()));
}

#[tokio::test]
async fn keys_below_another_prefix_are_found_below_ours() {
    let server = server();
    put(&server, "/kube/pods/a/b", "1").await;
    let file = Bytes::from(snapshot(&server).await.concat());
    let refused = decode(file.clone(), "/registry").unwrap_err().to_string();
    assert_eq!(refused, "it has no key below /registry/: say with --etcd-prefix what its keys begin with");
    let read = load(&decode(file, "/kube").unwrap());
    assert!(read.get("/registry/pods/a/b", None).unwrap().0.is_some());
}

/// Two clusters on one etcd, and a prefix that begins as another does.
#[tokio::test]
async fn keys_that_are_not_below_the_prefix_are_left_out() {
    let server = server();
    for (key, value) in [
        ("/registry/pods/a/b", "first"),
        ("/kube/pods/a/b", "second"),
        ("/registry/pods/a/c", "first"),
        ("/kube/pods/a/d", "second"),
        ("/kubernetes/pods/a/e", "third"),
    ] {
        put(&server, key, value).await;
    }
    let file = Bytes::from(snapshot(&server).await.concat());
    for (prefix, expected) in [
        ("/registry", vec![("/registry/pods/a/b", "first"), ("/registry/pods/a/c", "first")]),
        ("/kube", vec![("/registry/pods/a/b", "second"), ("/registry/pods/a/d", "second")]),
        ("/kubernetes", vec![("/registry/pods/a/e", "third")]),
    ] {
        let read = load(&decode(file.clone(), prefix).unwrap());
        let found = read.range("", None, None, None).unwrap().kvs;
        let found: Vec<(&str, &str)> =
            found.iter().map(|kv| (&*kv.key, str::from_utf8(&kv.value).unwrap())).collect();
        assert_eq!(found, expected, "{prefix}");
        assert_eq!(read.revision(), 6, "it goes on where the etcd stood");
    }
    let refused = decode(file, "/nothing").map(drop).unwrap_err().to_string();
    assert_eq!(refused, "it has no key below /nothing/: say with --etcd-prefix what its keys begin with");
}

/// Nothing that a file says makes it more than a refusal; what is in the pages is then perhaps not what was.
#[tokio::test]
async fn a_file_that_is_damaged_or_cut_short_is_refused_or_read_but_never_more() {
    let (_, server) = with_a_past().await;
    let mut pieces = snapshot(&server).await;
    let whole = pieces.concat();
    let mut other = whole.clone();
    other[5000] ^= 1;
    assert!(matches!(decode(other.into(), "/registry"), Err(EtcdSnapshotError::Damaged)));
    pieces.pop();
    let pages = pieces.concat();
    for end in (0..pages.len()).step_by(pages.len() / 50) {
        assert!(decode(Bytes::copy_from_slice(&pages[..end]), "/registry").is_err(), "{end}");
    }
    let mut refused = 0;
    for at in (0..pages.len()).step_by(pages.len() / 400) {
        for flip in [0x01, 0xff] {
            let mut damaged = pages.clone();
            damaged[at] ^= flip;
            refused += usize::from(decode(damaged.into(), "/registry").is_err());
        }
    }
    assert!(refused > 0, "{refused}");
    for garbage in ["", "kubarium snapshot", "SQLite format 3"] {
        let why = decode(garbage.into(), "/registry").unwrap_err().to_string();
        assert!(why.starts_with("it is no file of bbolt: give the file that"), "{why}");
    }
}

/// So many broken files are tried, the same each time; `make fuzz` tries others for as long as it says.
const BROKEN: u64 = 300;
/// What readers of numbers fear.
const FEARED: [u64; 9] = [0, 1, 2, 15, 0xff, 0xffff, 0x7fff_ffff, 0xffff_ffff, u64::MAX];
const PAGE: usize = 4096;

/// Breaks pages as neither disks nor people do: fields get feared values, pages stand for others, ends are
/// missing. First pages keep a right checksum half of the time, so that what is behind them is looked at.
fn broken(pages: &[u8], numbers: &mut Numbers) -> Vec<u8> {
    let mut file = pages.to_vec();
    let count = (file.len() / PAGE) as u64;
    for _ in 0..=numbers.below(4) {
        let page = numbers.below(count) as usize * PAGE;
        // Heads of pages and of elements are where most is decided.
        let reach = if numbers.below(2) == 0 { 64 } else { PAGE as u64 - 8 };
        let at = page + numbers.below(reach) as usize;
        match numbers.below(6) {
            0 => file[at] = numbers.below(256) as u8,
            1 => file[at] ^= 1 << numbers.below(8),
            2 => {
                let (value, width) = (FEARED[numbers.below(9) as usize], 1 << numbers.below(4));
                file[at..at + width].copy_from_slice(&value.to_le_bytes()[..width]);
            }
            3 => {
                let number = numbers.below(count + 2).to_le_bytes();
                file[at..at + 8].copy_from_slice(&number);
            }
            4 => {
                let from = numbers.below(count) as usize * PAGE;
                file.copy_within(from..from + PAGE, page);
                // It says that it is the page that it stands for.
                file[page..page + 8].copy_from_slice(&((page / PAGE) as u64).to_le_bytes());
            }
            _ => file.truncate(file.len() - numbers.below(count.min(4)) as usize * PAGE),
        }
        if file.len() <= 2 * PAGE || file.len() / PAGE < count as usize {
            break;
        }
    }
    if numbers.below(2) == 0 {
        sign_first_pages(&mut file);
    }
    file
}

fn sign_first_pages(file: &mut [u8]) {
    for page in file.chunks_exact_mut(PAGE).take(2) {
        let checksum = golang::fnv::sum_64a(page[16..16 + 56].iter().copied());
        page[16 + 56..16 + 64].copy_from_slice(&checksum.to_le_bytes());
    }
}

/// A refusal or an image that a store can be made of, or refuses: nothing else comes of any bytes.
#[tokio::test]
async fn whatever_is_in_a_file_it_is_read_or_refused() {
    let (_, server) = with_a_past().await;
    let mut pieces = snapshot(&server).await;
    pieces.pop();
    let pages = pieces.concat();
    let seconds = std::env::var("KUBARIUM_FUZZ_SECONDS").ok().map(|text| text.parse::<u64>().unwrap());
    let clock = Clock::real();
    let end = clock.elapsed() + Duration::from_secs(seconds.unwrap_or(0));
    let start = seconds.map_or(0, |_| clock.now().timestamp().unsigned_abs() << 20);
    let mut outcomes = [0, 0];
    for seed in start.. {
        let is_over = if seconds.is_some() { clock.elapsed() > end } else { seed == BROKEN };
        if is_over {
            break;
        }
        let file = broken(&pages, &mut Numbers(seed));
        let read = std::panic::catch_unwind(|| decode(file.into(), "/registry"));
        let read = read.unwrap_or_else(|_| panic!("seed {seed} panics"));
        outcomes[usize::from(read.is_ok())] += 1;
        if let Ok(image) = read
            && let Ok(kv) = Kv::load(&image, Options::default(), Clock::real())
        {
            kv.range("", None, None, None).unwrap();
        }
    }
    assert!(outcomes.iter().all(|count| *count > 0), "{outcomes:?}");
}

/// Elements that share their bytes, and pages that lie in others, would make a small file large in memory.
#[tokio::test]
async fn nothing_of_a_file_is_read_twice() {
    let (_, server) = with_a_past().await;
    let mut pieces = snapshot(&server).await;
    pieces.pop();
    let pages = pieces.concat();
    let kind = |page: &[u8]| u16::from_le_bytes([page[8], page[9]]);
    let overflow = |page: &[u8]| u32::from_le_bytes([page[12], page[13], page[14], page[15]]);
    let count = |page: &[u8]| u16::from_le_bytes([page[10], page[11]]);
    let leaves = (2..pages.len() / PAGE).map(|at| at * PAGE);
    let leaves = leaves.filter(|at| kind(&pages[*at..]) == 2 && overflow(&pages[*at..]) == 0);
    // One of the bucket of keys.
    let first = leaves.max_by_key(|at| count(&pages[*at..])).unwrap();
    let mut sharing = pages.clone();
    // Each element of the page has its key and all that is behind it.
    for element in (first + 16..).step_by(16).take(usize::from(count(&pages[first..]))) {
        let place = u32::from_le_bytes(pages[element + 4..element + 8].try_into().unwrap()) as usize;
        let key = u32::from_le_bytes(pages[element + 8..element + 12].try_into().unwrap()) as usize;
        let rest = first + PAGE - (element + place + key);
        sharing[element + 12..element + 16].copy_from_slice(&(rest as u32).to_le_bytes());
    }
    let why = decode(sharing.into(), "/registry").map(drop).unwrap_err().to_string();
    assert!(why.contains("has an element that is not within it"), "{why}");
    let mut within = pages.clone();
    within[first + 12] = 1;
    let why = decode(within.into(), "/registry").map(drop).unwrap_err().to_string();
    assert!(why.contains("is named twice"), "{why}");
}
