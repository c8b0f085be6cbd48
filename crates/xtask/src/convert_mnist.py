"""MNIST's four files, without the package around them."""

import shutil


def convert(package, folder):
    for file in (package / "package" / "data").iterdir():
        shutil.copy(file, folder)
