// The steps of attention for one unit (NUMERICS.md, "Attention"):
//
//     t = mask(chunk-dot(q, k) * scale); m = max t; e = exp(t - m); z = chunk-sum(e); w = e / z;
//     y = chunk-dot(w, v)
#include "device/cpu/attention.h"
#include "repops/scalar/ops.h"

#include <math.h>

static uint32_t min_u32(uint32_t a, uint32_t b) {
    return a < b ? a : b;
}
static size_t round_up(size_t n) {
    return (n + 15) / 16 * 16;
}

// Memory

static uint32_t count_chunks(uint32_t n_keys) {
    return (n_keys + REE_CHUNK - 1) / REE_CHUNK;
}

size_t ree_attend_unit_floats(const struct ree_attend *a, uint32_t n_rows, uint32_t n_keys,
                              uint32_t n_y) {
    size_t rows = n_rows;
    return 2 * round_up(rows * a->p->head_dim) + rows * round_up(n_keys) +
           3 * round_up(rows * count_chunks(n_keys)) + 2 * round_up(rows) +
           n_y * round_up(rows * a->p->v_head_dim);
}

static float *take(float **memory, size_t floats) {
    float *taken = *memory;
    *memory += round_up(floats);
    return taken;
}

// Returns the height of panels that divide the rows as evenly as possible.
static uint32_t panel_rows(const struct ree_attend *a, uint32_t n_rows) {
    uint32_t n_panels = (n_rows + a->tiles->rows - 1) / a->tiles->rows;
    return (n_rows + n_panels - 1) / n_panels;
}

static bool streams(bool adjacent, const struct ree_attend_unit *u) {
    return adjacent && u->n_rows <= REE_ATTEND_STREAM_ROWS;
}

// Packs rows (n_rows, k) with row stride `pitch` into panels of `height` rows each: (k, rows).
static void pack_rows(const struct ree_attend *a, const float *rows, size_t pitch, uint32_t n_rows,
                      uint32_t k, uint32_t height, float *out) {
    for (uint32_t i = 0; i < n_rows; i += height) {
        uint32_t n = min_u32(n_rows - i, height);
        a->tiles->pack(rows + i * pitch, (int64_t)pitch, 1, n, k, out + (size_t)i * k, n);
    }
}

void ree_attend_begin(const struct ree_attend *a, struct ree_attend_unit *u, uint32_t n_y,
                      float *memory) {
    const struct ree_attention_params *p = a->p;
    size_t rows = u->n_rows, head_dim = p->head_dim;
    u->q = take(&memory, rows * head_dim);
    u->packed_q = take(&memory, rows * head_dim);
    u->scores = take(&memory, rows * round_up(u->queries.n_keys));
    u->max = take(&memory, rows * u->n_chunks);
    u->sum = take(&memory, rows * u->n_chunks);
    u->seen = (ree_any_u32 *)take(&memory, rows * u->n_chunks);
    u->row_max = take(&memory, rows);
    u->row_sum = take(&memory, rows);
    u->y = take(&memory, n_y * round_up(rows * p->v_head_dim));

    const int32_t *s = p->q_strides;
    for (uint32_t r = 0; r < rows; r++) {
        int64_t head = u->head + r / u->queries.count, query = u->queries.first;
        query += r % u->queries.count;
        const float *from = a->q + u->batch * (int64_t)s[0] + head * s[1] + query * s[2];
        a->expr->loads[REE_CPU_LOAD_B32](head_dim, from, s[3], u->q + r * head_dim);
    }
    if (streams(a->k_adjacent, u)) return;
    for (uint32_t d = 0; d < head_dim; d += REE_CHUNK)
        pack_rows(a, u->q + d, head_dim, u->n_rows, min_u32(p->head_dim - d, REE_CHUNK),
                  panel_rows(a, u->n_rows), u->packed_q + rows * d);
}

// Returns the size of a thread's `work` (struct work): packed weights, a packed panel of keys or
// values, two blocks of sums, and a block of one repeated number.
size_t ree_attend_work_floats(const struct ree_attend *a, uint32_t n_rows) {
    size_t sums = 2 * round_up((size_t)REE_ATTEND_STREAM_ROWS * a->p->v_head_dim);
    size_t panel = (size_t)REE_CHUNK * a->tiles->cols;
    return (size_t)n_rows * REE_CHUNK + panel + sums + REE_CPU_ROWS_BLOCK;
}

