// What the generated sources use of CUDA, in place of mma.h, cuda_fp16.h and cuda_bf16.h.
#pragma once
#include "runtime.h"
#include <cstring>
#include <math.h>
#include <type_traits>
#include <utility>

#define __global__
#define __device__
#define __launch_bounds__(threads)
#define threadIdx emulator::thread_index
#define blockIdx emulator::block_index
#define gridDim emulator::grid_size
#define warpSize 32u
#define __syncthreads emulator::sync_threads
#define __syncwarp emulator::sync_warp
// run.py makes sure that all lanes are together where a source asks for this.
#define __activemask() 0xffffffffu
// For accesses that are reported as those of a fragment.
#define UNCHECKED __attribute__((no_sanitize("thread"), noinline))

inline float __shfl_xor_sync(uint32_t, float number, uint32_t mask) {
    uint32_t bits;
    memcpy(&bits, &number, 4);
    bits = emulator::shuffle_xor(bits, mask);
    memcpy(&number, &bits, 4);
    return number;
}

inline bool __any_sync(uint32_t, bool is_true) { return emulator::any(is_true); }

// The number if one is NaN.
inline float max(float a, float b) { return fmaxf(a, b); }

template <class T> T max(T a, T b) { return a > b ? a : b; }
template <class T> T min(T a, T b) { return a < b ? a : b; }

struct __half {
    _Float16 number;
    __half() = default;
    __half(float from) : number(static_cast<_Float16>(from)) {}
    operator float() const { return static_cast<float>(number); }
};

struct __nv_bfloat16 {
    uint16_t bits;
    __nv_bfloat16() = default;
    __nv_bfloat16(float from) {
        uint32_t word;
        memcpy(&word, &from, 4);
        // To the nearest, of two to the even one; NaN would become infinite.
        word = from == from ? word + 0x7fff + (word >> 16 & 1) : 0x7fc00000;
        bits = static_cast<uint16_t>(word >> 16);
    }
    operator float() const {
        uint32_t word = static_cast<uint32_t>(bits) << 16;
        float number;
        memcpy(&number, &word, 4);
        return number;
    }
};

namespace nvcuda::wmma {

struct matrix_a;
struct matrix_b;
struct accumulator;
struct row_major;
struct col_major;
enum layout_t { mem_row_major, mem_col_major };
namespace precision {
struct tf32;
}

// Cuts digits that TF32 does not have. CUDA rounds here, but its products cut; kernels must not depend on which.
inline float __float_to_tf32(float number) {
    uint32_t bits;
    memcpy(&bits, &number, 4);
    bits &= 0xffffe000;
    memcpy(&number, &bits, 4);
    return number;
}

// Numbers of a fragment that the running lane holds, as f32.
template <class Use, int M, int N, int K, class T, class Layout = void> struct fragment {
    static_assert(M == 16 && N == 16 && (K == 16 || K == 8));
    using Element = T;
    static constexpr bool is_a = std::is_same_v<Use, matrix_a>;
    static constexpr bool is_b = std::is_same_v<Use, matrix_b>;
    static constexpr bool is_row_major = std::is_same_v<Layout, row_major>;
    static constexpr int count = (is_a || is_b ? K : 16) / 2;
    float numbers[count];

    UNCHECKED fragment() {
        for (float &number : numbers) number = NAN;
    }

    // How far number `i` is from the fragment's first in memory.
    static size_t offset(int i, uint32_t stride, bool is_row_major) {
        auto [row, column] = emulator::position(emulator::current % emulator::WARP, i);
        // A fragment of `b` is as wide as one of `a` is high.
        if (is_b) std::swap(row, column);
        return is_row_major ? row * stride + column : column * stride + row;
    }
};

template <int K> using Sums = fragment<accumulator, 16, 16, K, float>;

inline void check_alignment(const void *address, size_t bytes_of_row) {
    if (reinterpret_cast<uintptr_t>(address) % 32) emulator::report("a fragment is not aligned to 32 bytes");
    if (bytes_of_row % 16) emulator::report("rows of a fragment are not aligned to 16 bytes");
}

template <class Fragment, class T>
UNCHECKED void load(Fragment &into, const T *from, uint32_t stride, bool is_row_major) {
    emulator::reach(emulator::LOAD);
    check_alignment(from, stride * sizeof(T));
    for (int i = 0; i < Fragment::count; i++) {
        const T *number = from + Fragment::offset(i, stride, is_row_major);
        emulator::access(number, sizeof(T), false, true);
        const T copied = *number;
        into.numbers[i] = copied;
        if constexpr (std::is_same_v<typename Fragment::Element, precision::tf32>) {
            float cut = __float_to_tf32(copied);
            if (cut < copied || cut > copied) emulator::report("a number in a fragment is not one of TF32");
        }
    }
}

template <class Fragment, class T> void load_matrix_sync(Fragment &into, const T *from, uint32_t stride) {
    load(into, from, stride, Fragment::is_row_major);
}

template <int K> void load_matrix_sync(Sums<K> &into, const float *from, uint32_t stride, layout_t layout) {
    load(into, from, stride, layout == mem_row_major);
}

template <int K>
UNCHECKED void store_matrix_sync(float *to, const Sums<K> &from, uint32_t stride, layout_t layout) {
    emulator::reach(emulator::STORE);
    check_alignment(to, stride * sizeof(float));
    for (int i = 0; i < Sums<K>::count; i++) {
        float *number = to + Sums<K>::offset(i, stride, layout == mem_row_major);
        emulator::access(number, sizeof(float), true, true);
        *number = from.numbers[i];
    }
}

template <int K> UNCHECKED void fill_fragment(Sums<K> &into, float number) {
    emulator::reach(emulator::FILL);
    for (float &each : into.numbers) each = number;
}

template <int K, class A, class B> void mma_sync(Sums<K> &product, const A &a, const B &b, const Sums<K> &sums) {
    static_assert(A::is_a && B::is_b && A::count == K / 2 && B::count == K / 2);
    static_assert(std::is_same_v<typename A::Element, typename B::Element>);
    emulator::multiply_add(product.numbers, a.numbers, b.numbers, sums.numbers, K);
}

}

namespace emulator {

template <class... Arguments, size_t... I>
void call(void (*kernel)(Arguments...), void **arguments, std::index_sequence<I...>) {
    kernel(static_cast<Arguments>(arguments[I])...);
}

template <class... Arguments> void call(void (*kernel)(Arguments...), void **arguments) {
    call(kernel, arguments, std::index_sequence_for<Arguments...>());
}

// The last argument is not a tensor, but holds shapes, strides and scalars.
template <class... Arguments> constexpr int count_tensors(void (*)(Arguments...)) { return sizeof...(Arguments) - 1; }

}
