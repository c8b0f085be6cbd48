//! burn-nn's attention modules, from memory, records and files.

use burn::{
    module::Module,
    nn::attention::{
        CrossAttention as BurnNnCross, CrossAttentionConfig as BurnNnCrossConfig, MhaInput,
        MultiHeadAttention as BurnNnAttention, MultiHeadAttentionConfig as BurnNnConfig,
    },
    tensor::{Device, Tensor},
};
use burn_attn::{
    AttentionMask, CrossAttentionConfig, CrossAttentionInput, MultiHeadAttention,
    MultiHeadAttentionConfig, MultiHeadAttentionInput, SelfAttentionConfig, SelfAttentionInput,
};
use burn_attn_models::{
    import::{self, Checkpoint},
    weights::WeightsError,
};
use burn_attn_tests::{
    compare::assert_close,
    devices,
    numbers::{filled, tensor},
};
use burn_store::{ModuleSnapshot, SafetensorsStore};

use super::{TOLERANCE, loaded};

/// One module in a record, a burnpack and a safetensors file.
fn in_every_form<M: Module>(module: &M) -> Vec<Checkpoint> {
    let folder = tempfile::tempdir().expect("a folder to write to");
    let [burnpack, safetensors] =
        ["weights.bpk", "weights.safetensors"].map(|name| folder.path().join(name));
    module.clone().save_file(&burnpack).expect("saved");
    module
        .save_into(&mut SafetensorsStore::from_file(&safetensors))
        .expect("saved");
    vec![
        import::burn_nn_record(module.clone().into_record()).expect("a record"),
        import::burn_nn(&burnpack).expect("a burnpack"),
        import::burn_nn(&safetensors).expect("a safetensors file"),
    ]
}

fn on_every_device(check: impl Fn(&Device)) {
    for (name, device) in devices::cpu() {
        println!("on {name}");
        check(&device);
        check(&device.autodiff());
    }
}

fn theirs(device: &Device) -> BurnNnAttention {
    let config = BurnNnConfig::new(15, 3).with_dropout(0.0);
    filled(config.init(device), 1)
}

#[track_caller]
fn assert_equal(ours: Tensor<3>, theirs: Tensor<3>) {
    assert_close("ours", &ours.to_data(), &theirs.to_data(), TOLERANCE);
}

#[test]
fn multi_head_attention() {
    on_every_device(|device| {
        let [x, memory] = [tensor([2, 5, 15], 3, device), tensor([2, 7, 15], 4, device)];
        let theirs = theirs(device);
        let input = MhaInput::new(x.clone(), memory.clone(), memory.clone());
        let expected = theirs.forward(input).context;
        let input = || MultiHeadAttentionInput::cross_attention(x.clone(), memory.clone());

        for mut weights in in_every_form(&theirs) {
            let config = MultiHeadAttentionConfig::new(15, 3).with_dropout(0.0);
            let ours = loaded(&mut weights, "", config.init(device));
            assert_equal(ours.forward(input()), expected.clone());

            let config = CrossAttentionConfig::new(15, 3).with_dropout(0.0);
            let ours = loaded(&mut weights, "", config.init(device));
            let memory = CrossAttentionInput::new(x.clone(), memory.clone());
            assert_equal(ours.forward(memory), expected.clone());
            weights.finish().expect("everything is taken");
        }
        let ours = import::multi_head_attention(theirs).expect("possible");
        assert_equal(ours.forward(input()), expected);
    });
}

