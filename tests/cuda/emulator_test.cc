// The emulator's own test: each check fires on a kernel with exactly one fault and does not fire on
// the correct kernel. A check that never fires would make every kernel's test worthless.
#include "cuda/kernel.h"

#include "api.h"

#include <stdio.h>
#include <string>

struct test_params {
    u32 wrong; // 0: the kernel is correct
    u32 n;
};

// Global memory.

REE_KERNEL(test_bounds, struct test_params, 64) {
    auto x = ree_in<u32>(h, 0);
    auto y = ree_out<u32>(h, 1);
    u32 i = ree_thread();
    if (i >= p.n + (p.wrong == 1)) return;
    if (p.wrong == 2 && i == 5) (void)x[i - 6u]; // the index wraps to 2^32 - 1
    if (p.wrong == 3 && i == 5) (void)x[(int)i - 6];
    if (p.wrong == 4 && i == 5) y[p.n] = 1;
    if (p.wrong == 5 && i == 5) y[p.n] += 1;
    if (p.wrong == 6 && i == 5) (void)ree_in<u32>(h, 2)[0];
    if (p.wrong == 7 && i == 5) (void)ree_scratch<u32>(h)[0];
    y[i] = x[i] + 1u;
}

REE_KERNEL(test_vectors, struct test_params, 64) {
    auto x = ree_in<u32>(h, 0);
    auto y = ree_out<u32>(h, 1);
    u32 i = ree_thread() * 4u;
    if (i >= p.n) return;
    u32 shift = p.wrong == 1 || (p.wrong == 3 && i + 4u == p.n) ? 1u : 0u;
    if (p.wrong == 3 && i + 4u == p.n) shift = 4u;
    uint4 v = ree_load<uint4>(x, i + shift);
    v.x++, v.y++, v.z++, v.w++;
    ree_store(y, i + (p.wrong == 2 ? 2u : 0u), v);
}

// Different threads may write the bytes of one word.
REE_KERNEL(test_bytes, struct test_params, 64) {
    auto y = ree_out<uint8_t>(h, 1);
    u32 i = ree_thread();
    if (i < p.n * 4u) y[i] = (uint8_t)(i % 251u);
    if (p.wrong && i == 9) y[10] = 1;
}

REE_KERNEL(test_blocks, struct test_params, 64) {
    auto y = ree_out<u32>(h, 1);
    u32 i = ree_thread();
    if (i >= p.n) return;
    if (p.wrong == 1) { // written by two blocks
        y[threadIdx.x] = i;
    } else if (p.wrong == 2) { // read by one block, written by another
        u32 other = y[(i + blockDim.x) % p.n];
        y[i] = other;
    } else {
        y[i] = i;
        y[i] = y[i] + 1u;
    }
}

// Global memory shared by the threads of a block.
REE_KERNEL(test_global_barrier, struct test_params, 64) {
    auto y = ree_out<u32>(h, 1);
    u32 i = ree_thread();
    y[i] = i;
    if (!p.wrong) __syncthreads();
    u32 neighbour = y[i ^ 33u];
    __syncthreads();
    y[i] = neighbour;
}

// The last block sums what the other blocks wrote. wrong 1: no fence. wrong 2: does not check
// whether it is the last block.
REE_KERNEL(test_last_block, struct test_params, 64) {
    REE_SHARED(u32, last, 1);
    auto y = ree_out<u32>(h, 1);
    auto partial = ree_scratch<u32>(h); // one for each thread, then the counter
    u32 total = gridDim.x * blockDim.x;
    partial[ree_thread()] = ree_thread() + 1u;
    if (p.wrong != 1) __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        u32 before = p.wrong == 2 ? gridDim.x - 1u : atomicAdd(&partial[total], 1u);
        last[0] = before == gridDim.x - 1u;
    }
    __syncthreads();
    if (!last[0]) return;
    if (threadIdx.x != 0) return;
    u32 sum = 0;
    for (u32 i = 0; i < total; i++)
        sum += partial[i];
    y[0] = sum;
    partial[total] = 0;
}

// Shared memory.

