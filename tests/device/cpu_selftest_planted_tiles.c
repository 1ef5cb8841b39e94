// The full-height tiles, in which products and convolutions spend most of their time, miscompiled
// on purpose (planted_tiles_*.c). The self-test detects them through both RepOps.
#include "device/cpu/selftest.h"
#include "device/device.h"
#include "test.h"

#include <stdio.h>

static bool fails(const char *groups, const char *name) {
    char text[REE_CPU_TEST_TEXT + 4], wanted[64];
    snprintf(text, sizeof text, ", %s,", groups);
    snprintf(wanted, sizeof wanted, ", %s,", name);
    return strstr(text, wanted) != NULL;
}

int main(void) {
    static const char *const right[] = {"matmul_blocks", "matmul_bytes", "conv_bytes", "reduce"};
    struct ree_error err;
    char what[REE_CPU_TEST_TEXT];
    if (!ree_cpu_isa_available(REE_CPU_AVX2))
        return test_skip("no planted kernel is for this processor");
    for (int isa = REE_CPU_AVX2; isa <= REE_CPU_AVX512; isa++) {
        if (!ree_cpu_isa_available((enum ree_cpu_isa)isa)) continue;
        REQUIRE(ree_cpu_isa_test((enum ree_cpu_isa)isa, "", what, &err) == REE_OK);
        CHECK_MSG(fails(what, "matmul") && fails(what, "conv"), "%s: %s",
                  ree_cpu_isa_name((enum ree_cpu_isa)isa), what);
        for (size_t i = 0; i < sizeof right / sizeof *right; i++)
            CHECK_MSG(!fails(what, right[i]), "%s: %s", ree_cpu_isa_name((enum ree_cpu_isa)isa),
                      what);
    }
    REQUIRE(ree_cpu_isa_test(REE_CPU_PORTABLE, "", what, &err) == REE_OK);
    CHECK_MSG(!what[0], "portable: %s", what);
    return test_finish();
}
