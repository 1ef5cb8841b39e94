#include "session/page_pool.h"

#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "base/memory.h"
#include "session/kv_cache.h"
#include "session/session_internal.h"

static const struct ree_port *port_of(const struct ree_page_pool *pool, size_t i) {
    return &pool->session->model->inputs[pool->kv_caches[i].spec.input];
}

// Products of the dims before the axis and after it.
static void split_dims(const struct ree_page_pool *pool, size_t i, uint32_t *outer,
                       uint32_t *inner) {
    const struct ree_kv_cache *cache = &pool->kv_caches[i];
    *outer = *inner = 1;
    for (uint32_t d = 0; d < port_of(pool, i)->rank; d++)
        if (d != cache->spec.axis)
            *(d < cache->spec.axis ? outer : inner) *= (uint32_t)cache->dims[d];
}

static uint64_t position_bytes(const struct ree_page_pool *pool, size_t i) {
    uint32_t outer, inner;
    split_dims(pool, i, &outer, &inner);
    return (uint64_t)outer * inner * ree_dtype_size(port_of(pool, i)->dtype);
}

static enum ree_status check_observer(const struct ree_session *s, struct ree_error *err) {
    if (!s->observer) return REE_OK;
    return ree_fail(err, REE_UNSUPPORTED, "runs with kv caches in pages cannot be recorded");
}

enum ree_status ree_page_pool_create(struct ree_session *s, uint32_t page_bits,
                                     struct ree_page_pool **out, struct ree_error *err) {
    *out = NULL;
    REE_TRY(check_observer(s, err));
    struct ree_page_pool *pool = ree_alloc_zeroed(1, sizeof *pool);
    if (!pool) return ree_no_memory(err);
    pool->session = s;
    pool->page_bits = page_bits;
    pool->kv_caches = ree_alloc_zeroed(s->n_kv_caches + 1, sizeof *pool->kv_caches);
    if (!pool->kv_caches) {
        ree_free(pool);
        return ree_no_memory(err);
    }
    for (size_t i = 0; i < s->n_kv_caches; i++) {
        struct ree_kv_cache *cache = &pool->kv_caches[i];
        cache->spec = s->cache_slots[0][i].spec;
        memcpy(cache->dims, s->cache_slots[0][i].dims, sizeof cache->dims);
        cache->dims[cache->spec.batch_axis] = 1;
        cache->dims[cache->spec.axis] = 0;
    }
    *out = pool;
    return REE_OK;
}

static void drop_copies(struct ree_page_pool *pool) {
    struct ree_device *device = pool->session->device;
    struct ree_device_program **programs = &pool->copies[0][0];
    for (uint32_t i = 0; i < 2 * REE_PAGE_PROGRAMS; i++) {
        if (programs[i]) device->vtable->program_destroy(device, programs[i]);
        programs[i] = NULL;
    }
    if (pool->index) device->vtable->buffer_destroy(device, pool->index);
    if (pool->moved) device->vtable->buffer_destroy(device, pool->moved);
    pool->index = pool->moved = NULL;
}

void ree_page_pool_destroy(struct ree_page_pool *pool) {
    if (!pool) return;
    struct ree_session *s = pool->session;
    drop_copies(pool);
    for (size_t i = 0; i < s->n_kv_caches; i++) {
        struct ree_kv_cache *cache = &pool->kv_caches[i];
        if (!cache->buffer) continue;
        s->device->vtable->buffer_destroy(s->device, cache->buffer);
        ree_session_release_memory(s, position_bytes(pool, i) * (uint64_t)cache->capacity + 4);
    }
    ree_free(pool->kv_caches);
    ree_free(pool);
}

size_t ree_page_pool_n_pages(const struct ree_page_pool *pool) {
    int64_t least = INT64_MAX;
    for (size_t i = 0; i < pool->session->n_kv_caches; i++)
        if (pool->kv_caches[i].capacity < least) least = pool->kv_caches[i].capacity;
    return least == INT64_MAX ? 0 : (size_t)least >> pool->page_bits;
}

