//! CLIP and SigLIP against `transformers`.

use burn::tensor::{Int, Tensor, TensorData};
use burn_attn::{TransformerStackConfig, TransformerStackOutput};
use burn_attn_models::{
    clip::{
        self, Clip, ClipConfig, ClipFamily, ClipText, ClipTextConfig, ClipVision, ClipVisionConfig,
    },
    weights::save,
};
use burn_attn_tests::{
    compare::{assert_close_to_largest, assert_same},
    devices,
    golden::GoldenFile,
    sentence,
};
use serde_json::{Value, json};

use super::{
    TOLERANCE, assert_states, folder,
    language_models::{Logits, Model},
};

impl Logits for Clip {
    fn logits_of(&self, values: &GoldenFile) -> TensorData {
        let device = devices::any();
        let tokens = Tensor::from_data(values.data("tokens"), &device);
        self.logits(values.tensor("images", &device), tokens)
            .into_data()
    }
}

fn model(name: &'static str, family: ClipFamily) -> Model<Clip> {
    Model {
        name,
        from_pretrained: |folder, device| clip::from_pretrained(folder, device),
        table: family.table(),
    }
}

pub(super) fn models() -> [Model<Clip>; 3] {
    [
        model("clip", ClipFamily::Clip),
        model("clip_gelu", ClipFamily::Clip),
        model("siglip", ClipFamily::Siglip),
    ]
}

/// The states of an encoder, and those after each of its layers, are the reference's.
fn assert_encoder(what: &str, name: &str, output: TransformerStackOutput, values: &GoldenFile) {
    let device = output.states.device();
    let expected = values.tensor(&format!("{name}.states"), &device);
    assert_states(what, output.states, expected);
    assert_eq!(output.hidden_states.len(), 2);
    for (layer, states) in (1..).zip(output.hidden_states) {
        let expected = values.tensor(&format!("{name}.states.{layer}"), &device);
        assert_states(&format!("{what}, layer {layer}"), states, expected);
    }
}

#[test]
fn states_vectors_and_logits_are_the_references() {
    for model in models() {
        let values = model.values();
        for (backend, device) in devices::unsampled() {
            let loaded = model.load(&device);
            let (vision, text) = (&loaded.vision, &loaded.text);
            let tokens = Tensor::<2, Int>::from_data(values.data("tokens"), &device);
            let what = |part: &str| format!("{}, {part} on {backend}", model.name);
            let assert_vectors = |name: &str, actual: Tensor<2>| {
                let expected = values.data(name);
                let what = what(name);
                assert_close_to_largest(&what, &actual.into_data(), &expected, TOLERANCE, 0.0);
            };
            for images in ["images", "wide"] {
                let pixels: Tensor<4> = values.tensor(images, &device);
                let output = vision.forward_with_hidden_states(pixels.clone());
                assert_encoder(&what(images), images, output, &values);
                let pooled = vision.pool(vision.forward(pixels.clone()));
                assert_vectors(&format!("{images}.pooled"), pooled);
                let features = vision.features(pixels.clone());
                assert_vectors(&format!("{images}.features"), features);
                let logits = loaded.logits(pixels, tokens.clone());
                assert_vectors(&format!("{images}.logits"), logits);
            }
            let output = text.forward_with_hidden_states(tokens.clone());
            assert_encoder(&what("texts"), "texts", output, &values);
            let pooled = text.pool(text.forward(tokens.clone()), tokens.clone());
            assert_vectors("texts.pooled", pooled);
            assert_vectors("texts.features", text.features(tokens));
        }
    }
}

#[test]
fn they_are_written_back_bit_for_bit() {
    for model in models() {
        model.check_export();
    }
}

