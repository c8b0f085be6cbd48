// Tensors, and random inputs of a case.
#include "case.h"
#include "cuda.h"
#include <algorithm>
#include <functional>
#include <random>
#include <set>

size_t Tensor::count() const {
    size_t numbers = 1;
    for (int size : shape) numbers *= size;
    return numbers;
}

char *Tensor::at(size_t index) const {
    size_t offset = 0;
    for (size_t axis = shape.size(); axis-- > 0;) {
        offset += index % shape[axis] * strides[axis];
        index /= shape[axis];
    }
    return data + offset * bytes_of_number();
}

double Tensor::get(size_t index) const {
    char *number = at(index);
    if (type == F16) return *reinterpret_cast<__half *>(number);
    if (type == BF16) return *reinterpret_cast<__nv_bfloat16 *>(number);
    if (type == F32) return *reinterpret_cast<float *>(number);
    return *reinterpret_cast<int *>(number);
}

void Tensor::set(size_t index, double to) const {
    char *number = at(index);
    float rounded = static_cast<float>(to);
    if (type == F16) *reinterpret_cast<__half *>(number) = rounded;
    if (type == BF16) *reinterpret_cast<__nv_bfloat16 *>(number) = rounded;
    if (type == F32) *reinterpret_cast<float *>(number) = rounded;
    if (type == I32) *reinterpret_cast<int *>(number) = static_cast<int>(to);
}

Tensor make_tensor(const char *name, Type type, std::vector<int> shape, bool is_result, bool heads_are_inner) {
    Tensor tensor{name, type, shape, std::vector<int>(shape.size(), 1), nullptr};
    for (size_t axis = shape.size() - 1; axis-- > 0;) tensor.strides[axis] = tensor.strides[axis + 1] * shape[axis + 1];
    if (heads_are_inner) tensor.strides = {tensor.strides[0], shape[3], shape[1] * shape[3], 1};
    tensor.data = emulator::allocate(tensor.count() * tensor.bytes_of_number(), name, is_result);
    return tensor;
}

uint32_t mixed(uint32_t number, uint32_t added) {
    number ^= number >> 17;
    number = number * 0xed5ad4bb + added;
    number ^= number >> 11;
    number *= 0xac4c1b51;
    number ^= number >> 15;
    number *= 0x31848bab;
    return number ^ number >> 14;
}

void descend(uint32_t seed[2], uint32_t item) {
    seed[0] = mixed(seed[0] ^ item, 0);
    seed[1] = mixed(seed[1] + seed[0], 0);
}

// Fills tensors from one stream of random numbers.
struct Filler {
    const Case &of;
    std::vector<Tensor> &tensors;
    std::mt19937_64 random{1};
    std::normal_distribution<double> normal{};

    Numbers fill(Tensor tensor, const std::function<double(int)> &number) {
        Numbers filled(tensor.count());
        for (size_t i = 0; i < filled.size(); i++) {
            tensor.set(i, number(static_cast<int>(i)));
            filled[i] = tensor.get(i);
        }
        tensors.push_back(tensor);
        return filled;
    }

    Numbers rows(const char *name, int heads, int length, int dim, double size) {
        Tensor tensor = make_tensor(name, of.type, {of.batch, heads, length, dim}, false, of.heads_are_inner);
        return fill(tensor, [&](int) { return size * normal(random); });
    }

    // A part of the numbers hides what they are added to.
    Numbers floats(const char *name, std::vector<int> shape, double hidden) {
        return fill(make_tensor(name, F32, shape, false), [&](int) {
            double number = normal(random);
            return random() % 1000 < 1000 * hidden ? -INFINITY : number;
        });
    }

    Integers integers(const char *name, std::vector<int> shape, const std::function<int(int)> &number) {
        Numbers filled = fill(make_tensor(name, I32, shape, false), number);
        return Integers(filled.begin(), filled.end());
    }

    int below(int end) { return static_cast<int>(random() % end); }
};

static int count_of(int length, int size) { return (length + size - 1) / size; }

// Of a tile, counted through all heads: 1 if all of its pairs are visible by the table, 2 if none is, 3 if some are.
static int kind(const Case &of, const Integers &visible_blocks, int tile) {
    const int high = count_of(of.queries, of.tile_queries), wide = count_of(of.keys, of.tile_keys);
    const int head = tile / wide / high, first_query = tile / wide % high * of.tile_queries;
    const int first_key = tile % wide * of.tile_keys;
    int kind = 0;
    for (int query = first_query; query < std::min(first_query + of.tile_queries, of.queries); query++) {
        for (int key = first_key; key < std::min(first_key + of.tile_keys, of.keys); key++) {
            int row = head * count_of(of.queries, BLOCK) + query / BLOCK;
            kind |= visible_blocks[row * count_of(of.keys, BLOCK) + key / BLOCK] ? 1 : 2;
        }
    }
    return kind;
}

static const std::set<std::string> CHANGES_NO_INPUT = {"heads", "many_heads", "splits", "value", "delta", "small"};

