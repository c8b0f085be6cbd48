//! Reactions in SMILES (Simplified Molecular Input Line Entry System, <http://opensmiles.org>): their tokens, and the atoms and bonds that they
//! mean.

use std::ops::Range;

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
    valence: usize,
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
    format!("{reactants}.{agents}>>{}", &text[second + 1..])
}

/// Divides a text into atoms, bonds, brackets, ring bonds, dots and the arrow.
fn tokens(text: &str) -> Result<Vec<String>, String> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let starts = |token: &str| rest.starts_with(token).then_some(token.len());
        let len = match first {
            '[' => rest.find(']').filter(|&end| end > 1).map(|end| end + 1),
            'B' => starts("Br").or(Some(1)),
            'C' => starts("Cl").or(Some(1)),
            '>' => starts(">>").or(Some(1)),
            '%' => {
                let digits = rest.as_bytes().get(1..3);
                digits
                    .filter(|digits| digits.iter().all(u8::is_ascii_digit))
                    .map(|_| 3)
            }
            'N'
            | 'O'
            | 'S'
            | 'P'
            | 'F'
            | 'I'
            | 'b'
            | 'c'
            | 'n'
            | 'o'
            | 's'
            | 'p'
            | '('
            | ')'
            | '.'
            | '='
            | '#'
            | '-'
            | '+'
            | '\\'
            | '/'
            | ':'
            | '~'
            | '@'
            | '?'
            | '*'
            | '$'
            | '0'..='9' => Some(1),
            _ => None,
        };
        let Some(len) = len else {
            let at = text.chars().count() - rest.chars().count() + 1;
            return Err(match first {
                '[' => format!("the bracket at character {at} is empty or not closed"),
                _ => format!("{first:?} at character {at} is not part of SMILES"),
            });
        };
        tokens.push(rest[..len].to_string());
        rest = &rest[len..];
    }
    Ok(tokens)
}

/// Reads the molecule of these tokens.
fn molecule(tokens: &[String], range: Range<usize>, atoms: &mut Vec<Atom>) -> Result<(), String> {
    let written = tokens[range.clone()].concat();
    let mut branches: Vec<Option<usize>> = Vec::new();
    let mut rings: Vec<(&str, usize, Option<usize>)> = Vec::new();
    let mut last: Option<usize> = None;
    let mut bond: Option<usize> = None;
    for at in range {
        let token = tokens[at].as_str();
        if is_atom(token) {
            atoms.push(Atom::new(at, token));
            let new = atoms.len() - 1;
            if let Some(last) = last.replace(new) {
                bind(atoms, last, new, bond.take());
            }
            continue;
        }
        let outside = || format!("{token:?} stands before the first atom of {written:?}");
        match token {
            "(" => branches.push(Some(last.ok_or_else(outside)?)),
            ")" => {
                last = branches
                    .pop()
                    .ok_or_else(|| format!("{written:?} closes a branch that was not opened"))?
            }
            _ if order(token).is_some() => {
                last.ok_or_else(outside)?;
                bond = order(token);
            }
            _ if token.starts_with(|c: char| c == '%' || c.is_ascii_digit()) => {
                let from = last.ok_or_else(outside)?;
                let label = token.trim_start_matches('%');
                let label = label
                    .strip_prefix('0')
                    .filter(|label| !label.is_empty())
                    .unwrap_or(label);
                match rings.iter().position(|(open, ..)| *open == label) {
                    Some(open) => {
                        let (_, to, other) = rings.remove(open);
                        bind(atoms, from, to, bond.take().or(other));
                    }
                    None => rings.push((label, from, bond.take())),
                }
            }
            _ => {
                return Err(format!(
                    "{token:?} in {written:?} is neither an atom nor a bond"
                ));
            }
        }
    }
    if let Some((label, ..)) = rings.first() {
        return Err(format!("ring bond {label} of {written:?} is not closed"));
    }
    if !branches.is_empty() {
        return Err(format!("a branch of {written:?} is not closed"));
    }
    match bond {
        None => Ok(()),
        Some(_) => Err(format!("a bond of {written:?} leads nowhere")),
    }
}

fn bind(atoms: &mut [Atom], a: usize, b: usize, bond: Option<usize>) {
    for (from, to) in [(a, b), (b, a)] {
        atoms[from].valence += bond.unwrap_or(1);
        atoms[from].neighbors.push(to);
    }
}

/// The order of a bond by its sign.
fn order(token: &str) -> Option<usize> {
    match token {
        // Fragments that belong together, and the head of a dative bond.
        "~" | ">" => Some(0),
        "-" | "/" | "\\" | ":" => Some(1),
        "=" => Some(2),
        "#" => Some(3),
        "$" => Some(4),
        _ => None,
    }
}

fn is_atom(token: &str) -> bool {
    token.starts_with(|c: char| c.is_ascii_alphabetic() || c == '[' || c == '*')
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
