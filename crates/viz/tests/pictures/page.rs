//! The page: one closed file, whose data are the weights that were put in.

use burn_attn_viz::{AttentionGroup, AttentionMap, AttentionPage};

use crate::json::Json;
use crate::markup::elements;
use crate::{HOSTILE, INVISIBLE, hostile, invisible, map_of, sample, tokens};

fn page() -> AttentionPage {
    AttentionPage::new("What the heads look at")
        .source("I am fast asleep.")
        .translation("je dors.")
        .metadata("model", "toy")
        .group(AttentionGroup::new("Cross-attention", vec![sample(), sample()]).note("A note."))
}

fn data(html: &str) -> Json {
    let (_, from) = html
        .split_once("<script type=\"application/json\" id=\"attention-data\">")
        .expect("the page has data");
    Json::parse(from.split_once("</script>").expect("the data end").0)
}

/// A page of one group of these layers, and the layers in its data.
fn layers(layers: Vec<AttentionMap>) -> (String, Vec<Json>) {
    let group = AttentionGroup::new("g", layers);
    let html = AttentionPage::new("t").group(group).to_html();
    let data = data(&html);
    let layers = data.get("groups").items()[0].get("layers");
    (html, layers.items().to_vec())
}

#[test]
fn rows_in_the_page_equal_the_inputs() {
    let map = sample();
    let data = data(&page().to_html());
    let units = data.get("units").number();
    let group = &data.get("groups").items()[0];
    assert_eq!(group.get("name").text(), "Cross-attention");
    assert_eq!(group.get("note").text(), "A note.");
    assert_eq!(group.get("layers").items().len(), 2);
    for layer in group.get("layers").items() {
        assert_eq!(layer.get("title").text(), "layer 1");
        assert_eq!(layer.get("causal"), &Json::Bool(false));
        let shown = |name: &str| -> Vec<String> {
            layer
                .get(name)
                .items()
                .iter()
                .map(|token| token.text().to_owned())
                .collect()
        };
        assert_eq!(shown("queries"), map.queries());
        assert_eq!(shown("keys"), map.keys());

        let heads = layer.get("heads").items();
        assert_eq!(heads.len(), 3, "two heads and their mean");
        let mean = map.mean_over_heads();
        for (place, (of, head)) in [(&map, 0), (&map, 1), (&mean, 0)].into_iter().enumerate() {
            let weights = heads[place].get("weights").items();
            assert_eq!(weights.len(), 15);
            for (cell, weight) in weights.iter().enumerate() {
                let (i, j) = (cell / 5, cell % 5);
                if of.is_hidden(head, i, j) {
                    assert_eq!(weight.number(), -1.0);
                    continue;
                }
                let expected = f64::from(of.weight(head, i, j));
                let found = weight.number() / units;
                assert!(
                    (found - expected).abs() <= 0.5 / units,
                    "head {place}, cell {cell}"
                );
            }
            let entropy = heads[place].get("entropy").number();
            assert!((entropy - f64::from(of.entropy(head))).abs() <= 0.000_006);
            let sums = heads[place].get("sums").items();
            assert!(sums.iter().map(Json::number).eq([1.0; 3]), "{sums:?}");
        }
        assert_eq!(heads[1].get("name").text(), "head 2");
        assert_eq!(heads[2].get("name").text(), "mean");
    }
}

#[test]
fn hidden_differs_from_what_rounds_to_0_and_from_a_visible_0() {
    let map = map_of(&["q"], &["w", "x", "y", "z"], &[0.0, 1e-6, 0.0, 1.0]).unwrap();
    let masked = map.clone().with_hidden(vec![true, false, false, false]);
    let (_, layers) = layers(vec![map, masked.unwrap()]);
    let expected = [[-1.0, 0.0, -1.0, 1e4], [-1.0, 0.0, 0.0, 1e4]];
    for (layer, expected) in layers.iter().zip(expected) {
        let weights = layer.get("heads").items()[0].get("weights").items();
        assert!(weights.iter().map(Json::number).eq(expected), "{weights:?}");
    }
}

