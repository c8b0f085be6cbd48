//! Changed `config.json` files. Each in the older form gives the numbers that both versions of `transformers` give, each in the newer form those of
//! version 5, or one sentence names a field.

use std::{fs, path::Path};

use burn::tensor::{Int, Tensor, TensorData};
use burn_attn_models::{
    bert::{Bert, BertInput},
    deepseek_v2,
    language_model::LanguageModel,
    pretrained::PretrainedError,
    qwen3_next, t5,
};
use burn_attn_tests::{compare::difference_to_largest, devices};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{TOLERANCE, folder, read_json};

const TOKENS: [i32; 11] = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5];

type Fields = Map<String, Value>;

/// What `make_changed_configs.py` writes.
#[derive(Deserialize)]
struct Table {
    /// The configurations of the models in the form from before version 5.
    older: Map<String, Value>,
    rows: Vec<Row>,
}

#[derive(Deserialize)]
struct Row {
    model: String,
    older: bool,
    set: Fields,
    removed: Vec<String>,
    /// Whether it has to be computed here if `transformers` computes it.
    here: bool,
    v4: Computed,
    v5: Computed,
}

/// The first numbers of the last token, or why there are none.
#[derive(Deserialize)]
#[serde(untagged)]
enum Computed {
    Numbers(Vec<f64>),
    Nothing(String),
}

impl Row {
    /// What both versions compute. Version 4 ignores the newer form.
    fn expected(&self) -> Option<&[f64]> {
        match (&self.v4, &self.v5) {
            (_, Computed::Numbers(numbers)) if !self.older => Some(numbers),
            (Computed::Numbers(a), Computed::Numbers(b)) => {
                (difference_to_largest(a, b) < TOLERANCE).then_some(b)
            }
            (Computed::Nothing(reason), _) | (_, Computed::Nothing(reason)) => {
                assert!(reason.starts_with("refused: ") || reason.starts_with("weights: "));
                None
            }
        }
    }

    fn config(&self, table: &Table) -> Fields {
        let base = match self.older {
            true => table.older[&self.model].clone(),
            false => read_json(&folder(&self.model).join("config.json")),
        };
        let Value::Object(mut config) = base else {
            panic!("{} is not an object", self.model);
        };
        config.extend(self.set.clone());
        config.retain(|field, _| !self.removed.contains(field));
        config
    }

    /// Names of the changed fields, and of those inside them.
    fn names(&self) -> Vec<&str> {
        let inside = self.set.values().filter_map(Value::as_object);
        let inside = inside.flat_map(Map::keys);
        let names = self.set.keys().chain(&self.removed).chain(inside);
        names.map(String::as_str).collect()
    }
}

fn computed(kind: &str, folder: &Path) -> Result<TensorData, PretrainedError> {
    let device = devices::any();
    let tokens = Tensor::<1, Int>::from_data(TOKENS, &device).unsqueeze::<2>();
    let numbers = match kind {
        "bert" | "albert" => {
            Bert::from_pretrained(folder, &device)?.forward(BertInput::new(tokens))
        }
        "t5" => {
            let target = tokens.clone().flip([1]);
            t5::from_pretrained(folder, &device)?.forward(tokens, &[TOKENS.len()], target)
        }
        "deepseek_v2" => deepseek_v2::from_pretrained(folder, &device)?.forward(tokens),
        "qwen3_next" => qwen3_next::from_pretrained(folder, &device)?.forward(tokens),
        _ => LanguageModel::from_pretrained(folder, &device)?.forward(tokens),
    };
    Ok(numbers.narrow(1, TOKENS.len() - 1, 1).into_data())
}

/// What is wrong with a row.
fn check(row: &Row, table: &Table) -> Result<(), String> {
    let copy = tempfile::tempdir().expect("a folder");
    let weights = "model.safetensors";
    fs::copy(folder(&row.model).join(weights), copy.path().join(weights)).expect("copied");
    let config = row.config(table);
    let kind = config["model_type"].as_str().expect("a text").to_owned();
    let path = copy.path().join("config.json");
    fs::write(&path, Value::Object(config).to_string()).expect("written");
    match (row.expected(), computed(&kind, copy.path())) {
        (Some(expected), Ok(numbers)) if row.here => {
            let numbers: Vec<f64> = numbers.iter().take(expected.len()).collect();
            let difference = difference_to_largest(&numbers, expected);
            match difference < TOLERANCE {
                true => Ok(()),
                false => Err(format!(
                    "{numbers:?} instead of {expected:?}: {difference:e}"
                )),
            }
        }
        (Some(_), Err(error)) if row.here => Err(error.to_string()),
        (expected, Ok(_)) => Err(format!("it is not refused; transformers: {expected:?}")),
        (_, Err(error)) => {
            let sentence = error.to_string().replace(&path.display().to_string(), "");
            // Or what is missing, or has another name in our configuration.
            let is_named = row.names().iter().any(|name| sentence.contains(name))
                || match error {
                    PretrainedError::Missing { .. } | PretrainedError::Config { .. } => true,
                    _ => sentence.contains(": the weights do not fit the model: "),
                };
            match is_named {
                true => Ok(()),
                false => Err(format!("no field is named: {sentence}")),
            }
        }
    }
}

fn table() -> Table {
    let table = read_json(&folder("changed_configs.json"));
    serde_json::from_value(table).expect("rows")
}

/// The newer rows of YaRN in the form of published files: `type` in place of `rope_type`, and the base outside. The older rows alone would not show
/// whether `beta_fast` and `beta_slow` are read: with their base of 500, other limits scale the three frequencies of the small Llama alike.
#[test]
fn yarn_in_the_older_form_is_that_of_the_newer() {
    let table = table();
    let mut different: Vec<Vec<f64>> = Vec::new();
    for row in table.rows.iter().filter(|row| row.model == "llama") {
        let Some(Value::Object(parameters)) = row.set.get("rope_parameters") else {
            continue;
        };
        if parameters.get("rope_type") != Some(&json!("yarn")) {
            continue;
        }
        let mut scaling = parameters.clone();
        let base = scaling.remove("rope_theta").expect("a base");
        scaling.remove("rope_type");
        scaling.insert("type".into(), json!("yarn"));
        let Computed::Numbers(expected) = &row.v5 else {
            panic!("version 5 computes {parameters:?}");
        };
        let older = Row {
            model: row.model.clone(),
            older: true,
            set: Fields::from_iter([
                ("rope_theta".into(), base),
                ("rope_scaling".into(), scaling.into()),
            ]),
            removed: Vec::new(),
            here: true,
            v4: Computed::Numbers(expected.clone()),
            v5: Computed::Numbers(expected.clone()),
        };
        check(&older, &table).unwrap_or_else(|wrong| panic!("{:?}: {wrong}", older.set));
        if !different.contains(expected) {
            different.push(expected.clone());
        }
    }
    // Alone, with an attention factor, with other limits, and with two magnitudes.
    assert_eq!(different.len(), 4);
}

#[test]
fn both_versions_of_transformers_or_one_sentence() {
    let table = table();
    let rows = table.rows.iter();
    let wrong: Vec<String> = rows
        .filter_map(|row| {
            let wrong = check(row, &table).err()?;
            let (set, removed) = (Value::Object(row.set.clone()), &row.removed);
            let form = if row.older { "older" } else { "newer" };
            Some(format!(
                "{} ({form}) {set} without {removed:?}: {wrong}",
                row.model
            ))
        })
        .collect();
    let of = table.rows.len();
    assert!(
        of >= 200 && wrong.is_empty(),
        "{} of {of}:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}
