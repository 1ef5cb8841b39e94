// Element types, beyond what ree.h tells of them.
#ifndef REE_BASE_DTYPE_H
#define REE_BASE_DTYPE_H

#include "ree.h"

bool ree_dtype_is_float(enum ree_dtype dtype); // binary64 down to float4e2m1
// Whether a byte may stand for an element of a one-byte type: 0 and 1 for bool, the low bits
// properly extended for the types below a byte, any byte for the others.
bool ree_dtype_byte_is_valid(enum ree_dtype dtype, uint8_t byte);
// One NaN for all payloads and signs, NUMERICS.md section 1: in place, other elements and types
// stay as they are.
void ree_canonicalise_nans(enum ree_dtype dtype, size_t n, void *data);

#endif
