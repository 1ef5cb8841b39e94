// The CPU backend from the inside: what its kernels get and what they may call.
//
// There is one kernel function per RepOp, ree_cpu_<repop>, in the file of that name. It gets a
// context, the parameters and one host pointer per operand, and uses as many threads as the context
// and the amount of work allow. Operands are as repop.h says: tensors start at a multiple of 4
// bytes, outputs are dense and may be written up to the next multiple of 4 bytes.
//
// Bits never depend on the context: not on n_threads, not on isa. A kernel that has a faster body
// for an instruction set computes the same values in it.
//
// Files named *_avx512.c, *_avx2.c and *_neon.c are compiled for that instruction set where the
// compiler can target it (CMakeLists.txt), and are otherwise left out; REE_CPU_HAVE_AVX512, _AVX2
// and _NEON tell the remaining files. They must contain no code that runs before the context's isa
// was looked at, and no extern inline functions that could replace a portable one at link time.
#ifndef REE_DEVICE_CPU_INTERNAL_H
#define REE_DEVICE_CPU_INTERNAL_H

#include <string.h>

#include "base/float_env.h"
#include "base/status.h"
#include "device/device.h"

// Instruction sets (isa.c)

enum ree_cpu_isa {
    REE_CPU_PORTABLE, // C alone, fmaf included
    REE_CPU_NEON,     // AArch64 as it comes
    REE_CPU_AVX2,     // AVX2 and FMA
    REE_CPU_AVX512,   // AVX-512 F, DQ, VL and BW, and everything of AVX2
    REE_N_CPU_ISAS
};

const char *ree_cpu_isa_name(enum ree_cpu_isa isa); // "avx512", ...
bool ree_cpu_isa_available(enum ree_cpu_isa isa);   // compiled in, and this machine has it
enum ree_cpu_isa ree_cpu_isa_best(void);
// The one named, or the best when name is NULL. An unavailable or unknown one is an error that
// lists those available.
enum ree_status ree_cpu_isa_select(const char *name, enum ree_cpu_isa *out, struct ree_error *err);

// What some processors of an instruction set have beyond it; kernels choose for themselves.
enum ree_cpu_feature {
    REE_CPU_FEATURE_NONE,
    REE_CPU_FEATURE_AVX512VNNI,
    REE_CPU_FEATURE_AVXVNNI,
    REE_CPU_FEATURE_DOTPROD, // of NEON
    REE_N_CPU_FEATURES
};
bool ree_cpu_feature_available(
    enum ree_cpu_feature feature); // compiled in, and this machine has it

struct ree_cpu_caches {
    uint64_t l1d, l2, l3; // bytes, of one core as the operating system tells; 0: unknown
};
void ree_cpu_caches_detect(struct ree_cpu_caches *out);

// Context

// Scratch memory that outlives a kernel, so that kernels allocate only when a size grows. Each
// thread has a few blocks of its own.
#define REE_CPU_SCRATCH_SLOTS 4

struct ree_cpu_scratch {
    void *data[REE_CPU_SCRATCH_SLOTS];
    size_t size[REE_CPU_SCRATCH_SLOTS];
};

// Operands of one dispatch that may be packed: of blockwise weights the scales and zero points too.
#define REE_CPU_MAX_PACKED 4

struct ree_cpu_context {
    uint32_t n_threads; // at least 1
    enum ree_cpu_isa isa;
    struct ree_cpu_scratch *scratch; // n_threads of them
    // matmul, conv: packed copies of this dispatch's weights, by operand, or NULL; [0] is unused.
    const void *packed[REE_CPU_MAX_PACKED];
    uint32_t thread_grain; // nanoseconds of work that deserve a thread; 0: the default
    bool no_dot; // integer products as on processors without the features above; for tests
};

// Block `slot` of thread `thread` with at least `size` bytes, 64-byte aligned, contents undefined;
// valid until it is asked for again. A thread asks for its own only, or, outside a parallel region,
// the caller for any. NULL: out of memory (the kernel returns ree_cpu_no_memory).
void *ree_cpu_scratch_get(const struct ree_cpu_context *ctx, uint32_t thread, uint32_t slot,
                          size_t size);
enum ree_status ree_cpu_no_memory(struct ree_error *err, size_t size);
void ree_cpu_scratch_finish(struct ree_cpu_scratch *scratch);

// Threads

// How many threads a kernel should use whose work takes one thread about `nanoseconds`: all or one.
// Opening a parallel region costs some microseconds, so small work stays on the caller. Kernels ask
// for no other number, even where some of the threads have nothing to do. Use:
//
//     #pragma omp parallel num_threads(n) if (n > 1)
//     {
//         REE_FLOAT_ENV_WORKER(); // the threads may be those of the program that called ree
uint32_t ree_cpu_threads_for(const struct ree_cpu_context *ctx, uint64_t nanoseconds);

// Before a program runs on n_threads threads. When they are as many as the processors that the
// calling thread may use, binds each worker of its OpenMP team to a processor of its own, none of
// them to the one where the caller runs; the caller itself stays free, and nothing else of the
// process changes. Does nothing where OMP_PROC_BIND is set: then the user decides.
void ree_cpu_place_team(uint32_t n_threads);

// Part `part` of n_parts of [0, n), cut at multiples of `grain`; may be empty.
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

// Packed weights: B of matmul, w of conv, laid out as the micro-kernels read them. The size is 0
// where packing gains nothing; otherwise `out` takes that many bytes, 64-byte aligned. Two
// dispatches with the same key over the same memory have the same packed bytes. Of matmul, where B
// is blockwise weights, the scales and zero points (operands 2 and 3) are packed as well; a context
// has all of them or none.
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
