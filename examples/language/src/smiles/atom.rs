//! An atom of a molecule, and how it is written.

/// An atom.
#[derive(Clone, Debug, PartialEq)]
pub struct Atom {
    /// The token that it is.
    pub token: usize,
    /// Its element, such as `Cl`; `*` may be any.
    pub element: String,
    /// The atoms that it is bound to.
    pub neighbors: Vec<usize>,
    is_aromatic: bool,
    /// The orders of its bonds added up, an aromatic one counted as 1.
    pub(super) valence: usize,
}

/// Elements that need no brackets, and the valences that they may have.
const ORGANIC: [(&str, &[usize]); 10] = [
    ("B", &[3]),
    ("C", &[4]),
    ("N", &[3, 5]),
    ("O", &[2]),
    ("P", &[3, 5]),
    ("S", &[2, 4, 6]),
    ("F", &[1]),
    ("Cl", &[1]),
    ("Br", &[1]),
    ("I", &[1]),
];

impl Atom {
    /// The atom of a symbol, which is a small one if it is aromatic.
    pub(super) fn new(token: usize, symbol: &str) -> Self {
        let (first, rest) = symbol.split_at(1);
        Self {
            token,
            element: first.to_ascii_uppercase() + rest,
            neighbors: Vec::new(),
            is_aromatic: first.starts_with(|c: char| c.is_ascii_lowercase()),
            valence: 0,
        }
    }

    /// The token of the atom without a number: in brackets only if its hydrogens would not be known otherwise, where it had one.
    pub(super) fn without_number(&self, token: &str) -> String {
        let Some((bare, _)) = token.trim_matches(['[', ']']).split_once(':') else {
            return token.into();
        };
        let symbol = bare.split('H').next().unwrap_or(bare);
        let is_symbol = symbol.eq_ignore_ascii_case(&self.element);
        match self.valences().is_some() && is_symbol && self.with_hydrogens(symbol) == bare {
            true => symbol.into(),
            false => format!("[{bare}]"),
        }
    }

    /// The token of the atom with this number.
    pub(super) fn written(&self, token: &str, number: Option<usize>) -> String {
        let bare = match inside_brackets(token) {
            Some(inside) => inside.split(':').next().unwrap_or(inside).to_string(),
            None if number.is_none() => return token.into(),
            None => self.with_hydrogens(token),
        };
        match number {
            Some(number) => format!("[{bare}:{number}]"),
            None => format!("[{bare}]"),
        }
    }

    /// The symbol of the atom, and the hydrogen atoms that are not written where it has no brackets.
    fn with_hydrogens(&self, symbol: &str) -> String {
        match self.hydrogens() {
            0 => symbol.into(),
            1 => format!("{symbol}H"),
            more => format!("{symbol}H{more}"),
        }
    }

    fn hydrogens(&self) -> usize {
        let valences = self.valences().unwrap_or_default();
        let valence = match self.is_aromatic {
            // One electron takes part in the ring.
            true => valences.first().map(|most| most.saturating_sub(1)),
            false => (valences.iter().copied()).find(|&most| most >= self.valence),
        };
        valence.map_or(0, |valence| valence.saturating_sub(self.valence))
    }

    /// The valences of the element, if it is organic.
    fn valences(&self) -> Option<&'static [usize]> {
        let of_element = ORGANIC.iter().find(|(element, _)| *element == self.element);
        of_element.map(|(_, valences)| *valences)
    }
}

/// What is in the brackets of a token that has some.
fn inside_brackets(token: &str) -> Option<&str> {
    token.strip_prefix('[')?.strip_suffix(']')
}
