//! What an object is called in one text, as caches, queues and messages of Go's clients have it.

/// client-go's `MetaNamespaceKeyFunc`: the name alone where there is no namespace.
pub fn object_key(namespace: &str, name: &str) -> String {
    if namespace.is_empty() { name.to_owned() } else { format!("{namespace}/{name}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_stands_before_the_name() {
        assert_eq!((object_key("a", "b").as_str(), object_key("", "b").as_str()), ("a/b", "b"));
    }
}
