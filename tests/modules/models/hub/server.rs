//! A server with the files of one model, as the Hub has them: it lists them, and sends who asks for one elsewhere.

use std::{
    collections::BTreeMap,
    fs,
    io::{BufRead, BufReader, Write},
    net::{TcpListener, TcpStream},
    path::Path,
    sync::{Arc, Mutex},
    thread,
};

use serde_json::json;

pub struct Server {
    port: u16,
    requests: Arc<Mutex<Vec<Request>>>,
}

/// What somebody asked for.
#[derive(Clone, Debug)]
pub struct Request {
    pub path: String,
    /// By their names in lower case.
    headers: BTreeMap<String, String>,
}

impl Request {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }

    fn read(stream: &TcpStream) -> Self {
        let mut lines = BufReader::new(stream)
            .lines()
            .map(|line| line.expect("a line"));
        let first = lines.next().expect("a request");
        let headers = lines.take_while(|line| !line.is_empty()).map(|line| {
            let (name, value) = line.split_once(':').expect("a header");
            (name.to_lowercase(), value.trim().to_owned())
        });
        Self {
            path: first.split(' ').nth(1).expect("a path").to_owned(),
            headers: headers.collect(),
        }
    }
}

impl Server {
    /// These files of a folder, at one commit of a model of any name but `private`.
    pub fn start(commit: &str, folder: &Path, files: &[&str]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("an address").port();
        let siblings: Vec<_> = files
            .iter()
            .map(|file| json!({ "rfilename": file }))
            .collect();
        let listing = json!({ "sha": commit, "siblings": siblings, "private": false });
        let contents = files.iter().map(|file| {
            let content = fs::read(folder.join(file)).expect("a file");
            (format!("/elsewhere/{file}"), content)
        });
        let contents: BTreeMap<String, Vec<u8>> = contents.collect();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let seen = requests.clone();
        let marker = format!("/resolve/{commit}/");
        // It ends with the process.
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.expect("a connection");
                let request = Request::read(&stream);
                seen.lock().expect("no panic").push(request.clone());
                let path = request.path.as_str();
                let (status, header, body) = if path.starts_with("/api/models/private/") {
                    ("401 Unauthorized", String::new(), Vec::new())
                } else if path.starts_with("/api/") {
                    ("200 OK", String::new(), listing.to_string().into_bytes())
                } else if let Some((_, file)) = path.split_once(&marker) {
                    // Another host by its name.
                    let to = format!("Location: http://localhost:{port}/elsewhere/{file}\r\n");
                    ("302 Found", to, Vec::new())
                } else if let Some(content) = contents.get(path) {
                    range(&request, content)
                } else {
                    ("404 Not Found", String::new(), Vec::new())
                };
                let len = body.len();
                let head = format!(
                    "HTTP/1.1 {status}\r\n{header}Content-Length: {len}\r\nConnection: close\r\n\r\n"
                );
                // Who asked may be gone.
                let _ = stream.write_all(&[head.as_bytes(), &body].concat());
            }
        });
        Self { port, requests }
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub fn requests(&self) -> Vec<Request> {
        self.requests.lock().expect("no panic").clone()
    }
}

/// The part of a file that is asked for.
fn range(request: &Request, content: &[u8]) -> (&'static str, String, Vec<u8>) {
    let Some(range) = request.header("range") else {
        return ("200 OK", String::new(), content.to_vec());
    };
    let start = range
        .strip_prefix("bytes=")
        .and_then(|range| range.strip_suffix('-'));
    let start: usize = start.expect("an open range").parse().expect("a number");
    match content.get(start..) {
        Some(rest) if !rest.is_empty() => {
            let (last, len) = (content.len() - 1, content.len());
            let header = format!("Content-Range: bytes {start}-{last}/{len}\r\n");
            ("206 Partial Content", header, rest.to_vec())
        }
        _ => ("416 Range Not Satisfiable", String::new(), Vec::new()),
    }
}