struct work {
    float *rows, *panel, *sums, *part, *block;
};

static struct work cut_work(const struct ree_attend *a, const struct ree_attend_unit *u,
                            float *memory) {
    struct work w;
    w.panel = take(&memory, (size_t)REE_CHUNK * a->tiles->cols);
    w.sums = take(&memory, (size_t)REE_ATTEND_STREAM_ROWS * a->p->v_head_dim);
    w.part = take(&memory, (size_t)REE_ATTEND_STREAM_ROWS * a->p->v_head_dim);
    w.block = take(&memory, REE_CPU_ROWS_BLOCK);
    w.rows = take(&memory, (size_t)u->n_rows * REE_CHUNK);
    return w;
}

// A chunk's keys and scores. `pitch` is n rounded up to a multiple of 16; the scores beyond n are
// -inf, later +0.
struct chunk {
    uint32_t number, key, n, pitch;
    float *t; // (n_rows, pitch)
};

static struct chunk find_chunk(const struct ree_attend_unit *u, uint32_t number) {
    struct chunk c = {.number = number, .key = u->queries.key + number * REE_CHUNK};
    c.n = min_u32(u->queries.n_keys - number * REE_CHUNK, REE_CHUNK);
    c.pitch = (uint32_t)round_up(c.n);
    c.t = u->scores + (size_t)number * REE_CHUNK * u->n_rows;
    return c;
}

static const char *row_of(const struct ree_attend *a, const char *data,
                          const struct ree_attend_unit *u, const int32_t *strides, uint32_t dtype,
                          uint32_t key) {
    int64_t row = key;
    if (a->pages) {
        uint32_t bits = a->p->page_bits;
        int64_t page = a->pages[u->batch * (int64_t)a->p->pages_stride + (key >> bits)];
        row = page << bits | (key & ((1u << bits) - 1));
    }
    int64_t at = u->batch * (int64_t)strides[0] + u->kv_head * (int64_t)strides[1] +
                 row * (int64_t)strides[2];
    return data + at * (int64_t)ree_dtype_size((enum ree_dtype)dtype);
}

// Returns how many keys from `key` on, at most n, are adjacent in memory. Keys of the same page are
// adjacent, and so are keys of consecutive pages of the pool.
static uint32_t run_of_keys(const struct ree_attend *a, const struct ree_attend_unit *u,
                            uint32_t key, uint32_t n) {
    if (!a->pages) return n;
    const uint32_t bits = a->p->page_bits, size = 1u << bits;
    const int32_t *pages = a->pages + u->batch * (int64_t)a->p->pages_stride;
    uint32_t run = size - (key & (size - 1));
    while (run < n && pages[(key + run) >> bits] == pages[(key + run - 1) >> bits] + 1)
        run += size;
    return min_u32(n, run);
}

// Scores

static int64_t read_position(const void *data, uint32_t dtype, int64_t i) {
    int64_t n = dtype == REE_I64 ? ((const int64_t *)data)[i] : ((const int32_t *)data)[i];
    return n < -REE_ATTENTION_FAR ? -REE_ATTENTION_FAR
                                  : (n > REE_ATTENTION_FAR ? REE_ATTENTION_FAR : n);
}

// Computes the keys [*out_begin, *out_end) of the chunk, counted from its first key, that one query
// may see according to its position and the number of keys.
static void visible(const struct ree_attend *a, const struct ree_attend_unit *u,
                    const struct chunk *c, uint32_t query, uint32_t *out_begin, uint32_t *out_end) {
    const struct ree_attention_params *p = a->p;
    int64_t position = (int64_t)p->start + query, begin = 0, end = (int64_t)c->key + c->n;
    if (a->starts)
        position += read_position(a->starts, p->starts_dtype, u->batch * (int64_t)p->starts_stride);
    if (p->left >= 0) begin = position - p->left;
    if (p->right >= 0 && position + p->right + 1 < end) end = position + p->right + 1;
    if (a->n_keys) {
        int64_t n = read_position(a->n_keys, p->n_keys_dtype, u->batch * (int64_t)p->n_keys_stride);
        if (n < end) end = n;
    }
    begin = begin > c->key ? begin - c->key : 0;
    end = end > c->key ? end - c->key : 0;
    *out_end = (uint32_t)end;
    *out_begin = begin < end ? (uint32_t)begin : (uint32_t)end;
}