uint64_t ree_page_pool_page_bytes(const struct ree_page_pool *pool) {
    uint64_t n = 0;
    for (size_t i = 0; i < pool->session->n_kv_caches; i++)
        n += position_bytes(pool, i);
    return n << pool->page_bits;
}

// Makes the pool's kv caches those of the session; returns the previous ones.
static struct ree_kv_cache *enter(struct ree_page_pool *pool) {
    struct ree_kv_cache *before = pool->session->kv_caches;
    pool->session->kv_caches = pool->kv_caches;
    return before;
}

enum ree_status ree_page_pool_reserve(struct ree_page_pool *pool, size_t n_pages,
                                      struct ree_error *err) {
    struct ree_session *s = pool->session;
    if (n_pages <= ree_page_pool_n_pages(pool)) return REE_OK;
    drop_copies(pool);
    struct ree_kv_cache *before = enter(pool);
    enum ree_status status =
        ree_session_reserve_kv_caches(s, (int64_t)n_pages << pool->page_bits, err);
    s->kv_caches = before;
    for (size_t i = 0; i < s->n_kv_caches; i++)
        pool->kv_caches[i].dims[pool->kv_caches[i].spec.axis] = pool->kv_caches[i].capacity;
    return status;
}

// Copying pages, or single positions

static uint32_t unit_bits(const struct ree_page_pool *pool, bool of_pages) {
    return of_pages ? pool->page_bits : 0;
}

// Describes two dispatches that copy n units (pages or positions) within kv cache i. d[0] gathers
// the units whose numbers are at the beginning of the buffer `index` into the buffer `moved`. d[1]
// scatters `moved` to the units whose numbers begin at byte 64 * REE_PAGE_PROGRAMS of `index`.
static void describe_copy(const struct ree_page_pool *pool, size_t i, bool of_pages, uint32_t n,
                          struct ree_dispatch *d) {
    uint32_t outer, inner;
    split_dims(pool, i, &outer, &inner);
    const uint32_t elem_size = (uint32_t)ree_dtype_size(port_of(pool, i)->dtype);
    const uint32_t capacity = (uint32_t)pool->kv_caches[i].capacity;
    const uint32_t bits = unit_bits(pool, of_pages), unit = inner << bits;
    const uint32_t n_elements = outer * n * unit, dims[3] = {outer, n, unit};
    const int32_t strides[3] = {(int32_t)(capacity * inner), 0, 1};
    const uint64_t cache_bytes = (uint64_t)outer * capacity * inner * elem_size;
    const struct ree_operand cache = {(uint32_t)i, 0, cache_bytes};
    const uint32_t index_slot = (uint32_t)pool->session->n_kv_caches;
    const struct ree_operand moved = {index_slot + 1, 0, (uint64_t)n_elements * elem_size};
    memset(d, 0, 2 * sizeof *d);
    d[0].op = REE_REPOP_GATHER;
    d[0].n_operands = 3;
    d[0].n_outputs = 1;
    d[0].operands[0] = cache;
    d[0].operands[1] = (struct ree_operand){index_slot, 0, (uint64_t)n * 4};
    d[0].operands[2] = moved;
    struct ree_gather_params *g = &d[0].params.gather;
    *g = (struct ree_gather_params){.elem_size = elem_size,
                                    .index_dtype = REE_I32,
                                    .rank = 3,
                                    .n_elements = n_elements,
                                    .n_components = 1};
    g->index_strides[1] = 1;
    g->component_sizes[0] = capacity >> bits;
    g->component_strides[0] = (int32_t)unit;
    d[1].op = REE_REPOP_SCATTER;
    d[1].n_operands = 3;
    d[1].operands[0] = cache;
    // A tensor starts at a multiple of 64 bytes (repop.h).
    d[1].operands[1] = (struct ree_operand){index_slot, 64 * REE_PAGE_PROGRAMS, (uint64_t)n * 4};
    d[1].operands[2] = moved;
    struct ree_scatter_params *s = &d[1].params.scatter;
    *s = (struct ree_scatter_params){.kind = REE_SCATTER_SET,
                                     .dtype = port_of(pool, i)->dtype,
                                     .index_dtype = REE_I32,
                                     .rank = 3,
                                     .n_vectors = n_elements,
                                     .n_steps = 1,
                                     .n_components = 1};
    s->index_strides[1] = 1;
    s->component_sizes[0] = g->component_sizes[0];
    s->component_strides[0] = g->component_strides[0];
    s->update_strides[0] = (int32_t)(n * unit);
    s->update_strides[1] = (int32_t)unit;
    s->update_strides[2] = 1;
    for (uint32_t k = 0; k < 3; k++) {
        g->dims[k] = s->dims[k] = dims[k];
        g->data_strides[k] = s->data_strides[k] = strides[k];
    }
}

