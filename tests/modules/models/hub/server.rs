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

use serde_json::{Value, json};

pub struct Server {
    port: u16,
    requests: Arc<Mutex<Vec<Request>>>,
}

/// What somebody asked for.
#[derive(Clone, Debug)]
pub struct Request {
    method: String,
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
        let mut words = first.split(' ').map(str::to_owned);
        let [method, path] = [(); 2].map(|()| words.next().expect("method and path"));
        let headers = lines.take_while(|line| !line.is_empty()).map(|line| {
            let (name, value) = line.split_once(':').expect("a header");
            (name.to_lowercase(), value.trim().to_owned())
        });
        Self {
            method,
            path,
            headers: headers.collect(),
        }
    }
}

/// How the server treats files.
#[derive(Clone, Copy, PartialEq)]
pub enum Serves {
    Files,
    /// The first half of them, and then nothing.
    Half,
    /// A page that says that something is wrong, where files are. Their server answers as if nothing was.
    Pages,
}

impl Server {
    /// These files of a folder, at one commit of a model of any name but `private`.
    pub fn start(commit: &str, folder: &Path, files: &[&str], serves: Serves) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("an address").port();
        let contents = files.iter().map(|file| {
            let content = fs::read(folder.join(file)).expect("a file");
            ((*file).to_owned(), content)
        });
        let contents: BTreeMap<String, Vec<u8>> = contents.collect();
        let entries = |is_listed: fn(&str) -> bool| {
            let files = contents.iter().filter(|(file, _)| is_listed(file));
            let entries = files.map(|(file, content)| {
                json!({ "type": "file", "path": file, "size": content.len(), "oid": "0" })
            });
            json!(entries.collect::<Vec<_>>())
        };
        let tree = entries(|_| true);
        let top = entries(|file| !file.contains('/'));
        let info = json!({ "id": "tiny", "sha": commit, "siblings": [] });
        let requests = Arc::new(Mutex::new(Vec::new()));
        let seen = requests.clone();
        let [listed, resolved] = [format!("/tree/{commit}"), format!("/resolve/{commit}/")];
        let all = format!("{listed}?recursive=true");
        let commit = commit.to_owned();
        // It ends with the process.
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.expect("a connection");
                let request = Request::read(&stream);
                seen.lock().expect("no panic").push(request.clone());
                let path = &request.path.replace("%20", " ");
                let json = |value: &Value| ("200 OK", String::new(), value.to_string().into());
                let (status, header, body) = if path.starts_with("/api/models/private/") {
                    ("401 Unauthorized", String::new(), Vec::new())
                } else if path.ends_with(&listed) {
                    json(&top)
                } else if path.ends_with(&all) {
                    json(&tree)
                } else if path.starts_with("/api/") && path.contains("/revision/") {
                    json(&info)
                } else if let Some((_, file)) = path.split_once(&resolved) {
                    let etag = format!("\"of-{file}\"");
                    let is_known = request.header("if-none-match") == Some(etag.as_str());
                    let status = if is_known {
                        "304 Not Modified"
                    } else {
                        "302 Found"
                    };
                    // Another host by its name.
                    let header = format!(
                        "Location: http://localhost:{port}/elsewhere/{}\r\n\
                         ETag: {etag}\r\nX-Repo-Commit: {commit}\r\n\
                         X-Linked-Size: {}\r\n",
                        file.replace(' ', "%20"),
                        contents.get(file).map_or(0, Vec::len)
                    );
                    (status, header, Vec::new())
                } else if let Some(file) = path.strip_prefix("/elsewhere/") {
                    let body = match serves {
                        Serves::Pages => b"try again later".to_vec(),
                        Serves::Files | Serves::Half => contents[file].clone(),
                    };
                    ("200 OK", String::new(), body)
                } else {
                    ("404 Not Found", String::new(), Vec::new())
                };
                let len = body.len();
                let head = format!(
                    "HTTP/1.1 {status}\r\n{header}Content-Length: {len}\r\nConnection: close\r\n\r\n"
                );
                let sent = match serves {
                    _ if request.method == "HEAD" => 0,
                    Serves::Half if path.starts_with("/elsewhere/") => len / 2,
                    _ => len,
                };
                // Who asked may be gone.
                let _ = stream.write_all(&[head.as_bytes(), &body[..sent]].concat());
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
