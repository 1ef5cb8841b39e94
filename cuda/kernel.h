// The dialect in which kernels are written: CUDA C for nvcc, and plain C++ for the tests, on an
// emulator (tests/cuda/emulator) that runs a block's threads as fibres and checks every access.
// README.md in this folder describes the conventions.
//
// A kernel is
//
//     REE_KERNEL(softmax_rows, struct ree_softmax_params, 128) {
//         auto x = ree_in<float>(h, 0);       // operand 0, elements of float
//         auto y = ree_out<float>(h, 1);
//         REE_SHARED(float, partial, 128);
//         ...
//     }
//
// `h` is the header, `p` the parameters, 128 the maximum number of threads per block. The kernel is
// named ree_softmax_rows for the driver and REE_CUDA_softmax_rows for the encoders (kernels.def).
#ifndef REE_CUDA_KERNEL_H
#define REE_CUDA_KERNEL_H

#include "device/cuda/kernel_interface.h"
#include "repops/scalar/ops.h"

#ifdef __CUDACC__

#define REE_DEVICE static __device__ __forceinline__
#define REE_DEVICE_MEMBER __device__ __forceinline__   // for member functions
#define REE_DEVICE_CALL static __device__ __noinline__ // for functions that are too long to inline
#define REE_CONSTANT static __device__ const
#define REE_UNROLL _Pragma("unroll")
#define REE_NO_UNROLL _Pragma("unroll 1")

#define REE_KERNEL_BLOCKS(name, params, threads, blocks)                                           \
    struct ree_##name##_args {                                                                     \
        struct ree_cuda_header h;                                                                  \
        params p;                                                                                  \
    };                                                                                             \
    static __device__ __forceinline__ void ree_##name##_body(const struct ree_cuda_header &h,      \
                                                             const params &p);                     \
    extern "C" __global__ void __launch_bounds__(threads, blocks)                                  \
        ree_##name(const __grid_constant__ struct ree_##name##_args args) {                        \
        ree_##name##_body(args.h, args.p);                                                         \
    }                                                                                              \
    static __device__ __forceinline__ void ree_##name##_body(const struct ree_cuda_header &h,      \
                                                             const params &p)

// Memory of operand number `operand`, to read (ree_in) or to write (ree_out), and scratch memory.
// Elements have type T; indices count elements.
template <class T> using ree_in_t = const T *;
template <class T> using ree_out_t = T *;
template <class T> REE_DEVICE ree_in_t<T> ree_in(const struct ree_cuda_header &h, u32 operand) {
    return (const T *)h.operands[operand];
}
template <class T> REE_DEVICE ree_out_t<T> ree_out(const struct ree_cuda_header &h, u32 operand) {
    return (T *)h.operands[operand];
}
template <class T> REE_DEVICE ree_out_t<T> ree_scratch(const struct ree_cuda_header &h) {
    return (T *)h.scratch;
}
// Loads or stores sizeof(V) bytes at element i in one access. The address must be a multiple of
// sizeof(V).
template <class V, class T> REE_DEVICE V ree_load(const T *memory, u32 i) {
    return *(const V *)(memory + i);
}
template <class V, class T> REE_DEVICE void ree_store(T *memory, u32 i, V value) {
    *(V *)(memory + i) = value;
}
// Returns whether the address of element i is a multiple of `bytes`, a power of two.
template <class T> REE_DEVICE bool ree_aligned(const T *memory, u32 i, u32 bytes) {
    return ((uint64_t)(memory + i) & (bytes - 1)) == 0;
}

// Declares an array of n elements that a block shares, aligned to 16 bytes and uninitialized.
#define REE_SHARED(T, name, n) __shared__ __align__(16) T name[n]
template <class T> using ree_shared_t = T *; // type of REE_SHARED memory as a function argument
// Declares shared memory whose size the launch sets (shared_bytes of struct ree_cuda_step). At most
// one per kernel.
#define REE_SHARED_DYNAMIC(T, name)                                                                \
    extern __shared__ __align__(16) unsigned char ree_dynamic_shared[];                            \
    T *name = (T *)ree_dynamic_shared

// Copies BYTES (4, 8 or 16) bytes from element j of operand memory to element i of shared memory,
// asynchronously from sm_80 on. If `valid` is false, writes zeros and ignores j. Before a thread
// reads the copied data, three things must happen:
// - ree_async_commit() closes a group of copies;
// - ree_async_wait<N>() waits until at most the N latest groups of the calling thread are pending;
// - a barrier makes the data visible to other threads.
#if __CUDA_ARCH__ >= 800
template <int BYTES, class S, class T>
REE_DEVICE void ree_async_copy(S *shared, u32 i, const T *memory, u32 j, bool valid) {
    u32 to = (u32)__cvta_generic_to_shared(shared + i);
    const void *from = valid ? (const void *)(memory + j) : (const void *)memory;
    if constexpr (BYTES == 16)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from),
                     "r"(valid ? 16 : 0)
                     : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(to), "l"(from),
                     "n"(BYTES), "r"(valid ? BYTES : 0)
                     : "memory");
}
REE_DEVICE void ree_async_commit() {
    asm volatile("cp.async.commit_group;" ::: "memory");
}
template <int N> REE_DEVICE void ree_async_wait() {
    asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}
