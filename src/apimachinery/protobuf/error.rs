//! What can be wrong with a message, in the words of upstream's serializer and of gogo's generated decoders.

/// A body or message that cannot be decoded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProtobufError {
    /// No byte at all.
    #[error("empty data")]
    Empty,
    /// No Kubernetes protobuf.
    #[error("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")]
    NoPrefix,
    /// Nothing after the magic.
    #[error("empty body")]
    EmptyBody,
    /// A type that no message is known of.
    #[error(
        "object *{0} does not implement the protobuf marshalling interface and cannot be encoded to a \
         protobuf message"
    )]
    NotMarshalable(String),
    /// It ends in the middle of a value.
    #[error("unexpected EOF")]
    UnexpectedEnd,
    /// A varint of more than 64 bits.
    #[error("proto: integer overflow")]
    IntegerOverflow,
    /// A length of more than 63 bits.
    #[error("proto: negative length found during unmarshaling")]
    NegativeLength,
    /// A wire type that protobuf does not have.
    #[error("proto: illegal wireType {0}")]
    IllegalWireType(u8),
    /// A field of another wire type than its own.
    #[error("proto: wrong wireType = {wire_type} for field {field}")]
    WrongWireType {
        /// What came.
        wire_type: u8,
        /// The Go name of the field.
        field: String,
    },
    /// A field number that protobuf does not have.
    #[error("proto: {message}: illegal tag {number} (wire type {wire_type})")]
    IllegalTag {
        /// The Go name of the message.
        message: String,
        /// What came as number.
        number: i32,
        /// And as wire type.
        wire_type: u8,
    },
    /// A group ends that did not begin, in a message.
    #[error("proto: {0}: wiretype end group for non-group")]
    EndGroup(String),
    /// A group ends that did not begin, in what is skipped.
    #[error("proto: unexpected end of group")]
    UnexpectedEndGroup,
    /// Messages in messages beyond the bound.
    #[error("proto: exceeded max recursion depth")]
    TooDeep,
    /// Bytes that hold JSON upstream, and do not.
    #[error("{0}")]
    Json(String),
    /// A time before or after all years.
    #[error("proto: timestamp out of range: {0}")]
    Time(i64),
}
