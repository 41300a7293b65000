//! What was seen of a cluster's users, and why objects are as they are: the Rust face of `seeing`.

use std::time::Duration;

use serde_json::Value;

use super::Cluster;
use apimachinery::status::Status;
use apis::kind::Kind;
use witness::why::Explanation;
use witness::{SeenRequest, SeenRequests, roles};

impl Cluster {
    /// The last requests of a user, oldest first; of all but the cluster's own components when it is empty.
    pub fn requests_of(&self, user: &str) -> Vec<SeenRequest> {
        self.inside.interceptors.requests.of(user)
    }

    /// What users have asked for; `clear` begins anew.
    pub fn requests(&self) -> &SeenRequests {
        &self.inside.interceptors.requests
    }

    /// The least role that would have been enough for a user, with its binding: what
    /// [`witness::roles::infer`] makes of [`Cluster::requests`].
    pub fn infer_roles(&self, user: &str, with_names: bool) -> Vec<Value> {
        roles::infer(&self.requests().uses(), user, with_names)
    }

    /// Why an object is as it is, or why it is not there; `kind` as kubectl takes it.
    ///
    /// # Errors
    /// A kind that is not served.
    pub async fn why(&self, kind: &str, namespace: &str, name: &str) -> Result<Explanation, Status> {
        self.inside.why(&self.inside.kit(), kind, namespace, name).await
    }

    /// Waits until `is_so` of an object, which is none while it is not there; looks whenever it changes.
    ///
    /// # Errors
    /// What the server says to a list; 504 when it does not become so within `patience`, by the cluster's
    /// clock, with [`Cluster::why`] of the object.
    pub async fn wait_for(
        &self,
        kind: &Kind,
        [namespace, name]: [&str; 2],
        patience: Duration,
        is_so: impl FnMut(Option<&Value>) -> bool,
    ) -> Result<(), Status> {
        self.inside.wait_for(kind, [namespace, name], patience, is_so).await
    }
}
