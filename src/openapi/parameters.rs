//! The parameters of operations: one table, and which of them each operation takes.

/// A query or path parameter.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Parameter {
    pub(super) name: &'static str,
    /// `string`, `boolean` or `integer`.
    pub(super) kind: &'static str,
    pub(super) description: &'static str,
}

/// Of what is done to objects, but for connections.
pub(super) const PRETTY: Parameter = text(
    "pretty",
    "If 'true', the answer is indented for people to read. Defaults to 'false', unless the user agent is \
     that of a browser or of a command line tool for HTTP (curl and wget).",
);

/// Of list and watch.
pub(super) const LIST: &[Parameter] = &[
    flag(
        "allowWatchBookmarks",
        "Asks for watch events of type \"BOOKMARK\", which carry nothing but a resourceVersion: how far the \
         watch has come. The server may send them at any time, or none at all. Ignored when this is no \
         watch.",
    ),
    CONTINUE,
    FIELD_SELECTOR,
    LABEL_SELECTOR,
    LIMIT,
    RESOURCE_VERSION,
    RESOURCE_VERSION_MATCH,
    SEND_INITIAL_EVENTS,
    SHARD_SELECTOR,
    TIMEOUT_SECONDS,
    flag(
        "watch",
        "Instead of a list, answers with a stream of notifications of what is added, modified and deleted, \
         from resourceVersion on, which should be given.",
    ),
];

/// Of exec.
pub(super) const EXEC: &[Parameter] = &[
    text(
        "command",
        "The command to run in the container, one parameter for each element of argv. No shell interprets \
         it.",
    ),
    text(
        "container",
        "The container in which the command runs. Defaults to the only one of the pod, if it has one.",
    ),
    flag("stderr", "Sends the standard error stream of the command to the client."),
    flag(
        "stdin",
        "Sends what the client writes to the standard input stream of the command. Defaults to false.",
    ),
    flag("stdout", "Sends the standard output stream of the command to the client."),
    flag("tty", "Gives the command a terminal (TTY). Defaults to false."),
];

/// Of attach.
pub(super) const ATTACH: &[Parameter] = &[
    text("container", "The container to attach to. Defaults to the only one of the pod, if it has one."),
    flag("stderr", "Sends the standard error stream of the container to the client. Defaults to true."),
    flag(
        "stdin",
        "Sends what the client writes to the standard input stream of the container. Defaults to false.",
    ),
    flag("stdout", "Sends the standard output stream of the container to the client. Defaults to true."),
    flag(
        "tty",
        "Says that a terminal (TTY) is allocated for the call, by the container runtime on the node. \
         Defaults to false.",
    ),
];

/// Of port forwarding.
pub(super) const PORT_FORWARD: &[Parameter] =
    &[integer("ports", "The ports of the pod to forward. Required over WebSockets.")];

/// Of proxies to services.
pub(super) const SERVICE_PROXY: &[Parameter] = &[text(
    "path",
    "The part of the URL behind the service's proxy, with suffixes and parameters: of \
     http://localhost/api/v1/namespaces/kube-system/services/search/proxy/_find?q=user:jane it is \
     _find?q=user:jane.",
)];

/// Of proxies to pods.
pub(super) const POD_PROXY: &[Parameter] = &[text("path", "The path that is asked for at the pod.")];

/// Of proxies to nodes.
pub(super) const NODE_PROXY: &[Parameter] = &[text("path", "The path that is asked for at the node.")];

/// Of reading a custom object.
pub(super) const READ: &[Parameter] = &[RESOURCE_VERSION];

/// Of create and update.
pub(super) const WRITE: &[Parameter] = &[
    DRY_RUN,
    text(
        "fieldManager",
        "The name of the actor that makes these changes, who will own the fields that are set. At most 128 \
         characters, all of them printable.",
    ),
    FIELD_VALIDATION,
];

/// Of patch.
pub(super) const PATCH: &[Parameter] = &[
    DRY_RUN,
    text(
        "fieldManager",
        "The name of the actor that makes these changes, who will own the fields that are set. At most 128 \
         characters, all of them printable. Required for server-side apply (application/apply-patch), \
         optional for other patches (JSON patch, merge patch, strategic merge patch).",
    ),
    FIELD_VALIDATION,
    flag(
        "force",
        "Takes over fields that are in conflict because other managers own them. Only for server-side \
         apply; with any other patch it must not be set.",
    ),
];

