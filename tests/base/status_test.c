#include "base/status.h"
#include "test.h"

#include <string.h>

static void test_messages(void) {
    struct ree_error err = {0};
    CHECK(ree_fail(&err, REE_INVALID, "input X has rank %d, expected %d", 3, 4) == REE_INVALID);
    CHECK(err.status == REE_INVALID);
    CHECK(strcmp(err.message, "input X has rank 3, expected 4") == 0);
    CHECK(ree_fail_prefix(&err, "node '%s' (%s)", "conv1", "Conv") == REE_INVALID);
    CHECK(ree_fail_prefix(&err, "%s", "m.onnx") == REE_INVALID);
    CHECK_MSG(strcmp(err.message, "m.onnx: node 'conv1' (Conv): input X has rank 3, expected 4") ==
                  0,
              "%s", err.message);
    CHECK(ree_fail(NULL, REE_IO, "ignored") == REE_IO);
    // Adding a prefix to an error that reports no failure is itself a failure.
    err = (struct ree_error){0};
    CHECK(ree_fail_prefix(&err, "node") == REE_INTERNAL && err.status == REE_INTERNAL);
    CHECK(ree_fail_prefix(NULL, "node") == REE_INTERNAL);
}

// Messages are truncated, never overrun. A long context leaves space for the message it belongs to.
static void test_long_messages(void) {
    char text[3000];
    memset(text, 'n', sizeof text - 1);
    text[sizeof text - 1] = 0;
    struct ree_error err;
    ree_fail(&err, REE_INVALID, "%s", text);
    CHECK(strlen(err.message) == REE_ERROR_MAX - 1);
    ree_fail(&err, REE_INVALID, "rank 3");
    ree_fail_prefix(&err, "%s", text);
    CHECK(strlen(err.message) < REE_ERROR_MAX);
    CHECK(strstr(err.message, "rank 3") != NULL);
}

static void test_arithmetic(void) {
    uint64_t out = 7;
    CHECK(ree_mul_size(6, 7, &out) && out == 42);
    CHECK(!ree_mul_size(UINT64_C(1) << 32, UINT64_C(1) << 32, &out) && out == 42);
    CHECK(ree_add_size(UINT64_MAX - 1, 1, &out) && out == UINT64_MAX);
    CHECK(!ree_add_size(UINT64_MAX, 1, &out) && out == UINT64_MAX);

    int64_t count = -1;
    CHECK(ree_count_elements(0, NULL, &count) && count == 1);
    CHECK(ree_count_elements(3, (int64_t[]){2, 3, 4}, &count) && count == 24);
    CHECK(ree_count_elements(2, (int64_t[]){0, 5}, &count) && count == 0);
    CHECK(!ree_count_elements(2, (int64_t[]){2, -1}, &count));
    CHECK(!ree_count_elements(3, (int64_t[]){INT64_C(1) << 31, INT64_C(1) << 31, 2}, &count));
}

static void test_names(void) {
    for (int s = REE_OK; s <= REE_INTERNAL; s++) {
        const char *name = ree_status_name((enum ree_status)s);
        CHECK(name && name[0]);
        for (int t = REE_OK; t < s; t++)
            CHECK(strcmp(name, ree_status_name((enum ree_status)t)) != 0);
    }
}

int main(void) {
    test_messages();
    test_long_messages();
    test_arithmetic();
    test_names();
    return test_finish();
}
