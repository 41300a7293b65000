//! What stands in the brackets of `#[kubarium::test(...)]`.

use proc_macro2::TokenStream;
use quote::quote;
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{Error, Expr, Ident, Token};

const KNOWN: &str = "must be nodes = N, seed = N, stepped, apiserver_only or config = EXPRESSION";

/// The cluster that a test is given.
#[derive(Default)]
pub(crate) struct TestOptions {
    config: Option<Expr>,
    nodes: Option<Expr>,
    seed: Option<Expr>,
    is_stepped: bool,
    is_apiserver_only: bool,
}

struct TestOption {
    name: Ident,
    value: Option<Expr>,
}

impl Parse for TestOption {
    fn parse(input: ParseStream<'_>) -> Result<TestOption, Error> {
        let name = input.parse()?;
        let value = match input.parse::<Option<Token![=]>>()? {
            Some(_) => Some(input.parse()?),
            None => None,
        };
        Ok(TestOption { name, value })
    }
}

impl Parse for TestOptions {
    fn parse(input: ParseStream<'_>) -> Result<TestOptions, Error> {
        let mut options = TestOptions::default();
        for TestOption { name, value } in Punctuated::<TestOption, Token![,]>::parse_terminated(input)? {
            match (name.to_string().as_str(), value) {
                ("config", Some(value)) => options.config = Some(value),
                ("nodes", Some(value)) => options.nodes = Some(value),
                ("seed", Some(value)) => options.seed = Some(value),
                ("stepped", None) => options.is_stepped = true,
                ("apiserver_only", None) => options.is_apiserver_only = true,
                _ => return Err(Error::new(name.span(), KNOWN)),
            }
        }
        Ok(options)
    }
}

impl TestOptions {
    /// An expression of type `kubarium::Config`.
    pub(crate) fn config(&self) -> TokenStream {
        let base = match &self.config {
            Some(config) => quote! { #config },
            None => quote! { ::kubarium::Config::new() },
        };
        let nodes = self.nodes.iter().map(|nodes| quote! { config.nodes = #nodes; });
        let seed =
            self.seed.iter().map(|seed| quote! { config.entropy = ::kubarium::Entropy::seeded(#seed); });
        let clock = self.is_stepped.then(|| quote! { config.clock = ::kubarium::testing::stepped_clock(); });
        let components = self.is_apiserver_only.then(|| {
            quote! { config.components = ::kubarium::Components::NONE; config.nodes = 0; }
        });
        quote! {{
            #[allow(unused_mut)]
            let mut config: ::kubarium::Config = #base;
            #(#nodes)*
            #(#seed)*
            #clock
            #components
            config
        }}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<TestOptions, String> {
        syn::parse_str(text).map_err(|error| error.to_string())
    }

    #[test]
    fn options_are_names_with_and_without_values() {
        let all = parsed("nodes = 3, seed = 7, stepped, apiserver_only, config = own(1)").unwrap();
        let text = all.config().to_string();
        for part in ["own (1)", "config . nodes = 3", "seeded (7)", "stepped_clock", "Components :: NONE"] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!parsed("").unwrap().config().to_string().contains("stepped"));
        for wrong in ["nodes", "stepped = true", "speed = 2"] {
            assert_eq!(parsed(wrong).err().unwrap(), KNOWN, "{wrong}");
        }
    }
}
