//! What may stand where in SMILES.

use std::{ops::Range, sync::LazyLock};

use regex::Regex;

use super::atom::Atom;

/// A token in front of a text, as rxnmapper has it.
static TOKEN: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^(\[[^\]]+\]|Br?|Cl?|[NOSPFIbcnosp]|[().=#\-+\\/:~@?*$]|>>?|%[0-9]{2}|[0-9])")
        .expect("the pattern is valid")
});

/// An atom in brackets: isotope, element, chirality, hydrogens, charge, number.
static ATOM: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^\[[0-9]*(\*|[A-Za-z][a-z]?)@*(H[0-9]*)?([+-]+[0-9]*)?(:[0-9]+)?\]$")
        .expect("the pattern is valid")
});

/// Divides a text into atoms, bonds, brackets, ring bonds, dots and the arrow.
pub(super) fn tokens(text: &str) -> Result<Vec<String>, String> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let Some(token) = TOKEN.find(rest) else {
            let at = text.chars().count() - rest.chars().count() + 1;
            return Err(match first {
                '[' => format!("the bracket at character {at} is empty or not closed"),
                _ => format!("{first:?} at character {at} is not part of SMILES"),
            });
        };
        tokens.push(token.as_str().to_string());
        rest = &rest[token.end()..];
    }
    Ok(tokens)
}

/// Reads the molecule of these tokens.
pub(super) fn molecule(
    tokens: &[String],
    range: Range<usize>,
    atoms: &mut Vec<Atom>,
) -> Result<(), String> {
    let written = tokens[range.clone()].concat();
    let mut branches: Vec<Option<usize>> = Vec::new();
    let mut rings: Vec<(usize, usize, Option<usize>)> = Vec::new();
    let mut last: Option<usize> = None;
    let mut bond: Option<usize> = None;
    for at in range {
        let token = tokens[at].as_str();
        if is_atom(token) {
            let symbol = symbol(token);
            let symbol =
                symbol.ok_or_else(|| format!("{token:?} in {written:?} is not an atom"))?;
            atoms.push(Atom::new(at, symbol));
            let new = atoms.len() - 1;
            if let Some(last) = last.replace(new) {
                bind(atoms, last, new, bond.take());
            }
            continue;
        }
        let outside = || format!("{token:?} stands before the first atom of {written:?}");
        match token {
            "(" | ")" if bond.is_some() => {
                return Err(format!("a bond of {written:?} leads nowhere"));
            }
            "(" => branches.push(Some(last.ok_or_else(outside)?)),
            ")" if at > 0 && tokens[at - 1] == "(" => {
                return Err(format!("a branch of {written:?} is empty"));
            }
            ")" => {
                last = branches
                    .pop()
                    .ok_or_else(|| format!("{written:?} closes a branch that was not opened"))?
            }
            _ if order(token).is_some() => {
                last.ok_or_else(outside)?;
                // The head of a dative bond comes behind its line, and nothing else behind a bond.
                let is_head = token == ">" && tokens[at - 1] == "-";
                if bond.is_some() != is_head || (token == ">") != is_head {
                    return Err(format!(
                        "{token:?} in {written:?} is not where a bond can be"
                    ));
                }
                bond = order(token);
            }
            _ if token.starts_with(|c: char| c == '%' || c.is_ascii_digit()) => {
                let from = last.ok_or_else(outside)?;
                let digits = token.trim_start_matches('%');
                let label: usize = digits.parse().expect("the token has digits alone");
                match rings.iter().position(|(open, ..)| *open == label) {
                    Some(open) => {
                        let (_, to, other) = rings.remove(open);
                        if from == to {
                            return Err(format!(
                                "ring bond {label} of {written:?} begins and ends at one atom"
                            ));
                        }
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

/// The symbol of an atom, if what looks like one is one.
fn symbol(token: &str) -> Option<&str> {
    if !token.starts_with('[') {
        return Some(token);
    }
    let symbol = ATOM.captures(token)?.get(1)?.as_str();
    is_element(symbol).then_some(symbol)
}

/// Whether it is the symbol of an element, a small one if it is aromatic.
fn is_element(symbol: &str) -> bool {
    match symbol.starts_with(|c: char| c.is_ascii_lowercase()) {
        true => ["b", "c", "n", "o", "p", "s", "se", "as", "te"].contains(&symbol),
        false => symbol == "*" || ELEMENTS.split(' ').any(|element| element == symbol),
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

/// The elements.
const ELEMENTS: &str = "H He Li Be B C N O F Ne Na Mg Al Si P S Cl Ar K Ca Sc Ti V Cr Mn Fe Co Ni Cu Zn Ga Ge As Se Br Kr Rb Sr Y Zr \
    Nb Mo Tc Ru Rh Pd Ag Cd In Sn Sb Te I Xe Cs Ba La Ce Pr Nd Pm Sm Eu Gd Tb Dy Ho Er Tm Yb Lu Hf Ta W Re Os Ir Pt Au Hg Tl Pb Bi Po \
    At Rn Fr Ra Ac Th Pa U Np Pu Am Cm Bk Cf Es Fm Md No Lr Rf Db Sg Bh Hs Mt Ds Rg Cn Nh Fl Mc Lv Ts Og";
