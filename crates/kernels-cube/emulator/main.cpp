// Launches of the kernel that is linked in, in several orders of threads, and comparison of its results.
#include "case.h"
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>

using emulator::kernel;

struct Result {
    Tensor tensor;
    Numbers expected;
    // Of the largest magnitude, but absolute for logsumexp.
    double tolerance;
    bool is_absolute = false;
};

struct Plan {
    std::vector<Result> results;
    emulator::Index grid;
    // What gradients of biases have in place of tiles of rows.
    uint32_t tiles = 0;
};

// f16 has 11 bits of mantissa, bf16 8, and two numbers in TF32 have 22, whose error large scores magnify.
static double tolerance(Type type) { return type == F16 ? 1e-3 : type == BF16 ? 8e-3 : 2e-5; }

// Gradients of biases and delta are sums in f32 in every type.
static double tolerance_of_sums(Type type) { return std::min(tolerance(type), 5e-5); }

// A warp has 16 rows of a tile.
static int tile_size() { return kernel.threads / emulator::WARP * 16; }

static int tiles_of(int rows) { return (rows + tile_size() - 1) / tile_size(); }

// As the kernel leaves them: for every diagonal of tiles, a sum for every place of a query less that of a key in their
// tiles, which begin at `1 - size`.
static Numbers sums_of_diagonals(const Case &of, const Numbers &gradient, int diagonals) {
    const int size = tile_size();
    Numbers sums(static_cast<size_t>(of.batch) * of.heads * diagonals * 2 * size);
    for (size_t i = 0; i < gradient.size(); i++) {
        int key = static_cast<int>(i % of.keys), query = static_cast<int>(i / of.keys % of.queries);
        size_t head = i / of.keys / of.queries;
        int diagonal = query / size + tiles_of(of.keys) - 1 - key / size;
        sums[(head * diagonals + diagonal) * 2 * size + query % size - key % size + size - 1] += gradient[i];
    }
    // The last place of a diagonal is none of a pair, and not written.
    for (size_t i = 2 * size - 1; i < sums.size(); i += 2 * size) sums[i] = NAN;
    return sums;
}

static Numbers sums_of_queries(const Case &of, const Numbers &gradient) {
    Numbers sums(static_cast<size_t>(of.batch) * of.keys);
    for (size_t i = 0; i < gradient.size(); i++) {
        size_t batch = i / of.keys / of.queries / of.heads;
        sums[batch * of.keys + i % of.keys] += gradient[i];
    }
    return sums;
}

static Plan make_plan(const Case &of, const Reference &reference, int wanted_results) {
    const uint32_t heads = of.batch * of.heads, key_heads = of.batch * of.key_heads;
    const uint32_t tiles_q = tiles_of(of.queries), tiles_k = tiles_of(of.keys);
    Plan plan;
    auto rows = [&](const char *name, int heads, int length, int dim, const Numbers &expected) {
        Type type = of.splits > 1 ? F32 : of.type;
        std::vector<int> shape = {of.splits * of.batch, heads, length, dim};
        Tensor tensor = make_tensor(name, type, shape, true, of.heads_are_inner);
        plan.results.push_back({tensor, expected, tolerance(of.type)});
    };
    auto sums = [&](const char *name, std::vector<int> shape, const Numbers &expected, double tolerance) {
        plan.results.push_back({make_tensor(name, F32, shape, true), expected, tolerance});
    };
    if (of.pass == FORWARD) {
        rows("output", of.heads, of.queries, of.dim_v, reference.output);
        // A split has two statistics of each row.
        std::vector<int> shape = {of.batch, of.heads, of.queries};
        if (of.splits > 1) shape = {of.splits, of.batch * of.heads * of.queries, 2};
        sums("logsumexp", shape, reference.logsumexp, 1e-4);
        plan.results.back().is_absolute = true;
        int tiles_of_group = (of.heads / of.key_heads + of.heads_of_tile - 1) / of.heads_of_tile;
        plan.grid = {of.heads_of_tile > 1 ? 1 : tiles_q, key_heads * tiles_of_group, 1};
    } else if (of.pass == QUERY) {
        bool has_query = of.option != "delta";
        if (has_query) rows("query gradient", of.heads, of.queries, of.dim_qk, reference.query_gradient);
        std::vector<int> shape = {of.batch, of.heads, of.queries, 1};
        if (wanted_results > has_query) sums("delta", shape, reference.delta, tolerance_of_sums(of.type));
        plan.grid = {tiles_q, heads, 1};
    } else if (of.pass == KEY_AND_VALUE) {
        bool has_key = of.option != "value";
        if (has_key) rows("key gradient", of.key_heads, of.keys, of.dim_qk, reference.key_gradient);
        if (wanted_results > has_key) rows("value gradient", of.key_heads, of.keys, of.dim_v, reference.value_gradient);
        plan.grid = {tiles_k, key_heads, 1};
    } else if (of.option == "distances") {
        plan.tiles = tiles_q + tiles_k - 1;
        Numbers expected = sums_of_diagonals(of, reference.bias_gradient, plan.tiles);
        int places = static_cast<int>(expected.size() / heads / plan.tiles);
        std::vector<int> shape = {of.batch, of.heads, static_cast<int>(plan.tiles), places};
        sums("sums of diagonals", shape, expected, tolerance_of_sums(of.type));
        plan.grid = {plan.tiles * heads, 1, 1};
    } else if (of.option == "broadcast_bias") {
        plan.tiles = tiles_k;
        Numbers expected = sums_of_queries(of, reference.bias_gradient);
        sums("bias gradient", {of.batch, 1, 1, of.keys}, expected, tolerance_of_sums(of.type));
        plan.grid = {plan.tiles * of.batch, 1, 1};
    } else {
        plan.tiles = tiles_q * tiles_k;
        std::vector<int> shape = {of.batch, of.heads, of.queries, of.keys};
        sums("bias gradient", shape, reference.bias_gradient, tolerance_of_sums(of.type));
        plan.grid = {plan.tiles * heads, 1, 1};
    }
    plan.grid.x *= of.splits;
    return plan;
}

