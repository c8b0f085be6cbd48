//! The SVG: well formed, described in words, and with one square per weight.

use burn_attn_viz::{AttentionMap, Background, ColorScale, SvgOptions, render_svg};

use crate::markup::elements;
use crate::{INVISIBLE, hostile, invisible, sample, tokens};

fn one_head(head: usize) -> SvgOptions {
    SvgOptions::default().head(head)
}

#[test]
fn every_variant_is_well_formed() {
    for map in [sample(), hostile()] {
        for head in [None, Some(0)] {
            for scale in [ColorScale::Unit, ColorScale::Maximum] {
                for background in [Background::Light, Background::Dark] {
                    let svg = render_svg(
                        &map,
                        &SvgOptions::default()
                            .head(head)
                            .scale(scale)
                            .background(background),
                    );
                    assert_eq!(elements(&svg)[0].0, "svg");
                }
            }
        }
    }
}

#[test]
fn title_and_description_come_first_and_say_what_is_drawn() {
    let svg = render_svg(&sample(), &one_head(0));
    let names: Vec<String> = elements(&svg).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names[..3], ["svg", "title", "desc"]);
    assert!(svg.contains("<title>layer 1, head 1 of 2</title>"));
    assert!(svg.contains(
        "3 queries in rows, 5 keys in columns. Head 1: the largest weight is 0.90, from “.” to “.”; mean entropy"
    ));
}

#[test]
fn single_head_names_every_weight_that_is_not_hidden() {
    let map = sample();
    for head in 0..2 {
        let svg = render_svg(&map, &one_head(head));
        let mut drawn = 0;
        for (i, query) in map.queries().iter().enumerate() {
            for (j, key) in map.keys().iter().enumerate() {
                let weight = map.weight(head, i, j);
                let tooltip =
                    format!("<title>{query} \u{200e}→ {key}\u{200e}: {weight:.4}</title>");
                let seen = !map.is_hidden(head, i, j);
                assert_eq!(svg.contains(&tooltip), seen, "{tooltip}");
                drawn += usize::from(seen);
            }
        }
        assert_eq!(svg.matches("</title></rect>").count(), drawn);
    }
}

#[test]
fn hidden_keys_are_hatched_and_a_visible_0_is_not() {
    let hatched = |map: &AttentionMap| {
        render_svg(map, &one_head(1))
            .matches("fill=\"url(#hidden-light)\"")
            .count()
    };
    // The second head has four zeros, side by side.
    assert_eq!(hatched(&sample()), 1);
    let mut hidden = vec![false; 15];
    (hidden[2], hidden[4]) = (true, true);
    let rows = [
        0.5, 0.5, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.5, 0.5, 0.0, 0.0, 0.0,
    ];
    let map = AttentionMap::new(
        "m",
        sample().queries().into(),
        sample().keys().into(),
        rows.repeat(2),
    );
    let map = map.unwrap().with_hidden(hidden).unwrap();
    assert_eq!(hatched(&map), 2, "what is between them is seen");
    let tooltip = "<title>je \u{200e}→ asleep\u{200e}: 0.0000</title>";
    assert!(render_svg(&map, &one_head(1)).contains(tooltip));
}

#[test]
fn grid_draws_every_head() {
    let svg = render_svg(&sample(), &SvgOptions::default());
    assert!(svg.contains(">head 1</text>") && svg.contains(">head 2</text>"));
    assert!(svg.contains("<title>layer 1, 2 heads</title>"));
}

#[test]
fn strongest_colour_follows_the_scale() {
    let strongest = "fill=\"#013665\"";
    let squares = |svg: &str| svg.matches(strongest).count();
    let up_to_maximum = one_head(0).scale(ColorScale::Maximum);
    assert_eq!(
        squares(&render_svg(&sample(), &one_head(0))),
        1,
        "only the legend"
    );
    assert_eq!(
        squares(&render_svg(&sample(), &up_to_maximum)),
        2,
        "and the weight of 0.9"
    );
    assert!(
        render_svg(&sample(), &up_to_maximum).contains(">0.90</text>"),
        "the legend says so"
    );
}

