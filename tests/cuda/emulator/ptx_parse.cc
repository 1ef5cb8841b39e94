// Parses PTX line by line; accepts only what src/device/cuda/ptx.c writes.
#include "ptx_code.h"

#include "repops/scalar/ops.h"

#include <map>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

using namespace ree_ptx;

namespace {

// The functions of cuda/functions.cu.
#define ARGS_1(A, B, C) (REE_AS_##A) a[0]
#define ARGS_2(A, B, C) (REE_AS_##A) a[0], (REE_AS_##B)a[1]
#define ARGS_3(A, B, C) (REE_AS_##A) a[0], (REE_AS_##B)a[1], (REE_AS_##C)a[2]
#define REE_AS_W uint32_t
#define REE_AS_D uint64_t
const struct {
    const char *name;
    host_function *function;
} functions[] = {
#define MAP_OP(name, n_args, result, A, B, C)                                                      \
    {"ree_fn_" #name,                                                                              \
     [](const uint64_t *a) -> uint64_t { return ree_op_##name(ARGS_##n_args(A, B, C)); }},
#define REE_DEVICE_MAP_OPS
#include "repops/map_ops.def"
};

struct parser {
    struct ree_emulator_ptx *ptx;
    std::string error;
    std::map<std::string, uint32_t> labels;
    uint32_t n[4]; // registers in each file: r, d, p, h
};

std::string trim(const std::string &s) {
    size_t begin = s.find_first_not_of(" \t\r"), end = s.find_last_not_of(" \t\r");
    return begin == std::string::npos ? "" : s.substr(begin, end - begin + 1);
}

// Splits at commas outside brackets.
std::vector<std::string> split(const std::string &s) {
    std::vector<std::string> parts;
    std::string part;
    int depth = 0;
    for (char c : s) {
        depth += (c == '{' || c == '(' || c == '[') - (c == '}' || c == ')' || c == ']');
        if (c == ',' && depth == 0) {
            parts.push_back(trim(part));
            part.clear();
        } else {
            part += c;
        }
    }
    if (!trim(part).empty()) parts.push_back(trim(part));
    return parts;
}

// Registers are numbered consecutively across all files: r, d, p, h.
bool register_of(struct parser *p, const std::string &s, struct operand *out) {
    static const char files[] = "rdph";
    const char *file = s.size() > 2 && s[0] == '%' ? strchr(files, s[1]) : NULL;
    char *end;
    if (!file || s[2] < '0' || s[2] > '9') return false;
    unsigned long number = strtoul(s.c_str() + 2, &end, 10);
    uint32_t at = 0;
    if (*end || number == 0 || number >= p->n[file - files]) return false;
    for (int f = 0; f < file - files; f++)
        at += p->n[f];
    *out = {operand::REGISTER, at + (uint32_t)number, 0};
    return true;
}

bool operand_of(struct parser *p, const std::string &s, struct operand *out) {
    if (register_of(p, s, out)) return true;
    *out = {operand::NUMBER, 0, 0};
    if (s == "%ctaid.x")
        out->kind = operand::BLOCK;
    else if (s == "%ntid.x")
        out->kind = operand::BLOCK_SIZE;
    else if (s == "%tid.x")
        out->kind = operand::THREAD;
    else {
        char *end;
        out->number =
            s[0] == '-' ? (uint64_t)strtoll(s.c_str(), &end, 0) : strtoull(s.c_str(), &end, 0);
        return !s.empty() && *end == 0;
    }
    return true;
}

// Parses "[%d3+16]", "[args+8]" or "[v]" into the name or register, and the offset.
bool address_of(const std::string &s, std::string *base, int64_t *offset) {
    if (s.size() < 3 || s[0] != '[' || s.back() != ']') return false;
    std::string inside = s.substr(1, s.size() - 2);
    size_t plus = inside.find('+');
    *base = trim(inside.substr(0, plus));
    *offset = plus == std::string::npos ? 0 : strtoll(inside.c_str() + plus + 1, NULL, 10);
    return true;
}

bool type_of(const std::string &s, enum type *out) {
    static const char *const names[] = {"b8", "b16", "b32", "b64", "s8",  "s16", "s32", "s64",
                                        "u8", "u16", "u32", "u64", "f16", "f32", "f64"};
    for (int t = 0; t < 15; t++)
        if (s == names[t]) {
            *out = (enum type)t;
            return true;
        }
    return false;
}

// Name, number of arguments, and allowed types. Names of rounded float operations end in .rn.
const struct {
    const char *name;
    enum action action;
    uint32_t n_args;
    const char *types;
} simple[] = {
    {"mov", MOV, 1, "b32 u32"},
    {"add", ADD, 2, "s32 s64"},
    {"add.rn", ADD, 2, "f32 f64"},
    {"sub", SUB, 2, "s32 s64"},
    {"sub.rn", SUB, 2, "f32 f64"},
    {"mul.lo", MUL_LO, 2, "s32 s64"},
    {"mul.hi", MUL_HI, 2, "u32"},
    {"mul.wide", MUL_WIDE, 2, "u32"},
    {"mul.rn", MUL_LO, 2, "f32 f64"},
    {"mad.lo", MAD_LO, 3, "s32"},
    {"div.rn", DIV, 2, "f32 f64"},
    {"fma.rn", FMA, 3, "f32 f64"},
    {"sqrt.rn", SQRT, 1, "f32 f64"},
    {"neg", NEG, 1, "s32 s64"},
    {"abs", ABS, 1, "s32 s64"},
    {"min", MIN, 2, "s32 s64 u32 u64 f32"},
    {"max", MAX, 2, "s32 s64 u32 u64 f32"},
    {"and", AND, 2, "b32 b64"},
    {"or", OR, 2, "b32 b64"},
    {"xor", XOR, 2, "b32 b64"},
    {"not", NOT, 1, "b32 b64"},
    {"shl", SHL, 2, "b32 b64"},
    {"shr", SHR, 2, "u32 u64"},
    {"bfe", BFE, 3, "s32 u32"},
    {"selp", SELP, 3, "b32 b64"},
    {"setp.eq", SETP, 2, "b32 s32 s64 f32"},
    {"setp.ne", SETP, 2, "s32"},
    {"setp.lt", SETP, 2, "s32 u32 s64 u64 f32"},
    {"setp.le", SETP, 2, "s32 u32 s64 u64 f32"},
    {"setp.ge", SETP, 2, "u32"},
    {"setp.nan", SETP, 2, "f32 f64"},
    {"cvta.to.global", MOV, 1, "u64"},
};

bool has_word(const char *words, const std::string &word) {
    return (" " + std::string(words) + " ").find(" " + word + " ") != std::string::npos;
}

// Conversions: to, from, rounding.
const char conversions[] = "u16.u32 u32.u16 f32.f16 rn.f16.f32 s64.s32 u64.u32 u32.u64 f64.f32 "
                           "rn.f32.f64 rn.f32.s32 rn.f32.u32 rn.f32.s64 rn.f32.u64 rzi.s32.f32 "
                           "rzi.u32.f32 rmi.f32.f32 rpi.f32.f32 rzi.f32.f32 rni.f32.f32";

bool parse_conversion(std::string rest, struct instr *i) {
    static const std::map<std::string, enum rounding> roundings = {
        {"rn", RN}, {"rzi", RZI}, {"rni", RNI}, {"rmi", RMI}, {"rpi", RPI}};
    if (!has_word(conversions, rest)) return false;
    i->action = CVT;
    size_t dot = rest.find('.');
    auto found = roundings.find(rest.substr(0, dot));
    if (found != roundings.end()) {
        i->rounding = found->second;
        rest = rest.substr(dot + 1);
        dot = rest.find('.');
    }
    return type_of(rest.substr(0, dot), &i->type) && type_of(rest.substr(dot + 1), &i->from);
}

bool parse_vector(struct parser *p, const std::string &s, uint32_t n, struct operand *out) {
    if (n == 1) return register_of(p, s, out);
    if (s.size() < 2 || s[0] != '{' || s.back() != '}') return false;
    auto parts = split(s.substr(1, s.size() - 2));
    for (uint32_t e = 0; e < n; e++)
        if (parts.size() != n || !register_of(p, parts[e], &out[e])) return false;
    return true;
}

// "ld.global.v4.b32", "st.global.b8", "ld.param.u32", "st.param.b64"
bool parse_memory(struct parser *p, const std::string &name, const std::vector<std::string> &parts,
                  struct instr *i) {
    bool loads = name.compare(0, 3, "ld.") == 0;
    std::string rest = name.substr(3), base;
    bool param = rest.compare(0, 6, "param.") == 0;
    rest = rest.substr(rest.find('.') + 1);
    i->n = 1;
    if (rest[0] == 'v') {
        i->n = rest[1] == '4' ? 4 : 2;
        rest = rest.substr(3);
    }
    if (!type_of(rest, &i->type) || parts.size() != 2 ||
        !address_of(parts[loads ? 1 : 0], &base, &i->offset) ||
        !parse_vector(p, parts[loads ? 0 : 1], i->n, i->to))
        return false;
    if (!param) {
        i->action = loads ? LOAD : STORE;
        return name.compare(3, 7, "global.") == 0 && register_of(p, base, &i->args[0]);
    }
    i->action = !loads ? STORE_ARG : base == "v" ? LOAD_RESULT : LOAD_PARAM;
    if (i->action == STORE_ARG) i->offset = base.size() == 2 && base[0] == 'a' ? base[1] - '0' : 3;
    if (i->action == LOAD_PARAM)
        return base == "args" && i->offset >= 0 &&
               (size_t)i->offset + bytes_of(i->type) <= p->ptx->args_size &&
               (size_t)i->offset % bytes_of(i->type) == 0;
    return i->n == 1 && i->offset < 3;
}

bool parse_call(const std::vector<std::string> &parts, struct instr *i) {
    i->action = CALL;
    if (parts.size() != 3) return false;
    for (auto &f : functions)
        if (parts[1] == f.name) i->function = f.function;
    return i->function != NULL;
}

bool parse_instr(struct parser *p, std::string text, int line) {
    struct instr i = {};
    i.line = line;
    if (text[0] == '@') {
        size_t space = text.find(' ');
        struct operand guard;
        i.is_guarded = true;
        i.if_not = text[1] == '!';
        if (!register_of(p, text.substr(i.if_not ? 2 : 1, space - (i.if_not ? 2 : 1)), &guard))
            return false;
        i.guard = guard.at;
        text = trim(text.substr(space));
    }
    if (text.back() != ';') return false;
    text.pop_back();
    size_t space = text.find_first_of(" \t");
    std::string name = text.substr(0, space);
    auto parts = split(space == std::string::npos ? "" : text.substr(space));
    bool ok = false;
    if (name == ".param") return true; // a parameter of a call
    if (name == "ret") {
        i.action = RET;
        ok = parts.empty();
    } else if (name == "bra") {
        i.action = BRA;
        ok = parts.size() == 1;
        if (ok) i.label = parts[0];
    } else if (name == "call.uni") {
        ok = parse_call(parts, &i);
    } else if (name.compare(0, 3, "ld.") == 0 || name.compare(0, 3, "st.") == 0) {
        ok = parse_memory(p, name, parts, &i);
    } else if (name.compare(0, 4, "cvt.") == 0) {
        ok = parse_conversion(name.substr(4), &i) && parts.size() == 2 &&
             register_of(p, parts[0], &i.to[0]) && operand_of(p, parts[1], &i.args[0]);
    } else {
        size_t dot = name.rfind('.');
        for (auto &s : simple) {
            if (dot == std::string::npos || name.substr(0, dot) != s.name ||
                !has_word(s.types, name.substr(dot + 1)) || !type_of(name.substr(dot + 1), &i.type))
                continue;
            static const std::map<std::string, enum condition> conditions = {
                {"eq", EQ}, {"ne", NE}, {"lt", LT}, {"le", LE}, {"ge", GE}, {"nan", NAN_}};
            i.action = s.action;
            if (s.action == SETP) i.condition = conditions.at(std::string(s.name).substr(5));
            ok = parts.size() == s.n_args + 1 && register_of(p, parts[0], &i.to[0]);
            for (uint32_t a = 0; a < s.n_args && ok; a++)
                ok = operand_of(p, parts[a + 1], &i.args[a]);
        }
    }
    if (ok) p->ptx->code.push_back(i);
    return ok;
}

// ".reg .b32 %r<12>;"
bool parse_registers(struct parser *p, const std::string &text) {
    static const char files[] = "rdph";
    char kind[8], file;
    unsigned n;
    if (sscanf(text.c_str(), ".reg .%7s %%%c<%u>;", kind, &file, &n) != 3) return false;
    const char *found = strchr(files, file);
    if (!found) return false;
    p->n[found - files] = n;
    return true;
}

bool parse_line(struct parser *p, const std::string &text, int line) {
    if (text.compare(0, 5, ".reg ") == 0) return parse_registers(p, text);
    if (text == "{" || text == "}") return true; // of the body, or around a call
    if (text.back() == ':') {
        p->labels[text.substr(0, text.size() - 1)] = (uint32_t)p->ptx->code.size();
        return true;
    }
    return parse_instr(p, text, line);
}

bool parse_module(struct parser *p, const char *text) {
    bool in_function = false, in_kernel = false;
    int line = 0;
    for (const char *at = text; *at;) {
        const char *end = at + strcspn(at, "\n");
        std::string s = trim(std::string(at, end));
        bool flush_left = *at == '}';
        at = *end ? end + 1 : end;
        line++;
        bool ok = true;
        char name[128];
        unsigned long long n;
        if (s.empty() || s.compare(0, 2, "//") == 0) continue;
        if (in_function)
            in_function = !flush_left;
        else if (s.compare(0, 5, ".func") == 0)
            in_function = true; // not parsed: the host's function replaces the body
        else if (s.compare(0, 8, ".version") == 0 || s.compare(0, 7, ".target") == 0 ||
                 s.compare(0, 13, ".address_size") == 0 || s.compare(0, 7, ".global") == 0 ||
                 s.compare(0, 12, ".extern .fun") == 0)
            ok = !in_kernel;
        else if (sscanf(s.c_str(), ".visible .entry %127[a-z_](", name) == 1) {
            ok = !in_kernel;
            in_kernel = true;
            p->ptx->name = name;
        } else if (sscanf(s.c_str(), ".param .align 8 .b8 args[%llu])", &n) == 1 && s.back() == ')')
            p->ptx->args_size = n;
        else if (sscanf(s.c_str(), ".maxntid %llu, 1, 1", &n) == 1)
            p->ptx->max_threads = (uint32_t)n;
        else
            ok = in_kernel && parse_line(p, s, line);
        if (!ok) {
            p->error = "line " + std::to_string(line) + ": " + s.substr(0, 100);
            return false;
        }
    }
    p->ptx->n_registers = p->n[0] + p->n[1] + p->n[2] + p->n[3] + 1;
    for (auto &i : p->ptx->code) {
        if (i.action != BRA) continue;
        auto found = p->labels.find(i.label);
        if (found == p->labels.end()) {
            p->error = "line " + std::to_string(i.line) + ": no label " + i.label;
            return false;
        }
        i.target = found->second;
    }
    p->error = "no kernel";
    return in_kernel && !p->ptx->code.empty();
}

} // namespace

struct ree_emulator_ptx *ree_emulator_ptx_parse(const char *text, char *error, size_t size) {
    struct parser p = {};
    p.ptx = new ree_emulator_ptx();
    if (parse_module(&p, text)) return p.ptx;
    snprintf(error, size, "PTX, %s", p.error.c_str());
    delete p.ptx;
    return NULL;
}

void ree_emulator_ptx_destroy(struct ree_emulator_ptx *ptx) {
    delete ptx;
}
const char *ree_emulator_ptx_name(const struct ree_emulator_ptx *ptx) {
    return ptx->name.c_str();
}
size_t ree_emulator_ptx_args_size(const struct ree_emulator_ptx *ptx) {
    return ptx->args_size;
}
uint32_t ree_emulator_ptx_max_threads(const struct ree_emulator_ptx *ptx) {
    return ptx->max_threads;
}
