use super::*;

#[test]
fn a_head_is_two_numbers_from_1() {
    assert_eq!("6:12".parse(), Ok(Head { layer: 6, head: 12 }));
    for text in ["", "6", "0:1", "1:0", "6:", "a:b", "1:2:3", "-1:2"] {
        assert!(text.parse::<Head>().is_err(), "{text:?}");
    }
}

#[test]
fn a_head_that_is_not_there_is_refused() {
    let map = AttentionMap::new(
        "layer 1",
        vec!["a".into()],
        vec!["b".into()],
        vec![1.0, 1.0],
    );
    let layers = [map.unwrap()];
    assert!(Head { layer: 1, head: 2 }.of(&layers, "--head").is_ok());
    for head in [Head { layer: 2, head: 1 }, Head { layer: 1, head: 3 }] {
        assert_eq!(
            head.of(&layers, "--head").unwrap_err().to_string(),
            format!("--head {head}: the model has 1 layers of 2 heads")
        );
    }
}