static enum ree_status make_buffers(struct ree_page_pool *pool, struct ree_error *err) {
    struct ree_device *device = pool->session->device;
    uint64_t most = 0;
    for (size_t i = 0; i < pool->session->n_kv_caches; i++) {
        uint64_t bytes = position_bytes(pool, i) << pool->page_bits << (REE_PAGE_PROGRAMS - 1);
        if (bytes > most) most = bytes;
    }
    if (!pool->index)
        REE_TRY(
            device->vtable->buffer_create(device, 2 * 64 * REE_PAGE_PROGRAMS, &pool->index, err));
    if (pool->moved) return REE_OK;
    return device->vtable->buffer_create(device, most + 4, &pool->moved, err);
}

static enum ree_status make_copy(struct ree_page_pool *pool, bool of_pages, uint32_t size,
                                 struct ree_error *err) {
    struct ree_session *s = pool->session;
    const size_t n = s->n_kv_caches;
    const char *name = "copying pages of caches";
    REE_TRY(make_buffers(pool, err));
    struct ree_dispatch *d = ree_alloc_zeroed(2 * n + 1, sizeof *d);
    struct ree_device_buffer **none = ree_alloc_zeroed(n + 2, sizeof(struct ree_device_buffer *));
    enum ree_status status = d && none ? REE_OK : ree_no_memory(err);
    for (size_t i = 0; status == REE_OK && i < n; i++)
        describe_copy(pool, i, of_pages, 1u << size, &d[2 * i]);
    const struct ree_program program = {.dispatches = d,
                                        .n_dispatches = (uint32_t)(2 * n),
                                        .n_slots = (uint32_t)n + 2,
                                        .node_names = &name,
                                        .n_node_names = 1};
    if (status == REE_OK)
        status = s->device->vtable->program_create(s->device, &program, none, NULL,
                                                   &pool->copies[of_pages][size], err);
    ree_free(d);
    ree_free(none);
    return status;
}

static enum ree_status copy_some(struct ree_page_pool *pool, bool of_pages, uint32_t size,
                                 const int32_t *from, const int32_t *to,
                                 struct ree_device_buffer **slots, struct ree_error *err) {
    struct ree_session *s = pool->session;
    const struct ree_device_vtable *v = s->device->vtable;
    if (!pool->copies[of_pages][size]) REE_TRY(make_copy(pool, of_pages, size, err));
    const size_t nbytes = sizeof *from << size;
    for (size_t i = 0; i < s->n_kv_caches; i++)
        slots[i] = pool->kv_caches[i].buffer;
    slots[s->n_kv_caches] = pool->index;
    slots[s->n_kv_caches + 1] = pool->moved;
    REE_TRY(v->buffer_write(s->device, pool->index, 0, from, nbytes, err));
    REE_TRY(v->buffer_write(s->device, pool->index, 64 * REE_PAGE_PROGRAMS, to, nbytes, err));
    return v->program_run(s->device, pool->copies[of_pages][size], slots, NULL, err);
}

static enum ree_status copy_units(struct ree_page_pool *pool, bool of_pages, const int32_t *from,
                                  const int32_t *to, size_t n, struct ree_error *err) {
    struct ree_device_buffer **slots =
        ree_alloc_zeroed(pool->session->n_kv_caches + 2, sizeof(struct ree_device_buffer *));
    if (!slots) return ree_no_memory(err);
    enum ree_status status = REE_OK;
    for (size_t i = 0; i < n && status == REE_OK;) {
        uint32_t size = 0;
        while (size + 1 < REE_PAGE_PROGRAMS && (size_t)2 << size <= n - i)
            size++;
        status = copy_some(pool, of_pages, size, from + i, to + i, slots, err);
        i += (size_t)1 << size;
    }
    ree_free(slots);
    return status;
}

