"""PyTorch as a contestant, as in `contestant.rs`: reads a task per line, as `protocol.rs` says, and does each in a separate process.

It goes on where `peers.py` ends, in one program. PyTorch is imported once; every task then runs in a fork, whose memory is its own.
"""

import importlib.metadata
import json
import platform


def tiny(kind, work):
    small = dict(work)
    if kind == "matmul":
        small["size"] //= 16
        return small
    if kind == "translation":
        small["batch"] = 2
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


def extra_peak_of_card(run):
    """The growth of the memory that the allocator has taken from the card, like the pages of pools in contestant.rs."""
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_reserved()
    run()
    return torch.cuda.max_memory_reserved() - before


def card():
    """The name of the CUDA device, if there is one. Asked in a fork: no fork of a process that has asked can use it."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            name = torch.cuda.get_device_name() if torch.cuda.is_available() else ""
            os.write(writer, name.encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        name = pipe.read()
    os.waitpid(child, 0)
    return name or None


def serve(task, lines):
    try:
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write("1000")
    except OSError:
        pass
    torch.set_num_threads(THREADS)
    ((kind, work),) = task["work"].items()
    subject, peak = SUBJECTS[kind], extra_peak
    if task["library"] in ON_CARD:
        if kind != "op":
            raise NotImplementedError("PyTorch is measured on a card with the operation only")
        backend = ON_CARD[task["library"]]
        subject, peak = lambda work: on_card(work, backend), extra_peak_of_card
    if task["goal"] == "memory":
        subject(tiny(kind, work))[0]()
        step, *_ = subject(work)
        print("ready", json.dumps(peak(step)), flush=True)
        next(lines)
        return
    if task["library"] == "pytorch compile":
        step, results, *note = decoding(work, compiled=True)
    elif task["library"] == "pytorch eager":
        step, results, *note = pretrained(work, attention="eager")
    else:
        step, results, *note = subject(work)
    start = time.perf_counter()
    found = results()
    seconds = time.perf_counter() - start
    digests = [digest(name, tensor) for name, tensor in found]
    for of in digests:
        if not math.isfinite(of["mean"]):
            raise ArithmeticError(f"{of['name']} has NaN or infinity")
    del found
    of_card = task["library"] in ON_CARD
    # The first call on a card is mostly loading.
    if seconds < LONG_SECONDS or of_card:
        start = time.perf_counter()
        seconds = step()
        while time.perf_counter() - start < WARM_UP_SECONDS:
            seconds = min(seconds, step())
    sample = GPU_SAMPLE_SECONDS if of_card else SAMPLE_SECONDS
    iterations = max(math.ceil(sample / seconds), 1)
    if of_card and iterations > 1:
        # Without waiting for each iteration.
        seconds = step(iterations) / iterations
        iterations = max(math.ceil(sample / seconds), 1)
    ready = {
        "iterations": iterations,
        "seconds": seconds,
        "results": digests,
        "note": note[0] if note else None,
    }
    print("ready", json.dumps(ready), flush=True)
    for line in lines:
        if line != "go":
            return
        total = step(iterations) if kind == "op" else sum(step() for _ in range(iterations))
        print(total / iterations, flush=True)


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
    try:
        transformers = importlib.metadata.version("transformers")
    except importlib.metadata.PackageNotFoundError:
        transformers = None
    said = {
        "version": torch.__version__,
        "instructions": torch.backends.cpu.get_cpu_capability(),
        "mkl": torch.backends.mkl.is_available(),
        "transformers": transformers,
        "python": platform.python_version(),
        "card": card(),
    }
    print(json.dumps(said), flush=True)
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
            print(f"failed with status {os.waitstatus_to_exitcode(exit_status)}", flush=True)


main()
