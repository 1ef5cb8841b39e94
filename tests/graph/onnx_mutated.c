// Corrupted copies of a valid model: whatever the corruption, loading ends with a graph or with an
// error, and a graph that results can be printed and checked, and the passes run on it.
#include "graph/ir/ir.h"
#include "graph/onnx/onnx.h"
#include "graph/model_writer.h"
#include "graph/onnx/decode.h"
#include "onnx.pb-c.h"
#include "test.h"
#include "splitmix.h"

#include <string.h>

static long n_loaded, n_refused;

static void exercise(struct ree_graph *graph) {
    struct ree_strbuf text;
    ree_strbuf_init(&text);
    ree_graph_print(graph, &text);
    ree_strbuf_finish(&text);
    ree_graph_check_supported(graph, NULL);
    ree_pass_identity(graph);
    ree_pass_common_subexpressions(graph);
    ree_pass_dead_code(graph);
    ree_graph_count_uses(graph);
}

// The bytes are in a block of exactly their size, so that a sanitizer sees a read past the end.
static enum ree_status load_copy(const unsigned char *bytes, size_t n) {
    unsigned char *copy = malloc(n ? n : 1);
    REQUIRE(copy);
    memcpy(copy, bytes, n);
    struct ree_graph *graph;
    struct ree_error err = {.message = ""};
    enum ree_status status = ree_onnx_load_memory(copy, n, NULL, &graph, &err);
    free(copy);
    if (status == REE_OK) {
        exercise(graph);
        ree_graph_destroy(graph);
        n_loaded++;
    } else {
        n_refused++;
        CHECK_MSG(!graph && err.status == status && err.message[0], "an error without a message");
        CHECK_MSG(status == REE_INVALID || status == REE_UNSUPPORTED, "%s: %s",
                  ree_status_name(status), err.message);
    }
    return status;
}

// A prefix is a valid model only if it ends between the last fields, which are optional.
static void test_truncated(const struct pb *model) {
    long before = n_loaded;
    for (size_t n = 0; n < model->size; n++)
        load_copy(model->data, n);
    CHECK_MSG(n_loaded - before <= 2, "%ld prefixes are models", n_loaded - before);
}

static struct splitmix rng = {12345};
static uint32_t next_random(void) {
    return (uint32_t)(splitmix_next(&rng) >> 32);
}

static void test_mutated(const struct pb *model) {
    unsigned char *bytes = malloc(model->size);
    REQUIRE(bytes);
    // Every byte with every single bit flipped, and set to the extremes.
    for (size_t i = 0; i < model->size; i++) {
        memcpy(bytes, model->data, model->size);
        for (int bit = 0; bit < 8; bit++) {
            bytes[i] = (unsigned char)(model->data[i] ^ (1 << bit));
            load_copy(bytes, model->size);
        }
        bytes[i] = 0;
        load_copy(bytes, model->size);
        bytes[i] = 0xff;
        load_copy(bytes, model->size);
    }
    // A few random bytes at random offsets.
    for (int i = 0; i < 10000; i++) {
        memcpy(bytes, model->data, model->size);
        for (uint32_t n = 1 + next_random() % 4; n > 0; n--)
            bytes[next_random() % model->size] = (unsigned char)next_random();
        load_copy(bytes, model->size);
    }
    // A range of bytes is copied over another place, so that whole fields are misplaced.
    for (int i = 0; i < 10000; i++) {
        memcpy(bytes, model->data, model->size);
        size_t from = next_random() % model->size, to = next_random() % model->size;
        size_t n = next_random() % 64;
        if (n > model->size - from) n = model->size - from;
        if (n > model->size - to) n = model->size - to;
        memcpy(bytes + to, model->data + from, n);
        load_copy(bytes, model->size);
    }
    free(bytes);
}

// Whichever allocation exceeds the decoder's limit, it returns an error and leaks nothing.
static void test_memory_limits(const struct pb *model) {
    size_t n_errors = 0;
    for (size_t limit = 64;; limit += 64) {
        struct ree_decoder decoder;
        ProtobufCMessage *message;
        struct ree_error err;
        ree_decoder_init(&decoder);
        decoder.limit = limit;
        enum ree_status status = ree_decode(&decoder, &onnx__model_proto__descriptor, model->data,
                                            model->size, &message, &err);
        CHECK((status == REE_OK) == (message != NULL));
        CHECK(decoder.used <= limit);
        ree_decoder_finish(&decoder);
        if (status == REE_OK) break;
        CHECK(strstr(err.message, "requires more than"));
        n_errors++;
    }
    CHECK(n_errors > 50);
}

int main(void) {
    struct pb model = pb_sample_model();
    CHECK(load_copy(model.data, model.size) == REE_OK);
    test_truncated(&model);
    test_mutated(&model);
    test_memory_limits(&model);
    // Both outcomes must occur; otherwise the test would check nothing.
    CHECK_MSG(n_loaded > 1000 && n_refused > 1000, "%ld loaded, %ld refused", n_loaded, n_refused);
    printf("%ld damaged models loaded, %ld refused\n", n_loaded, n_refused);
    pb_free(&model);
    return test_finish();
}