#[test]
fn an_encoder_alone_is_that_of_the_whole_model() {
    let device = devices::any();
    for (whole, [vision, text]) in [
        ("clip", ["clip"; 2]),
        ("clip_gelu", ["clip_gelu"; 2]),
        ("clip_gelu", ["clip_vision", "clip_text"]),
        ("siglip", ["siglip"; 2]),
    ] {
        let values = GoldenFile::open(&format!("models/{whole}/values"));
        let tokens = Tensor::<2, Int>::from_data(values.data("tokens"), &device);
        let pixels: Tensor<4> = values.tensor("images", &device);
        let model = clip::from_pretrained(folder(whole), &device).unwrap();
        let of_images = ClipVision::from_pretrained(folder(vision), &device).unwrap();
        let of_texts = ClipText::from_pretrained(folder(text), &device).unwrap();
        let states = model.text.forward(tokens.clone());
        let expected = match vision == whole {
            true => [
                model.vision.features(pixels.clone()),
                model.text.features(tokens.clone()),
            ],
            // The files of one encoder have no projection.
            false => [
                model.vision.pool(model.vision.forward(pixels.clone())),
                model.text.pool(states, tokens.clone()),
            ],
        };
        assert_same(&of_images.features(pixels.clone()), &expected[0]);
        assert_same(&of_texts.features(tokens.clone()), &expected[1]);

        // Written, it has the names of a whole model.
        let written = tempfile::tempdir().expect("a folder");
        let path = written.path().join("model.safetensors");
        let copy_config = |name: &str| {
            let config = folder(name).join("config.json");
            std::fs::copy(config, written.path().join("config.json")).unwrap();
        };
        copy_config(vision);
        save(&ClipVision::table(), &of_images, &path).expect("written");
        let again = ClipVision::from_pretrained(written.path(), &device).unwrap();
        assert_same(&again.features(pixels), &expected[0]);
        copy_config(text);
        let family = if whole == "siglip" {
            ClipFamily::Siglip
        } else {
            ClipFamily::Clip
        };
        save(&ClipText::table(family), &of_texts, &path).expect("written");
        let again = ClipText::from_pretrained(written.path(), &device).unwrap();
        assert_same(&again.features(tokens), &expected[1]);
    }
}

#[test]
fn an_encoder_alone_is_the_references() {
    let open = |name: &str| GoldenFile::open(&format!("models/{name}/values"));
    let [of_images, of_texts] = ["clip_vision", "clip_text"].map(open);
    for (backend, device) in devices::unsampled() {
        let vision = ClipVision::from_pretrained(folder("clip_vision"), &device).unwrap();
        let text = ClipText::from_pretrained(folder("clip_text"), &device).unwrap();
        let pixels: Tensor<4> = of_images.tensor("images", &device);
        let tokens = Tensor::<2, Int>::from_data(of_texts.data("texts"), &device);
        let seen = vision.forward_with_hidden_states(pixels.clone());
        let read = text.forward_with_hidden_states(tokens.clone());
        let pooled = [vision.features(pixels), text.features(tokens)];
        let outputs = [("images", seen, &of_images), ("texts", read, &of_texts)];
        for ((name, output, values), pooled) in outputs.into_iter().zip(pooled) {
            let what = format!("{name} alone on {backend}");
            assert_encoder(&what, name, output, values);
            let expected = values.data(&format!("{name}.pooled"));
            assert_close_to_largest(&what, &pooled.into_data(), &expected, TOLERANCE, 0.0);
        }
    }
}

