// Writes the seeds of fuzz_verify: the honest receipts, each with what a verifier needs for it.
// Writes lies to a second folder: receipts in each of which the mutator changed one place. All
// files are the same in every run.
#include "verify_mutator.h"
#include "verify_world.h"

#include <stdio.h>
#include <stdlib.h>

#define N_LIES 3 // lies about each place

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size) {
    (void)max_size;
    if (size) data[size / 2] ^= 1;
    return size;
}

static uint8_t bytes[1 << 16];

static size_t join(const struct verify_world *world, const struct honest *h) {
    const struct verify_case c = {.options = h->options,
                                  .request = (const uint8_t *)world->request,
                                  .n_request = h->is_asked ? world->n_request : 0,
                                  .receipt = (const uint8_t *)h->receipt,
                                  .n_receipt = h->n_receipt};
    return verify_case_join(&c, bytes, sizeof bytes);
}

static void write_seed(const char *folder, const char *name, uint32_t lie, size_t size) {
    char path[4096];
    int n = snprintf(path, sizeof path, "%s/%s", folder, name);
    if (lie) snprintf(path + n, sizeof path - (size_t)n, "_lie_%03u", lie);
    FILE *file = fopen(path, "wb");
    if (!size || !file || fwrite(bytes, 1, size, file) != size || fclose(file) != 0) {
        perror(path);
        exit(1);
    }
}

int main(int argc, char **argv) {
    if (argc != 3) {
        fprintf(stderr, "usage: %s HONEST LIES\n", argv[0]);
        return 1;
    }
    const struct verify_world *world = verify_world();
    for (size_t i = 0; i < N_HONEST; i++) {
        const struct honest *h = &world->honest[i];
        write_seed(argv[1], h->name, 0, join(world, h));
        for (uint32_t k = 0;; k++) {
            size_t size =
                verify_change_place(bytes, join(world, h), sizeof bytes, k / N_LIES, 7919 * k + 1);
            if (!size) break;
            write_seed(argv[2], h->name, k + 1, size);
        }
    }
    return 0;
}
