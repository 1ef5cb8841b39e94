// Describes a segment of a bind as text: its dispatches, and where the memory plan placed the
// intermediate tensors.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "session/memory_plan.h"
#include "base/float_env.h"
#include "base/memory.h"
#include "session/session_internal.h"

static const char *constant_name(const struct ree_bind *b, uint32_t number) {
    for (size_t i = 0; i < b->lower.n_storages; i++) {
        const struct ree_storage *s = b->lower.storages[i];
        if (s->kind == REE_STORAGE_CONST && s->value && s->value->number == number)
            return s->value->name;
    }
    return "";
}

static void append_slot(const struct ree_bind *b, const struct ree_slot *slot,
                        struct ree_strbuf *out) {
    const char *name = NULL;
    switch (slot->kind) {
    case REE_SLOT_ARENA: ree_strbuf_printf(out, "intermediate tensors"); return;
    case REE_SLOT_CONSTANT:
        ree_strbuf_printf(out, "constant '%s'", constant_name(b, slot->index));
        return;
    case REE_SLOT_INPUT:
        name = b->run_inputs ? b->run_inputs->tensors[slot->index].name : NULL;
        ree_strbuf_printf(out, "input '%s'", name ? name : "");
        return;
    case REE_SLOT_LITERALS: ree_strbuf_printf(out, "constants computed while binding"); return;
    case REE_SLOT_SEGMENT: ree_strbuf_printf(out, "results of segment %u", slot->index + 1); return;
    case REE_SLOT_KV_CACHE: ree_strbuf_printf(out, "kv cache %u", slot->index); return;
    case REE_SLOT_OUTPUT:
        ree_strbuf_printf(out, "device tensor of output '%s'",
                          b->session->model->outputs[slot->index].name);
        return;
    }
}

static const char *label_of(const struct ree_bind *b, uint32_t dispatch) {
    uint32_t node = b->lower.dispatches[dispatch].node;
    return b->labels && node < b->lower.graph->n_nodes ? b->labels[node] : "";
}

static void append_program(const struct ree_bind *b, const struct ree_segment *seg,
                           struct ree_strbuf *out) {
    ree_strbuf_printf(out, "slots\n");
    for (uint32_t i = 0; i < seg->n_slots; i++) {
        ree_strbuf_printf(out, "%6" PRIu32 "  ", i);
        append_slot(b, &seg->slots[i], out);
        ree_strbuf_printf(out, "\n");
    }
    ree_strbuf_printf(out, "dispatches: operands are slot+offset:size, in bytes; -> is written\n");
    for (uint32_t i = 0; i < b->lower.n_dispatches; i++) {
        ree_strbuf_printf(out, "%6" PRIu32 "  ", i);
        ree_dispatch_print(&b->lower.dispatches[i], out);
        ree_strbuf_printf(out, "  # %s\n", label_of(b, i));
    }
}

static void append_plan(const struct ree_bind *b, uint64_t size, struct ree_strbuf *out) {
    uint64_t sum = 0;
    ree_strbuf_printf(out, "%12s %12s %6s %6s\n", "offset", "size", "first", "last");
    for (size_t i = 0; i < b->n_planned; i++) {
        const struct ree_memory_plan_tensor *t = &b->planned[i];
        // "end": the tensor is a result, or a later segment may need it.
        char last[16] = "end";
        if (t->last < b->lower.n_dispatches) snprintf(last, sizeof last, "%" PRIu32, t->last);
        ree_strbuf_printf(out, "%12" PRIu64 " %12" PRIu64 " %6" PRIu32 " %6s  %s\n",
                          b->offsets[t->id], t->nbytes, t->first, last, label_of(b, t->first));
        sum +=
            (t->nbytes + REE_MEMORY_PLAN_ALIGN - 1) / REE_MEMORY_PLAN_ALIGN * REE_MEMORY_PLAN_ALIGN;
    }
    ree_strbuf_printf(out, "total %" PRIu64 " bytes, without reuse %" PRIu64 "\n", size,
                      sum + b->watched_size);
}

static enum ree_status hand_over(const struct ree_bind *b, const char *what,
                                 struct ree_strbuf *text, struct ree_error *err) {
    char title[48];
    snprintf(title, sizeof title, b->n_segments > 1 ? "%s, segment %zu" : "%s", what,
             b->n_segments);
    char *s = ree_strbuf_take(text);
    if (!s) return ree_no_memory(err);
    {
        REE_FLOAT_ENV_CALLBACK();
        b->session->options.on_program(b->session->options.user, title, s);
    }
    ree_free(s);
    return REE_OK;
}

enum ree_status ree_segment_describe(const struct ree_bind *b, const struct ree_segment *seg,
                                     uint64_t size, struct ree_error *err) {
    struct ree_strbuf text;
    ree_strbuf_init(&text);
    append_program(b, seg, &text);
    REE_TRY(hand_over(b, "lowered", &text, err));
    ree_strbuf_init(&text);
    append_plan(b, size, &text);
    return hand_over(b, "memory plan", &text, err);
}

static void hand_over_kernel(void *user, const struct ree_kernel *kernel) {
    const struct ree_session_options *options = user;
    REE_FLOAT_ENV_CALLBACK();
    options->on_kernel(options->user, kernel);
}

enum ree_status ree_segment_show_kernels(const struct ree_bind *b, const struct ree_segment *seg,
                                         struct ree_error *err) {
    const struct ree_kernel_sink sink = {hand_over_kernel, &b->session->options};
    struct ree_device *device = b->session->device;
    if (!seg->program) return REE_OK;
    return device->vtable->program_kernels(device, seg->program, &sink, err);
}