// The keys [begin, end) of a chunk, counted from its first: a row sees none outside.
struct seen {
    uint32_t begin, end;
};

static struct seen seen_by(const struct ree_attend_unit *u, const struct chunk *c, uint32_t r) {
    uint32_t both = u->seen[(size_t)c->number * u->n_rows + r];
    return (struct seen){both & 0xFFFF, both >> 16};
}

// Returns the keys of all vectors that contain a key of s. The chunk has memory for them.
static struct seen whole_vectors(struct seen s) {
    return (struct seen){s.begin / REE_CPU_LANES * REE_CPU_LANES, (uint32_t)round_up(s.end)};
}

// Returns the number of keys, from the chunk's first, after which no row sees one.
static uint32_t count_seen(const struct ree_attend_unit *u, const struct chunk *c) {
    uint32_t n = 0;
    for (uint32_t r = 0; r < u->n_rows; r++) {
        uint32_t end = seen_by(u, c, r).end;
        if (end > n) n = end;
    }
    return n;
}

// Addresses of the operands `bias` and `allowed` for row r and the chunk's first key. NULL if
// absent.
struct mask {
    const float *bias;
    const uint8_t *allowed;
    int64_t bias_stride, allowed_stride;
};

static struct mask mask_of(const struct ree_attend *a, const struct ree_attend_unit *u,
                           const struct chunk *c, uint32_t r) {
    const struct ree_attention_params *p = a->p;
    const int64_t at[4] = {u->batch, u->head + r / u->queries.count,
                           u->queries.first + r % u->queries.count, c->key};
    int64_t bias = 0, allowed = 0;
    for (uint32_t i = 0; i < 4; i++) {
        bias += at[i] * p->bias_strides[i];
        allowed += at[i] * p->allowed_strides[i];
    }
    return (struct mask){.bias = a->bias ? a->bias + bias : NULL,
                         .allowed = a->allowed ? a->allowed + allowed : NULL,
                         .bias_stride = p->bias_strides[3],
                         .allowed_stride = p->allowed_strides[3]};
}

static bool is_masked(const struct mask *m, uint32_t j) {
    return (m->allowed && !m->allowed[j * m->allowed_stride]) ||
           (m->bias && m->bias[j * m->bias_stride] == -INFINITY);
}

// Finds what each row sees: without the keys at both ends that positions or masks exclude.
static void find_seen(const struct ree_attend *a, const struct ree_attend_unit *u,
                      const struct chunk *c) {
    for (uint32_t r = 0; r < u->n_rows; r++) {
        struct seen s;
        visible(a, u, c, u->queries.first + r % u->queries.count, &s.begin, &s.end);
        if (a->bias || a->allowed) {
            struct mask m = mask_of(a, u, c, r);
            while (s.end > s.begin && is_masked(&m, s.end - 1))
                s.end--;
            while (s.begin < s.end && is_masked(&m, s.begin))
                s.begin++;
        }
        if (s.begin == s.end) s = (struct seen){0, 0};
        u->seen[(size_t)c->number * u->n_rows + r] = s.end << 16 | s.begin;
    }
}

// Number of keys that are read in place and processed together, while the next ones are prefetched.
// The lanes of a vector read the elements of several keys in parallel, a pattern that no processor
// prefetches by itself.
#define STREAM_KEYS 32

