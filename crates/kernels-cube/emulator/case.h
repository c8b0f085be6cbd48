// A call of a kernel: its tensors (inputs.cpp), and its results in double precision (reference.cpp).
#pragma once
#include "runtime.h"
#include <string>
#include <vector>

enum Pass { FORWARD, QUERY, KEY_AND_VALUE, BIAS };
enum Type { F16, BF16, F32, I32 };

// No limit to the keys before or after a query.
constexpr int UNLIMITED = INT32_MAX / 4;
// Queries and keys of a block that is visible or not.
constexpr int BLOCK = 64;

struct Case {
    Pass pass;
    Type type;
    std::string option;
    int queries, keys, dim_qk, dim_v;
    bool is_causal = false;
    int left = UNLIMITED, right = UNLIMITED;
    // [batch, length, heads, dim] in memory.
    bool heads_are_inner = false;
    // Standard deviations.
    double size = 1, gradient_size = 1;
    int batch = 2, heads = 4, key_heads = 2;
    // Heads whose queries share a tile.
    int heads_of_tile = 1;
    // Queries and keys of a tile.
    int tile_queries = 0, tile_keys = 0;
    // Blocks that share a tile, each with a part of the other side, and write what they have of its results.
    int splits = 1;

    std::string description() const;
};

using Numbers = std::vector<double>;
using Integers = std::vector<int>;

struct Tensor {
    std::string name;
    Type type;
    std::vector<int> shape, strides;
    char *data;

    size_t bytes_of_number() const { return type == F16 || type == BF16 ? 2 : 4; }
    size_t count() const;
    // Number `index` of the tensor in the order of its indices.
    char *at(size_t index) const;
    double get(size_t index) const;
    void set(size_t index, double number) const;
};
// Filled with NaN. If `heads_are_inner`, the heads of a position lie one behind the other.
Tensor make_tensor(const char *name, Type type, std::vector<int> shape, bool is_result, bool heads_are_inner = false);

// All numbers in the order of their indices, rounded as the kernel gets them, and the kernel's tensors.
struct Inputs {
    Numbers query, key, value, output_gradient, bias, distance_bias, sinks;
    Integers masked, visible_blocks, key_lengths, first_keys, query_offsets, segments;
    float scale, cap = 1, kept_factor = 1;
    uint32_t dropout_seed[2] = {}, dropout_threshold = 0;
    // As the kernel is given them. Statistics of backward passes are in the fifth, and to be filled.
    std::vector<Tensor> tensors;
};
Inputs make_inputs(const Case &of);

// Mixes the bits of a number, as the kernels' dropout does.
uint32_t mixed(uint32_t number, uint32_t added);
// Takes a seed to that of an item of it.
void descend(uint32_t seed[2], uint32_t item);

struct Reference {
    Numbers output, logsumexp, delta, query_gradient, key_gradient, value_gradient, bias_gradient;
};
Reference make_reference(const Case &of, const Inputs &inputs);
