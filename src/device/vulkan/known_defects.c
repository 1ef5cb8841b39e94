#include "device/vulkan/known_defects.h"

#include <stdio.h>

// LLVM 21 can put a vector of 128 bits that are all 1 into a register above xmm15, by an
// instruction that cannot name such a register (docs/RELEASES.md). No instance was found in
// pipelines for 256 bits, nor with LLVM 15 and 19; LLVM 22 has another instruction.
static bool has_wrong_ones(unsigned llvm, unsigned bits, bool has_avx512) {
    return has_avx512 && llvm == 21 && bits == 128;
}

const char *ree_vk_known_defect(const char *name, bool has_avx512) {
    unsigned llvm, minor, patch, bits;
    if (sscanf(name, "llvmpipe (LLVM %u.%u.%u, %u bits)", &llvm, &minor, &patch, &bits) != 4)
        return NULL;
    if (has_wrong_ones(llvm, bits, has_avx512))
        return "LLVM 21 generates wrong instructions for vectors of 128 bits on processors with "
               "AVX-512; set LP_NATIVE_VECTOR_WIDTH=256";
    return NULL;
}