REE_KERNEL(test_reverse, struct test_params, 64) {
    REE_SHARED(u32, tile, 64);
    auto y = ree_out<u32>(h, 1);
    u32 t = threadIdx.x;
    tile[t + (p.wrong == 1 && t == 63 ? 1u : 0u)] = t;
    if (p.wrong != 2) __syncthreads();
    y[ree_thread()] = tile[63u - t];
    if (p.wrong == 3) tile[t] = 0; // no barrier after reading
}

// A read after a barrier replaces the readers that were recorded before the barrier.
REE_KERNEL(test_readers, struct test_params, 64) {
    REE_SHARED(u32, tile, 64);
    u32 t = threadIdx.x, sum = 0;
    tile[t] = t;
    __syncthreads();
    for (u32 i = 0; i < 64u; i++)
        // Some elements are read by the whole block, others by one warp.
        if (i % 3u == 0 || (i ^ t) < 32u) sum += tile[i];
    if (p.wrong != 1) __syncthreads();
    sum += tile[t];
    if (p.wrong == 2 && t == 1) sum += tile[60];
    if (p.wrong == 3 && t == 50) sum += tile[60];
    tile[t] = sum;
}

REE_KERNEL(test_unwritten, struct test_params, 64) {
    REE_SHARED(float, values, 65);
    auto y = ree_out<float>(h, 1);
    values[threadIdx.x] = 1.0f;
    __syncthreads();
    y[ree_thread()] = values[threadIdx.x + (p.wrong ? 1u : 0u)];
}

template <int N> REE_DEVICE float sum_of(ree_shared_t<float> values) {
    float sum = 0.0f;
    for (int i = 0; i < N; i++)
        sum = __fadd_rn(sum, values[i]);
    return sum;
}
template <class T> REE_DEVICE T through_shared(T value, bool barrier) {
    REE_SHARED(T, place, 64);
    place[threadIdx.x] = value;
    if (barrier) __syncthreads();
    return place[threadIdx.x ^ 1u];
}
REE_KERNEL(test_functions, struct test_params, 64) {
    REE_SHARED_DYNAMIC(float, values);
    auto y = ree_out<float>(h, 1);
    for (u32 i = threadIdx.x; i < p.n; i += blockDim.x)
        values[i] = (float)i;
    __syncthreads();
    float sum = sum_of<64>(values);
    float other = through_shared<float>((float)threadIdx.x, p.wrong != 1);
    u32 word = through_shared<u32>(threadIdx.x, true);
    y[ree_thread()] = sum + other - (float)word;
}

REE_KERNEL(test_components, struct test_params, 64) {
    REE_SHARED(float4, fours, 64);
    fours[threadIdx.x] = make_float4(1.0f, 2.0f, 3.0f, 4.0f);
    if (p.wrong) fours[threadIdx.x ^ 1u].z = 5.0f;
    __syncthreads();
    float4 v = fours[threadIdx.x ^ 1u];
    ree_out<float>(h, 1)[ree_thread()] = v.x + fours[threadIdx.x ^ 1u].w;
}

// Asynchronous copies with two buffers.
REE_KERNEL(test_async, struct test_params, 64) {
    REE_SHARED(u32, buffer, 2 * 256);
    auto x = ree_in<u32>(h, 0);
    auto y = ree_out<u32>(h, 1);
    u32 t = threadIdx.x, n_tiles = p.n / 256u, sum = 0;
    ree_async_copy<16>(buffer, t * 4u, x, t * 4u, true);
    ree_async_commit();
    for (u32 tile = 0; tile < n_tiles; tile++) {
        u32 next = tile + 1u;
        ree_async_copy<16>(buffer, next % 2u * 256u + t * 4u, x, next * 256u + t * 4u,
                           next < n_tiles);
        ree_async_commit();
        if (p.wrong != 1) ree_async_wait<1>();
        if (p.wrong != 2) __syncthreads();
        for (u32 i = 0; i < 256u; i++)
            sum += buffer[tile % 2u * 256u + i];
        if (p.wrong != 3) __syncthreads();
    }
    y[ree_thread()] = sum;
}

