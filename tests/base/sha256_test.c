// The digests below were computed with Python's hashlib from the definition in NUMERICS.md.
#include "ree.h"
#include "test.h"

#include <string.h>

static void expect(const struct ree_tensor *t, const char *want) {
    char hex[65];
    ree_tensor_sha256(t, hex);
    CHECK_MSG(strcmp(hex, want) == 0, "%s, expected %s", hex, want);
}

int main(void) {
    static float f[] = {1.5f, -2, 3, 4, 5, 6.25f};
    static unsigned char yes = 1;
    static char y_name[] = "y", empty_name[] = "empty";
    struct ree_tensor t[3] = {
        {y_name, REE_F32, 2, {2, 3}, f, sizeof f},
        {NULL, REE_BOOL, 0, {0}, &yes, 1},
        {empty_name, REE_I64, 2, {0, 3}, NULL, 0},
    };
    expect(&t[0], "db60f702ce8a82fed8e565a6c075f46ddef152b35e1a8a18a0622f5eb0dfb236");
    expect(&t[1], "4a925ab073eaeef5afee343b919777c3cbcb26cb3a47ccd8045fc0653aca864c");
    expect(&t[2], "af39719ae5aac73eacccb90c886fcdb47d3776f061f72171ae7de303ee59f10b");

    char hex[65];
    ree_tensors_sha256(t, 3, hex);
    CHECK(strcmp(hex, "b82ca63290ad8f214990ff1c87aa1b15634300d1a73ef19ea2227c45a889aefd") == 0);
    ree_tensors_sha256(NULL, 0, hex);
    CHECK(strcmp(hex, "51b96283d4a52ca4125b187a1ae692abd08d825131bcacaf15e8cb112a028a72") == 0);

    // Everything counts: a value's sign, the type, the shape, the name, the order.
    char other[65];
    ree_tensor_sha256(&t[0], hex);
    struct ree_tensor changed = t[0];
    changed.dtype = REE_I32;
    ree_tensor_sha256(&changed, other);
    CHECK(strcmp(hex, other) != 0);
    changed = t[0];
    changed.dims[0] = 3, changed.dims[1] = 2;
    ree_tensor_sha256(&changed, other);
    CHECK(strcmp(hex, other) != 0);
    f[1] = 2;
    ree_tensor_sha256(&t[0], other);
    CHECK(strcmp(hex, other) != 0);
    struct ree_tensor swapped[3] = {t[1], t[0], t[2]};
    ree_tensors_sha256(t, 3, hex);
    ree_tensors_sha256(swapped, 3, other);
    CHECK(strcmp(hex, other) != 0);
    swapped[0] = t[0], swapped[1] = t[1];
    swapped[0].name = empty_name;
    ree_tensors_sha256(swapped, 3, other);
    CHECK(strcmp(hex, other) != 0);
    return test_finish();
}
