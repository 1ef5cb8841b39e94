// Writes the kernel of an expression, instruction by instruction. ptx_module.c adds the functions
// that it calls.
#include "device/cuda/ptx.h"

#include "device/cuda/ptx_ops.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define MAX_VALUES (REE_EXPR_MAX_OPERANDS + REE_EXPR_MAX_INSTRS)
#define WIDTH REE_CUDA_PTX_WIDTH
#define NONE 0u // registers count from 1

// The kernel's argument, as cuda/kernel.h declares it for ree_map_words.
struct arguments {
    struct ree_cuda_header h;
    struct ree_cuda_map_params p;
};
#define AT(member) (unsigned)offsetof(struct arguments, member)
#define AT_EXPR(member) (AT(p.expr) + (unsigned)offsetof(struct ree_cuda_expr, member))

// Keys

static uint32_t lanes_of(const struct ree_dispatch *dispatch,
                         const struct ree_cuda_expr_operand *operand, uint32_t rank,
                         uint32_t inner) {
    const uint64_t size = ree_dtype_size((enum ree_dtype)operand->dtype);
    bool aligned = operand->offset % 4 == 0;
    int32_t step = 1;
    if (operand->access == REE_CUDA_SAME) return REE_CUDA_LANES_SAME;
    if (operand->access == REE_CUDA_STRIDED) {
        if (inner % WIDTH != 0) return REE_CUDA_LANES_APART;
        for (uint32_t d = 0; d + 1 < rank; d++)
            aligned = aligned && operand->strides[d] % WIDTH == 0;
        step = operand->strides[rank - 1];
    }
    if (step == 0) return REE_CUDA_LANES_SAME;
    if (step != 1) return REE_CUDA_LANES_STEPS;
    if (operand->kind != REE_EXPR_TENSOR) return REE_CUDA_LANES_NEXT;
    const uint64_t all = size * WIDTH < 16 ? size * WIDTH : 16;
    aligned = aligned && dispatch->operands[operand->tensor].offset % all == 0;
    return aligned ? REE_CUDA_LANES_VECTOR : REE_CUDA_LANES_NEXT;
}

void ree_cuda_ptx_key(const struct ree_dispatch *dispatch, const struct ree_cuda_expr *prepared,
                      struct ree_cuda_ptx_key *out) {
    const struct ree_expr *expr = &dispatch->params.map.expr;
    memset(out, 0, sizeof *out);
    out->n_operands = (uint8_t)prepared->n_operands;
    out->n_tensors = (uint8_t)prepared->n_tensors;
    out->n_instrs = (uint8_t)expr->n_instrs;
    out->out_dtype = (uint8_t)prepared->out_dtype;
    for (uint32_t o = 0; o < prepared->n_operands; o++) {
        const struct ree_cuda_expr_operand *operand = &prepared->operands[o];
        if (operand->access == REE_CUDA_STRIDED) out->rank = (uint8_t)prepared->rank;
        out->operands[o].kind = (uint8_t)operand->kind;
        out->operands[o].dtype = (uint8_t)operand->dtype;
        out->operands[o].access = (uint8_t)operand->access;
        out->operands[o].lanes = (uint8_t)lanes_of(dispatch, operand, prepared->rank,
                                                   prepared->dims[prepared->rank - 1].d);
    }
    for (uint32_t i = 0; i < expr->n_instrs; i++) {
        out->instrs[i].op = (uint16_t)expr->instrs[i].op;
        for (uint32_t a = 0; a < ree_map_op_infos[expr->instrs[i].op].n_args; a++)
            out->instrs[i].args[a] = (uint8_t)expr->instrs[i].args[a];
    }
    const uint64_t size = ree_dtype_size((enum ree_dtype)expr->out_dtype) * WIDTH;
    out->is_vector = dispatch->operands[prepared->n_tensors].offset % (size < 16 ? size : 16) == 0;
}

// Writing

// A value of the expression, for the elements of a thread.
struct value {
    enum ree_class class;
    bool is_number;            // NaNs may have any bits
    uint32_t registers[WIDTH]; // of its class; elements may share one register
    uint32_t canonical[WIDTH]; // with canonical NaNs; NONE: not yet computed
};

