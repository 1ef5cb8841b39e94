#include "device/outline.h"

#include "base/status.h"

#include <stdlib.h>
#include <string.h>

const char *ree_outline_label(const struct ree_program *source, uint32_t i) {
    uint32_t node = source->dispatches[i].node;
    const char *name = node < source->n_node_names ? source->node_names[node] : NULL;
    return name ? name : ree_repop_name(source->dispatches[i].op);
}

enum ree_status ree_outline_init(struct ree_outline *outline, const struct ree_program *source,
                                 struct ree_error *err) {
    const size_t n = source->n_dispatches;
    outline->operands = calloc(n + 1, sizeof *outline->operands);
    outline->n_operands = calloc(n + 1, sizeof *outline->n_operands);
    outline->labels = calloc(n + 1, sizeof *outline->labels);
    if (!outline->operands || !outline->n_operands || !outline->labels)
        return ree_fail(err, REE_NO_MEMORY, "no memory for a program");
    outline->n_dispatches = source->n_dispatches;
    outline->n_slots = source->n_slots;
    for (size_t i = 0; i < n; i++) {
        const struct ree_dispatch *dispatch = &source->dispatches[i];
        memcpy(outline->operands[i], dispatch->operands, sizeof *outline->operands);
        outline->n_operands[i] = dispatch->n_operands;
        outline->labels[i] = strdup(ree_outline_label(source, (uint32_t)i));
        if (!outline->labels[i]) return ree_fail(err, REE_NO_MEMORY, "no memory for a program");
    }
    return REE_OK;
}

void ree_outline_finish(struct ree_outline *outline) {
    for (uint32_t i = 0; outline->labels && i < outline->n_dispatches; i++)
        free(outline->labels[i]);
    free(outline->labels);
    free(outline->operands);
    free(outline->n_operands);
    *outline = (struct ree_outline){0};
}

enum ree_status ree_outline_fault(const struct ree_outline *outline, const char *backend,
                                  uint32_t dispatch, uint32_t low, uint32_t high,
                                  struct ree_error *err) {
    if (dispatch == 0) return REE_OK;
    if (dispatch > outline->n_dispatches)
        return ree_fail(err, REE_DEVICE, "%s: the device reported a fault that makes no sense",
                        backend);
    return ree_fail(err, REE_INVALID, "%s: index %lld is out of range",
                    outline->labels[dispatch - 1],
                    (long long)(int64_t)((uint64_t)high << 32 | low));
}
