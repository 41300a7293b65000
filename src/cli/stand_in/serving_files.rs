//! The certificate that `kube-apiserver` shows (`SecureServingOptions.MaybeDefaultWithSelfSignedCerts`): the
//! one that flags name, else the one in `--cert-dir`, else a new one that is written there.

use std::fs;
use std::net::IpAddr;
use std::path::Path;

use crate::cli::outcome::Failure;
use apiserver::server::secure_serving::SecureServingOptions;
use clock::Clock;
use files::write_private;
use pki::Authority;

/// `ServerCert.PairName`
const PAIR_NAME: &str = "apiserver";

/// Names the files of `cert_dir` in `options` when they name none, and makes those that are not there.
pub(crate) fn complete(
    options: &mut SecureServingOptions,
    cert_dir: &Path,
    addresses: [IpAddr; 2],
) -> Result<(), Failure> {
    if options.tls_cert_file.is_some() || options.tls_private_key_file.is_some() {
        return Ok(());
    }
    let [certificate, key] = ["crt", "key"].map(|end| cert_dir.join(PAIR_NAME).with_extension(end));
    match (certificate.exists(), key.exists()) {
        (true, true) => {}
        (false, false) => make(&certificate, &key, addresses)?,
        _ => {
            let (certificate, key) = (certificate.display(), key.display());
            let why = "certificate and key must be supplied as a pair";
            return Err(Failure(format!("error reading {certificate} or {key}, {why}")));
        }
    }
    options.tls_cert_file = Some(certificate);
    options.tls_private_key_file = Some(key);
    Ok(())
}

/// The new certificate, with the authority that has signed it and signs nothing else behind it: a client that
/// trusts the file trusts the server.
fn make(certificate: &Path, key: &Path, addresses: [IpAddr; 2]) -> Result<(), Failure> {
    const NAMES: &[&str] = &[
        "localhost",
        "kubernetes",
        "kubernetes.default",
        "kubernetes.default.svc",
        "kubernetes.default.svc.cluster.local",
    ];
    let now = Clock::real().now();
    let failed = |error: pki::PkiError| Failure::new("unable to generate self signed cert", error);
    let authority = Authority::generate(now).map_err(failed)?;
    let mut all = vec![IpAddr::from([127, 0, 0, 1])];
    for address in addresses.into_iter().filter(|address| !address.is_unspecified()) {
        if !all.contains(&address) {
            all.push(address);
        }
    }
    let identity = authority.server(NAMES, &all, now).map_err(failed)?;
    let chain = format!("{}{}", identity.certificate_pem, authority.certificate_pem());
    for (path, text) in [(certificate, &chain), (key, &identity.key_pem)] {
        let cannot = |error| {
            let shown = path.display();
            Failure(format!("cannot write {shown}: {error}; give --cert-dir a folder that can be written to"))
        };
        path.parent().map_or(Ok(()), fs::create_dir_all).map_err(cannot)?;
        write_private(path, text.as_bytes()).map_err(cannot)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADDRESSES: [IpAddr; 2] = [IpAddr::V4(std::net::Ipv4Addr::UNSPECIFIED); 2];

    #[test]
    fn files_are_taken_made_or_refused() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("new");
        let complete = || {
            let mut options = SecureServingOptions::default();
            complete(&mut options, &folder, ADDRESSES).map(|()| options)
        };
        let made = complete().unwrap();
        assert!(made.complete().unwrap().is_some(), "what is made can be served");
        let before = fs::read(folder.join("apiserver.crt")).unwrap();
        assert_eq!(complete().unwrap().tls_cert_file, made.tls_cert_file);
        assert_eq!(fs::read(folder.join("apiserver.crt")).unwrap(), before, "what is there stays");
        fs::remove_file(folder.join("apiserver.key")).unwrap();
        let Failure(why) = complete().unwrap_err();
        assert!(why.contains("certificate and key must be supplied as a pair"), "{why}");
    }

    #[test]
    fn files_that_flags_name_come_first() {
        let folder = tempfile::tempdir().unwrap();
        let mut options = SecureServingOptions {
            tls_cert_file: Some("/a".into()),
            tls_private_key_file: Some("/b".into()),
        };
        complete(&mut options, folder.path(), ADDRESSES).unwrap();
        assert_eq!(options.tls_cert_file, Some("/a".into()));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