struct writer {
    const struct ree_cuda_ptx_key *key;
    struct ree_strbuf text; // the kernel's body
    uint32_t n_words, n_doubles, n_predicates, n_halves;
    uint32_t base[REE_EXPR_MAX_OPERANDS + 1];  // addresses of tensors; last: of the output
    uint32_t constant[REE_EXPR_MAX_INSTRS];    // registers of constants
    uint32_t offset[REE_EXPR_MAX_OPERANDS];    // registers of operands' offsets
    uint32_t width;                            // elements computed at once
    uint32_t coordinates[WIDTH][REE_MAX_RANK]; // registers
    struct value values[MAX_VALUES];
    bool *needs;
};

#define WRITE(...) ree_strbuf_printf(&w->text, __VA_ARGS__)

static uint32_t word(struct writer *w) {
    return ++w->n_words;
}
static uint32_t wide(struct writer *w) {
    return ++w->n_doubles;
}

static void copy_text(struct writer *w, const char *text, size_t n) {
    ree_strbuf_append(&w->text, text, n);
}

// Writes the instructions `text` of an operation, with the names of registers in place of $d, $a
// and so on (ptx_ops.c).
static void write_op(struct writer *w, const char *text, const char *result, const char *args[3]) {
    const uint32_t p = ++w->n_predicates;
    uint32_t t = NONE, big = NONE, half = NONE;
    for (const char *at = text; *at;) {
        size_t n = strcspn(at, "$");
        copy_text(w, at, n);
        at += n;
        if (!*at) break;
        switch (at[1]) {
        case 'd': WRITE("%s", result); break;
        case 'p': WRITE("%%p%u", p); break;
        case 't':
            if (t == NONE) t = word(w);
            WRITE("%%r%u", t);
            break;
        case 'T':
            if (big == NONE) big = wide(w);
            WRITE("%%d%u", big);
            break;
        case 'h':
            if (half == NONE) half = ++w->n_halves;
            WRITE("%%h%u", half);
            break;
        default: WRITE("%s", args[at[1] - 'a']); break;
        }
        at += 2;
    }
    WRITE("\n");
}

static void write_call(struct writer *w, uint32_t op, const char *result, const char *args[3]) {
    const struct ree_map_op_info *info = &ree_map_op_infos[op];
    const int bits = info->result == REE_CLASS_D ? 64 : 32;
    w->needs[op] = true;
    WRITE("{\n.param .b%d v;\n", bits);
    for (uint32_t a = 0; a < info->n_args; a++) {
        const int arg_bits = info->args[a] == REE_CLASS_D ? 64 : 32;
        WRITE(".param .b%d a%u;\nst.param.b%d [a%u], %s;\n", arg_bits, a, arg_bits, a, args[a]);
    }
    WRITE("call.uni (v), " REE_CUDA_PTX_FUNCTION "%s, (a0%s%s);\n", info->name,
          info->n_args > 1 ? ", a1" : "", info->n_args > 2 ? ", a2" : "");
    WRITE("ld.param.b%d %s, [v];\n}\n", bits, result);
}

// Returns whether the operation treats all NaNs of this argument alike.
static bool reads_number(uint32_t op, uint32_t arg) {
    const char *name = ree_map_op_infos[op].name, *to = strstr(name, "_to_");
    if (to)
        return arg == 0 && name[0] == 'f' && (!strncmp(name, "f32", 3) || !strncmp(name, "f64", 3));
    const size_t n = strlen(name);
    return n > 4 && (!strcmp(name + n - 4, "_f32") || !strcmp(name + n - 4, "_f64"));
}

static uint32_t canonical(struct writer *w, struct value *v, uint32_t e) {
    if (!v->is_number) return v->registers[e];
    for (uint32_t i = 0; i < e && v->canonical[e] == NONE; i++) // elements that share the register
        if (v->registers[i] == v->registers[e]) v->canonical[e] = v->canonical[i];
    if (v->canonical[e] != NONE) return v->canonical[e];
    const uint32_t p = ++w->n_predicates, from = v->registers[e];
    if (v->class == REE_CLASS_W) {
        v->canonical[e] = word(w);
        WRITE("setp.nan.f32 %%p%u, %%r%u, %%r%u;\nselp.b32 %%r%u, 0x7FC00000, %%r%u, %%p%u;\n", p,
              from, from, v->canonical[e], from, p);
    } else {
        v->canonical[e] = wide(w);
        WRITE("setp.nan.f64 %%p%u, %%d%u, %%d%u;\n"
              "selp.b64 %%d%u, 0x7FF8000000000000, %%d%u, %%p%u;\n",
              p, from, from, v->canonical[e], from, p);
    }
    return v->canonical[e];
}

