//! Errors that are texts (Go's `errors.New`), each a type of its own.

/// Makes a type of an error that says what is wrong in words, and nothing else: so that errors of different
/// rooms are not taken for each other. It is made of a text by `into()` or `?`.
#[macro_export]
macro_rules! text_error {
    ($(#[$about:meta])* $visibility:vis struct $name:ident;) => {
        $(#[$about])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        $visibility struct $name(String);

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl std::error::Error for $name {}

        impl From<String> for $name {
            fn from(why: String) -> $name {
                $name(why)
            }
        }

        impl From<&str> for $name {
            fn from(why: &str) -> $name {
                $name(why.to_owned())
            }
        }

        /// For whoever only tells it.
        impl From<$name> for String {
            fn from(why: $name) -> String {
                why.0
            }
        }
    };
}
