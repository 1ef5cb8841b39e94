// Internals of the CPU backend: what its kernels receive and which functions they may call.
//
// There is one kernel function per RepOp, ree_cpu_<repop>, in the file of that name. It receives a
// context, the parameters and one host pointer per operand. It uses as many threads as the context
// and the amount of work allow. repop.h describes operands: tensors start at a multiple of 4 bytes;
// outputs are dense and may be written up to the next multiple of 4 bytes.
//
// The result bits never depend on the context: neither on n_threads nor on isa. A kernel with a
// faster body for an instruction set computes the same values in it.
//
// Files named *_avx512.c, *_avx2.c and *_neon.c are compiled for that instruction set if the
// compiler can target it (CMakeLists.txt), and are left out otherwise. REE_CPU_HAVE_AVX512, _AVX2
// and _NEON tell the other files which ones exist. The files for an instruction set must contain no
// code that runs before the context's isa was checked, and no extern inline functions that could
// replace a portable one at link time.
#ifndef REE_DEVICE_CPU_INTERNAL_H
#define REE_DEVICE_CPU_INTERNAL_H

#include <string.h>

#include "base/float_env.h"
#include "base/status.h"
#include "device/device.h"

// Instruction sets (isa.c)

enum ree_cpu_isa {
    REE_CPU_PORTABLE, // C only, including fmaf
    REE_CPU_NEON,     // baseline AArch64
    REE_CPU_AVX2,     // AVX2, FMA and F16C
    REE_CPU_AVX512,   // AVX-512 F, DQ, VL and BW, and everything in AVX2
    REE_N_CPU_ISAS
};

const char *ree_cpu_isa_name(enum ree_cpu_isa isa); // such as "avx512"
bool ree_cpu_isa_available(enum ree_cpu_isa isa);   // compiled in, and this processor has it
enum ree_cpu_isa ree_cpu_isa_best(void);
// Selects the instruction set called `name`, or the best one if name is NULL. Fails with
// REE_INVALID if the name is unknown, with REE_UNAVAILABLE if it is not available; the message
// lists those available.
enum ree_status ree_cpu_isa_select(const char *name, enum ree_cpu_isa *out, struct ree_error *err);

// Extensions that only some processors of an instruction set have. Each kernel checks for them
// itself.
enum ree_cpu_feature {
    REE_CPU_FEATURE_NONE,
    REE_CPU_FEATURE_AVX512VNNI,
    REE_CPU_FEATURE_AVXVNNI,
    REE_CPU_FEATURE_AVX512BF16,
    REE_CPU_FEATURE_AMXINT8, // tiles of bytes, which the operating system lets this process use
    REE_CPU_FEATURE_DOTPROD, // dot products of bytes, of NEON
    REE_N_CPU_FEATURES
};
// Returns whether the feature's code is compiled in and this processor has the feature.
bool ree_cpu_feature_available(enum ree_cpu_feature feature);

struct ree_cpu_caches {
    uint64_t l1d, l2, l3; // sizes in bytes, as the operating system reports; 0: unknown
};
void ree_cpu_caches_detect(struct ree_cpu_caches *out);

// Context

// Number of scratch blocks of each thread. Scratch memory outlives a kernel, so kernels allocate
// only when a size grows.
#define REE_CPU_SCRATCH_SLOTS 5
#define REE_CPU_SCRATCH_TABLE 4 // of the first thread: a table of an expression's values

struct ree_cpu_scratch {
    void *data[REE_CPU_SCRATCH_SLOTS];
    size_t size[REE_CPU_SCRATCH_SLOTS];
};

// Length of arrays of packed operands, which are indexed by operand number. Operands 1 to 3 of a
// dispatch may be packed: weights, and the scales and zero points of blockwise weights.
#define REE_CPU_MAX_PACKED 4

// How products of bfloat16 are computed on a processor with an instruction for pairs of terms
// (tiles_pairs.h).
enum ree_cpu_pairs {
    REE_CPU_PAIRS_WHERE_EXACT, // with the instruction, wherever it is exact
    REE_CPU_PAIRS_IF_FASTER,   // so, if it is faster than multiplying floats; otherwise as floats
    REE_CPU_PAIRS_AS_FLOATS,   // tests: packed as pairs, but multiplied as floats
    REE_CPU_PAIRS_MODEL,       // tests: with ree_pairs_model, the instruction modelled in C
};

