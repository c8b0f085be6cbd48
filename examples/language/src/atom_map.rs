//! Which atom of the reactants became which atom of the products, as one attention head of a model knows it that has only been trained to
//! guess hidden tokens.
//!
//! # Source
//! Schwaller et al., "Extraction of organic chemistry grammar from unsupervised learning of chemical reactions", Science Advances 7 (2021):
//! the atoms of one element look at each other across the arrow; pairs are chosen from the surest on, and each makes its neighbors surer.

use burn_attn_viz::AttentionMap;

use crate::smiles::Reaction;

/// How much surer a pair makes the pairs of its neighbors.
const NEIGHBORS: f64 = 90.0;
/// Pairs below this score are not matched.
const NOTHING: f64 = 1e-8;

/// The atoms of a reaction in pairs.
#[derive(Clone, Debug, PartialEq)]
pub struct AtomMap {
    /// For each atom of the products, the atom of the reactants that it was.
    pub origins: Vec<Option<usize>>,
    /// How sure the model is of all pairs together, from 0 to 1; `None` if there is no pair.
    pub confidence: Option<f64>,
}

impl AtomMap {
    /// The atom map that a head sees; its map has a token at each end besides those of the reaction.
    ///
    /// # Panics
    /// If the map belongs to another reaction.
    ///
    /// # Cost
    /// `products² · reactants`, in atoms.
    pub fn of(reaction: &Reaction, map: &AttentionMap, head: usize) -> Self {
        assert_eq!(
            map.queries().len(),
            reaction.tokens.len() + 2,
            "the map of another reaction"
        );
        let (reactants, products) = (reaction.reactants(), reaction.products());
        let width = reactants.len();
        // Both directions, of atoms of one element alone.
        let mut scores = vec![0.0; products.len() * width];
        for (row, product) in products.iter().enumerate() {
            for (column, reactant) in reactants.iter().enumerate() {
                if product.element == reactant.element {
                    let (from, to) = (product.token + 1, reactant.token + 1);
                    let both = map.weight(head, from, to) + map.weight(head, to, from);
                    scores[row * width + column] = f64::from(both);
                }
            }
        }
        let mut origins = vec![None; products.len()];
        let mut confidence: Option<f64> = None;
        while let Some((row, column, share)) = surest(&scores, width) {
            confidence = Some(confidence.unwrap_or(1.0) * share);
            origins[row] = Some(column);
            for &neighbor in &products[row].neighbors {
                let row = neighbor - width;
                for &column in &reactants[column].neighbors {
                    scores[row * width + column] *= NEIGHBORS;
                }
            }
            scores[row * width..][..width].fill(0.0);
            scores
                .iter_mut()
                .skip(column)
                .step_by(width)
                .for_each(|score| *score = 0.0);
        }
        Self {
            origins,
            confidence,
        }
    }

    /// The reaction with a number at each atom of the products, and the same one at the atom that it was.
    pub fn written(&self, reaction: &Reaction) -> String {
        let mut numbers = vec![None; reaction.n_reactant_atoms];
        for (number, origin) in (1..).zip(&self.origins) {
            if let Some(origin) = origin {
                numbers[*origin] = Some(number);
            }
        }
        numbers.extend((1..=self.origins.len()).map(Some));
        reaction.with_numbers(&numbers)
    }
}

/// The row and column of the score that has the largest share of its row, and the share; the first of several.
fn surest(scores: &[f64], width: usize) -> Option<(usize, usize, f64)> {
    let mut found: Option<(usize, usize, f64)> = None;
    for (row, scores) in scores.chunks(width).enumerate() {
        let sum: f64 = scores.iter().sum();
        for (column, score) in scores.iter().enumerate() {
            let share = score / sum;
            if share > found.map_or(NOTHING, |(.., share)| share) {
                found = Some((row, column, share));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests;