// Barriers and warps.

REE_KERNEL(test_divergent, struct test_params, 64) {
    auto y = ree_out<u32>(h, 1);
    u32 n = 0;
    if (p.wrong == 0) {
        if (threadIdx.x >= 48) return; // threads that have returned are not waited for
        n = (u32)__syncthreads_count(threadIdx.x % 2u);
    } else if (p.wrong == 1 && threadIdx.x < 8) {
        n = (u32)__syncthreads_or(1);
    } else if (p.wrong == 2 && threadIdx.x < 8) {
        n = __ballot_sync(0xFFFFFFFFu, 1);
    } else if (p.wrong == 3 && threadIdx.x < 8) {
        __syncthreads();
    } else {
        __syncthreads();
    }
    y[ree_thread()] = n;
}

REE_KERNEL(test_warp, struct test_params, 64) {
    auto y = ree_out<u32>(h, 1);
    u32 lane = threadIdx.x % 32u, all = 0xFFFFFFFFu, bad = 0;
    bad |= __shfl_sync(all, lane * 3u, 7) != 21u;
    bad |= __shfl_sync(all, lane, 3, 8) != (lane & 24u) + 3u;
    bad |= __shfl_xor_sync(all, lane, 5) != (lane ^ 5u);
    bad |= __shfl_up_sync(all, lane, 2u) != (lane < 2u ? lane : lane - 2u);
    bad |= __shfl_down_sync(all, lane, 2u) != (lane > 29u ? lane : lane + 2u);
    bad |= __shfl_down_sync(all, (float)lane, 1u, 4) != (float)(lane % 4u == 3u ? lane : lane + 1u);
    bad |= __shfl_xor_sync(all, (u64)lane << 40, 16) != (u64)(lane ^ 16u) << 40;
    bad |= __ballot_sync(all, lane % 3u == 0u) != 0x49249249u;
    bad |= __any_sync(all, lane == 9u) != 1 || __any_sync(all, 0) != 0;
    bad |= __all_sync(all, 1) != 1 || __all_sync(all, lane != 9u) != 0;
    bad |= __match_any_sync(all, lane / 8u) != 255u << (lane & 24u);
    if (lane < 16u) bad |= __ballot_sync(0xFFFFu, 1) != 0xFFFFu;
    if (p.wrong == 1 && lane < 16u) __shfl_sync(0xFFFFu, lane, 16);
    if (p.wrong == 2 && lane == 3u) __syncwarp(0xFFFFFFF7u);
    if (p.wrong == 3 && lane < 16u) __syncwarp(0x1FFFFu);
    y[ree_thread()] = bad;
}

// Order within a warp, by __syncwarp of the whole warp and of a part of it.
REE_KERNEL(test_warp_order, struct test_params, 64) {
    REE_SHARED(u32, tile, 64);
    u32 t = threadIdx.x, value = 0;
    tile[t] = t;
    if (p.wrong != 1) __syncwarp();
    value = tile[t ^ 1u];
    if (t % 32u < 16u) {
        __syncwarp(0xFFFFu);
        tile[t] = value;
        __syncwarp(p.wrong == 2 ? 0x00FFu << (t & 8u) : 0xFFFFu);
        value = tile[t ^ 8u];
    }
    if (p.wrong == 3) value = tile[t ^ 32u]; // written by the other warp
    ree_out<u32>(h, 1)[ree_thread()] = value;
}

REE_KERNEL(test_atomics, struct test_params, 64) {
    REE_SHARED(u32, count, 2);
    auto y = ree_out<u32>(h, 1);
    if (threadIdx.x < 2) count[threadIdx.x] = 0;
    if (p.wrong != 1) __syncthreads();
    atomicAdd(&count[0], 1u);
    atomicMax(count + 1, threadIdx.x);
    if (p.wrong != 2) __syncthreads();
    y[ree_thread()] = count[0] + count[1];
}

