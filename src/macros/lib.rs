//! `#[kubarium::test]`: writes the function that a test harness calls around one that wants a cluster.
//!
//! In comes an `async fn`, out goes a `#[test]` that hands it to `kubarium::testing::run`. All that is done
//! with a cluster is done there; here are only words, so this crate knows none of the others.

#![warn(missing_docs)]

mod options;

use proc_macro::TokenStream;
use quote::quote;
use syn::{Error, FnArg, ItemFn, Type, parse_macro_input};

use options::TestOptions;

/// A test that is given a cluster of its own, which ends with it. `kubarium::test` is documented there.
#[proc_macro_attribute]
pub fn test(options: TokenStream, item: TokenStream) -> TokenStream {
    let options = parse_macro_input!(options as TestOptions);
    let function = parse_macro_input!(item as ItemFn);
    expand(&options, &function).unwrap_or_else(Error::into_compile_error).into()
}

fn expand(options: &TestOptions, function: &ItemFn) -> Result<proc_macro2::TokenStream, Error> {
    let signature = &function.sig;
    if signature.asyncness.is_none() {
        return Err(Error::new_spanned(
            signature.fn_token,
            "must be an async fn: what it asks the cluster takes time",
        ));
    }
    let (attributes, name, answer) = (&function.attrs, &signature.ident, &signature.output);
    let arguments = signature.inputs.iter().map(argument).collect::<Result<Vec<_>, _>>()?;
    let (config, block) = (options.config(), &function.block);
    Ok(quote! {
        #[::core::prelude::v1::test]
        #(#attributes)*
        fn #name() #answer {
            #[allow(clippy::unused_async)]
            #signature #block
            ::kubarium::testing::run(#config, |cluster| async move { #name(#(#arguments),*).await })
        }
    })
}

/// What is handed over: by the type that is asked for, or the cluster itself where a reference is.
fn argument(argument: &FnArg) -> Result<proc_macro2::TokenStream, Error> {
    match argument {
        FnArg::Receiver(own) => Err(Error::new_spanned(own, "a test has no self")),
        FnArg::Typed(typed) => Ok(match &*typed.ty {
            Type::Reference(_) => quote! { &cluster },
            wanted => quote! { <#wanted as ::kubarium::testing::FromCluster>::from_cluster(&cluster) },
        }),
    }
}
