//! Reading all objects of a cluster at one resourceVersion.

use super::fork::ForkError;
use super::inside::Inside;
use super::origin::Origin;
use super::snapshot::Snapshot;
use super::start_error::StartError;
use super::stocked::{ObjectPlace, Stock};
use apimachinery::options::ListOptions;
use apimachinery::status::Status;
use client_go::client::Client;

/// Why the objects could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// The fork of a running cluster, in which they are read.
    #[error(transparent)]
    Fork(#[from] ForkError),
    /// The cluster of a snapshot, in which they are read.
    #[error(transparent)]
    Start(#[from] StartError),
    /// What its server said.
    #[error("cannot read the objects: {0}")]
    Refused(#[from] Status),
}

impl Inside {
    /// Of a fork in which nothing happens.
    pub(super) async fn stock(&self) -> Result<Stock, ExportError> {
        let fork = self.fork_at_rest().await?;
        let stock = fork.stock().await;
        fork.stop().await;
        Ok(stock?)
    }

    /// Of a snapshot.
    pub(super) async fn stock_of(&self, snapshot: Snapshot) -> Result<Stock, ExportError> {
        let (config, origin) = Origin::at_rest(snapshot).await?;
        let cluster = (self.starter)(config, origin).await?;
        let stock = cluster.stock().await;
        cluster.stop().await;
        Ok(stock?)
    }

    /// Of this one.
    pub(super) async fn collect(&self) -> Result<Stock, Status> {
        let client = self.client();
        // Whoever asks for what every cluster has gets it made: not even that is to be told of.
        let options = ListOptions {
            resource_version: Some(self.began_at.to_string()),
            resource_version_match: Some("Exact".into()),
            ..ListOptions::default()
        };
        wait_for_custom_kinds(&client).await;
        let mut stock = Stock::new();
        for kind in self.scheme.storage_kinds() {
            if !kind.verbs.iter().any(|verb| &**verb == "list") {
                continue;
            }
            let api_version = kind.api_version();
            for object in client.list(&kind, "", &options).await?.items.iter() {
                let mut tree = object.to_value();
                tree["apiVersion"] = api_version.clone().into();
                tree["kind"] = (*kind.kind).into();
                let place = ObjectPlace {
                    api_version: api_version.clone(),
                    kind: kind.kind.to_string(),
                    namespace: object.metadata.namespace.clone(),
                    name: object.metadata.name.clone(),
                };
                stock.insert(place, tree);
            }
        }
        Ok(stock)
    }
}

/// Whoever asks for what is not served is answered when all definitions are known.
async fn wait_for_custom_kinds(client: &Client) {
    let request = http::Request::get("/apis/none.kubarium.dev/v1/nothing").body(Default::default());
    client.raw(request.expect("the path is one")).await;
}
