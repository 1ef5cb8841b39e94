// Type and shape of tensors, compared with expected ones.
#ifndef REE_BASE_TENSOR_TYPE_H
#define REE_BASE_TENSOR_TYPE_H

#include "ree.h"

// Whether the value is a tensor of this type and shape.
bool ree_has_type(const struct ree_tensor *tensor, enum ree_dtype dtype, uint32_t rank,
                  const int64_t *dims);
// Fails with "WHAT 'name' is float32[3], expected float32[4]", without a name if `name` is NULL. A
// negative dimension is printed as N.
enum ree_status ree_wrong_type(const char *what, const char *name, const struct ree_tensor *tensor,
                               enum ree_dtype dtype, uint32_t rank, const int64_t *dims,
                               struct ree_error *err);

#endif
