// Reads the types and constants of a module, and folds the functions that its entry point needs:
// spirv_propagate.c decides what stays, spirv_emit.c writes it.
#include "device/vulkan/spirv_fold.h"

#include "base/memory.h"
#include "device/vulkan/spirv_fold_internal.h"
#include "device/vulkan/spirv_ops.h"

enum ree_status ree_fold_unsupported(struct ree_error *err, const char *what) {
    return ree_fail(err, REE_UNSUPPORTED, "a shader is not specialized: %s", what);
}

bool ree_fold_is_int32_or_bool(const struct ree_fold *f, uint32_t type) {
    const size_t at = f->values[type].at;
    return at && ((ree_fold_opcode(f, at) == REE_SPV_TYPE_INT && f->words[at + 2] == 32) ||
                  ree_fold_opcode(f, at) == REE_SPV_TYPE_BOOL);
}

static void set_constant(struct ree_fold *f, uint32_t id, uint32_t bits) {
    f->values[id].known = REE_FOLD_CONSTANT;
    f->values[id].bits = bits;
}

static uint32_t spec_value(const struct ree_fold *f, uint32_t id, uint32_t otherwise) {
    for (uint32_t i = 0; f->spec_ids[id] && i < f->n_constants; i++)
        if (f->constants[i].id == f->spec_ids[id] - 1) return f->constants[i].value;
    return otherwise;
}

uint32_t ree_fold_extract(const struct ree_fold *f, uint32_t id, const uint32_t *literals,
                          uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        const size_t at = f->values[id].at;
        const uint32_t opcode = at ? ree_fold_opcode(f, at) : 0;
        if ((opcode != REE_SPV_CONSTANT_COMPOSITE && opcode != REE_SPV_SPEC_CONSTANT_COMPOSITE) ||
            literals[i] + 3 >= ree_fold_length(f, at))
            return 0;
        id = f->words[at + 3 + literals[i]];
    }
    return id;
}

enum ree_fold_knowledge ree_fold_compute(const struct ree_fold *f, uint32_t opcode,
                                         const uint32_t *args, uint32_t n, uint32_t *bits) {
    uint32_t values[3];
    enum ree_fold_knowledge known = REE_FOLD_CONSTANT;
    if (n == 0 || n > 3) return REE_FOLD_VARYING;
    for (uint32_t i = 0; i < n; i++) {
        const struct ree_fold_value *v = &f->values[args[i]];
        values[i] = v->bits;
        if (v->known == REE_FOLD_VARYING) known = REE_FOLD_VARYING;
        if (v->known == REE_FOLD_UNDETERMINED && known == REE_FOLD_CONSTANT)
            known = REE_FOLD_UNDETERMINED;
        // One constant operand may determine the result.
        const bool determines_result = (opcode == REE_SPV_LOGICAL_AND && !v->bits) ||
                                       (opcode == REE_SPV_LOGICAL_OR && v->bits) ||
                                       (opcode == REE_SPV_BITWISE_AND && !v->bits);
        if (v->known == REE_FOLD_CONSTANT && determines_result) {
            *bits = opcode == REE_SPV_LOGICAL_OR;
            return REE_FOLD_CONSTANT;
        }
    }
    if (known != REE_FOLD_CONSTANT) return known;
    return ree_spirv_evaluate(opcode, values, n, bits) ? REE_FOLD_CONSTANT : REE_FOLD_VARYING;
}

