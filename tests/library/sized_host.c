// A program that uses some of the structs of ree.h that begin with their size. The test sized.py
// compiles it with the present headers and with older ones, whose structs lack their last fields.
// Each struct ends at the end of a page, and the next page cannot be accessed: a library that reads
// or writes more than `size` bytes ends the program.
//
//     sized_host SAMPLES          prints the sizes of the structs, and SHA-256 values of runs
//     sized_host SAMPLES wrong    checks the sizes that the library refuses
#include <ree.h>
#include <ree/testing.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static struct ree_error err;

static void fail(const char *what) {
    fprintf(stderr, "%s: %s\n", what, err.message);
    exit(1);
}

#define CALL(call)                                                                                 \
    do {                                                                                           \
        if ((call) != REE_OK) fail(#call);                                                         \
    } while (0)

// Copies a struct to the end of a page.
static void *guard(const void *bytes, size_t size) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *at = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED || mprotect(at + page, page, PROT_NONE) != 0) fail("mmap");
    return memcpy(at + page - size, bytes, size);
}
#define GUARD(variable) guard(&(variable), sizeof(variable))

static char path[4096];
static const char *sample(const char *samples, const char *name) {
    snprintf(path, sizeof path, "%s/%s", samples, name);
    return path;
}

static void run_model(const char *samples, struct ree_device *device) {
    struct ree_model_options model_options = {.size = sizeof model_options, .no_fold = true};
    struct ree_session_options session_options = {.size = sizeof session_options, .no_fuse = true};
    struct ree_session_stats stats = {.size = sizeof stats};
    printf("ree_model_options %zu\nree_session_options %zu\nree_session_stats %zu\n",
           sizeof model_options, sizeof session_options, sizeof stats);
    struct ree_model *model;
    struct ree_session *session;
    struct ree_tensor image, outputs[1];
    CALL(ree_model_load(sample(samples, "digits.onnx"), GUARD(model_options), &model, &err));
    CALL(ree_session_create(model, device, GUARD(session_options), &session, &err));
    CALL(ree_tensor_load(&image, sample(samples, "seven.npy"), &err));
    image.name = strdup(ree_model_input(model, 0)->name);
    CALL(ree_session_run(session, &image, 1, outputs, &err));
    struct ree_session_stats *filled = GUARD(stats);
    CALL(ree_session_stats(session, filled, &err));
    if (filled->size != sizeof stats || filled->n_dispatches == 0 || filled->run_seconds <= 0)
        fail("the session's stats are not filled");
    char hex[65];
    ree_tensors_sha256(outputs, 1, hex);
    printf("digits %s\n", hex);
    ree_tensor_finish(&image);
    ree_tensor_finish(&outputs[0]);
    ree_session_destroy(session);
    ree_model_destroy(model);
}

static void run_text(const char *samples, struct ree_device *device) {
    const struct ree_model_options model_options = {.size = sizeof model_options};
    const struct ree_session_options session_options = {.size = sizeof session_options};
    struct ree_generator_options generator_options = {.size = sizeof generator_options,
                                                      .model = GUARD(model_options),
                                                      .session = GUARD(session_options),
                                                      .prefill_chunk = 3,
                                                      .all_logits = true};
    struct ree_generate_options options = {
        .size = sizeof options, .sampling = ree_greedy, .max_new_tokens = 16};
    struct ree_generate_stats stats = {.size = sizeof stats};
    printf("ree_generator_options %zu\nree_generate_options %zu\nree_generate_stats %zu\n",
           sizeof generator_options, sizeof options, sizeof stats);
    static const char text[] = "Once upon a time";
    struct ree_generator *generator;
    struct ree_tokenizer *tokenizer;
    struct ree_generation out;
    struct ree_prompt prompt;
    int32_t *ids;
    const char *stories = sample(samples, "stories");
    CALL(ree_tokenizer_load(stories, &tokenizer, &err));
    CALL(ree_tokenizer_encode(tokenizer, text, strlen(text), REE_ADD_SPECIAL, &ids, &prompt.n,
                              &err));
    prompt.ids = ids;
    CALL(ree_generator_create(stories, device, GUARD(generator_options), &generator, &err));
    options.eos = ree_generator_info(generator)->eos;
    options.n_eos = ree_generator_info(generator)->n_eos;
    struct ree_generate_stats *filled = GUARD(stats);
    CALL(ree_generate(generator, &prompt, 1, GUARD(options), &out, filled, &err));
    if (filled->size != sizeof stats || filled->prompt_tokens != prompt.n ||
        filled->new_tokens != out.n - out.n_prompt)
        fail("the stats of the generation are not filled");
    struct ree_session_stats sums = {.size = sizeof sums};
    CALL(ree_generator_stats(generator, GUARD(sums), &err));
    printf("tokens %s\nlogits %s\n", out.tokens_sha256, out.logits_sha256);
    ree_generation_finish(&out);
    ree_free(ids);
    ree_generator_destroy(generator);
    ree_tokenizer_destroy(tokenizer);
}

