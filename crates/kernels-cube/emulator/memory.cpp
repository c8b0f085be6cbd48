// Memory of kernels: bounds, alignment, what is written, and races in shared memory. Defines what `-fsanitize=thread`
// has kernels call before every access, so that it is itself compiled without.
#include "runtime.h"
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>
#include <vector>

namespace emulator {

static Problems problems;

void report(const std::string &problem, const std::string &place) {
    auto &[first_place, count] = problems[problem];
    if (count++ == 0) first_place = place;
}

Problems take_problems() {
    return std::exchange(problems, {});
}

struct Allocation {
    char *begin;
    size_t bytes;
    std::string name;
    bool is_result;
    // How often two bytes were written.
    std::vector<uint8_t> writes;
};
static const size_t GLOBAL_BYTES = 256 << 20;
static const size_t GAP = 4096;
static std::vector<Allocation> allocations;
static size_t allocated;

static char *reserve(size_t bytes) {
    void *memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) abort();
    return static_cast<char *>(memory);
}

static char *const GLOBAL = reserve(GLOBAL_BYTES);

char *allocate(size_t bytes, const std::string &name, bool is_result) {
    char *begin = GLOBAL + allocated;
    size_t with_gap = (bytes + GAP + 255) / 256 * 256;
    allocated += with_gap;
    if (allocated > GLOBAL_BYTES) abort();
    // Bytes of ones are NaN in every type of floats, and -1 in integers.
    memset(begin, 0xff, with_gap);
    allocations.push_back({begin, bytes, name, is_result, std::vector<uint8_t>(is_result ? bytes / 2 : 0)});
    return begin;
}

void free_all() {
    allocations.clear();
    memset(GLOBAL, 0xff, GAP);
    allocated = GAP;
}

void clear_results() {
    for (Allocation &each : allocations) {
        if (!each.is_result) continue;
        memset(each.begin, 0xff, each.bytes);
        each.writes.assign(each.bytes / 2, 0);
    }
}

std::pair<size_t, size_t> unwritten_and_repeated(const char *result, size_t bytes_of_number) {
    size_t unwritten = 0, repeated = 0;
    for (const Allocation &each : allocations) {
        if (each.begin != result) continue;
        for (size_t i = 0; i < each.writes.size(); i += bytes_of_number / 2) {
            unwritten += each.writes[i] == 0;
            repeated += each.writes[i] > 1;
        }
    }
    return {unwritten, repeated};
}

// Sizes of accesses are powers of two; a division would take longer than all the rest.
static bool is_aligned(const char *begin, size_t bytes) {
    return (reinterpret_cast<uintptr_t>(begin) & (bytes - 1)) == 0;
}

static void access_global(char *begin, size_t bytes, bool is_write) {
    const Allocation *before = nullptr;
    for (Allocation &each : allocations) {
        if (begin >= each.begin) before = &each;
        if (begin < each.begin || begin + bytes > each.begin + each.bytes) continue;
        if (!is_aligned(begin, bytes)) report("unaligned access of " + each.name);
        if (!is_write) return;
        if (!each.is_result) return report("write to " + each.name);
        for (size_t i = (begin - each.begin) / 2; i < (begin - each.begin + bytes) / 2; i++) {
            if (each.writes[i] < 2) each.writes[i]++;
        }
        return;
    }
    std::string place = before ? "byte " + std::to_string(begin - before->begin) + " of " + before->name + ", " : "";
    report(is_write ? "write outside of tensors" : "read outside of tensors", place + where());
}

// Which lanes read, or wrote, two bytes of shared memory since the last barriers. Once two warps have, a barrier of the
// whole block is missing whichever lanes these were, so that lanes are those of the last warp.
struct History {
    uint32_t block_epoch, warps, warp_epoch, lanes;
};
struct Place {
    History reads, writes;
};
static const size_t MOST_SHARED = 256 << 10;
static char *const SHARED = reserve(MOST_SHARED + 2 * GAP) + GAP;
static Place places[MOST_SHARED / 2];
static size_t shared_bytes;
// Epochs end at barriers, and are numbered without end. No history is of epoch 0.
static uint32_t block_epoch = 0, first_epoch = 0;
static const int MOST_WARPS = 32;
static uint32_t warp_epochs[MOST_WARPS];

char *shared_memory() { return SHARED; }

void clear_shared(size_t bytes) {
    shared_bytes = bytes;
    memset(SHARED - GAP, 0xff, bytes + 2 * GAP);
    first_epoch = ++block_epoch;
}