struct ree_cpu_context {
    uint32_t n_threads; // at least 1
    enum ree_cpu_isa isa;
    struct ree_cpu_scratch *scratch; // [n_threads]
    // matmul, conv: packed copies of this dispatch's weights, by operand number; NULL: not packed.
    // [0] is unused.
    const void *packed[REE_CPU_MAX_PACKED];
    // nanoseconds of work that justify one more thread; 0: default
    uint32_t thread_grain;
    // tests: compute products as if the processor had none of the features of enum ree_cpu_feature
    bool no_dot;
    enum ree_cpu_pairs pairs;
};

// Returns block `slot` of thread `thread`, at least `size` bytes, 64-byte aligned, contents
// undefined. It is valid until the next call for the same block. Within a parallel region a thread
// may request only its own blocks; outside, the caller may request any. Returns NULL if out of
// memory (the kernel then returns ree_cpu_no_memory).
void *ree_cpu_scratch_get(const struct ree_cpu_context *ctx, uint32_t thread, uint32_t slot,
                          size_t size);
// Makes block `slot` of each of n_threads threads at least `size` bytes. Fails if out of memory.
enum ree_status ree_cpu_scratch_reserve(const struct ree_cpu_context *ctx, uint32_t n_threads,
                                        uint32_t slot, size_t size, struct ree_error *err);
enum ree_status ree_cpu_no_memory(struct ree_error *err, size_t size);
void ree_cpu_scratch_finish(struct ree_cpu_scratch *scratch);

// Threads

// Returns the number of threads for a kernel whose work takes one thread about `nanoseconds`: all
// or one. Opening a parallel region costs some microseconds, so small work stays on the calling
// thread. Kernels must not use any other number, even if some threads have nothing to do.
uint32_t ree_cpu_threads_for(const struct ree_cpu_context *ctx, uint64_t nanoseconds);

// The iterations that one call of a loop's body computes.
struct ree_cpu_range {
    uint64_t begin, end;  // [begin, end); may be empty
    uint32_t thread;      // index of the thread whose scratch this is
    void *const *scratch; // the thread's scratch memory, by slot
};

// The loop of a kernel: the body is called until all iterations [0, n) are computed, by several
// threads at a time and in any order.
struct ree_cpu_loop {
    uint64_t n;
    // 0: the threads take iterations one by one. Otherwise each thread gets one range, with bounds
    // at multiples of the grain.
    uint64_t grain;
    uint32_t n_threads; // 1, or what ree_cpu_threads_for returns
    void (*body)(const void *job, const struct ree_cpu_range *range);
    const void *job; // passed to body
};

// Runs a loop (loop.c). The scratch memory that the body uses must have been reserved.
//
// A kernel whose threads wait for each other between loops opens its own parallel region, only for
// n > 1 threads:
//
//     #pragma omp parallel num_threads(n)
//     {
//         REE_FLOAT_ENV_WORKER(); // the threads may be those of the program that called ree
//         ...
//     }
void ree_cpu_run_loop(const struct ree_cpu_context *ctx, const struct ree_cpu_loop *loop);

// Binds threads to processors; to be called before a program runs on n_threads threads. If
// n_threads equals the number of processors that the calling thread may use, binds each worker of
// its OpenMP team to a processor of its own, other than the caller's current one. The caller stays
// unbound, and no other state of the process changes. Does nothing if OMP_PROC_BIND is set, because
// the user then decides.
void ree_cpu_bind_team(uint32_t n_threads);

// Divides [0, n) into n_parts ranges with bounds at multiples of `grain`, and computes range number
// `part`, [*out_begin, *out_end). It may be empty.
static inline void ree_cpu_split(uint64_t n, uint64_t grain, uint32_t part, uint32_t n_parts,
                                 uint64_t *out_begin, uint64_t *out_end) {
    uint64_t n_grains = (n + grain - 1) / grain;
    uint64_t begin = n_grains * part / n_parts * grain;
    uint64_t end = n_grains * (part + 1) / n_parts * grain;
    *out_begin = begin < n ? begin : n;
    *out_end = end < n ? end : n;
}

