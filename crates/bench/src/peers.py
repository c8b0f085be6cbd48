"""PyTorch as a contestant: the same inputs, and the works. `contestant.py`, which is the rest of this program, serves the parent."""

import contextlib
import math
import os
import signal
import sys
import time
import warnings

# Compiled in this process, which is a fork: a pool of others would outlive it.
os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"

try:
    import torch
    import torch.nn.functional as F
    from torch.nn.attention import SDPBackend, sdpa_kernel
except ImportError as error:
    print(f"failed {error}", flush=True)
    sys.exit()

# The warning is about nested tensors, which norm_first rules out.
warnings.filterwarnings("ignore", message="enable_nested_tensor")

THREADS = int(os.environ["OMP_NUM_THREADS"])
SAMPLE_SECONDS, LONG_SECONDS, WARM_UP_SECONDS, GPU_SAMPLE_SECONDS = map(float, sys.argv[1:5])
SAMPLES = 256
# What torch.compile may take.
COMPILE_SECONDS = 120
MASK = 0xFFFFFFFF
# Contexts that end with the process.
HELD = contextlib.ExitStack()
DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}


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


# As in digest.rs.


def digest(name, tensor):
    values = tensor.cpu().double().flatten()
    count = len(values)
    apart = count * 618 // 1000
    while math.gcd(count, apart) > 1:
        apart += 1
    places = count - 1 - torch.arange(min(count, SAMPLES)) * apart % max(count, 1)
    return {
        "name": name,
        "count": count,
        "mean": float(values.abs().mean()),
        "largest": float(values.abs().max()),
        "root_mean_square": float(values.square().mean().sqrt()),
        "samples": values[places].tolist(),
    }


# The parameters, as in parameters.rs: numbers of a seed that says which. Weights are [input, output].


def linear(layer, seeds, d_input, d_output):
    scale = float(torch.tensor(3.0 / d_input).sqrt())
    weight = numbers(seeds[0] + 100 * layer, (d_input, d_output), scale)
    return weight, numbers(seeds[1] + 100 * layer, (d_output,), 0.125)


def assign_linear(module, layer, seeds):
    weight, bias = linear(layer, seeds, module.in_features, module.out_features)
    with torch.no_grad():
        module.weight.copy_(weight.T)
        module.bias.copy_(bias)


def assign_attention(module, layer):
    d_model = module.embed_dim
    parts = [linear(layer, (11 + part, 21 + part), d_model, d_model) for part in range(3)]
    with torch.no_grad():
        module.in_proj_weight.copy_(torch.cat([weight.T for weight, _ in parts]))
        module.in_proj_bias.copy_(torch.cat([bias for _, bias in parts]))
    assign_linear(module.out_proj, layer, (14, 24))


# Their gradients in the same order: one result for the weights of a layer, one for its biases, and so on.


def joined(tensors):
    return torch.cat([tensor.flatten() for tensor in tensors])


def attention_gradients(module):
    weights = [*module.in_proj_weight.grad.chunk(3), module.out_proj.weight.grad]
    return [weight.T for weight in weights], [module.in_proj_bias.grad, module.out_proj.bias.grad]


def layer_gradients(layer, linears, attention=None, norms=()):
    weights, biases = attention_gradients(attention) if attention else ([], [])
    weights += [module.weight.grad.T for module in linears]
    biases += [module.bias.grad for module in linears]
    found = []
    if weights:
        found += [(f"dweights {layer}", joined(weights)), (f"dbiases {layer}", joined(biases))]
    if norms:
        gradients = [norm.weight.grad for norm in norms] + [norm.bias.grad for norm in norms]
        found.append((f"dnorms {layer}", joined(gradients)))
    return found


def timed(run):
    """How long a call takes (seconds)."""
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


# The subjects. Each is step() -> seconds, results() -> [(name, tensor)], and if there is something to be said of how
# it computes, that.


def chosen(*inputs, **options):
    """The implementation that scaled_dot_product_attention takes."""
    return SDPBackend(torch._fused_sdp_choice(*inputs, **options))


def has_bf16():
    """Whether the processor has instructions for bf16: AVX-512 BF16, AMX, or those of ARM."""
    checks = ("_is_avx512_bf16_supported", "_is_amx_tile_supported")
    if any(hasattr(torch.cpu, check) and getattr(torch.cpu, check)() for check in checks):
        return True
    try:
        with open("/proc/cpuinfo") as file:
            return not {"avx512_bf16", "amx_bf16", "bf16"}.isdisjoint(file.read().split())
    except OSError:
        return False


