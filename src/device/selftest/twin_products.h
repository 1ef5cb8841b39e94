// Twins of the RepOps that are products of matrices.
#ifndef REE_DEVICE_SELFTEST_TWIN_PRODUCTS_H
#define REE_DEVICE_SELFTEST_TWIN_PRODUCTS_H

#include "device/selftest/twin_shrink.h"

bool ree_twin_shrink_matmul(struct ree_twin_shrinking *s);
bool ree_twin_shrink_conv(struct ree_twin_shrinking *s);
bool ree_twin_shrink_attention(struct ree_twin_shrinking *s);

#endif
