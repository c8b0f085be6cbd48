//! A server for the files of one folder, on this computer alone.

use std::{
    fs,
    path::{Component, Path},
    thread,
};

use example_common::{error::Error, exit::println, files::FileError};
use tiny_http::{Header, Method, Request, Response, Server};

/// The types of the page's files, by their ends.
const TYPES: [(&str, &str); 7] = [
    ("html", "text/html; charset=utf-8"),
    ("js", "text/javascript; charset=utf-8"),
    ("css", "text/css; charset=utf-8"),
    ("json", "application/json"),
    ("gz", "application/gzip"),
    ("svg", "image/svg+xml"),
    ("png", "image/png"),
];

/// Requests that are answered at once: a client that does not read its answer occupies one of these threads.
const ANSWERED_AT_ONCE: usize = 8;

/// Shows the page until the program is stopped.
pub fn run(page: &Path, port: u16) -> Result<(), Error> {
    let index = page.join("index.html");
    let found = fs::metadata(&index).map_err(FileError::of("read", &index))?;
    if !found.is_file() {
        return Err(format!("{} is no file", index.display()).into());
    }
    let server = Server::http(("127.0.0.1", port)).map_err(|error| {
        format!("cannot listen on port {port}: {error}; choose another by --port")
    })?;
    println(&format!("http://{}/ until Ctrl-C", server.server_addr()));
    thread::scope(|scope| {
        for _ in 0..ANSWERED_AT_ONCE {
            scope.spawn(|| {
                for request in server.incoming_requests() {
                    // A client that leaves while a file is sent is no error.
                    let _ = answer(request, page);
                }
            });
        }
    });
    Ok(())
}

fn answer(request: Request, page: &Path) -> std::io::Result<()> {
    if ![Method::Get, Method::Head].contains(request.method()) {
        return request.respond(Response::empty(405));
    }
    let path = request.url().split(['?', '#']).next().unwrap_or_default();
    let path = path.trim_start_matches('/');
    let path = Path::new(if path.is_empty() { "index.html" } else { path });
    let is_inside = path
        .components()
        .all(|part| matches!(part, Component::Normal(_)));
    if !is_inside || !is_of_this_computer(&request) {
        return request.respond(Response::empty(404));
    }
    let Ok(bytes) = fs::read(page.join(path)) else {
        return request.respond(Response::empty(404));
    };
    let end = path
        .extension()
        .and_then(|end| end.to_str())
        .unwrap_or_default();
    let known = TYPES.iter().find(|(known, _)| *known == end);
    let kind = known.map_or("application/octet-stream", |(_, kind)| kind);
    let header = Header::from_bytes("Content-Type", kind).expect("a header");
    request.respond(Response::from_data(bytes).with_header(header))
}

/// Whether a request names this computer: a foreign page, which must not read files, reaches it by another name.
fn is_of_this_computer(request: &Request) -> bool {
    let mut headers = request.headers().iter();
    let host = headers.find(|header| header.field.equiv("Host"));
    host.is_none_or(|host| {
        let host = host.value.as_str();
        let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
        ["127.0.0.1", "localhost"].contains(&name)
    })
}
