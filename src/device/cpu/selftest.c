#include "device/cpu/selftest.h"

#include "base/float_env.h"
#include "base/memory.h"
#include "base/sha256.h"
#include "device/cache_folder.h"
#include "device/selftest/identity.h"
#include "device/selftest/record.h"
#include "repops/elementary64.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum ree_status ree_cpu_test_run(const struct ree_cpu_test *test, enum ree_cpu_isa isa,
                                 char out[33], struct ree_error *err) {
    struct ree_cpu_scratch scratch = {0};
    const struct ree_cpu_context ctx = {.n_threads = 1, .isa = isa, .scratch = &scratch};
    char hex[65];
    struct ree_hasher *hasher = ree_hasher_create("ree-cpu-selftest/1");
    if (!hasher) return ree_fail(err, REE_NO_MEMORY, "no memory for a self-test");
    enum ree_status status = ree_cpu_test_hash(test, &ctx, hasher, err);
    ree_hasher_finish(hasher, hex);
    ree_cpu_scratch_finish(&scratch);
    snprintf(out, 33, "%.32s", hex);
    return status;
}

// Runs all groups and lists in out_what those whose results differ from the recorded ones. A kernel
// that fails counts as wrong, except if memory is exhausted.
static enum ree_status run_all(enum ree_cpu_isa isa, char *out_what, struct ree_error *err) {
    size_t used = 0;
    out_what[0] = '\0';
    for (size_t i = 0; i < ree_cpu_n_tests; i++) {
        char digest[33];
        enum ree_status status = ree_cpu_test_run(&ree_cpu_tests[i], isa, digest, err);
        if (status == REE_NO_MEMORY) return status;
        bool right = status == REE_OK && strcmp(digest, ree_cpu_tests[i].recorded) == 0;
        if (right || used >= REE_CPU_TEST_TEXT / 2) continue;
        used += (size_t)snprintf(out_what + used, REE_CPU_TEST_TEXT - used, "%s%s",
                                 used ? ", " : "", ree_cpu_tests[i].name);
    }
    return REE_OK;
}

// Computes the record's key from everything that the bits depend on: binary, instruction set, the
// processor and the features by which kernels choose, and the C library's and MPFR's functions that
// kernels call. Returns false if one of these is unknown; the result is then not recorded.
static bool key_of(enum ree_cpu_isa isa, unsigned char key[REE_SHA256_SIZE]) {
    unsigned char available[REE_N_CPU_ISAS + REE_N_CPU_FEATURES];
    for (int i = 0; i < REE_N_CPU_ISAS; i++)
        available[i] = ree_cpu_isa_available((enum ree_cpu_isa)i);
    for (int i = 0; i < REE_N_CPU_FEATURES; i++)
        available[REE_N_CPU_ISAS + i] = ree_cpu_feature_available((enum ree_cpu_feature)i);
    struct ree_hasher *hasher = ree_hasher_create("ree-cpu-selftest-key/5");
    if (!hasher) return false;
    const char *name = ree_cpu_isa_name(isa);
    ree_hasher_update(hasher, name, strlen(name) + 1);
    ree_hasher_update(hasher, available, sizeof available);
    bool known = ree_hash_binary(hasher, (const void *)(uintptr_t)&ree_cpu_tests);
    known &= ree_hash_processor(hasher);
    known &= ree_hash_function(hasher, (const void *)(uintptr_t)&fma);
    known &= ree_hash_function(hasher, (const void *)(uintptr_t)&fmaf);
    known &= ree_hash_function(hasher, ree_elementary64_library());
    ree_hasher_digest(hasher, key);
    return known;
}

// Sets out_what to "" if a pass is recorded; otherwise runs the self-test. Takes ownership of
// `path`, the file with recorded results, which must come from ree_alloc; NULL: no file.
static enum ree_status test_or_recall(enum ree_cpu_isa isa, char *path, char *out_what,
                                      struct ree_error *err) {
    unsigned char key[REE_SHA256_SIZE];
    struct ree_test_record record;
    if (!key_of(isa, key)) {
        ree_free(path);
        return run_all(isa, out_what, err);
    }
    ree_test_record_init(&record, path);
    const struct ree_test_entry *entry = ree_test_record_find(&record, key);
    enum ree_status status = REE_OK;
    out_what[0] = '\0';
    if (!entry || entry->state != REE_TEST_PASSED) {
        status = run_all(isa, out_what, err);
        // Only a pass is recorded: the next process repeats a failed test.
        if (status == REE_OK && !out_what[0])
            ree_test_record_add(&record, key, REE_TEST_PASSED, NULL);
    }
    ree_test_record_finish(&record);
    return status;
}