// Values

static inline float ree_cpu_canonical_nan(float x) {
    uint32_t nan = 0x7FC00000u;
    float canonical;
    memcpy(&canonical, &nan, 4);
    return x == x ? x : canonical;
}

// Kernels

enum ree_status ree_cpu_copy(const struct ree_cpu_context *ctx, const struct ree_copy_params *p,
                             void *const *operands, struct ree_error *err);
enum ree_status ree_cpu_map(const struct ree_cpu_context *ctx, const struct ree_map_params *p,
                            void *const *operands, struct ree_error *err);
enum ree_status ree_cpu_reduce(const struct ree_cpu_context *ctx, const struct ree_reduce_params *p,
                               void *const *operands, struct ree_error *err);
enum ree_status ree_cpu_matmul(const struct ree_cpu_context *ctx, const struct ree_matmul_params *p,
                               void *const *operands, struct ree_error *err);
enum ree_status ree_cpu_conv(const struct ree_cpu_context *ctx, const struct ree_conv_params *p,
                             void *const *operands, struct ree_error *err);
enum ree_status ree_cpu_pool(const struct ree_cpu_context *ctx, const struct ree_pool_params *p,
                             void *const *operands, struct ree_error *err);
enum ree_status ree_cpu_softmax(const struct ree_cpu_context *ctx,
                                const struct ree_softmax_params *p, void *const *operands,
                                struct ree_error *err);
enum ree_status ree_cpu_norm(const struct ree_cpu_context *ctx, const struct ree_norm_params *p,
                             void *const *operands, struct ree_error *err);
enum ree_status ree_cpu_gather(const struct ree_cpu_context *ctx, const struct ree_gather_params *p,
                               void *const *operands, struct ree_error *err);
enum ree_status ree_cpu_scatter(const struct ree_cpu_context *ctx,
                                const struct ree_scatter_params *p, void *const *operands,
                                struct ree_error *err);
enum ree_status ree_cpu_topk(const struct ree_cpu_context *ctx, const struct ree_topk_params *p,
                             void *const *operands, struct ree_error *err);
enum ree_status ree_cpu_scan(const struct ree_cpu_context *ctx, const struct ree_scan_params *p,
                             void *const *operands, struct ree_error *err);
enum ree_status ree_cpu_resize(const struct ree_cpu_context *ctx, const struct ree_resize_params *p,
                               void *const *operands, struct ree_error *err);
enum ree_status ree_cpu_attention(const struct ree_cpu_context *ctx,
                                  const struct ree_attention_params *p, void *const *operands,
                                  struct ree_error *err);

// Packed weights are B of matmul or w of conv in the layout that the micro-kernels read. The
// functions *_pack_size return their size in bytes: 0 if packing gains nothing. The functions
// *_pack write them to `out`, which must be 64-byte aligned. Two dispatches with the same key over
// the same memory have the same packed bytes. If B is blockwise weights, its scales and zero points
// (operands 2 and 3) are packed too; a context has all of them or none.
#define REE_CPU_PACK_KEY 16
struct ree_cpu_pack_key {
    uint32_t words[REE_CPU_PACK_KEY];
};
size_t ree_cpu_matmul_pack_size(const struct ree_cpu_context *ctx,
                                const struct ree_matmul_params *p, uint32_t operand,
                                struct ree_cpu_pack_key *key);
void ree_cpu_matmul_pack(const struct ree_cpu_context *ctx, const struct ree_matmul_params *p,
                         uint32_t operand, const void *src, void *out);
size_t ree_cpu_conv_pack_size(const struct ree_cpu_context *ctx, const struct ree_conv_params *p,
                              struct ree_cpu_pack_key *key);
void ree_cpu_conv_pack(const struct ree_cpu_context *ctx, const struct ree_conv_params *p,
                       const void *w, void *out);

#endif
