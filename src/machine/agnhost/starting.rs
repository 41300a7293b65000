//! What servers of agnhost say when they start, and why some of them do not.

use std::net::IpAddr;
use std::time::Duration;

use super::flags::{TLS_FILE, flag, is_set};
use super::{klog_line, mutual_tls};
use crate::interpreter::player::{AfterCommand, Player};

/// Variables that `no-snat-test` cannot do without.
const ADDRESSES: [&str; 2] = ["POD_IP", "NODE_IP"];
/// The flag of a certificate's key.
const TLS_KEY: &str = "tls-private-key-file";

/// Says what it says, and serves from then on.
pub(super) fn begin(player: &mut Player<'_>, mode: &str, arguments: &[String]) -> AfterCommand {
    let named = |name: &str, usual: &str| flag(arguments, name).unwrap_or(usual).to_owned();
    let begun = match mode {
        "netexec" => net_exec(player, arguments),
        "serve-hostname" => serve_host_name(player, arguments),
        "no-snat-test" => no_snat(player),
        "webhook" => certificate(player, arguments, "config.go:34"),
        "crd-conversion-webhook" => certificate(player, arguments, "config.go:43"),
        "tcp-reset" => {
            klog_line::say(player, format!("Serving on port {}.", named("port", "8080")));
            Ok(())
        }
        "fake-registry-server" => {
            klog_line::say(player, "Registry server starting with registry directory: /var/registry");
            let port = named("port", "5000");
            klog_line::say(player, format!("HTTP server starting to listen on :{port}"));
            Ok(())
        }
        "external-metrics" => {
            let address = format!("address=\"[::]:{}\"", named("port", "6443"));
            klog_line::say_at(player, ('I', "server.go:101"), format!("\"Starting server on\" {address}"));
            Ok(())
        }
        "grpc-health-checking" => grpc(player, arguments),
        "mtlsserver" => mutual_tls::begin_server(player, arguments),
        _ => Ok(()),
    };
    match begun {
        Ok(()) => player.sleep(Duration::MAX),
        Err(flow) => flow,
    }
}

fn net_exec(player: &mut Player<'_>, arguments: &[String]) -> Result<(), AfterCommand> {
    let mut addresses: Vec<&str> =
        flag(arguments, "udp-listen-addresses").map_or(vec![""], |addresses| addresses.split(',').collect());
    if let Some(wrong) = addresses.iter().find(|it| !it.is_empty() && it.parse::<IpAddr>().is_err()) {
        return Err(klog_line::fatal(player, format!("parseAddress: invalid address {wrong}")));
    }
    let http = flag(arguments, "http-port").unwrap_or("8080");
    klog_line::say(player, format!("Started HTTP server on port {http}"));
    addresses.sort_unstable();
    addresses.dedup();
    let udp = flag(arguments, "udp-port").unwrap_or("8081");
    for address in addresses.into_iter().filter(|_| udp != "-1") {
        klog_line::say(player, format!("Started UDP server on port {address} {udp}"));
    }
    Ok(())
}

fn serve_host_name(player: &mut Player<'_>, arguments: &[String]) -> Result<(), AfterCommand> {
    let is_web = flag(arguments, "http") != Some("false");
    if is_web && (is_set(arguments, "tcp") || is_set(arguments, "udp")) {
        let why = "Can't server TCP/UDP mode and HTTP mode at the same time";
        return Err(klog_line::fatal(player, why));
    }
    let port = flag(arguments, "port").unwrap_or("9376");
    klog_line::say(player, format!("Serving on port {port}."));
    Ok(())
}

/// It serves as long as it knows its own addresses.
fn no_snat(player: &mut Player<'_>) -> Result<(), AfterCommand> {
    for name in ADDRESSES {
        let why = match player.variables.get(name) {
            None => format!("{name} env var was not present in the environment\n"),
            Some(text) if text.parse::<IpAddr>().is_err() => {
                format!("{name} env var contained {text:?}, which is not an IP address\n")
            }
            Some(_) => continue,
        };
        player.fail(&why);
        return Err(AfterCommand::Exit(1));
    }
    Ok(())
}

/// Without its certificate it ends at once.
fn certificate(player: &mut Player<'_>, arguments: &[String], place: &str) -> Result<(), AfterCommand> {
    for name in [TLS_FILE, TLS_KEY] {
        let path = flag(arguments, name).unwrap_or_default();
        if player.file(path).is_none() {
            let why = format!("open {path}: no such file or directory");
            return Err(klog_line::klog_fatal(player, place, why));
        }
    }
    Ok(())
}

fn grpc(player: &mut Player<'_>, arguments: &[String]) -> Result<(), AfterCommand> {
    if flag(arguments, TLS_FILE).is_some() != flag(arguments, TLS_KEY).is_some() {
        let why = "Both --tls-cert-file and --tls-private-key-file must be set";
        return Err(klog_line::fatal(player, why));
    }
    let http = flag(arguments, "http-port").unwrap_or("8080");
    klog_line::say(player, format!("Http server starting to listen on :{http}"));
    let port = flag(arguments, "port").unwrap_or("5000");
    klog_line::say(player, format!("gRPC server starting to listen on :{port}"));
    Ok(())
}
