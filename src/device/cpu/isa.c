// Detects which instruction sets and cache sizes this machine has.
#include "device/cpu/cpu_internal.h"

#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

static const char *const isa_names[REE_N_CPU_ISAS] = {
    [REE_CPU_PORTABLE] = "portable",
    [REE_CPU_NEON] = "neon",
    [REE_CPU_AVX2] = "avx2",
    [REE_CPU_AVX512] = "avx512",
};

const char *ree_cpu_isa_name(enum ree_cpu_isa isa) {
    return isa_names[isa];
}

#if defined(__x86_64__)
#include <cpuid.h>

// Reads bit `bit` of register `which` (eax, ebx, ecx, edx), for features that the compiler's
// run-time support has no name for. Except for AMX, these features use only registers that the
// check for AVX2 or AVX-512 has shown to be saved.
static bool cpuid_bit(unsigned leaf, unsigned subleaf, int which, int bit) {
    unsigned r[4] = {0};
    return __get_cpuid_count(leaf, subleaf, &r[0], &r[1], &r[2], &r[3]) && (r[which] >> bit & 1);
}
#endif

#ifdef REE_CPU_HAVE_AMXINT8
#include <sys/syscall.h>

// Asks Linux to let the threads of this process use the tiles. It refuses a thread whose alternate
// signal stack is too small to save them; then they stay unused.
static bool may_use_tiles(void) {
    enum { ARCH_REQ_XCOMP_PERM = 0x1023, XFEATURE_XTILEDATA = 18 };
    return syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0;
}
#endif

#if defined(__aarch64__)
#include <sys/auxv.h>
#endif

// The compiler's run-time support also checks that the operating system saves the registers.
bool ree_cpu_isa_available(enum ree_cpu_isa isa) {
    switch (isa) {
    case REE_CPU_PORTABLE: return true;
    case REE_CPU_NEON:
#ifdef REE_CPU_HAVE_NEON
        return true;
#else
        return false;
#endif
    case REE_CPU_AVX2:
#ifdef REE_CPU_HAVE_AVX2
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
               cpuid_bit(1, 0, 2, 29); // F16C
#else
        return false;
#endif
    case REE_CPU_AVX512:
#ifdef REE_CPU_HAVE_AVX512
        return ree_cpu_isa_available(REE_CPU_AVX2) && __builtin_cpu_supports("avx512f") &&
               __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
               __builtin_cpu_supports("avx512bw");
#else
        return false;
#endif
    case REE_N_CPU_ISAS: break;
    }
    return false;
}

static bool find_feature(enum ree_cpu_feature feature) {
    switch (feature) {
    case REE_CPU_FEATURE_NONE: return true;
    case REE_CPU_FEATURE_AVX512VNNI:
#ifdef REE_CPU_HAVE_AVX512VNNI
        return ree_cpu_isa_available(REE_CPU_AVX512) && cpuid_bit(7, 0, 2, 11);
#else
        return false;
#endif
    case REE_CPU_FEATURE_AVXVNNI:
#ifdef REE_CPU_HAVE_AVXVNNI
        return ree_cpu_isa_available(REE_CPU_AVX2) && cpuid_bit(7, 1, 0, 4);
#else
        return false;
#endif
    case REE_CPU_FEATURE_AVX512BF16:
#ifdef REE_CPU_HAVE_AVX512BF16
        return ree_cpu_isa_available(REE_CPU_AVX512) && cpuid_bit(7, 1, 0, 5);
#else
        return false;
#endif
    case REE_CPU_FEATURE_AMXINT8:
#ifdef REE_CPU_HAVE_AMXINT8
        return ree_cpu_isa_available(REE_CPU_AVX512) && cpuid_bit(7, 0, 3, 24) && // AMX-TILE
               cpuid_bit(7, 0, 3, 25) && may_use_tiles();
#else
        return false;
#endif
    case REE_CPU_FEATURE_DOTPROD:
#ifdef REE_CPU_HAVE_NEONDOT
        return (getauxval(AT_HWCAP) & (1 << 20)) != 0; // HWCAP_ASIMDDP
#else
        return false;
#endif
    case REE_N_CPU_FEATURES: break;
    }
    return false;
}

// Called in dispatches, so the result is cached: on a virtual machine the cpuid instruction takes
// microseconds. 0: not checked yet, 1: no, 2: yes.
bool ree_cpu_feature_available(enum ree_cpu_feature feature) {
    static atomic_uchar known[REE_N_CPU_FEATURES];
    unsigned char is = atomic_load_explicit(&known[feature], memory_order_relaxed);
    if (!is) {
        is = find_feature(feature) ? 2 : 1;
        atomic_store_explicit(&known[feature], is, memory_order_relaxed);
    }
    return is == 2;
}

enum ree_cpu_isa ree_cpu_isa_best(void) {
    int isa = REE_N_CPU_ISAS - 1; // the enumeration is ordered by speed
    while (!ree_cpu_isa_available((enum ree_cpu_isa)isa))
        isa--;
    return (enum ree_cpu_isa)isa;
}

enum ree_status ree_cpu_isa_select(const char *name, enum ree_cpu_isa *out, struct ree_error *err) {
    if (!name) {
        *out = ree_cpu_isa_best();
        return REE_OK;
    }
    bool known = false;
    char available[64] = "";
    for (int i = 0; i < REE_N_CPU_ISAS; i++) {
        bool here = ree_cpu_isa_available((enum ree_cpu_isa)i);
        bool named = strcmp(name, isa_names[i]) == 0;
        if (here && named) {
            *out = (enum ree_cpu_isa)i;
            return REE_OK;
        }
        known = known || named;
        if (here) {
            size_t used = strlen(available);
            snprintf(available + used, sizeof available - used, "%s%s", used ? ", " : "",
                     isa_names[i]);
        }
    }
    return ree_fail(err, known ? REE_UNAVAILABLE : REE_INVALID,
                    known ? "cpu: instruction set '%s' is not available here; available: %s"
                          : "cpu: unknown instruction set '%s'; available: %s",
                    name, available);
}

static uint64_t cache_size(int name) {
    long size = sysconf(name);
    return size > 0 ? (uint64_t)size : 0;
}

void ree_cpu_caches_detect(struct ree_cpu_caches *out) {
    out->l1d = cache_size(_SC_LEVEL1_DCACHE_SIZE);
    out->l2 = cache_size(_SC_LEVEL2_CACHE_SIZE);
    out->l3 = cache_size(_SC_LEVEL3_CACHE_SIZE);
}