#[test]
fn what_was_written_stands_beside_the_queries() {
    let group = || AttentionGroup::new("g", vec![sample()]);
    let written = tokens(&["dors", ".", "</s>"]);
    let html = AttentionPage::new("t")
        .group(group())
        .group(group().written(written.clone()))
        .to_html();
    let data = data(&html);
    let [plain, after] = data.get("groups").items() else {
        panic!("two groups")
    };
    assert_eq!(plain.get("written").items(), []);
    let found = after.get("written").items().iter().map(Json::text);
    assert!(found.eq(written));
    let queries = |group: &Json| group.get("layers").items()[0].get("queries").clone();
    assert_eq!(queries(plain), queries(after));
}

#[test]
#[should_panic(expected = "2 written tokens do not fit \"layer 1\" of 3 queries")]
fn written_tokens_fit_the_queries() {
    let _ = AttentionGroup::new("g", vec![sample()]).written(tokens(&["a", "b"]));
}

#[test]
fn groups_have_their_names_and_layers() {
    let page = page();
    let [group] = page.groups() else {
        panic!("one group")
    };
    assert_eq!(group.name(), "Cross-attention");
    assert_eq!(group.layers(), [sample(), sample()]);
}

#[test]
fn one_head_has_no_mean() {
    let (_, layers) = layers(vec![map_of(&["a"], &["x"], &[1.0]).unwrap()]);
    assert_eq!(layers[0].get("heads").items().len(), 1);
}

#[test]
fn causal_layers_are_marked() {
    let map = map_of(&["a", "b"], &["a", "b"], &[1.0, 0.0, 0.5, 0.5]).unwrap();
    let (_, layers) = layers(vec![map]);
    assert_eq!(layers[0].get("causal"), &Json::Bool(true));
}

#[test]
fn page_is_well_formed_and_closed() {
    let html = page().to_html();
    let elements = elements(&html);
    let count = |name: &str| {
        elements
            .iter()
            .filter(|(element, _)| element == name)
            .count()
    };
    assert_eq!(
        (
            count("style"),
            count("script"),
            count("noscript"),
            count("h1")
        ),
        (1, 2, 1, 1)
    );
    for (name, attributes) in &elements {
        for outside in ["src=", "href=", "url("] {
            assert!(
                !attributes.contains(outside),
                "{name} {attributes} needs nothing else"
            );
        }
    }
    let namespace = "http://www.w3.org/2000/svg";
    assert!(
        !html.replace(namespace, "").contains("://"),
        "no address in the page"
    );
    for part in [
        "default-src 'none'",
        "form-action 'none'",
        "base-uri 'none'",
    ] {
        assert!(
            html.contains(part),
            "and the browser would refuse one: {part}"
        );
    }
}

#[test]
fn header_shows_the_sentences_and_the_metadata() {
    let html = page().to_html();
    for part in [
        "<title>What the heads look at</title>",
        "<h1>What the heads look at</h1>",
        "<dt>Source</dt><dd dir=\"auto\">I am fast asleep.</dd>",
        "<dt>Translation</dt><dd dir=\"auto\">je dors.</dd>",
        "<dt>model</dt><dd dir=\"auto\">toy</dd>",
        "How to read this",
    ] {
        assert!(html.contains(part), "{part}");
    }
}

