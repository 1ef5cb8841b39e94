// Built with AddressSanitizer only: the tiles' innermost loops run without its checks (UNCHECKED in
// tiles.inc), but an operand that is one element too short is still reported, and one that is just
// long enough is not.
#include "device/cpu/tiles.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define TERMS 5

enum missing { NOTHING, END_OF_A, END_OF_B, END_OF_C };

// Multiplies a tile of operands that end with their allocations.
static void multiply(const struct ree_tiles *tiles, uint32_t rows, uint32_t vecs,
                     enum missing missing) {
    const size_t cols = (size_t)vecs * tiles->lanes;
    const size_t na = (size_t)rows * TERMS, nb = (size_t)(TERMS - 1) * tiles->cols + cols;
    float *a = calloc(na - (missing == END_OF_A), sizeof *a);
    float *b = calloc(nb - (missing == END_OF_B), sizeof *b);
    float *c = calloc(rows * cols - (missing == END_OF_C), sizeof *c);
    REQUIRE(a && b && c);
    tiles->tile[rows - 1][vecs - 1](TERMS, a, b, c, cols, (uint32_t)cols, REE_TILE_FIRST);
    free(a);
    free(b);
    free(c);
}

// Returns whether a child process that multiplies with a missing element survives.
static bool survives(const struct ree_tiles *tiles, uint32_t rows, uint32_t vecs,
                     enum missing missing) {
    fflush(NULL);
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        REQUIRE(freopen("/dev/null", "w", stderr) != NULL); // the sanitizer's report
        multiply(tiles, rows, vecs, missing);
        _exit(0);
    }
    int status;
    REQUIRE(waitpid(child, &status, 0) == child);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

int main(void) {
    uint32_t n = 0;
    for (int isa = 0; isa < REE_N_CPU_ISAS; isa++) {
        if (!ree_cpu_isa_available((enum ree_cpu_isa)isa)) continue;
        const struct ree_tiles *tiles = ree_tiles_for((enum ree_cpu_isa)isa);
        for (uint32_t rows = 1; rows <= tiles->rows; rows += tiles->rows - 1)
            for (uint32_t vecs = 1; vecs <= tiles->vecs; vecs++, n++) {
                multiply(tiles, rows, vecs, NOTHING);
                for (enum missing missing = END_OF_A; missing <= END_OF_C; missing++)
                    CHECK_MSG(!survives(tiles, rows, vecs, missing), "%s, %u x %u: operand %c",
                              ree_cpu_isa_name((enum ree_cpu_isa)isa), rows, vecs,
                              "abc"[missing - END_OF_A]);
            }
    }
    printf("%u tiles\n", n);
    CHECK(n > 0);
    return test_finish();
}