// Each thread writes the number of its turn, which shows the effect of the order option.
REE_KERNEL(test_order, struct test_params, 1024) {
    auto y = ree_out<u32>(h, 1);
    y[ree_thread()] = atomicAdd(ree_scratch<u32>(h), 1u);
}

// Arithmetic, compared with numbers from CUDA's documentation and numbers computed by hand.
REE_KERNEL(test_arithmetic, struct test_params, 64) {
    u32 bad = 0;
    bad |= __umulhi(0x80000000u, 6u) != 3u || __mulhi(-1, 1) != -1;
    bad |= __umul64hi(1ull << 63, 6ull) != 3ull;
    bad |= __popc(0xF0F0u) != 8 || __clz(0) != 32 || __clz(1) != 31 || __ffs(0) != 0 ||
           __ffs(8) != 4 || __brev(1u) != 0x80000000u;
    bad |= __byte_perm(0x33221100u, 0x77665544u, 0x7531u) != 0x77553311u;
    bad |= __byte_perm(0x80u, 0u, 0x8888u) != 0xFFFFFFFFu;
    bad |= __dp4a(0x01FF02FE, 0x01020304, 10) != 1 - 2 + 6 - 8 + 10;
    bad |= __dp4a(0x01FF02FEu, 0x01020304u, 10u) != 1u + 510u + 6u + 1016u + 10u;
    bad |= __float_as_uint(__fmaf_rn(1.0f + 0x1p-12f, 1.0f + 0x1p-12f, -1.0f)) !=
           __float_as_uint(0x1p-11f + 0x1p-24f);
    bad |= __fadd_rn(__fmul_rn(1.0f + 0x1p-12f, 1.0f + 0x1p-12f), -1.0f) != 0x1p-11f;
    bad |= __float2int_rz(3e9f) != 0x7FFFFFFF || __float2uint_rz(-1.0f) != 0u ||
           __float2int_rn(2.5f) != 2 || __float2int_rz(-2.5f) != -2;
    bad |= min(3u, 4u) != 3u || max(-1, 1) != 1 || min(NAN, 1.0f) != 1.0f;
    bad |= __funnelshift_l(0x80000000u, 1u, 1u) != 3u;
    ree_out<u32>(h, 1)[ree_thread()] = bad + p.wrong;
}

// Launches.

static int n_failures;
static void expect(bool condition, const char *name, u32 wrong, const char *what) {
    if (condition) return;
    printf("%s, wrong %u: %s\n", name, wrong, what);
    n_failures++;
}

#define N 1024u

struct arguments {
    struct ree_cuda_header h;
    struct test_params p;
};

static u32 *x, *y, *scratch;

static std::string launch(const char *name, u32 wrong, u32 n, u32 grid, u32 block, u32 shared = 0) {
    struct arguments a = {};
    a.h.operands[0] = (u64)x, a.h.sizes[0] = N * 4u;
    a.h.operands[1] = (u64)y, a.h.sizes[1] = n * 4u;
    a.h.operands[2] = (u64)&a, a.h.sizes[2] = 4; // not device memory
    a.h.scratch = (u64)scratch, a.h.scratch_size = (N + 1u) * 4u;
    if (wrong == 7) a.h.scratch_size = 0;
    a.p = {wrong, n};
    memset(scratch, 0, (N + 1u) * 4u);
    char error[500] = "";
    int result =
        ree_emulator_launch(name, grid, 1, 1, block, 1, 1, shared, &a, error, sizeof error);
    expect((result == 0) == (error[0] == 0), name, wrong, "no text with the error");
    return error;
}

static void passes(const char *name, u32 n, u32 grid, u32 block, u32 shared = 0) {
    std::string error = launch(name, 0, n, grid, block, shared);
    expect(error.empty(), name, 0, error.c_str());
}
// The launch must fail with a text that contains all of these words.
static void fires(const char *name, u32 wrong, const char *word, u32 n, u32 grid, u32 block,
                  u32 shared = 0, const char *word2 = "") {
    std::string error = launch(name, wrong, n, grid, block, shared);
    expect(error.find(word) != std::string::npos && error.find(word2) != std::string::npos &&
               error.find(name) != std::string::npos,
           name, wrong, error.empty() ? "nothing was noticed" : error.c_str());
}
static void each_is(const char *name, u32 n, u32 value) {
    for (u32 i = 0; i < n; i++)
        if (y[i] != value) {
            printf("%s: element %u is %u, not %u\n", name, i, y[i], value);
            n_failures++;
            return;
        }
}

