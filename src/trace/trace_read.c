// Reads a trace. The file is untrusted: sizes are checked against the file's size before they are
// used for an allocation, and every digest is included in the root.
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/float_env.h"
#include "base/memory.h"
#include "base/status.h"
#include "trace/trace_header.h"

#define TAG_SIZE (sizeof REE_TRACE_MAGIC - 1)
#define MAGIC_SIZE (TAG_SIZE + 2)
#define END_SIZE (sizeof REE_TRACE_END - 1)
// The marker "end", the number of steps and the root.
#define TAIL_SIZE (END_SIZE + sizeof(uint64_t) + sizeof(ree_digest))

static enum ree_status malformed(const char *what, struct ree_error *err) {
    return ree_fail(err, REE_INVALID, "%s", what);
}

static uint64_t take_u64(const unsigned char *from) {
    uint64_t value;
    memcpy(&value, from, sizeof value);
    return value;
}

// Limits the hashing that a file can cause. An input of a node takes only two bytes of the header
// but is hashed in every step, so a small file could cause hours of work. The limit is far above
// the operators with the most inputs for one output (QLinearConv: 9), and `spare` allows any graph
// in a trace of few steps.
static enum ree_status check_work(const struct ree_trace *t, struct ree_error *err) {
    const struct ree_trace_header *h = &t->header;
    const uint64_t most_for_each = 32, spare = (uint64_t)1 << 24;
    uint64_t n = 0; // digests that a step hashes
    for (uint32_t i = 0; i < h->n_nodes; i++)
        n += 2 + (uint64_t)h->nodes[i].n_inputs + h->nodes[i].n_outputs;
    uint64_t steps = t->n_steps ? t->n_steps : 1;
    if (n <= most_for_each * h->n_step_digests + spare / steps) return REE_OK;
    return ree_fail(err, REE_UNSUPPORTED,
                    "its nodes have %llu inputs and outputs, for %llu values of a step, in %llu "
                    "steps: at most %llu for each value are supported",
                    (unsigned long long)n, (unsigned long long)h->n_step_digests,
                    (unsigned long long)t->n_steps, (unsigned long long)most_for_each);
}

static enum ree_status check_steps(const struct ree_trace *t, struct ree_error *err) {
    const struct ree_trace_header *h = &t->header;
    static const ree_digest zeros;
    for (uint64_t s = 0; s < t->n_steps; s++) {
        const ree_digest *step = ree_trace_step(t, s);
        for (uint32_t i = 0; i < h->n_nodes; i++)
            for (uint32_t k = 0; k < h->nodes[i].n_outputs; k++) {
                int64_t place = ree_trace_digest_index(h, h->nodes[i].first_output + k);
                if (h->nodes[i].omitted[k] && memcmp(step[place], zeros, sizeof zeros) != 0)
                    return ree_fail(err, REE_INVALID,
                                    "step %llu has a value for output %u of node %u ('%s'), but "
                                    "the node omits this output",
                                    (unsigned long long)s, k, i, h->nodes[i].name);
            }
    }
    return REE_OK;
}

static enum ree_status check_root(const struct ree_trace *t, struct ree_error *err) {
    ree_digest *leaves = ree_alloc_zeroed((size_t)t->n_steps + 1, sizeof *leaves), root;
    ree_digest *nodes = ree_alloc_zeroed((size_t)t->header.n_nodes + 1, sizeof *nodes);
    if (!leaves || !nodes) {
        ree_free(leaves);
        ree_free(nodes);
        return ree_no_memory(err);
    }
    for (uint64_t s = 0; s < t->n_steps; s++)
        ree_trace_step_digest(&t->header, s, ree_trace_step(t, s), nodes, leaves[s]);
    ree_trace_root(&t->header, (const ree_digest *)leaves, t->n_steps, root);
    ree_free(leaves);
    ree_free(nodes);
    if (memcmp(root, t->root, sizeof root) == 0) return REE_OK;
    char own[65], given[65];
    ree_hex(root, own);
    ree_hex(t->root, given);
    return ree_fail(err, REE_INVALID, "its root is %s, but its contents have %s", given, own);
}

