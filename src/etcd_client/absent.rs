//! What a program has that was built without a client of etcd: types of which there is no value, so that
//! whoever has one need not ask whether it is there.

#![allow(missing_docs, reason = "each is told of where it does something: grpc")]

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use clock::Clock;
use etcd::{Expect, KeyValue, LeaseId, Op, Range, Revision, StoreError, Txn, WatchBatch};

use super::config::EtcdConfig;

/// A client that nobody can have.
#[derive(Clone, Debug)]
pub enum AbsentClient {}

/// A watch that nobody can have.
#[derive(Debug)]
pub enum AbsentWatch {}

/// Why there is no etcd to keep objects in.
#[derive(Debug, Clone, thiserror::Error)]
#[error(
    "--etcd-servers {servers}: this program was built without a client of etcd; build it with the feature \
     `etcd`, which is on where --no-default-features does not say otherwise, or leave the flag out"
)]
pub struct AbsentError {
    /// As they were given.
    pub servers: String,
}

/// A change that nobody can write.
#[derive(Clone, Debug)]
pub struct AbsentChange {
    pub key: Arc<str>,
    pub put: Option<(Bytes, Option<LeaseId>)>,
}

impl AbsentClient {
    /// Refused, whatever is asked for.
    ///
    /// # Errors
    /// Always.
    pub async fn open(config: EtcdConfig, _: Clock) -> Result<AbsentClient, AbsentError> {
        let servers: Vec<String> = config.endpoints.iter().map(ToString::to_string).collect();
        Err(AbsentError { servers: servers.join(",") })
    }

    pub async fn revision(&self) -> Result<Revision, StoreError> {
        match *self {}
    }

    pub fn kept_key(&self, _: &str) -> String {
        match *self {}
    }

    pub fn seen_revision(&self) -> Revision {
        match *self {}
    }

    pub fn compact_revision(&self) -> Revision {
        match *self {}
    }

    pub async fn check(&self, _: Duration) -> Result<(), StoreError> {
        match *self {}
    }

    pub async fn get(
        &self,
        _: &str,
        _: Option<Revision>,
    ) -> Result<(Option<KeyValue>, Revision), StoreError> {
        match *self {}
    }

    pub async fn range(
        &self,
        _: &str,
        _: Option<&str>,
        _: Option<usize>,
        _: Option<Revision>,
    ) -> Result<Range, StoreError> {
        match *self {}
    }

    pub async fn txn(&self, _: &str, _: Expect, _: Op) -> Result<Txn, StoreError> {
        match *self {}
    }

    pub async fn grant_lease(&self, _: Duration) -> Result<LeaseId, StoreError> {
        match *self {}
    }

    pub async fn watch(&self, _: &str, _: Revision) -> Result<AbsentWatch, StoreError> {
        match *self {}
    }

    pub fn tells_progress(&self) -> bool {
        match *self {}
    }

    pub fn request_progress(&self, _: &str) {
        match *self {}
    }

    pub async fn compact(&self, _: Revision) -> Result<(), StoreError> {
        match *self {}
    }

    pub async fn compact_every(self, _: Duration) {
        match self {}
    }

    pub async fn snapshot(&self, _: u64) -> Result<Bytes, StoreError> {
        match *self {}
    }

    pub async fn fill_to(&self, _: Revision) -> Result<(), StoreError> {
        match *self {}
    }

    pub async fn end_filling(&self) -> Result<(), StoreError> {
        match *self {}
    }

    pub async fn write_at(&self, _: Revision, _: &[AbsentChange]) -> Result<(), StoreError> {
        match *self {}
    }

    pub async fn write_anywhere(&self, _: AbsentChange) -> Result<(), StoreError> {
        match *self {}
    }

    pub fn close(&self) {
        match *self {}
    }
}

impl AbsentWatch {
    pub async fn next(&mut self) -> Result<WatchBatch, StoreError> {
        match *self {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn nobody_has_one_and_is_told_what_to_build() {
        let endpoints = vec!["http://127.0.0.1:1".parse().unwrap(), "https://etcd:2379".parse().unwrap()];
        let config = EtcdConfig { endpoints, tls: None, prefix: "/registry".into() };
        let said = AbsentClient::open(config, Clock::real()).await.unwrap_err().to_string();
        assert!(
            said.starts_with("--etcd-servers http://127.0.0.1:1,https://etcd:2379: this program"),
            "{said}"
        );
        assert!(said.contains("feature `etcd`"), "{said}");
    }
}
