//! What the suites share.
//!
//! | module | what it has |
//! | --- | --- |
//! | [`devices`] | the devices of this build |
//! | [`numbers`] | numbers that are the same on every machine and backend |
//! | [`parameters`] | the parameters of any module by name |
//! | [`compare`] | differences and tolerances |
//! | [`sentence`] | what a call panics with |
//! | [`golden`] | the files of `tests/golden` |

pub mod compare;
pub mod devices;
pub mod golden;
pub mod numbers;
pub mod parameters;
mod sentence;

/// The README's first example.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;

/// The guide's examples.
#[cfg(doctest)]
mod book {
    #[doc = include_str!("../../book/src/01-what-looks-at-what.md")]
    struct Chapter1;
    #[doc = include_str!("../../book/src/02-query-key-value.md")]
    struct Chapter2;
    #[doc = include_str!("../../book/src/03-scores.md")]
    struct Chapter3;
    #[doc = include_str!("../../book/src/04-masks.md")]
    struct Chapter4;
    #[doc = include_str!("../../book/src/05-weighted-sum.md")]
    struct Chapter5;
    #[doc = include_str!("../../book/src/06-heads.md")]
    struct Chapter6;
    #[doc = include_str!("../../book/src/07-translator.md")]
    struct Chapter7;
    #[doc = include_str!("../../book/src/08-positions.md")]
    struct Chapter8;
    #[doc = include_str!("../../book/src/09-what-heads-do.md")]
    struct Chapter9;
    #[doc = include_str!("../../book/src/10-cost.md")]
    struct Chapter10;
    #[doc = include_str!("../../book/src/11-decoding.md")]
    struct Chapter11;
    #[doc = include_str!("../../book/src/12-long-contexts.md")]
    struct Chapter12;
    #[doc = include_str!("../../book/src/13-which.md")]
    struct Chapter13;
    #[doc = include_str!("../../book/src/14-adding.md")]
    struct Chapter14;
    #[doc = include_str!("../../book/src/15-coming-from.md")]
    struct Chapter15;
    #[doc = include_str!("../../book/src/16-what-texts-got-wrong.md")]
    struct Chapter16;
    #[doc = include_str!("../../book/src/17-score-functions.md")]
    struct Chapter17;
}

pub use sentence::sentence;