static void write_instr(struct writer *w, uint32_t i) {
    const uint32_t op = w->key->instrs[i].op;
    const struct ree_map_op_info *info = &ree_map_op_infos[op];
    struct value *v = &w->values[w->key->n_operands + i];
    memset(v, 0, sizeof *v);
    v->class = info->result;
    if (op == REE_MAP_CONST32 || op == REE_MAP_CONST64) {
        for (uint32_t e = 0; e < w->width; e++)
            v->registers[e] = w->constant[i];
        return;
    }
    v->is_number = ree_cuda_ptx_ops[op].is_number;
    for (uint32_t e = 0; e < w->width; e++) {
        char names[4][16];
        const char *args[3] = {names[0], names[1], names[2]};
        for (uint32_t a = 0; a < info->n_args; a++) {
            struct value *arg = &w->values[w->key->instrs[i].args[a]];
            uint32_t r = reads_number(op, a) ? arg->registers[e] : canonical(w, arg, e);
            snprintf(names[a], sizeof names[a], "%%%c%u", arg->class == REE_CLASS_D ? 'd' : 'r', r);
        }
        v->registers[e] = v->class == REE_CLASS_D ? wide(w) : word(w);
        snprintf(names[3], sizeof names[3], "%%%c%u", v->class == REE_CLASS_D ? 'd' : 'r',
                 v->registers[e]);
        if (ree_cuda_ptx_ops[op].text)
            write_op(w, ree_cuda_ptx_ops[op].text, names[3], args);
        else
            write_call(w, op, names[3], args);
    }
}

// Writes the computation of the coordinates of element %r<index>: ree_divide of cuda/kernel.h for
// each dimension, from the last to the first. The first dimension requires no division.
static void write_coordinates(struct writer *w, uint32_t index, uint32_t *out) {
    uint32_t rest = index;
    for (uint32_t d = w->key->rank; d-- > 0;) {
        const unsigned at = AT_EXPR(dims) + d * (unsigned)sizeof(struct ree_cuda_divider);
        const uint32_t size = word(w), factor = word(w), shift = word(w), q = word(w),
                       high = word(w), product = word(w), p = ++w->n_predicates;
        if (d == 0) {
            out[d] = rest;
            break;
        }
        out[d] = word(w);
        WRITE("ld.param.u32 %%r%u, [args+%u];\nld.param.u32 %%r%u, [args+%u];\n", size,
              at + (unsigned)offsetof(struct ree_cuda_divider, d), factor,
              at + (unsigned)offsetof(struct ree_cuda_divider, factor));
        WRITE("ld.param.u32 %%r%u, [args+%u];\n", shift,
              at + (unsigned)offsetof(struct ree_cuda_divider, shift));
        WRITE("mul.hi.u32 %%r%u, %%r%u, %%r%u;\nshr.u32 %%r%u, %%r%u, %%r%u;\n", high, rest, factor,
              high, high, shift);
        WRITE("setp.eq.s32 %%p%u, %%r%u, 0;\nselp.b32 %%r%u, %%r%u, %%r%u, %%p%u;\n", p, factor, q,
              rest, high, p);
        WRITE("mul.lo.s32 %%r%u, %%r%u, %%r%u;\nsub.s32 %%r%u, %%r%u, %%r%u;\n", product, q, size,
              out[d], rest, product);
        rest = q;
    }
}

// Returns a register with the position of an operand's element for element e of the thread.
static uint32_t write_place(struct writer *w, uint32_t o, uint32_t e, uint32_t first) {
    const uint32_t at = word(w), access = w->key->operands[o].access;
    if (access == REE_CUDA_SAME) return w->offset[o];
    if (access == REE_CUDA_LINEAR) {
        WRITE("add.s32 %%r%u, %%r%u, %%r%u;\n", at, w->offset[o], first);
        if (e == 0) return at;
        const uint32_t next = word(w);
        WRITE("add.s32 %%r%u, %%r%u, %u;\n", next, at, e);
        return next;
    }
    uint32_t sum = w->offset[o];
    for (uint32_t d = 0; d < w->key->rank; d++) {
        const uint32_t stride = word(w), next = word(w);
        WRITE("ld.param.u32 %%r%u, [args+%u];\nmad.lo.s32 %%r%u, %%r%u, %%r%u, %%r%u;\n", stride,
              AT_EXPR(operands) + o * (unsigned)sizeof(struct ree_cuda_expr_operand) +
                  (unsigned)offsetof(struct ree_cuda_expr_operand, strides) + 4 * d,
              next, w->coordinates[e][d], stride, sum);
        sum = next;
    }
    return sum;
}

