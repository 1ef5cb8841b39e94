// Counts the device memory that a session holds against a limit, and releases what is needed only
// during a run.
#include <stdlib.h>

#include "session/session_internal.h"

enum ree_status ree_session_reserve_memory(struct ree_session *s, uint64_t nbytes, const char *what,
                                           struct ree_error *err) {
    struct ree_memory_budget *m = s->memory;
    if (!m) return REE_OK;
    if (nbytes > m->limit - m->used)
        return ree_fail(err, REE_NO_MEMORY,
                        "%s: %.1f MiB are required in addition to the %.1f MiB in use on %s, whose "
                        "limit is %.1f MiB",
                        what, (double)nbytes / (1 << 20), (double)m->used / (1 << 20),
                        s->device->name, (double)m->limit / (1 << 20));
    m->used += nbytes;
    if (m->used > m->peak) m->peak = m->used;
    return REE_OK;
}

void ree_session_release_memory(struct ree_session *s, uint64_t nbytes) {
    if (s->memory) s->memory->used -= nbytes;
}

uint64_t ree_session_copies_capacity(const struct ree_session *s, uint64_t arena_size) {
    const struct ree_memory_budget *m = s->memory;
    if (!m) return UINT64_MAX;
    if (m->no_copies) return 0;
    if (m->limit == UINT64_MAX) return UINT64_MAX;
    // Leave a sixteenth of the limit for inputs and growing caches.
    uint64_t kept = m->limit / 16,
             more = arena_size > s->arena_size ? arena_size - s->arena_size : 0;
    uint64_t left = m->limit - m->used;
    return left > kept && left - kept > more ? left - kept - more : 0;
}

static void drop_weights(struct ree_session *s) {
    const struct ree_device_vtable *v = s->device->vtable;
    while (s->binds) {
        struct ree_bind *next = s->binds->next;
        ree_bind_destroy(s->binds);
        s->binds = next;
    }
    s->n_binds = 0;
    for (size_t i = 0; i < s->model->n_values; i++) {
        if (s->constants[i]) v->buffer_destroy(s->device, s->constants[i]);
        s->constants[i] = NULL;
    }
    if (!s->is_unloaded) ree_session_release_memory(s, s->weight_bytes);
    ree_session_release_memory(s, s->packed_bytes);
    s->weight_bytes = s->copied_bytes = s->packed_bytes = 0;
    s->is_unloaded = false;
}

bool ree_session_drop_copies(struct ree_session *s) {
    if (!s->packed_bytes) return false;
    drop_weights(s);
    s->memory->no_copies = true;
    return true;
}

void ree_session_unload(struct ree_session *s) {
    const struct ree_device_vtable *v = s->device->vtable;
    if (s->arena) v->buffer_destroy(s->device, s->arena);
    ree_session_release_memory(s, s->arena_size);
    s->arena = NULL;
    s->arena_size = 0;
    if (s->is_unloaded) return;
    // Without copies, the device reads the weights in place: programs may keep referring to them,
    // and there is nothing to release.
    if (s->copied_bytes || s->packed_bytes) {
        drop_weights(s);
        return;
    }
    ree_session_release_memory(s, s->weight_bytes);
    s->is_unloaded = true;
}

enum ree_status ree_session_load(struct ree_session *s, struct ree_error *err) {
    if (!s->is_unloaded) return REE_OK;
    REE_TRY(ree_session_reserve_memory(s, s->weight_bytes, "weights", err));
    s->is_unloaded = false;
    return REE_OK;
}