// Scalars, and shapes and strides of all tensors, as CubeCL gives them to a kernel: scalars by type, those of a type in
// the order of the fields of `Scoring` (../src/scoring.rs), and behind them what kernels take beside it.
static std::vector<uint32_t> make_info(const Case &of, const Inputs &inputs, const std::vector<Tensor> &tensors,
                                       uint32_t tiles) {
    // Nothing reads these: with them a kernel would compute nonsense.
    const uint32_t unread = 0xdead0000;
    std::vector<uint32_t> info(kernel.unread_scalars, unread);
    for (float scalar : {inputs.scale, inputs.cap, inputs.kept_factor, -INFINITY}) {
        uint32_t bits;
        memcpy(&bits, &scalar, 4);
        info.push_back(bits);
    }
    for (int scalar : {of.keys - of.queries, of.left, of.is_causal ? 0 : of.right, UNLIMITED}) {
        info.push_back(scalar);
    }
    const uint32_t *seed = inputs.dropout_seed;
    for (uint32_t scalar : {uint32_t(BLOCK), uint32_t(BLOCK), seed[0], seed[1], inputs.dropout_threshold, tiles}) {
        info.push_back(scalar);
    }
    std::vector<uint32_t> shapes;
    std::vector<uint32_t> places(kernel.static_metadata, unread);
    for (size_t i = 0; i < tensors.size(); i++) {
        places[i] = tensors[i].count();
        places[tensors.size() + i] = shapes.size();
        shapes.insert(shapes.end(), tensors[i].shape.begin(), tensors[i].shape.end());
    }
    for (size_t i = 0; i < tensors.size(); i++) {
        places[2 * tensors.size() + i] = shapes.size();
        shapes.insert(shapes.end(), tensors[i].strides.begin(), tensors[i].strides.end());
    }
    info.insert(info.end(), places.begin(), places.end());
    info.insert(info.end(), shapes.begin(), shapes.end());
    return info;
}

// What a result says, of all splits. Those of a forward pass have sums of weights and values, and of each row what was
// subtracted from its scores, and the sum of its weights.
static std::vector<Numbers> merged(const Case &of, const Plan &plan) {
    std::vector<Numbers> all;
    for (const Result &result : plan.results) {
        Numbers &sums = all.emplace_back(result.expected.size());
        for (size_t i = 0; i < result.tensor.count(); i++) sums[i % sums.size()] += result.tensor.get(i);
    }
    if (of.pass != FORWARD || of.splits == 1) return all;
    const Tensor &sums = plan.results[0].tensor, &statistics = plan.results[1].tensor;
    const size_t rows = all[1].size();
    for (size_t row = 0; row < rows; row++) {
        double top = -INFINITY, total = 0;
        auto statistic = [&](int split, int i) { return statistics.get((split * rows + row) * 2 + i); };
        for (int split = 0; split < of.splits; split++) top = std::max(top, statistic(split, 0));
        Numbers output(of.dim_v);
        for (int split = 0; split < of.splits; split++) {
            double factor = std::exp(statistic(split, 0) - top);
            total += factor * statistic(split, 1);
            for (int i = 0; i < of.dim_v; i++) output[i] += factor * sums.get((split * rows + row) * of.dim_v + i);
        }
        all[1][row] = total > 0 ? top + std::log(total) : -INFINITY;
        for (int i = 0; i < of.dim_v; i++) all[0][row * of.dim_v + i] = total > 0 ? output[i] / total : output[i];
    }
    return all;
}