#[test]
fn legend_has_two_digits_of_a_small_weight() {
    for (keys, top) in [(2, "0.50"), (11, "0.091"), (1021, "0.00098")] {
        let labels = (0..keys).map(|place| format!("k{place}")).collect();
        let weights = vec![1.0 / keys as f32; keys];
        let map = AttentionMap::new("m", tokens(&["q"]), labels, weights).unwrap();
        let up_to_maximum = one_head(0).scale(ColorScale::Maximum);
        let svg = render_svg(&map, &up_to_maximum);
        assert!(svg.contains(&format!(">{top}</text>")), "{keys} keys");
    }
}

#[test]
fn a_small_map_shows_its_long_title_whole() {
    let title = "the cross-attention of the last layer of the decoder";
    let map = AttentionMap::new(title, tokens(&["a"]), tokens(&["x"]), vec![0.5; 2]).unwrap();
    let svg = render_svg(&map, &one_head(1));
    let shown = format!("font-weight=\"bold\">{title}, head 2 of 2</text>");
    assert!(svg.contains(&shown), "{svg}");
    // 65 columns of 9 pixels, and the margins.
    assert!(svg.contains(" width=\"617\" "), "{svg}");
}

#[test]
fn tokens_are_escaped() {
    let svg = render_svg(&hostile(), &one_head(0));
    assert!(svg.contains(">&lt;/script&gt;</text>"));
    assert!(svg.contains(">a&amp;b</text>"));
    assert!(!svg.contains('\u{1b}') && !svg.contains("</script>"));
}

#[test]
fn every_token_has_a_visible_label() {
    let svg = render_svg(&invisible(), &one_head(0));
    for (token, label) in INVISIBLE {
        // The labels of its row and of its column.
        let same = INVISIBLE
            .iter()
            .filter(|(_, other)| *other == label)
            .count();
        let labels = svg.matches(&format!(">{label}</text>")).count();
        assert_eq!(labels, 2 * same, "{token:?}");
        let tooltip = format!("<title>{label} \u{200e}→ ∅\u{200e}: 0.0769</title>");
        assert!(svg.contains(&tooltip));
    }
}

#[test]
fn too_large_a_map_has_a_sentence() {
    let map = |heads: usize, queries: usize, keys: usize| {
        let labels = |count: usize| (0..count).map(|place| format!("t{place}")).collect();
        let weights = vec![0.0; heads * queries * keys];
        AttentionMap::new("<wide>", labels(queries), labels(keys), weights).unwrap()
    };
    let drawn = |map: &AttentionMap, head| {
        let svg = render_svg(map, &SvgOptions::default().head(head));
        assert_eq!(elements(&svg)[0].0, "svg");
        svg
    };
    let limit = "an SVG draws at most 1024 queries × 1024 keys, and 1048576 weights;";
    let slice = "pass a slice of the tokens";
    for (map, head, sizes, remedy) in [
        (
            map(2, 3, 1025),
            Some(0),
            "1 head × 3 queries × 1025 keys",
            slice,
        ),
        (
            map(2, 1025, 3),
            None,
            "2 heads × 1025 queries × 3 keys",
            slice,
        ),
        (
            map(5, 461, 457),
            None,
            "5 heads × 461 queries × 457 keys",
            "draw one head",
        ),
    ] {
        let svg = drawn(&map, head);
        let sentence = format!("Left out: &lt;wide&gt; ({sizes}): {limit} {remedy}.");
        assert!(svg.contains(&sentence), "{svg}");
        assert!(svg.len() < 2000);
    }
    for (map, head) in [(map(1, 1024, 1), None), (map(5, 461, 457), Some(4))] {
        assert!(!drawn(&map, head).contains("Left out"));
    }
}

#[test]
#[should_panic(expected = "head 7 is outside a map of 2 heads")]
fn head_outside_the_map_panics() {
    render_svg(&sample(), &one_head(7));
}
