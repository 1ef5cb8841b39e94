#include "verify_case.h"

#include <string.h>

#define HEADER 3

bool verify_case_split(const uint8_t *bytes, size_t size, struct verify_case *out) {
    *out = (struct verify_case){0};
    if (size < HEADER) return false;
    size_t n = bytes[1] | (size_t)bytes[2] << 8;
    if (n > size - HEADER) return false;
    out->options = bytes[0];
    out->request = n ? bytes + HEADER : NULL;
    out->n_request = n;
    out->receipt = bytes + HEADER + n;
    out->n_receipt = size - HEADER - n;
    return true;
}

size_t verify_case_join(const struct verify_case *c, uint8_t *out, size_t most) {
    if (c->n_request > UINT16_MAX || HEADER + c->n_request + c->n_receipt > most) return 0;
    out[0] = c->options;
    out[1] = (uint8_t)c->n_request;
    out[2] = (uint8_t)(c->n_request >> 8);
    if (c->n_request) memcpy(out + HEADER, c->request, c->n_request);
    memcpy(out + HEADER + c->n_request, c->receipt, c->n_receipt);
    return HEADER + c->n_request + c->n_receipt;
}
