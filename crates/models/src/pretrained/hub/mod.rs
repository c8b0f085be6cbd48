//! The local cache of the Hub, in the layout of the Python library `huggingface_hub`; what is missing there is downloaded.
//!
//! ```text
//! models--organisation--model/refs/main              the commit that was main
//! models--organisation--model/snapshots/<commit>/    its files, or links to them
//! ```

mod remote;

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use self::remote::Remote;
use super::source::{Name, Wanted};
use crate::weights::{WEIGHT_FILES, shards};

/// The cache, and the server behind it.
pub(super) struct Hub {
    cache: PathBuf,
    /// `None` if nothing is to be downloaded.
    remote: Option<Remote>,
}

impl Hub {
    /// As set by the environment variables that the Python library reads.
    pub(super) fn from_env() -> Self {
        let text = |name: &str| {
            let value = env::var(name).ok()?.trim().to_owned();
            Some(value).filter(|value| !value.is_empty())
        };
        let path = |name: &str| text(name).map(PathBuf::from);
        let caches = || {
            let of_user = || env::home_dir().unwrap_or_default().join(".cache");
            path("XDG_CACHE_HOME").unwrap_or_else(of_user)
        };
        let home = path("HF_HOME").unwrap_or_else(|| caches().join("huggingface"));
        let in_file = || {
            let token = fs::read_to_string(home.join("token")).ok()?;
            Some(token.trim().to_owned()).filter(|token| !token.is_empty())
        };
        let is_offline = text("HF_HUB_OFFLINE")
            .is_some_and(|value| ["1", "ON", "YES", "TRUE"].contains(&&*value.to_uppercase()));
        Self {
            remote: (!is_offline).then(|| {
                let endpoint = text("HF_ENDPOINT");
                Remote::new(endpoint, text("HF_TOKEN").or_else(in_file))
            }),
            cache: path("HF_HUB_CACHE").unwrap_or_else(|| home.join("hub")),
        }
    }

    /// The folder with the wanted files of a model, after downloading what the cache lacks.
    pub(super) fn folder(&self, name: &Name, wanted: Wanted) -> Result<PathBuf, String> {
        let snapshot = self.snapshot(name);
        let Some(lack) = lack(&snapshot, wanted) else {
            return Ok(snapshot);
        };
        let Name {
            repository,
            revision,
        } = name;
        let cache = self.cache.display();
        let lack =
            format!("the Hub's cache {cache} has no {lack} of {repository} at {revision}, which");
        match &self.remote {
            None => Err(format!("{lack} HF_HUB_OFFLINE forbids downloading")),
            Some(remote) => self
                .download(remote, name, wanted)
                .map_err(|reason| format!("{lack} cannot be downloaded: {reason}")),
        }
    }

    fn repository(&self, name: &Name) -> PathBuf {
        let folder = format!("models--{}", name.repository.replace('/', "--"));
        self.cache.join(folder)
    }

    /// The folder of the commit that the revision pointed to when it was last downloaded.
    fn snapshot(&self, name: &Name) -> PathBuf {
        let repository = self.repository(name);
        let commit = fs::read_to_string(repository.join("refs").join(&name.revision));
        // A commit is its own revision.
        let commit = commit.unwrap_or_else(|_| name.revision.clone());
        repository.join("snapshots").join(commit.trim())
    }

    /// Downloads the wanted files of this revision that the cache does not have, and returns the folder.
    fn download(&self, remote: &Remote, name: &Name, wanted: Wanted) -> Result<PathBuf, String> {
        let listing = remote.listing(name)?;
        let mut files = WEIGHT_FILES.into_iter();
        let weights = match (wanted, files.find(|file| listing.has(file))) {
            (Wanted::Tokenizer, _) => None,
            (Wanted::Model, None) => {
                return Err(format!("it has none of {}", WEIGHT_FILES.join(", ")));
            }
            (Wanted::Model, weights) => weights,
        };
        let repository = self.repository(name);
        let folder = repository.join("snapshots").join(&listing.commit);
        let failed = |error: std::io::Error| error.to_string();
        fs::create_dir_all(&folder).map_err(failed)?;
        let get = |file: &str| remote.download(name, &listing.commit, file, &folder);
        if wanted == Wanted::Tokenizer || listing.has("tokenizer.json") {
            get("tokenizer.json")?;
        }
        if let Some(weights) = weights {
            get("config.json")?;
            get(weights)?;
            for shard in shards_of(&folder.join(weights))? {
                get(&shard)?;
            }
        }
        // Last, so that a reference never points to an incomplete folder.
        if name.revision != listing.commit {
            let reference = repository.join("refs").join(&name.revision);
            fs::create_dir_all(reference.parent().unwrap_or(&repository)).map_err(failed)?;
            fs::write(reference, &listing.commit).map_err(failed)?;
        }
        Ok(folder)
    }
}

/// A wanted file that this folder does not have.
fn lack(folder: &Path, wanted: Wanted) -> Option<String> {
    let is_there = |file: &str| folder.join(file).exists();
    let first = match wanted {
        Wanted::Model => "config.json",
        Wanted::Tokenizer => "tokenizer.json",
    };
    if !is_there(first) {
        return Some(first.into());
    }
    if wanted == Wanted::Tokenizer {
        return None;
    }
    let Some(weights) = WEIGHT_FILES.into_iter().find(|file| is_there(file)) else {
        return Some(WEIGHT_FILES[0].into());
    };
    // An index that cannot be read is refused when the weights are read.
    let shards = shards_of(&folder.join(weights)).unwrap_or_default();
    shards.into_iter().find(|shard| !is_there(shard))
}

/// The files that an index names; none if the weights are one file.
fn shards_of(weights: &Path) -> Result<Vec<String>, String> {
    match weights.extension().is_some_and(|kind| kind == "json") {
        true => shards(weights).map_err(|error| error.to_string()),
        false => Ok(Vec::new()),
    }
}
