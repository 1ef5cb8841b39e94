// Element types: names, sizes, valid bytes of elements, and the canonical NaN of each type.
#include "base/dtype.h"
#include "base/npy.h"
#include "test.h"

#include <stdlib.h>
#include <string.h>

static void sizes(void) {
    size_t n_known = 0;
    for (int d = 0; d < 40; d++) {
        enum ree_dtype dtype = (enum ree_dtype)d;
        size_t size = ree_dtype_size(dtype);
        uint32_t bits = ree_dtype_bits(dtype);
        CHECK_MSG(bits <= 8 * size && (size > 1 || bits > 0 || size == 0),
                  "%s: %u bits in %zu bytes", ree_dtype_name(dtype), bits, size);
        n_known += size != 0;
    }
    CHECK(n_known == 24); // ONNX's 26 types without the two complex types
    CHECK(ree_dtype_bits(REE_I4) == 4 && ree_dtype_bits(REE_F4E2M1) == 4);
    CHECK(ree_dtype_bits(REE_U2) == 2 && ree_dtype_bits(REE_F8E8M0) == 8);
    CHECK(ree_dtype_bits(REE_STRING) == 0 && ree_dtype_bits(REE_BF16) == 16);
    CHECK(ree_dtype_is_float(REE_F4E2M1) && !ree_dtype_is_float(REE_I4));
}

// A type of n bits has 2^n valid bytes.
static void bytes(void) {
    for (int d = REE_F32; d <= REE_I2; d++) {
        enum ree_dtype dtype = (enum ree_dtype)d;
        if (ree_dtype_size(dtype) != 1) continue;
        int n = 0;
        for (int b = 0; b < 256; b++)
            n += ree_dtype_byte_is_valid(dtype, (uint8_t)b);
        CHECK_MSG(n == (dtype == REE_BOOL ? 2 : 1 << ree_dtype_bits(dtype)), "%s: %d elements",
                  ree_dtype_name(dtype), n);
    }
    CHECK(ree_dtype_byte_is_valid(REE_I4, 0xF8) && !ree_dtype_byte_is_valid(REE_I4, 8));
    CHECK(ree_dtype_byte_is_valid(REE_I2, 0xFE) && !ree_dtype_byte_is_valid(REE_I2, 2));
}

static void nans(void) {
    uint8_t e4m3fn[] = {0x7F, 0xFF, 0x7E, 0xFE, 0x80}, e5m2[] = {0x7D, 0xFF, 0x7C, 0xFC, 0x80};
    uint8_t fnuz[] = {0x80, 0xFF, 0x7F};
    ree_canonicalise_nans(REE_F8E4M3FN, sizeof e4m3fn, e4m3fn);
    ree_canonicalise_nans(REE_F8E5M2, sizeof e5m2, e5m2);
    ree_canonicalise_nans(REE_F8E4M3FNUZ, sizeof fnuz, fnuz);
    CHECK(!memcmp(e4m3fn, (uint8_t[]){0x7F, 0x7F, 0x7E, 0xFE, 0x80}, sizeof e4m3fn));
    CHECK(!memcmp(e5m2, (uint8_t[]){0x7E, 0x7E, 0x7C, 0xFC, 0x80}, sizeof e5m2));
    CHECK(!memcmp(fnuz, (uint8_t[]){0x80, 0xFF, 0x7F}, sizeof fnuz));
    uint16_t half[] = {0xFC01, 0x7C00}, brain[] = {0xFF81, 0xFF80};
    uint32_t single[] = {0xFF800001, 0xFF800000};
    uint64_t twice[] = {UINT64_C(0xFFF0000000000001), UINT64_C(0xFFF0000000000000)};
    ree_canonicalise_nans(REE_F16, 2, half);
    ree_canonicalise_nans(REE_BF16, 2, brain);
    ree_canonicalise_nans(REE_F32, 2, single);
    ree_canonicalise_nans(REE_F64, 2, twice);
    CHECK(half[0] == 0x7E00 && half[1] == 0x7C00 && brain[0] == 0x7FC0 && brain[1] == 0xFF80);
    CHECK(single[0] == 0x7FC00000 && single[1] == 0xFF800000);
    CHECK(twice[0] == UINT64_C(0x7FF8000000000000) && twice[1] == UINT64_C(0xFFF0000000000000));
}

// Types that NumPy lacks are stored in a .npy file as int8 or uint8 and converted back on request.
static void files(void) {
    static const struct {
        enum ree_dtype dtype, in_file;
        unsigned char bytes[3];
    } cases[] = {
        {REE_I4, REE_I8, {0xF8, 7, 0}},       {REE_I2, REE_I8, {0xFE, 1, 0}},
        {REE_U4, REE_U8, {15, 0, 1}},         {REE_U2, REE_U8, {3, 0, 1}},
        {REE_F4E2M1, REE_U8, {15, 8, 1}},     {REE_F8E5M2, REE_U8, {0xFF, 0x7C, 1}},
        {REE_F8E4M3FN, REE_U8, {0x80, 0, 1}}, {REE_F8E8M0, REE_U8, {0xFF, 0, 1}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ree_tensor t, back;
        struct ree_error err = {0};
        void *file;
        size_t size;
        REQUIRE(ree_tensor_init(&t, "t", cases[i].dtype, 1, (int64_t[]){3}, &err) == REE_OK);
        memcpy(t.data, cases[i].bytes, 3);
        REQUIRE(ree_npy_encode(&t, &file, &size, &err) == REE_OK);
        REQUIRE(ree_npy_decode(&back, file, size, "t.npy", &err) == REE_OK);
        CHECK(back.dtype == cases[i].in_file && !memcmp(back.data, cases[i].bytes, 3));
        CHECK(ree_tensor_retype(&back, REE_F32, &err) == REE_OK && back.dtype == cases[i].in_file);
        CHECK_MSG(ree_tensor_retype(&back, cases[i].dtype, &err) == REE_OK, "%s", err.message);
        CHECK(back.dtype == cases[i].dtype);
        free(file);
        ree_tensor_finish(&t);
        ree_tensor_finish(&back);
    }
    struct ree_tensor t;
    struct ree_error err = {0};
    REQUIRE(ree_tensor_init(&t, "t", REE_I8, 1, (int64_t[]){2}, &err) == REE_OK);
    ((int8_t *)t.data)[1] = 8;
    CHECK(ree_tensor_retype(&t, REE_I4, &err) == REE_INVALID && t.dtype == REE_I8);
    CHECK_MSG(strstr(err.message, "element 1 is the byte 0x08, outside int4"), "%s", err.message);
    ree_tensor_finish(&t);
}

int main(void) {
    sizes();
    bytes();
    nans();
    files();
    return test_finish();
}
