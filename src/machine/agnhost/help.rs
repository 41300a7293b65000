//! `agnhost help`: which subcommands there are.

use crate::interpreter::player::{AfterCommand, Player};

/// Subcommands, and what each is for.
const SUBCOMMANDS: &[(&str, &str)] = &[
    ("audit-proxy", "Prints the audit events that are sent to port 8080"),
    ("completion", "Prints a script that completes commands in a shell"),
    ("connect", "Tries to connect by TCP, UDP or SCTP, and says what went wrong"),
    ("crd-conversion-webhook", "Serves conversions of custom resources at port 443"),
    ("dns-server-list", "Prints the name servers"),
    ("dns-suffix", "Prints the search domains"),
    ("entrypoint-tester", "Prints its arguments"),
    ("etc-hosts", "Prints /etc/hosts"),
    ("external-metrics", "Serves the API of external metrics"),
    ("fake-gitserver", "Serves what looks like a Git repository"),
    ("fake-registry-server", "Serves images as a registry does"),
    ("grpc-health-checking", "Serves the health checks of gRPC"),
    ("guestbook", "Serves a guestbook over HTTP"),
    ("help", "Tells which commands there are"),
    ("inclusterclient", "Asks the apiserver for /healthz again and again"),
    ("liveness", "Serves, and is healthy for 10 seconds"),
    ("logs-generator", "Prints lines of a log at an even pace"),
    ("mounttest", "Makes files in volumes, and tells their modes, owners and contents"),
    ("mtlsclient", "Connects by mutual TLS"),
    ("mtlsserver", "Serves by mutual TLS, and echoes who asks"),
    ("net", "Serves or runs tests of the network"),
    ("netexec", "Serves HTTP, UDP and SCTP with many paths"),
    ("nettest", "Checks that its peers reach each other"),
    ("no-snat-test", "Serves /checknosnat and /whoami"),
    ("no-snat-test-proxy", "Passes /checknosnat on"),
    ("nonewprivs", "Prints the effective user"),
    ("pause", "Waits for ever"),
    ("podcertificatesigner", "Signs PodCertificateRequests"),
    ("port-forward-tester", "Serves TCP, and sends in chunks"),
    ("porter", "Serves at the ports that variables name"),
    ("resource-consumer", "Uses CPU and memory, and raises metrics, as it is told to"),
    ("resource-consumer-controller", "Passes requests on to resource consumers"),
    ("serve-hostname", "Serves the host name"),
    ("stress", "Uses CPU and memory"),
    ("tcp-reset", "Resets the connections that it takes"),
    ("test-service-account-issuer-discovery", "Checks a token by its issuer's discovery"),
    ("test-webserver", "Serves files"),
    ("webhook", "Serves webhooks of admission"),
];

/// As commands tell it that are made with cobra.
pub(super) fn tell(player: &mut Player<'_>) -> AfterCommand {
    let width = SUBCOMMANDS.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let mut said = "Usage:\n  app [command]\n\nAvailable Commands:\n".to_owned();
    for (name, purpose) in SUBCOMMANDS {
        said.push_str(&format!("  {name:width$} {purpose}\n"));
    }
    said.push_str("\nFlags:\n  -h, --help   help for app\n");
    said.push_str("\nUse \"app [command] --help\" for more information about a command.\n");
    player.say(&said);
    AfterCommand::Exit(0)
}
