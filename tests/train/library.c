// Trainings with the public headers only: sizes of options, a hostile floating-point environment,
// failures that change nothing, a receipt and its verification in one process.
//
//     library STEP       STEP: tests/data/training/words.onnx
#include <fenv.h>
#include <string.h>
#include <unistd.h>

#include <ree.h>

#include "test.h"

static struct ree_error err;
static struct ree_model *model;
static struct ree_device *cpu;
static struct ree_dataset *dataset;

#define OK(call) CHECK_MSG((call) == REE_OK, "%s: %s", #call, err.message)
#define FAILS(call, expected, words)                                                               \
    do {                                                                                           \
        enum ree_status status_ = (call);                                                          \
        CHECK_MSG(status_ == (expected) && strstr(err.message, words), "%s: %d, %s", #call,        \
                  (int)status_, err.message);                                                      \
    } while (0)

// Rows of ids in which each follows from the one before it.
static struct ree_dataset *make_dataset(int64_t n) {
    const struct ree_port *port = ree_model_input(model, 0);
    int64_t dims[2] = {n, port->dims[1]};
    struct ree_tensor ids;
    struct ree_dataset *out;
    OK(ree_tensor_init(&ids, port->name, port->dtype, 2, dims, &err));
    int64_t *values = ids.data;
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; k < dims[1]; k++)
            values[i * dims[1] + k] = (i * 5 + (1 + i % 2) * k) % 32;
    OK(ree_dataset_create(&ids, 1, &out, &err));
    ree_tensor_finish(&ids);
    return out;
}

static struct ree_training *make_training(uint64_t seed) {
    const struct ree_training_options options = {.size = sizeof options, .seed = seed};
    struct ree_training *training;
    REQUIRE(ree_training_create(model, cpu, dataset, &options, &training, &err) == REE_OK);
    return training;
}

static void make_steps(struct ree_training *training, int n) {
    double loss;
    for (int i = 0; i < n; i++)
        OK(ree_training_step(training, &loss, &err));
}

// Tries wrong sizes of a struct of options.
static void check_sizes(const char *name, size_t size,
                        enum ree_status (*use)(const void *options)) {
    unsigned char bytes[512] = {0};
    const size_t larger = size + 64, wrong[] = {0, 1, size + 1000000, SIZE_MAX};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        memcpy(bytes, &wrong[i], sizeof size);
        FAILS(use(bytes), REE_INVALID, name);
    }
    memcpy(bytes, &larger, sizeof size);
    OK(use(bytes));
    bytes[size] = 1;
    FAILS(use(bytes), REE_UNSUPPORTED, name);
}

static enum ree_status use_options(const void *options) {
    struct ree_training *training;
    enum ree_status status = ree_training_create(model, cpu, dataset, options, &training, &err);
    ree_training_destroy(training);
    return status;
}

static struct ree_training_receipt *receipt;

static enum ree_status use_verify_options(const void *options) {
    struct ree_training_verification *v;
    enum ree_status status = ree_training_verify(receipt, model, cpu, dataset, options, &v, &err);
    ree_training_verification_destroy(v);
    return status;
}

static void check_datasets(void) {
    struct ree_dataset *out;
    float values[6] = {0};
    struct ree_tensor t = {.name = (char *)"a",
                           .dtype = REE_F32,
                           .rank = 1,
                           .dims = {6},
                           .data = values,
                           .nbytes = sizeof values};
    struct ree_tensor two[2] = {t, t}, bad = t;
    FAILS(ree_dataset_create(two, 2, &out, &err), REE_INVALID, "two tensors are called 'a'");
    bad.nbytes = 20;
    FAILS(ree_dataset_create(&bad, 1, &out, &err), REE_INVALID, "does not match its shape");
    bad = t;
    bad.name = NULL;
    FAILS(ree_dataset_create(&bad, 1, &out, &err), REE_INVALID, "no name");
    bad = t;
    bad.rank = REE_MAX_RANK + 1;
    FAILS(ree_dataset_create(&bad, 1, &out, &err), REE_INVALID, "does not match its shape");
    bad = t;
    bad.data = NULL;
    FAILS(ree_dataset_create(&bad, 1, &out, &err), REE_INVALID, "does not match its shape");
    bad = t;
    bad.dtype = REE_STRING;
    FAILS(ree_dataset_create(&bad, 1, &out, &err), REE_INVALID, "not a tensor of numbers");
    CHECK(out == NULL && ree_dataset_create(&bad, 1, &out, NULL) == REE_INVALID);
    OK(ree_dataset_create(&t, 1, &out, &err));
    const struct ree_tensor *tensors;
    CHECK(ree_dataset_tensors(out, &tensors) == 1 && tensors[0].data != t.data);
    struct ree_training *training;
    FAILS(ree_training_create(model, cpu, out, NULL, &training, &err), REE_INVALID,
          "the dataset has no tensor 'ids'");
    CHECK(training == NULL);
    ree_dataset_destroy(out);
    ree_dataset_destroy(NULL);
    out = make_dataset(7); // fewer than a batch
    FAILS(ree_training_create(model, cpu, out, NULL, &training, &err), REE_INVALID,
          "fewer than a batch of 8");
    ree_dataset_destroy(out);
}

