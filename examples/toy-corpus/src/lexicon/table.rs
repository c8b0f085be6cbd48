//! Reads the tables in `data`: tab-separated text whose first line names the columns.

use std::sync::LazyLock;

/// The rows of a table, read when they are first needed.
pub(super) type Table<T> = LazyLock<Vec<T>>;

/// The rows of a table of `N` columns. A cell without a value, which is `-` there, is empty here.
///
/// # Panics
/// If a line has another number of cells.
pub(super) fn rows<T, const N: usize>(
    text: &'static str,
    row: impl Fn([&'static str; N]) -> T,
) -> Vec<T> {
    let cell = |cell: &'static str| if cell == "-" { "" } else { cell };
    let lines = text.lines().skip(1);
    lines
        .map(|line| {
            let cells: Vec<&str> = line.split('\t').map(cell).collect();
            let cells = cells.try_into();
            row(cells.unwrap_or_else(|_| panic!("{line:?} must have {N} cells")))
        })
        .collect()
}

/// An enum whose variants the tables name, in small letters.
macro_rules! named {
    ($(#[$doc:meta])* $enum:ident { $($(#[$variant_doc:meta])* $variant:ident,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum $enum {
            $($(#[$variant_doc])* $variant,)*
        }

        impl $enum {
            pub(crate) const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The variants of names between which there are spaces. Panics if one has no variant.
            pub(crate) fn named(names: &str) -> Vec<Self> {
                let is_named = |variant: &Self, name| format!("{variant:?}").eq_ignore_ascii_case(name);
                let named = |name| Self::ALL.iter().find(|variant| is_named(variant, name)).copied();
                let names = names.split_whitespace();
                names.map(|name| named(name).unwrap_or_else(|| panic!("{name:?} has no variant"))).collect()
            }
        }
    };
}
pub(super) use named;