// t = chunk-dot(q, k) for the first n keys of the chunk.
static void dot_keys(const struct ree_attend *a, const struct ree_attend_unit *u,
                     const struct chunk *c, uint32_t n, const struct work *w) {
    const struct ree_attention_params *p = a->p;
    const struct ree_tiles *tiles = a->tiles;
    uint32_t head_dim = p->head_dim;
    if (streams(a->k_adjacent, u)) {
        enum ree_tile_type type = ree_tile_type_of((enum ree_dtype)p->k_dtype);
        int64_t row = p->k_strides[2] * (int64_t)ree_dtype_size((enum ree_dtype)p->k_dtype);
        size_t row_size = head_dim * ree_dtype_size((enum ree_dtype)p->k_dtype);
        const char *at = row_of(a, a->k, u, p->k_strides, p->k_dtype, c->key), *next_at;
        for (uint32_t j = 0, width; j < n; j += width, at = next_at) {
            width = run_of_keys(a, u, c->key + j, min_u32(n - j, STREAM_KEYS));
            uint32_t next = min_u32(n - j - width, width);
            next_at = next ? row_of(a, a->k, u, p->k_strides, p->k_dtype, c->key + j + width) : at;
            for (uint32_t i = 0; i < next; i++)
                for (size_t b = 0; b < row_size; b += 64)
                    __builtin_prefetch(next_at + i * row + (int64_t)b);
            for (uint32_t r = 0; r < u->n_rows; r += REE_STREAM_MAX_ROWS)
                tiles->stream_by_cols[type](min_u32(u->n_rows - r, REE_STREAM_MAX_ROWS), width,
                                            head_dim, u->q + (size_t)r * head_dim, head_dim, 1, at,
                                            p->k_strides[2], c->t + (size_t)r * c->pitch + j,
                                            c->pitch);
        }
        return;
    }
    struct ree_cpu_operand f = {.dtype = (enum ree_dtype)p->k_dtype,
                                .stride_vector = p->k_strides[2],
                                .stride_k = p->k_strides[3]};
    uint32_t height = panel_rows(a, u->n_rows);
    if (head_dim == 0) memset(c->t, 0, (size_t)u->n_rows * c->pitch * sizeof(float));
    for (uint32_t j = 0, width; j < n; j += width) {
        width = run_of_keys(a, u, c->key + j, min_u32(n - j, tiles->cols));
        uint32_t vecs = (width + tiles->lanes - 1) / tiles->lanes;
        f.data = row_of(a, a->k, u, p->k_strides, p->k_dtype, c->key + j);
        for (uint32_t d = 0; d < head_dim; d += REE_CHUNK) {
            uint32_t n_terms = min_u32(head_dim - d, REE_CHUNK);
            uint32_t flags =
                (d == 0 ? REE_TILE_FIRST : 0) | (d + n_terms == head_dim ? REE_TILE_LAST : 0);
            ree_cpu_operand_pack(tiles, &f, head_dim, 0, width, d, n_terms, w->panel, tiles->cols);
            for (uint32_t i = 0; i < u->n_rows; i += height)
                tiles->tile[min_u32(u->n_rows - i, height) - 1][vecs - 1](
                    n_terms, u->packed_q + (size_t)u->n_rows * d + (size_t)i * n_terms, w->panel,
                    c->t + (size_t)i * c->pitch + j, c->pitch, width, flags);
        }
    }
}

static void fill(float *out, uint32_t begin, uint32_t end, float value) {
    for (uint32_t i = begin; i < end; i++)
        out[i] = value;
}

// Applies scale and softcap to the scores t of keys s.
static void scale_row(const struct ree_attend *a, struct seen s, float *t, const struct work *w) {
    const struct ree_attention_params *p = a->p;
    uint32_t n = s.end - s.begin;
    t += s.begin;
    if (p->scale != 1) ree_cpu_rows_op(a->expr, REE_MAP_mul_f32, 1, n, t, &p->scale, t, w->block);
    if (p->softcap == 0) return;
    ree_cpu_rows_op(a->expr, REE_MAP_div_f32, 1, n, t, &p->softcap, t, w->block);
    a->expr->ops[REE_MAP_tanh_f32](n, t, NULL, NULL, t);
    ree_cpu_rows_op(a->expr, REE_MAP_mul_f32, 1, n, t, &p->softcap, t, w->block);
}

