//! Sentences of movie reviews with the mean of several people's scores, from -4 to 4 (Hutto and Gilbert, "VADER", ICWSM 2014; MIT).

use std::path::Path;

use crate::{Error, input::lines};

/// One line of so many is held out.
const HELD_OUT: usize = 5;

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
        count @ 0..HELD_OUT => Err(Error::Option(format!(
            "{}: at least {HELD_OUT} reviews are needed, of which every fifth is held out, got {count}",
            path.display()
        ))),
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
        .partition(|(number, _)| number % HELD_OUT == 0);
    let reviews = |numbered: Vec<(usize, Review)>| numbered.into_iter().map(|(_, review)| review);
    (reviews(train).collect(), reviews(held_out).collect())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn every_fifth_review_is_held_out() {
        let reviews = (1..=11).map(|number| Review {
            score: 0.0,
            text: number.to_string(),
        });
        let (train, held_out) = split(reviews.collect());
        let texts = |reviews: &[Review]| -> Vec<String> {
            reviews.iter().map(|review| review.text.clone()).collect()
        };
        assert_eq!(texts(&held_out), ["5", "10"]);
        assert_eq!(texts(&train).len(), 9);
    }

    #[test]
    fn bad_lines_are_counted_and_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("reviews.tsv");
        let read = |text: &str| {
            fs::write(&path, text).unwrap();
            read(&path).map_err(|error| error.to_string())
        };
        let good = "1\t2.5\tgood film\n".repeat(5);
        assert_eq!(read(&good).unwrap().len(), 5);
        let bad = "1\tgood\tx\n\n3\t5\tx\n4\t1\t \n5\tnan\tx\n6\n7\t1\tfine\n";
        let sentence = format!(
            "{}: 6 lines are not an ID, a score from -4 to 4 and a text with tabs between them: 6, 7, 8, 9, 10, ...",
            path.display()
        );
        assert_eq!(read(&format!("{good}{bad}")), Err(sentence));
        let sentence = format!(
            "{}: at least 5 reviews are needed, of which every fifth is held out, got 1",
            path.display()
        );
        assert_eq!(read("1\t2\tx\n"), Err(sentence));
    }
}
