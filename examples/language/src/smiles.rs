//! Reactions in SMILES (Simplified Molecular Input Line Entry System, <http://opensmiles.org>): their tokens, and the atoms and bonds that they
//! mean.

mod atom;
mod grammar;

pub use atom::Atom;
use grammar::{molecule, tokens};

use crate::Error;

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

impl Reaction {
    /// Reads a reaction such as `CCO.CC(=O)Cl>>CC(=O)OCC`. Agents between the arrows, as in `CCO>[Na+]>CCOC`, become reactants.
    ///
    /// # Errors
    /// If the text is no reaction.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let text = text.trim();
        Self::read(text)
            .map_err(|problem| format!("the reaction {text:?} cannot be read: {problem}").into())
    }

    fn read(text: &str) -> Result<Self, String> {
        let text = match text.matches('>').count() - text.matches("->").count() {
            _ if text.contains(">>") => text.to_string(),
            2 => with_agents_as_reactants(text),
            _ => return Err("it needs reactants, `>>` and products".into()),
        };
        let mut tokens = tokens(&text)?;
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

/// `reactants>agents>products` with the agents among the reactants.
fn with_agents_as_reactants(text: &str) -> String {
    // A dative bond, `->`, has an arrow's head, too.
    let arrows = text.char_indices();
    let arrows = arrows.filter(|&(at, c)| c == '>' && !text[..at].ends_with('-'));
    let [first, second] = [0, 1].map(|arrow| arrows.clone().nth(arrow).map_or(0, |(at, _)| at));
    let (reactants, agents) = (&text[..first], &text[first + 1..second]);
    let dot = match reactants.is_empty() || agents.is_empty() {
        true => "",
        false => ".",
    };
    format!("{reactants}{dot}{agents}>>{}", &text[second + 1..])
}

#[cfg(test)]
mod tests;
