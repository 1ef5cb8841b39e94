#include "ree.h"
#include "test.h"

#include <string.h>

static void expect_failure(enum ree_dtype dtype, uint32_t rank, const int64_t *dims,
                           enum ree_status want, const char *message) {
    struct ree_tensor t;
    struct ree_error err = {0};
    CHECK(ree_tensor_init(&t, "x", dtype, rank, dims, &err) == want);
    CHECK_MSG(strstr(err.message, message), "'%s' lacks '%s'", err.message, message);
    CHECK(!t.name && !t.data && t.nbytes == 0);
    ree_tensor_finish(&t);
}

int main(void) {
    struct ree_tensor t;
    const int64_t dims[] = {2, 3, 5};
    CHECK(ree_tensor_init(&t, "scores", REE_F32, 3, dims, NULL) == REE_OK);
    CHECK(strcmp(t.name, "scores") == 0 && t.dtype == REE_F32 && t.rank == 3);
    CHECK(memcmp(t.dims, dims, sizeof dims) == 0 && t.nbytes == 120);
    static const unsigned char zeros[120];
    CHECK(memcmp(t.data, zeros, sizeof zeros) == 0);
    ree_tensor_finish(&t);
    CHECK(!t.name && !t.data && t.rank == 0);
    ree_tensor_finish(&t);
    ree_tensor_finish(NULL);

    CHECK(ree_tensor_init(&t, NULL, REE_I64, 0, NULL, NULL) == REE_OK);
    CHECK(!t.name && t.nbytes == 8 && *(int64_t *)t.data == 0);
    ree_tensor_finish(&t);
    CHECK(ree_tensor_init(&t, NULL, REE_U8, 2, (int64_t[]){0, 3}, NULL) == REE_OK);
    CHECK(t.nbytes == 0);
    ree_tensor_finish(&t);

    // A tensor owns its strings; a sequence owns its items.
    CHECK(ree_tensor_init(&t, "s", REE_STRING, 1, (int64_t[]){2}, NULL) == REE_OK);
    CHECK(t.nbytes == 16 && !((char **)t.data)[1]);
    ((char **)t.data)[0] = strdup("text");
    struct ree_tensor sequence = {.kind = REE_SEQUENCE, .dtype = REE_STRING};
    CHECK(ree_sequence_append(&sequence, &t, NULL) == REE_OK && !t.data && !t.name);
    CHECK(sequence.n_items == 1 && strcmp(((char **)sequence.items[0].data)[0], "text") == 0);
    ree_tensor_finish(&sequence);
    CHECK(sequence.n_items == 0 && !sequence.items);

    expect_failure(REE_F32, 9, (int64_t[9]){1, 1, 1, 1, 1, 1, 1, 1, 1}, REE_UNSUPPORTED, "rank 9");
    expect_failure(REE_F32, 1, (int64_t[]){-1}, REE_INVALID, "negative");
    expect_failure(REE_F32, 2, (int64_t[]){INT64_MAX, 2}, REE_INVALID, "exceeds");
    expect_failure(REE_F32, 1, (int64_t[]){INT64_MAX / 2}, REE_NO_MEMORY, "memory");
    expect_failure(REE_DTYPE_NONE, 1, (int64_t[]){1}, REE_UNSUPPORTED, "unknown");
    expect_failure((enum ree_dtype)99, 1, (int64_t[]){1}, REE_UNSUPPORTED, "?");
    return test_finish();
}