#[test]
fn configurations_as_they_are_published() {
    let [clip, _, siglip] = models();
    // What version 4 of transformers wrote of each encoder.
    clip.assert_same_model(|config| {
        config.insert("_commit_hash".into(), json!("3d74acf"));
        for part in ["vision_config", "text_config"] {
            let part = config[part].as_object_mut().unwrap();
            for (field, value) in [
                ("dropout", json!(0.0)),
                ("tie_word_embeddings", json!(true)),
                ("cross_attention_hidden_size", Value::Null),
                ("length_penalty", json!(1.0)),
                ("pruned_heads", json!({})),
            ] {
                part.insert(field.into(), value);
            }
        }
    });
    // An older object of the same encoder counts alone.
    clip.assert_same_model(|config| {
        let text = config["text_config"].clone();
        config.insert("text_config_dict".into(), text);
        config["text_config"] = json!({"hidden_size": 999});
    });
    clip.assert_same_model(|config| {
        config.insert("text_config_dict".into(), Value::Null);
    });
    // What a file does not say is as in the base models.
    siglip.assert_same_model(|config| {
        for part in ["vision_config", "text_config"] {
            let part = config[part].as_object_mut().unwrap();
            part.remove("hidden_act");
            part.remove("layer_norm_eps");
            part.remove("projection_size");
            part.remove("eos_token_id");
        }
        config["text_config"]["projection_size"] = json!(6);
    });
    clip.assert_same_model(|config| {
        for part in ["vision_config", "text_config"] {
            let part = config[part].as_object_mut().unwrap();
            part.remove("hidden_act");
            part.remove("layer_norm_eps");
        }
    });
}