#else
template <int BYTES> struct alignas(BYTES) ree_bytes { u32 w[BYTES / 4]; };
template <int BYTES, class S, class T>
REE_DEVICE void ree_async_copy(S *shared, u32 i, const T *memory, u32 j, bool valid) {
    ree_bytes<BYTES> value = {};
    if (valid) value = *(const ree_bytes<BYTES> *)(memory + j);
    *(ree_bytes<BYTES> *)(shared + i) = value;
}
REE_DEVICE void ree_async_commit() {}
template <int N> REE_DEVICE void ree_async_wait() {}
#endif

#else
#include "emulator.h" // the same names, with checked accesses
#endif

// Waits until the oldest stage is filled. Shared memory has n_stages stages (2 to 4), and one group
// of asynchronous copies fills a stage. At the call, at most n_stages - 1 groups are pending.
REE_DEVICE void ree_async_wait_stage(u32 n_stages) {
    if (n_stages == 2u)
        ree_async_wait<0>();
    else if (n_stages == 3u)
        ree_async_wait<1>();
    else
        ree_async_wait<2>();
}

// Reports an index out of range: the run fails, and its message names the node. A run keeps only
// the first report. The kernel must not access memory with this index.
REE_DEVICE void ree_fault(const struct ree_cuda_header &h, u64 index) {
    u32 *fault = (u32 *)h.fault;
    if (atomicCAS(fault, 0u, h.dispatch + 1u) != 0u) return;
    fault[1] = u64_lo(index);
    fault[2] = u64_hi(index);
}

// Returns the index of the thread in the launch. A launch may have more threads than work, so the
// kernel must compare the index with the amount of work. Before a barrier, a thread may return only
// if its whole block returns.
REE_DEVICE u32 ree_thread() {
    return blockIdx.x * blockDim.x + threadIdx.x;
}

REE_DEVICE float ree_canon(float x) {
    return x == x ? x : ree_float(REE_NAN);
}
// Performs the last step of a sum: adds +0 (NUMERICS.md section 3).
REE_DEVICE float ree_plus_zero(float x) {
    return __fadd_rn(x, 0.0f);
}

// Returns the exponent of a power of two.
REE_DEVICE u32 ree_log2(u32 power) {
    return 31u - (u32)__clz((int)power);
}

// Returns n / d for n < 2^31 and sets *rest to n % d.
REE_DEVICE u32 ree_divide(u32 n, const struct ree_cuda_divider &d, u32 *rest) {
    u32 q = d.factor ? __umulhi(n, d.factor) >> d.shift : n;
    *rest = n - q * d.d;
    return q;
}

// Loads an element of any type as 64 bits, sign- or zero-extended as repop.h specifies for loads.
REE_DEVICE u64 ree_load_any(const struct ree_cuda_header &h, u32 operand, u32 dtype, u32 i) {
    switch (dtype) {
    case REE_I8:
    case REE_I4:
    case REE_I2: return (u64)(int64_t)ree_in<int8_t>(h, operand)[i];
    case REE_I16: return (u64)(int64_t)ree_in<int16_t>(h, operand)[i];
    case REE_U16:
    case REE_F16:
    case REE_BF16: return ree_in<uint16_t>(h, operand)[i];
    case REE_I32: return (u64)(int64_t)ree_in<int32_t>(h, operand)[i];
    case REE_F32:
    case REE_U32: return ree_in<uint32_t>(h, operand)[i];
    case REE_I64:
    case REE_U64:
    case REE_F64: return ree_in<uint64_t>(h, operand)[i];
    default: return ree_in<uint8_t>(h, operand)[i];
    }
}
REE_DEVICE u32 ree_size_of(u32 dtype) { // in bytes
    switch (dtype) {
    case REE_I64:
    case REE_U64:
    case REE_F64: return 8;
    case REE_F32:
    case REE_I32:
    case REE_U32: return 4;
    case REE_I16:
    case REE_U16:
    case REE_F16:
    case REE_BF16: return 2;
    default: return 1;
    }
}
REE_DEVICE void ree_store_size(const struct ree_cuda_header &h, u32 operand, u32 size, u32 i,
                               u64 value) {
    if (size == 8)
        ree_out<uint64_t>(h, operand)[i] = value;
    else if (size == 4)
        ree_out<uint32_t>(h, operand)[i] = (uint32_t)value;
    else if (size == 2)
        ree_out<uint16_t>(h, operand)[i] = (uint16_t)value;
    else
        ree_out<uint8_t>(h, operand)[i] = (uint8_t)value;
}
REE_DEVICE u64 ree_load_size(const struct ree_cuda_header &h, u32 operand, u32 size, u32 i) {
    if (size == 8) return ree_in<uint64_t>(h, operand)[i];
    if (size == 4) return ree_in<uint32_t>(h, operand)[i];
    if (size == 2) return ree_in<uint16_t>(h, operand)[i];
    return ree_in<uint8_t>(h, operand)[i];
}

#define REE_KERNEL(name, params, threads) REE_KERNEL_BLOCKS(name, params, threads, 1)

#endif