enum ree_status ree_page_pool_copy(struct ree_page_pool *pool, const int32_t *from,
                                   const int32_t *to, size_t n, struct ree_error *err) {
    return copy_units(pool, true, from, to, n, err);
}

enum ree_status ree_page_pool_clear(struct ree_page_pool *pool, const int32_t *positions, size_t n,
                                    struct ree_error *err) {
    // The source of all copies is position 0, which is in page 0 and holds zeros.
    int32_t *zeros = ree_alloc_zeroed(n + 1, sizeof *zeros);
    if (!zeros) return ree_no_memory(err);
    enum ree_status status = copy_units(pool, false, zeros, positions, n, err);
    ree_free(zeros);
    return status;
}

// Running

static struct ree_tensor numbers(const char *name, const int32_t *data, size_t batch, size_t n) {
    struct ree_tensor t = {.kind = REE_TENSOR,
                           .dtype = REE_I32,
                           .rank = 2,
                           .dims = {(int64_t)batch, (int64_t)n},
                           .nbytes = batch * n * sizeof *data};
    t.name = (char *)(uintptr_t)name;
    t.data = (int32_t *)(uintptr_t)data;
    return t;
}

static struct ree_kv_cache *begin(struct ree_page_pool *pool, const struct ree_page_run *run) {
    struct ree_session *s = pool->session;
    for (size_t i = 0; i < s->n_kv_caches; i++) {
        struct ree_kv_cache *cache = &pool->kv_caches[i];
        cache->dims[cache->spec.batch_axis] = (int64_t)run->batch;
        cache->dims[cache->spec.axis] = run->filled;
    }
    pool->tensors[0] = numbers("page table", run->table, run->batch, run->n_pages);
    pool->tensors[1] = numbers("new positions", run->targets, run->batch, run->length);
    s->pages = pool;
    return enter(pool);
}

static void end(struct ree_page_pool *pool, struct ree_kv_cache *before) {
    struct ree_session *s = pool->session;
    s->kv_caches = before;
    s->pages = NULL;
    for (size_t i = 0; i < s->n_kv_caches; i++) {
        struct ree_kv_cache *cache = &pool->kv_caches[i];
        cache->dims[cache->spec.batch_axis] = 1;
        cache->dims[cache->spec.axis] = cache->capacity;
    }
}

enum ree_status ree_page_pool_bind(struct ree_page_pool *pool, const struct ree_page_run *run,
                                   const struct ree_tensor *inputs, size_t n_inputs,
                                   bool *out_rewrites, bool *out_replaces, struct ree_error *err) {
    struct ree_kv_cache *before = begin(pool, run);
    enum ree_status status = ree_session_bind(pool->session, inputs, n_inputs, err);
    if (status == REE_OK) {
        *out_rewrites = pool->session->binds->rewrites_pages;
        *out_replaces = pool->session->binds->replaces_pages;
    }
    end(pool, before);
    return status;
}

enum ree_status ree_page_pool_run(struct ree_page_pool *pool, const struct ree_page_run *run,
                                  const struct ree_tensor *inputs, size_t n_inputs,
                                  struct ree_tensor *outputs, struct ree_error *err) {
    REE_TRY(check_observer(pool->session, err));
    struct ree_kv_cache *before = begin(pool, run);
    enum ree_status status = ree_session_run(pool->session, inputs, n_inputs, outputs, err);
    if (status == REE_OK) {
        pool->rewrites_pages = pool->session->binds->rewrites_pages;
        pool->n_page_copies = pool->session->binds->n_page_copies;
    }
    end(pool, before);
    return status;
}

void ree_page_pool_last_run(const struct ree_page_pool *pool, uint32_t *out_n_copies,
                            bool *out_rewrites) {
    *out_n_copies = pool->n_page_copies;
    *out_rewrites = pool->rewrites_pages;
}
