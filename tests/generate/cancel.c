// Progress callbacks that cancel: at each report in turn, or at several of many. The operation
// fails with REE_CANCELLED, reports no more, leaves no file, and what it used gives the same result
// afterwards.
#include "ree.h"
#include "test.h"

#include <dirent.h>
#include <string.h>
#include <unistd.h>

#define DIGITS REE_SAMPLES "/digits.onnx"
#define SEVEN REE_SAMPLES "/seven.npy"
#define STORIES REE_SAMPLES "/stories"
// Places at which a long operation is cancelled; fewer on emulated devices, which are slow.
static size_t max_trials = 24;

struct calls {
    size_t n, cancel_at; // 0: never
    const char *only;    // counts only reports of this work; NULL: all
    bool is_over, may_go_on;
};

static bool report(void *user, const char *what, uint64_t done, uint64_t total) {
    struct calls *calls = user;
    CHECK(what && *what);
    CHECK_MSG(done <= total, "%s: %llu of %llu", what, (unsigned long long)done,
              (unsigned long long)total);
    CHECK_MSG(!calls->is_over || calls->may_go_on,
              "'%s' is reported after the operation was cancelled", what);
    if (calls->only && strcmp(what, calls->only) != 0) return true;
    if (++calls->n != calls->cancel_at) return true;
    calls->is_over = true;
    return false;
}

static struct ree_device *device, *second;
// Vulkan reports long runs by time, so a faster run has fewer reports.
static bool reports_by_time;
static struct ree_error err;

// An operation that reports to `progress`. On success it makes its result as text.
typedef enum ree_status operation(const struct ree_progress *progress, char result[65]);

static void check(const char *name, operation *run, const char *only, bool may_go_on) {
    struct calls calls = {.only = only};
    const struct ree_progress progress = {report, &calls};
    char expected[65] = "", result[65];
    enum ree_status status = run(&progress, expected);
    CHECK_MSG(status == REE_OK, "%s: %s", name, err.message);
    const size_t n = calls.n;
    CHECK_MSG(n > 0, "%s: no reports", name);
    printf("%s: %zu reports\n", name, n);
    const size_t step = n / max_trials + 1;
    for (size_t at = 1; at <= n; at += step) {
        calls = (struct calls){.cancel_at = at, .only = only, .may_go_on = may_go_on};
        memset(&err, 0, sizeof err);
        status = run(&progress, result);
        if (reports_by_time && at > 1 && calls.n < at && status == REE_OK) {
            CHECK_MSG(strcmp(result, expected) == 0, "%s: %s instead of %s", name, result,
                      expected);
            continue;
        }
        CHECK_MSG(status == REE_CANCELLED && err.status == REE_CANCELLED,
                  "%s, cancelled at report %zu of %zu: %s %s", name, at, n, ree_status_name(status),
                  err.message);
        CHECK_MSG(strstr(err.message, "cancelled"), "%s", err.message);
        CHECK(calls.is_over);
        calls = (struct calls){0};
        status = run(&progress, result);
        CHECK_MSG(status == REE_OK && strcmp(result, expected) == 0,
                  "%s after report %zu: %s instead of %s (%s)", name, at, result, expected,
                  err.message);
    }
}

static enum ree_status load_path(const char *path, const struct ree_progress *progress,
                                 uint32_t quantize_bits, char hex[65]) {
    const struct ree_model_options options = {
        .size = sizeof options, .progress = *progress, .quantize_bits = quantize_bits};
    struct ree_model *model;
    enum ree_status status = ree_model_load(path, &options, &model, &err);
    CHECK((status == REE_OK) == (model != NULL));
    if (status == REE_OK) status = ree_model_graph_sha256(model, hex, &err);
    ree_model_destroy(model);
    return status;
}

static enum ree_status load_file(const struct ree_progress *progress, char hex[65]) {
    return load_path(DIGITS, progress, 0, hex);
}

static enum ree_status load_checkpoint(const struct ree_progress *progress, char hex[65]) {
    return load_path(STORIES, progress, 8, hex);
}

