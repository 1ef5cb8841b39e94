// Properties of each element type.
#include "base/dtype.h"

#include "base/any.h"

const char *ree_dtype_name(enum ree_dtype dtype) {
    switch (dtype) {
    case REE_F32: return "float32";
    case REE_U8: return "uint8";
    case REE_I8: return "int8";
    case REE_U16: return "uint16";
    case REE_I16: return "int16";
    case REE_I32: return "int32";
    case REE_I64: return "int64";
    case REE_STRING: return "string";
    case REE_BOOL: return "bool";
    case REE_F16: return "float16";
    case REE_F64: return "float64";
    case REE_U32: return "uint32";
    case REE_U64: return "uint64";
    case REE_BF16: return "bfloat16";
    case REE_F8E4M3FN: return "float8e4m3fn";
    case REE_F8E4M3FNUZ: return "float8e4m3fnuz";
    case REE_F8E5M2: return "float8e5m2";
    case REE_F8E5M2FNUZ: return "float8e5m2fnuz";
    case REE_U4: return "uint4";
    case REE_I4: return "int4";
    case REE_F4E2M1: return "float4e2m1";
    case REE_F8E8M0: return "float8e8m0";
    case REE_U2: return "uint2";
    case REE_I2: return "int2";
    case REE_DTYPE_NONE: return "unknown";
    }
    return "?";
}

size_t ree_dtype_size(enum ree_dtype dtype) {
    switch (dtype) {
    case REE_U8:
    case REE_I8:
    case REE_BOOL:
    case REE_F8E4M3FN:
    case REE_F8E4M3FNUZ:
    case REE_F8E5M2:
    case REE_F8E5M2FNUZ:
    case REE_F8E8M0:
    case REE_U4:
    case REE_I4:
    case REE_F4E2M1:
    case REE_U2:
    case REE_I2: return 1;
    case REE_U16:
    case REE_I16:
    case REE_F16:
    case REE_BF16: return 2;
    case REE_F32:
    case REE_I32:
    case REE_U32: return 4;
    case REE_F64:
    case REE_I64:
    case REE_STRING: // a pointer in ree_tensor, the string's number in a program
    case REE_U64: return 8;
    case REE_DTYPE_NONE: return 0;
    }
    return 0;
}

uint32_t ree_dtype_bits(enum ree_dtype dtype) {
    switch (dtype) {
    case REE_U4:
    case REE_I4:
    case REE_F4E2M1: return 4;
    case REE_U2:
    case REE_I2: return 2;
    case REE_STRING: return 0; // variable length
    default: return (uint32_t)ree_dtype_size(dtype) * 8;
    }
}

bool ree_dtype_is_float(enum ree_dtype dtype) {
    switch (dtype) {
    case REE_F32:
    case REE_F64:
    case REE_F16:
    case REE_BF16:
    case REE_F8E4M3FN:
    case REE_F8E4M3FNUZ:
    case REE_F8E5M2:
    case REE_F8E5M2FNUZ:
    case REE_F8E8M0:
    case REE_F4E2M1: return true;
    default: return false;
    }
}

bool ree_dtype_byte_is_valid(enum ree_dtype dtype, uint8_t byte) {
    switch (dtype) {
    case REE_BOOL: return byte <= 1;
    case REE_U4:
    case REE_F4E2M1: return byte <= 15;
    case REE_I4: return byte <= 7 || byte >= 0xF8;
    case REE_U2: return byte <= 3;
    case REE_I2: return byte <= 1 || byte >= 0xFE;
    default: return true;
    }
}

// The loops over 16, 32 and 64 bits store unconditionally, so that compilers can vectorise them.
void ree_canonicalise_nans(enum ree_dtype dtype, size_t n, void *data) {
    uint8_t *bytes = data;
    ree_any_u16 *halves = data;
    ree_any_u32 *words = data;
    ree_any_u64 *longs = data;
    switch (dtype) {
    case REE_F32:
        for (size_t i = 0; i < n; i++)
            words[i] = (words[i] & 0x7FFFFFFFu) > 0x7F800000u ? 0x7FC00000u : words[i];
        return;
    case REE_F64:
        for (size_t i = 0; i < n; i++)
            longs[i] = (longs[i] & INT64_MAX) > UINT64_C(0x7FF0000000000000)
                           ? UINT64_C(0x7FF8000000000000)
                           : longs[i];
        return;
    case REE_F16:
        for (size_t i = 0; i < n; i++)
            halves[i] = (halves[i] & 0x7FFF) > 0x7C00 ? 0x7E00 : halves[i];
        return;
    case REE_BF16:
        for (size_t i = 0; i < n; i++)
            halves[i] = (halves[i] & 0x7FFF) > 0x7F80 ? 0x7FC0 : halves[i];
        return;
    case REE_F8E4M3FN:
        for (size_t i = 0; i < n; i++)
            if ((bytes[i] & 0x7F) == 0x7F) bytes[i] = 0x7F;
        return;
    case REE_F8E5M2:
        for (size_t i = 0; i < n; i++)
            if ((bytes[i] & 0x7F) > 0x7C) bytes[i] = 0x7E;
        return;
    default: return; // the other types have one NaN or none
    }
}
