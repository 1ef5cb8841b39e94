// Writes the seeds of fuzz_verify: the honest receipts, each with what verifies it.
#include "verify_world.h"

#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    static uint8_t bytes[1 << 16];
    if (argc != 2) {
        fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
        return 1;
    }
    const struct verify_world *world = verify_world();
    for (size_t i = 0; i < N_HONEST; i++) {
        const struct honest *h = &world->honest[i];
        const struct verify_case c = {.options = h->options,
                                      .request = (const uint8_t *)world->request,
                                      .n_request = h->is_asked ? world->n_request : 0,
                                      .receipt = (const uint8_t *)h->receipt,
                                      .n_receipt = h->n_receipt};
        char path[4096];
        size_t size = verify_case_join(&c, bytes, sizeof bytes);
        snprintf(path, sizeof path, "%s/%s", argv[1], h->name);
        FILE *file = fopen(path, "wb");
        if (!size || !file || fwrite(bytes, 1, size, file) != size || fclose(file) != 0) {
            perror(path);
            return 1;
        }
    }
    return 0;
}
