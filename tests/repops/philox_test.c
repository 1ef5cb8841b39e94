// Compares Philox4x32-10 with the vectors published in its authors' library (Random123,
// kat_vectors), with 64-bit words and with pairs of 32-bit words as in shaders.
#include "limbs.h"
#include "repops/scalar/ops.h"
#include "test.h"
#include "splitmix.h"

#include <string.h>

static void known_answers(void) {
    static const struct {
        uint32_t counter[4], key[2], want[4];
    } vectors[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX},
         {UINT32_MAX, UINT32_MAX},
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
        const uint32_t *c = vectors[i].counter, *k = vectors[i].key;
        struct ree_philox x =
            ree_philox4x32((struct ree_philox){c[0], c[1], c[2], c[3]}, k[0], k[1]);
        uint32_t got[4] = {x.x0, x.x1, x.x2, x.x3};
        CHECK_MSG(!memcmp(got, vectors[i].want, sizeof got),
                  "vector %zu: %08x %08x %08x %08x, expected %08x %08x %08x %08x", i, got[0],
                  got[1], got[2], got[3], vectors[i].want[0], vectors[i].want[1],
                  vectors[i].want[2], vectors[i].want[3]);
    }
    CHECK(ree_op_philox_b64(0, 0) == 0xe169c58d6627e8d5);
}

static void pairs_of_words(void) {
    struct splitmix rng = {1};
    for (int i = 0; i < 100000; i++) {
        uint64_t a = splitmix_next(&rng), b = splitmix_next(&rng);
        CHECK(ree_op_philox_b64(a, b) == limbs_philox(a, b));
    }
}

int main(void) {
    known_answers();
    pairs_of_words();
    return test_finish();
}
