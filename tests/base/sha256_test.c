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
        {.name = y_name,
         .dtype = REE_F32,
         .rank = 2,
         .dims = {2, 3},
         .data = f,
         .nbytes = sizeof f},
        {.dtype = REE_BOOL, .data = &yes, .nbytes = 1},
        {.name = empty_name, .dtype = REE_I64, .rank = 2, .dims = {0, 3}},
    };
    expect(&t[0], "db60f702ce8a82fed8e565a6c075f46ddef152b35e1a8a18a0622f5eb0dfb236");
    expect(&t[1], "4a925ab073eaeef5afee343b919777c3cbcb26cb3a47ccd8045fc0653aca864c");
    expect(&t[2], "af39719ae5aac73eacccb90c886fcdb47d3776f061f72171ae7de303ee59f10b");

    char hex[65];
    ree_tensors_sha256(t, 3, hex);
    CHECK(strcmp(hex, "b82ca63290ad8f214990ff1c87aa1b15634300d1a73ef19ea2227c45a889aefd") == 0);
    ree_tensors_sha256(NULL, 0, hex);
    CHECK(strcmp(hex, "51b96283d4a52ca4125b187a1ae692abd08d825131bcacaf15e8cb112a028a72") == 0);

    // Everything changes the digest: a value's sign, the type, the shape, the name, the order.
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

    // Strings: NULL counts as empty. Sequences, including an empty one, and absent values.
    static char a[] = "a", ete[] = "\xc3\xa9t\xc3\xa9";
    char *strings[3] = {a, NULL, ete};
    struct ree_tensor text = {
        .dtype = REE_STRING, .rank = 1, .dims = {3}, .data = strings, .nbytes = sizeof strings};
    expect(&text, "dc863c149d356551a3801ab7558e25ca4cab1b96109823b73c4e86e1e2814f05");
    float pair[2] = {1, 2};
    struct ree_tensor items[2] = {
        {.dtype = REE_F32, .rank = 1, .dims = {2}, .data = pair, .nbytes = sizeof pair},
        {.dtype = REE_F32, .rank = 1, .dims = {0}}};
    struct ree_tensor sequence = {
        .kind = REE_SEQUENCE, .dtype = REE_F32, .n_items = 2, .items = items};
    expect(&sequence, "4fa5965a8314c389cfb9069758950db0df5d81baac0f0470b6716c01cff6a3cc");
    struct ree_tensor absent = {.kind = REE_ABSENT, .dtype = REE_F32};
    expect(&absent, "c4c19fd59ded2b871629740f92d99b5a04da823da73e64a22c7f6a8d11908aa1");
    return test_finish();
}