#[test]
fn mistakes_have_a_sentence() {
    let device = devices::any();
    let vision = || {
        let encoder = TransformerStackConfig::encoder(12, 17, 3, 1);
        ClipVisionConfig::new()
            .with_image_size(13)
            .with_patch_size(4)
            .with_encoder(encoder.with_block(ClipFamily::Clip.block()))
    };
    let text = || {
        let encoder = TransformerStackConfig::causal(10, 19, 2, 1);
        ClipTextConfig::new(23)
            .with_max_len(7)
            .with_encoder(encoder.with_block(ClipFamily::Clip.block()))
            .with_d_projection(12)
    };
    for (vision, text, expected) in [
        (
            vision().with_image_size(3),
            text(),
            "ClipConfig: image_size 3 is less than patch_size 4",
        ),
        (
            vision().with_encoder(TransformerStackConfig::decoder(12, 17, 3, 1)),
            text(),
            "ClipConfig: d_memory is 12, but an encoder has no memory",
        ),
        (
            vision(),
            text().with_encoder(TransformerStackConfig::causal(10, 19, 3, 1)),
            "ClipConfig: d_model 10 is not divisible by n_heads 3",
        ),
        (
            vision(),
            text().with_d_projection(None),
            "ClipConfig: vectors of images are 12 wide, but those of texts 10",
        ),
    ] {
        let config = ClipConfig::new(ClipFamily::Clip, vision, text);
        assert_eq!(sentence(|| config.init(&device)), expected);
    }
    let siglip = |vision, text| ClipConfig::new(ClipFamily::Siglip, vision, text);
    let stack = TransformerStackConfig::encoder(12, 17, 3, 1);
    let stack = stack.with_block(ClipFamily::Siglip.block());
    let sees = vision().with_encoder(stack.clone());
    let reads = text().with_encoder(stack.clone());
    assert!(siglip(sees.clone(), reads.clone()).validate().is_ok());
    let of_clip = reads
        .clone()
        .with_encoder(stack.clone().with_block(ClipFamily::Clip.block()));
    // Heads of a width of their own do in a layer, but not in the attention that pools.
    let mut odd = stack.clone().with_block(ClipFamily::Siglip.block());
    odd.n_heads = 5;
    odd.block.heads.d_head = Some(2);
    assert!(odd.validate().is_ok());
    for (config, expected) in [
        (
            siglip(sees.clone().with_encoder(odd), reads.clone()),
            "ClipConfig: d_model 12 is not divisible by n_heads 5",
        ),
        (
            siglip(vision(), reads.clone()),
            "ClipConfig: the encoder of images has CLIP's QuickGelu and LayerNorm { epsilon: 1e-5, bias: true, unit_offset: false }, \
             but family is Siglip",
        ),
        (
            siglip(sees.clone(), of_clip),
            "ClipConfig: the encoder of texts has CLIP's QuickGelu and LayerNorm { epsilon: 1e-5, bias: true, unit_offset: false }, \
             but family is Siglip",
        ),
        (
            siglip(
                sees.clone(),
                reads.clone().with_encoder(stack.with_causal(true)),
            ),
            "ClipConfig: the encoder of texts has causal true, but that of family Siglip false",
        ),
        (
            ClipConfig::new(ClipFamily::Clip, sees, reads),
            "ClipConfig: the encoder of texts has causal false, but that of family Clip true",
        ),
    ] {
        assert_eq!(sentence(|| config.init(&device)), expected);
    }
    let model = ClipConfig::new(ClipFamily::Clip, vision(), text()).init(&device);
    let seen = |shape: [usize; 4]| model.vision.features(Tensor::zeros(shape, &device));
    assert_eq!(
        sentence(|| seen([1, 2, 13, 13])),
        "ClipVision: images of 2 channels for a model that sees 3"
    );
    assert_eq!(
        sentence(|| seen([0, 3, 13, 13])),
        "ClipVision: there are no images"
    );
    assert_eq!(
        sentence(|| model.text.features(Tensor::from_data([[1, 23]], &device))),
        "ClipText: token 23 is outside the vocabulary of 23 tokens"
    );
    // A text of no tokens is none; of no texts there are no vectors.
    assert_eq!(
        sentence(|| model.text.features(Tensor::zeros([2, 0], &device))),
        "ClipText: the texts have no tokens"
    );
    let nothing = model.text.features(Tensor::zeros([0, 7], &device));
    assert_eq!(nothing.dims(), [0, 12]);
    let images = model.vision.features(Tensor::ones([2, 3, 13, 13], &device));
    let logits = model.similarities(images.clone(), nothing.clone());
    assert_eq!(logits.dims(), [2, 0]);
    assert_eq!(model.similarities(nothing, images.clone()).dims(), [0, 2]);
    assert_eq!(
        sentence(|| model.similarities(images, Tensor::zeros([3, 10], &device))),
        "Clip: vectors of images are 12 wide, but those of texts 10"
    );
    let [_, _, siglip] = models();
    let error = siglip.changed(|config| {
        config["vision_config"]["vision_use_head"] = json!(false);
    });
    assert_eq!(
        error.expect_err("it is refused"),
        "config.json: vision_use_head is false, but CLIP supports true"
    );
    let error = siglip.changed(|config| {
        config["text_config"]["model_type"] = json!("clip_text_model");
    });
    let error = error.expect_err("it is refused");
    assert!(
        error.ends_with(
            "model_type is \"clip_text_model\", but CLIP supports \"siglip_text_model\""
        ),
        "{error}"
    );
    let error = ClipText::from_pretrained(folder("clip_vision"), &device);
    let error = error.map(drop).expect_err("it is refused").to_string();
    assert!(
        error.ends_with("clip, siglip, clip_text_model, siglip_text_model"),
        "{error}"
    );
}

#[test]
fn a_text_without_an_end_is_its_first_state() {
    let device = devices::any();
    let encoder = TransformerStackConfig::causal(10, 19, 2, 1);
    let config = ClipTextConfig::new(23)
        .with_max_len(7)
        .with_encoder(encoder);
    let text = config.with_end_token(5).with_d_projection(768);
    let config = ClipConfig::new(ClipFamily::Clip, ClipVisionConfig::new(), text);
    let model = config.init(&device).text;
    let tokens = Tensor::<2, Int>::from_data([[1, 7, 3], [1, 5, 5]], &device);
    let states = model.forward(tokens.clone());
    let place = |text, place| {
        let state = states.clone().narrow(0, text, 1).narrow(1, place, 1);
        state.reshape([1, 10])
    };
    let expected = Tensor::cat(vec![place(0, 0), place(1, 1)], 0);
    assert_same(&model.pool(states.clone(), tokens), &expected);
}