#[test]
fn no_text_breaks_out_of_the_page() {
    let mut page = AttentionPage::new(HOSTILE.concat());
    for text in HOSTILE {
        page = page
            .source(text)
            .translation(text)
            .metadata(text, text)
            .group(AttentionGroup::new(text, vec![hostile()]).note(text));
    }
    let html = page.to_html();
    let scripts = elements(&html)
        .iter()
        .filter(|(name, _)| name == "script")
        .count();
    assert_eq!(scripts, 2, "the data and the script of the page");
    assert_eq!(html.matches("</script").count(), 2);

    let data = data(&html);
    let groups = data.get("groups").items();
    assert_eq!(
        groups[0].get("name").text(),
        HOSTILE[0],
        "what was written is read back"
    );
    assert_eq!(groups[2].get("note").text(), HOSTILE[2]);
    // Nor can a name or a note reorder the line, or hide in it.
    for text in ["name", "note"] {
        let shown = groups[3..].iter().map(|group| group.get(text).text());
        assert!(shown.eq(["\u{fffd}␊", "␛[31m"]), "{text}");
    }
    let keys = groups[0].get("layers").items()[0].get("keys").items();
    assert_eq!(keys[0].text(), "</script>");
    assert_eq!(keys[3].text(), "\u{fffd}␊", "line ends are made visible");
}

#[test]
fn every_token_has_a_visible_label() {
    let (_, layers) = layers(vec![invisible()]);
    for side in ["queries", "keys"] {
        let labels = layers[0].get(side).items().iter().map(Json::text);
        let expected = INVISIBLE.iter().map(|&(_, label)| label);
        assert!(labels.eq(expected), "{side}");
    }
}

#[test]
fn empty_page_is_still_a_page() {
    let html = AttentionPage::new("nothing yet").to_html();
    elements(&html);
    assert_eq!(data(&html).get("groups").items(), []);
}

#[test]
fn page_stays_small() {
    // Six layers of eight heads on 30 tokens, as of a base transformer on a long sentence.
    let labels: Vec<String> = (0..30).map(|place| format!("token{place}")).collect();
    let map =
        AttentionMap::new("layer", labels.clone(), labels, vec![1.0 / 30.0; 8 * 900]).unwrap();
    let group = AttentionGroup::new("Encoder self-attention", vec![map; 6]);
    let bytes = AttentionPage::new("t").group(group).to_html().len();
    assert!(bytes < 300_000, "{bytes} bytes");
}

#[test]
fn layer_beyond_the_limit_has_a_sentence_and_the_others_are_drawn() {
    let uniform = |title: &str, heads: usize, queries: usize, keys: usize| {
        let labels = |count: usize| (0..count).map(|place| format!("t{place}")).collect();
        let weights = vec![1.0 / keys as f32; heads * queries * keys];
        AttentionMap::new(title, labels(queries), labels(keys), weights).unwrap()
    };
    let (html, shown) = layers(vec![
        uniform("layer 1", 1, 2, 1024),
        uniform("<layer 2>", 2, 3, 1025),
        uniform("layer 3", 1, 1025, 1),
    ]);
    elements(&html);
    assert_eq!(shown.len(), 1);
    assert_eq!(shown[0].get("title").text(), "layer 1");
    for sentence in [
        "Left out: g, &lt;layer 2&gt; (2 heads × 3 queries × 1025 keys): a page draws at most \
         1024 queries × 1024 keys; pass a slice of the tokens.",
        "Left out: g, layer 3 (1 head × 1025 queries × 1 key): a page draws at most \
         1024 queries × 1024 keys; pass a slice of the tokens.",
    ] {
        assert!(html.contains(sentence), "{sentence}");
    }
}

#[test]
fn layer_over_the_most_weights_has_a_sentence_and_the_others_are_drawn() {
    // Sixteen heads and their mean: 17 · 2²⁰ weights, one million more than a page takes.
    let labels: Vec<String> = (0..1024).map(|place| place.to_string()).collect();
    let large = AttentionMap::new("large", labels.clone(), labels, vec![0.0; 16 << 20]).unwrap();
    let (html, layers) = layers(vec![sample(), large, sample()]);
    assert_eq!(layers.len(), 2);
    assert!(html.contains(
        "Left out: g, large (16 heads × 1024 queries × 1024 keys): a page draws at most 16777216 weights, means over \
         heads included, and would have 17825837 with this layer; pass fewer heads or a slice of the tokens."
    ));
}
