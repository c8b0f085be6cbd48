"""PyTorch as a contestant: reads a task per line, as `protocol.rs` says, and does each in a process of its own.

PyTorch is imported once; every task then runs in a fork, whose memory is its own.
"""

import json
import math
import os
import sys
import time
import warnings

try:
    import torch
    import torch.nn.functional as F
except ImportError as error:
    print(f"failed {error}", flush=True)
    sys.exit()

# Of nested tensors that norm_first rules out.
warnings.filterwarnings("ignore", message="enable_nested_tensor")

THREADS = int(os.environ["OMP_NUM_THREADS"])
SAMPLE_SECONDS, LONG_SECONDS, WARM_UP_SECONDS = map(float, sys.argv[1:4])
SAMPLES = 64
MASK = 0xFFFFFFFF


# The generator, as in generator.rs.


def scrambled(seed, count):
    h = (torch.arange(count) * 0x1E3779B1 + seed * 0x05EBCA6B) & MASK
    h ^= h >> 15
    h = (h * 0x2C1B3C6D) & MASK
    h ^= h >> 12
    h = (h * 0x297A2D39) & MASK
    return h ^ (h >> 15)


def numbers(seed, shape, scale=1.0):
    h = scrambled(seed, math.prod(shape))
    return ((h >> 8).float() / 8388608.0 - 1.0).mul_(scale).view(shape)


def tokens(seed, shape, vocabulary):
    return (scrambled(seed, math.prod(shape)) % (vocabulary - 1) + 1).view(shape)


# The subjects. Each is a pair: step() -> seconds, results() -> [(name, tensor)].


def op(work):
    training = work["pass"] != "forward"
    batch, heads, heads_kv = work["batch"], work["heads"], work["heads_kv"]
    len_q, len_kv, dim = work["len_q"], work["len_kv"], work["dim"]
    dtype = {"f32": torch.float32, "bf16": torch.bfloat16}[work["precision"]]

    def tensor(seed, shape, scale=1.0):
        return numbers(seed, shape, scale).to(dtype).requires_grad_(training)

    query = tensor(1, (batch, heads, len_q, dim), 4.0)
    key = tensor(2, (batch, heads_kv, len_kv, dim))
    value = tensor(3, (batch, heads_kv, len_kv, dim))
    inputs = {"dquery": query, "dkey": key, "dvalue": value}
    gradient = numbers(4, (batch, heads, len_q, dim)).to(dtype)
    mask = None
    if work["key_lengths"] is not None:
        lengths = torch.tensor(work["key_lengths"])
        mask = (torch.arange(len_kv) < lengths[:, None]).view(batch, 1, 1, len_kv)
    if work["bias"]:
        mask = inputs["dbias"] = tensor(5, (1, heads, len_q, len_kv))
    if work["window"] is not None or work["softcap"] is not None:
        raise NotImplementedError("scaled_dot_product_attention has no window and no softcap")

    def forward():
        return F.scaled_dot_product_attention(
            query,
            key,
            value,
            attn_mask=mask,
            dropout_p=work["dropout"],
            is_causal=work["causal"],
            enable_gqa=heads != heads_kv,
        )

    def forget():
        for tensor in inputs.values():
            tensor.grad = None

    def step():
        start = time.perf_counter()
        output = forward()
        if work["pass"] == "backward":
            start = time.perf_counter()
        if training:
            (output * gradient).sum().backward()
        del output
        forget()
        return time.perf_counter() - start

    def results():
        output = forward()
        found = [("output", output.detach())]
        if training:
            (output * gradient).sum().backward()
            found += [(name, tensor.grad) for name, tensor in inputs.items()]
        forget()
        return found

    return step, results


def module(work):
    d_model, kind = work["d_model"], work["kind"]
    x = numbers(1, (work["batch"], work["len_q"], d_model)).requires_grad_()
    memory = numbers(2, (work["batch"], work["len_kv"], d_model)).requires_grad_()
    attention = torch.nn.MultiheadAttention(d_model, work["heads"], batch_first=True)
    with torch.no_grad():
        scale = float(torch.tensor(3.0 / d_model).sqrt())
        weights = [numbers(seed, (d_model, d_model), scale).T for seed in (11, 12, 13, 14)]
        biases = [numbers(seed, (d_model,), 0.125) for seed in (21, 22, 23, 24)]
        attention.in_proj_weight.copy_(torch.cat(weights[:3]))
        attention.in_proj_bias.copy_(torch.cat(biases[:3]))
        attention.out_proj.weight.copy_(weights[3])
        attention.out_proj.bias.copy_(biases[3])
    options = {"need_weights": False}
    if kind == "causal_self":
        mask = torch.nn.Transformer.generate_square_subsequent_mask(work["len_q"])
        options |= {"attn_mask": mask, "is_causal": True}
    other = memory if kind == "cross" else x

    def forward():
        return attention(x, other, other, **options)[0]

    def forget():
        attention.zero_grad(set_to_none=True)
        x.grad = memory.grad = None

    def step():
        start = time.perf_counter()
        forward().square().mean().backward()
        forget()
        return time.perf_counter() - start

    def results():
        output = forward()
        output.square().mean().backward()
        found = [("output", output.detach()), ("dinput", x.grad)]
        forget()
        return found

    return step, results


