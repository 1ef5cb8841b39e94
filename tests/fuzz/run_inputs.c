#include "run_inputs.h"

#include <stdlib.h>
#include <string.h>

// Maximum numbers of elements in an input, and of inputs.
#define MOST_ELEMENTS 4096
#define MOST_INPUTS 64

// Not splitmix.h: the seeds of the models in tests/data/runs were chosen for the numbers of this
// generator.
static uint32_t below(uint32_t *state, uint32_t n) {
    *state = *state * 1664525u + 1013904223u;
    return (uint32_t)((uint64_t)(*state >> 8) * n >> 24);
}

// Returns the size of a symbol: 1 to 4, and the same everywhere in the model.
static int64_t symbol_size(const char *symbol, uint32_t seed) {
    uint32_t hash = seed;
    for (; *symbol; symbol++)
        hash = (hash ^ (unsigned char)*symbol) * 16777619u;
    return 1 + hash % 4;
}

// Values that operators handle differently. Integers are mostly small, so that they can be indices.
static void put_element(enum ree_dtype dtype, unsigned char *at, uint32_t *state) {
    static const float floats[] = {0,       -0.0f, 1,    -1,    0.5f,   2,     3.25f,      -7.5f,
                                   1e-40f,  1e30f, 1e9f, -1e9f, 0.125f, 65504, 1.0000001f, 255,
                                   -127.5f, 1e-8f, 6,    1.5f,  -0.25f, 10,    -1e-40f,    100};
    const size_t n_floats = sizeof floats / sizeof *floats;
    float f = floats[below(state, n_floats)];
    if (below(state, 64) == 0) f = below(state, 2) ? __builtin_inff() : __builtin_nanf("");
    double d = (double)f;
    int64_t whole = below(state, 3);
    if (below(state, 8) == 0) whole--;
    if (below(state, 16) == 0) whole = below(state, 8);
    // Very large: sizes in between would be accepted and cost seconds.
    if (below(state, 32) == 0) whole = (int64_t)(1 + below(state, 1u << 22)) << 40;
    if (below(state, 32) == 0) whole = below(state, 256);
    uint32_t bits = below(state, 1u << 16);
    size_t size = ree_dtype_size(dtype);
    switch (dtype) {
    case REE_F32: memcpy(at, &f, size); break;
    case REE_F64: memcpy(at, &d, size); break;
    case REE_BOOL: *at = bits & 1; break;
    case REE_F16:
    case REE_BF16: memcpy(at, &bits, size); break;
    case REE_U4:
    case REE_F4E2M1: *at = bits & 15; break;
    case REE_U2: *at = bits & 3; break;
    case REE_I4: *at = (unsigned char)((int)(bits & 15) - 8); break;
    case REE_I2: *at = (unsigned char)((int)(bits & 3) - 2); break;
    default: memcpy(at, &whole, size);
    }
}

static bool put_text(char **at, uint32_t *state) {
    static const char *const texts[] = {"", "a", "b c", "caf\xc3\xa9", "Hello, World", "1.5", "-7"};
    *at = strdup(texts[below(state, sizeof texts / sizeof *texts)]);
    return *at != NULL;
}

static bool make_tensor(const struct ree_port *port, const char *name, uint32_t seed,
                        uint32_t *state, struct ree_tensor *out) {
    int64_t dims[REE_MAX_RANK], n = 1;
    uint32_t rank = port->has_shape ? port->rank : below(state, 4);
    for (uint32_t i = 0; i < rank; i++) {
        bool declared = port->has_shape && port->dims[i] >= 0;
        const char *symbol = port->has_shape ? port->symbols[i] : NULL;
        dims[i] = declared ? port->dims[i]
                  : symbol ? symbol_size(symbol, seed)
                           : 1 + below(state, 3);
        if (dims[i] > MOST_ELEMENTS) return false;
        n *= dims[i];
        if (n > MOST_ELEMENTS) return false;
    }
    size_t size = ree_dtype_size(port->dtype);
    if (!size || ree_tensor_init(out, name, port->dtype, rank, dims, NULL) != REE_OK) return false;
    bool ok = true;
    for (int64_t i = 0; ok && i < n; i++) {
        unsigned char *at = (unsigned char *)out->data + (size_t)i * size;
        if (port->dtype == REE_STRING)
            ok = put_text((char **)(void *)at, state);
        else
            put_element(port->dtype, at, state);
    }
    if (!ok) ree_tensor_finish(out);
    return ok;
}

static bool make_sequence(const struct ree_port *port, uint32_t seed, uint32_t *state,
                          struct ree_tensor *out) {
    *out = (struct ree_tensor){.dtype = port->dtype, .kind = REE_SEQUENCE};
    out->name = strdup(port->name);
    bool ok = out->name != NULL;
    for (uint32_t n = below(state, 4); ok && n > 0; n--) {
        struct ree_tensor item;
        ok = make_tensor(port, NULL, seed, state, &item) &&
             ree_sequence_append(out, &item, NULL) == REE_OK;
    }
    if (!ok) ree_tensor_finish(out);
    return ok;
}

static bool make_input(const struct ree_port *port, uint32_t seed, uint32_t *state,
                       struct ree_tensor *out) {
    if (port->nullable && below(state, 3) == 0) {
        *out = (struct ree_tensor){.dtype = port->dtype, .kind = REE_ABSENT};
        out->name = strdup(port->name);
        return out->name != NULL;
    }
    if (port->kind == REE_SEQUENCE) return make_sequence(port, seed, state, out);
    return make_tensor(port, port->name, seed, state, out);
}

bool run_inputs_make(const struct ree_model *model, uint32_t seed, struct run_inputs *out) {
    size_t n = ree_model_n_inputs(model);
    uint32_t state = seed;
    *out = (struct run_inputs){0};
    if (n > MOST_INPUTS) return false;
    out->tensors = calloc(n + 1, sizeof *out->tensors);
    for (size_t i = 0; out->tensors && i < n; i++) {
        const struct ree_port *port = ree_model_input(model, i);
        // Half of the optional inputs use their default.
        if (port->optional && below(&state, 2)) continue;
        if (!make_input(port, seed, &state, &out->tensors[out->n])) {
            run_inputs_finish(out);
            return false;
        }
        out->n++;
    }
    return out->tensors != NULL;
}

void run_inputs_finish(struct run_inputs *inputs) {
    for (size_t i = 0; i < inputs->n; i++)
        ree_tensor_finish(&inputs->tensors[i]);
    free(inputs->tensors);
    *inputs = (struct run_inputs){0};
}
