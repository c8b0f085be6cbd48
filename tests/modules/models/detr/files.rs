//! What is read from files, written and refused.

use std::fs;

use burn::tensor::{DType, FloatDType};
use burn_attn_models::{
    detr,
    pretrained::LoadOptions,
    resnet::{ResNetConfig, ResNetNames},
    weights::save,
};
use burn_attn_tests::{
    compare::{assert_close_to_largest, assert_same},
    devices,
};
use serde_json::json;

use super::{formula, mask, model, small};
use crate::{
    models::{folder, read_json},
    weights::{Contents, contents},
};

#[test]
fn it_is_written_back_bit_for_bit() {
    model("detr").check_export();
    model("detr_basic").check_export();
}

#[test]
fn names_of_timm_are_those_of_the_same_tensors() {
    let config = ResNetConfig::new()
        .with_d_stem(2)
        .with_widths([4, 8, 8, 12]);
    let model = config.with_depths([2, 1, 1, 1]).init(&devices::any());
    let written = tempfile::tempdir().expect("a folder");
    let [timm, transformers] = [ResNetNames::Timm, ResNetNames::Transformers].map(|names| {
        let path = written.path().join(format!("{names:?}.safetensors"));
        save(&names.table(), &model, &path).expect("written");
        contents(&path)
    });
    assert_eq!(timm.len(), transformers.len());
    let layer = |stage, layer| format!("encoder.stages.{stage}.layers.{layer}");
    for (name, same) in [
        (
            "conv1.weight",
            "embedder.embedder.convolution.weight".into(),
        ),
        (
            "bn1.running_var",
            "embedder.embedder.normalization.running_var".into(),
        ),
        (
            "layer1.1.conv3.weight",
            layer(0, 1) + ".layer.2.convolution.weight",
        ),
        (
            "layer1.0.bn2.running_mean",
            layer(0, 0) + ".layer.1.normalization.running_mean",
        ),
        (
            "layer2.0.downsample.0.weight",
            layer(1, 0) + ".shortcut.convolution.weight",
        ),
        (
            "layer4.0.downsample.1.weight",
            layer(3, 0) + ".shortcut.normalization.weight",
        ),
        (
            "layer4.0.conv1.weight",
            layer(3, 0) + ".layer.0.convolution.weight",
        ),
    ] {
        assert!(timm[name] == transformers[&same], "{name}");
    }
}

#[test]
fn backbones_are_read_by_their_name() {
    let device = devices::any();
    // No golden file holds a ResNet-18, whose weights here are random.
    let config = small().with_backbone(ResNetConfig::basic([2, 2, 2, 2]));
    let original = config.with_d_features(512).init(&device);
    let written = tempfile::tempdir().expect("a folder");
    let path = written.path().join("model.safetensors");
    save(&detr::table(ResNetNames::Timm), &original, &path).expect("written");
    let of_detr = read_json(&folder("detr").join("config.json"));
    let nested = json!({"model_type": "timm_backbone", "backbone": "resnet18", "out_indices": [1, 2, 3, 4], "features_only": true});
    let options = json!({"in_chans": 3, "out_indices": [1, 2, 3, 4]});
    for fields in [
        json!({"backbone": "resnet18", "backbone_config": null, "backbone_kwargs": options, "use_timm_backbone": true}),
        json!({"backbone_config": nested, "use_timm_backbone": true}),
    ] {
        let mut config = of_detr.clone();
        for (field, value) in [
            ("encoder_layers", 1),
            ("num_queries", 3),
            ("encoder_ffn_dim", 5),
            ("decoder_ffn_dim", 5),
        ] {
            config[field] = value.into();
        }
        for (field, value) in fields.as_object().expect("an object") {
            config[field] = value.clone();
        }
        fs::write(written.path().join("config.json"), config.to_string()).expect("written");
        let loaded = detr::from_pretrained(written.path(), &device);
        let loaded = loaded.unwrap_or_else(|error| panic!("{error}"));
        let [actual, expected] = [loaded, original.clone()].map(|model| {
            let layer = &model.backbone.expect("a backbone").stages[1][0];
            layer
                .shortcut
                .clone()
                .expect("it halves")
                .convolution
                .weight
        });
        assert_same(&actual.val(), &expected.val());
    }
}

#[test]
fn half_precision_holds_the_whole_model() {
    let device = devices::any();
    let options = LoadOptions::new(&device).dtype(FloatDType::BF16);
    let loaded = detr::from_pretrained(folder("detr"), options).unwrap();
    let (values, images) = (model("detr").values(), formula([2, 3, 29, 43], &device));
    let output = loaded.forward(images, mask(&values, &device));
    assert_eq!(output.boxes.dtype(), DType::BF16);
    let boxes = output.boxes.cast(DType::F32).into_data();
    assert_close_to_largest("bf16", &boxes, &values.data("boxes"), 0.1, 0.0);
}

#[test]
fn what_differs_is_refused() {
    model("detr").assert_unsupported(
        "DETR",
        [
            ("auxiliary_loss", json!(true), "false"),
            ("dilation", json!(true), "false"),
            ("position_embedding_type", json!("learned"), "\"sine\""),
            (
                "decoder_attention_heads",
                json!(4),
                "2, as encoder_attention_heads",
            ),
        ],
    );
    for (field, value, supported) in [
        ("model_type", json!("swin"), "resnet, timm_backbone"),
        ("hidden_act", json!("gelu"), "\"relu\""),
        (
            "out_features",
            json!(["stage1"]),
            "a list with \"stage2\", the last of its depths",
        ),
        (
            "out_indices",
            json!([1]),
            "a list with 2, the last of its depths",
        ),
        ("depths", json!([900, 900]), "at most 1000 layers"),
    ] {
        let expected = format!("config.json: {field} is {value}, but DETR supports {supported}");
        let error = model("detr").changed(|config| config["backbone_config"][field] = value);
        assert_eq!(error.expect_err("it is refused"), expected);
    }
    let unknown = |tensors: &mut Contents| {
        let found = tensors["model.input_projection.bias"].clone();
        tensors.insert("mask_head.conv1.conv.bias".into(), found);
    };
    assert!(model("detr").with(|_| {}, unknown).is_err());
    // How many batches made the statistics does not matter.
    let counted = |tensors: &mut Contents| {
        let count = ("I64".into(), vec![], vec![0; 8]);
        let name =
            "model.backbone.conv_encoder.model.embedder.embedder.normalization.num_batches_tracked";
        tensors.insert(name.into(), count);
    };
    model("detr").assert_same_weights(counted);
}
