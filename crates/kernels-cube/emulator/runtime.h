// What the parts of the emulator offer each other. memory.cpp, runtime.cpp and, for the kernel, run.py define it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

namespace emulator {

// Lanes of a warp, which is CUDA's name of a plane.
constexpr int WARP = 32;

struct Index {
    uint32_t x, y, z;
};
extern Index thread_index, block_index, grid_size;

// The thread of the block that runs, or -1 while none does.
extern int current;

// Of every sort of problem, the first place and how many there are.
using Problems = std::map<std::string, std::pair<std::string, long>>;

// The running thread.
std::string where();
void report(const std::string &problem, const std::string &place = where());
// Problems since the last call.
Problems take_problems();

// A tensor in global memory, of NaN and between NaN. Only results may be written.
char *allocate(size_t bytes, const std::string &name, bool is_result);
void free_all();
void clear_results();
// How many numbers of a result the kernel has not written, and how many more than once.
std::pair<size_t, size_t> unwritten_and_repeated(const char *result, size_t bytes_of_number);

char *shared_memory();
// Forgets shared memory, for the next block.
void clear_shared(size_t bytes);
void passed_block_barrier();
void passed_warp_barrier(int warp);
// Of an array with `count` numbers.
void check_index(size_t index, size_t count);
// An access of a lane, or of all lanes of its warp: nothing says which lane reads or writes a number of a fragment.
void access(const void *address, size_t bytes, bool is_write, bool is_fragment);
// To be called before another thread runs.
void finish_access();

// Operations that all threads of a block or all lanes of a warp reach, before any goes on.
void sync_threads();
void sync_warp();
uint32_t shuffle_xor(uint32_t word, uint32_t mask);
bool any(bool is_true);
// The same without a result, for loads, stores and fills of fragments, which all lanes of a warp have to reach.
enum FragmentOperation { LOAD, STORE, FILL };
void reach(FragmentOperation operation);
// `sums` and `product` are fragments of 16x16 numbers, `a` is one of 16 x `depth`, and `b` one of `depth` x 16.
void multiply_add(float *product, const float *a, const float *b, const float *sums, int depth);

// Row and column of number `i` of a lane in a fragment of A or of sums; column and row in one of B. Like NVIDIA's, but
// no kernel may depend on them.
struct Position {
    int row, column;
};
inline Position position(int lane, int i) {
    return {lane / 4 + (i & 2 ? 8 : 0), 2 * (lane % 4) + (i & 1) + (i & 4 ? 8 : 0)};
}

// The kernel, and what its source says about it.
struct Kernel {
    const char *name;
    int threads;
    size_t shared_bytes;
    int tensors, unread_scalars, static_metadata;
    void (*call)(void **arguments);
};
extern const Kernel kernel;

// In which order threads run: ascending, every lane to its next operation; descending, every warp as far as it comes;
// at random.
enum Order { ASCENDING, DESCENDING, RANDOM };
void launch(Index grid, void **arguments, Order order);

}