/// Of delete.
pub(super) const DELETE: &[Parameter] =
    &[DRY_RUN, GRACE_PERIOD_SECONDS, IGNORE_STORE_READ_ERROR, ORPHAN_DEPENDENTS, PROPAGATION_POLICY];

/// Of deletecollection.
pub(super) const DELETE_COLLECTION: &[Parameter] = &[
    CONTINUE,
    DRY_RUN,
    FIELD_SELECTOR,
    GRACE_PERIOD_SECONDS,
    IGNORE_STORE_READ_ERROR,
    LABEL_SELECTOR,
    LIMIT,
    ORPHAN_DEPENDENTS,
    PROPAGATION_POLICY,
    RESOURCE_VERSION,
    RESOURCE_VERSION_MATCH,
    SEND_INITIAL_EVENTS,
    SHARD_SELECTOR,
    TIMEOUT_SECONDS,
];

/// Of reading a container's log.
pub(super) const LOG: &[Parameter] = &[
    text("container", "The container whose log is read. Defaults to the only one of the pod, if it has one."),
    flag("follow", "Follows the log: the answer goes on as it grows. Defaults to false."),
    flag(
        "insecureSkipTLSVerifyBackend",
        "Does not verify the serving certificate of the kubelet that the log comes from: then nobody knows \
         whether it comes from the real one.",
    ),
    integer(
        "limitBytes",
        "Ends the log after so many bytes, perhaps within a line; it may be slightly more or less.",
    ),
    flag("previous", "Reads the log of the container's previous, terminated run. Defaults to false."),
    integer(
        "sinceSeconds",
        "Begins so many seconds before now, or with the start of the pod if that is later. Of a time in the \
         future there is no log. Only one of sinceSeconds and sinceTime may be given.",
    ),
    text(
        "stream",
        "Which stream of the container is read: \"All\" (the default: both, as they come), \"Stdout\" or \
         \"Stderr\". Together with tailLines it can only be \"All\".",
    ),
    integer(
        "tailLines",
        "Begins so many lines before the end. If not set, the log begins with the container, or at \
         sinceSeconds or sinceTime. Together with it stream can only be \"All\".",
    ),
    flag("timestamps", "Puts an RFC3339 or RFC3339Nano timestamp before every line. Defaults to false."),
];