#[test]
fn self_attention_with_a_mask() {
    on_every_device(|device| {
        let x = tensor([2, 7, 15], 3, device);
        let theirs = theirs(device);
        let lengths = || Tensor::from_data([7, 5], device);
        let hidden = Tensor::from_data(
            [[false; 7], [false, false, false, false, false, true, true]],
            device,
        );
        let expected = theirs.forward(MhaInput::self_attn(x.clone()).mask_pad(hidden));
        let input = SelfAttentionInput::new(x).mask(AttentionMask::key_lengths(lengths()));

        for mut weights in in_every_form(&theirs) {
            let config = SelfAttentionConfig::new(15, 3).with_dropout(0.0);
            let ours = loaded(&mut weights, "", config.init(device));
            assert_equal(ours.forward(input.clone()), expected.context.clone());
        }
        let ours = import::multi_head_attention(theirs).expect("possible");
        let ours = ours.into_self_attention();
        assert_equal(ours.forward(input), expected.context);
    });
}

#[test]
fn quiet_softmax_is_a_sink_at_zero() {
    on_every_device(|device| {
        let x = tensor([2, 7, 15], 3, device);
        let config = BurnNnConfig::new(15, 3).with_dropout(0.0);
        let theirs = filled(config.with_quiet_softmax(true).init(device), 1);
        let expected = theirs.forward(MhaInput::self_attn(x.clone())).context;
        let input = || MultiHeadAttentionInput::self_attention(x.clone());

        for weights in in_every_form(&theirs) {
            let mut weights = weights.sinks_at_zero(true);
            let config = MultiHeadAttentionConfig::new(15, 3).with_dropout(0.0);
            let ours = config.with_sinks(true).init(device);
            // Whatever the sinks were before.
            for mut ours in [ours.clone(), filled(ours, 7)] {
                let id = ours.heads.sinks.as_ref().expect("sinks").id;
                weights.load("", &mut ours).expect("loaded");
                assert_equal(ours.forward(input()), expected.clone());
                assert_eq!(ours.heads.sinks.as_ref().expect("sinks").id, id);
            }

            let config = SelfAttentionConfig::new(15, 3).with_dropout(0.0);
            let ours = loaded(
                &mut weights,
                "",
                filled(config.with_sinks(true).init(device), 7),
            );
            let of_itself = SelfAttentionInput::new(x.clone());
            assert_equal(ours.forward(of_itself), expected.clone());

            let config = CrossAttentionConfig::new(15, 3).with_dropout(0.0);
            let ours = loaded(
                &mut weights,
                "",
                filled(config.with_sinks(true).init(device), 7),
            );
            let of_itself = CrossAttentionInput::new(x.clone(), x.clone());
            assert_equal(ours.forward(of_itself), expected.clone());
        }

        let ours = import::multi_head_attention(theirs).expect("possible");
        let sinks = ours.heads.sinks.as_ref().expect("sinks").val();
        assert!(!sinks.is_require_grad());
        assert_equal(ours.forward(input()), expected);
    });
}

#[test]
fn a_record_does_not_say_whether_there_are_sinks() {
    let device = devices::any();
    let weights = || import::burn_nn_record(theirs(&device).into_record()).expect("a record");
    let config = MultiHeadAttentionConfig::new(15, 3);
    let with_sinks = config.clone().with_sinks(true).init(&device);
    for with_sinks in [with_sinks.clone(), filled(with_sinks, 7)] {
        let mut ours = with_sinks.clone();
        let error = weights().load("", &mut ours).unwrap_err();
        assert_eq!(
            error.to_string(),
            "heads: the module has sinks, which the source has only if it was made with burn-nn's quiet_softmax or PyTorch's \
             add_zero_attn; say that it was with Checkpoint::sinks_at_zero(true), or load into a module without sinks"
        );
        let numbers = |module: &MultiHeadAttention| module.key.weight.val().to_data();
        assert_eq!(numbers(&ours), numbers(&with_sinks));
    }
    let mut without = config.init(&device);
    let weights = weights().sinks_at_zero(true);
    let error = { weights }.load("", &mut without).unwrap_err();
    assert_eq!(
        error.to_string(),
        "heads: the source has sinks at 0 (Checkpoint::sinks_at_zero), but the module has no sinks; build it with_sinks(true)"
    );
}

