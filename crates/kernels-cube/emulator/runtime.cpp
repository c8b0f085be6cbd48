// Threads of a block as fibers, which run in turn until all have reached the operation that they wait for.
#include "runtime.h"
#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <random>
#include <vector>

namespace emulator {

Index thread_index, block_index, grid_size;
int current = -1;

enum Operation { RUNS, SYNC_THREADS, SYNC_WARP, SHUFFLE, ANY, PRODUCT, LOADS, STORES, FILLS, ENDED };
static const char *const NAMES[] = {
    "no operation", "__syncthreads",    "__syncwarp",        "__shfl_xor_sync", "__any_sync",
    "mma_sync",     "load_matrix_sync", "store_matrix_sync", "fill_fragment",   "the end",
};

struct Thread {
    void *stack_pointer;
    char *stack;
    // What it waits for.
    Operation at;
    // What it gives to a shuffle or vote, and gets.
    uint32_t word, mask, answer;
    struct {
        float *product;
        const float *a, *b, *sums;
        int depth;
    } of_product;
};
static const size_t STACK_BYTES = 512 << 10;
static const int MOST_THREADS = 1024;
static Thread threads[MOST_THREADS];
static void *scheduler_stack_pointer;
static int arrived_of_block, arrived_of_warp[MOST_THREADS / WARP], ended;
static void **kernel_arguments;
static std::mt19937 random_numbers;

// Saves the registers that a call preserves, and goes on where the other stack was left.
extern "C" void emulator_switch_stack(void **left, void *next);
asm(R"(
.text
.globl emulator_switch_stack
emulator_switch_stack:
    push %rbp; push %rbx; push %r12; push %r13; push %r14; push %r15
    mov %rsp, (%rdi)
    mov %rsi, %rsp
    pop %r15; pop %r14; pop %r13; pop %r12; pop %rbx; pop %rbp
    ret
)");

std::string where() {
    std::string block = "block (" + std::to_string(block_index.x) + ", " + std::to_string(block_index.y) + ")";
    if (current < 0) return block;
    return block + ", warp " + std::to_string(current / WARP) + ", lane " + std::to_string(current % WARP);
}

static void pause() {
    finish_access();
    emulator_switch_stack(&threads[current].stack_pointer, scheduler_stack_pointer);
}

static void begin_thread() {
    kernel.call(kernel_arguments);
    threads[current].at = ENDED;
    ended++;
    pause();
    abort();
}

static void prepare(Thread &thread) {
    if (!thread.stack) thread.stack = static_cast<char *>(aligned_alloc(64, STACK_BYTES));
    void **top = reinterpret_cast<void **>(thread.stack + STACK_BYTES - 64);
    // Where the function would return to, which keeps the stack aligned as after a call; the function; six registers.
    *--top = nullptr;
    *--top = reinterpret_cast<void *>(begin_thread);
    for (int i = 0; i < 6; i++) *--top = nullptr;
    thread.stack_pointer = top;
    thread.at = RUNS;
}

void sync_threads() {
    threads[current].at = SYNC_THREADS;
    if (++arrived_of_block == kernel.threads) {
        arrived_of_block = 0;
        passed_block_barrier();
        for (int i = 0; i < kernel.threads; i++) threads[i].at = RUNS;
    }
    pause();
}

// The last lane that arrives computes for all of its warp.
template <class Compute> static void wait_for_warp(Operation operation, Compute compute) {
    int warp = current / WARP;
    Thread *lanes = threads + warp * WARP;
    threads[current].at = operation;
    if (++arrived_of_warp[warp] == WARP) {
        arrived_of_warp[warp] = 0;
        bool are_together = true;
        for (int i = 0; i < WARP; i++) {
            if (lanes[i].at == operation) continue;
            are_together = false;
            report(std::string("lanes of a warp wait at ") + NAMES[operation] + " and at " + NAMES[lanes[i].at]);
        }
        if (are_together) compute(lanes);
        for (int i = 0; i < WARP; i++) lanes[i].at = RUNS;
    }
    pause();
}

void sync_warp() {
    wait_for_warp(SYNC_WARP, [](Thread *) { passed_warp_barrier(current / WARP); });
}

uint32_t shuffle_xor(uint32_t word, uint32_t mask) {
    threads[current].word = word;
    threads[current].mask = mask;
    wait_for_warp(SHUFFLE, [](Thread *lanes) {
        for (uint32_t i = 0; i < WARP; i++) lanes[i].answer = lanes[(i ^ lanes[i].mask) % WARP].word;
    });
    return threads[current].answer;
}

void reach(FragmentOperation operation) {
    wait_for_warp(operation == LOAD ? LOADS : operation == STORE ? STORES : FILLS, [](Thread *) {});
}

bool any(bool is_true) {
    threads[current].word = is_true;
    wait_for_warp(ANY, [](Thread *lanes) {
        bool is_any = std::any_of(lanes, lanes + WARP, [](const Thread &lane) { return lane.word; });
        for (int i = 0; i < WARP; i++) lanes[i].answer = is_any;
    });
    return threads[current].answer;
}

static void multiply_add_of_warp(Thread *lanes) {
    const int depth = lanes->of_product.depth;
    float a[16][16], b[16][16], sums[16][16];
    for (int lane = 0; lane < WARP; lane++) {
        for (int i = 0; i < 8; i++) {
            auto [row, column] = position(lane, i);
            const auto &given = lanes[lane].of_product;
            sums[row][column] = given.sums[i];
            if (i >= depth / 2) continue;
            a[row][column] = given.a[i];
            b[column][row] = given.b[i];
        }
    }
    for (int row = 0; row < 16; row++) {
        for (int k = 0; k < depth; k++) {
            for (int column = 0; column < 16; column++) sums[row][column] += a[row][k] * b[k][column];
        }
    }
    for (int lane = 0; lane < WARP; lane++) {
        for (int i = 0; i < 8; i++) {
            auto [row, column] = position(lane, i);
            lanes[lane].of_product.product[i] = sums[row][column];
        }
    }
}

void multiply_add(float *product, const float *a, const float *b, const float *sums, int depth) {
    threads[current].of_product = {product, a, b, sums, depth};
    wait_for_warp(PRODUCT, multiply_add_of_warp);
}

static bool resume(int thread) {
    if (threads[thread].at != RUNS) return false;
    current = thread;
    thread_index = {static_cast<uint32_t>(thread), 0, 0};
    emulator_switch_stack(&scheduler_stack_pointer, threads[thread].stack_pointer);
    current = -1;
    return true;
}

static std::vector<int> sequence(int count, Order order) {
    std::vector<int> numbers(count);
    std::iota(numbers.begin(), numbers.end(), 0);
    if (order == DESCENDING) std::reverse(numbers.begin(), numbers.end());
    if (order == RANDOM) std::shuffle(numbers.begin(), numbers.end(), random_numbers);
    return numbers;
}

// Whether any lane of the warp could run.
static bool resume_warp(int warp, Order order) {
    bool has_run = false;
    for (int lane : sequence(WARP, order)) has_run |= resume(warp * WARP + lane);
    return has_run;
}

static void run_block(Order order) {
    clear_shared(kernel.shared_bytes);
    std::fill(std::begin(arrived_of_warp), std::end(arrived_of_warp), 0);
    arrived_of_block = ended = 0;
    for (int i = 0; i < kernel.threads; i++) prepare(threads[i]);
    bool has_run = true;
    while (has_run) {
        has_run = false;
        for (int warp : sequence(kernel.threads / WARP, order)) {
            while (resume_warp(warp, order)) {
                has_run = true;
                if (order == ASCENDING || (order == RANDOM && random_numbers() % 4 == 0)) break;
            }
        }
    }
    if (ended == kernel.threads) return;
    int counts[ENDED + 1] = {};
    for (int i = 0; i < kernel.threads; i++) counts[threads[i].at]++;
    std::string place = where();
    for (int i = 0; i <= ENDED; i++) {
        if (counts[i]) place += ", " + std::to_string(counts[i]) + " at " + NAMES[i];
    }
    report("threads wait for each other without end", place);
}

void launch(Index grid, void **arguments, Order order) {
    random_numbers.seed(1);
    clear_results();
    grid_size = grid;
    kernel_arguments = arguments;
    for (uint32_t y = 0; y < grid.y; y++) {
        for (uint32_t x = 0; x < grid.x; x++) {
            block_index = {x, y, 0};
            run_block(order);
        }
    }
}

}
