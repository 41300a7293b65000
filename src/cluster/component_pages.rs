//! The pages of components that run beside the apiserver, at ports of their own.

use std::net::SocketAddr;
use std::sync::Arc;

use super::Cluster;
use super::apart::ApartError;
use super::apart::delegated::Delegated;
use super::apart::pages::{self, OwnPages};
use super::component_handles::{self, health, zpages};
use super::debugging::debugging;
use super::elections::{CONTROLLER_MANAGER, SCHEDULER};
use super::inside::Inside;
use super::serving::made_at;
use super::start_error::StartError;
use apiserver::server::Server;

impl Cluster {
    /// Serves the pages of the components that have a port.
    pub(super) async fn open_component_ports(&mut self) -> Result<(), StartError> {
        let ports = self.inside.config.component_ports;
        let named = [
            (CONTROLLER_MANAGER, ports.controller_manager_secure_port),
            (SCHEDULER, ports.scheduler_secure_port),
        ];
        let asked = named.into_iter().filter_map(|(name, address)| Some((name, address?)));
        for (name, address) in asked {
            let failed = |why: ApartError| StartError::ComponentPort(name, why.0);
            let server = serve(&self.inside, name, address).await.map_err(failed)?;
            self.component_ports.push((name, server));
        }
        Ok(())
    }

    /// The components that have a port of their own, and where ([`Config::component_ports`]).
    ///
    /// [`Config::component_ports`]: super::Config::component_ports
    pub fn component_addresses(&self) -> Vec<(&'static str, SocketAddr)> {
        self.component_ports.iter().map(|(name, server)| (*name, server.address())).collect()
    }
}

async fn serve(inside: &Arc<Inside>, name: &'static str, address: SocketAddr) -> Result<Server, ApartError> {
    let signer = &inside.keys.authority;
    let authority = signer.certificate_pem();
    let delegated = Delegated::new(inside.client(), authority, &inside.clock)?;
    let identity = signer.server(&["localhost"], &[address.ip()], made_at(&inside.clock));
    let identity = identity.map_err(|error| ApartError(error.to_string()))?;
    let configz = inside.running.configz(name).unwrap_or_default().to_string().into();
    let counting = Arc::downgrade(inside);
    // Who has stopped counts nothing.
    let counted = Arc::new(move || {
        let metrics = counting.upgrade().and_then(|inside| inside.running.metrics(name));
        metrics.map(|metrics| component_handles::counted(&metrics)).unwrap_or_default()
    });
    let Inside { config, kv, storage, flow, scheme, .. } = &**inside;
    let debugging = debugging(config, (kv, storage), flow, scheme).begin();
    let health = health(inside, name);
    let own = OwnPages { counted, health, configz, zpages: zpages(inside, name), debugging };
    pages::serve(address, identity, (Arc::new(delegated), authority), own).await
}
