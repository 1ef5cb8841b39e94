// Hashes while memory is exhausted, for both the library and OpenSSL: they equal those with free
// memory. Neither may the process end, nor may a hash be wrong.
#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>

#include "base/sha256.h"
#include "base/merkle.h"
#include "trace/trace.h"
#include "test.h"

static bool is_exhausted;

// The linker redirects every call of malloc in this program to this function (--wrap).
void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_malloc(size_t size) {
    return is_exhausted ? NULL : __real_malloc(size);
}

static void *crypto_malloc(size_t size, const char *file, int line) {
    (void)file, (void)line;
    return is_exhausted ? NULL : __real_malloc(size);
}

static void *crypto_realloc(void *memory, size_t size, const char *file, int line) {
    (void)file, (void)line;
    return is_exhausted ? NULL : realloc(memory, size);
}

static void crypto_free(void *memory, const char *file, int line) {
    (void)file, (void)line;
    free(memory);
}

struct hashes {
    char tensor[65], tensors[65], text[65];
    ree_digest root, step;
};

static void hash_all(struct hashes *out) {
    static float numbers[6] = {1, 2, 3, 4, 5, 6};
    struct ree_tensor t[2] = {
        {.dtype = REE_F32, .rank = 1, .dims = {6}, .data = numbers, .nbytes = sizeof numbers},
        {.dtype = REE_F32, .kind = REE_ABSENT}};
    memset(out, 0, sizeof *out);
    ree_tensor_sha256(&t[0], out->tensor);
    ree_tensors_sha256(t, 2, out->tensors);
    struct ree_hasher *hasher = ree_hasher_create("text");
    ree_hasher_update(hasher, "abc", 3);
    ree_hasher_finish(hasher, out->text);
    ree_digest leaves[5] = {{1}, {2}, {3}, {4}, {5}};
    ree_merkle_root(leaves, 5, out->root);

    // Two nodes with one input and one output each. The list for the nodes' digests is NULL.
    int32_t inputs[2] = {0, 1};
    struct ree_trace_node nodes[2] = {
        {.n_inputs = 1, .inputs = &inputs[0], .n_outputs = 1, .first_output = 1},
        {.n_inputs = 1, .inputs = &inputs[1], .n_outputs = 1, .first_output = 2}};
    ree_digest ops[2] = {{6}, {7}};
    struct ree_trace_header header = {
        .n_inputs = 1, .n_nodes = 2, .nodes = nodes, .ops = ops, .n_values = 3};
    ree_trace_step_digest(&header, 0, (const ree_digest *)leaves, NULL, out->step);
}

int main(void) {
    struct hashes before, after;
    REQUIRE(CRYPTO_set_mem_functions(crypto_malloc, crypto_realloc, crypto_free) == 1);
    hash_all(&before);
    is_exhausted = true;
    hash_all(&after);
    for (int i = 0; i < 2000; i++) // memory taken from the reserve is returned to it
        hash_all(&after);
    struct ree_hasher *hasher = ree_hasher_try_create("text");
    is_exhausted = false;
    CHECK(memcmp(&before, &after, sizeof before) == 0);
    CHECK(!hasher && before.text[0]);
    return test_finish();
}
