//! The corpus of seed 0, and of a few others: its sizes, its splits, its words, its grammar.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use super::draw::Draw;
use super::lexicon::{ADJECTIVES, NOUNS, VERBS};
use super::sampling::kept_out_combinations;
use super::{Pair, ToyCorpus};

/// The corpora of the first seeds.
static CORPORA: LazyLock<[ToyCorpus; 4]> = LazyLock::new(|| [0, 1, 2, 3].map(ToyCorpus::generate));

fn all(corpus: &ToyCorpus) -> impl Iterator<Item = &Pair> {
    corpus
        .train
        .iter()
        .chain(&corpus.held_out)
        .chain(&corpus.combinations)
}

/// Lower-case words without punctuation.
fn words(sentence: &str) -> BTreeSet<String> {
    sentence
        .split(|c: char| !c.is_alphabetic())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect()
}

/// In how many of these sentences each word occurs.
fn frequencies<'a>(sentences: impl Iterator<Item = &'a str>) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for word in sentences.flat_map(words) {
        *counts.entry(word).or_default() += 1;
    }
    counts
}

/// Every sentence with its translation.
fn translations(corpus: &ToyCorpus) -> BTreeMap<&str, &str> {
    all(corpus)
        .map(|pair| (pair.source.as_str(), pair.target.as_str()))
        .collect()
}

#[test]
fn has_the_sizes_it_says() {
    for corpus in CORPORA.iter() {
        assert_eq!(corpus.train.len(), 14_000);
        assert_eq!(corpus.held_out.len(), 400);
        assert_eq!(corpus.combinations.len(), 300);
    }
}

#[test]
fn each_english_sentence_has_one_translation() {
    for corpus in CORPORA.iter() {
        // None is there twice, so none is in two parts.
        assert_eq!(translations(corpus).len(), 14_700);
    }
}

#[test]
fn seeds_agree_on_translations() {
    let known = translations(&CORPORA[0]);
    let mut shared = 0;
    for pair in all(&CORPORA[1]) {
        if let Some(&target) = known.get(pair.source.as_str()) {
            assert_eq!(target, pair.target, "{}", pair.source);
            shared += 1;
        }
    }
    assert!(shared > 500, "{shared} sentences in common");
}

#[test]
fn no_translation_leaks_from_training() {
    for corpus in CORPORA.iter() {
        let learned = corpus.train.iter();
        let learned: BTreeSet<&str> = learned.map(|pair| pair.target.as_str()).collect();
        let mut others = corpus.held_out.iter().chain(&corpus.combinations);
        assert!(others.all(|pair| !learned.contains(pair.target.as_str())));
    }
}

#[test]
fn kept_out_words_never_meet_in_training() {
    for (seed, corpus) in (0..).zip(CORPORA.iter()) {
        let kept_out = kept_out_combinations(&mut Draw::new(seed));
        assert_eq!(kept_out.len(), 30);
        let meets = |sentence: &BTreeSet<String>, (noun, adjective): (usize, usize)| {
            let adjective = &ADJECTIVES[adjective];
            let mut nouns = NOUNS[noun].english.iter();
            nouns.any(|&form| sentence.contains(form)) && sentence.contains(adjective.english)
        };
        for pair in corpus.train.iter().chain(&corpus.held_out) {
            let sentence = words(&pair.source);
            for &combination in &kept_out {
                assert!(!meets(&sentence, combination), "{pair:?}");
            }
        }
        for pair in &corpus.combinations {
            let sentence = words(&pair.source);
            assert!(
                kept_out
                    .iter()
                    .any(|&combination| meets(&sentence, combination)),
                "{pair:?}"
            );
        }
    }
}

#[test]
fn every_word_occurs_often_in_training() {
    for (seed, corpus) in CORPORA.iter().enumerate() {
        let english = frequencies(corpus.train.iter().map(|pair| pair.source.as_str()));
        let spanish = frequencies(corpus.train.iter().map(|pair| pair.target.as_str()));
        assert!(english.len() >= 390, "{} English words", english.len());
        assert!(spanish.len() >= 700, "{} Spanish words", spanish.len());
        for (word, count) in english.iter().chain(&spanish) {
            let least = if seed == 0 { 15 } else { 10 };
            assert!(
                *count >= least,
                "seed {seed}: {word} occurs in {count} sentences"
            );
        }
        for pair in all(corpus) {
            for (sentence, known) in [(&pair.source, &english), (&pair.target, &spanish)] {
                let mut words = words(sentence).into_iter();
                assert!(words.all(|word| known.contains_key(&word)), "{pair:?}");
            }
        }
    }
}

#[test]
fn sentences_are_written_text() {
    for pair in all(&CORPORA[0]) {
        let (english, spanish) = (&pair.source, &pair.target);
        assert!((3..=12).contains(&english.split(' ').count()), "{english}");
        assert!((2..=12).contains(&spanish.split(' ').count()), "{spanish}");
        assert!(english.starts_with(char::is_uppercase), "{english}");
        assert_eq!(english.ends_with('?'), spanish.ends_with('?'), "{pair:?}");
        assert_eq!(english.ends_with('.'), spanish.ends_with('.'), "{pair:?}");
        assert_eq!(
            spanish.starts_with('¿'),
            spanish.ends_with('?'),
            "{spanish}"
        );
        let first = spanish.trim_start_matches('¿');
        assert!(first.starts_with(char::is_uppercase), "{spanish}");
        for text in [english, spanish] {
            assert!(
                !text.contains("  ") && !text.contains(" .") && !text.contains(" ?"),
                "{text}"
            );
        }
        let lower = format!(" {}", spanish.to_lowercase());
        for uncontracted in [" a el ", " de el ", " la agua", " un agua"] {
            assert!(!lower.contains(uncontracted), "{spanish}");
        }
    }
}