#[test]
fn biases_one_by_one() {
    on_every_device(|device| {
        let x = tensor([2, 7, 15], 3, device);
        let config = BurnNnConfig::new(15, 3)
            .with_dropout(0.0)
            .with_key_bias(false)
            .with_output_bias(false);
        let theirs = filled(config.init(device), 1);
        let expected = theirs.forward(MhaInput::self_attn(x.clone())).context;
        let ours = import::multi_head_attention(theirs).expect("possible");
        assert!(ours.key.bias.is_none() && ours.query.bias.is_some());
        let input = MultiHeadAttentionInput::self_attention(x);
        assert_equal(ours.forward(input), expected);
    });
}

#[test]
fn cross_attention_with_grouped_heads() {
    on_every_device(|device| {
        let [x, memory] = [tensor([2, 5, 15], 3, device), tensor([2, 7, 11], 4, device)];
        let config = BurnNnCrossConfig::new(15, 11, 6, 2, 5).with_dropout(0.0);
        let theirs: BurnNnCross = filled(config.init(device), 1);
        let hidden = Tensor::from_data(
            [[false; 7], [false, false, false, false, false, true, true]],
            device,
        );
        let expected = theirs.forward(x.clone(), memory.clone(), Some(hidden));
        let lengths = AttentionMask::key_lengths(Tensor::from_data([7, 5], device));

        for mut weights in in_every_form(&theirs) {
            let config = CrossAttentionConfig::new(15, 6)
                .with_d_memory(11)
                .with_n_kv_heads(2)
                .with_d_head(5)
                .with_dropout(0.0);
            let ours = loaded(&mut weights, "", config.init(device));
            let input = CrossAttentionInput::new(x.clone(), memory.clone());
            assert_equal(ours.forward(input.mask(lengths.clone())), expected.clone());
            weights.finish().expect("everything is taken");
        }
    });
}

#[test]
fn a_model_of_several() {
    #[derive(Module, Debug)]
    struct Model {
        encoder: BurnNnAttention,
        decoder: BurnNnAttention,
    }

    let device = devices::any();
    let attention = BurnNnConfig::new(15, 3).init(&device);
    let model = Model {
        encoder: attention.clone(),
        decoder: attention,
    };
    let model = filled(model, 1);
    let mut weights = import::burn_nn_record(model.clone().into_record()).expect("a record");
    let ours = loaded(
        &mut weights,
        "decoder",
        MultiHeadAttentionConfig::new(15, 3).init(&device),
    );
    let numbers = |module: &MultiHeadAttention| module.key.weight.val().to_data();
    assert_eq!(numbers(&ours), model.decoder.key.weight.val().to_data());
    assert_eq!(
        weights.finish().unwrap_err().to_string(),
        "the weights do not fit the model: unexpected: encoder.key.bias, encoder.key.weight, encoder.output.bias, \
         encoder.output.weight, encoder.query.bias, … (8 in all, all in encoder)"
    );
}

#[test]
fn what_burn_nn_accepts_and_cannot_run() {
    let theirs = BurnNnConfig::new(15, 4).init(&devices::any());
    let error = import::multi_head_attention(theirs).unwrap_err();
    assert_eq!(
        error.to_string(),
        "MultiHeadAttentionConfig: d_model 15 is not divisible by n_heads 4"
    );
}

#[test]
fn parameters_that_burn_nn_has_not() {
    let device = devices::any();
    let mut weights = import::burn_nn_record(theirs(&device).into_record()).expect("a record");
    let config = MultiHeadAttentionConfig::new(15, 3);
    let config = config.with_qk_norm(burn_attn::QkNormConfig::rms());
    let error = weights.load("", &mut config.init(&device)).unwrap_err();
    assert!(matches!(error, WeightsError::Unsupported { .. }));
    assert_eq!(
        error.to_string(),
        "heads: the module's heads have 10 parameters (QK norm or positions) that the source cannot have; \
         load into a module without them"
    );
}