static enum ree_status load_memory(const struct ree_progress *progress, char hex[65]) {
    const struct ree_model_options options = {.size = sizeof options, .progress = *progress};
    static unsigned char bytes[1 << 20];
    FILE *file = fopen(DIGITS, "rb");
    REQUIRE(file);
    size_t n = fread(bytes, 1, sizeof bytes, file);
    REQUIRE(n > 0 && n < sizeof bytes);
    fclose(file);
    struct ree_model *model;
    enum ree_status status = ree_model_load_memory(bytes, n, &options, &model, &err);
    CHECK((status == REE_OK) == (model != NULL));
    if (status == REE_OK) status = ree_model_graph_sha256(model, hex, &err);
    ree_model_destroy(model);
    return status;
}

static struct ree_model *model;

static enum ree_status hash_weights(const struct ree_progress *progress, char hex[65]) {
    enum ree_status status = ree_model_weights_sha256(model, progress, hex, &err);
    CHECK(status == REE_OK || !hex[0]);
    return status;
}

// A session whose progress goes to whatever operation runs it.
static const struct ree_progress *current;
static bool forward(void *user, const char *what, uint64_t done, uint64_t total) {
    (void)user;
    return !current || current->report(current->user, what, done, total);
}
static const struct ree_session_options session_options = {.size = sizeof session_options,
                                                           .progress = {forward, NULL}};

static enum ree_status run_session(struct ree_session *session, const struct ree_progress *progress,
                                   char hex[65]) {
    struct ree_tensor image, outputs[1];
    REQUIRE(ree_tensor_load(&image, SEVEN, &err) == REE_OK);
    image.name = strdup(ree_model_input(model, 0)->name);
    current = progress;
    enum ree_status status = ree_session_run(session, &image, 1, outputs, &err);
    current = NULL;
    if (status == REE_OK) {
        ree_tensors_sha256(outputs, 1, hex);
        ree_tensor_finish(&outputs[0]);
    }
    ree_tensor_finish(&image);
    return status;
}

static enum ree_status run_once(const struct ree_progress *progress, char hex[65]) {
    struct ree_session *session;
    enum ree_status status = ree_session_create(model, device, &session_options, &session, &err);
    if (status == REE_OK) status = run_session(session, progress, hex);
    ree_session_destroy(session);
    return status;
}

static struct ree_session *kept;
static enum ree_status run_again(const struct ree_progress *progress, char hex[65]) {
    return run_session(kept, progress, hex);
}

static struct ree_generator *generator;
static enum ree_status generate(const struct ree_progress *progress, char hex[65]) {
    static const int32_t ids[] = {1, 80, 90, 100, 7, 9, 5, 6, 11, 3, 80, 90};
    const struct ree_prompt prompts[3] = {{ids, 12}, {ids + 2, 5}, {ids, 8}};
    const struct ree_generate_options options = {
        .size = sizeof options, .sampling = ree_greedy, .max_new_tokens = 5};
    struct ree_generate_stats stats = {.size = sizeof stats};
    struct ree_generation out[3];
    current = progress;
    enum ree_status status = ree_generate(generator, prompts, 3, &options, out, &stats, &err);
    current = NULL;
    for (int i = 0; i < 3; i++) {
        CHECK((status == REE_OK) == (out[i].ids != NULL));
        for (int k = 0; status == REE_OK && k < 16; k++)
            hex[i * 16 + k] = out[i].tokens_sha256[k];
        ree_generation_finish(&out[i]);
    }
    hex[48] = 0;
    return status;
}

static void check_generator(const char *name, struct ree_generator_options options) {
    options.size = sizeof options;
    options.session = &session_options;
    options.prefill_chunk = 5;
    REQUIRE(ree_generator_create(STORIES, device, &options, &generator, &err) == REE_OK);
    check(name, generate, "running", options.n_more_devices > 0);
    ree_generator_destroy(generator);
}

static struct ree_generator *reference;

