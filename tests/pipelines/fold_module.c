// Specializes a SPIR-V file: fold_module IN.spv OUT.spv [SPEC_ID=VALUE]...
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "device/vulkan/spirv_fold.h"

#define MAX_CONSTANTS 16

int main(int argc, char **argv) {
    struct ree_error err;
    struct ree_spirv_constant constants[MAX_CONSTANTS];
    uint32_t n = 0;
    for (int i = 3; i < argc && n < MAX_CONSTANTS; i++, n++)
        if (sscanf(argv[i], "%u=%u", &constants[n].id, &constants[n].value) != 2) return 2;
    FILE *in = argc > 2 ? fopen(argv[1], "rb") : NULL;
    if (!in) return 2;
    static uint32_t words[1 << 20];
    const size_t n_words = fread(words, 4, sizeof words / 4, in);
    fclose(in);
    uint32_t *folded;
    size_t n_folded;
    if (ree_spirv_fold(words, n_words, constants, n, &folded, &n_folded, &err)) {
        printf("%s\n", err.message);
        return 1;
    }
    FILE *out = fopen(argv[2], "wb");
    const bool ok = out && fwrite(folded, 4, n_folded, out) == n_folded && fclose(out) == 0;
    ree_free(folded);
    return ok ? 0 : 2;
}
