// A program that loads libree with a floating-point environment of its own and runs the sample
// models. tests/library/float_env.py builds it in several ways and compares its output.
//
// Usage: float_env_host LIBREE SAMPLES DEVICE MODES THREAD
//
// MODES    as-started  the environment that the start-up code set, for a build with -ffast-math
//          down        rounding down, subnormals flushed to zero
//          usual       the default environment
//          traps       all exceptions unmasked
//          both        down and traps
// THREAD   main        the main thread runs the models
//          before      a thread made before the library was loaded
//          after       a thread made after the library was loaded
//          late        the main thread, which sets MODES after it opened the devices
//          pool        the main thread in its usual environment; all threads of an earlier OpenMP
//                      region have MODES
//
// Prints "NAME SHA-256" lines. Fails if a call, whether it succeeds or not, changes the caller's
// environment, status flags included, or if a callback runs in another environment.
#include <ree.h>

#include <dlfcn.h>
#include <fenv.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The library's functions that this program calls.
#define FUNCTIONS(F)                                                                               \
    F(ree_model_load)                                                                              \
    F(ree_model_destroy)                                                                           \
    F(ree_model_input)                                                                             \
    F(ree_model_n_outputs)                                                                         \
    F(ree_model_weights_sha256)                                                                    \
    F(ree_device_open)                                                                             \
    F(ree_device_destroy)                                                                          \
    F(ree_device_facts)                                                                            \
    F(ree_session_create)                                                                          \
    F(ree_session_run)                                                                             \
    F(ree_session_destroy)                                                                         \
    F(ree_tensor_load)                                                                             \
    F(ree_tensor_finish)                                                                           \
    F(ree_tensors_sha256)                                                                          \
    F(ree_tokenizer_load)                                                                          \
    F(ree_tokenizer_encode)                                                                        \
    F(ree_tokenizer_decode)                                                                        \
    F(ree_tokenizer_destroy)                                                                       \
    F(ree_generator_create)                                                                        \
    F(ree_generator_info)                                                                          \
    F(ree_generator_destroy)                                                                       \
    F(ree_generate)                                                                                \
    F(ree_generation_finish)

static struct {
#define FIELD(name) __typeof__(name) *name;
    FUNCTIONS(FIELD)
} lib;

static void load(const char *path) {
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        exit(2);
    }
    const struct {
        const char *name;
        void *to;
    } symbols[] = {
#define SYMBOL(name) {#name, &lib.name},
        FUNCTIONS(SYMBOL)};
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
        void *symbol = dlsym(library, symbols[i].name);
        if (!symbol) {
            fprintf(stderr, "%s\n", dlerror());
            exit(2);
        }
        memcpy(symbols[i].to, &symbol, sizeof symbol);
    }
}

// The environment as the registers contain it. This program computes nothing with floats: with
// unmasked exceptions the first inexact result would end it.

struct env {
    uint64_t sse, x87; // AArch64: FPCR, FPSR
};

static struct env read_env(void) {
    struct env env = {0};
#if defined(__x86_64__)
    uint32_t mxcsr;
    uint16_t control, status;
    __asm__ volatile("stmxcsr %0\n\tfnstcw %1\n\tfnstsw %2"
                     : "=m"(mxcsr), "=m"(control), "=m"(status));
    env = (struct env){mxcsr, control | (uint64_t)(status & 0xFF) << 16};
#elif defined(__aarch64__)
    __asm__ volatile("mrs %0, fpcr\n\tmrs %1, fpsr" : "=&r"(env.sse), "=r"(env.x87));
#endif
    return env;
}

enum { DOWN = 1, TRAPS = 2 };

static void set_modes(unsigned modes) {
    if (modes & DOWN) fesetround(FE_DOWNWARD);
#if defined(__x86_64__)
    uint32_t mxcsr;
    __asm__ volatile("stmxcsr %0" : "=m"(mxcsr));
    if (modes & DOWN) mxcsr |= 1u << 15 | 1u << 6; // FTZ, DAZ
    __asm__ volatile("ldmxcsr %0" : : "m"(mxcsr));
#elif defined(__aarch64__)
    uint64_t fpcr;
    __asm__ volatile("mrs %0, fpcr" : "=r"(fpcr));
    if (modes & DOWN) fpcr |= 1u << 24 | 1u << 19; // FZ, FZ16
    __asm__ volatile("msr fpcr, %0" : : "r"(fpcr));
#endif
    if (modes & TRAPS) feenableexcept(FE_ALL_EXCEPT);
    if (!modes) fesetenv(FE_DFL_ENV);
}

// The run

