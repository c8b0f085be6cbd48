//! Reactions in SMILES (Simplified Molecular Input Line Entry System, <http://opensmiles.org>): their tokens, and the atoms and bonds that they
//! mean.

mod atom;
mod grammar;

pub use atom::Atom;
use grammar::{molecule, tokens};

/// Why a reaction cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the reaction {reaction:?} cannot be read: {problem}")]
pub struct SmilesError {
    reaction: String,
    problem: String,
}

/// A reaction: reactants, an arrow, products.
#[derive(Clone, Debug, PartialEq)]
pub struct Reaction {
    /// Its tokens, as rxnmapper divides a text.
    pub tokens: Vec<String>,
    /// Its atoms in the order of the text, first those of the reactants.
    pub atoms: Vec<Atom>,
    /// How many of them are reactants'.
    pub n_reactant_atoms: usize,
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

impl Reaction {
    /// Reads a reaction such as `CCO.CC(=O)Cl>>CC(=O)OCC`. Agents between the arrows, as in `CCO>[Na+]>CCOC`, become reactants.
    ///
    /// # Errors
    /// If the text is no reaction.
    pub fn parse(text: &str) -> Result<Self, SmilesError> {
        Self::read(text.trim()).map_err(|problem| SmilesError {
            reaction: text.trim().into(),
            problem,
        })
    }

    fn read(text: &str) -> Result<Self, String> {
        let text = match text.matches('>').count() - text.matches("->").count() {
            _ if text.contains(">>") => text.to_string(),
            2 => with_agents_as_reactants(text),
            _ => return Err("it needs reactants, `>>` and products".into()),
        };
        let tokens = tokens(&text)?;
        if tokens.iter().filter(|token| *token == ">>").count() != 1 {
            return Err("it needs `>>` once, between reactants and products".into());
        }
        let mut atoms = Vec::new();
        let mut n_reactant_atoms = 0;
        let is_between = |at: &usize| matches!(tokens[*at].as_str(), "." | ">>");
        let mut start = 0;
        for end in (0..tokens.len()).filter(is_between).chain([tokens.len()]) {
            molecule(&tokens, start..end, &mut atoms)?;
            if tokens.get(end).is_some_and(|token| token == ">>") {
                n_reactant_atoms = atoms.len();
            }
            start = end + 1;
        }
        if n_reactant_atoms == 0 || n_reactant_atoms == atoms.len() {
            return Err("it needs an atom on each side of `>>`".into());
        }
        // Numbers from before are no part of what a model has learned to read.
        let mut tokens = tokens;
        for atom in &atoms {
            tokens[atom.token] = atom.without_number(&tokens[atom.token]);
        }
        Ok(Self {
            tokens,
            atoms,
            n_reactant_atoms,
        })
    }

    /// The atoms of the reactants.
    pub fn reactants(&self) -> &[Atom] {
        &self.atoms[..self.n_reactant_atoms]
    }

    /// The atoms of the products. Their neighbors are counted from the first atom of the reactants.
    pub fn products(&self) -> &[Atom] {
        &self.atoms[self.n_reactant_atoms..]
    }

    /// The text with these numbers at its atoms; what was there before is replaced.
    pub fn with_numbers(&self, numbers: &[Option<usize>]) -> String {
        let mut tokens = self.tokens.clone();
        for (atom, number) in self.atoms.iter().zip(numbers) {
            tokens[atom.token] = atom.written(&self.tokens[atom.token], *number);
        }
        tokens.concat()
    }
}

impl Atom {
    /// The token of the atom without a number: in brackets only if its hydrogens would not be known otherwise, where it had one.
    fn without_number(&self, token: &str) -> String {
        let Some((bare, _)) = token.trim_matches(['[', ']']).split_once(':') else {
            return token.into();
        };
        let symbol = bare.split('H').next().unwrap_or(bare);
        let is_organic = ORGANIC.iter().any(|(element, _)| *element == self.element);
        let written = match self.hydrogens() {
            0 => symbol.to_string(),
            1 => format!("{symbol}H"),
            more => format!("{symbol}H{more}"),
        };
        let is_symbol = symbol.eq_ignore_ascii_case(&self.element);
        match is_organic && is_symbol && written == bare {
            true => symbol.into(),
            false => format!("[{bare}]"),
        }
    }

    /// The token of the atom with this number.
    fn written(&self, token: &str, number: Option<usize>) -> String {
        let bare = match token
            .strip_prefix('[')
            .and_then(|token| token.strip_suffix(']'))
        {
            Some(inside) => inside.split(':').next().unwrap_or(inside).to_string(),
            None if number.is_none() => return token.into(),
            None => match self.hydrogens() {
                0 => token.into(),
                1 => format!("{token}H"),
                more => format!("{token}H{more}"),
            },
        };
        match number {
            Some(number) => format!("[{bare}:{number}]"),
            None => format!("[{bare}]"),
        }
    }

    /// The hydrogen atoms that are not written at an atom without brackets.
    fn hydrogens(&self) -> usize {
        let of_element = ORGANIC.iter().find(|(element, _)| *element == self.element);
        let valences = of_element.map_or(&[][..], |(_, valences)| valences);
        match self.is_aromatic {
            // One electron takes part in the ring.
            true => valences
                .first()
                .map_or(0, |most| most.saturating_sub(self.valence + 1)),
            false => {
                let enough = valences.iter().find(|&&most| most >= self.valence);
                enough.map_or(0, |most| most - self.valence)
            }
        }
    }
}

/// `reactants>agents>products` with the agents among the reactants.
fn with_agents_as_reactants(text: &str) -> String {
    // A dative bond, `->`, has an arrow's head, too.
    let arrows = text.char_indices();
    let arrows = arrows.filter(|&(at, c)| c == '>' && !text[..at].ends_with('-'));
    let [first, second] = [0, 1].map(|arrow| arrows.clone().nth(arrow).map_or(0, |(at, _)| at));
    let (reactants, agents) = (&text[..first], &text[first + 1..second]);
    let before = [reactants, agents]
        .into_iter()
        .filter(|part| !part.is_empty());
    let before: Vec<&str> = before.collect();
    format!("{}>>{}", before.join("."), &text[second + 1..])
}

impl Atom {
    fn new(token: usize, text: &str) -> Self {
        // An isotope comes before the element.
        let text = text
            .trim_start_matches('[')
            .trim_start_matches(|c: char| c.is_ascii_digit());
        let mut letters = text.chars();
        let first = letters.next().unwrap_or('*');
        let second = letters.next().filter(|second| {
            let two: String = [first.to_ascii_uppercase(), *second].iter().collect();
            second.is_ascii_lowercase()
                && (first.is_ascii_uppercase() || AROMATIC.contains(&two.as_str()))
        });
        let element = [Some(first.to_ascii_uppercase()), second];
        Self {
            token,
            element: element.into_iter().flatten().collect(),
            neighbors: Vec::new(),
            is_aromatic: first.is_ascii_lowercase(),
            valence: 0,
        }
    }
}

/// Elements of two letters that may be aromatic.
const AROMATIC: [&str; 3] = ["Se", "As", "Te"];

#[cfg(test)]
mod tests;
