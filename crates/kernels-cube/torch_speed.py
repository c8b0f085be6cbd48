#!/usr/bin/env python3
"""TFLOP/s of PyTorch's scaled_dot_product_attention, forward and backward, by every kernel that it has: 16 heads of 4096 tokens, medians
of 5 rounds of 10. Needs a GPU and `pip install torch`; beside examples/speed.rs, on the same card."""
import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

HEADS, LEN = 16, 4096


def milliseconds(run):
    for _ in range(3):
        run()
    times = []
    for _ in range(5):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        for _ in range(10):
            run()
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end) / 10)
    return sorted(times)[2]


def speeds(query, key, value, upstream, causal):
    attend = lambda: F.scaled_dot_product_attention(query, key, value, is_causal=causal)
    with torch.no_grad():
        forward = milliseconds(attend)
    output = attend()
    tensors = (query, key, value)
    backward = milliseconds(lambda: torch.autograd.grad(output, tensors, upstream, retain_graph=True))
    operations = 4e-9 * query.shape[1] * LEN * LEN * query.shape[3] / (2 if causal else 1)
    return round(operations / forward, 1), round(2.5 * operations / backward, 1)


print(torch.__version__, torch.cuda.get_device_name())
for dtype in (torch.float32, torch.float16, torch.bfloat16):
    for dim in (64, 128):
        for causal in (False, True):
            new = lambda: torch.randn(1, HEADS, LEN, dim, device="cuda", dtype=dtype, requires_grad=True)
            tensors, upstream = (new(), new(), new()), new().detach()
            for backend in (SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.CUDNN_ATTENTION):
                try:
                    with sdpa_kernel(backend):
                        print(dtype, dim, "causal" if causal else "full", backend.name, *speeds(*tensors, upstream, causal))
                except RuntimeError:
                    # Not for this type.
                    pass