// Decodes `bytes`, which the trace already owns.
static enum ree_status decode(struct ree_trace *t, size_t nbytes, struct ree_error *err) {
    const unsigned char *bytes = t->bytes;
    if (nbytes < MAGIC_SIZE || memcmp(bytes, REE_TRACE_MAGIC, TAG_SIZE) != 0 ||
        bytes[TAG_SIZE] < '0' || bytes[TAG_SIZE] > '9' || bytes[TAG_SIZE + 1] != '\n')
        return malformed("this is not a trace", err);
    if (nbytes < MAGIC_SIZE + sizeof(uint64_t) + TAIL_SIZE)
        return malformed("the trace is truncated", err);
    uint64_t header_size = take_u64(bytes + MAGIC_SIZE);
    size_t at = MAGIC_SIZE + sizeof(uint64_t), rest = nbytes - at - TAIL_SIZE;
    if (header_size > rest) return malformed("the trace is truncated within its header", err);
    if (header_size > REE_TRACE_MAX_HEADER)
        return ree_fail(err, REE_UNSUPPORTED,
                        "the header has %llu bytes; at most %llu are supported",
                        (unsigned long long)header_size, (unsigned long long)REE_TRACE_MAX_HEADER);
    enum ree_status status =
        ree_trace_header_decode(bytes + at, (size_t)header_size, &t->arena, &t->header, err);
    if (status == REE_OK && t->header.version != (uint32_t)(bytes[TAG_SIZE] - '0'))
        status = ree_fail(err, REE_INVALID, "its version is not that of the file");
    if (status != REE_OK) return ree_fail_prefix(err, "the header");
    at += (size_t)header_size;
    rest -= (size_t)header_size;
    const unsigned char *tail = bytes + nbytes - TAIL_SIZE;
    if (memcmp(tail, REE_TRACE_END, END_SIZE) != 0)
        return malformed("the trace does not end as a trace: it was truncated or extended", err);
    t->n_steps = take_u64(tail + END_SIZE);
    memcpy(t->root, tail + END_SIZE + sizeof(uint64_t), sizeof t->root);
    // Bytes of a step. Never 0, because a header without inputs and outputs is refused.
    uint64_t wanted = (uint64_t)t->header.n_step_digests * sizeof(ree_digest);
    if (t->n_steps != rest / wanted || rest % wanted)
        return ree_fail(err, REE_INVALID,
                        "the trace states %llu steps of %llu bytes, but has %zu bytes",
                        (unsigned long long)t->n_steps, (unsigned long long)wanted, rest);
    t->digests = (ree_digest *)((unsigned char *)t->bytes + at);
    REE_TRY(check_work(t, err));
    REE_TRY(check_steps(t, err));
    return check_root(t, err);
}

// Takes ownership of `bytes`, also on failure.
static enum ree_status create(void *bytes, size_t nbytes, const char *path, struct ree_trace **out,
                              struct ree_error *err) {
    struct ree_error local;
    if (!err) err = &local; // ree_fail_prefix needs a message to extend
    struct ree_trace *t = ree_alloc_zeroed(1, sizeof *t);
    if (!t) {
        ree_free(bytes);
        return ree_fail(err, REE_NO_MEMORY, "%s: out of memory", path);
    }
    ree_arena_init(&t->arena);
    t->bytes = bytes;
    t->path = ree_arena_strdup(&t->arena, path);
    enum ree_status status = REE_NO_MEMORY;
    if (t->path)
        status = decode(t, nbytes, err);
    else
        ree_fail_message(err, status, "out of memory");
    if (status == REE_OK) {
        *out = t;
        return REE_OK;
    }
    ree_trace_destroy(t);
    return ree_fail_prefix(err, "%s", path);
}

enum ree_status ree_trace_decode(const void *bytes, size_t nbytes, const char *path,
                                 struct ree_trace **out, struct ree_error *err) {
    *out = NULL;
    void *copy = ree_alloc(nbytes ? nbytes : 1);
    if (!copy) return ree_fail(err, REE_NO_MEMORY, "%s: out of memory", path);
    if (nbytes) memcpy(copy, bytes, nbytes);
    return create(copy, nbytes, path, out, err);
}

enum ree_status ree_trace_load(const char *path, struct ree_trace **out, struct ree_error *err) {
    REE_FLOAT_ENV_API();
    void *bytes;
    size_t nbytes;
    *out = NULL;
    REE_TRY(ree_file_read(path, &bytes, &nbytes, err));
    return create(bytes, nbytes, path, out, err);
}

void ree_trace_destroy(struct ree_trace *t) {
    if (!t) return;
    ree_arena_finish(&t->arena);
    ree_free(t->bytes);
    ree_free(t);
}

const ree_digest *ree_trace_step(const struct ree_trace *t, uint64_t step) {
    return (const ree_digest *)t->digests + step * t->header.n_step_digests;
}
