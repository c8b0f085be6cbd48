use super::*;

/// A map in which the token of each product atom looks at these tokens.
fn looking(reaction: &Reaction, pairs: &[(usize, usize, f32)]) -> AttentionMap {
    let tokens: Vec<String> = (0..reaction.tokens.len() + 2)
        .map(|at| at.to_string())
        .collect();
    let mut weights = vec![0.0; tokens.len() * tokens.len()];
    for &(product, reactant, weight) in pairs {
        let from = reaction.products()[product].token + 1;
        let to = reaction.reactants()[reactant].token + 1;
        weights[from * tokens.len() + to] = weight;
    }
    AttentionMap::new("layer 1", tokens.clone(), tokens, weights).unwrap()
}

#[test]
fn a_sure_pair_decides_about_its_neighbors() {
    let reaction = Reaction::parse("OCC>>CCO").unwrap();
    // The carbons are undecided, and slightly wrong; the oxygen is sure.
    let pairs = [
        (0, 1, 0.51),
        (0, 2, 0.49),
        (1, 1, 0.49),
        (1, 2, 0.51),
        (2, 0, 0.9),
    ];
    let map = AtomMap::of(&reaction, &looking(&reaction, &pairs), 0);
    assert_eq!(map.origins, [Some(2), Some(1), Some(0)]);
    let sure = 90.0 * 0.49 / (90.0 * 0.49 + 0.51);
    let confidence = map.confidence.unwrap();
    assert!((confidence - sure).abs() < 1e-6, "{confidence}");
    assert_eq!(
        map.written(&reaction),
        "[OH:3][CH2:2][CH3:1]>>[CH3:1][CH2:2][OH:3]"
    );
}

#[test]
fn atoms_of_other_elements_are_no_pair() {
    let reaction = Reaction::parse("CN>>CCl").unwrap();
    let pairs = [(0, 0, 0.1), (1, 1, 0.9)];
    let map = AtomMap::of(&reaction, &looking(&reaction, &pairs), 0);
    assert_eq!(map.origins, [Some(0), None]);
    assert_eq!(map.written(&reaction), "[CH3:1]N>>[CH3:1][Cl:2]");
    assert_eq!(map.confidence, Some(1.0));

    let reaction = Reaction::parse("N>>O").unwrap();
    let map = AtomMap::of(&reaction, &looking(&reaction, &[(0, 0, 0.9)]), 0);
    assert_eq!((map.origins, map.confidence), (vec![None], None));
}
