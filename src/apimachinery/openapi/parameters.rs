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
pub(super) const PRETTY: Parameter = text("pretty", "'true' asks for indented output.");

/// Of list and watch.
pub(super) const LIST: &[Parameter] = &[
    flag(
        "allowWatchBookmarks",
        "Lets a watch carry events of type BOOKMARK, which tell how far it has come.",
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
    flag("watch", "Answers with a stream of changes instead of a list."),
];

/// Of exec.
pub(super) const EXEC: &[Parameter] = &[
    text("command", "The command and its arguments, one a parameter. It is not run in a shell."),
    CONTAINER,
    flag("stderr", "Passes the standard error stream on."),
    flag("stdin", "Passes the standard input stream on."),
    flag("stdout", "Passes the standard output stream on."),
    flag("tty", "Gives the command a terminal."),
];

/// Of attach.
pub(super) const ATTACH: &[Parameter] = &[
    CONTAINER,
    flag("stderr", "Passes the standard error stream on."),
    flag("stdin", "Passes the standard input stream on."),
    flag("stdout", "Passes the standard output stream on."),
    flag("tty", "Says that the container has a terminal."),
];

/// Of port forwarding.
pub(super) const PORT_FORWARD: &[Parameter] =
    &[integer("ports", "The ports to forward; needed when web sockets are used.")];

/// Of proxies.
pub(super) const PROXY: &[Parameter] = &[text("path", "What is asked for behind the proxy.")];

const CONTAINER: Parameter = text("container", "The container; may be left out where the pod has only one.");

/// Of reading a custom object.
pub(super) const READ: &[Parameter] = &[RESOURCE_VERSION];

/// Of create and update.
pub(super) const WRITE: &[Parameter] = &[DRY_RUN, FIELD_MANAGER, FIELD_VALIDATION];

/// Of patch.
pub(super) const PATCH: &[Parameter] = &[
    DRY_RUN,
    FIELD_MANAGER,
    FIELD_VALIDATION,
    flag("force", "Takes over fields that other managers own; server-side apply only."),
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
    text("container", "The container; may be left out when there is only one."),
    flag("follow", "Goes on as the log grows."),
    flag("insecureSkipTLSVerifyBackend", "Does not check the certificate of the node that answers."),
    integer("limitBytes", "Ends after this many bytes."),
    flag("previous", "Reads the log of the container's previous run."),
    integer("sinceSeconds", "Begins this many seconds ago."),
    text("stream", "The stream to read: All, Stdout or Stderr."),
    integer("tailLines", "Begins this many lines before the end."),
    flag("timestamps", "Puts a time before every line."),
];

const CONTINUE: Parameter = text("continue", "The token of the list before, to get what follows it.");
const DRY_RUN: Parameter = text("dryRun", "'All' does everything but store the result.");
const FIELD_MANAGER: Parameter = text("fieldManager", "The name of who makes these changes.");
const FIELD_SELECTOR: Parameter = text("fieldSelector", "Selects objects by their fields.");
const FIELD_VALIDATION: Parameter = text(
    "fieldValidation",
    "What to do about unknown and duplicate fields: Ignore them, Warn of them (the default), or Strict: refuse them.",
);
const GRACE_PERIOD_SECONDS: Parameter = integer("gracePeriodSeconds", "Seconds until the object is deleted.");
const IGNORE_STORE_READ_ERROR: Parameter = flag(
    "ignoreStoreReadErrorWithClusterBreakingPotential",
    "Deletes an object that can no longer be read, past its finalizers and preconditions.",
);
const LABEL_SELECTOR: Parameter = text("labelSelector", "Selects objects by their labels.");
const LIMIT: Parameter = integer("limit", "The greatest number of objects in one answer.");
const ORPHAN_DEPENDENTS: Parameter =
    flag("orphanDependents", "Deprecated: see propagationPolicy. Leaves dependent objects alone.");
const PROPAGATION_POLICY: Parameter =
    text("propagationPolicy", "What becomes of dependent objects: Orphan, Background or Foreground.");
const RESOURCE_VERSION: Parameter =
    text("resourceVersion", "How old an answer may be, or where a watch begins.");
const RESOURCE_VERSION_MATCH: Parameter =
    text("resourceVersionMatch", "How a list applies resourceVersion: Exact or NotOlderThan.");
const SEND_INITIAL_EVENTS: Parameter =
    flag("sendInitialEvents", "Begins a watch with the objects there are, then a bookmark.");
const SHARD_SELECTOR: Parameter =
    text("shardSelector", "Selects objects by ranges of the hash of a field; needs a feature that is off.");
const TIMEOUT_SECONDS: Parameter = integer("timeoutSeconds", "Ends the call after this many seconds.");

const fn text(name: &'static str, description: &'static str) -> Parameter {
    Parameter { name, kind: "string", description }
}

const fn flag(name: &'static str, description: &'static str) -> Parameter {
    Parameter { name, kind: "boolean", description }
}

const fn integer(name: &'static str, description: &'static str) -> Parameter {
    Parameter { name, kind: "integer", description }
}
