//! A model in one file: a line of JSON with its configuration, then its record.

use burn::{
    module::Module,
    store::ModuleRecord,
    tensor::{Bytes, Device},
};
use burn_attn_models::{
    seq2seq::{Seq2Seq, Seq2SeqConfig},
    weights::in_f32,
};

/// A translator and its configuration.
#[derive(Debug)]
pub struct ModelFile {
    /// The configuration.
    pub config: Seq2SeqConfig,
    /// The translator, in f32.
    pub model: Seq2Seq,
}

impl ModelFile {
    /// Reads a file. Errors are sentences about what is wrong with it.
    pub fn from_bytes(bytes: &[u8], device: &Device) -> Result<Self, String> {
        let end = bytes.iter().position(|&byte| byte == b'\n');
        let (header, record) = bytes.split_at(end.ok_or("the file of the model has no header")?);
        let config: Seq2SeqConfig = serde_json::from_slice(header).map_err(|error| {
            format!("the header of the model is not its configuration: {error}")
        })?;
        config.validate().map_err(|error| error.to_string())?;
        let record = ModuleRecord::from_bytes(Bytes::from_bytes_vec(record[1..].to_vec()));
        let record = record.map_err(|error| format!("the model has no record: {error}"))?;
        let model = config.init(device).try_load_record(record);
        let model = model.map_err(|error| format!("the record is of another model: {error}"))?;
        Ok(Self {
            config,
            model: in_f32(model, device),
        })
    }

    /// Writes a file, with the numbers in the types that `model` has.
    pub fn to_bytes(config: &Seq2SeqConfig, model: Seq2Seq) -> Result<Vec<u8>, String> {
        let mut bytes = serde_json::to_vec(config).map_err(|error| error.to_string())?;
        bytes.push(b'\n');
        let record = model.into_record().into_bytes();
        bytes.extend_from_slice(&record.map_err(|error| error.to_string())?);
        Ok(bytes)
    }
}