// Returns the type of "ld.global" that extends elements to the register, as repop.h defines loads.
static const char *load_type(uint32_t dtype) {
    switch (dtype) {
    case REE_I8:
    case REE_I4:
    case REE_I2: return "s8";
    case REE_I16: return "s16";
    case REE_U16:
    case REE_F16:
    case REE_BF16: return "u16";
    default: break;
    }
    const size_t size = ree_dtype_size((enum ree_dtype)dtype);
    return size == 8 ? "b64" : size == 4 ? "b32" : "u8";
}

// Returns a register with the address of element %r<at> of the memory that begins at %d<base>.
static uint32_t write_address(struct writer *w, uint32_t base, uint32_t at, uint32_t dtype) {
    const uint32_t offset = wide(w), address = wide(w);
    WRITE("mul.wide.u32 %%d%u, %%r%u, %u;\nadd.s64 %%d%u, %%d%u, %%d%u;\n", offset, at,
          (unsigned)ree_dtype_size((enum ree_dtype)dtype), address, base, offset);
    return address;
}

static void write_load_one(struct writer *w, uint32_t o, uint32_t at, uint32_t to) {
    const uint32_t dtype = w->key->operands[o].dtype;
    const bool is_wide = ree_dtype_class((enum ree_dtype)dtype) == REE_CLASS_D;
    if (w->key->operands[o].kind == REE_EXPR_IOTA) {
        WRITE(is_wide ? "cvt.s64.s32 %%d%u, %%r%u;\n" : "mov.b32 %%r%u, %%r%u;\n", to, at);
        return;
    }
    WRITE("ld.global.%s %%%c%u, [%%d%u];\n", load_type(dtype), is_wide ? 'd' : 'r', to,
          write_address(w, w->base[o], at, dtype));
}

static void write_vector_load(struct writer *w, uint32_t o, uint32_t at, const uint32_t *to) {
    const uint32_t dtype = w->key->operands[o].dtype;
    const uint32_t address = write_address(w, w->base[o], at, dtype);
    if (ree_dtype_size((enum ree_dtype)dtype) == 8) {
        WRITE("ld.global.v2.b64 {%%d%u, %%d%u}, [%%d%u];\n", to[0], to[1], address);
        WRITE("ld.global.v2.b64 {%%d%u, %%d%u}, [%%d%u+16];\n", to[2], to[3], address);
        return;
    }
    WRITE("ld.global.v4.%s {%%r%u, %%r%u, %%r%u, %%r%u}, [%%d%u];\n", load_type(dtype), to[0],
          to[1], to[2], to[3], address);
}

static void write_operand(struct writer *w, uint32_t o, uint32_t first) {
    struct value *v = &w->values[o];
    const uint32_t lanes = w->key->operands[o].lanes;
    memset(v, 0, sizeof *v);
    v->class = ree_dtype_class((enum ree_dtype)w->key->operands[o].dtype);
    const bool is_wide = v->class == REE_CLASS_D;
    for (uint32_t e = 0; e < w->width; e++) // allocate registers before their first use below
        v->registers[e] = e > 0 && lanes == REE_CUDA_LANES_SAME ? v->registers[0]
                          : is_wide                             ? wide(w)
                                                                : word(w);
    const uint32_t at = write_place(w, o, 0, first);
    if (lanes == REE_CUDA_LANES_VECTOR && w->width == WIDTH) {
        write_vector_load(w, o, at, v->registers);
        return;
    }
    write_load_one(w, o, at, v->registers[0]);
    if (lanes == REE_CUDA_LANES_SAME) return;
    uint32_t place = at, step = NONE;
    if (lanes == REE_CUDA_LANES_STEPS && w->width > 1) {
        step = word(w);
        WRITE("ld.param.u32 %%r%u, [args+%u];\n", step,
              AT_EXPR(operands) + o * (unsigned)sizeof(struct ree_cuda_expr_operand) +
                  (unsigned)offsetof(struct ree_cuda_expr_operand, strides) +
                  4 * (w->key->rank - 1u));
    }
    for (uint32_t e = 1; e < w->width; e++) {
        const uint32_t next = word(w);
        if (lanes == REE_CUDA_LANES_APART) {
            place = write_place(w, o, e, first);
        } else if (step != NONE) {
            WRITE("add.s32 %%r%u, %%r%u, %%r%u;\n", next, place, step);
            place = next;
        } else {
            WRITE("add.s32 %%r%u, %%r%u, 1;\n", next, place);
            place = next;
        }
        write_load_one(w, o, place, v->registers[e]);
    }
}

