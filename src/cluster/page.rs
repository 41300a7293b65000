//! The page of a cluster, for a program that has the cluster.

use std::net::SocketAddr;
use std::sync::Arc;

use super::Cluster;
use super::inside::{ADMIN, MASTERS};
use super::start_error::StartError;
use apimachinery::user::UserInfo;
use apiserver::server::Server;
use ui::Guest;

impl Cluster {
    /// Opens the page that shows the cluster at work, if it is not open, and gives a link to it that works
    /// once, for an administrator. It listens where [`super::Config::ui_listen`] says, on loopback.
    ///
    /// # Errors
    /// The address is not loopback, or taken.
    pub async fn open_page(&self) -> Result<String, StartError> {
        let user = Arc::new(UserInfo::authenticated(ADMIN, &[MASTERS]));
        self.inside.invite(Guest { user, shown: None }).await
    }

    /// Where the page listens, if it is open.
    pub async fn page_address(&self) -> Option<SocketAddr> {
        self.inside.for_handles.page.server.lock().await.as_ref().map(Server::address)
    }
}
