"""The loss of a detector's boxes and its gradients, by `transformers` with the weights of "Deformable DETR".

Usage: python make_detection.py [OUT_DIR], with scipy
"""

import sys
from pathlib import Path

import torch
from safetensors.torch import save_file
from transformers.loss.loss_deformable_detr import DeformableDetrHungarianMatcher, DeformableDetrImageLoss

OUT = (Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent) / "detection"
# Objects of each image; the second one has none.
OBJECTS = [3, 0, 1]
BOXES, CLASSES = 5, 4

generator = torch.Generator().manual_seed(7)
logits = torch.randn(len(OBJECTS), BOXES, CLASSES, generator=generator, requires_grad=True)
boxes = (torch.rand(len(OBJECTS), BOXES, 4, generator=generator) * 0.6 + 0.2).requires_grad_()
labels = [
    {
        "class_labels": torch.randint(0, CLASSES, [count], generator=generator),
        "boxes": torch.rand(count, 4, generator=generator) * 0.6 + 0.2,
    }
    for count in OBJECTS
]
matcher = DeformableDetrHungarianMatcher(class_cost=2, bbox_cost=5, giou_cost=2)
loss = DeformableDetrImageLoss(matcher, CLASSES, focal_alpha=0.25, losses=["labels", "boxes"])
parts = loss({"logits": logits, "pred_boxes": boxes}, labels)
value = 2 * parts["loss_ce"] + 5 * parts["loss_bbox"] + 2 * parts["loss_giou"]
value.backward()
OUT.mkdir(exist_ok=True)
values = {
    "logits": logits.detach(),
    "boxes": boxes.detach(),
    "classes": torch.cat([label["class_labels"] for label in labels]).to(torch.uint8),
    "expected": torch.cat([label["boxes"] for label in labels]),
    "loss": value.detach().reshape(1),
    "gradient.logits": logits.grad,
    "gradient.boxes": boxes.grad,
}
save_file({name: value.contiguous() for name, value in values.items()}, OUT / "values.safetensors")
(OUT / "values.safetensors").chmod(0o644)
print(parts)
