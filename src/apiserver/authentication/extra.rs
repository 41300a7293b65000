//! What authenticators put into a user's extra (`k8s.io/apiserver/pkg/authentication/user`).

/// Which credential it was: `JTI=…` of a token, `X509SHA256=…` of a certificate.
pub const CREDENTIAL_ID: &str = "authentication.kubernetes.io/credential-id";
/// The pod that a service account's token is bound to.
pub const POD_NAME: &str = "authentication.kubernetes.io/pod-name";
/// Its uid.
pub const POD_UID: &str = "authentication.kubernetes.io/pod-uid";
/// The node that the pod runs on, or that the token is bound to.
pub const NODE_NAME: &str = "authentication.kubernetes.io/node-name";
/// Its uid.
pub const NODE_UID: &str = "authentication.kubernetes.io/node-uid";