static void fill_option(const Case &of, Filler &filler, Inputs &into) {
    const std::string &option = of.option;
    const int queries = of.queries, keys = of.keys, length = queries + keys;
    if (option == "broadcast_bias") {
        into.bias = filler.floats("bias", {1, 1, 1, keys}, 0.1);
        filler.tensors.back().shape = {of.batch, of.heads, queries, keys};
        filler.tensors.back().strides = {0, 0, 0, 1};
    } else if (option == "bias") {
        into.bias = filler.floats("bias", {of.batch, of.heads, queries, keys}, 0.1);
    } else if (option == "distances") {
        into.distance_bias = filler.floats("distance bias", {of.heads, length - 1}, 0.05);
    } else if (option == "mask") {
        auto masked = [&](int) { return filler.below(3) == 0; };
        into.masked = filler.integers("mask", {of.batch, of.heads, queries, keys}, masked);
    } else if (option == "blocks" || option == "kinds") {
        std::vector<int> shape = {of.batch, of.heads, count_of(queries, BLOCK), count_of(keys, BLOCK)};
        into.visible_blocks = filler.integers("visible blocks", shape, [&](int) { return filler.below(2); });
        if (option == "kinds") {
            shape = {of.batch, of.heads, count_of(queries, of.tile_queries), count_of(keys, of.tile_keys)};
            filler.integers("kinds of tiles", shape, [&](int tile) { return kind(of, into.visible_blocks, tile); });
        }
    } else if (option == "lengths") {
        into.key_lengths = filler.integers("key lengths", {of.batch}, [&](int i) { return i == 0 ? keys * 2 / 3 : 3; });
        // No result may depend on what is hidden. The reference does not look at it.
        for (const Tensor &tensor : {filler.tensors[1], filler.tensors[2]}) {
            const size_t row = tensor.shape[3], head = row * keys;
            for (size_t i = 0; i < tensor.count(); i++) {
                int batch = static_cast<int>(i / head / of.key_heads), key = static_cast<int>(i % head / row);
                if (key >= into.key_lengths[batch]) tensor.set(i, NAN);
            }
        }
    } else if (option == "first_keys") {
        into.first_keys = filler.integers("first keys", {of.batch}, [](int i) { return i == 0 ? 5 : 41; });
    } else if (option == "offsets") {
        auto offset = [&](int i) { return i == 0 ? 11 : keys - queries - 7; };
        into.query_offsets = filler.integers("query offsets", {of.batch}, offset);
    } else if (option == "segments") {
        into.segments = filler.integers("segments", {of.batch, length}, [&](int i) {
            int at = i % length;
            return at < queries ? at * 3 / queries : (at - queries) * 3 / keys;
        });
    } else if (option == "softcap") {
        into.cap = 3;
    } else if (option == "dropout") {
        const double probability = 0.25;
        into.kept_factor = static_cast<float>(1 / (1 - probability));
        into.dropout_threshold = static_cast<uint32_t>(probability * (1u << 31));
        into.dropout_seed[0] = 0x243f6a88;
        into.dropout_seed[1] = 0x85a308d3;
    } else if (option == "sinks" && of.pass == FORWARD) {
        into.sinks = filler.floats("sinks", {of.heads}, 0);
    } else if (option == "sinks") {
        // Backward passes know of sinks only by the logsumexp.
        for (int i = 0; i < of.heads; i++) into.sinks.push_back(filler.normal(filler.random));
    } else if (!option.empty() && !CHANGES_NO_INPUT.contains(option)) {
        emulator::report("an option that the reference does not know", option);
    }
}

Inputs make_inputs(const Case &of) {
    emulator::free_all();
    Inputs inputs;
    inputs.scale = static_cast<float>(1 / std::sqrt(of.dim_qk));
    Filler filler{of, inputs.tensors};
    inputs.query = filler.rows("query", of.heads, of.queries, of.dim_qk, of.size);
    inputs.key = filler.rows("key", of.key_heads, of.keys, of.dim_qk, of.size);
    inputs.value = filler.rows("value", of.key_heads, of.keys, of.dim_v, of.size);
    if (of.pass != FORWARD) {
        inputs.output_gradient = filler.rows("output gradient", of.heads, of.queries, of.dim_v, of.gradient_size);
        inputs.tensors.push_back(make_tensor("statistics", F32, {2, of.batch, of.heads, of.queries}, false));
    }
    fill_option(of, filler, inputs);
    // No result may depend on a query that sees no key, or on the gradient of its output. The reference does not look at them.
    const bool is_mask_alone = of.option.empty() || of.option == "lengths" || of.option == "small";
    if (is_mask_alone && of.is_causal && of.left == UNLIMITED && of.queries > of.keys) {
        std::vector<Tensor> rows = {filler.tensors[0]};
        if (of.pass != FORWARD) rows.push_back(filler.tensors[3]);
        for (const Tensor &tensor : rows) {
            const size_t row = tensor.shape[3];
            for (size_t i = 0; i < tensor.count(); i++) {
                if (static_cast<int>(i / row % of.queries) < of.queries - of.keys) tensor.set(i, NAN);
            }
        }
    }
    return inputs;
}