// Applies the operands `bias` and `allowed` to the scores t that row r sees.
static void mask_row(const struct ree_attend *a, const struct ree_attend_unit *u,
                     const struct chunk *c, uint32_t r, struct seen s, float *t) {
    const struct mask m = mask_of(a, u, c, r);
    if (m.bias)
        for (uint32_t j = s.begin; j < s.end; j++) {
            float b = m.bias[j * m.bias_stride];
            t[j] = b == -INFINITY ? -INFINITY : t[j] + b;
        }
    if (m.allowed)
        for (uint32_t j = s.begin; j < s.end; j++)
            t[j] = m.allowed[j * m.allowed_stride] ? t[j] : -INFINITY;
}

void ree_attend_scores(const struct ree_attend *a, const struct ree_attend_unit *u, uint32_t chunk,
                       float *work) {
    struct chunk c = find_chunk(u, chunk);
    struct work w = cut_work(a, u, work);
    find_seen(a, u, &c);
    uint32_t used = count_seen(u, &c);
    if (used > 0) dot_keys(a, u, &c, used, &w);
    for (uint32_t r = 0; r < u->n_rows; r++) {
        float *t = c.t + (size_t)r * c.pitch, max = -INFINITY;
        struct seen s = seen_by(u, &c, r);
        if (s.end > 0) {
            scale_row(a, whole_vectors(s), t, &w);
            if (a->bias || a->allowed) mask_row(a, u, &c, r, s, t);
            max = ree_float(a->expr->max_f32(s.end - s.begin, t + s.begin));
        }
        fill(t, 0, s.begin, -INFINITY);
        fill(t, s.end, c.pitch, -INFINITY);
        u->max[(size_t)chunk * u->n_rows + r] = max;
    }
}

// The softmax

static float sink_of(const struct ree_attend *a, const struct ree_attend_unit *u, uint32_t r) {
    const int32_t *s = a->p->sink_strides;
    int64_t head = u->head + r / u->queries.count, query = u->queries.first;
    query += r % u->queries.count;
    return a->sink[u->batch * (int64_t)s[0] + head * s[1] + query * s[2]];
}

void ree_attend_join_max(const struct ree_attend *a, const struct ree_attend_unit *u) {
    for (uint32_t r = 0; r < u->n_rows; r++) {
        uint32_t max = REE_INF | REE_SIGN;
        for (uint32_t c = 0; c < u->n_chunks; c++)
            max = ree_op_max_f32(max, ree_bits(u->max[(size_t)c * u->n_rows + r]));
        if (a->sink) max = ree_op_max_f32(max, ree_bits(sink_of(a, u, r)));
        u->row_max[r] = ree_float(max);
    }
}

// Returns m of row r, the number that is subtracted from its scores: their maximum, but 0 if all
// scores are -inf and zero_empty is set.
static float shift_of(const struct ree_attend *a, const struct ree_attend_unit *u, uint32_t r) {
    return a->p->zero_empty && u->row_max[r] == -INFINITY ? 0 : u->row_max[r];
}

// Sums of n terms to compute together, collected until there is one for each lane of a vector.
struct pending {
    const float *x[REE_CPU_LANES];
    float *out[REE_CPU_LANES];
    uint32_t count, n;
};

static void sum_pending(const struct ree_attend *a, struct pending *s) {
    float sums[REE_CPU_LANES];
    if (s->count == 0) return;
    for (uint32_t l = s->count; l < REE_CPU_LANES; l++)
        s->x[l] = s->x[0];
    a->reduce->lanes[REE_REDUCE_SUM](s->x, s->n, sums);
    for (uint32_t l = 0; l < s->count; l++)
        *s->out[l] = sums[l];
    s->count = 0;
}

static void add_pending(const struct ree_attend *a, struct pending *s, const float *x, uint32_t n,
                        float *out) {
    if (s->count == REE_CPU_LANES || (s->count && s->n != n)) sum_pending(a, s);
    s->n = n;
    s->x[s->count] = x;
    s->out[s->count++] = out;
}

