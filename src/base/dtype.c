#include "ree.h"

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
    case REE_DTYPE_NONE: return "unknown";
    }
    return "?";
}

size_t ree_dtype_size(enum ree_dtype dtype) {
    switch (dtype) {
    case REE_U8:
    case REE_I8:
    case REE_BOOL: return 1;
    case REE_U16:
    case REE_I16:
    case REE_F16:
    case REE_BF16: return 2;
    case REE_F32:
    case REE_I32:
    case REE_U32: return 4;
    case REE_F64:
    case REE_I64:
    case REE_U64: return 8;
    case REE_STRING:
    case REE_DTYPE_NONE: return 0;
    }
    return 0;
}