static enum ree_status read_constant(struct ree_fold *f, size_t at, struct ree_error *err) {
    const uint32_t *i = f->words + at;
    uint32_t bits;
    switch (ree_fold_opcode(f, at)) {
    case REE_SPV_CONSTANT_TRUE: set_constant(f, i[2], 1); break;
    case REE_SPV_CONSTANT_FALSE: set_constant(f, i[2], 0); break;
    case REE_SPV_CONSTANT:
        if (ree_fold_is_int32_or_bool(f, i[1])) set_constant(f, i[2], i[3]);
        break;
    case REE_SPV_SPEC_CONSTANT_TRUE: set_constant(f, i[2], spec_value(f, i[2], 1) != 0); break;
    case REE_SPV_SPEC_CONSTANT_FALSE: set_constant(f, i[2], spec_value(f, i[2], 0) != 0); break;
    case REE_SPV_SPEC_CONSTANT:
        if (!ree_fold_is_int32_or_bool(f, i[1]))
            return ree_fold_unsupported(err,
                                        "a specialization constant that is not a 32-bit integer");
        set_constant(f, i[2], spec_value(f, i[2], i[3]));
        break;
    case REE_SPV_SPEC_CONSTANT_OP: {
        const uint32_t n = ree_fold_length(f, at) - 4;
        const bool extracts = i[3] == REE_SPV_COMPOSITE_EXTRACT;
        const uint32_t id = extracts ? ree_fold_extract(f, i[4], i + 5, n - 1) : 0;
        bool ok = ree_fold_is_int32_or_bool(f, i[1]);
        if (extracts) {
            ok = ok && id && f->values[id].known == REE_FOLD_CONSTANT;
            bits = ok ? f->values[id].bits : 0;
        } else {
            ok = ok && ree_fold_compute(f, i[3], i + 4, n, &bits) == REE_FOLD_CONSTANT;
        }
        if (!ok) return ree_fold_unsupported(err, "an operation of constants");
        set_constant(f, i[2], bits);
        break;
    }
    default: break;
    }
    return REE_OK;
}

// Returns the result id of an instruction outside functions; 0 if it has none that matters to the
// fold.
static uint32_t global_result(const struct ree_fold *f, size_t at) {
    const uint32_t opcode = ree_fold_opcode(f, at);
    if (opcode >= 19 && opcode <= 38) return f->words[at + 1]; // types
    if (opcode == REE_SPV_UNDEF || (opcode >= 41 && opcode <= 52) || opcode == REE_SPV_VARIABLE)
        return f->words[at + 2];
    return 0;
}

static enum ree_status read_module(struct ree_fold *f, struct ree_error *err) {
    size_t at = REE_FOLD_HEADER;
    for (; at < f->n_words && ree_fold_opcode(f, at) != REE_SPV_FUNCTION;
         at += ree_fold_length(f, at)) {
        const uint32_t *i = f->words + at;
        if (ree_fold_length(f, at) == 0 || ree_fold_length(f, at) > f->n_words - at)
            return ree_fold_unsupported(err, "an instruction's length");
        if (!ree_spirv_is_global(i)) return ree_fold_unsupported(err, "a global instruction");
        const uint32_t result = global_result(f, at);
        if (result) {
            f->values[result].at = at;
            f->values[result].known = REE_FOLD_VARYING;
        }
        if (ree_fold_opcode(f, at) == REE_SPV_ENTRY_POINT) {
            if (f->entry) return ree_fold_unsupported(err, "a second entry point");
            f->entry = i[2];
        }
        if (ree_fold_opcode(f, at) == REE_SPV_TYPE_BOOL) f->bool_type = i[1];
        if (ree_fold_opcode(f, at) == REE_SPV_DECORATE && i[2] == REE_SPV_DECORATION_SPEC_ID)
            f->spec_ids[i[1]] = i[3] + 1;
        REE_TRY(read_constant(f, at, err));
    }
    f->functions_at = at;
    for (; at < f->n_words; at += ree_fold_length(f, at)) {
        if (ree_fold_length(f, at) == 0 || ree_fold_length(f, at) > f->n_words - at)
            return ree_fold_unsupported(err, "an instruction's length");
        if (ree_fold_opcode(f, at) == REE_SPV_FUNCTION) {
            f->functions[f->n_functions++] = (struct ree_fold_function){.at = at};
            f->function_of[f->words[at + 2]] = f->n_functions;
        }
        f->functions[f->n_functions - 1].end = at + ree_fold_length(f, at);
    }
    if (!f->entry || !f->function_of[f->entry]) return ree_fold_unsupported(err, "no entry point");
    return REE_OK;
}

