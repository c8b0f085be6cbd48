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
    fs, io, iter,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use hf_hub::{
    HFClient, HFClientSync, HFError, HFRepositorySync, RepoTypeModel, repository::RepoTreeEntry,
    split_id,
};

use super::{
    hub_files::{Need, WantedFile, lack, no_file, wanted_files},
    progress::Progress,
    sentence_modules::MODULES,
    wanted::{Name, Wanted},
};
use crate::weights::WEIGHT_FILES;

/// The bytes of the files of a commit.
type Sizes = BTreeMap<String, u64>;

/// The folder with the wanted files of a model, after downloading what the cache lacks.
pub(super) fn folder(name: &Name, wanted: Wanted) -> Result<PathBuf, String> {
    let (repository, revision) = (&name.repository, &name.revision);
    let settings = Settings::from_env();
    let of_repository = format!("models--{}", repository.replace('/', "--"));
    let cached = Cached {
        folder: settings.cache.join(of_repository),
        revision,
    };
    let known = cached.commit();
    // A commit is its own revision.
    let snapshot = cached.snapshot(known.as_deref().unwrap_or(revision));
    let Some(lack) = lack(&snapshot, wanted) else {
        return Ok(snapshot);
    };
    let cache = settings.cache.display();
    let lack = format!("the Hub's cache {cache} has no {lack} of {repository} at {revision}");
    if let Some(offline) = settings.offline {
        return Err(format!("{lack}, and {offline} forbids downloading it"));
    }
    let remote = Remote::new(settings, name, known);
    remote
        .map_err(|error| sentence(&error))
        .and_then(|remote| cached.fill(&remote, wanted))
        .map_err(|reason| format!("{lack}, which cannot be downloaded: {reason}"))
}

/// The settings in the environment variables that the Python library reads.
struct Settings {
    cache: PathBuf,
    token: Option<String>,
    endpoint: Option<String>,
    /// The variable that forbids downloads, if one does.
    offline: Option<&'static str>,
}

impl Settings {
    fn from_env() -> Self {
        let text = |name: &str| {
            let value = env::var(name).ok()?.trim().to_owned();
            Some(value).filter(|value| !value.is_empty())
        };
        let is_on = |name: &str| {
            let value = text(name).unwrap_or_default().to_uppercase();
            ["1", "ON", "YES", "TRUE"].contains(&&*value)
        };
        let of_user = || env::home_dir().unwrap_or_default();
        // Shells expand `~`, but files of units and of variables do not, and the Python library does.
        let path = |name: &str| {
            text(name).map(|value| match value.strip_prefix('~') {
                Some(below) if below.is_empty() || below.starts_with('/') => {
                    of_user().join(below.trim_start_matches('/'))
                }
                _ => PathBuf::from(value),
            })
        };
        let caches = || path("XDG_CACHE_HOME").unwrap_or_else(|| of_user().join(".cache"));
        let home = path("HF_HOME").unwrap_or_else(|| caches().join("huggingface"));
        Self {
            // Without one, `hf-hub` looks for the file.
            token: text("HF_TOKEN").filter(|_| !is_on("HF_HUB_DISABLE_IMPLICIT_TOKEN")),
            cache: path("HF_HUB_CACHE")
                .or_else(|| path("HUGGINGFACE_HUB_CACHE"))
                .unwrap_or_else(|| home.join("hub")),
            endpoint: text("HF_ENDPOINT"),
            offline: ["HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"]
                .into_iter()
                .find(|name| text(name).is_some())
                .filter(|name| is_on(name)),
        }
    }
}

/// A revision in the cache.
struct Cached<'a> {
    /// The folder of the repository.
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
        Some(commit.trim().to_owned()).filter(|commit| is_commit(commit))
    }

    fn snapshot(&self, commit: &str) -> PathBuf {
        self.folder.join("snapshots").join(commit)
    }

    /// Downloads the wanted files that are not there, and returns their folder.
    fn fill(&self, remote: &Remote, wanted: Wanted) -> Result<PathBuf, String> {
        let snapshot = self.snapshot(&remote.commit);
        let has = |file: &&str| remote.sizes.contains_key(*file);
        let needs_weights = matches!(wanted, Wanted::ModelConfig | Wanted::Model);
        if needs_weights && !WEIGHT_FILES.iter().any(has) {
            let names = WEIGHT_FILES.join(", ");
            return Err(format!("the model has none of {names}"));
        }
        // The second pass downloads the files that those of the first pass name.
        for _ in 0..2 {
            for file in wanted_files(&snapshot, wanted) {
                remote.get(&file, &snapshot)?;
            }
        }
        // Written last, so that a reference to a whole model never becomes one to a part of another.
        let is_whole = wanted == Wanted::Model;
        let known = self.commit();
        let is_new = known.is_none_or(|known| known != remote.commit && is_whole);
        if is_new && self.revision != remote.commit {
            let reference = self.reference();
            let parent = reference.parent().unwrap_or(&self.folder);
            fs::create_dir_all(parent)
                .and_then(|()| fs::write(&reference, &remote.commit))
                .map_err(|error| in_file(&reference, &error))?;
        }
        Ok(snapshot)
    }
}

/// Whether the Hub no longer has the commit.
fn is_gone(error: &HFError) -> bool {
    matches!(error, HFError::Http { context } if context.status.as_u16() == 404)
}

/// A commit becomes part of paths.
fn is_commit(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_hexdigit())
}

fn in_file(path: &Path, error: &io::Error) -> String {
    format!("{}: {error}", path.display())
}

/// A commit of a model on the Hub.
struct Remote {
    repository: HFRepositorySync<RepoTypeModel>,
    commit: String,
    sizes: Sizes,
}

