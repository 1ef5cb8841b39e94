#include "base/tensor_type.h"

#include <string.h>

#include "base/status.h"
#include "base/strbuf.h"

// Appends, for example, "float32[8,3]", or "float32[N,3]" for a negative dimension.
static void append_type(struct ree_strbuf *out, enum ree_dtype dtype, uint32_t rank,
                        const int64_t *dims) {
    ree_strbuf_printf(out, "%s[", ree_dtype_name(dtype));
    for (uint32_t i = 0; i < rank; i++)
        if (dims[i] < 0)
            ree_strbuf_printf(out, "%sN", i ? "," : "");
        else
            ree_strbuf_printf(out, "%s%lld", i ? "," : "", (long long)dims[i]);
    ree_strbuf_printf(out, "]");
}

enum ree_status ree_wrong_type(const char *what, const char *name, const struct ree_tensor *tensor,
                               enum ree_dtype dtype, uint32_t rank, const int64_t *dims,
                               struct ree_error *err) {
    struct ree_strbuf text;
    ree_strbuf_init(&text);
    append_type(&text, tensor->dtype, tensor->rank, tensor->dims);
    ree_strbuf_printf(&text, ", expected ");
    append_type(&text, dtype, rank, dims);
    const char *types = text.data ? text.data : "?";
    if (name)
        ree_fail(err, REE_INVALID, "%s '%.128s' is %s", what, name, types);
    else
        ree_fail(err, REE_INVALID, "%s is %s", what, types);
    ree_strbuf_finish(&text);
    return REE_INVALID;
}

bool ree_has_type(const struct ree_tensor *tensor, enum ree_dtype dtype, uint32_t rank,
                  const int64_t *dims) {
    return tensor->kind == REE_TENSOR && tensor->dtype == dtype && tensor->rank == rank &&
           (rank == 0 || !memcmp(tensor->dims, dims, rank * sizeof *dims));
}