// Rounding downward in the calling thread changes no bit, and is kept.
static void check_environment(const char *expected) {
    char hex[65];
    struct ree_training *training = make_training(3);
    CHECK(fesetround(FE_DOWNWARD) == 0);
    make_steps(training, 5);
    CHECK(fegetround() == FE_DOWNWARD);
    OK(ree_training_sha256(training, hex, &err));
    CHECK(fesetround(FE_TONEAREST) == 0);
    CHECK_MSG(!strcmp(hex, expected), "%s, expected %s", hex, expected);
    ree_training_destroy(training);
}

// Without folded constants the trace has another root, which would not be that of other parties.
static void check_no_fold(const char *step) {
    struct ree_model_options options = {.size = sizeof options, .no_fold = true};
    struct ree_model *unfolded, *folded = model;
    struct ree_training_receipt *none;
    OK(ree_model_load(step, &options, &unfolded, &err));
    model = unfolded;
    struct ree_training *training = make_training(3);
    OK(ree_training_record(training, 1, &err));
    make_steps(training, 1);
    char root[65];
    memset(root, 'a', 64);
    root[64] = 0;
    FAILS(ree_training_receipt_create(training, root, &none, &err), REE_INVALID, "no_fold");
    OK(ree_training_receipt_create(training, NULL, &none, &err));
    ree_training_receipt_destroy(none);
    ree_training_destroy(training);
    model = folded;
    ree_model_destroy(unfolded);
}

static void check_records(const char *expected, const char *checkpoint) {
    struct ree_training *training = make_training(3);
    struct ree_training_receipt *none;
    char hex[65], before[65];
    FAILS(ree_training_receipt_create(training, NULL, &none, &err), REE_INVALID,
          "no step was recorded");
    FAILS(ree_training_record(training, 0, &err), REE_INVALID, "interval");
    OK(ree_training_record(training, 2, &err));
    FAILS(ree_training_record(training, 2, &err), REE_INVALID, "already records");
    FAILS(ree_training_receipt_create(training, NULL, &none, &err), REE_INVALID,
          "no step was recorded");
    CHECK(none == NULL);
    make_steps(training, 5);
    FAILS(ree_training_receipt_create(training, "12", &none, &err), REE_INVALID,
          "root of the trace");
    OK(ree_training_sha256(training, hex, &err));
    CHECK_MSG(!strcmp(hex, expected), "recording changes the states");
    OK(ree_training_receipt_create(training, NULL, &receipt, &err));
    const struct ree_training_receipt_info *info = ree_training_receipt_info(receipt);
    CHECK(info->n_points == 4 && info->points[3].step == 5 && info->points[1].step == 2);
    CHECK(!strcmp(info->points[3].states_sha256, expected) && info->seed == 3 && !info->in_order);
    OK(ree_training_save(training, checkpoint, &err));
    FAILS(ree_training_load(training, checkpoint, &err), REE_INVALID, "records a receipt");
    // The training goes on, and the receipt stays what it was.
    make_steps(training, 3);
    CHECK(ree_training_info(training).n_steps == 8 && info->points[info->n_points - 1].step == 5);
    ree_training_destroy(training);
    // A load that fails changes nothing.
    training = make_training(4);
    make_steps(training, 1);
    OK(ree_training_sha256(training, before, &err));
    FAILS(ree_training_load(training, checkpoint, &err), REE_INVALID, "another seed");
    OK(ree_training_sha256(training, hex, &err));
    CHECK(!strcmp(hex, before) && ree_training_info(training).n_steps == 1);
    ree_training_destroy(training);
}

static bool cancel(void *user, const char *what, uint64_t done, uint64_t total) {
    (void)total;
    return strcmp(what, user) != 0 || done < 2;
}

