#include "repops/dispatch.h"

#include "base/status.h"

const struct ree_expr *ree_dispatch_expr(const struct ree_dispatch *dispatch) {
    const union ree_params *p = &dispatch->params;
    switch (dispatch->op) {
    case REE_REPOP_MAP: return &p->map.expr;
    case REE_REPOP_MATMUL: return p->matmul.has_epilogue ? &p->matmul.epilogue : NULL;
    case REE_REPOP_CONV: return p->conv.has_epilogue ? &p->conv.epilogue : NULL;
    default: return NULL;
    }
}

enum ree_status ree_dispatch_check_device(const struct ree_dispatch *dispatch, const char *name,
                                          struct ree_error *err) {
    const struct ree_expr *expr = ree_dispatch_expr(dispatch);
    for (uint32_t i = 0; expr && i < expr->n_instrs; i++)
        if (ree_map_op_is_host_only(expr->instrs[i].op))
            return ree_fail(err, REE_UNSUPPORTED,
                            "a function of float64 numbers beyond arithmetic (RepOp %s) runs only "
                            "on the CPU, not on %s",
                            ree_repop_name(dispatch->op), name);
    return REE_OK;
}