const CONTINUE: Parameter = text(
    "continue",
    "The continue token of the list before, to get what follows it. The server made it: it only serves with \
     the same other parameters, and the server may refuse one that it does not know. A token that has \
     expired (mostly after five to fifteen minutes) is answered with 410 ResourceExpired and another token. \
     Who needs a consistent list begins anew without one; who uses that other token gets what follows from \
     the newest state, which may differ from that of the lists before.\n\nNot supported when watch is true: \
     a watch can begin at the resourceVersion of the last answer and misses nothing.",
);
const DRY_RUN: Parameter = text(
    "dryRun",
    "If present, nothing of what is changed is persisted. Any other value than these is refused, and \
     nothing is done: - All: all stages of the request are gone through",
);
const FIELD_SELECTOR: Parameter = text(
    "fieldSelector",
    "A selector on fields: only objects that it selects are returned. Defaults to everything.",
);
const FIELD_VALIDATION: Parameter = text(
    "fieldValidation",
    "What the server does about unknown and duplicate fields in the object of a POST, PUT or PATCH: - \
     Ignore: unknown fields are dropped in silence, and of duplicate ones the last counts. The default \
     before v1.23. - Warn: the same, with a warning header for each of them; the request succeeds if \
     nothing else is wrong. The default in v1.23+ - Strict: the request fails with a BadRequest error that \
     names all of them.",
);
const GRACE_PERIOD_SECONDS: Parameter = integer(
    "gracePeriodSeconds",
    "Seconds until the object is deleted, not negative; zero deletes immediately. If not set, the default \
     of the object or of its type is used.",
);
const IGNORE_STORE_READ_ERROR: Parameter = flag(
    "ignoreStoreReadErrorWithClusterBreakingPotential",
    "If true, an object that the normal deletion cannot read is deleted all the same: one that is corrupt \
     because its data cannot be transformed (as when decryption fails) or decoded. NOTE: such an unsafe \
     deletion ignores finalizers, skips preconditions and removes the object from the storage. WARNING: \
     this may break the cluster, if something relies on the normal deletion. Defaults to false; only for \
     who knows what it does.",
);
const LABEL_SELECTOR: Parameter = text(
    "labelSelector",
    "A selector on labels: only objects that it selects are returned. Defaults to everything.",
);
const LIMIT: Parameter = integer(
    "limit",
    "The greatest number of objects in the answer to a list. If there are more, the list's metadata has a \
     `continue` token, to be sent with the same parameters for those that follow. There may be fewer than \
     the limit, even none: only the token tells whether more follow. Not supported when watch is \
     true.\n\nAll parts together are the same as one list without a limit: what is created, modified or \
     deleted after the first request is not seen in the later ones (a consistent snapshot).",
);
const ORPHAN_DEPENDENTS: Parameter = flag(
    "orphanDependents",
    "Deprecated: use propagationPolicy. Whether dependent objects are orphaned: the \"orphan\" finalizer is \
     added to the object, or removed. Only one of the two may be set.",
);
const PROPAGATION_POLICY: Parameter = text(
    "propagationPolicy",
    "Whether and how dependent objects are garbage collected. Only one of this and orphanDependents may be \
     set. The default follows from the finalizers that are set and from the type of the object. Acceptable \
     values are: 'Orphan' - leave the dependents; 'Background' - the garbage collector deletes the \
     dependents in the background; 'Foreground' - all dependents are deleted before the object is.",
);
const RESOURCE_VERSION: Parameter = text(
    "resourceVersion",
    "Which resource versions a request may be served from, or where a watch begins. See \
     https://kubernetes.io/docs/reference/using-api/api-concepts/#resource-versions for \
     details.\n\nDefaults to unset",
);
const RESOURCE_VERSION_MATCH: Parameter = text(
    "resourceVersionMatch",
    "How resourceVersion is applied to a list: Exact or NotOlderThan. Should be set wherever \
     resourceVersion is. See https://kubernetes.io/docs/reference/using-api/api-concepts/#resource-versions \
     for details.\n\nDefaults to unset",
);
const SEND_INITIAL_EVENTS: Parameter = flag(
    "sendInitialEvents",
    "With `watch=true`, the watch begins with synthetic events of the objects that there are, then a \
     \"BOOKMARK\" event with their resourceVersion, which bears the annotation \
     `\"k8s.io/initial-events-end\": \"true\"`; then it goes on as any other.\n\nWhen it is set, \
     `resourceVersionMatch` must be, too: - `NotOlderThan`: the state is at least as new as \
     `resourceVersion`, and without one at least as new as the request (a consistent read); - any other \
     value, or none, is refused as invalid.\n\nDefaults to true if `resourceVersion=\"\"` or \
     `resourceVersion=\"0\"`, and to false otherwise.",
);
const SHARD_SELECTOR: Parameter = text(
    "shardSelector",
    "A selector on hashes: only objects in one of its ranges are returned. It is a CEL expression of \
     shardRange() calls that are joined by ||:\n\n  shardRange(object.metadata.uid, '0x0', \
     '0x8000000000000000')\n\nThe field is object.metadata.uid or object.metadata.namespace (not as in a \
     fieldSelector). The two bounds are texts in hexadecimal with '0x', the first inclusive and the second \
     exclusive, of the 64-bit FNV-1a hash: all is from 0x0 to 0x10000000000000000.\n\nThis is an alpha \
     field and needs the feature gate ShardedListAndWatch.",
);
const TIMEOUT_SECONDS: Parameter = integer(
    "timeoutSeconds",
    "Seconds after which a list or watch call ends, whether or not anything happens.",
);

const fn text(name: &'static str, description: &'static str) -> Parameter {
    Parameter { name, kind: "string", description }
}

const fn flag(name: &'static str, description: &'static str) -> Parameter {
    Parameter { name, kind: "boolean", description }
}

const fn integer(name: &'static str, description: &'static str) -> Parameter {
    Parameter { name, kind: "integer", description }
}
