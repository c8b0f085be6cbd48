//! An atom of a molecule.

/// An atom.
#[derive(Clone, Debug, PartialEq)]
pub struct Atom {
    /// The token that it is.
    pub token: usize,
    /// Its element, such as `Cl`; `*` may be any.
    pub element: String,
    /// The atoms that it is bound to.
    pub neighbors: Vec<usize>,
    pub(super) is_aromatic: bool,
    /// The orders of its bonds added up, an aromatic one counted as 1.
    pub(super) valence: usize,
}