static enum ree_status fold_function(struct ree_fold *f, const struct ree_fold_function *function,
                                     struct ree_error *err) {
    REE_TRY(ree_fold_analyze(f, function, err));
    return ree_fold_put_function(f, function, err);
}

static enum ree_status fold_module(struct ree_fold *f, struct ree_fold_words *out,
                                   struct ree_error *err) {
    REE_TRY(read_module(f, err));
    // Each round folds the functions that the code of earlier rounds calls.
    bool *done = ree_alloc_zeroed(f->n_functions, sizeof *done);
    if (!done) return ree_no_memory(err);
    f->functions[f->function_of[f->entry] - 1].n_calls = 1;
    enum ree_status status = REE_OK;
    for (bool changed = true; changed && status == REE_OK;) {
        changed = false;
        for (uint32_t k = 0; k < f->n_functions && status == REE_OK; k++) {
            if (done[k] || !f->functions[k].n_calls) continue;
            done[k] = changed = true;
            status = fold_function(f, &f->functions[k], err);
        }
    }
    ree_free(done);
    REE_TRY(status);
    return ree_fold_put_module(f, out, err);
}

static enum ree_status allocate(struct ree_fold *f, struct ree_error *err) {
    size_t n_functions = 0, n_labels = 0;
    for (size_t at = REE_FOLD_HEADER; at < f->n_words && ree_fold_length(f, at);
         at += ree_fold_length(f, at)) {
        n_functions += ree_fold_opcode(f, at) == REE_SPV_FUNCTION;
        n_labels += ree_fold_opcode(f, at) == REE_SPV_LABEL;
    }
    f->blocks_capacity = (uint32_t)n_labels;
    f->values = ree_alloc_zeroed(f->bound, sizeof *f->values);
    f->spec_ids = ree_alloc_zeroed(f->bound, sizeof *f->spec_ids);
    f->function_of = ree_alloc_zeroed(f->bound, sizeof *f->function_of);
    f->stack = ree_alloc_zeroed(f->bound, sizeof *f->stack);
    f->functions = ree_alloc_zeroed(n_functions + 1, sizeof *f->functions);
    f->blocks = ree_alloc_zeroed(n_labels + 1, sizeof *f->blocks);
    if (!f->values || !f->spec_ids || !f->function_of || !f->stack || !f->functions || !f->blocks)
        return ree_no_memory(err);
    return REE_OK;
}

enum ree_status ree_spirv_fold(const uint32_t *words, size_t n_words,
                               const struct ree_spirv_constant *constants, uint32_t n_constants,
                               uint32_t **out, size_t *out_n_words, struct ree_error *err) {
    *out = NULL;
    if (n_words < REE_FOLD_HEADER || words[0] != 0x07230203)
        return ree_fold_unsupported(err, "it is not SPIR-V");
    struct ree_fold f = {.words = words,
                         .n_words = n_words,
                         .bound = words[3],
                         .next_id = words[3],
                         .constants = constants,
                         .n_constants = n_constants};
    struct ree_fold_words result = {0};
    enum ree_status status = allocate(&f, err);
    if (status == REE_OK) status = fold_module(&f, &result, err);
    ree_free(f.values);
    ree_free(f.spec_ids);
    ree_free(f.function_of);
    ree_free(f.stack);
    ree_free(f.functions);
    ree_free(f.blocks);
    ree_free(f.predecessors);
    ree_free(f.new_constants.list);
    ree_free(f.code.list);
    if (status != REE_OK) {
        ree_free(result.list);
        return status;
    }
    *out = result.list;
    *out_n_words = result.n;
    return REE_OK;
}