class Translator(torch.nn.Module):
    """nn.Transformer between sinusoidal positions and an embedding tied to the output."""

    def __init__(self, work):
        super().__init__()
        d_model = work["d_model"]
        self.embedding = torch.nn.Embedding(work["vocabulary"], d_model)
        torch.nn.init.normal_(self.embedding.weight, std=d_model**-0.5)
        position = torch.arange(work["len"])[:, None]
        rate = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model))
        angles = torch.stack([torch.sin(position * rate), torch.cos(position * rate)], dim=2)
        self.register_buffer("positions", angles.flatten(1))
        causal = torch.nn.Transformer.generate_square_subsequent_mask(work["len"])
        self.register_buffer("causal", causal)
        self.dropout = torch.nn.Dropout(work["dropout"])
        self.transformer = torch.nn.Transformer(
            d_model,
            work["heads"],
            work["layers"],
            work["layers"],
            4 * d_model,
            work["dropout"],
            activation="gelu",
            batch_first=True,
            norm_first=True,
        )

    def embed(self, tokens):
        scaled = self.embedding(tokens) * math.sqrt(self.embedding.embedding_dim)
        return self.dropout(scaled + self.positions)

    def forward(self, source, padding, target):
        states = self.transformer(
            self.embed(source),
            self.embed(target),
            tgt_mask=self.causal,
            src_key_padding_mask=padding,
            memory_key_padding_mask=padding,
            tgt_is_causal=True,
        )
        return states @ self.embedding.weight.T


