//! What the page asks the model for.

use burn::tensor::{Device, TensorData};
use burn_attn_models::{
    seq2seq::{Seq2Seq, Seq2SeqConfig},
    tokens::padded,
    weights::{in_f16, in_int8},
};
use explorer_model::{Answer, Explorer, ModelFile, Request, TensorPlace};
use serde_json::{Value, json};

fn config() -> Seq2SeqConfig {
    Seq2SeqConfig::new(40)
        .with_d_model(12)
        .with_n_heads(3)
        .with_d_ff(16)
        .with_dropout(0.0)
        .with_max_len(17)
}

fn model() -> Seq2Seq {
    config().init(&Device::default())
}

/// A model that went through a file in f16, and the same as a module.
fn explorer() -> (Explorer, Seq2Seq) {
    let bytes = ModelFile::to_bytes(&config(), in_f16(model())).unwrap();
    let read = || ModelFile::from_bytes(&bytes, &Device::default()).unwrap();
    (Explorer::new(read()), read().model)
}

fn answer(explorer: &mut Explorer, request: Value) -> Result<Answer, String> {
    let request: Request = serde_json::from_value(request).map_err(|error| error.to_string())?;
    explorer.answer(&request)
}

#[track_caller]
fn tensor<'a>(answer: &'a Answer, name: &str) -> (&'a TensorPlace, &'a [f32]) {
    let place = answer.tensors.iter().find(|place| place.name == name);
    let place = place.unwrap_or_else(|| panic!("there is no {name}"));
    let len: usize = place.shape.iter().product();
    (place, &answer.numbers[place.offset..][..len])
}

fn trace(explorer: &mut Explorer, switches: Value) -> Result<Answer, String> {
    let request = json!({
        "task": "trace", "source": [5, 6, 7, 2], "target": [1, 8, 9], "switches": switches
    });
    answer(explorer, request)
}

#[test]
fn a_trace_has_the_numbers_of_the_model() {
    let (mut explorer, model) = explorer();
    let answer = trace(&mut explorer, json!({})).unwrap();
    let device = Device::default();
    let (source, lengths) = padded(&[[5, 6, 7, 2]], &device);
    let (target, _) = padded(&[[1, 8, 9]], &device);
    let logits = model.forward(source, &lengths, target).into_data();
    let (place, numbers) = tensor(&answer, "logits");
    assert_eq!(place.shape, [3, 40]);
    assert_eq!(numbers, logits.iter::<f32>().collect::<Vec<_>>());
    let (place, numbers) = tensor(&answer, "source.tokens");
    assert_eq!(
        (place.shape.as_slice(), numbers),
        (&[4][..], &[5.0, 6.0, 7.0, 2.0][..])
    );
    assert_eq!(
        tensor(&answer, "decoder.1.cross.weights").0.shape,
        [3, 3, 4]
    );
    let text = serde_json::to_value(&answer).unwrap();
    let first = json!({"name": "source.tokens", "shape": [4], "offset": 0});
    assert_eq!(text["tensors"][0], first);
}

#[test]
fn a_translation_follows_the_largest_logits() {
    let (mut explorer, _) = explorer();
    let mut count = 0;
    for first in 5..15 {
        let source = [first, 6, 7, 2];
        let request = json!({"task": "translate", "source": source});
        let found = answer(&mut explorer, request).unwrap().target.unwrap();
        let read: Vec<u32> = std::iter::once(1)
            .chain(found.iter().copied())
            .take(16)
            .collect();
        let request = json!({"task": "trace", "source": source, "target": read});
        let trace = answer(&mut explorer, request).unwrap();
        let (_, logits) = tensor(&trace, "logits");
        // With the end, at which a model of random numbers may be at once.
        for (logits, token) in logits.chunks(40).zip(found.into_iter().chain([2])) {
            let best = (0..40).max_by(|&a, &b| logits[a].total_cmp(&logits[b]));
            assert_eq!(best, Some(token as usize));
            count += 1;
        }
    }
    assert!(count >= 10);
}

