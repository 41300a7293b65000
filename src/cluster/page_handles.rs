//! The page that shows a cluster (`kubarium up --ui`): it is opened when somebody is invited first, and ends
//! with the cluster.

use std::sync::Arc;

use serde_json::json;

use super::inside::Inside;
use super::start_error::StartError;
use apimachinery::status::Status;
use apiserver::server::{self, Server};
use handles::{ClusterHandle, HandleCall, Handles, answer};
use ui::Guest;

impl Inside {
    /// A link that opens the page once, in this guest's name.
    pub(super) async fn invite(&self, guest: Guest) -> Result<String, StartError> {
        let address = self.config.ui_listen;
        if !address.ip().is_loopback() {
            return Err(StartError::Exposed(address));
        }
        let failed = |error| StartError::Listen(address, error);
        let mut server = self.for_handles.page.server.lock().await;
        let bound = match &*server {
            Some(open) => open.address(),
            None => {
                let listener = server::bind(address).await.map_err(failed)?;
                let page = ui::service(self.service.clone(), self.for_handles.page.guests.clone());
                let open = Server::start(listener, None, page).map_err(failed)?;
                server.insert(open).address()
            }
        };
        drop(server);
        let invited = self.for_handles.page.guests.invite(guest);
        let key = invited.map_err(|why| failed(std::io::Error::other(why)))?;
        Ok(format!("http://{bound}/#{key}"))
    }
}

/// To be invited.
pub(super) fn add(handles: Handles, inside: &Arc<Inside>) -> Handles {
    let open = ClusterHandle::post("/ui", "Opens the page that shows the cluster at work; a link to it.");
    let link = json!({"type": "string", "description": "Works once, in the name of who asks."});
    let open = open.answers(json!({"type": "object", "properties": {"url": link}}));
    let inside = Arc::downgrade(inside);
    handles.with(open, move |call: HandleCall| {
        let inside = inside.upgrade();
        async move {
            let inside = inside.ok_or_else(|| Status::internal("the cluster has ended"))?;
            let link = inside.invite(Guest { user: call.user, shown: call.shown }).await;
            answer(&json!({"url": link.map_err(|error| Status::internal(error.to_string()))?}))
        }
    })
}