#[test]
fn translations_are_right() {
    // Each was checked by hand; one or two for each rule of the grammar.
    let pinned = [
        "The woman buys our cheap bread. = La mujer compra nuestro pan barato.",
        "The turtle sees our black duck. = La tortuga ve nuestro pato negro.",
        "Pedro helps the tired king. = Pedro ayuda al rey cansado.",
        "He visited the sick king. = Él visitó al rey enfermo.",
        "We helped the kind men. = Ayudamos a los hombres amables.",
        "That black duck drinks the cold water. = Ese pato negro bebe el agua fría.",
        "The bad mouse swam at that lake. = El mal ratón nadó en ese lago.",
        "Some good horses played. = Algunos buenos caballos jugaron.",
        "The good boys had a desk. = Los buenos niños tenían un escritorio.",
        "I cannot drink the hot tea. = No puedo beber el té caliente.",
        "Her aunt is going to paint that chair. = Su tía va a pintar esa silla.",
        "Are they going to read novels? = ¿Van a leer ellos novelas?",
        "How many poems did you read? = ¿Cuántos poemas leíste?",
        "They returned to the lake. = Ellos volvieron al lago.",
        "I lost the clean coats. = Perdí los abrigos limpios.",
        "Last Friday Ana wanted to run. = El viernes pasado Ana quería correr.",
        "Last night she read his book. = Anoche ella leyó su libro.",
        "He read a long poem yesterday. = Él leyó un poema largo ayer.",
        "Who did he see? = ¿A quién vio él?",
        "Who cooks the egg? = ¿Quién cocina el huevo?",
        "Where does she go? = ¿Adónde va ella?",
        "Where did you sleep? = ¿Dónde dormiste?",
        "We bring the cheese for Ana. = Traemos el queso para Ana.",
        "Every goat drank milk. = Cada cabra bebió leche.",
        "Maria and Ana helped the kings. = María y Ana ayudaron a los reyes.",
        "When did the boys wash the glass? = ¿Cuándo lavaron los niños el vaso?",
        "Did the woman wash the dresses? = ¿Lavó la mujer los vestidos?",
        "These slow cats rest. = Estos gatos lentos descansan.",
        "They do not drink coffee. = Ellos no beben café.",
        "What do the good boys cook? = ¿Qué cocinan los buenos niños?",
    ];
    let translations = translations(&CORPORA[0]);
    for (source, target) in pinned.map(|pair| pair.split_once(" = ").unwrap()) {
        assert_eq!(translations.get(source), Some(&target), "{source}");
    }
}

#[test]
fn regular_verbs_follow_the_rules() {
    let irregular =
        "leer ver cerrar encontrar perder buscar traer tener dormir jugar ir volver venir";
    let irregular: Vec<&str> = irregular.split(' ').collect();
    let verbs = VERBS.iter();
    let (irregular, regular): (Vec<_>, Vec<_>) =
        verbs.partition(|verb| irregular.contains(&verb.infinitive));
    for verb in regular {
        let (stem, ending) = verb.infinitive.split_at(verb.infinitive.len() - 2);
        let (present, past) = match ending {
            "ar" => (
                ["o", "as", "a", "amos", "an"],
                ["é", "aste", "ó", "amos", "aron"],
            ),
            "er" => (
                ["o", "es", "e", "emos", "en"],
                ["í", "iste", "ió", "imos", "ieron"],
            ),
            _ => (
                ["o", "es", "e", "imos", "en"],
                ["í", "iste", "ió", "imos", "ieron"],
            ),
        };
        assert_eq!(
            present.map(|ending| format!("{stem}{ending}")),
            verb.present
        );
        assert_eq!(past.map(|ending| format!("{stem}{ending}")), verb.past);
    }
    assert_eq!(irregular.len(), 13);
}

#[test]
fn spanish_plurals_follow_the_rules() {
    let plain = |text: &str| {
        text.replace('á', "a")
            .replace('é', "e")
            .replace('í', "i")
            .replace('ó', "o")
    };
    let forms = NOUNS
        .iter()
        .filter(|noun| !noun.kind.is_mass())
        .map(|noun| noun.spanish)
        .chain(ADJECTIVES.iter().flat_map(|adjective| {
            let [masculine, feminine, masculines, feminines] = adjective.spanish;
            [[masculine, masculines], [feminine, feminines]]
        }));
    for [singular, plural] in forms {
        let bare = plain(singular);
        let expected = match bare.chars().last() {
            Some('z') => format!("{}ces", &bare[..bare.len() - 1]),
            Some('a' | 'e' | 'o') => format!("{bare}s"),
            _ => format!("{bare}es"),
        };
        assert_eq!(plain(plural), expected);
    }
}

#[test]
fn a_seed_gives_the_same_corpus_for_ever() {
    let corpus = &CORPORA[0];
    assert_eq!(*corpus, ToyCorpus::generate(0));
    assert_ne!(corpus.train, CORPORA[1].train);
    // The hash covers every sentence in order.
    let lines = all(corpus).map(|pair| format!("{}\t{}\n", pair.source, pair.target));
    let hash = fnv1a(&lines.collect::<String>());
    assert_eq!(hash, 0x26c1_6fec_dada_0e2d, "{hash:#018x}");
}

/// FNV-1a, 64 bits.
pub fn fnv1a(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