impl Remote {
    /// The commit that the cache knows for this revision, so that all files of a folder belong together; without one, or if it
    /// is gone, what the revision points to now.
    fn new(settings: Settings, name: &Name, known: Option<String>) -> Result<Self, HFError> {
        let mut client = HFClient::builder().cache_dir(settings.cache);
        if let Some(token) = settings.token {
            client = client.token(token);
        }
        if let Some(endpoint) = settings.endpoint {
            client = client.endpoint(endpoint);
        }
        let (owner, model) = split_id(&name.repository);
        let repository = HFClientSync::from_inner(client.build()?)?.model(owner, model);
        let (sizes, commit) = match known.map(|commit| (sizes(&repository, &commit), commit)) {
            Some((Ok(sizes), commit)) => (sizes, commit),
            Some((Err(error), _)) if !is_gone(&error) => return Err(error),
            _ => {
                let info = repository.info().revision(&name.revision).send()?;
                let commit = info.sha.unwrap_or_default();
                if !is_commit(&commit) {
                    return Err(HFError::Other(format!("{commit:?} is not a commit")));
                }
                (sizes(&repository, &commit)?, commit)
            }
        };
        Ok(Self {
            repository,
            commit,
            sizes,
        })
    }

    /// Downloads a file unless the folder has it, or notes that the model has none.
    fn get(&self, file: &WantedFile, snapshot: &Path) -> Result<(), String> {
        let mut names = file.names.iter();
        if let Some((name, size)) = names.find_map(|name| Some((name, *self.sizes.get(name)?))) {
            return self.complete(name, size, snapshot);
        }
        if file.need == Need::Always {
            return Err(format!("the model has no {}", file.names.join(" or ")));
        }
        // The note only saves the next look-up, and a shared cache may be read-only.
        let note = no_file(snapshot, &file.names[0]);
        let folder = note.parent().unwrap_or(snapshot);
        let _ = fs::create_dir_all(folder).and_then(|()| fs::write(&note, ""));
        Ok(())
    }

    /// Downloads a file, unless the folder has all of it.
    fn complete(&self, file: &str, size: u64, snapshot: &Path) -> Result<(), String> {
        let path = snapshot.join(file);
        let len = || fs::metadata(&path).map_or(0, |found| found.len());
        if path.exists() && len() == size {
            return Ok(());
        }
        // The second attempt replaces what the cache has: a dangling link, or a damaged file.
        for force in [false, true] {
            self.download(file, size, force)?;
            if len() == size {
                return Ok(());
            }
        }
        // The server may have sent an error page, which must not stay in the cache as the file.
        let received = len();
        for damaged in [path.canonicalize().ok(), Some(path)].into_iter().flatten() {
            if let Err(error) = fs::remove_file(&damaged)
                && error.kind() != io::ErrorKind::NotFound
            {
                return Err(in_file(&damaged, &error));
            }
        }
        Err(format!(
            "{file} has {size} bytes, but the server sent {received}"
        ))
    }

    fn download(&self, file: &str, size: u64, force: bool) -> Result<(), String> {
        loop {
            let request = self.repository.download_file().filename(file);
            let request = request.revision(&self.commit).force_download(force);
            let request = request.progress(Progress {
                file: file.into(),
                size,
            });
            match request.send() {
                Ok(_) => return Ok(()),
                // Another process is downloading the file: try again until it is there.
                Err(HFError::CacheLockTimeout { .. }) => {}
                Err(error) => return Err(sentence(&error)),
            }
        }
    }
}

/// The files at the top of a commit, and, of a model with modules, those in its folders. A commit is asked for once: its weights are downloaded
/// after its configuration was read.
fn sizes(repository: &HFRepositorySync<RepoTypeModel>, commit: &str) -> Result<Sizes, HFError> {
    static LISTED: Mutex<BTreeMap<[String; 2], Sizes>> = Mutex::new(BTreeMap::new());
    let listed = || LISTED.lock().unwrap_or_else(PoisonError::into_inner);
    let key = [repository.repo_path(), commit.to_owned()];
    if let Some(known) = listed().get(&key) {
        return Ok(known.clone());
    }
    let sizes = |recursive| -> Result<Sizes, HFError> {
        let tree = repository.list_tree().revision(commit);
        let entries = tree.recursive(recursive).send()?;
        let files = entries.into_iter().filter_map(|entry| match entry {
            RepoTreeEntry::File { path, size, .. } => Some((path, size)),
            RepoTreeEntry::Directory { .. } => None,
        });
        Ok(files.collect())
    };
    let mut files = sizes(false)?;
    if files.contains_key(MODULES) {
        files = sizes(true)?;
    }
    listed().insert(key, files.clone());
    Ok(files)
}

/// The error with its causes, and what to do.
fn sentence(error: &HFError) -> String {
    let causes = iter::successors(error.source(), |&cause| cause.source());
    // The message of these errors already has the first cause.
    let has_first = matches!(error, HFError::Request { .. } | HFError::Xet { .. });
    let causes = causes.skip(usize::from(has_first));
    let causes: String = causes.map(|cause| format!(": {cause}")).collect();
    let hint = match error {
        HFError::AuthRequired { .. } => "; there is no such model, or it needs a token in HF_TOKEN",
        HFError::Forbidden { .. } => "; the token does not give access to it",
        HFError::RepoNotFound { .. } | HFError::RevisionNotFound { .. } => {
            "; there is no such model, or no such revision of it"
        }
        HFError::Url(_) => " in HF_ENDPOINT",
        _ => "",
    };
    format!("{error}{causes}{hint}")
}
