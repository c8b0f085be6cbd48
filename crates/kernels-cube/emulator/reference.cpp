// Attention and its gradients in double precision, by definition.
#include "case.h"
#include <algorithm>
#include <cmath>

namespace {

// A query of a head, and where the rows of its operands and results are.
struct Row {
    const Case &of;
    const Inputs &inputs;
    int batch, head, query;

    size_t row() const { return (static_cast<size_t>(batch) * of.heads + head) * of.queries + query; }
    size_t key_row(int key) const {
        int key_head = head / (of.heads / of.key_heads);
        return (static_cast<size_t>(batch) * of.key_heads + key_head) * of.keys + key;
    }
    // Which key is beside the query.
    int position() const {
        if (inputs.query_offsets.empty()) return query + of.keys - of.queries;
        return query + std::clamp(inputs.query_offsets[batch], -of.queries, of.keys);
    }

    bool is_hidden(int key) const {
        int right = of.is_causal ? 0 : of.right;
        bool is_outside = key < position() - of.left || key > position() + right;
        if (!inputs.first_keys.empty() && key < inputs.first_keys[batch]) is_outside = false;
        if (is_outside) return true;
        if (!inputs.key_lengths.empty() && key >= inputs.key_lengths[batch]) return true;
        if (!inputs.masked.empty() && inputs.masked[row() * of.keys + key]) return true;
        if (!inputs.segments.empty()) {
            const int *segments = &inputs.segments[batch * (of.queries + of.keys)];
            if (segments[query] != segments[of.queries + key]) return true;
        }
        if (!inputs.visible_blocks.empty()) {
            int high = (of.queries + BLOCK - 1) / BLOCK, wide = (of.keys + BLOCK - 1) / BLOCK;
            int block = ((batch * of.heads + head) * high + query / BLOCK) * wide + key / BLOCK;
            if (!inputs.visible_blocks[block]) return true;
        }
        return false;
    }

    double bias(int key) const {
        double bias = 0;
        if (of.option == "broadcast_bias") bias += inputs.bias[key];
        if (of.option == "bias") bias += inputs.bias[row() * of.keys + key];
        if (!inputs.distance_bias.empty()) {
            bias += inputs.distance_bias[head * (of.queries + of.keys - 1) + query - key + of.keys - 1];
        }
        return bias;
    }

    std::vector<bool> dropped() const {
        std::vector<bool> dropped(of.keys);
        uint32_t seed[2] = {inputs.dropout_seed[0], inputs.dropout_seed[1]};
        for (int item : {batch, head, query}) descend(seed, item);
        for (int key = 0; key < of.keys; key++) {
            dropped[key] = mixed(key ^ seed[0], seed[1]) >> 1 < inputs.dropout_threshold;
        }
        return dropped;
    }
};

double dot(const double *a, const double *b, int count) {
    double sum = 0;
    for (int i = 0; i < count; i++) sum += a[i] * b[i];
    return sum;
}

void add(double factor, const double *row, double *into, int count) {
    for (int i = 0; i < count; i++) into[i] += factor * row[i];
}

void add_row(const Row &row, Reference &into) {
    const Case &of = row.of;
    const Inputs &inputs = row.inputs;
    const double *query = &inputs.query[row.row() * of.dim_qk];
    auto key_at = [&](int key) { return &inputs.key[row.key_row(key) * of.dim_qk]; };
    auto value_at = [&](int key) { return &inputs.value[row.key_row(key) * of.dim_v]; };

    Numbers weights(of.keys, -INFINITY), slopes(of.keys, 1);
    double top = inputs.sinks.empty() ? -INFINITY : inputs.sinks[row.head];
    for (int key = 0; key < of.keys; key++) {
        if (row.is_hidden(key)) continue;
        double score = inputs.scale * dot(query, key_at(key), of.dim_qk);
        if (of.option == "softcap") {
            double bent = std::tanh(score / inputs.cap);
            slopes[key] = 1 - bent * bent;
            score = inputs.cap * bent;
        }
        weights[key] = score + row.bias(key);
        top = std::max(top, weights[key]);
    }
    double sum = inputs.sinks.empty() ? 0 : std::exp(inputs.sinks[row.head] - top);
    for (double &weight : weights) {
        weight = weight == -INFINITY ? 0 : std::exp(weight - top);
        sum += weight;
    }
    into.logsumexp[row.row()] = sum > 0 ? top + std::log(sum) : -INFINITY;
    if (sum == 0) return;

    // By which factor dropout multiplies a weight.
    Numbers factors(of.keys, inputs.kept_factor);
    std::vector<bool> dropped = row.dropped();
    double *output = &into.output[row.row() * of.dim_v];
    for (int key = 0; key < of.keys; key++) {
        if (dropped[key]) factors[key] = 0;
        weights[key] /= sum;
        add(weights[key] * factors[key], value_at(key), output, of.dim_v);
    }
    if (of.pass == FORWARD) return;

    const double *output_gradient = &inputs.output_gradient[row.row() * of.dim_v];
    double delta = dot(output, output_gradient, of.dim_v);
    into.delta[row.row()] = delta;
    for (int key = 0; key < of.keys; key++) {
        if (weights[key] == 0) continue;
        double weight_gradient = factors[key] * dot(output_gradient, value_at(key), of.dim_v);
        double score_gradient = weights[key] * (weight_gradient - delta);
        into.bias_gradient[row.row() * of.keys + key] = score_gradient;
        score_gradient *= slopes[key] * inputs.scale;
        add(score_gradient, key_at(key), &into.query_gradient[row.row() * of.dim_qk], of.dim_qk);
        add(score_gradient, query, &into.key_gradient[row.key_row(key) * of.dim_qk], of.dim_qk);
        add(weights[key] * factors[key], output_gradient, &into.value_gradient[row.key_row(key) * of.dim_v], of.dim_v);
    }
}

}

Reference make_reference(const Case &of, const Inputs &inputs) {
    const size_t rows = static_cast<size_t>(of.batch) * of.heads * of.queries;
    Reference reference;
    reference.output.resize(rows * of.dim_v);
    reference.logsumexp.resize(rows);
    if (of.pass != FORWARD) {
        reference.delta.resize(rows);
        reference.query_gradient.resize(rows * of.dim_qk);
        reference.key_gradient.resize(inputs.key.size());
        reference.value_gradient.resize(inputs.value.size());
        reference.bias_gradient.resize(rows * of.keys);
    }
    for (int batch = 0; batch < of.batch; batch++) {
        for (int head = 0; head < of.heads; head++) {
            for (int query = 0; query < of.queries; query++) add_row({of, inputs, batch, head, query}, reference);
        }
    }
    return reference;
}