static void check_verification(void) {
    struct ree_training_verification *v;
    struct ree_training_verify_options options = {.size = sizeof options};
    const struct ree_verify_check *checks;
    uint64_t first;
    double seconds;
    OK(ree_training_verify(receipt, model, cpu, dataset, NULL, &v, &err));
    CHECK(ree_training_verification_verdict(v) == REE_VERIFIED);
    CHECK(ree_training_verification_steps(v, &first, &seconds) == 5 && first == 1 && seconds >= 0);
    CHECK(ree_training_verification_checks(v, &checks) == 7);
    ree_training_verification_destroy(v);
    options.n_steps = 3;
    OK(ree_training_verify(receipt, model, cpu, dataset, &options, &v, &err));
    CHECK(ree_training_verification_verdict(v) == REE_VERIFIED_PARTLY &&
          ree_training_verification_steps(v, NULL, NULL) == 2);
    ree_training_verification_destroy(v);
    options = (struct ree_training_verify_options){.size = sizeof options,
                                                   .progress = {cancel, (void *)"verifying steps"}};
    CHECK(ree_training_verify(receipt, model, cpu, dataset, &options, &v, &err) == REE_CANCELLED);
    CHECK(v == NULL);
    options = (struct ree_training_verify_options){.size = sizeof options, .public_key = "12"};
    FAILS(ree_training_verify(receipt, model, cpu, dataset, &options, &v, &err), REE_INVALID,
          "public key");
    struct ree_device *loose;
    const struct ree_device_options set = {.size = sizeof set, .operation_set = REE_DEFAULT};
    OK(ree_device_open("cpu", &set, &loose, &err));
    FAILS(ree_training_verify(receipt, model, loose, dataset, NULL, &v, &err), REE_INVALID,
          "operation set");
    ree_device_destroy(loose);
    struct ree_dataset *other = make_dataset(24);
    OK(ree_training_verify(receipt, model, cpu, other, NULL, &v, &err));
    CHECK(ree_training_verification_verdict(v) == REE_VERIFIED_FALSE);
    ree_training_verification_destroy(v);
    ree_dataset_destroy(other);
}

// Every beginning of a receipt's text is refused.
static void check_parse(const char *path) {
    void *bytes;
    size_t n;
    struct ree_training_receipt *read;
    OK(ree_training_receipt_write(receipt, path, &err));
    OK(ree_file_read_small(path, 1 << 20, &bytes, &n, &err));
    OK(ree_training_receipt_parse(bytes, n, "whole", &read, &err));
    CHECK(!strcmp(ree_training_receipt_info(read)->receipt_hash,
                  ree_training_receipt_info(receipt)->receipt_hash));
    ree_training_receipt_destroy(read);
    for (size_t i = 0; i + 1 < n; i++) {
        enum ree_status status = ree_training_receipt_parse(bytes, i, "cut", &read, &err);
        CHECK_MSG(status == REE_INVALID && !read, "%zu bytes of %zu: %d", i, n, (int)status);
    }
    ree_free(bytes);
    FAILS(ree_training_receipt_load("/nonexistent", &read, &err), REE_NOT_FOUND, "/nonexistent");
}

int main(int argc, char **argv) {
    if (argc != 2) return 2;
    char folder[] = "/tmp/ree-train-XXXXXX", path[64], hex[65];
    REQUIRE(mkdtemp(folder));
    REQUIRE(ree_model_load(argv[1], NULL, &model, &err) == REE_OK);
    REQUIRE(ree_device_open("cpu", NULL, &cpu, &err) == REE_OK);
    dataset = make_dataset(19);
    check_datasets();
    struct ree_training *training = make_training(3);
    make_steps(training, 5);
    OK(ree_training_sha256(training, hex, &err));
    struct ree_training_info info = ree_training_info(training);
    CHECK(info.n_steps == 5 && info.batch_size == 8 && info.n_samples == 19);
    CHECK(info.steps_per_epoch == 2);
    ree_training_destroy(training);
    check_environment(hex);
    snprintf(path, sizeof path, "%s/file", folder);
    check_records(hex, path);
    check_no_fold(argv[1]);
    check_verification();
    check_parse(path);
    check_sizes("ree_training_options", sizeof(struct ree_training_options), use_options);
    check_sizes("ree_training_verify_options", sizeof(struct ree_training_verify_options),
                use_verify_options);
    ree_training_receipt_destroy(receipt);
    ree_dataset_destroy(dataset);
    ree_device_destroy(cpu);
    ree_model_destroy(model);
    unlink(path);
    rmdir(folder);
    return test_finish();
}
