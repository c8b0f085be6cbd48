//! Sentences of movie reviews with the mean of several people's scores, from -4 to 4 (Hutto and Gilbert, "VADER", ICWSM 2014; MIT).

use std::path::Path;

use crate::{Error, input::lines};

/// One review of this many is held out.
const HELD_OUT_EVERY: usize = 5;

/// A sentence and its score.
#[derive(Clone, Debug, PartialEq)]
pub struct Review {
    /// From -4, bad, to 4, good.
    pub score: f32,
    /// The sentence.
    pub text: String,
}

/// Reads lines of an ID, which is not used, a score and a text, with tabs between them.
///
/// # Errors
/// If the file cannot be read, if lines are none of these (it names the first ones, and says how many there are), or if there are too few.
pub fn read(path: &Path) -> Result<Vec<Review>, Error> {
    let what = "an ID, a score from -4 to 4 and a text with tabs between them";
    let reviews = lines(path, review, what)?;
    match reviews.len() {
        count @ 0..HELD_OUT_EVERY => Err(format!(
            "{}: at least {HELD_OUT_EVERY} reviews are needed, of which every fifth is held out, got {count}",
            path.display()
        )
        .into()),
        _ => Ok(reviews),
    }
}

fn review(line: &str) -> Option<Review> {
    let mut columns = line.splitn(3, '\t').skip(1);
    let score: f32 = columns.next()?.trim().parse().ok()?;
    let text = columns.next()?.trim().to_string();
    ((-4.0..=4.0).contains(&score) && !text.is_empty()).then_some(Review { score, text })
}

/// The training part and the held-out part, which is every fifth review.
pub fn split(reviews: Vec<Review>) -> (Vec<Review>, Vec<Review>) {
    let (held_out, train): (Vec<_>, Vec<_>) = (1..)
        .zip(reviews)
        .partition(|(number, _)| number % HELD_OUT_EVERY == 0);
    let reviews = |numbered: Vec<(usize, Review)>| numbered.into_iter().map(|(_, review)| review);
    (reviews(train).collect(), reviews(held_out).collect())
}

#[cfg(test)]
mod tests;
