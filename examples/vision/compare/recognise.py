"""Trains a ViT in PyTorch as `vision train recognise` trains its own: the same size, steps, augmentation and recipe, other random numbers.

Usage: python3 recognise.py MNIST_FOLDER SEED [EPOCHS]

Prints the accuracy on the 10,000 scans of the test part, and the CPU time.
"""

import math
import resource
import sys
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

FOLDER, SEED = Path(sys.argv[1]), int(sys.argv[2])
EPOCHS = int(sys.argv[3]) if len(sys.argv) > 3 else 20
D_MODEL, HEADS, LAYERS, D_FF, PATCH = 64, 4, 6, 128, 7
BATCH, RATE, SMOOTHING, VALIDATION = 64, 2e-3, 0.05, 5000
MEAN, STD = 0.1307, 0.3081


def part(name):
    images = np.fromfile(FOLDER / f"{name}-images-idx3-ubyte", dtype=np.uint8)[16:].reshape(-1, 1, 28, 28)
    digits = np.fromfile(FOLDER / f"{name}-labels-idx1-ubyte", dtype=np.uint8)[8:]
    return torch.tensor(images).float() / 255, torch.tensor(digits).long()


def normalized(images):
    return (images - MEAN) / STD


def augmented(images):
    """Turned up to 12 degrees, scaled by 0.88 to 1.12, sheared by up to 0.1 and moved by up to 2 pixels."""
    up_to = lambda most: (torch.rand(len(images)) * 2 - 1) * most
    angle, scale, shear = up_to(math.radians(12)), 1 + up_to(0.12), up_to(0.1)
    cos, sin = angle.cos() / scale, angle.sin() / scale
    rows = [torch.stack([cos, shear - sin, up_to(2 / 14)], 1), torch.stack([sin, cos, up_to(2 / 14)], 1)]
    grid = F.affine_grid(torch.stack(rows, 1), images.shape, align_corners=False)
    return F.grid_sample(images, grid, align_corners=False)


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(D_MODEL), nn.LayerNorm(D_MODEL)
        self.query_key_value, self.output = nn.Linear(D_MODEL, 3 * D_MODEL), nn.Linear(D_MODEL, D_MODEL)
        self.inner, self.outer = nn.Linear(D_MODEL, D_FF), nn.Linear(D_FF, D_MODEL)

    def forward(self, x):
        batch, length, _ = x.shape
        heads = self.query_key_value(self.norm1(x)).view(batch, length, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(*heads).transpose(1, 2).reshape(batch, length, D_MODEL)
        x = x + self.output(mixed)
        return x + self.outer(F.gelu(self.inner(self.norm2(x))))


class Vit(nn.Module):
    def __init__(self):
        super().__init__()
        self.patches = nn.Conv2d(1, D_MODEL, PATCH, PATCH)
        self.class_token = nn.Parameter(torch.randn(1, 1, D_MODEL) * 0.02)
        self.positions = nn.Parameter(torch.randn(1, 1 + (28 // PATCH) ** 2, D_MODEL) * 0.02)
        self.layers = nn.Sequential(*(Layer() for _ in range(LAYERS)))
        self.norm, self.head = nn.LayerNorm(D_MODEL), nn.Linear(D_MODEL, 10)

    def forward(self, images):
        x = self.patches(images).flatten(2).transpose(1, 2)
        x = torch.cat([self.class_token.expand(len(x), 1, D_MODEL), x], 1) + self.positions
        return self.head(self.norm(self.layers(x))[:, 0])


torch.manual_seed(SEED)
torch.set_num_threads(2)
images, digits = (tensor[:-VALIDATION] for tensor in part("train"))
model = Vit()
optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, betas=(0.9, 0.98), eps=1e-8, weight_decay=0.05)
steps = EPOCHS * -(-len(images) // BATCH)
warmup, step = steps // 20, 0
for epoch in range(EPOCHS):
    total = 0.0
    for samples in torch.randperm(len(images)).split(BATCH):
        rise, fall = (step + 1) / warmup, 0.5 * (1 + math.cos(math.pi * (step - warmup) / (steps - warmup)))
        optimizer.param_groups[0]["lr"] = RATE * (rise if step < warmup else fall)
        loss = F.cross_entropy(model(normalized(augmented(images[samples]))), digits[samples], label_smoothing=SMOOTHING)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        step += 1
        total += loss.item() * len(samples)
    print(f"epoch {epoch + 1}/{EPOCHS}: loss {total / len(images):.4f}", file=sys.stderr, flush=True)
images, digits = part("t10k")
with torch.no_grad():
    right = sum((model(normalized(some)).argmax(1) == of).sum().item() for some, of in zip(images.split(250), digits.split(250)))
used = resource.getrusage(resource.RUSAGE_SELF)
print(f"{right} of {len(digits)} scans recognised, {100 * right / len(digits):.2f} %; {(used.ru_utime + used.ru_stime) / 60:.1f} minutes of CPU time")