#[test]
fn switches_change_what_they_name_and_back() {
    let (mut explorer, _) = explorer();
    let mut trace = |switches: Value| trace(&mut explorer, switches).unwrap();
    let plain = trace(json!({}));
    let numbers = |answer: &Answer, name: &str| tensor(answer, name).1.to_vec();
    let scores = numbers(&plain, "encoder.0.self.scores");
    let unscaled = trace(json!({"scale": 1.0}));
    assert_eq!(numbers(&unscaled, "encoder.0.self.scores"), scores);
    assert_eq!(numbers(&unscaled, "encoder.0.self.scaled"), scores);
    let open = trace(json!({"causal": false}));
    let later = |answer: &Answer| numbers(answer, "decoder.0.self.weights")[1];
    assert_eq!(later(&plain), 0.0);
    assert!(later(&open) > 0.0);
    let unplaced = trace(json!({"positions": false}));
    let names = unplaced.tensors.iter().map(|place| place.name.as_str());
    assert!(names.into_iter().all(|name| name != "encoder.positions"));
    let embedded = numbers(&unplaced, "encoder.embedded");
    assert_eq!(numbers(&unplaced, "encoder.0.input"), embedded);
    let head = json!({"side": "decoder", "layer": 1, "attention": "cross", "head": 2});
    let cut = trace(json!({"cut": [head]}));
    let of = |answer: &Answer, step: &str| numbers(answer, &format!("decoder.1.cross.{step}"));
    assert_eq!(of(&cut, "merged"), of(&plain, "merged"));
    assert_ne!(of(&cut, "output"), of(&plain, "output"));
    assert_eq!(trace(json!({})).numbers, plain.numbers);
}

#[test]
fn parameters_have_the_names_of_the_modules() {
    let (mut explorer, model) = explorer();
    let mut parameter =
        |name: &str| answer(&mut explorer, json!({"task": "parameter", "name": name}));
    let layer = &model.transformer.decoder.layers[1];
    let of_self = layer.self_attention.query_key_value.weight.to_data();
    let cross = layer.cross_attention.as_ref().unwrap();
    let bias = cross.output.bias.as_ref().unwrap().to_data();
    let rows: [(&str, &[usize], TensorData); 4] = [
        (
            "embedding.weight",
            &[40, 12],
            model.embedding.weight.to_data(),
        ),
        ("decoder.1.self.query_key_value.weight", &[12, 36], of_self),
        (
            "decoder.1.cross.key_value.weight",
            &[12, 24],
            cross.key_value.weight.to_data(),
        ),
        ("decoder.1.cross.output.bias", &[12], bias),
    ];
    for (name, shape, data) in rows {
        let answer = parameter(name).unwrap();
        let (place, numbers) = tensor(&answer, name);
        assert_eq!(place.shape, shape);
        assert_eq!(numbers, data.iter::<f32>().collect::<Vec<_>>());
    }
    for name in [
        "encoder.0.cross.query.weight",
        "encoder.2.self.output.weight",
        "logits",
        "",
    ] {
        let error = parameter(name).unwrap_err();
        assert_eq!(error, format!("there is no parameter {name:?}"));
    }
}

#[test]
fn mistakes_have_a_sentence() {
    let (mut explorer, _) = explorer();
    let source = |tokens: Vec<u32>| json!({"task": "translate", "source": tokens});
    for (request, sentence) in [
        (
            source(vec![]),
            "the source has 0 tokens, but this model reads from 1 to 16",
        ),
        (
            source(vec![3; 17]),
            "the source has 17 tokens, but this model reads from 1 to 16",
        ),
        (
            source(vec![40]),
            "the source has the token 40, but the vocabulary 40 tokens",
        ),
        (
            json!({"task": "translate", "source": [5], "switches": {"causal": false}}),
            "without the causal mask nothing can be generated",
        ),
    ] {
        assert_eq!(answer(&mut explorer, request).unwrap_err(), sentence);
    }
    let error = trace(&mut explorer, json!({"scale": 0.0})).unwrap_err();
    assert_eq!(error, "the scale must be above 0 and finite, got 0");
    let head = json!({"side": "encoder", "layer": 0, "attention": "cross", "head": 0});
    let error = trace(&mut explorer, json!({"cut": [head]})).unwrap_err();
    assert!(error.starts_with("there is no head "), "{error}");
    let error = answer(&mut explorer, json!({"task": "sing"})).unwrap_err();
    assert!(error.starts_with("unknown variant `sing`"), "{error}");
}

#[test]
fn files_are_whole_or_refused() {
    let device = Device::default();
    let whole = ModelFile::to_bytes(&config(), in_int8(model())).unwrap();
    assert!(ModelFile::from_bytes(&whole, &device).is_ok());
    let error = |bytes: &[u8]| ModelFile::from_bytes(bytes, &device).unwrap_err();
    assert_eq!(error(b"no line"), "the file of the model has no header");
    assert!(error(b"{}\n").starts_with("the header of the model is not its configuration: "));
    let line = whole.iter().position(|&byte| byte == b'\n').unwrap() + 1;
    for end in [line, line + 100, whole.len() - 1] {
        let error = error(&whole[..end]);
        assert!(
            !error.contains('\n') && error.starts_with("the "),
            "{error}"
        );
    }
    let other = ModelFile::to_bytes(&config().with_d_model(24), model()).unwrap();
    assert!(error(&other).starts_with("the record is of another model: "));
}
