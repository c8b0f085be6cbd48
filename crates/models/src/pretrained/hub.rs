//! The Hub's local cache, whose layout is that of the Python library `huggingface_hub`. What is missing there is downloaded by the crate `hf-hub`.
//!
//! ```text
//! models--organisation--model/refs/main              the commit that was main
//! models--organisation--model/snapshots/<commit>/    links to its files
//! ```

use std::{
    collections::BTreeMap,
    env,
    error::Error,
    fs, iter,
    path::{Path, PathBuf},
};

use hf_hub::{
    HFClient, HFClientSync, HFError, HFRepositorySync, RepoTypeModel, repository::RepoTreeEntry,
    split_id,
};

use super::source::{Name, Wanted};
use crate::weights::{WEIGHT_FILES, shards};

/// The folder with the wanted files of a model, after downloading what the cache lacks.
pub(super) fn folder(name: &Name, wanted: Wanted) -> Result<PathBuf, String> {
    let Name {
        repository,
        revision,
    } = name;
    let client = HFClient::new().map_err(|error| sentence(&error))?;
    let cache = client.cache_dir().to_owned();
    let cached = Cached {
        folder: cache.join(format!("models--{}", repository.replace('/', "--"))),
        revision,
    };
    let known = cached.commit();
    // A commit is its own revision.
    let snapshot = cached.snapshot(known.as_deref().unwrap_or(revision));
    let Some(lack) = lack(&snapshot, wanted) else {
        return Ok(snapshot);
    };
    let cache = cache.display();
    let lack =
        format!("the Hub's cache {cache} has no {lack} of {repository} at {revision}, which");
    if is_offline() {
        return Err(format!("{lack} HF_HUB_OFFLINE forbids downloading"));
    }
    let remote = || {
        let (owner, model) = split_id(repository);
        let client = HFClientSync::from_inner(client)?;
        Remote::new(client.model(owner, model), known, revision)
    };
    remote()
        .map_err(|error| sentence(&error))
        .and_then(|remote| cached.fill(&remote, wanted))
        .map_err(|reason| format!("{lack} cannot be downloaded: {reason}"))
}

/// As the Python library reads it.
fn is_offline() -> bool {
    let value = env::var("HF_HUB_OFFLINE").unwrap_or_default();
    ["1", "ON", "YES", "TRUE"].contains(&&*value.trim().to_uppercase())
}

/// A revision in the cache.
struct Cached<'a> {
    /// Of the repository.
    folder: PathBuf,
    revision: &'a str,
}

impl Cached<'_> {
    fn reference(&self) -> PathBuf {
        self.folder.join("refs").join(self.revision)
    }

    /// The commit that a branch or a tag pointed to when it was last downloaded.
    fn commit(&self) -> Option<String> {
        let commit = fs::read_to_string(self.reference()).ok()?;
        Some(commit.trim().to_owned())
    }

    fn snapshot(&self, commit: &str) -> PathBuf {
        self.folder.join("snapshots").join(commit)
    }

    /// Downloads the wanted files that are not there, and returns their folder.
    fn fill(&self, remote: &Remote, wanted: Wanted) -> Result<PathBuf, String> {
        let snapshot = self.snapshot(&remote.commit);
        let has = |file: &str| remote.sizes.contains_key(file);
        let mut files = WEIGHT_FILES.into_iter();
        let weights = match wanted {
            Wanted::Model => Some(
                files
                    .find(|file| has(file))
                    .ok_or_else(|| format!("it has none of {}", WEIGHT_FILES.join(", ")))?,
            ),
            Wanted::Config | Wanted::Tokenizer => None,
        };
        remote.get(wanted.file(), &snapshot)?;
        if let Some(weights) = weights {
            if has("tokenizer.json") {
                remote.get("tokenizer.json", &snapshot)?;
            }
            remote.get(weights, &snapshot)?;
            for shard in shards_of(&snapshot.join(weights))? {
                remote.get(&shard, &snapshot)?;
            }
        }
        // Last, and in one step, so that a reference never points to an incomplete folder.
        let (commit, reference) = (&remote.commit, self.reference());
        if self.commit().as_ref() != Some(commit) && self.revision != commit {
            let new = reference.with_added_extension(format!("{}.new", std::process::id()));
            let parent = reference.parent().unwrap_or(&self.folder);
            let write = || {
                fs::create_dir_all(parent)?;
                fs::write(&new, commit)?;
                fs::rename(&new, &reference)
            };
            write().map_err(|error| format!("{}: {error}", reference.display()))?;
        }
        Ok(snapshot)
    }
}

