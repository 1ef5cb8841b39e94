#include "device/cpu/selftest.h"

#include "base/sha256.h"
#include "device/cache_folder.h"
#include "device/selftest/identity.h"
#include "device/selftest/record.h"

#include <fenv.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#if defined(__SSE__)
#include <xmmintrin.h>
#endif

// The calling thread's floating-point modes: rounding, subnormals, traps. A library built with
// -ffast-math may have changed them.
static uint64_t float_modes(void) {
#if defined(__SSE__)
    return _mm_getcsr() & ~0x3Fu; // without the status flags
#elif defined(__aarch64__)
    uint64_t control;
    __asm__ volatile("mrs %0, fpcr" : "=r"(control));
    return control;
#else
    return (uint64_t)fegetround();
#endif
}

enum ree_status ree_cpu_test_run(const struct ree_cpu_test *test, enum ree_cpu_isa isa,
                                 char out[33], struct ree_error *err) {
    struct ree_cpu_scratch scratch = {0};
    const struct ree_cpu_context ctx = {.n_threads = 1, .isa = isa, .scratch = &scratch};
    char hex[65];
    struct ree_hasher *hasher = ree_hasher_create("ree-cpu-selftest/1");
    if (!hasher) return ree_fail(err, REE_NO_MEMORY, "no memory for a self-test");
    enum ree_status status = test->run(&ctx, hasher, err);
    ree_hasher_finish(hasher, hex);
    ree_cpu_scratch_finish(&scratch);
    snprintf(out, 33, "%.32s", hex);
    return status;
}

// The names of the problems whose results are not as recorded.
static void run_all(enum ree_cpu_isa isa, char *out_what) {
    size_t used = 0;
    out_what[0] = '\0';
    for (size_t i = 0; i < ree_cpu_n_tests; i++) {
        char digest[33];
        struct ree_error err;
        bool right = ree_cpu_test_run(&ree_cpu_tests[i], isa, digest, &err) == REE_OK &&
                     strcmp(digest, ree_cpu_tests[i].recorded) == 0;
        if (right || used >= REE_CPU_TEST_TEXT / 2) continue;
        used += (size_t)snprintf(out_what + used, REE_CPU_TEST_TEXT - used, "%s%s",
                                 used ? ", " : "", ree_cpu_tests[i].name);
    }
}

// Binary, processor, instruction set and floating-point modes. False: this binary has no name of
// its own, and its results are not kept.
static bool key_of(enum ree_cpu_isa isa, uint64_t modes, unsigned char key[REE_SHA256_SIZE]) {
    struct ree_hasher *hasher = ree_hasher_create("ree-cpu-selftest-key/2");
    if (!hasher) return false;
    ree_hasher_update(hasher, &modes, sizeof modes);
    const char *name = ree_cpu_isa_name(isa);
    ree_hasher_update(hasher, name, strlen(name) + 1);
    bool named = ree_hash_binary(hasher, (const void *)(uintptr_t)&ree_cpu_tests);
    ree_hash_processor(hasher);
    ree_hasher_digest(hasher, key);
    return named;
}

static void test_or_recall(enum ree_cpu_isa isa, uint64_t modes, const char *cache_dir,
                           char *out_what) {
    unsigned char key[REE_SHA256_SIZE];
    struct ree_test_record record;
    bool named = key_of(isa, modes, key);
    ree_test_record_init(&record, named ? ree_cache_path(cache_dir, "cpu.tests") : NULL);
    out_what[0] = '\0';
    if (!named || !ree_test_record_find(&record, key)) {
        run_all(isa, out_what);
        // Only what passed: a failure may be the calling program's, and another one gets a test of
        // its own.
        if (named && !out_what[0]) ree_test_record_add(&record, key, REE_TEST_PASSED, NULL);
    }
    ree_test_record_finish(&record);
}

// What was found out in this process. A mode that changed after a device was opened is noticed when
// the next one is opened. Verdicts stay for the life of the process.
struct verdict {
    struct verdict *next;
    enum ree_cpu_isa isa;
    uint64_t modes;
    char wrong[REE_CPU_TEST_TEXT]; // "": right
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct verdict *verdicts;

// NULL: not tested. The lock is held.
static const struct verdict *find(enum ree_cpu_isa isa, uint64_t modes) {
    for (const struct verdict *v = verdicts; v; v = v->next)
        if (v->isa == isa && v->modes == modes) return v;
    return NULL;
}

bool ree_cpu_isa_is_right(enum ree_cpu_isa isa, const char *cache_dir, char *out_what) {
    const uint64_t modes = float_modes();
    char what[REE_CPU_TEST_TEXT] = ""; // copied whole
    pthread_mutex_lock(&lock);
    const struct verdict *known = find(isa, modes);
    if (known) {
        memcpy(what, known->wrong, sizeof what);
    } else {
        test_or_recall(isa, modes, cache_dir, what);
        struct verdict *verdict = calloc(1, sizeof *verdict);
        if (verdict) { // otherwise it is tested again
            *verdict = (struct verdict){.next = verdicts, .isa = isa, .modes = modes};
            memcpy(verdict->wrong, what, sizeof what);
            verdicts = verdict;
        }
    }
    pthread_mutex_unlock(&lock);
    if (out_what) memcpy(out_what, what, sizeof what);
    return what[0] == '\0';
}

const char *ree_cpu_isa_verdict(enum ree_cpu_isa isa) {
    const uint64_t modes = float_modes();
    pthread_mutex_lock(&lock);
    const struct verdict *known = find(isa, modes);
    pthread_mutex_unlock(&lock);
    return known ? known->wrong : NULL;
}

enum ree_status ree_cpu_isa_select_right(const char *name, const char *cache_dir,
                                         enum ree_cpu_isa *out, struct ree_error *err) {
    char what[REE_CPU_TEST_TEXT];
    REE_TRY(ree_cpu_isa_select(name, out, err));
    if (ree_cpu_isa_is_right(*out, cache_dir, what)) return REE_OK;
    for (int isa = *out; !name && isa-- > 0;) {
        if (!ree_cpu_isa_available((enum ree_cpu_isa)isa)) continue;
        *out = (enum ree_cpu_isa)isa;
        if (ree_cpu_isa_is_right(*out, cache_dir, what)) return REE_OK;
    }
    return ree_fail(err, REE_UNSUPPORTED,
                    "cpu: this build of ree computes wrong bits on this processor with "
                    "instruction set '%s' (%s); was it built with other options, or has the calling "
                    "program changed the floating-point modes (-ffast-math)?",
                    ree_cpu_isa_name(*out), what);
}
