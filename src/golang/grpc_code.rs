//! Codes of gRPC, as Go prints `google.golang.org/grpc/codes.Code`.

const NAMES: [&str; 17] = [
    "OK",
    "Canceled",
    "Unknown",
    "InvalidArgument",
    "DeadlineExceeded",
    "NotFound",
    "AlreadyExists",
    "PermissionDenied",
    "ResourceExhausted",
    "FailedPrecondition",
    "Aborted",
    "OutOfRange",
    "Unimplemented",
    "Internal",
    "Unavailable",
    "DataLoss",
    "Unauthenticated",
];

/// The name of a code, as `NotFound`; none of a number that is no code.
pub fn code_name(code: u32) -> Option<&'static str> {
    usize::try_from(code).ok().and_then(|code| NAMES.get(code)).copied()
}