// Replaces the registers of a thread's results by registers with only the low `size` bytes, and
// returns the letter of their names. NVIDIA's compiler does not store the low bytes of a float in a
// wider register: it converts the float to an integer, although the registers have no type.
static char narrow(struct writer *w, enum ree_class class, size_t size, uint32_t r[WIDTH]) {
    const size_t all = class == REE_CLASS_D ? 8 : 4;
    const char file = class == REE_CLASS_D ? 'd' : 'r';
    if (size == all) return file;
    for (uint32_t e = 0; e < w->width; e++) {
        const uint32_t to = size == 4 ? word(w) : ++w->n_halves;
        WRITE("cvt.u%d.u%zu %%%c%u, %%%c%u;\n", size == 4 ? 32 : 16, 8 * all, size == 4 ? 'r' : 'h',
              to, file, r[e]);
        r[e] = to;
    }
    return size == 4 ? 'r' : 'h';
}

static void write_result(struct writer *w, uint32_t first) {
    const uint32_t n = w->key->n_operands + w->key->n_instrs, dtype = w->key->out_dtype;
    struct value *v = &w->values[w->key->n_instrs > 0 ? n - 1 : 0];
    const size_t size = ree_dtype_size((enum ree_dtype)dtype);
    const uint32_t address = write_address(w, w->base[REE_EXPR_MAX_OPERANDS], first, dtype);
    uint32_t r[WIDTH];
    if ((dtype == REE_F32 && v->class == REE_CLASS_W) ||
        (dtype == REE_F64 && v->class == REE_CLASS_D))
        v->is_number = true; // a stored float must be canonical, whatever operation produced it
    for (uint32_t e = 0; e < w->width; e++)
        r[e] = canonical(w, v, e);
    const char file = narrow(w, v->class, size, r);
    if (w->width == WIDTH && w->key->is_vector && size == 8) {
        WRITE("st.global.v2.b64 [%%d%u], {%%d%u, %%d%u};\n", address, r[0], r[1]);
        WRITE("st.global.v2.b64 [%%d%u+16], {%%d%u, %%d%u};\n", address, r[2], r[3]);
    } else if (w->width == WIDTH && w->key->is_vector) {
        WRITE("st.global.v4.b%zu [%%d%u], {%%%c%u, %%%c%u, %%%c%u, %%%c%u};\n", 8 * size, address,
              file, r[0], file, r[1], file, r[2], file, r[3]);
    } else {
        for (uint32_t e = 0; e < w->width; e++)
            WRITE("st.global.b%zu [%%d%u+%u], %%%c%u;\n", 8 * size, address, e * (unsigned)size,
                  file, r[e]);
    }
}

// Writes the computation of `width` elements, starting with element %r<first>.
static void write_elements(struct writer *w, uint32_t first, uint32_t width) {
    bool apart = width == 1;
    w->width = width;
    for (uint32_t o = 0; o < w->key->n_operands; o++)
        apart = apart || w->key->operands[o].lanes == REE_CUDA_LANES_APART;
    for (uint32_t e = 0; e < (apart ? width : 1) && w->key->rank > 0; e++) {
        uint32_t index = first;
        if (e > 0) {
            index = word(w);
            WRITE("add.s32 %%r%u, %%r%u, %u;\n", index, first, e);
        }
        write_coordinates(w, index, w->coordinates[e]);
    }
    for (uint32_t o = 0; o < w->key->n_operands; o++)
        write_operand(w, o, first);
    for (uint32_t i = 0; i < w->key->n_instrs; i++)
        write_instr(w, i);
    write_result(w, first);
}