int main() {
    x = (u32 *)ree_emulator_alloc(N * 4u);
    y = (u32 *)ree_emulator_alloc(N * 4u);
    scratch = (u32 *)ree_emulator_alloc((N + 1u) * 4u);
    for (u32 i = 0; i < N; i++)
        x[i] = i;

    passes("ree_test_bounds", 100, 2, 64);
    expect(y[99] == 100, "ree_test_bounds", 0, "the last element");
    fires("ree_test_bounds", 1, "element 100 of 4 bytes (byte 400) of operand 1", 100, 2, 64);
    fires("ree_test_bounds", 2, "element 4294967295 of 4 bytes", 100, 2, 64, 0, "operand 0");
    fires("ree_test_bounds", 3, "element -1 of 4 bytes", 100, 2, 64, 0, "thread (5,0,0)");
    fires("ree_test_bounds", 4, "writes element 100", 100, 2, 64);
    fires("ree_test_bounds", 5, "reads element 100", 100, 2, 64);
    fires("ree_test_bounds", 6, "operand 2", 100, 2, 64);
    fires("ree_test_bounds", 7, "scratch", 100, 2, 64);

    passes("ree_test_vectors", 100, 1, 64);
    expect(y[99] == 100, "ree_test_vectors", 0, "the last element");
    fires("ree_test_vectors", 1, "misaligned", 100, 1, 64, 0, "reads");
    fires("ree_test_vectors", 2, "misaligned", 100, 1, 16, 0, "writes");
    fires("ree_test_vectors", 3, "out of range", N, 4, 64);

    passes("ree_test_bytes", 32, 2, 64);
    fires("ree_test_bytes", 1, "race: writes byte 10 of operand 1", 32, 2, 64, 0, "(10,0,0)");

    passes("ree_test_blocks", 256, 4, 64);
    fires("ree_test_blocks", 1, "race: writes", 256, 4, 64, 0, "of block");
    fires("ree_test_blocks", 2, "race: ", 256, 4, 64, 0, "of block");

    passes("ree_test_global_barrier", 256, 4, 64);
    fires("ree_test_global_barrier", 1, "race: ", 256, 4, 64, 0, "operand 1");

    passes("ree_test_last_block", 1, 8, 64);
    expect(y[0] == 512 * 513 / 2, "ree_test_last_block", 0, "the sum");
    fires("ree_test_last_block", 1, "race: reads", 1, 8, 64, 0, "scratch");
    fires("ree_test_last_block", 2, "race: ", 1, 8, 64, 0, "of block");

    passes("ree_test_reverse", 256, 4, 64);
    for (u32 i = 0; i < 256; i++)
        expect(y[i] == 63 - i % 64, "ree_test_reverse", 0, "the order");
    fires("ree_test_reverse", 1, "element 64 of 4 bytes", 256, 4, 64, 0, "'tile'");
    // Depending on the order, the first thread reads unwritten data or data that another thread
    // wrote.
    fires("ree_test_reverse", 2, "'tile'", 256, 4, 64);
    fires("ree_test_reverse", 3, "race: ", 256, 4, 64, 0, "'tile'");
    passes("ree_test_readers", 64, 1, 64);
    fires("ree_test_readers", 1, "race", 64, 1, 64, 0, "'tile'");
    fires("ree_test_readers", 2, "race", 64, 1, 64, 0, "'tile'");
    fires("ree_test_readers", 3, "race", 64, 1, 64, 0, "'tile'");
    fires("ree_test_unwritten", 1, "byte 256 of shared array 'values'", 256, 4, 64, 0,
          "has not written");
    passes("ree_test_unwritten", 256, 4, 64);

    passes("ree_test_functions", 128, 2, 64, 512);
    float expected = 64 * 63 / 2;
    expect(memcmp(y, &expected, 4) == 0, "ree_test_functions", 0, "the sum");
    fires("ree_test_functions", 1, "'place'", 128, 2, 64, 512);
    fires("ree_test_functions", 0, "dynamic shared memory 'values'", 128, 2, 64, 508);

    passes("ree_test_components", 128, 2, 64);
    fires("ree_test_components", 1, "race", 128, 2, 64, 0, "'fours'");

    passes("ree_test_async", N, 2, 64);
    expect(y[5] == N * (N - 1) / 2, "ree_test_async", 0, "the sum");
    fires("ree_test_async", 2, "'buffer'", N, 2, 64);
    fires("ree_test_async", 3, "'buffer'", N, 2, 64);
    fires("ree_test_async", 1, "asynchronous", N, 2, 64);
    ree_emulator_options("async=now");
    passes("ree_test_async", N, 2, 64);
    fires("ree_test_async", 2, "'buffer'", N, 2, 64);
    ree_emulator_options("async=late");

    passes("ree_test_divergent", 64, 1, 64);
    each_is("ree_test_divergent", 48, 24);
    fires("ree_test_divergent", 1, "deadlock", 64, 1, 64, 0, "__syncthreads_or");
    fires("ree_test_divergent", 2, "deadlock", 64, 1, 64, 0, "a vote");
    fires("ree_test_divergent", 3, "deadlock", 64, 1, 64);

    passes("ree_test_warp", 128, 2, 64);
    each_is("ree_test_warp", 128, 0);
    fires("ree_test_warp", 1, "takes from lane 16", 128, 2, 64);
    fires("ree_test_warp", 2, "mask", 128, 2, 64);
    passes("ree_test_warp_order", 64, 1, 64);
    fires("ree_test_warp_order", 1, "'tile'", 64, 1, 64);
    fires("ree_test_warp_order", 2, "race", 64, 1, 64);
    fires("ree_test_warp_order", 3, "'tile'", 64, 1, 64);

    passes("ree_test_atomics", 128, 2, 64);
    each_is("ree_test_atomics", 128, 64 + 63);
    fires("ree_test_atomics", 1, "'count'", 128, 2, 64);
    fires("ree_test_atomics", 2, "race", 128, 2, 64, 0, "'count'");

    passes("ree_test_arithmetic", 64, 1, 64);
    each_is("ree_test_arithmetic", 64, 0);

    ree_emulator_options("order=forward");
    passes("ree_test_order", N, 1, 1024);
    expect(y[0] == 0 && y[1] == 1 && y[N - 1] == N - 1, "ree_test_order", 0, "forward");
    ree_emulator_options("order=backward");
    passes("ree_test_order", N, 4, 256);
    expect(y[0] == N - 1 && y[1] == N - 2 && y[N - 1] == 0, "ree_test_order", 0, "backward");
    ree_emulator_options("order=random:7");
    passes("ree_test_order", N, 4, 256);
    u32 sum = 0, n_in_place = 0;
    for (u32 i = 0; i < N; i++)
        sum += y[i], n_in_place += y[i] == i;
    expect(sum == N * (N - 1) / 2 && n_in_place < N / 8, "ree_test_order", 0, "random");
    expect(ree_emulator_options("order=sideways") != 0, "options", 0, "nonsense is accepted");

    ree_emulator_options("races=off");
    expect(launch("ree_test_blocks", 1, 256, 4, 64).empty(), "ree_test_blocks", 1, "races=off");
    ree_emulator_options("races=on");

    expect(!launch("ree_test_bounds", 0, 100, 1, 65).empty(), "launch", 0, "too many threads");
    expect(!launch("ree_test_none", 0, 100, 1, 64).empty(), "launch", 0, "no such kernel");
    expect(ree_emulator_free(x) && ree_emulator_free(y) && ree_emulator_free(scratch) &&
               !ree_emulator_free(x),
           "memory", 0, "free");
    printf(n_failures ? "%d failures\n" : "ok\n", n_failures);
    return n_failures != 0;
}
