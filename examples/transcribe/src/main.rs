//! The program; the library has what it does.

use std::{
    fs::File,
    io::{self, BufReader, IsTerminal, Read},
    path::{Path, PathBuf},
    process::ExitCode,
    time::{Duration, Instant},
};

use burn_attn_models::speech::{LogMel, SpeechError, SpeechRecognizer};
use burn_attn_viz::{AttentionGroup, AttentionPage};
use clap::Parser;
use example_common::{
    devices::{self, DeviceArg},
    error::Error,
    exit,
    files::FileError,
    pictures::Pictures,
    text::{printable, printable_lines},
};
use transcribe::{pictures, recording::Recording};

/// Whisper tiny.en, 38 M parameters (MIT).
const MODEL: &str = "target/weights/whisper";
/// Windows that are drawn: half an hour with Whisper's, about as much as a page draws.
const MOST_WINDOWS: usize = 60;

/// Writes down what is said in a recording.
#[derive(Parser)]
#[command(name = "transcribe", version)]
struct Cli {
    /// The recording, in WAV [default: standard input]
    file: Option<PathBuf>,
    /// Print each word on a line of its own, after the time at which it begins (seconds)
    #[arg(long)]
    words: bool,
    /// Say on standard error how long recognition took, without loading the model and without the times of words
    #[arg(long)]
    time: bool,
    /// The language, as in `en` or `English`, for models that know several [default: detected in each window]
    #[arg(long, value_name = "CODE")]
    language: Option<String>,
    /// The model: a folder that transformers saved, with tokenizer.json [default: Whisper tiny.en, fetched by cargo xtask fetch whisper]
    #[arg(long, value_name = "FOLDER")]
    model: Option<PathBuf>,
    /// Where to compute: flex, wgpu, cuda:1, ... [default: BURN_DEVICE, or the fastest one built in]
    #[arg(long, value_name = "DEVICE")]
    device: Option<DeviceArg>,
    /// Pictures of what each step listened to.
    #[command(
        flatten,
        next_help_heading = "Pictures of what each step listened to (a layer is a window of the first half hour)"
    )]
    pictures: Pictures,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    exit::run(|| run(&cli).map(|()| 0))
}

fn run(cli: &Cli) -> Result<(), Error> {
    cli.pictures.probe_beside(cli.file.as_ref())?;
    let model = cli.model.as_deref().unwrap_or(Path::new(MODEL));
    if cli.model.is_none() && !model.exists() {
        return Err(format!(
            "{MODEL} is not there: in the folder of the repository, `cargo xtask fetch whisper` fetches it; or name another model with --model"
        )
        .into());
    }
    let (name, input): (_, Box<dyn Read>) = match &cli.file {
        Some(path) => {
            let file = File::open(path).map_err(FileError::of("read", path))?;
            (path.display().to_string(), Box::new(BufReader::new(file)))
        }
        None if io::stdin().is_terminal() => {
            return Err("there is no recording: name a file, or pipe one in".into());
        }
        None => ("standard input".into(), Box::new(io::stdin().lock())),
    };
    let device = devices::choose(cli.device)?.device;
    let mut recognizer = SpeechRecognizer::from_pretrained(model, &device)?;
    if let Some(language) = &cli.language {
        recognizer = recognizer.with_language(language)?;
    }
    let of_file = |error: Error| Error::from(format!("{name}: {error}"));
    let mut recording = Recording::new(input, recognizer.window()).map_err(of_file)?;
    let (mut maps, mut texts) = (Vec::new(), Vec::new());
    let (mut start, mut took, mut windows) = (0.0, Duration::ZERO, 0);
    while let Some(samples) = recording.next_window().map_err(of_file)? {
        let began = Instant::now();
        let transcript = recognizer.recognize(&samples);
        let transcript = transcript.map_err(|error| of_file(error.into()))?;
        took += began.elapsed();
        if !cli.words && !transcript.text.is_empty() {
            let text = printable_lines(&transcript.text);
            cli.pictures.print(&format!("{text}\n"));
        }
        if cli.words || cli.pictures.are_wanted() {
            match recognizer.align(&transcript) {
                Ok(alignment) => {
                    if cli.words {
                        for word in &alignment.words {
                            let (time, text) =
                                (start + word.start, printable(&word.text, usize::MAX));
                            cli.pictures.print(&format!("{time:.2}\t{text}\n"));
                        }
                    }
                    if cli.pictures.are_wanted() && windows < MOST_WINDOWS {
                        maps.push(pictures::map(&recognizer, &transcript, alignment, start)?);
                    }
                }
                Err(SpeechError::NothingToAlign { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        texts.push(transcript.text);
        windows += 1;
        start += samples.len() as f64 / LogMel::SAMPLE_RATE as f64;
    }
    if let Some(warning) = recording.warning() {
        exit::warn(&format!("{name} {warning}"));
    }
    if texts.is_empty() {
        return Err(of_file("there are no samples".into()));
    }
    if cli.time {
        let seconds = took.as_secs_f64();
        exit::warn(&format!("{seconds:.3} s for {start:.1} s of recording"));
    }
    if cli.pictures.are_wanted() && maps.is_empty() {
        exit::warn("there are no words to draw");
    } else if cli.pictures.are_wanted() {
        let page = AttentionPage::new("What each step listened to")
            .source(name)
            .metadata("text", texts.join(" "))
            .group(AttentionGroup::new("Cross-attention", maps).note(pictures::NOTE));
        cli.pictures.draw(&page)?;
    }
    Ok(())
}