/// A commit of a model on the Hub.
struct Remote {
    repository: HFRepositorySync<RepoTypeModel>,
    commit: String,
    /// The bytes of each file.
    sizes: BTreeMap<String, u64>,
}

impl Remote {
    /// The commit that the cache knows for this revision, so that all files of a folder belong together; without one, or if it
    /// is gone, what the revision points to now.
    fn new(
        repository: HFRepositorySync<RepoTypeModel>,
        known: Option<String>,
        revision: &str,
    ) -> Result<Self, HFError> {
        if let Some(commit) = known
            && let Ok(sizes) = sizes(&repository, &commit)
        {
            return Ok(Self {
                repository,
                commit,
                sizes,
            });
        }
        let commit = repository.info().revision(revision).send()?.sha;
        let commit = commit.unwrap_or_default();
        // It becomes part of a path.
        if commit.is_empty() || !commit.chars().all(|c| c.is_ascii_hexdigit()) {
            return Err(HFError::Other(format!("{commit:?} is not a commit")));
        }
        Ok(Self {
            sizes: sizes(&repository, &commit)?,
            repository,
            commit,
        })
    }

    /// Downloads a file, if the folder does not have it.
    fn get(&self, file: &str, snapshot: &Path) -> Result<(), String> {
        let path = snapshot.join(file);
        if path.exists() {
            return Ok(());
        }
        let Some(&size) = self.sizes.get(file) else {
            return Err(format!("it has no {file}"));
        };
        let request = self.repository.download_file().filename(file);
        let downloaded = request.revision(&self.commit).send();
        downloaded.map_err(|error| sentence(&error))?;
        let of_path = |error| format!("{}: {error}", path.display());
        let received = fs::metadata(&path).map_err(of_path)?.len();
        if received == size {
            return Ok(());
        }
        // The page of an error, or of a proxy. It must not stay in the cache as the file.
        if let Ok(blob) = path.canonicalize() {
            fs::remove_file(blob).map_err(of_path)?;
        }
        if path.is_symlink() {
            fs::remove_file(&path).map_err(of_path)?;
        }
        Err(format!(
            "{file} has {size} bytes, but {received} were received"
        ))
    }
}

/// The files at the top of a commit.
fn sizes(
    repository: &HFRepositorySync<RepoTypeModel>,
    commit: &str,
) -> Result<BTreeMap<String, u64>, HFError> {
    let entries = repository.list_tree().revision(commit).send()?;
    let files = entries.into_iter().filter_map(|entry| match entry {
        RepoTreeEntry::File { path, size, .. } => Some((path, size)),
        RepoTreeEntry::Directory { .. } => None,
    });
    Ok(files.collect())
}

/// The error with its causes, and what to do.
fn sentence(error: &HFError) -> String {
    let causes = iter::successors(error.source(), |&cause| cause.source());
    let causes: String = causes
        // The library's own message has the first.
        .skip(1)
        .map(|cause| format!(": {cause}"))
        .collect();
    let hint = match error {
        HFError::AuthRequired { .. } | HFError::Forbidden { .. } => {
            "; there is no such model, or it needs a token in HF_TOKEN"
        }
        _ => "",
    };
    format!("{error}{causes}{hint}")
}

/// A wanted file that this folder does not have.
fn lack(folder: &Path, wanted: Wanted) -> Option<String> {
    let is_there = |file: &str| folder.join(file).exists();
    if !is_there(wanted.file()) {
        return Some(wanted.file().into());
    }
    if wanted != Wanted::Model {
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
