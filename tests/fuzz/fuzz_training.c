// Reads the untrusted files of trainings from arbitrary bytes. The first byte says which:
//
//     n    samples, .npz                     c    a checkpoint
//     s    samples, .safetensors             m    the metadata of a training step
//     r    a receipt
//
// A refused file must have a message. A receipt is sealed before it is read, so that its hash does
// not stop the reader; if it is accepted, it encodes to the same text again. A checkpoint or
// metadata that are accepted must be able to train.
//
//     cmake --preset fuzz && cmake --build build-fuzz --target fuzz_training
//     build-fuzz/tests/fuzz/fuzz_training FOLDER tests/data/training_files
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/canonical_json.h"
#include "base/memory.h"
#include "fuzz/replay.h"
#include "session/model.h"
#include "train/dataset.h"
#include "train/step_roles.h"
#include "train/training.h"
#include "train/training_receipt.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);
bool fuzz_accepted;

static void must(bool ok) {
    if (!ok) abort();
}

static void must_say(enum ree_status status, const struct ree_error *err) {
    must(err->status == status && err->message[0] && status != REE_INTERNAL);
}

// The training step whose metadata and checkpoints are read: tests/data/training/words.onnx.
static struct ree_model *model;
static struct ree_device *cpu;
static struct ree_dataset *dataset;
static char *honest; // its metadata

static void set_up(void) {
    struct ree_error err;
    int64_t dims[2] = {16, 12};
    struct ree_tensor ids;
    if (model) return;
    must(ree_model_load(REE_SOURCE_DIR "/tests/data/training/words.onnx", NULL, &model, &err) ==
         REE_OK);
    const struct ree_device_options options = {.size = sizeof options, .n_threads = 1};
    must(ree_device_open("cpu", &options, &cpu, &err) == REE_OK);
    must(ree_tensor_init(&ids, "ids", REE_I64, 2, dims, &err) == REE_OK);
    must(ree_dataset_create(&ids, 1, &dataset, &err) == REE_OK);
    ree_tensor_finish(&ids);
    honest = ree_strdup(ree_model_metadata(model, REE_STEP_METADATA));
    must(honest);
}

// Makes two steps. A step may fail, but not without a message.
static void train(struct ree_training *training) {
    struct ree_error err;
    for (int i = 0; i < 2; i++) {
        enum ree_status status = ree_training_step(training, NULL, &err);
        if (status != REE_OK) {
            must_say(status, &err);
            return;
        }
    }
}

static void try_samples(const uint8_t *bytes, size_t size, bool is_npz) {
    struct ree_dataset d = {0};
    struct ree_error err = {.message = ""};
    enum ree_status status = is_npz ? ree_npz_read(&d, bytes, size, &err)
                                    : ree_stored_read(&d, bytes, size, NULL, NULL, NULL, &err);
    if (status != REE_OK) must_say(status, &err);
    for (size_t i = 0; status == REE_OK && i < d.n; i++) {
        int64_t count = -1;
        char hex[65];
        const struct ree_tensor *t = &d.tensors[i];
        must(t->name && ree_count_elements(t->rank, t->dims, &count));
        must(t->nbytes == (uint64_t)count * ree_dtype_size(t->dtype) && t->dtype != REE_STRING);
        ree_tensor_sha256(t, hex);
    }
    fuzz_accepted = status == REE_OK && d.n > 0;
    for (size_t i = 0; i < d.n; i++)
        ree_tensor_finish(&d.tensors[i]);
    ree_free(d.tensors);
}