def op(work, device="cpu", only=None):
    """By the implementation `only`, or by that of PyTorch's choice."""
    training = work["pass"] != "forward"
    batch, heads, heads_kv = work["batch"], work["heads"], work["heads_kv"]
    len_q, len_kv, dim = work["len_q"], work["len_kv"], work["dim"]
    dtype = DTYPES[work["precision"]]

    def tensor(seed, shape, scale=1.0):
        return numbers(seed, shape, scale).to(device, dtype).requires_grad_(training)

    query = tensor(1, (batch, heads, len_q, dim), 4.0)
    key = tensor(2, (batch, heads_kv, len_kv, dim))
    value = tensor(3, (batch, heads_kv, len_kv, dim))
    inputs = {"dquery": query, "dkey": key, "dvalue": value}
    gradient = numbers(4, (batch, heads, len_q, dim)).to(device, dtype)
    mask = None
    if work["key_lengths"] is not None:
        lengths = torch.tensor(work["key_lengths"], device=device)
        mask = torch.arange(len_kv, device=device) < lengths[:, None]
        mask = mask.view(batch, 1, 1, len_kv)
    if work["bias"]:
        mask = inputs["dbias"] = tensor(5, (1, heads, len_q, len_kv))
    notes = []
    if work["window"] is not None:
        # The last query is at the last key.
        behind = torch.arange(len_q)[:, None] + (len_kv - len_q) - torch.arange(len_kv)
        mask = ((behind >= 0) & (behind <= work["window"])).to(device)
        notes.append("dense mask")
    if sum([work["key_lengths"] is not None, work["bias"], work["window"] is not None]) > 1:
        raise NotImplementedError("PyTorch is measured with one mask at a time")
    if work["softcap"] is not None:
        raise NotImplementedError("scaled_dot_product_attention has no softcap")

    options = {
        "attn_mask": mask,
        "dropout_p": work["dropout"],
        "is_causal": work["causal"],
        "enable_gqa": heads != heads_kv,
    }

    if only is not None:
        # For as long as this process lives, which has no other task.
        HELD.enter_context(sdpa_kernel(only))

    def forward():
        return F.scaled_dot_product_attention(query, key, value, **options)

    def forget():
        for tensor in inputs.values():
            tensor.grad = None

    def wait():
        """A card answers before it has computed."""
        if device == "cuda":
            torch.cuda.synchronize()

    def backward():
        output = forward()
        wait()
        start = time.perf_counter()
        (output * gradient).sum().backward()
        wait()
        del output
        forget()
        return time.perf_counter() - start

    def step(count=1):
        """So many iterations; a card is given all of them, and waited for once."""
        if work["pass"] == "backward":
            return sum(backward() for _ in range(count))
        start = time.perf_counter()
        for _ in range(count):
            output = forward()
            if training:
                (output * gradient).sum().backward()
            del output
            forget()
        wait()
        return time.perf_counter() - start

    def results():
        output = forward()
        found = [("output", output.detach())]
        if training:
            (output * gradient).sum().backward()
            found += [(name, tensor.grad) for name, tensor in inputs.items()]
        forget()
        return found

    backend = chosen(query, key, value, **options)
    if device == "cuda" and only is None:
        notes.append(backend.name.lower().replace("_", " "))
    elif device == "cpu" and backend != SDPBackend.FLASH_ATTENTION:
        notes.append("off its flash kernel")
    if device == "cpu" and dtype == torch.bfloat16 and not has_bf16():
        notes.append("bf16 emulated")
    return step, results, ", ".join(notes) or None


def on_card(work, backend):
    """The operation on a CUDA device; products of f32 are not TF32's, but for fused attention, which makes them of several."""
    torch.backends.cuda.matmul.allow_tf32 = False
    return op(work, "cuda", backend)


# PyTorch's implementations there; `None` stands for that of its choice.
ON_CARD = {
    "pytorch cuda": None,
    "pytorch flash": SDPBackend.FLASH_ATTENTION,
    "pytorch efficient": SDPBackend.EFFICIENT_ATTENTION,
    "pytorch cudnn": SDPBackend.CUDNN_ATTENTION,
}


def module(work):
    d_model, kind = work["d_model"], work["kind"]
    x = numbers(1, (work["batch"], work["len_q"], d_model)).requires_grad_()
    memory = numbers(2, (work["batch"], work["len_kv"], d_model)).requires_grad_()
    attention = torch.nn.MultiheadAttention(d_model, work["heads"], batch_first=True)
    assign_attention(attention, 0)
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

    def train():
        forward().square().mean().backward()
        forget()

    def results():
        output = forward()
        output.square().mean().backward()
        found = [("output", output.detach()), ("dinput", x.grad)]
        if kind == "cross":
            found.append(("dmemory", memory.grad))
        found += layer_gradients(0, [], attention)
        forget()
        return found

    return lambda: timed(train), results


