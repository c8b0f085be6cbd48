"""Folders of `preprocessor_config.json` as `transformers` writes it, and what its processors make of an image.

Usage: python make_image_processors.py [OUT_DIR]

The image is a formula, which `tests/modules/models/vision.rs` has too. The processors are those on torchvision, the default; those on PIL round other
values of resized images, up or down, and pad the other side of an odd crop.
"""

import sys
from pathlib import Path

import numpy as np
from PIL import Image
from safetensors.torch import save_file
from transformers import BitImageProcessor, DeiTImageProcessor, DetrImageProcessor, ViTImageProcessor

OUT = (Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent) / "image_processors"
HEIGHT, WIDTH = 31, 47
ROWS = {
    "vit": (ViTImageProcessor, dict(size={"height": 12, "width": 13}, image_mean=[0.5, 0.4, 0.3], image_std=[0.5, 0.6, 0.7])),
    "deit": (DeiTImageProcessor, dict(size={"height": 17, "width": 17}, crop_size={"height": 12, "width": 12})),
    "dinov2": (BitImageProcessor, dict(size={"shortest_edge": 15}, crop_size={"height": 12, "width": 12})),
    "larger_crop": (BitImageProcessor, dict(size={"shortest_edge": 7}, crop_size={"height": 12, "width": 9})),
    "enlarged": (DeiTImageProcessor, dict(size={"height": 37, "width": 53}, do_center_crop=False)),
    "not_normalized": (ViTImageProcessor, dict(size={"height": 11, "width": 7}, do_normalize=False)),
    "bytes": (ViTImageProcessor, dict(do_resize=False, do_rescale=False, image_mean=[100.0, 50.0, 20.0], image_std=[3.0, 5.0, 7.0])),
    "detr": (DetrImageProcessor, dict(size={"shortest_edge": 11, "longest_edge": 30})),
    "detr_longer": (DetrImageProcessor, dict(size={"shortest_edge": 20, "longest_edge": 23})),
    "grey": (ViTImageProcessor, dict(size={"height": 14, "width": 14}, image_mean=[0.1307], image_std=[0.3081])),
}


def image(grey):
    row, column, channel = np.meshgrid(np.arange(HEIGHT), np.arange(WIDTH), np.arange(3), indexing="ij")
    pixels = (row * row * 3 + column * 5 * (channel + 1) + row * column) % 256
    return Image.fromarray(pixels.astype(np.uint8)).convert("L" if grey else "RGB")


values = {}
for name, (kind, settings) in ROWS.items():
    processor = kind(**settings)
    processor.save_pretrained(OUT / name)
    values[name] = processor(images=image(name == "grey"), return_tensors="pt")["pixel_values"].float().contiguous()
    print(name, tuple(values[name].shape))
save_file(values, OUT / "values.safetensors")
(OUT / "values.safetensors").chmod(0o644)