static void run_export(const char *samples) {
    struct ree_export_options options = {.size = sizeof options, .colocate_tensors = true};
    char folder[] = "/tmp/ree-sized-XXXXXX", out[64], data[80], hex[65];
    printf("ree_export_options %zu\n", sizeof options);
    struct ree_model *model;
    if (!mkdtemp(folder)) fail("mkdtemp");
    snprintf(out, sizeof out, "%s/model.onnx", folder);
    snprintf(data, sizeof data, "%s.data", out);
    CALL(ree_export(sample(samples, "stories"), out, GUARD(options), &err));
    CALL(ree_model_load(out, NULL, &model, &err));
    CALL(ree_model_weights_sha256(model, NULL, hex, &err));
    printf("exported %s\n", hex);
    ree_model_destroy(model);
    unlink(data);
    unlink(out);
    rmdir(folder);
}

// The sizes that are refused. Older headers do not have all of these fields.
#ifndef OLDER

static char samples_folder[4096];

static enum ree_status open_device(const void *options) {
    struct ree_device *device;
    enum ree_status status = ree_device_open("cpu", options, &device, &err);
    ree_device_destroy(device);
    return status;
}

static enum ree_status open_tested(const void *testing) {
    struct ree_device_options options = {.size = sizeof options};
    memcpy((char *)&options + offsetof(struct ree_device_options, testing), &testing,
           sizeof testing);
    return open_device(&options);
}

static enum ree_status load_model(const void *options) {
    struct ree_model *model;
    enum ree_status status =
        ree_model_load(sample(samples_folder, "digits.onnx"), options, &model, &err);
    ree_model_destroy(model);
    return status;
}

static enum ree_status load_bytes(const void *options) {
    struct ree_model *model;
    FILE *file = fopen(sample(samples_folder, "digits.onnx"), "rb");
    static char bytes[1 << 20];
    size_t n = file ? fread(bytes, 1, sizeof bytes, file) : 0;
    if (file) fclose(file);
    enum ree_status status = ree_model_load_memory(bytes, n, options, &model, &err);
    ree_model_destroy(model);
    return status;
}

static struct ree_device *cpu;
static struct ree_model *digits;
static struct ree_generator *generator;

static enum ree_status create_session(const void *options) {
    struct ree_session *session;
    enum ree_status status = ree_session_create(digits, cpu, options, &session, &err);
    ree_session_destroy(session);
    return status;
}

static enum ree_status create_generator(const void *options) {
    struct ree_generator *made;
    enum ree_status status =
        ree_generator_create(sample(samples_folder, "stories"), cpu, options, &made, &err);
    ree_generator_destroy(made);
    return status;
}

static enum ree_status create_with_model(const void *model) {
    const struct ree_generator_options options = {.size = sizeof options, .model = model};
    return create_generator(&options);
}

static enum ree_status create_with_session(const void *session) {
    const struct ree_generator_options options = {.size = sizeof options, .session = session};
    return create_generator(&options);
}

static enum ree_status generate(const void *given) {
    static const int32_t ids[] = {1, 80, 90};
    const struct ree_prompt prompt = {ids, 3};
    struct ree_generation out;
    // top_p and repetition_penalty are 0 in a struct of zeros, which is not allowed.
    union {
        struct ree_generate_options options;
        unsigned char bytes[sizeof(struct ree_generate_options) + 64];
    } own;
    memcpy(&own, given, sizeof(struct ree_generate_options) + 64);
    own.options.sampling = ree_greedy;
    own.options.max_new_tokens = 1;
    enum ree_status status = ree_generate(generator, &prompt, 1, &own.options, &out, NULL, &err);
    ree_generation_finish(&out);
    return status;
}

static struct ree_generator *reference;

static enum ree_status measure(const void *options) {
    static const int32_t ids[] = {1, 80, 90};
    struct ree_perplexity out = {.size = sizeof out};
    return ree_perplexity_measure(generator, ids, 3, options, &out, &err);
}

