//! `kubarium store copy`: a cluster's objects from one store to another.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{Failure, say};
use crate::cluster::store_copy::{self, StorePlace};
use apiserver::storage::options::EtcdOptions;

/// What keys of a data dir begin with.
const DEFAULT_PREFIX: &str = "/registry";

/// What is done with stores.
#[derive(Subcommand)]
pub enum StoreCommand {
    /// Copy a cluster's objects from one store to another: data dirs, files and etcds.
    ///
    /// Uids are kept, and so are resourceVersions, with the history since the last compaction and what is
    /// left of the time of objects that expire. An etcd has to be new for that, and is led to the right
    /// revisions by writes of a key that is gone at the end; its own counts (version, create_revision) are
    /// others. Keys and certificates are not of the store: they stay in pki of a data dir. Nothing else may
    /// write to either store meanwhile.
    Copy(CopyCommand),
}

/// From where to where.
#[derive(Args)]
pub struct CopyCommand {
    /// A data dir of a cluster that does not run, a file of `snapshot save` or of `etcdctl snapshot save`, or
    /// an etcd, as http://127.0.0.1:2379.
    #[arg(long, value_name = "DIR|FILE|URL")]
    pub from: String,
    /// A data dir that is not there yet; a file that ends in .db, which `etcdutl snapshot restore` makes an
    /// etcd of; or an etcd without keys below its prefix.
    #[arg(long, value_name = "DIR|FILE.db|URL")]
    pub to: String,
    /// Let an etcd give revisions of its own: for one that is not new.
    ///
    /// Uids are kept. Who watches begins anew.
    #[arg(long)]
    pub new_revisions: bool,
    /// What keys begin with in an etcd, and in a snapshot of one; in a file that is written it is /registry.
    #[arg(long, value_name = "PREFIX", default_value = DEFAULT_PREFIX)]
    pub etcd_prefix: String,
    /// Who signs the certificates of an etcd, PEM; the system's authorities if it is not said.
    #[arg(long, value_name = "FILE")]
    pub etcd_cafile: Option<PathBuf>,
    /// The certificate that is shown to an etcd, PEM.
    #[arg(long, value_name = "FILE", requires = "etcd_keyfile")]
    pub etcd_certfile: Option<PathBuf>,
    /// Its private key, PEM.
    #[arg(long, value_name = "FILE", requires = "etcd_certfile")]
    pub etcd_keyfile: Option<PathBuf>,
}

impl StoreCommand {
    /// Does it.
    pub fn run(self) -> Result<(), Failure> {
        match self {
            StoreCommand::Copy(copy) => copy.run(),
        }
    }
}

impl CopyCommand {
    fn run(self) -> Result<(), Failure> {
        let from = self.source();
        let to = self.target();
        if self.new_revisions && !matches!(to, StorePlace::Etcd(_)) {
            return Err(Failure(
                "--new-revisions is for --to URL: a data dir and a file have those that were".into(),
            ));
        }
        let is_of_etcd = |place: &StorePlace| matches!(place, StorePlace::Etcd(_));
        let has_prefix = is_of_etcd(&from) || is_of_etcd(&to) || matches!(from, StorePlace::File { .. });
        if self.etcd_prefix != DEFAULT_PREFIX && !has_prefix {
            let why = "--etcd-prefix is for an etcd, or a snapshot of one: here keys begin with /registry";
            return Err(Failure(why.into()));
        }
        let copying = async {
            let copied = store_copy::copy(&from, &to, self.new_revisions).await;
            copied.map_err(|error| Failure(self.said_of(&error.to_string())))
        };
        let copied = super::block_on(copying)?;
        let kept = if self.new_revisions { "new revisions" } else { "the same revisions" };
        let store_copy::CopiedStore { keys, revision } = copied;
        say(format!("copied {keys} objects from {} to {}: {kept}, up to {revision}", self.from, self.to));
        Ok(())
    }

    fn source(&self) -> StorePlace {
        let path = PathBuf::from(&self.from);
        match self.etcd(&self.from) {
            Some(etcd) => etcd,
            None if path.is_file() => StorePlace::File { path, prefix: self.etcd_prefix.clone() },
            None => StorePlace::DataDir(path),
        }
    }

    fn target(&self) -> StorePlace {
        let path = PathBuf::from(&self.to);
        match self.etcd(&self.to) {
            Some(etcd) => etcd,
            None if store_copy::is_for_etcd(&path) => {
                StorePlace::File { path, prefix: self.etcd_prefix.clone() }
            }
            None => StorePlace::DataDir(path),
        }
    }

    fn etcd(&self, place: &str) -> Option<StorePlace> {
        if !place.starts_with("http://") && !place.starts_with("https://") {
            return None;
        }
        Some(StorePlace::Etcd(Box::new(EtcdOptions {
            servers: place.split(',').map(str::to_owned).collect(),
            prefix: self.etcd_prefix.clone(),
            cafile: self.etcd_cafile.clone(),
            certfile: self.etcd_certfile.clone(),
            keyfile: self.etcd_keyfile.clone(),
            ..EtcdOptions::default()
        })))
    }

    /// An etcd is named by another flag here than where a cluster begins.
    fn said_of(&self, why: &str) -> String {
        let flag = if self.etcd(&self.to).is_some() { "--to" } else { "--from" };
        why.replace("--etcd-servers", flag)
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Only {
        #[command(flatten)]
        copy: CopyCommand,
    }

    #[test]
    fn places_are_told_apart_by_how_they_are_written() {
        let of = |from: &str, to: &str| Only::parse_from(["x", "--from", from, "--to", to]).copy;
        let copy = of("http://a:1,http://b:2", "cluster.db");
        assert!(
            matches!(copy.source(), StorePlace::Etcd(etcd) if etcd.servers == ["http://a:1", "http://b:2"])
        );
        assert!(matches!(copy.target(), StorePlace::File { .. }));
        assert_eq!(copy.said_of("--etcd-servers http://a:1: no"), "--from http://a:1: no");
        let copy = of("data", "https://a:1");
        assert!(matches!(copy.source(), StorePlace::DataDir(_)));
        assert!(matches!(copy.target(), StorePlace::Etcd(_)));
        assert_eq!(copy.said_of("--etcd-servers https://a:1: no"), "--to https://a:1: no");
        let mut refused = of("data", "other");
        refused.new_revisions = true;
        assert!(refused.run().unwrap_err().0.starts_with("--new-revisions is for --to URL"));
    }
}