// Replaces row r of a chunk's scores t by exp(t - m), with +0 for the keys that the query does not
// see. If m is -inf or NaN, the definition gives NaN for them; but then z is 0 or NaN here, and all
// weights become NaN all the same.
static void exp_row(const struct ree_attend *a, const struct ree_attend_unit *u,
                    const struct chunk *c, uint32_t r, const struct work *w) {
    float *t = c->t + (size_t)r * c->pitch, m = shift_of(a, u, r);
    struct seen s = whole_vectors(seen_by(u, c, r));
    uint32_t n = s.end - s.begin;
    fill(t, 0, s.begin, 0);
    fill(t, s.end, c->pitch, 0);
    t += s.begin;
    ree_cpu_rows_op(a->expr, REE_MAP_sub_f32, 1, n, t, &m, t, w->block);
    a->expr->ops[REE_MAP_exp_f32](n, t, NULL, NULL, t);
}

void ree_attend_weights(const struct ree_attend *a, const struct ree_attend_unit *u, uint32_t chunk,
                        uint32_t n_chunks, float *work) {
    struct work w = cut_work(a, u, work);
    struct pending pending = {.count = 0};
    for (uint32_t i = chunk; i < chunk + n_chunks; i++) {
        struct chunk c = find_chunk(u, i);
        for (uint32_t r = 0; r < u->n_rows; r++) {
            exp_row(a, u, &c, r, &w);
            add_pending(a, &pending, c.t + (size_t)r * c.pitch, c.pitch,
                        &u->sum[(size_t)i * u->n_rows + r]);
        }
    }
    sum_pending(a, &pending);
}

void ree_attend_join_sums(const struct ree_attend *a, const struct ree_attend_unit *u) {
    for (uint32_t r = 0; r < u->n_rows; r++) {
        float total = 0;
        for (uint32_t c = 0; c < u->n_chunks; c++)
            total += u->sum[(size_t)c * u->n_rows + r];
        if (a->sink) {
            uint32_t last = ree_op_sub_f32(ree_bits(sink_of(a, u, r)), ree_bits(shift_of(a, u, r)));
            total += ree_float(ree_op_exp_f32(last));
        }
        u->row_sum[r] = a->p->zero_empty && u->row_max[r] == -INFINITY ? 1 : total;
    }
}

// Values

// out = chunk-dot(w, v) for all rows of the unit, at most REE_STREAM_MAX_ROWS at a time. v is read
// in place.
static void stream_values(const struct ree_attend *a, const struct ree_attend_unit *u,
                          const struct chunk *c, const struct work *w, float *out) {
    const struct ree_attention_params *p = a->p;
    enum ree_tile_type type = ree_tile_type_of((enum ree_dtype)p->v_dtype);
    uint32_t n = p->v_head_dim;
    for (uint32_t r = 0; r < u->n_rows; r += REE_STREAM_MAX_ROWS) {
        uint32_t m = min_u32(u->n_rows - r, REE_STREAM_MAX_ROWS), width;
        const float *weights = c->t + (size_t)r * c->pitch;
        if (!a->pages) {
            const char *values = row_of(a, a->v, u, p->v_strides, p->v_dtype, c->key);
            a->tiles->stream_by_rows[type](m, n, c->n, weights, c->pitch, 1, values,
                                           p->v_strides[2], w->sums, out + (size_t)r * n, n);
            continue;
        }
        memset(w->sums, 0, sizeof(float) * m * n);
        for (uint32_t j = 0; j < c->n; j += width) {
            width = run_of_keys(a, u, c->key + j, c->n - j);
            a->tiles->stream_part[type](m, n, width, weights + j, c->pitch, 1,
                                        row_of(a, a->v, u, p->v_strides, p->v_dtype, c->key + j),
                                        p->v_strides[2], w->sums);
        }
        for (uint32_t i = 0; i < m * n; i++) // rows of `out` are adjacent
            out[(size_t)r * n + i] = w->sums[i] + 0.0f;
    }
}

static bool are_finite(const float *x, size_t n) {
    uint32_t most = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t magnitude = ree_bits(x[i]) & ~REE_SIGN;
        most = magnitude > most ? magnitude : most;
    }
    return most < REE_INF;
}

// Returns the number of keys, from the chunk's first, after which all weights are +0: terms with
// finite values that follow change no sum.
static uint32_t count_weights(const struct ree_attend_unit *u, const struct chunk *c) {
    for (uint32_t r = 0; r < u->n_rows; r++)
        if (!(u->row_sum[r] > 0)) return c->n; // 0 divided by it is NaN
    return count_seen(u, c);
}

