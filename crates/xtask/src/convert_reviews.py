"""Makes a folder of the movie reviews that vaderSentiment's source carries. `fetch.py` calls `convert`."""

import tarfile

# Its wheels leave the reviews out.
SOURCE = True
KEPT = {"movieReviewSnippets_GroundTruth.txt", "_README_.txt"}


def convert(package, folder):
    (archive,) = package.glob("*/additional_resources/hutto_ICWSM_2014.tar.gz")
    with tarfile.open(archive) as archive:
        for member in archive.getmembers():
            name = member.name.rsplit("/", 1)[-1]
            if member.isfile() and name in KEPT:
                (folder / name).write_bytes(archive.extractfile(member).read())
    (licence,) = package.glob("*/LICENSE.txt")
    (folder / "LICENSE.txt").write_bytes(licence.read_bytes())
