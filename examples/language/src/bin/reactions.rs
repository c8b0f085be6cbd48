//! Says which atom of a product was which atom of the reactants, by one attention head of rxnmapper's ALBERT.

use std::{
    collections::HashMap,
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

use burn::tensor::Device;
use burn_attn_models::{
    bert::{Bert, BertInput},
    pretrained,
    tokens::padded,
};
use burn_attn_viz::AttentionMap;
use clap::Parser;
use example_common::{
    devices::{self, DeviceArg},
    exit,
    files::FileError,
    pictures::{Choice, Pictures, maps},
};
use language::{
    Error, atom_map::AtomMap, error::about, input, smiles::Reaction, weights::RXNMAPPER,
};

/// Numbers the atoms of reactions in SMILES: the same number before and after the arrow is the same atom.
#[derive(Parser)]
#[command(name = "reactions", version)]
struct Cli {
    /// Reactions such as "CC(=O)Cl.OCC>>CC(=O)OCC" [default: each line of standard input]
    reactions: Vec<String>,
    /// The layer and head to ask, both counted from 1
    #[arg(long, value_name = "LAYER:HEAD", default_value = "11:6", value_parser = layer_and_head)]
    head: [usize; 2],
    /// The model: a folder that transformers saved, with vocab.txt [default: rxnmapper's, fetched by cargo xtask fetch rxnmapper]
    #[arg(long, value_name = "FOLDER")]
    model: Option<PathBuf>,
    /// Where to compute: flex, wgpu, cuda:1, ... [default: BURN_DEVICE, or the fastest one built in]
    #[arg(long, value_name = "DEVICE")]
    device: Option<DeviceArg>,
    /// Pictures of the first reaction on the command line that is read.
    #[command(
        flatten,
        next_help_heading = "Pictures of the first reaction on the command line that is read"
    )]
    pictures: Pictures,
}

fn layer_and_head(text: &str) -> Result<[usize; 2], String> {
    let choice = text.parse::<Choice>().ok();
    choice
        .and_then(|choice| choice.layer_and_head())
        .ok_or_else(|| "a layer and a head are two numbers from 1 on, as in 6:12".into())
}

/// The model and its tokens.
struct Mapper {
    bert: Bert,
    vocabulary: HashMap<String, u32>,
    device: Device,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    exit::run(|| run(&cli))
}

fn run(cli: &Cli) -> Result<u8, Error> {
    cli.pictures.probe_for(&cli.reactions, "reaction", None)?;
    let source = RXNMAPPER.or(cli.model.as_deref())?;
    let device = devices::choose(cli.device)?.device;
    let mapper = Mapper::load(&source, device, cli.head)?;
    let mut first = None;
    let code = input::each(&cli.reactions, |text| {
        let reaction = Reaction::parse(text)?;
        let layers = mapper.attention(&reaction)?;
        let [layer, head] = cli.head;
        let map = AtomMap::of(&reaction, &layers[layer - 1], head - 1);
        let confidence = map.confidence.map(|number| format!("{number:.6}"));
        let confidence = confidence.as_deref().unwrap_or("-");
        let line = format!("{}\t{confidence}\n", map.written(&reaction));
        cli.pictures.print(&line);
        let alone = map.origins.iter().filter(|origin| origin.is_none());
        let (alone, all) = (alone.count(), map.origins.len());
        if alone > 0 {
            let problem = format!("{alone} of {all} atoms of the products have no partner");
            exit::warn(&about(text, &problem).to_string());
        }
        first.get_or_insert((text.to_string(), layers));
        Ok(())
    })?;
    if let (true, Some((reaction, layers))) = (cli.pictures.are_wanted(), first) {
        let title = "What the atoms look at";
        cli.pictures.draw_encoder(title, &reaction, layers)?;
    }
    Ok(code)
}

impl Mapper {
    fn load(source: &Path, device: Device, [layer, head]: [usize; 2]) -> Result<Self, Error> {
        let bert = Bert::from_pretrained(source, &device)?;
        let path = pretrained::folder(source)?.join("vocab.txt");
        let text = fs::read_to_string(&path).map_err(FileError::of("read", &path))?;
        let vocabulary: HashMap<String, u32> = text.lines().map(String::from).zip(0..).collect();
        let [vocab_size, _] = bert.tokens.weight.dims();
        let path = path.display();
        let special = ["[CLS]", "[SEP]", "[UNK]"];
        if let Some(missing) = special
            .iter()
            .find(|token| !vocabulary.contains_key(**token))
        {
            return Err(format!("{path} has no token {missing}").into());
        }
        if (vocabulary.values()).any(|&token| token as usize >= vocab_size) {
            let lines = vocabulary.len();
            return Err(
                format!("{path} has {lines} tokens, but the model knows {vocab_size}").into(),
            );
        }
        let mapper = Self {
            bert,
            vocabulary,
            device,
        };
        // One token, to see how many layers and heads there are.
        let layers = mapper.layers(&["[CLS]".into()])?;
        let (layers, heads) = (layers.len(), layers.first().map_or(0, AttentionMap::heads));
        if layer > layers || head > heads {
            return Err(format!(
                "--head {layer}:{head}: the model has {layers} layers of {heads} heads"
            )
            .into());
        }
        Ok(mapper)
    }

    /// The attention of every layer and head while the model reads a reaction.
    fn attention(&self, reaction: &Reaction) -> Result<Vec<AttentionMap>, Error> {
        let ends = ["[CLS]", "[SEP]"].map(String::from);
        let tokens = [&ends[..1], &reaction.tokens, &ends[1..]].concat();
        let (len, most) = (tokens.len(), self.bert.max_len());
        if len > most {
            let problem =
                format!("this reaction has {len} tokens, but the model reads at most {most}");
            return Err(about(&reaction.tokens.concat(), &problem));
        }
        let mut unknown = reaction.tokens.iter();
        if let Some(token) = unknown.find(|token| !self.vocabulary.contains_key(*token)) {
            exit::warn(&format!(
                "the model does not know {token:?}, and reads it as an unknown token"
            ));
        }
        self.layers(&tokens)
    }

    fn layers(&self, tokens: &[String]) -> Result<Vec<AttentionMap>, Error> {
        let unknown = self.vocabulary["[UNK]"];
        let ids = tokens
            .iter()
            .map(|token| self.vocabulary.get(token).copied());
        let ids: Vec<u32> = ids.map(|id| id.unwrap_or(unknown)).collect();
        let (ids, _) = padded(&[ids], &self.device);
        let output = self.bert.forward_with_weights(BertInput::new(ids));
        maps(output.self_weights, tokens, tokens)
    }
}
