//! Downloads.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read, Seek, SeekFrom, Write},
    path::Path,
    time::Duration,
};

use serde::Deserialize;
use ureq::{
    Agent, Body, Error,
    config::RedirectAuthHeaders,
    http::{Response, StatusCode, header},
};

use crate::pretrained::source::Name;

/// How long to wait for a connection, a response, or the next bytes.
const PATIENCE: Duration = Duration::from_secs(30);
/// The longest list of files accepted, in bytes.
const LONGEST_LISTING: u64 = 1 << 26;

/// A server with models.
pub(super) struct Remote {
    endpoint: String,
    token: Option<String>,
    agent: Agent,
}

/// A revision of a model, and its files.
#[derive(Deserialize)]
pub(super) struct Listing {
    /// The commit that the revision points to.
    #[serde(rename = "sha")]
    pub(super) commit: String,
    siblings: Vec<Sibling>,
}

#[derive(Deserialize)]
struct Sibling {
    rfilename: String,
}

impl Listing {
    pub(super) fn has(&self, file: &str) -> bool {
        self.siblings.iter().any(|found| found.rfilename == file)
    }
}

impl Remote {
    pub(super) fn new(endpoint: Option<String>, token: Option<String>) -> Self {
        let agent = Agent::config_builder()
            .timeout_connect(Some(PATIENCE))
            .timeout_recv_response(Some(PATIENCE))
            .timeout_per_read(Some(PATIENCE))
            // Large files are on other hosts, which must not see the token.
            .redirect_auth_headers(RedirectAuthHeaders::SameHost)
            .build()
            .into();
        let endpoint = endpoint.unwrap_or_else(|| "https://huggingface.co".into());
        Self {
            endpoint: endpoint.trim_end_matches('/').into(),
            token,
            agent,
        }
    }

    /// The commit of a revision of a model, and its files.
    pub(super) fn listing(&self, name: &Name) -> Result<Listing, String> {
        let revision = name.revision.replace('/', "%2F");
        let path = format!("api/models/{}/revision/{revision}", name.repository);
        let mut answer = self
            .get(&path, 0)
            .map_err(|error| self.failed(&path, &error))?;
        let body = answer.body_mut().with_config().limit(LONGEST_LISTING);
        let body = body.read_to_vec();
        let body = body.map_err(|error| self.failed(&path, &error))?;
        let listing: Listing = serde_json::from_slice(&body)
            .map_err(|error| format!("{}/{path}: {error}", self.endpoint))?;
        // It becomes part of a path.
        match listing.commit.chars().all(|c| c.is_ascii_hexdigit()) && !listing.commit.is_empty() {
            true => Ok(listing),
            false => Err(format!("{:?} is not a commit", listing.commit)),
        }
    }

    /// Downloads a file of a commit into a folder that may already have it, or the beginning of it.
    pub(super) fn download(
        &self,
        name: &Name,
        commit: &str,
        file: &str,
        folder: &Path,
    ) -> Result<(), String> {
        let whole = folder.join(file);
        if whole.exists() {
            return Ok(());
        }
        let path = format!("{}/resolve/{commit}/{file}", name.repository);
        let incomplete = folder.join(format!("{file}.incomplete"));
        let written = || -> Result<(), Error> {
            let mut part = OpenOptions::new()
                .create(true)
                .append(true)
                .open(&incomplete)?;
            // Another process may be downloading it.
            part.lock()?;
            if whole.exists() {
                return Ok(());
            }
            self.append(&path, &mut part)?;
            // While the lock is held: who waits for it must not write to what is whole.
            Ok(fs::rename(&incomplete, &whole)?)
        };
        written().map_err(|error| self.failed(&path, &error))
    }

    /// Downloads the missing part of a file.
    fn append(&self, path: &str, part: &mut File) -> Result<(), Error> {
        let there = part.seek(SeekFrom::End(0))?;
        let answer = match self.get(path, there) {
            // The file is complete, or another one's beginning.
            Err(Error::StatusCode(416)) => self.get(path, 0),
            answer => answer,
        }?;
        if answer.status() != StatusCode::PARTIAL_CONTENT {
            part.set_len(0)?;
        }
        let announced = answer.body().content_length();
        let mut body = answer.into_body().into_reader();
        let count = io::copy(&mut body.by_ref(), part)?;
        part.flush()?;
        match announced {
            Some(announced) if announced != count => {
                let reason = format!("received {count} of {announced} bytes");
                Err(io::Error::new(io::ErrorKind::UnexpectedEof, reason).into())
            }
            _ => Ok(()),
        }
    }

    /// The response for a path, without the first `without` bytes if the server can leave them out.
    fn get(&self, path: &str, without: u64) -> Result<Response<Body>, Error> {
        let mut request = self.agent.get(format!("{}/{path}", self.endpoint));
        if let Some(token) = &self.token {
            request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
        }
        if without > 0 {
            request = request.header(header::RANGE, format!("bytes={without}-"));
        }
        request.call()
    }

    fn failed(&self, path: &str, error: &Error) -> String {
        let hint = match error {
            Error::StatusCode(401 | 403) => {
                " (there is no such model, or it needs a token in HF_TOKEN)"
            }
            Error::StatusCode(404) => {
                " (there is no such model or revision, or it has no such file)"
            }
            _ => "",
        };
        format!("{}/{path}: {error}{hint}", self.endpoint)
    }
}
