#include "device/program_info.h"

#include "base/memory.h"
#include "base/status.h"

#include <stdlib.h>
#include <string.h>

const char *ree_program_info_label(const struct ree_program *source, uint32_t i) {
    uint32_t node = source->dispatches[i].node;
    const char *name = node < source->n_node_names ? source->node_names[node] : NULL;
    return name ? name : ree_repop_name(source->dispatches[i].op);
}

enum ree_status ree_program_info_init(struct ree_program_info *info,
                                      const struct ree_program *source, struct ree_error *err) {
    const size_t n = source->n_dispatches;
    info->operands = ree_alloc_zeroed(n + 1, sizeof *info->operands);
    info->n_operands = ree_alloc_zeroed(n + 1, sizeof *info->n_operands);
    info->labels = ree_alloc_zeroed(n + 1, sizeof *info->labels);
    if (!info->operands || !info->n_operands || !info->labels)
        return ree_fail(err, REE_NO_MEMORY, "no memory for a program");
    info->n_dispatches = source->n_dispatches;
    info->n_slots = source->n_slots;
    for (size_t i = 0; i < n; i++) {
        const struct ree_dispatch *dispatch = &source->dispatches[i];
        memcpy(info->operands[i], dispatch->operands, sizeof *info->operands);
        info->n_operands[i] = dispatch->n_operands;
        info->labels[i] = ree_strdup(ree_program_info_label(source, (uint32_t)i));
        if (!info->labels[i]) return ree_fail(err, REE_NO_MEMORY, "no memory for a program");
    }
    return REE_OK;
}

void ree_program_info_finish(struct ree_program_info *info) {
    for (uint32_t i = 0; info->labels && i < info->n_dispatches; i++)
        ree_free(info->labels[i]);
    ree_free(info->labels);
    ree_free(info->operands);
    ree_free(info->n_operands);
    *info = (struct ree_program_info){0};
}

enum ree_status ree_program_info_fault(const struct ree_program_info *info, const char *backend,
                                       uint32_t dispatch, uint32_t low, uint32_t high,
                                       struct ree_error *err) {
    if (dispatch == 0) return REE_OK;
    if (dispatch > info->n_dispatches)
        return ree_fail(err, REE_DEVICE, "%s: the device reported an impossible fault", backend);
    return ree_fail(err, REE_INVALID, "%s: index %lld is out of range", info->labels[dispatch - 1],
                    (long long)(int64_t)((uint64_t)high << 32 | low));
}