// The largest error of a result, relative unless its tolerance is absolute; reports what is wrong.
static double compare(const Result &result, const Numbers &numbers) {
    const Tensor &tensor = result.tensor;
    double largest = 0, error = 0;
    size_t worst = 0, unwanted = 0;
    for (size_t i = 0; i < result.expected.size(); i++) {
        double expected = result.expected[i], got = numbers[i];
        if (std::isnan(expected)) {
            unwanted++;
            continue;
        }
        if (!std::isinf(expected)) largest = std::max(largest, std::fabs(expected));
        double difference = got == expected ? 0 : std::fabs(got - expected);
        // Holds for NaN as well.
        if (!(difference <= error)) {
            error = std::isnan(difference) ? INFINITY : difference;
            worst = i;
        }
    }
    if (!result.is_absolute && error > 0) error /= largest;
    if (error > result.tolerance) {
        char both[80];
        snprintf(both, sizeof both, "%g in place of %g", numbers[worst], result.expected[worst]);
        emulator::report("wrong " + tensor.name, "number " + std::to_string(worst) + ", " + both);
    }
    auto [unwritten, repeated] = emulator::unwritten_and_repeated(tensor.data, tensor.bytes_of_number());
    const std::string of = " numbers of " + tensor.name;
    if (unwritten != unwanted) {
        emulator::report("unwritten results", std::to_string(unwritten) + ", not " + std::to_string(unwanted) + of);
    }
    if (repeated) emulator::report("results written more than once", std::to_string(repeated) + of);
    return error;
}

std::string Case::description() const {
    std::string text = std::to_string(queries) + " queries, " + std::to_string(keys) + " keys, heads of ";
    text += std::to_string(dim_qk) + " and " + std::to_string(dim_v);
    if (is_causal) text += ", causal";
    if (left != UNLIMITED) text += ", window";
    if (heads_are_inner) text += ", heads inside";
    if (size != 1) text += ", large";
    return text;
}

// The plain kernel of a pass, type and width has them all. With an option, which changes only what is hidden, added or
// summed, three suffice: tiles that are cut or skipped, a few rows of fewer numbers, and queries that see nothing.
static std::vector<Case> cases(Pass pass, Type type, int width, const std::string &option) {
    const int narrow = width == 64 ? 40 : width == 80 ? 72 : width == 128 ? 100 : width == 192 ? 148 : 200;
    std::vector<Case> all;
    auto add = [&](int queries, int keys, int dim_qk, int dim_v) -> Case & {
        Case &added = all.emplace_back(Case{pass, type, option, queries, keys, dim_qk, dim_v});
        // Keys are rows in the pass of their gradients. Tiles have 32 columns, and in gradients of biases are squares.
        added.tile_queries = tile_size();
        added.tile_keys = pass == BIAS ? tile_size() : 32;
        if (pass == KEY_AND_VALUE) std::swap(added.tile_queries, added.tile_keys);
        if (option == "splits") added.splits = 3;
        return added;
    };
    if ((option == "heads" || option == "many_heads") && pass == FORWARD) {
        // The sources have tiles of 4 heads with 5 queries, and of 8 with 16.
        const bool many = option == "many_heads";
        for (int queries : many ? std::vector{16, 13} : std::vector{5, 3}) {
            for (bool is_causal : {false, true}) {
                Case &added = add(queries, 199, width, width);
                added.is_causal = is_causal;
                added.heads_of_tile = many ? 8 : 4;
                added.key_heads = 2;
                added.heads = added.key_heads * added.heads_of_tile;
            }
        }
        return all;
    }
    add(149, 199, width, width).is_causal = true;
    Case &few = add(37, 61, narrow, narrow);
    few.heads = 6;
    few.key_heads = 3;
    Case &unseeing = add(199, 149, width, width);
    unseeing.is_causal = true;
    // Tiles between the first keys and a window are hidden.
    if (option == "first_keys") unseeing.left = 29;
    if (!option.empty()) return all;
    add(149, 199, width, width);
    add(37, 61, narrow, narrow).is_causal = true;
    Case &inner = add(149, 199, width, narrow);
    inner.is_causal = true;
    inner.heads_are_inner = true;
    Case &window = add(149, 199, width, width);
    window.left = 29;
    window.right = 11;
    // Whole tiles, and scores so large that sums have to be rescaled; weights would magnify the errors of larger ones.
    Case &large = add(128, 128, width, width);
    large.size = 3;
    large.gradient_size = 30;
    return all;
}