struct run {
    const char *samples, *device;
    unsigned modes;
    bool late;
    bool set;       // the thread must set the modes; false: it has them already
    struct env env; // of the caller; its callbacks must have it too
    struct ree_session *session;
    struct ree_tensor image;
    const struct ree_tokenizer *tokenizer;
    // The model runs in several stages: threads of the generator make the callbacks, with the modes
    // of the thread that created it.
    bool in_stages;
    size_t n_tokens, n_progress, n_passes, n_programs, n_kernels, n_questions, n_checkpoints;
    int n_wrong;
};

static void check(struct run *r, const char *where) {
    const struct env now = read_env();
    if (now.sse == r->env.sse && now.x87 == r->env.x87) return;
    if (r->n_wrong++ < 20)
        fprintf(stderr, "%s: environment %llx %llx, expected %llx %llx\n", where,
                (unsigned long long)now.sse, (unsigned long long)now.x87,
                (unsigned long long)r->env.sse, (unsigned long long)r->env.x87);
}

static void require(struct run *r, bool condition, const char *what, const char *message) {
    if (condition) return;
    fprintf(stderr, "%s: %s\n", what, message);
    r->n_wrong++;
    fflush(NULL);
    _Exit(1);
}

static struct ree_error err;

// CALL: a call that must succeed. FAILS: one that must fail. Neither may change the environment.
#define CALL(r, call)                                                                              \
    do {                                                                                           \
        enum ree_status status_ = (call);                                                          \
        check(r, #call);                                                                           \
        require(r, status_ == REE_OK, #call, err.message);                                         \
    } while (0)
#define FAILS(r, call)                                                                             \
    do {                                                                                           \
        enum ree_status status_ = (call);                                                          \
        check(r, #call);                                                                           \
        require(r, status_ != REE_OK, #call, "expected a failure");                                \
    } while (0)
#define DO(r, call)                                                                                \
    do {                                                                                           \
        call;                                                                                      \
        check(r, #call);                                                                           \
    } while (0)

static bool report(void *user, const char *what, uint64_t done, uint64_t total) {
    struct run *r = user;
    (void)what, (void)done, (void)total;
    check(r, "progress.report");
    r->n_progress++;
    return true;
}

static void on_pass(void *user, const char *pass, const char *text) {
    struct run *r = user;
    (void)pass, (void)text;
    check(r, "on_pass");
    r->n_passes++;
}

static void on_program(void *user, const char *what, const char *text) {
    struct run *r = user;
    (void)what, (void)text;
    check(r, "on_program");
    r->n_programs++;
}

static void on_kernel(void *user, const struct ree_kernel *kernel) {
    struct run *r = user;
    (void)kernel;
    check(r, "on_kernel");
    r->n_kernels++;
}

static bool is_interrupted(void *user) {
    struct run *r = user;
    check(r, "is_interrupted");
    r->n_questions++;
    return false;
}

static enum ree_status on_checkpoint(void *user, const struct ree_snapshot *sequences, size_t n,
                                     struct ree_error *e) {
    struct run *r = user;
    (void)sequences, (void)n, (void)e;
    check(r, "on_checkpoint");
    r->n_checkpoints++;
    return REE_OK;
}

static void run_digits(struct run *r, char hex[65]) {
    struct ree_tensor outputs[4];
    CALL(r, lib.ree_session_run(r->session, &r->image, 1, outputs, &err));
    DO(r, lib.ree_tensors_sha256(outputs, 1, hex));
    lib.ree_tensor_finish(&outputs[0]);
}

// Calls libree, and changes the rounding mode at every token.
static bool on_token(void *user, const struct ree_token *token) {
    struct run *r = user;
    char *text, hex[65];
    size_t nbytes;
    check(r, "on_token");
    CALL(r, lib.ree_tokenizer_decode(r->tokenizer, &token->id, 1, 0, &text, &nbytes, &err));
    free(text);
    if (r->n_tokens == 3 && !r->in_stages) {
        run_digits(r, hex);
        printf("digits-inside %s\n", hex);
    }
    if (r->modes && !r->in_stages) fesetround(r->n_tokens % 2 ? FE_DOWNWARD : FE_UPWARD);
    r->env = read_env();
    r->n_tokens++;
    return true;
}

static void generate(struct run *r, struct ree_generator *generator, const char *name,
                     const char *text, size_t max_new_tokens) {
    struct ree_generation out;
    struct ree_generate_stats stats = {.size = sizeof stats};
    struct ree_prompt prompt = {0};
    int32_t *ids;
    CALL(r, lib.ree_tokenizer_encode(r->tokenizer, text, strlen(text), REE_ADD_SPECIAL, &ids,
                                     &prompt.n, &err));
    prompt.ids = ids;
    const struct ree_generator_info *info = lib.ree_generator_info(generator);
    struct ree_generate_options options = {.size = sizeof options,
                                           .max_new_tokens = max_new_tokens,
                                           .eos = info->eos,
                                           .n_eos = info->n_eos,
                                           .n_logprobs = 2,
                                           .on_token = on_token,
                                           .is_interrupted = is_interrupted,
                                           .on_checkpoint = on_checkpoint,
                                           .user = r};
    // Sets top_p and repetition_penalty to 1 without a conversion, which could trap.
    const uint32_t one = 0x3F800000;
    memcpy(&options.sampling.top_p, &one, sizeof one);
    memcpy(&options.sampling.repetition_penalty, &one, sizeof one);
    r->n_tokens = 0;
    CALL(r, lib.ree_generate(generator, &prompt, 1, &options, &out, &stats, &err));
    printf("%s-tokens %s\n%s-logits %s\n", name, out.tokens_sha256, name, out.logits_sha256);
    require(r, r->n_tokens > 0 && r->n_questions > 0 && r->n_checkpoints > 0, name, "no callbacks");
    lib.ree_generation_finish(&out);
    prompt.n = 0;
    FAILS(r, lib.ree_generate(generator, &prompt, 1, &options, &out, &stats, &err));
    free(ids);
}

static void *run(void *user) {
    struct run *r = user;
    struct ree_model *model = NULL;
    struct ree_device *device = NULL, *second = NULL, *third = NULL;
    struct ree_tokenizer *tokenizer = NULL;
    struct ree_generator *generator = NULL;
    const struct ree_device_fact *facts;
    const struct ree_device_options device_options = {.size = sizeof device_options,
                                                      .n_threads = 2};
    const struct ree_model_options model_options = {
        .size = sizeof model_options, .progress = {report, r}, .on_pass = on_pass, .user = r};
    const struct ree_session_options session_options = {.size = sizeof session_options,
                                                        .progress = {report, r},
                                                        .on_program = on_program,
                                                        .on_kernel = on_kernel,
                                                        .user = r};
    const struct ree_generator_options generator_options = {.size = sizeof generator_options,
                                                            .model = &model_options,
                                                            .session = &session_options,
                                                            .all_logits = true};
    char path[4096], hex[65];
    if (r->set && !r->late) set_modes(r->modes);
    r->env = read_env();

    snprintf(path, sizeof path, "%s/none.onnx", r->samples);
    FAILS(r, lib.ree_model_load(path, &model_options, &model, &err));
    FAILS(r, lib.ree_device_open("nothing", NULL, &device, &err));
    // The library of this driver is float_env_library.c, which lacks all functions of the driver.
    if (getenv("REE_CUDA_DRIVER"))
        FAILS(r, lib.ree_device_open("cuda", &device_options, &device, &err));
    snprintf(path, sizeof path, "%s/digits.onnx", r->samples);
    CALL(r, lib.ree_model_load(path, &model_options, &model, &err));
    CALL(r, lib.ree_model_weights_sha256(model, &model_options.progress, hex, &err));
    require(r, lib.ree_model_n_outputs(model) == 1, path, "expected one output");
    CALL(r, lib.ree_device_open(r->device, &device_options, &device, &err));
    size_t n_facts;
    DO(r, n_facts = lib.ree_device_facts(device, &facts));
    for (size_t i = 0; i < n_facts; i++)
        if (strcmp(facts[i].kind, "self-test") == 0)
            require(r, strncmp(facts[i].value, "failed", 6) != 0, facts[i].name, facts[i].value);
    CALL(r, lib.ree_device_open(r->device, &device_options, &second, &err));
    if (r->late) {
        set_modes(r->modes);
        r->env = read_env();
    }
    CALL(r, lib.ree_session_create(model, device, &session_options, &r->session, &err));
    snprintf(path, sizeof path, "%s/seven.npy", r->samples);
    CALL(r, lib.ree_tensor_load(&r->image, path, &err));
    r->image.name = strdup("no such input");
    struct ree_tensor outputs[4];
    FAILS(r, lib.ree_session_run(r->session, &r->image, 1, outputs, &err));
    free(r->image.name);
    r->image.name = strdup(lib.ree_model_input(model, 0)->name);
    run_digits(r, hex);
    printf("digits %s\n", hex);

    snprintf(path, sizeof path, "%s/stories", r->samples);
    CALL(r, lib.ree_tokenizer_load(path, &tokenizer, &err));
    r->tokenizer = tokenizer;
    CALL(r, lib.ree_generator_create(path, second, &generator_options, &generator, &err));
    generate(r, generator, "stories", "Once upon a time", 256);
    char text[4096] = "Once upon a time"; // made long enough for products on several threads
    for (int i = 0; i < 50; i++)
        strcat(text, " there was a little girl");
    generate(r, generator, "long", text, 8);
    DO(r, lib.ree_generator_destroy(generator));

    struct ree_generator_options in_stages = generator_options;
    in_stages.more_devices = &third;
    in_stages.n_more_devices = 1;
    in_stages.n_cache_slots = 2;
    r->in_stages = true;
    CALL(r, lib.ree_device_open(r->device, &device_options, &third, &err));
    CALL(r, lib.ree_generator_create(path, second, &in_stages, &generator, &err));
    generate(r, generator, "parts", "Once upon a time", 256);
    require(r, r->n_progress > 0 && r->n_passes > 0 && r->n_programs > 0 && r->n_kernels > 0, path,
            "no callbacks");

    DO(r, lib.ree_generator_destroy(generator));
    DO(r, lib.ree_tokenizer_destroy(tokenizer));
    DO(r, lib.ree_tensor_finish(&r->image));
    DO(r, lib.ree_session_destroy(r->session));
    DO(r, lib.ree_device_destroy(third));
    DO(r, lib.ree_device_destroy(second));
    DO(r, lib.ree_device_destroy(device));
    DO(r, lib.ree_model_destroy(model));
    return NULL;
}

// Threads

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool is_loaded;

static void *run_when_loaded(void *user) {
    pthread_mutex_lock(&lock);
    while (!is_loaded)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    return run(user);
}

#ifdef _OPENMP
#define N_POOL 2

// The threads of the pool have the modes before and after the run.
static void run_in_pool(struct run *r) {
    struct env before[N_POOL], after[N_POOL];
    int n = 0;
#pragma omp parallel for num_threads(N_POOL) schedule(static, 1) reduction(+ : n)
    for (int i = 0; i < N_POOL; i++) {
        set_modes(r->modes);
        before[i] = read_env();
        n++;
    }
    set_modes(0);
    const struct env own = read_env();
    const unsigned modes = r->modes;
    r->modes = 0;
    r->set = false;
    run(r);
#pragma omp parallel for num_threads(N_POOL) schedule(static, 1)
    for (int i = 0; i < N_POOL; i++)
        after[i] = read_env();
    require(r, memcmp(&after[0], &own, sizeof own) == 0, "main", "another environment");
    require(r, n == N_POOL && memcmp(&after[1], &before[1], sizeof own) == 0, "pool",
            "another environment than the worker had");
    require(r, !modes || before[1].sse != own.sse, "pool", "modes were not set");
}
#else
static void run_in_pool(struct run *r) {
    require(r, false, "pool", "built without OpenMP");
}
#endif

int main(int argc, char **argv) {
    if (argc != 6)
        return fprintf(stderr, "usage: %s LIBREE SAMPLES DEVICE MODES THREAD\n", *argv), 2;
    const char *modes = argv[4], *thread = argv[5];
    static struct run r;
    r.samples = argv[2];
    r.device = argv[3];
    r.set = strcmp(modes, "as-started") != 0;
    if (strcmp(modes, "down") == 0 || strcmp(modes, "both") == 0) r.modes |= DOWN;
    if (strcmp(modes, "traps") == 0 || strcmp(modes, "both") == 0) r.modes |= TRAPS;
#if defined(__x86_64__)
    // Without the start-up code of -ffast-math the test would be meaningless.
    if (!r.set) require(&r, (read_env().sse & 0x8040) == 0x8040, "as-started", "no FTZ and DAZ");
#endif
    pthread_t other;
    bool before = strcmp(thread, "before") == 0, after = strcmp(thread, "after") == 0;
    if (before && pthread_create(&other, NULL, run_when_loaded, &r) != 0) return 2;
    load(argv[1]);
    if (before) {
        pthread_mutex_lock(&lock);
        is_loaded = true;
        pthread_cond_broadcast(&changed);
        pthread_mutex_unlock(&lock);
    } else if (after) {
        if (pthread_create(&other, NULL, run, &r) != 0) return 2;
    } else if (strcmp(thread, "pool") == 0) {
        run_in_pool(&r);
    } else {
        r.late = strcmp(thread, "late") == 0;
        run(&r);
    }
    if (before || after) pthread_join(other, NULL);
    return r.n_wrong ? 1 : 0;
}
