//! `#[derive(Config)]` for burn-attn's configurations: Burn's derive, strict about what it reads.
//!
//! Like Burn's, it turns a struct into a configuration: `new` with the required fields, `with_*` for those with a default (that of an
//! `Option` is `None`, and its method takes `x` as well as `Some(x)`), `Clone`, JSON as `Display`, serde and `burn::config::Config`. In addition:
//!
//! - A file with a field that the configuration does not have is refused by name, so a typo never silently becomes a default.
//! - With `into`, the method of a field takes anything that converts into its type.
//! - `alias` is the name of a field in older files.
//! - `missing` is the value that a file without the field stands for:
//!
//! ```text
//! #[config(default = false, missing = true)]
//! pub causal: bool,
//! ```
//!
//! A file without the field is older than the field, and must keep its meaning, whatever the default is or becomes. So every field that is
//! added to a configuration has a `missing`, or is an `Option` whose `None` is the old meaning. All other fields must be in the file.

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};
use syn::{
    Attribute, Data, DeriveInput, Error, Fields, Lit, Result, Type, meta::ParseNestedMeta,
    parse_macro_input,
};

/// Derives a configuration: see [the crate](crate). Values are literals, or Rust expressions in a string, as in Burn's derive.
///
/// # Errors
///
/// A compile error if the input is not a struct with named fields, or an attribute is unknown.
#[proc_macro_derive(Config, attributes(config))]
pub fn config(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    implement(&input)
        .unwrap_or_else(Error::into_compile_error)
        .into()
}

struct Field {
    name: Ident,
    kind: Type,
    docs: Vec<Attribute>,
    /// The value that `new` sets, and its source text; without one, the field is an argument of `new`.
    default: Option<(TokenStream, String)>,
    /// The value that a file without the field stands for; without one, the field must be there.
    missing: Option<TokenStream>,
    /// Whether its builder takes anything that converts into its type.
    into: bool,
    /// Its name in older files.
    alias: Option<String>,
}

impl Field {
    fn read(field: syn::Field) -> Result<Self> {
        let is_option = is_option(&field.ty);
        let docs = field.attrs.iter();
        let docs = docs.filter(|attribute| attribute.path().is_ident("doc"));
        let mut read = Self {
            docs: docs.cloned().collect(),
            name: field
                .ident
                .expect("only structs with named fields are read"),
            kind: field.ty,
            default: is_option.then(|| (quote!(None), "None".into())),
            missing: None,
            into: is_option,
            alias: None,
        };
        for attribute in field.attrs {
            if attribute.path().is_ident("config") {
                attribute.parse_nested_meta(|meta| {
                    if meta.path.is_ident("default") {
                        read.default = Some(value(&meta)?);
                    } else if meta.path.is_ident("missing") {
                        read.missing = Some(value(&meta)?.0);
                    } else if meta.path.is_ident("into") {
                        read.into = true;
                    } else if meta.path.is_ident("alias") {
                        read.alias = Some(value(&meta)?.1);
                    } else {
                        return Err(meta.error("expected `default`, `missing`, `into` or `alias`"));
                    }
                    Ok(())
                })?;
            }
        }
        Ok(read)
    }

