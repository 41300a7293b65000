//! `LoadBook`: how many requests a second Services are said to get, and among whom they are divided.
//!
//! Somebody else hears of Services and endpoints, from when on somebody asks ([`LoadBook::wanted`]). What was
//! divided how is remembered, so that sums over a time never go down.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;

use sync::RwLock;

/// So many changes of a Service's endpoints are remembered. At the bound the oldest two count as the later of
/// them.
const MAX_CHANGES: usize = 512;

/// A number of requests a second, by the seconds since it was said.
pub type RequestCurve = Box<dyn Fn(f64) -> f64 + Send + Sync>;

/// The Services of one cluster that are said to get requests. Cloning shares them.
#[derive(Clone, Default)]
pub struct LoadBook(Arc<LoadBookShared>);

#[derive(Default)]
struct LoadBookShared {
    /// By namespace and name. Bound: the Services that there are.
    services: RwLock<BTreeMap<String, ServiceLoad>>,
    is_wanted: AtomicBool,
    wanted: Notify,
}

/// What one Service gets.
struct ServiceLoad {
    text: String,
    /// How many a second, so many seconds after that was said.
    requests: RequestCurve,
    /// When it was said, in seconds since 1970.
    began: f64,
    /// Since when who shares it. Bound: [`MAX_CHANGES`].
    endpoints: VecDeque<(f64, BTreeSet<IpAddr>)>,
}

/// The requests of who has these addresses: one of each family.
#[derive(Clone, Copy)]
pub struct AddressLoad<'a> {
    book: &'a LoadBook,
    addresses: [Option<IpAddr>; 2],
}

impl LoadBook {
    /// Waits until somebody has asked for the first time.
    pub async fn wanted(&self) {
        while !self.0.is_wanted.load(Ordering::Acquire) {
            self.0.wanted.notified().await;
        }
    }

    /// The requests of who has these addresses: from now on somebody wants to know.
    pub fn at(&self, addresses: [Option<IpAddr>; 2]) -> AddressLoad<'_> {
        if !self.0.is_wanted.swap(true, Ordering::AcqRel) {
            self.0.wanted.notify_one();
        }
        AddressLoad { book: self, addresses }
    }

    /// A Service gets so many requests a second from now on; what it was said to get before goes on if it is
    /// the same.
    pub fn put(&self, service: &str, text: &str, requests: RequestCurve, now: f64) {
        let mut services = self.0.services.write();
        if services.get(service).is_some_and(|known| known.text == text) {
            return;
        }
        let load = ServiceLoad { text: text.to_owned(), requests, began: now, endpoints: VecDeque::new() };
        services.insert(service.to_owned(), load);
    }

    /// A Service gets none any more.
    pub fn remove(&self, service: &str) {
        self.0.services.write().remove(service);
    }

    /// Who shares the requests of a Service from now on; nothing when it gets none.
    pub fn divide(&self, service: &str, endpoints: &BTreeSet<IpAddr>, now: f64) {
        let mut services = self.0.services.write();
        let Some(load) = services.get_mut(service) else { return };
        if load.endpoints.back().is_some_and(|(_, last)| last == endpoints) {
            return;
        }
        if load.endpoints.len() >= MAX_CHANGES {
            let oldest = load.endpoints.pop_front();
            if let (Some((since, _)), Some(next)) = (oldest, load.endpoints.front_mut()) {
                next.0 = since;
            }
        }
        load.endpoints.push_back((now, endpoints.clone()));
    }
}

impl AddressLoad<'_> {
    /// How many a second at a moment, in seconds since 1970.
    pub(crate) fn per_second(&self, at: f64) -> f64 {
        let services = self.book.0.services.read();
        let of = |address: &IpAddr| -> f64 { services.values().map(|load| load.of(*address, at)).sum() };
        self.addresses.iter().flatten().map(of).sum()
    }
}

impl ServiceLoad {
    fn of(&self, address: IpAddr, at: f64) -> f64 {
        let shared = self.endpoints.iter().rev().find(|(since, _)| *since <= at);
        let Some((_, endpoints)) = shared.filter(|(_, endpoints)| endpoints.contains(&address)) else {
            return 0.0;
        };
        (self.requests)((at - self.began).max(0.0)) / endpoints.len() as f64
    }
}

impl fmt::Debug for LoadBook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.services.read().keys()).finish()
    }
}
