use super::*;

fn elements(text: &str) -> Vec<String> {
    let reaction = Reaction::parse(&format!("{text}>>C")).unwrap();
    reaction
        .reactants()
        .iter()
        .map(|atom| atom.element.clone())
        .collect()
}

/// The products with a number at every atom.
fn numbered(text: &str) -> String {
    let reaction = Reaction::parse(&format!("C>>{text}")).unwrap();
    let numbers: Vec<_> = (0..reaction.atoms.len()).map(Some).collect();
    let written = reaction.with_numbers(&numbers);
    written.split(">>").nth(1).unwrap().to_string()
}

#[test]
fn atoms_have_elements() {
    let found = elements("C[13CH4][nH]1cc[se]c1.Cl[Br-]*[1*][Na+]~[OH-]N");
    let expected = "C C N C C Se C Cl Br * * Na O N";
    assert_eq!(found.join(" "), expected);
}

#[test]
fn bonds_reach_over_branches_and_rings() {
    // Phenol with a chlorine: the ring's carbon 1 is bound to the oxygen, to carbons 2 and 6.
    let reaction = Reaction::parse("Oc1ccc(Cl)cc1>>C").unwrap();
    assert_eq!(reaction.atoms[1].neighbors, [0, 2, 7]);
    assert_eq!(reaction.atoms[4].neighbors, [3, 5, 6]);
    // Two rings with the same digit, one after the other, and a ring of two digits.
    let reaction = Reaction::parse("C1CC1C1CC1%12CC%12>>C").unwrap();
    assert_eq!(reaction.atoms[2].neighbors, [1, 0, 3]);
    assert_eq!(reaction.atoms[5].neighbors, [4, 3, 6, 7]);
}

#[test]
fn hydrogens_follow_from_the_valence() {
    assert_eq!(numbered("CCO"), "[CH3:1][CH2:2][OH:3]");
    assert_eq!(numbered("C=CC#N"), "[CH2:1]=[CH:2][C:3]#[N:4]");
    assert_eq!(numbered("c1ccsc1"), "[cH:1]1[cH:2][cH:3][s:4][cH:5]1");
    assert_eq!(numbered("c1cc[nH]c1"), "[cH:1]1[cH:2][cH:3][nH:4][cH:5]1");
    assert_eq!(
        numbered("Cn1cccc1"),
        "[CH3:1][n:2]1[cH:3][cH:4][cH:5][cH:6]1"
    );
    assert_eq!(
        numbered("CS(=O)(=O)N"),
        "[CH3:1][S:2](=[O:3])(=[O:4])[NH2:5]"
    );
    assert_eq!(numbered("[O-:7]C(=O)Cl"), "[O-:1][C:2](=[O:3])[Cl:4]");
    assert_eq!(
        numbered("O=c1cc[nH]cc1"),
        "[O:1]=[c:2]1[cH:3][cH:4][nH:5][cH:6][cH:7]1"
    );
}

#[test]
fn agents_are_reactants() {
    let reaction = Reaction::parse("CCO>[Na+]>CCOC").unwrap();
    assert_eq!(reaction.tokens.concat(), "CCO.[Na+]>>CCOC");
    assert_eq!(reaction.n_reactant_atoms, 4);
    // The head of a dative bond is no arrow.
    let reaction = Reaction::parse("O=C[O-]->[K+]>>CO").unwrap();
    assert_eq!(reaction.atoms[2].neighbors, [1, 3]);
}

#[test]
fn what_is_no_reaction_is_refused() {
    let cases = [
        ("", "it needs reactants, `>>` and products"),
        ("CCO", "it needs reactants, `>>` and products"),
        ("CC>>", "it needs an atom on each side of `>>`"),
        (">>CC", "it needs an atom on each side of `>>`"),
        (
            "C>>C>>C",
            "it needs `>>` once, between reactants and products",
        ),
        ("CXC>>C", "'X' at character 2 is not part of SMILES"),
        ("C[>>C", "the bracket at character 2 is empty or not closed"),
        (
            "C[]C>>C",
            "the bracket at character 2 is empty or not closed",
        ),
        ("C=>>C", "a bond of \"C=\" leads nowhere"),
        ("=CC>>C", "\"=\" stands before the first atom of \"=CC\""),
        ("C1CC>>C", "ring bond 1 of \"C1CC\" is not closed"),
        ("C(C>>C", "a branch of \"C(C\" is not closed"),
        ("C)C>>C", "\"C)C\" closes a branch that was not opened"),
        ("1CC>>C", "\"1\" stands before the first atom of \"1CC\""),
        ("C+C>>C", "\"+\" in \"C+C\" is neither an atom nor a bond"),
        ("C==C>>C", "\"=\" in \"C==C\" is not where a bond can be"),
        ("CC>C>>C", "\">\" in \"CC>C\" is not where a bond can be"),
        ("CC>>C>C", "\">\" in \"C>C\" is not where a bond can be"),
        ("C()C>>C", "a branch of \"C()C\" is empty"),
        ("C(C=)C>>C", "a bond of \"C(C=)C\" leads nowhere"),
        (
            "C11>>C",
            "ring bond 1 of \"C11\" begins and ends at one atom",
        ),
        ("[SEP]>>C", "\"[SEP]\" in \"[SEP]\" is not an atom"),
        ("C[hello]>>C", "\"[hello]\" in \"C[hello]\" is not an atom"),
        ("Cé>>C", "'é' at character 2 is not part of SMILES"),
    ];
    for (text, problem) in cases {
        let error = Reaction::parse(text).unwrap_err().to_string();
        assert_eq!(
            error,
            format!("the reaction {text:?} cannot be read: {problem}")
        );
    }
}

#[test]
fn numbers_from_before_are_forgotten() {
    let reaction = Reaction::parse(
        "[CH3:1][OH:2].[Na+:3].[13CH4:4].[nH:5]1[cH:6][cH:7][cH:8][cH:9]1>>[CH3:7][CH2:1][OH:8]",
    );
    assert_eq!(
        reaction.unwrap().tokens.concat(),
        "CO.[Na+].[13CH4].[nH]1cccc1>>CCO"
    );
    // A radical has to say so.
    let reaction = Reaction::parse("[CH2:1][Cl:2]>>[C:3]#[N:4]").unwrap();
    assert_eq!(reaction.tokens.concat(), "[CH2]Cl>>[C]#N");
}

#[test]
fn agents_without_reactants_stand_alone() {
    assert_eq!(
        Reaction::parse(">[Na+]>CC").unwrap().tokens.concat(),
        "[Na+]>>CC"
    );
}