// Writes the loads of what all elements share: addresses, offsets, constants.
static void write_arguments(struct writer *w) {
    uint32_t tensor = 0, constant = 0;
    for (uint32_t o = 0; o <= w->key->n_operands; o++) {
        const bool is_out = o == w->key->n_operands;
        if (!is_out) {
            w->offset[o] = word(w);
            WRITE("ld.param.u32 %%r%u, [args+%u];\n", w->offset[o],
                  AT_EXPR(operands) + o * (unsigned)sizeof(struct ree_cuda_expr_operand) +
                      (unsigned)offsetof(struct ree_cuda_expr_operand, offset));
        }
        if (!is_out && w->key->operands[o].kind != REE_EXPR_TENSOR) continue;
        const uint32_t address = wide(w), global = wide(w);
        WRITE("ld.param.u64 %%d%u, [args+%u];\ncvta.to.global.u64 %%d%u, %%d%u;\n", address,
              AT(h.operands) + 8 * tensor++, global, address);
        w->base[is_out ? REE_EXPR_MAX_OPERANDS : o] = global;
    }
    for (uint32_t i = 0; i < w->key->n_instrs; i++) {
        const uint32_t op = w->key->instrs[i].op;
        if (op != REE_MAP_CONST32 && op != REE_MAP_CONST64) continue;
        const bool is_wide = op == REE_MAP_CONST64;
        w->constant[i] = is_wide ? wide(w) : word(w);
        WRITE("ld.param.b%d %%%c%u, [args+%u];\n", is_wide ? 64 : 32, is_wide ? 'd' : 'r',
              w->constant[i], AT_EXPR(constants) + 8 * constant++);
    }
}

void ree_cuda_ptx_write(const struct ree_cuda_ptx_key *key, struct ree_strbuf *out,
                        bool needs[REE_N_MAP_OPS]) {
    struct writer writer = {.key = key, .needs = needs}, *w = &writer;
    ree_strbuf_init(&w->text);
    const uint32_t block = word(w), size = word(w), thread = word(w), number = word(w),
                   first = word(w), n = word(w), left = word(w), outside = ++w->n_predicates,
                   few = ++w->n_predicates;
    WRITE("mov.u32 %%r%u, %%ctaid.x;\nmov.u32 %%r%u, %%ntid.x;\nmov.u32 %%r%u, %%tid.x;\n", block,
          size, thread);
    WRITE("mad.lo.s32 %%r%u, %%r%u, %%r%u, %%r%u;\nshl.b32 %%r%u, %%r%u, 2;\n", number, block, size,
          thread, first, number);
    WRITE("ld.param.u32 %%r%u, [args+%u];\nsetp.ge.u32 %%p%u, %%r%u, %%r%u;\n@%%p%u bra DONE;\n", n,
          AT_EXPR(n_elements), outside, first, n, outside);
    write_arguments(w);
    WRITE("sub.s32 %%r%u, %%r%u, %%r%u;\nsetp.lt.u32 %%p%u, %%r%u, %d;\n@%%p%u bra FEW;\n", left, n,
          first, few, left, WIDTH, few);
    write_elements(w, first, WIDTH);
    WRITE("bra DONE;\nFEW:\n"); // fewer than four elements left
    write_elements(w, first, 1);
    const uint32_t again = ++w->n_predicates;
    WRITE("add.s32 %%r%u, %%r%u, 1;\nsetp.lt.u32 %%p%u, %%r%u, %%r%u;\n@%%p%u bra FEW;\n", first,
          first, again, first, n, again);
    WRITE("DONE:\nret;\n");
    ree_strbuf_printf(out,
                      ".visible .entry " REE_CUDA_PTX_KERNEL "(\n.param .align 8 .b8 args[%zu])\n",
                      sizeof(struct arguments));
    ree_strbuf_printf(out, ".maxntid %d, 1, 1\n{\n", REE_CUDA_PTX_THREADS);
    ree_strbuf_printf(out, ".reg .pred %%p<%u>;\n.reg .b16 %%h<%u>;\n", w->n_predicates + 1,
                      w->n_halves + 1);
    ree_strbuf_printf(out, ".reg .b32 %%r<%u>;\n.reg .b64 %%d<%u>;\n", w->n_words + 1,
                      w->n_doubles + 1);
    if (w->text.failed)
        out->failed = true;
    else
        ree_strbuf_append(out, w->text.data, w->text.size);
    ree_strbuf_printf(out, "}\n");
    ree_strbuf_finish(&w->text);
}
