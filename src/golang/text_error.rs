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

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        /// For whoever looks into what it says.
        impl std::ops::Deref for $name {
            type Target = str;

            fn deref(&self) -> &str {
                &self.0
            }
        }

        impl PartialEq<&str> for $name {
            fn eq(&self, other: &&str) -> bool {
                self.0 == *other
            }
        }

        impl PartialEq<String> for $name {
            fn eq(&self, other: &String) -> bool {
                self.0 == *other
            }
        }

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
