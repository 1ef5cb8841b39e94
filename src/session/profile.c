#include "session/profile.h"

#include "base/memory.h"
#include "session/session_internal.h"

#include <stdlib.h>

void ree_session_measure(struct ree_session *session, bool on) {
    session->measure = on;
}

bool ree_session_profile(const struct ree_session *session,
                         void (*each)(void *user, const struct ree_profile_entry *entry),
                         void *user) {
    const struct ree_bind *b = session->binds; // most recently used first
    bool measured = b && b->n_segments > 0;
    for (size_t s = 0; measured && s < b->n_segments; s++)
        measured = !b->segments[s].program || b->segments[s].measured;
    for (size_t s = 0; measured && s < b->n_segments; s++)
        for (uint32_t i = 0; i < b->segments[s].n_entries; i++)
            each(user, &b->segments[s].entries[i]);
    return measured;
}

enum ree_status ree_segment_note(struct ree_bind *b, struct ree_segment *segment,
                                 const struct ree_program *program, struct ree_error *err) {
    segment->entries =
        ree_arena_alloc_array(&b->arena, program->n_dispatches + 1, sizeof *segment->entries);
    if (!segment->entries) return ree_no_memory(err);
    segment->n_entries = program->n_dispatches;
    for (uint32_t i = 0; i < program->n_dispatches; i++) {
        const struct ree_dispatch *dispatch = &program->dispatches[i];
        segment->entries[i] = (struct ree_profile_entry){
            .op = dispatch->op,
            .node = program->node_names[dispatch->node],
            .cost = ree_dispatch_cost(dispatch),
        };
    }
    return REE_OK;
}

void ree_segment_measure(struct ree_bind *b, struct ree_segment *segment) {
    struct ree_device *device = b->session->device;
    segment->measured = false;
    if (!b->session->measure) return;
    double *seconds = ree_alloc_zeroed(segment->n_entries + 1, sizeof *seconds);
    if (!seconds) return;
    segment->measured = device->vtable->program_times(device, segment->program, seconds);
    for (uint32_t i = 0; i < segment->n_entries; i++)
        segment->entries[i].seconds = seconds[i];
    ree_free(seconds);
}