def translation(work):
    batch, length = work["batch"], work["len"]
    half, steps = length // 2, max(batch - 1, 1)
    lengths = torch.tensor([half + item * (length - half) // steps for item in range(batch)])
    padding = torch.arange(length) >= lengths[:, None]

    def padded(seed):
        return tokens(seed, (batch, length), work["vocabulary"]).masked_fill(padding, 0)

    source, target, expected = padded(1), padded(2), padded(3).flatten()
    model = Translator(work).train()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)

    def step():
        start = time.perf_counter()
        logits = model(source, padding, target)
        F.cross_entropy(logits.flatten(0, 1), expected, ignore_index=0).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return time.perf_counter() - start

    def results():
        count = sum(parameter.numel() for parameter in model.parameters())
        return [("parameters", torch.tensor([float(count)]))]

    return step, results


def decoding(work):
    """What somebody writes who wants it fast: packed projections, and a cache that is written in place."""
    if work["context"] or work["window"] is not None:
        raise NotImplementedError("PyTorch decodes from the first token here, without a window")
    batch, length, d_model, heads = (work[k] for k in ("batch", "tokens", "d_model", "heads"))
    d_head = d_model // heads

    def linear(layer, seeds, d_input, d_output):
        scale = float(torch.tensor(3.0 / d_input).sqrt())
        weight = numbers(seeds[0] + 100 * layer, (d_input, d_output), scale)
        return weight.T, numbers(seeds[1] + 100 * layer, (d_output,), 0.125)

    layers = []
    for layer in range(work["layers"]):
        parts = [linear(layer, (11 + part, 21 + part), d_model, d_model) for part in range(4)]
        pairs = [
            (torch.cat([weight for weight, _ in parts[:3]]), torch.cat([b for _, b in parts[:3]])),
            parts[3],
            linear(layer, (15, 25), d_model, 4 * d_model),
            linear(layer, (16, 26), 4 * d_model, d_model),
        ]
        linears = []
        for weight, bias in pairs:
            module = torch.nn.Linear(weight.shape[1], weight.shape[0])
            module.weight.data.copy_(weight)
            module.bias.data.copy_(bias)
            linears.append(module)
        norms = [torch.nn.LayerNorm(d_model) for _ in range(2)]
        cache = [torch.zeros(batch, heads, length, d_head) for _ in range(2)]
        layers.append((*linears, *norms, *cache))
    x = numbers(1, (batch, length, d_model))

    def decode():
        with torch.inference_mode():
            for token in range(length):
                state = x[:, token : token + 1]
                for packed, output, inner, outer, norm_1, norm_2, keys, values in layers:
                    projected = packed(norm_1(state)).view(batch, 1, 3, heads, d_head)
                    query, key, value = projected.permute(2, 0, 3, 1, 4)
                    keys[:, :, token : token + 1] = key
                    values[:, :, token : token + 1] = value
                    context = F.scaled_dot_product_attention(
                        query, keys[:, :, : token + 1], values[:, :, : token + 1]
                    )
                    context = context.transpose(1, 2).reshape(batch, 1, d_model)
                    state = state + output(context)
                    state = state + outer(F.gelu(inner(norm_2(state))))
            return state

    def step():
        start = time.perf_counter()
        decode()
        return time.perf_counter() - start

    return step, lambda: [("state", decode())]


def pretrained(work):
    import transformers

    transformers.utils.logging.disable_progress_bar()
    classes = {
        "bert": transformers.AutoModel,
        "llama": transformers.AutoModelForCausalLM,
        "t5": transformers.AutoModelForSeq2SeqLM,
    }
    model = classes[work["family"]].from_pretrained(work["folder"], attn_implementation="eager")
    read = tokens(1, (work["batch"], work["len"]), work["vocabulary"])
    count = work["tokens"]
    if count:
        model.generation_config.eos_token_id = None

    def run():
        with torch.inference_mode():
            if not count:
                return model(read).last_hidden_state
            mask = torch.ones_like(read)
            found = model.generate(read, attention_mask=mask, max_new_tokens=count, do_sample=False)
            return found[:, -count:]

    def step():
        start = time.perf_counter()
        run()
        return time.perf_counter() - start

    return step, lambda: [("tokens" if count else "states", run())]


def sgemm(size):
    a, b = numbers(1, (size, size)), numbers(2, (size, size))

    def step():
        start = time.perf_counter()
        torch.mm(a, b)
        return time.perf_counter() - start

    return step, lambda: []


SUBJECTS = {
    "op": op,
    "module": module,
    "translation": translation,
    "decoding": decoding,
    "pretrained": pretrained,
    "sgemm": sgemm,
}


# Serving, as in contestant.rs.


def tiny(kind, work):
    if kind == "sgemm":
        return work // 16
    small = dict(work)
    if kind == "translation":
        small["batch"] = 2
        return small
    if kind == "decoding":
        small["tokens"] = 2
        return small
    for length in ("len_q", "len_kv"):
        small[length] = min(small[length], 16)
    if small.get("key_lengths") is not None:
        small["key_lengths"] = [min(small["len_kv"], length) for length in small["key_lengths"]]
    return small


def status(field):
    with open("/proc/self/status") as file:
        for line in file:
            if line.startswith(field):
                return int(line.split()[1]) * 1024


def extra_peak(run):
    try:
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")
        before = status("VmRSS:")
    except OSError:
        return None
    run()
    return max(status("VmHWM:") - before, 0)


def digest(name, tensor):
    values = tensor.double().flatten()
    apart = max(-(-len(values) // SAMPLES), 1)
    return {
        "name": name,
        "mean": float(values.abs().mean()),
        "largest": float(values.abs().max()),
        "samples": values[::apart].tolist(),
    }


def serve(task, lines):
    try:
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write("1000")
    except OSError:
        pass
    torch.set_num_threads(THREADS)
    ((kind, work),) = task["work"].items()
    if task["goal"] == "memory":
        SUBJECTS[kind](tiny(kind, work))[0]()
        step, _ = SUBJECTS[kind](work)
        print("ready", json.dumps(extra_peak(step)), flush=True)
        next(lines)
        return
    step, results = SUBJECTS[kind](work)
    start = time.perf_counter()
    found = results()
    seconds = time.perf_counter() - start
    digests = [digest(name, tensor) for name, tensor in found]
    del found
    if seconds < LONG_SECONDS:
        start = time.perf_counter()
        seconds = step()
        while time.perf_counter() - start < WARM_UP_SECONDS:
            seconds = min(seconds, step())
    iterations = max(math.ceil(SAMPLE_SECONDS / seconds), 1)
    ready = {
        "iterations": iterations,
        "seconds": seconds,
        "results": digests,
    }
    print("ready", json.dumps(ready), flush=True)
    for line in lines:
        if line != "go":
            return
        print(sum(step() for _ in range(iterations)) / iterations, flush=True)


def read_lines():
    """Byte by byte: what one fork reads ahead would be lost to the next."""
    while True:
        line = bytearray()
        while (byte := os.read(0, 1)) not in (b"", b"\n"):
            line += byte
        if not byte:
            return
        yield line.decode()


def main():
    print(f"torch {torch.__version__} ({torch.backends.cpu.get_cpu_capability()})", flush=True)
    for line in read_lines():
        if line == "end":
            continue  # of a contestant that has failed
        child = os.fork()
        if child == 0:
            try:
                serve(json.loads(line), read_lines())
            except Exception as error:
                print("failed", str(error).replace("\n", " "), flush=True)
            os._exit(0)
        _, exit_status = os.waitpid(child, 0)
        if exit_status != 0:
            print(f"failed with status {exit_status}", flush=True)


main()