// Results that are refused, and results of which the program knows only the first fields.
static void check_perplexity(void) {
    static const int32_t ids[] = {1, 80, 90};
    const struct ree_perplexity_options options = {.size = sizeof options, .against = reference};
    struct ree_perplexity out = {.size = 0}, all = {.size = sizeof all};
    if (ree_perplexity_measure(generator, ids, 3, NULL, &out, &err) != REE_INVALID)
        fail("ree_perplexity");
    CALL(ree_perplexity_measure(generator, ids, 3, &options, &all, &err));
    out.size = offsetof(struct ree_perplexity, against);
    void *guarded = guard(&out, out.size);
    CALL(ree_perplexity_measure(generator, ids, 3, &options, guarded, &err));
    struct ree_perplexity known = {.size = 0};
    memcpy(&known, guarded, out.size);
    if (known.model.nll != all.model.nll || known.n_scored != all.n_scored || all.divergence != 0 ||
        all.n_same_top != all.n_scored)
        fail("the results of the perplexity are not filled");
}

static enum ree_status export_model(const void *options) {
    // Options are checked before the folder, so REE_NOT_FOUND means that they were accepted.
    enum ree_status status = ree_export("/nonexistent", NULL, options, &err);
    return status == REE_NOT_FOUND ? REE_OK : status;
}

static void check(const char *name, size_t size, enum ree_status (*use)(const void *options)) {
    unsigned char bytes[1024] = {0};
    const size_t larger = size + 64, wrong[] = {0, 1, size + 1000000, SIZE_MAX};
    memcpy(bytes, &size, sizeof size);
    if (use(bytes) != REE_OK) fail(name);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        memcpy(bytes, &wrong[i], sizeof size);
        if (use(bytes) != REE_INVALID || !strstr(err.message, name)) fail(name);
    }
    memcpy(bytes, &larger, sizeof size);
    if (use(bytes) != REE_OK) fail(name);
    for (size_t i = size; i < larger; i++) {
        bytes[i] = 1;
        if (use(bytes) != REE_UNSUPPORTED || !strstr(err.message, name)) fail(name);
        bytes[i] = 0;
    }
    printf("%s: wrong sizes are refused\n", name);
}

static void check_wrong(const char *samples) {
    snprintf(samples_folder, sizeof samples_folder, "%s", samples);
    CALL(ree_device_open("cpu", NULL, &cpu, &err));
    CALL(ree_model_load(sample(samples, "digits.onnx"), NULL, &digits, &err));
    CALL(ree_generator_create(sample(samples, "stories"), cpu, NULL, &generator, &err));
    check("ree_device_options", sizeof(struct ree_device_options), open_device);
    check("ree_device_testing", sizeof(struct ree_device_testing), open_tested);
    check("ree_model_options", sizeof(struct ree_model_options), load_model);
    check("ree_model_options", sizeof(struct ree_model_options), load_bytes);
    check("ree_model_options", sizeof(struct ree_model_options), create_with_model);
    check("ree_session_options", sizeof(struct ree_session_options), create_session);
    check("ree_session_options", sizeof(struct ree_session_options), create_with_session);
    check("ree_generator_options", sizeof(struct ree_generator_options), create_generator);
    check("ree_generate_options", sizeof(struct ree_generate_options), generate);
    check("ree_export_options", sizeof(struct ree_export_options), export_model);
    CALL(ree_generator_create(sample(samples, "stories"), cpu, NULL, &reference, &err));
    check("ree_perplexity_options", sizeof(struct ree_perplexity_options), measure);
    check_perplexity();
    ree_generator_destroy(reference);
    struct ree_session *session;
    struct ree_session_stats stats = {.size = 0};
    CALL(ree_session_create(digits, cpu, NULL, &session, &err));
    if (ree_session_stats(session, &stats, &err) != REE_INVALID) fail("ree_session_stats");
    if (ree_generator_stats(generator, &stats, &err) != REE_INVALID) fail("ree_generator_stats");
    ree_session_destroy(session);
    ree_generator_destroy(generator);
    ree_model_destroy(digits);
    ree_device_destroy(cpu);
}

#endif

int main(int argc, char **argv) {
    if (argc < 2) return 2;
#ifndef OLDER
    if (argc > 2) {
        check_wrong(argv[1]);
        return 0;
    }
#endif
    struct ree_device_options device_options = {.size = sizeof device_options, .n_threads = 1};
    struct ree_device *device;
    printf("ree_device_options %zu\n", sizeof device_options);
    CALL(ree_device_open("cpu", GUARD(device_options), &device, &err));
    run_model(argv[1], device);
    run_text(argv[1], device);
    run_export(argv[1]);
    ree_device_destroy(device);
    return 0;
}