static enum ree_status measure(const struct ree_progress *progress, char hex[65]) {
    static const int32_t ids[] = {1, 80, 90, 100, 110, 120, 130, 140, 150, 160, 170, 180};
    const struct ree_perplexity_options options = {.size = sizeof options,
                                                   .against = reference,
                                                   .context = 6,
                                                   .scored = REE_SCORED_ALL,
                                                   .stride = 2,
                                                   .progress = *progress};
    struct ree_perplexity out = {.size = sizeof out};
    enum ree_status status =
        ree_perplexity_measure(generator, ids, sizeof ids / sizeof *ids, &options, &out, &err);
    memcpy(hex, out.scores_sha256, sizeof out.scores_sha256);
    return status;
}

static void check_perplexity(void) {
    const struct ree_model_options model_options = {.size = sizeof model_options,
                                                    .quantize_bits = 8};
    const struct ree_generator_options options = {
        .size = sizeof options, .model = &model_options, .prefill_chunk = 2};
    REQUIRE(ree_generator_create(STORIES, device, &options, &generator, &err) == REE_OK);
    REQUIRE(ree_generator_create(STORIES, device, NULL, &reference, &err) == REE_OK);
    check("measuring perplexity", measure, "measuring", false);
    ree_generator_destroy(reference);
    ree_generator_destroy(generator);
}

static char folder[] = "/tmp/ree-cancel-XXXXXX";

static size_t n_files(void) {
    size_t n = 0;
    DIR *dir = opendir(folder);
    REQUIRE(dir);
    for (struct dirent *entry; (entry = readdir(dir));)
        n += entry->d_name[0] != '.' || strlen(entry->d_name) > 2;
    closedir(dir);
    return n;
}

static enum ree_status export_model(const struct ree_progress *progress, char hex[65]) {
    const struct ree_export_options options = {.size = sizeof options,
                                               .colocate_tensors = true,
                                               .quantize_bits = 4,
                                               .progress = *progress};
    char path[64], data[80];
    snprintf(path, sizeof path, "%s/model.onnx", folder);
    snprintf(data, sizeof data, "%s.data", path);
    enum ree_status status = ree_export(STORIES, path, &options, &err);
    CHECK_MSG(n_files() == (status == REE_OK ? 2 : 0), "%zu files", n_files());
    if (status == REE_OK) {
        static const struct ree_progress off;
        status = load_path(path, &off, 0, hex);
    }
    unlink(path);
    unlink(data);
    return status;
}

int main(int argc, char **argv) {
    const char *spec = argc > 1 ? argv[1] : "cpu";
    if (strncmp(spec, "vulkan", 6) == 0) max_trials = 3;
    if (strncmp(spec, "cuda", 4) == 0) max_trials = 2;
    reports_by_time = strncmp(spec, "vulkan", 6) == 0;
    enum ree_status status = ree_device_open(spec, NULL, &device, &err);
    if (status == REE_UNAVAILABLE) return test_skip(err.message);
    REQUIRE(status == REE_OK && ree_device_open(spec, NULL, &second, &err) == REE_OK);
    REQUIRE(ree_model_load(DIGITS, NULL, &model, &err) == REE_OK);
    REQUIRE(mkdtemp(folder));
    if (argc == 1) {
        check("loading a file", load_file, NULL, false);
        check("loading from memory", load_memory, NULL, false);
        check("loading and quantising a checkpoint", load_checkpoint, NULL, false);
        check("hashing", hash_weights, NULL, false);
        check("exporting", export_model, NULL, false);
    }
    check("a first run", run_once, NULL, false);
    REQUIRE(ree_session_create(model, device, &session_options, &kept, &err) == REE_OK);
    check("a run", run_again, "running", false);
    ree_session_destroy(kept);
    check_generator("generating", (struct ree_generator_options){0});
    // Another stage may report while the cancelled one ends.
    check_generator("generating on two devices",
                    (struct ree_generator_options){
                        .more_devices = &second, .n_more_devices = 1, .n_cache_slots = 2});
    // A measurement reports from host code, which does not know the device.
    if (argc == 1) check_perplexity();
    rmdir(folder);
    ree_model_destroy(model);
    ree_device_destroy(second);
    ree_device_destroy(device);
    return test_finish();
}
