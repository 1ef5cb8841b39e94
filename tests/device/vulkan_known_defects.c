// Drivers with a known defect are refused, and no others.
#include <string.h>

#include "device/vulkan/known_defects.h"
#include "test.h"

int main(void) {
    static const char bad[] = "llvmpipe (LLVM 21.1.8, 128 bits)";
    const char *reason = ree_vk_known_defect(bad, true);
    CHECK(reason && strstr(reason, "LP_NATIVE_VECTOR_WIDTH=256"));
    CHECK(!ree_vk_known_defect(bad, false)); // no registers above xmm15
    static const char *const good[] = {
        "llvmpipe (LLVM 21.1.8, 256 bits)",
        "llvmpipe (LLVM 22.1.8, 128 bits)",
        "llvmpipe (LLVM 19.1.7, 128 bits)",
        "llvmpipe (LLVM 15.0.6, 128 bits)",
        "llvmpipe (LLVM 2",
        "SwiftShader Device (LLVM 10.0.0)",
        "NVIDIA H100 PCIe",
        "",
    };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        CHECK_MSG(!ree_vk_known_defect(good[i], true), "'%s' is refused", good[i]);
    return test_finish();
}
