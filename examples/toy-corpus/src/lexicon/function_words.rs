//! Determiners, pronouns, names, times and the verbs that help others.

use super::{Gender, Kind};

/// What a determiner does, as far as a place in the sentence cares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Definite,
    /// As definite, but for relatives, whom one does not point at.
    Demonstrative,
    Possessive,
    Indefinite,
    /// As indefinite, but not under a negation or in a question, where English would choose another word.
    Affirmative,
    /// No determiner at all.
    Bare,
}

/// A determiner: `[singular, plural]` in English, by number and then gender in Spanish.
#[derive(Debug)]
pub(crate) struct Determiner {
    pub(crate) english: [Option<&'static str>; 2],
    pub(crate) spanish: [[&'static str; 2]; 2],
    pub(crate) role: Role,
    /// How often it is drawn, relative to the others.
    pub(crate) weight: u32,
}

const fn determiner(
    english: [Option<&'static str>; 2],
    spanish: [[&'static str; 2]; 2],
    role: Role,
    weight: u32,
) -> Determiner {
    Determiner {
        english,
        spanish,
        role,
        weight,
    }
}

/// The same word for both numbers in English, and for both genders in Spanish.
const fn possessive(
    english: &'static str,
    singular: &'static str,
    plural: &'static str,
) -> Determiner {
    determiner(
        [Some(english), Some(english)],
        [[singular, singular], [plural, plural]],
        Role::Possessive,
        4,
    )
}

const fn singular(
    english: &'static str,
    spanish: [&'static str; 2],
    role: Role,
    weight: u32,
) -> Determiner {
    determiner([Some(english), None], [spanish, ["", ""]], role, weight)
}

const fn plural(english: &'static str, spanish: [&'static str; 2], role: Role) -> Determiner {
    determiner([None, Some(english)], [["", ""], spanish], role, 4)
}

/// Every determiner. "El agua" is the business of the noun phrase.
pub(crate) const DETERMINERS: &[Determiner] = &[
    determiner(
        [Some("the"), Some("the")],
        [["el", "la"], ["los", "las"]],
        Role::Definite,
        40,
    ),
    determiner(
        [Some("this"), Some("these")],
        [["este", "esta"], ["estos", "estas"]],
        Role::Demonstrative,
        7,
    ),
    determiner(
        [Some("that"), Some("those")],
        [["ese", "esa"], ["esos", "esas"]],
        Role::Demonstrative,
        7,
    ),
    possessive("my", "mi", "mis"),
    possessive("your", "tu", "tus"),
    possessive("his", "su", "sus"),
    possessive("her", "su", "sus"),
    possessive("their", "su", "sus"),
    determiner(
        [Some("our"), Some("our")],
        [["nuestro", "nuestra"], ["nuestros", "nuestras"]],
        Role::Possessive,
        4,
    ),
    singular("a", ["un", "una"], Role::Indefinite, 16),
    singular("another", ["otro", "otra"], Role::Affirmative, 4),
    singular("every", ["cada", "cada"], Role::Affirmative, 3),
    plural("two", ["dos", "dos"], Role::Indefinite),
    plural("three", ["tres", "tres"], Role::Indefinite),
    plural("many", ["muchos", "muchas"], Role::Indefinite),
    plural("some", ["algunos", "algunas"], Role::Affirmative),
    determiner([Some(""), Some("")], [["", ""], ["", ""]], Role::Bare, 14),
];

/// A name, with its Spanish spelling and its gender.
pub(crate) const NAMES: &[(&str, &str, Gender)] = &[
    ("Ana", "Ana", Gender::Feminine),
    ("Maria", "María", Gender::Feminine),
    ("Pedro", "Pedro", Gender::Masculine),
    ("Juan", "Juan", Gender::Masculine),
];

/// Times of the present, which are habits.
pub(crate) const HABITUAL_TIMES: &[(&str, &str)] = &[
    ("every day", "todos los días"),
    ("every week", "todas las semanas"),
    ("on Sundays", "los domingos"),
    ("at night", "por la noche"),
    ("in the morning", "por la mañana"),
];
/// Times of the past.
pub(crate) const PAST_TIMES: &[(&str, &str)] = &[
    ("yesterday", "ayer"),
    ("last night", "anoche"),
    ("last week", "la semana pasada"),
    ("last Friday", "el viernes pasado"),
    ("two days ago", "hace dos días"),
];
/// Times of the past near enough for how someone felt or where something was.
pub(crate) const RECENT_TIMES: &[(&str, &str)] = &[("yesterday", "ayer"), ("last night", "anoche")];
/// Times of the future.
pub(crate) const FUTURE_TIMES: &[(&str, &str)] = &[
    ("tomorrow", "mañana"),
    ("tonight", "esta noche"),
    ("next week", "la próxima semana"),
    ("next Friday", "el próximo viernes"),
    ("on Monday", "el lunes"),
];
/// Adverbs of frequency, before the verb in both languages.
pub(crate) const FREQUENCIES: &[(&str, &str)] = &[
    ("always", "siempre"),
    ("never", "nunca"),
    ("often", "a menudo"),
    ("sometimes", "a veces"),
];

/// Where something is, in relation to something of these kinds.
pub(crate) const RELATIONS: &[(&str, &str, &[Kind])] = &[
    ("on", "en", &[Kind::Furniture]),
    ("under", "debajo de", &[Kind::Furniture]),
    (
        "behind",
        "detrás de",
        &[Kind::Opening, Kind::Plant, Kind::Furniture],
    ),
    (
        "near",
        "cerca de",
        &[Kind::Opening, Kind::Plant, Kind::Home],
    ),
];
/// Where someone is, in relation to something of these kinds.
pub(crate) const SURROUNDINGS: &[(&str, &str, &[Kind])] = &[
    (
        "behind",
        "detrás de",
        &[Kind::Opening, Kind::Plant, Kind::Home],
    ),
    (
        "near",
        "cerca de",
        &[
            Kind::Plant,
            Kind::Home,
            Kind::Public,
            Kind::Shop,
            Kind::Shore,
        ],
    ),
];

/// Present of "ser".
pub(crate) const SER: [&str; 5] = ["soy", "eres", "es", "somos", "son"];
/// Imperfect of "ser".
pub(crate) const SER_PAST: [&str; 5] = ["era", "eras", "era", "éramos", "eran"];
/// Present of "estar".
pub(crate) const ESTAR: [&str; 5] = ["estoy", "estás", "está", "estamos", "están"];
/// Imperfect of "estar".
pub(crate) const ESTAR_PAST: [&str; 5] = ["estaba", "estabas", "estaba", "estábamos", "estaban"];
/// Present of "ir".
pub(crate) const IR: [&str; 5] = ["voy", "vas", "va", "vamos", "van"];
/// Present of "querer".
pub(crate) const QUERER: [&str; 5] = ["quiero", "quieres", "quiere", "queremos", "quieren"];
/// Imperfect of "querer".
pub(crate) const QUERER_PAST: [&str; 5] = ["quería", "querías", "quería", "queríamos", "querían"];
/// Present of "poder".
pub(crate) const PODER: [&str; 5] = ["puedo", "puedes", "puede", "podemos", "pueden"];
/// English "to be", present, by person.
pub(crate) const BE: [&str; 5] = ["am", "are", "is", "are", "are"];
/// English "to be", past, by person.
pub(crate) const BE_PAST: [&str; 5] = ["was", "were", "was", "were", "were"];
/// English "to do", present, by person.
pub(crate) const DO: [&str; 5] = ["do", "do", "does", "do", "do"];
/// The dative pronouns of "gustar", by person.
pub(crate) const DATIVE: [&str; 5] = ["me", "te", "le", "nos", "les"];