static void tile_values(const struct ree_attend *a, const struct ree_attend_unit *u,
                        const struct chunk *c, const struct work *w, uint32_t flags, float *y) {
    const struct ree_attention_params *p = a->p;
    const struct ree_tiles *tiles = a->tiles;
    uint32_t v_head_dim = p->v_head_dim, height = panel_rows(a, u->n_rows);
    struct ree_cpu_operand f = {.dtype = (enum ree_dtype)p->v_dtype,
                                .stride_vector = p->v_strides[3],
                                .stride_k = p->v_strides[2]};
    const uint32_t n_weights = count_weights(u, c);
    pack_rows(a, c->t, c->pitch, u->n_rows, c->n, height, w->rows);
    for (uint32_t j = 0; j < v_head_dim; j += tiles->cols) {
        uint32_t width = min_u32(v_head_dim - j, tiles->cols);
        uint32_t vecs = (width + tiles->lanes - 1) / tiles->lanes;
        for (uint32_t key = 0, run; key < c->n; key += run) {
            run = run_of_keys(a, u, c->key + key, c->n - key);
            f.data = row_of(a, a->v, u, p->v_strides, p->v_dtype, c->key + key);
            ree_cpu_operand_pack(tiles, &f, run, j, width, 0, run,
                                 w->panel + (size_t)key * tiles->cols, tiles->cols);
        }
        const float *rest = w->panel + (size_t)n_weights * tiles->cols;
        uint32_t n = are_finite(rest, (size_t)(c->n - n_weights) * tiles->cols) ? n_weights : c->n;
        for (uint32_t i = 0; i < u->n_rows; i += height)
            tiles->tile[min_u32(u->n_rows - i, height) - 1][vecs - 1](
                n, w->rows + (size_t)i * c->n, w->panel, y + (size_t)i * v_head_dim + j, v_head_dim,
                width, flags);
    }
}

void ree_attend_add(const struct ree_attend *a, const struct ree_attend_unit *u, const float *from,
                    float *y) {
    size_t n = (size_t)u->n_rows * a->p->v_head_dim;
    a->expr->ops[REE_MAP_add_f32](n, y, from, NULL, y);
}

void ree_attend_values(const struct ree_attend *a, const struct ree_attend_unit *u, uint32_t chunk,
                       bool alone, float *y, float *work) {
    struct chunk c = find_chunk(u, chunk);
    struct work w = cut_work(a, u, work);
    bool first = alone || chunk == 0, last = alone || chunk + 1 == u->n_chunks;
    for (uint32_t r = 0; r < u->n_rows; r += REE_CPU_LANES) {
        uint32_t n = min_u32(u->n_rows - r, REE_CPU_LANES);
        float *t = c.t + (size_t)r * c.pitch;
        ree_cpu_rows_op(a->expr, REE_MAP_div_f32, n, c.pitch, t, u->row_sum + r, t, w.block);
    }
    if (!streams(a->v_adjacent, u)) {
        uint32_t flags = (first ? REE_TILE_FIRST : 0) | (last ? REE_TILE_LAST : 0);
        tile_values(a, u, &c, &w, flags, y);
        return;
    }
    // stream_values adds +0 to each chunk's result. That only turns -0 into +0, which the last step
    // of the whole sum would do anyway.
    stream_values(a, u, &c, &w, first ? y : w.part);
    if (!first) ree_attend_add(a, u, w.part, y);
}

void ree_attend_store(const struct ree_attend *a, const struct ree_attend_unit *u) {
    const struct ree_attention_params *p = a->p;
    const int32_t *s = p->out_strides;
    for (uint32_t r = 0; r < u->n_rows; r++) {
        int64_t head = u->head + r / u->queries.count, query = u->queries.first;
        query += r % u->queries.count;
        float *to = a->out + u->batch * (int64_t)s[0] + head * s[1] + query * s[2];
        if (u->n_chunks == 0)
            memset(to, 0, p->v_head_dim * sizeof(float));
        else // the sums may be NaNs that are not canonical
            a->expr->stores[REE_CPU_STORE_F32](p->v_head_dim, u->y + (size_t)r * p->v_head_dim, to);
    }
}