// The result of a self-test in this process. Verdicts live as long as the process.
struct verdict {
    struct verdict *next;
    enum ree_cpu_isa isa;
    char wrong[REE_CPU_TEST_TEXT]; // names of the wrong groups; "": none
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct verdict *verdicts;
static char *last_path; // file with results, set by ree_cpu_use_cache; NULL: none

void ree_cpu_use_cache(const char *cache_dir) {
    char *path = ree_cache_path(cache_dir, REE_CPU_TEST_RESULTS);
    pthread_mutex_lock(&lock);
    ree_free(last_path);
    last_path = path;
    pthread_mutex_unlock(&lock);
}

// Returns the verdict on an instruction set, or NULL if it was not tested. The caller must hold the
// lock.
static const struct verdict *find(enum ree_cpu_isa isa) {
    for (const struct verdict *v = verdicts; v; v = v->next)
        if (v->isa == isa) return v;
    return NULL;
}

// Says where results are recorded.
struct keeping {
    const char *cache_dir;
    bool last; // use last_path; ignore cache_dir
};

static enum ree_status test(enum ree_cpu_isa isa, const struct keeping *keeping, char *out_what,
                            struct ree_error *err) {
    REE_FLOAT_ENV_WORKER(); // the test must not fail because of the caller's environment
    enum ree_status status = REE_OK;
    char what[REE_CPU_TEST_TEXT] = ""; // initialised, because all of it is copied
    pthread_mutex_lock(&lock);
    const struct verdict *known = find(isa);
    if (known) {
        memcpy(what, known->wrong, sizeof what);
    } else {
        char *path = !keeping->last ? ree_cache_path(keeping->cache_dir, REE_CPU_TEST_RESULTS)
                     : last_path    ? ree_strdup(last_path)
                                    : NULL;
        status = test_or_recall(isa, path, what, err);
        struct verdict *verdict = status == REE_OK ? ree_alloc_zeroed(1, sizeof *verdict) : NULL;
        if (verdict) { // otherwise the next call tests again
            *verdict = (struct verdict){.next = verdicts, .isa = isa};
            memcpy(verdict->wrong, what, sizeof what);
            verdicts = verdict;
        }
    }
    pthread_mutex_unlock(&lock);
    memcpy(out_what, what, sizeof what);
    return status;
}

enum ree_status ree_cpu_isa_test(enum ree_cpu_isa isa, const char *cache_dir, char *out_what,
                                 struct ree_error *err) {
    return test(isa, &(struct keeping){.cache_dir = cache_dir}, out_what, err);
}

const char *ree_cpu_isa_verdict(enum ree_cpu_isa isa) {
    pthread_mutex_lock(&lock);
    const struct verdict *known = find(isa);
    pthread_mutex_unlock(&lock);
    return known ? known->wrong : NULL;
}

static enum ree_status select_right(const char *name, const struct keeping *keeping,
                                    enum ree_cpu_isa *out, struct ree_error *err) {
    char what[REE_CPU_TEST_TEXT];
    REE_TRY(ree_cpu_isa_select(name, out, err));
    REE_TRY(test(*out, keeping, what, err));
    for (int isa = *out; what[0] && !name && isa-- > 0;) {
        if (!ree_cpu_isa_available((enum ree_cpu_isa)isa)) continue;
        *out = (enum ree_cpu_isa)isa;
        REE_TRY(test(*out, keeping, what, err));
    }
    if (!what[0]) return REE_OK;
    return ree_fail(err, REE_UNSUPPORTED,
                    "cpu: this build of ree computes wrong bits on this processor with instruction "
                    "set '%s' (%s); check the options that it was built with",
                    ree_cpu_isa_name(*out), what);
}

enum ree_status ree_cpu_isa_select_right(const char *name, const char *cache_dir,
                                         enum ree_cpu_isa *out, struct ree_error *err) {
    return select_right(name, &(struct keeping){.cache_dir = cache_dir}, out, err);
}

enum ree_status ree_cpu_isa_select_any(enum ree_cpu_isa *out, struct ree_error *err) {
    return select_right(NULL, &(struct keeping){.last = true}, out, err);
}