    /// The field in a list of fields or arguments.
    fn typed(&self) -> TokenStream {
        let Self { name, kind, .. } = self;
        quote!(#name: #kind)
    }

    /// The builder method of a field that `new` sets.
    fn builder(&self) -> Option<TokenStream> {
        let (name, kind, docs) = (&self.name, &self.kind, &self.docs);
        let (_, default) = self.default.as_ref()?;
        let (typed, value) = match self.into {
            true => (quote!(#name: impl Into<#kind>), quote!(#name.into())),
            false => (self.typed(), quote!(#name)),
        };
        let method = format_ident!("with_{name}");
        let link = format!("Sets [`{name}`](Self::{name}), which is `{default}` after `new`.");
        Some(quote! {
            #[doc = #link]
            #[doc = ""]
            #(#docs)*
            pub fn #method(mut self, #typed) -> Self {
                self.#name = #value;
                self
            }
        })
    }
}

/// A literal, or the expression in a string, and its source text.
fn value(meta: &ParseNestedMeta) -> Result<(TokenStream, String)> {
    match meta.value()?.parse()? {
        Lit::Str(text) => Ok((text.parse()?, text.value())),
        literal => Ok((quote!(#literal), quote!(#literal).to_string())),
    }
}

fn is_option(kind: &Type) -> bool {
    let Type::Path(path) = kind else { return false };
    let last = path.path.segments.last();
    last.is_some_and(|segment| segment.ident == "Option")
}

fn implement(input: &DeriveInput) -> Result<TokenStream> {
    let fields = match &input.data {
        Data::Struct(data) => match &data.fields {
            Fields::Named(fields) => fields.named.iter().cloned().map(Field::read),
            _ => return Err(Error::new_spanned(&input.ident, "fields need names")),
        },
        _ => return Err(Error::new_spanned(&input.ident, "only for structs")),
    };
    let fields: Vec<Field> = fields.collect::<Result<_>>()?;
    let constructors = constructors(&input.ident, &fields);
    let serde = serde(&input.ident, &fields);
    let config = &input.ident;
    let names: Vec<_> = fields.iter().map(|field| &field.name).collect();
    Ok(quote! {
        #constructors
        #serde

        impl ::burn::config::Config for #config {}

        impl ::core::clone::Clone for #config {
            fn clone(&self) -> Self {
                Self { #(#names: ::core::clone::Clone::clone(&self.#names)),* }
            }
        }

        impl ::core::fmt::Display for #config {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                f.write_str(&::burn::config::config_to_json(self))
            }
        }
    })
}

/// `new` and the builder methods.
fn constructors(config: &Ident, fields: &[Field]) -> TokenStream {
    let required = fields.iter().filter(|field| field.default.is_none());
    let arguments = required.map(Field::typed);
    let values = fields
        .iter()
        .map(|Field { name, default, .. }| match default {
            Some((value, _)) => quote!(#name: #value),
            None => quote!(#name),
        });
    let builders = fields.iter().filter_map(Field::builder);
    quote! {
        impl #config {
            /// Takes the required fields; all others have their default.
            pub fn new(#(#arguments),*) -> Self {
                Self { #(#values),* }
            }

            #(#builders)*
        }
    }
}

/// How it is written and read.
fn serde(config: &Ident, fields: &[Field]) -> TokenStream {
    let names: Vec<_> = fields.iter().map(|field| &field.name).collect();
    let kinds: Vec<_> = fields.iter().map(|field| &field.kind).collect();
    let (mut read, mut meanings) = (Vec::new(), Vec::new());
    for field in fields {
        let (typed, kind) = (field.typed(), &field.kind);
        let alias = field.alias.iter();
        let typed = quote!(#(#[serde(alias = #alias)])* #typed);
        let Some(missing) = &field.missing else {
            read.push(typed);
            continue;
        };
        let meaning = format_ident!("missing_{}", field.name);
        let path = meaning.to_string();
        read.push(quote!(#[serde(default = #path)] #typed));
        meanings.push(quote!(fn #meaning() -> #kind { #missing }));
    }
    quote! {
        impl ::burn::serde::Serialize for #config {
            fn serialize<S: ::burn::serde::Serializer>(
                &self,
                serializer: S,
            ) -> ::core::result::Result<S::Ok, S::Error> {
                #[derive(::burn::serde::Serialize)]
                #[serde(crate = "::burn::serde")]
                struct Saved<'a> { #(#names: &'a #kinds),* }

                let saved = Saved { #(#names: &self.#names),* };
                ::burn::serde::Serialize::serialize(&saved, serializer)
            }
        }

        impl<'de> ::burn::serde::Deserialize<'de> for #config {
            fn deserialize<D: ::burn::serde::Deserializer<'de>>(
                deserializer: D,
            ) -> ::core::result::Result<Self, D::Error> {
                #[derive(::burn::serde::Deserialize)]
                #[serde(crate = "::burn::serde", deny_unknown_fields)]
                struct Saved { #(#read),* }

                #(#meanings)*

                let Saved { #(#names),* } = ::burn::serde::Deserialize::deserialize(deserializer)?;
                Ok(Self { #(#names),* })
            }
        }
    }
}