// Replaces the receipt_hash by that of the body. Returns the text; NULL: it has no such member.
static char *seal(const uint8_t *bytes, size_t size, size_t *out_n) {
    cJSON *root = NULL;
    struct ree_strbuf text;
    ree_digest digest;
    char hex[65], *out = NULL;
    if (ree_json_parse_strict(bytes, size, &root, NULL) != REE_OK) return NULL;
    ree_strbuf_init(&text);
    cJSON *hash = cJSON_GetObjectItemCaseSensitive(root, "receipt_hash");
    const cJSON *body = cJSON_GetObjectItemCaseSensitive(root, "body");
    if (cJSON_IsString(hash) && body &&
        ree_canonical_sha256(body, "ree-training-receipt/1", digest, NULL) == REE_OK) {
        ree_hex(digest, hex);
        must(cJSON_SetValuestring(hash, hex) || strlen(hash->valuestring) < 64);
        if (ree_canonical_json(root, &text, NULL) == REE_OK) {
            *out_n = text.size;
            out = ree_strbuf_take(&text);
        }
    }
    ree_strbuf_finish(&text);
    cJSON_Delete(root);
    return out;
}

static void try_receipt(const uint8_t *bytes, size_t size) {
    struct ree_training_receipt *r;
    struct ree_error err = {.message = ""};
    size_t n, n_sealed = 0;
    char *text, *sealed = seal(bytes, size, &n_sealed);
    enum ree_status status = sealed ? ree_training_receipt_parse(sealed, n_sealed, "fuzz", &r, &err)
                                    : ree_training_receipt_parse(bytes, size, "fuzz", &r, &err);
    if (status != REE_OK) {
        must_say(status, &err);
        must(!r);
    } else {
        const struct ree_training_receipt_info *info = ree_training_receipt_info(r);
        must(info->n_points >= 2 && info->n_points <= REE_TRAINING_MAX_POINTS);
        for (size_t i = 1; i < info->n_points; i++)
            must(info->points[i].step > info->points[i - 1].step);
        must(ree_training_receipt_encode(r, &text, &n, &err) == REE_OK);
        // The file ends with a newline.
        if (sealed) must(n == n_sealed + 1 && !memcmp(text, sealed, n_sealed));
        ree_free(text);
        fuzz_accepted = true;
    }
    ree_training_receipt_destroy(r);
    ree_free(sealed);
}

static void try_checkpoint(const uint8_t *bytes, size_t size) {
    struct ree_error err = {.message = ""};
    struct ree_training *training;
    char path[64];
    set_up();
    int fd = memfd_create("checkpoint", 0);
    must(fd >= 0 && write(fd, bytes, size) == (ssize_t)size);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    must(ree_training_create(model, cpu, dataset, NULL, &training, &err) == REE_OK);
    enum ree_status status = ree_training_load(training, path, &err);
    if (status == REE_OK)
        train(training);
    else
        must_say(status, &err);
    fuzz_accepted = status == REE_OK;
    ree_training_destroy(training);
    close(fd);
}

static void set_metadata(const char *text) {
    for (size_t i = 0; i < model->graph->n_metadata; i++)
        if (!strcmp(model->graph->metadata[i].key, REE_STEP_METADATA))
            model->graph->metadata[i].value = text;
}

static void try_metadata(const uint8_t *bytes, size_t size) {
    struct ree_error err = {.message = ""};
    struct ree_training *training;
    set_up();
    char *text = ree_strndup((const char *)bytes, size);
    must(text);
    set_metadata(text);
    enum ree_status status = ree_training_create(model, cpu, dataset, NULL, &training, &err);
    if (status == REE_OK)
        train(training);
    else
        must_say(status, &err);
    fuzz_accepted = status == REE_OK;
    ree_training_destroy(training);
    set_metadata(honest);
    ree_free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    if (!size) return 0;
    switch (bytes[0]) {
    case 'n': try_samples(bytes + 1, size - 1, true); break;
    case 's': try_samples(bytes + 1, size - 1, false); break;
    case 'r': try_receipt(bytes + 1, size - 1); break;
    case 'c': try_checkpoint(bytes + 1, size - 1); break;
    case 'm': try_metadata(bytes + 1, size - 1); break;
    default: break;
    }
    return 0;
}