void passed_block_barrier() { block_epoch++; }

void passed_warp_barrier(int warp) { warp_epochs[warp]++; }

static bool is_race(const History &history, int warp, uint32_t other_lanes) {
    if (history.block_epoch != block_epoch) return false;
    if (history.warps != 1u << warp) return true;
    return history.warp_epoch == warp_epochs[warp] && (history.lanes & other_lanes);
}

static void add(History &history, int warp, uint32_t lanes) {
    if (history.block_epoch != block_epoch) history = {block_epoch, 0, 0, 0};
    if (history.warp_epoch != warp_epochs[warp]) history.lanes = 0;
    history.warps |= 1u << warp;
    history.warp_epoch = warp_epochs[warp];
    history.lanes |= lanes;
}

static std::string shared_place(size_t byte) {
    return "byte " + std::to_string(byte) + " of shared memory, " + where();
}

// A word that several lanes write without a barrier between: no race if they write the same, as lanes do that set a
// flag. What the running thread writes is known only after it has.
static const char *const TWO_WRITES = "race: two lanes write without a barrier between";
static char *suspect = nullptr;
static uint32_t before_suspect;

void finish_access() {
    if (!suspect) return;
    if (memcmp(suspect, &before_suspect, 4)) {
        report(TWO_WRITES, shared_place(suspect - SHARED));
    }
    suspect = nullptr;
}

static void access_shared(size_t begin, size_t bytes, bool is_write, bool is_fragment) {
    int warp = current / WARP;
    uint32_t lanes = is_fragment ? ~0u : 1u << current % WARP;
    uint32_t other_lanes = is_fragment ? ~0u : ~lanes;
    for (size_t byte = begin; byte < begin + bytes; byte += 2) {
        Place &place = places[byte / 2];
        if (is_race(place.writes, warp, other_lanes)) {
            if (!is_write) {
                report("race: a read after another lane's write without a barrier between", shared_place(byte));
            } else if (bytes == 4 && !is_fragment) {
                suspect = SHARED + begin;
                memcpy(&before_suspect, suspect, 4);
            } else {
                report(TWO_WRITES, shared_place(byte));
            }
        }
        if (is_write && is_race(place.reads, warp, other_lanes)) {
            report("race: a write after another lane's read without a barrier between", shared_place(byte));
        }
        if (!is_write && place.writes.block_epoch < first_epoch) {
            report("read of unwritten shared memory", shared_place(byte));
        }
        add(is_write ? place.writes : place.reads, warp, lanes);
    }
}

void check_index(size_t index, size_t count) {
    if (index < count) return;
    report("index beyond an array", std::to_string(index) + " of " + std::to_string(count) + ", " + where());
}

void access(const void *address, size_t bytes, bool is_write, bool is_fragment) {
    if (current < 0) return;
    if (suspect) finish_access();
    char *begin = static_cast<char *>(const_cast<void *>(address));
    if (begin >= SHARED - GAP && begin < SHARED + MOST_SHARED + GAP) {
        if (begin < SHARED || begin + bytes > SHARED + shared_bytes) {
            return report("access outside of shared memory", "byte " + std::to_string(begin - SHARED) + ", " + where());
        }
        if (!is_aligned(begin, bytes)) report("unaligned access", shared_place(begin - SHARED));
        access_shared(begin - SHARED, bytes, is_write, is_fragment);
    } else if (begin >= GLOBAL && begin < GLOBAL + GLOBAL_BYTES) {
        access_global(begin, bytes, is_write);
    }
}

}

#define DEFINE_ACCESSES(bytes) \
    void __tsan_read##bytes(void *address) { emulator::access(address, bytes, false, false); } \
    void __tsan_write##bytes(void *address) { emulator::access(address, bytes, true, false); }

static void access_range(void *address, size_t bytes, bool is_write) {
    for (size_t i = 0; i < bytes; i += 2) emulator::access(static_cast<char *>(address) + i, 2, is_write, false);
}

extern "C" {
DEFINE_ACCESSES(1)
DEFINE_ACCESSES(2)
DEFINE_ACCESSES(4)
DEFINE_ACCESSES(8)
DEFINE_ACCESSES(16)
void __tsan_read_range(void *address, size_t bytes) { access_range(address, bytes, false); }
void __tsan_write_range(void *address, size_t bytes) { access_range(address, bytes, true); }
void __tsan_func_entry(void *) {}
void __tsan_func_exit(void *) {}
void __tsan_init() {}
}