struct Summary {
    size_t cases = 0, problems = 0;
    std::vector<std::pair<std::string, double>> errors;
    std::string problem_lines;
};

static void run(const Case &of, int orders, Summary &summary) {
    Inputs inputs = make_inputs(of);
    Reference reference = make_reference(of, inputs);
    std::vector<Tensor> tensors = inputs.tensors;
    if (of.pass != FORWARD) {
        for (size_t i = 0; i < reference.delta.size(); i++) {
            tensors[4].set(i, reference.logsumexp[i]);
            tensors[4].set(reference.delta.size() + i, reference.delta[i]);
        }
    }
    Plan plan = make_plan(of, reference, kernel.tensors - static_cast<int>(tensors.size()));
    for (const Result &result : plan.results) tensors.push_back(result.tensor);
    summary.errors.resize(plan.results.size());
    if (static_cast<int>(tensors.size()) != kernel.tensors) {
        const std::string counts = std::to_string(kernel.tensors) + " in place of " + std::to_string(tensors.size());
        emulator::report("another number of tensors", counts);
        orders = 0;
    }
    std::vector<uint32_t> info = make_info(of, inputs, tensors, plan.tiles);
    char *in_memory = emulator::allocate(4 * info.size(), "shapes and scalars", false);
    memcpy(in_memory, info.data(), 4 * info.size());
    std::vector<void *> arguments;
    for (const Tensor &tensor : tensors) arguments.push_back(tensor.data);
    arguments.push_back(in_memory);
    std::vector<std::string> first(plan.results.size());
    for (int order = 0; order < orders; order++) {
        emulator::launch(plan.grid, arguments.data(), static_cast<emulator::Order>(order));
        std::vector<Numbers> numbers = merged(of, plan);
        for (size_t i = 0; i < first.size(); i++) {
            const Tensor &tensor = plan.results[i].tensor;
            double error = compare(plan.results[i], numbers[i]);
            summary.errors[i] = {tensor.name, std::max(summary.errors[i].second, error)};
            std::string bytes(tensor.data, tensor.count() * tensor.bytes_of_number());
            if (order == 0) first[i] = bytes;
            if (bytes != first[i]) emulator::report("other bits with another order of threads", tensor.name);
        }
    }
    for (auto &[problem, found] : emulator::take_problems()) {
        auto &[place, count] = found;
        summary.problem_lines += "    " + of.description() + ": " + problem + ": " + place;
        if (count > 1) summary.problem_lines += " (and " + std::to_string(count - 1) + " more)";
        summary.problem_lines += "\n";
        summary.problems++;
    }
    summary.cases++;
}

// Arguments are pass, type, width and option, as in the name of the kernel's file. A plain kernel runs in all orders,
// one with an option in the two that differ most.
int main(int, char **arguments) {
    const std::string passes[] = {"Forward", "Query", "KeyAndValue", "Bias"}, types[] = {"f16", "bf16", "f32"};
    Pass pass = static_cast<Pass>(std::find(passes, passes + 3, arguments[1]) - passes);
    Type type = static_cast<Type>(std::find(types, types + 2, arguments[2]) - types);
    const std::string option = arguments[4];
    Summary summary;
    for (const Case &each : cases(pass, type, atoi(arguments[3]), option)) run(each, option.empty() ? 3 : 2, summary);
    printf("%s: %zu cases", kernel.name, summary.cases);
    for (auto &[name, error] : summary.errors) printf(", %s %.1e", name.c_str(), error);
    if (summary.problems) printf(", %zu problems\n%s", summary.problems, summary.problem_lines.c_str());
    else printf(", ok\n");
    return summary.problems != 0;
}
