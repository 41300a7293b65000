//! How a call ends (`google.golang.org/grpc/codes`), and etcd's own failures (`rpctypes/error.go`).

use std::fmt;

use etcd::StoreError;

/// etcd's `--max-request-bytes`: what one request may write.
pub const MAX_REQUEST_BYTES: usize = 1_572_864;

/// A failure: a code of gRPC, and words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EtcdStatus {
    /// `codes.Code`
    pub code: u32,
    /// For people, and for clients that compare it.
    pub message: String,
}

/// `codes.Unknown`
pub const UNKNOWN: u32 = 2;
/// `codes.InvalidArgument`
pub const INVALID_ARGUMENT: u32 = 3;
/// `codes.NotFound`
pub const NOT_FOUND: u32 = 5;
/// `codes.ResourceExhausted`
pub const RESOURCE_EXHAUSTED: u32 = 8;
/// `codes.FailedPrecondition`
pub const FAILED_PRECONDITION: u32 = 9;
/// `codes.OutOfRange`
pub const OUT_OF_RANGE: u32 = 11;
/// `codes.Unimplemented`
pub const UNIMPLEMENTED: u32 = 12;
/// `codes.Internal`
pub const INTERNAL: u32 = 13;
/// `codes.Unavailable`
pub const UNAVAILABLE: u32 = 14;
/// `codes.DataLoss`
pub const DATA_LOSS: u32 = 15;

/// etcd's failures, by their Go names without `ErrGRPC`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EtcdError {
    /// `EmptyKey`
    EmptyKey,
    /// `KeyNotFound`
    KeyNotFound,
    /// `ValueProvided`
    ValueProvided,
    /// `LeaseProvided`
    LeaseProvided,
    /// `TooManyOps`
    TooManyOps,
    /// `DuplicateKey`
    DuplicateKey,
    /// `Compacted`
    Compacted,
    /// `FutureRev`
    FutureRev,
    /// `LeaseNotFound`
    LeaseNotFound,
    /// `LeaseExist`
    LeaseExist,
    /// `LeaseTTLTooLarge`
    LeaseTtlTooLarge,
    /// `RequestTooLarge`
    RequestTooLarge,
    /// `AuthNotEnabled`
    AuthNotEnabled,
    /// `Stopped`
    Stopped,
    /// `NoSpace`
    NoSpace,
    /// `Corrupt`
    Corrupt,
}

impl EtcdError {
    /// The words that are sent.
    pub fn words(self) -> &'static str {
        match self {
            EtcdError::EmptyKey => "etcdserver: key is not provided",
            EtcdError::KeyNotFound => "etcdserver: key not found",
            EtcdError::ValueProvided => "etcdserver: value is provided",
            EtcdError::LeaseProvided => "etcdserver: lease is provided",
            EtcdError::TooManyOps => "etcdserver: too many operations in txn request",
            EtcdError::DuplicateKey => "etcdserver: duplicate key given in txn request",
            EtcdError::Compacted => "etcdserver: mvcc: required revision has been compacted",
            EtcdError::FutureRev => "etcdserver: mvcc: required revision is a future revision",
            EtcdError::LeaseNotFound => "etcdserver: requested lease not found",
            EtcdError::LeaseExist => "etcdserver: lease already exists",
            EtcdError::LeaseTtlTooLarge => "etcdserver: too large lease TTL",
            EtcdError::RequestTooLarge => "etcdserver: request is too large",
            EtcdError::AuthNotEnabled => "etcdserver: authentication is not enabled",
            EtcdError::Stopped => "etcdserver: server stopped",
            EtcdError::NoSpace => "etcdserver: mvcc: database space exceeded",
            EtcdError::Corrupt => "etcdserver: corrupt cluster",
        }
    }

    fn code(self) -> u32 {
        match self {
            EtcdError::Compacted | EtcdError::FutureRev | EtcdError::LeaseTtlTooLarge => OUT_OF_RANGE,
            EtcdError::LeaseNotFound => NOT_FOUND,
            EtcdError::LeaseExist | EtcdError::AuthNotEnabled => FAILED_PRECONDITION,
            EtcdError::Stopped => UNAVAILABLE,
            EtcdError::NoSpace => RESOURCE_EXHAUSTED,
            EtcdError::Corrupt => DATA_LOSS,
            _ => INVALID_ARGUMENT,
        }
    }
}

impl EtcdStatus {
    /// A failure that etcd does not know.
    pub fn new(code: u32, message: impl Into<String>) -> EtcdStatus {
        EtcdStatus { code, message: message.into() }
    }
}

impl From<EtcdError> for EtcdStatus {
    fn from(error: EtcdError) -> EtcdStatus {
        EtcdStatus::new(error.code(), error.words())
    }
}

impl From<StoreError> for EtcdStatus {
    fn from(error: StoreError) -> EtcdStatus {
        let known = match &error {
            StoreError::Compacted { .. } => EtcdError::Compacted,
            StoreError::FutureRevision { .. } => EtcdError::FutureRev,
            StoreError::LeaseNotFound(_) => EtcdError::LeaseNotFound,
            StoreError::LeaseExists(_) => EtcdError::LeaseExist,
            StoreError::KeyWrittenTwice(_) => EtcdError::DuplicateKey,
            StoreError::Closed => EtcdError::Stopped,
            StoreError::Locked { .. }
            | StoreError::Io(_)
            | StoreError::Etcd(_)
            | StoreError::NotOnEtcd(_) => {
                return EtcdStatus::new(UNAVAILABLE, format!("etcdserver: {error}"));
            }
            StoreError::Corrupt(_) | StoreError::Lost(_) => {
                return EtcdStatus::new(DATA_LOSS, format!("etcdserver: {error}"));
            }
        };
        known.into()
    }
}

impl fmt::Display for EtcdStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rpc error: code = {} desc = {}", self.code, self.message)
    }
}
