// Properties of element types that ree.h does not declare.
#ifndef REE_BASE_DTYPE_H
#define REE_BASE_DTYPE_H

#include "ree.h"

bool ree_dtype_is_float(enum ree_dtype dtype); // true for all float types, binary64 to float4e2m1
// Returns whether a byte is a valid element of a one-byte type: 0 or 1 for bool; correctly sign- or
// zero-extended bits for the types below a byte; any byte for the others.
bool ree_dtype_byte_is_valid(enum ree_dtype dtype, uint8_t byte);
// Replaces every NaN, whatever its payload and sign, by the one of NUMERICS.md section 1, in place.
// Does not change other elements or types. n is the number of elements.
void ree_canonicalise_nans(enum ree_dtype dtype, size_t n, void *data);

#endif