class Translator(torch.nn.Module):
    """nn.Transformer between sinusoidal positions and an embedding tied to the output."""

    def __init__(self, work):
        super().__init__()
        d_model = work["d_model"]
        self.embedding = torch.nn.Embedding(work["vocabulary"], d_model)
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
        with torch.no_grad():
            scale = float(torch.tensor(3.0 / d_model).sqrt())
            self.embedding.weight.copy_(numbers(51, self.embedding.weight.shape, scale))
        for number, layer in enumerate(self.layers()):
            assign_attention(layer.self_attn, number)
            assign_linear(layer.linear1, number, (15, 25))
            assign_linear(layer.linear2, number, (16, 26))
        for number, layer in enumerate(self.transformer.decoder.layers):
            assign_attention(layer.multihead_attn, 2 * work["layers"] + number)

    def layers(self):
        return [*self.transformer.encoder.layers, *self.transformer.decoder.layers]

    def gradients(self):
        """In the order of subjects/translation.rs."""
        encoder, decoder = self.transformer.encoder, self.transformer.decoder
        found = [("dembedding 0", self.embedding.weight.grad)]
        for number, layer in enumerate(self.layers()):
            # In a decoder layer the second norm is that before cross-attention.
            norms = [layer.norm1, layer.norm2, *([layer.norm3] if hasattr(layer, "norm3") else [])]
            found += layer_gradients(number, [layer.linear1, layer.linear2], layer.self_attn, norms)
        count = len(decoder.layers)
        for number, layer in enumerate(decoder.layers):
            found += layer_gradients(2 * count + number, [], layer.multihead_attn)
        for number, stack in enumerate((encoder, decoder)):
            found += layer_gradients(3 * count + number, [], None, [stack.norm])
        return found

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
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, fused=True)

    def loss_of(model):
        logits = model(source, padding, target)
        return F.cross_entropy(logits.flatten(0, 1), expected, ignore_index=0)

    def train():
        loss_of(model).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    def results():
        # Without dropout, for which every library draws other random numbers.
        calm = Translator(work | {"dropout": 0.0}).train()
        loss = loss_of(calm)
        loss.backward()
        return [("loss", loss.detach()), *calm.gradients()]

    return lambda: timed(train), results


def decoding(work, compiled=False):
    """Fast decoding by hand: packed projections, and a cache that is written in place."""
    if work["context"] or work["window"] is not None:
        raise NotImplementedError("PyTorch decodes from the first token here, without a window")
    batch, length, d_model, heads = (work[k] for k in ("batch", "tokens", "d_model", "heads"))
    d_head = d_model // heads

    def module(layer, *seeds, sizes):
        parts = [linear(layer, pair, *sizes) for pair in seeds]
        module = torch.nn.Linear(sizes[0], sizes[1] * len(parts))
        module.weight.data.copy_(torch.cat([weight.T for weight, _ in parts]))
        module.bias.data.copy_(torch.cat([bias for _, bias in parts]))
        return module

    layers = []
    for layer in range(work["layers"]):
        linears = [
            module(layer, (11, 21), (12, 22), (13, 23), sizes=(d_model, d_model)),
            module(layer, (14, 24), sizes=(d_model, d_model)),
            module(layer, (15, 25), sizes=(d_model, 4 * d_model)),
            module(layer, (16, 26), sizes=(4 * d_model, d_model)),
        ]
        norms = [torch.nn.LayerNorm(d_model) for _ in range(2)]
        cache = [torch.zeros(batch, heads, length, d_head) for _ in range(2)]
        layers.append((*linears, *norms, *cache))
    x = numbers(1, (batch, length, d_model))

    def one(state, token):
        for packed, output, inner, outer, norm_1, norm_2, keys, values in layers:
            projected = packed(norm_1(state)).view(batch, 1, 3, heads, d_head)
            query, key, value = projected.permute(2, 0, 3, 1, 4)
            keys[:, :, token : token + 1] = key
            values[:, :, token : token + 1] = value
            mixed = F.scaled_dot_product_attention(
                query, keys[:, :, : token + 1], values[:, :, : token + 1]
            )
            mixed = mixed.transpose(1, 2).reshape(batch, 1, d_model)
            state = state + output(mixed)
            state = state + outer(F.gelu(inner(norm_2(state))))
        return state

    # One program for all lengths.
    one_token = torch.compile(one, fullgraph=True, dynamic=True) if compiled else one

    def decode():
        with torch.inference_mode():
            for token in range(length):
                state = one_token(x[:, token : token + 1], token)
            return state

    if compiled:

        def too_long(*_):
            raise TimeoutError(f"torch.compile takes longer than {COMPILE_SECONDS} s")

        signal.signal(signal.SIGALRM, too_long)
        signal.alarm(COMPILE_SECONDS)
        decode()
        signal.alarm(0)
    return lambda: timed(decode), lambda: [("state", decode())]


def pretrained(work, attention=None):
    import transformers

    transformers.utils.logging.disable_progress_bar()
    classes = {
        "bert": transformers.AutoModel,
        "llama": transformers.AutoModelForCausalLM,
        "t5": transformers.AutoModelForSeq2SeqLM,
    }
    options = {"attn_implementation": attention} if attention else {}
    model = classes[work["family"]].from_pretrained(work["folder"], **options)
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

    chosen = None if attention else model.config._attn_implementation
    return lambda: timed(run), lambda: [("tokens" if count else "states", run())], chosen


def matmul(work):
    shape = (work["size"], work["size"])
    a, b = (numbers(seed, shape).to(DTYPES[work["precision"]]) for seed in (1, 2))
    return lambda: timed(lambda: torch.mm(a, b)), lambda: []


SUBJECTS = {
    "op": op,
    "module": module,
    "translation": translation,
    "decoding": decoding,
    "pretrained": pretrained,
    "matmul": matmul,
}
