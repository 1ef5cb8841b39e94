// Compares the primitives of arithmetic with the processor's, in every form that a device allows,
// over adversarial arguments: cancellation, ties, subnormal results and operands, overflow.
//
// Usage: vulkan_primitives [N]: N triples for fma, N / 16 for the others.
#include "base/status.h"
#include "device/device.h"
#include "repops/scalar/ops.h"
#include "test.h"
#include "device_map.h"
#include "splitmix.h"

#include <string.h>

static struct splitmix rng = {1};
static uint32_t bits(void) {
    return (uint32_t)(splitmix_next(&rng) >> 32);
}
static uint32_t near(uint32_t biased, uint32_t spread) {
    uint32_t e = biased - spread + bits() % (2 * spread + 1);
    return (bits() & 0x807FFFFFu) | (e & 255u) << 23;
}

static void triple(uint32_t kind, uint32_t *a, uint32_t *b, uint32_t *c) {
    *a = near(127, 3), *b = near(127, 3), *c = near(127, 30);
    switch (kind % 12) {
    case 0: *c = ree_bits(-(ree_float(*a) * ree_float(*b))); break;
    case 1: *c = ree_bits(ree_float(*a) * ree_float(*b)) ^ (bits() & 0x80000007u); break;
    case 2: *a &= 0xFFFFF000u, *b &= 0xFFFFF800u; break;
    case 3: { // the product is between half an ulp and one ulp of c
        float p = ree_float(*a) * ree_float(*b);
        *c = ree_bits(p * 0x1p+24f) ^ (bits() & 0x80000000u);
        break;
    }
    case 4: *a = near(60, 20), *b = near(60, 20), *c = near(3, 3); break;
    case 5: *a &= 0x807FFFFFu, *c = near(10, 10); break;
    case 6: *a = near(250, 4), *b = near(130, 4), *c = near(250, 4); break;
    case 7: *a = near(127, 60), *b = near(127, 60), *c = near(127, 100); break;
    case 8: *a = bits(), *b = bits(), *c = bits(); break;
    case 9: *c = ree_bits(ree_float(*a)), *b = near(127 - 24, 2); break;
    case 10: // products of one or two bits, near half an ulp of c: many ties
        *a &= 0xFF800000u, *b &= 0xFFC00000u, *c &= 0xFFFFFFFEu;
        *b = (*b & 0x807FFFFFu) | ((*c >> 23 & 255u) - 24u) << 23;
        break;
    default: *b = *a, *c = ree_bits(-(ree_float(*a) * ree_float(*a))); break;
    }
}

static const struct {
    enum ree_map_op op;
    uint32_t share; // N / share triples are tested
} operations[] = {{REE_MAP_fma_f32, 1},  {REE_MAP_add_f32, 16}, {REE_MAP_sub_f32, 16},
                  {REE_MAP_mul_f32, 16}, {REE_MAP_div_f32, 16}, {REE_MAP_sqrt_f32, 16}};

static uint32_t expected(enum ree_map_op op, uint32_t a, uint32_t b, uint32_t c) {
    switch (op) {
    case REE_MAP_fma_f32: return ree_op_fma_f32(a, b, c);
    case REE_MAP_add_f32: return ree_op_add_f32(a, b);
    case REE_MAP_sub_f32: return ree_op_sub_f32(a, b);
    case REE_MAP_mul_f32: return ree_op_mul_f32(a, b);
    case REE_MAP_div_f32: return ree_op_div_f32(a, b);
    default: return ree_op_sqrt_f32(a);
    }
}

static void compare(struct ree_device *device, const char *form, uint32_t n, uint32_t *const *words,
                    uint32_t *got) {
    for (size_t o = 0; o < sizeof operations / sizeof *operations; o++) {
        enum ree_map_op op = operations[o].op;
        uint32_t m = n / operations[o].share, n_wrong = 0, first = 0;
        struct ree_error err;
        enum ree_status status =
            run_device_map(device, op, m, (const uint32_t *const *)words, got, &err);
        CHECK_MSG(status == REE_OK, "%s: %s", device->name, err.message);
        for (uint32_t i = 0; i < m && status == REE_OK; i++)
            if (got[i] != expected(op, words[0][i], words[1][i], words[2][i]) && n_wrong++ == 0)
                first = i;
        CHECK_MSG(n_wrong == 0, "%s, %s, %s: %u of %u wrong, %08x %08x %08x gives %08x",
                  device->name, form, ree_map_op_infos[op].name, n_wrong, m, words[0][first],
                  words[1][first], words[2][first], got[first]);
    }
}

int main(int argc, char **argv) {
    uint32_t n = argc > 1 ? (uint32_t)atoi(argv[1]) : 1u << 20;
    uint32_t *words[4];
    for (int i = 0; i < 4; i++) {
        words[i] = calloc(n, sizeof **words);
        REQUIRE(words[i]);
    }
    for (uint32_t i = 0; i < n; i++)
        triple(i, &words[0][i], &words[1][i], &words[2][i]);
    struct ree_device_listing list[16];
    const char *note;
    size_t n_devices = ree_vulkan_device_list(list, 16, &note);
    if (n_devices == 0) return test_skip(note);
    static const char *const forms[] = {"native", "float64", "float32", "integer"};
    for (size_t d = 0; d < n_devices && d < 16; d++) {
        uint32_t n_allowed = 0;
        for (size_t f = 0; f < 4; f++) {
            struct ree_device_testing testing = {.size = sizeof testing, .force_form = forms[f]};
            struct ree_device_options options = {
                .size = sizeof options, .cache_dir = "", .testing = &testing};
            struct ree_device *device;
            struct ree_error err;
            enum ree_status status =
                ree_vulkan_device_open(strchr(list[d].spec, ':') + 1, &options, &device, &err);
            if (status == REE_UNSUPPORTED) continue; // the device does not have this form
            CHECK_MSG(status == REE_OK, "%s, %s: %s", list[d].name, forms[f], err.message);
            if (status != REE_OK) continue;
            n_allowed++;
            compare(device, forms[f], n, words, words[3]);
            device->vtable->destroy(device);
        }
        CHECK_MSG(n_allowed >= 1, "%s: no form of arithmetic", list[d].name);
    }
    for (int i = 0; i < 4; i++)
        free(words[i]);
    return test_finish();
}
