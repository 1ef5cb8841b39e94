// Decodes a statement: finds its instruction by name, and its operands' rows.
#include "ptx_lanes.h"
#include "ptx_parse.h"

#include "launch.h"

#include <stdlib.h>

namespace ree_ptx {

namespace {

const struct entry *find_entry(const std::string &name) {
    static const std::unordered_map<std::string, struct entry> table = [] {
        std::vector<struct entry> entries;
        std::unordered_map<std::string, struct entry> made;
        add_integer_entries(entries);
        add_float_entries(entries);
        add_conversion_entries(entries);
        for (auto &e : entries)
            made[e.name] = e;
        return made;
    }();
    auto found = table.find(name);
    return found == table.end() ? NULL : &found->second;
}

bool starts(const std::string &s, const char *with) {
    return s.compare(0, strlen(with), with) == 0;
}

// Returns the index of a word in a list, or -1.
int index_of(const std::string &word, const std::vector<std::string> &words) {
    for (size_t i = 0; i < words.size(); i++)
        if (words[i] == word) return (int)i;
    return -1;
}

bool parse_special(const std::string &name, uint32_t *at) {
    static const char *const vectors[] = {"%tid.", "%ctaid.", "%ntid.", "%nctaid."};
    for (uint32_t v = 0; v < 4; v++)
        if (starts(name, vectors[v]) && name.size() == strlen(vectors[v]) + 1) {
            *at = (3 * v + (uint32_t)(name.back() - 'x')) * ROW;
            return name.back() >= 'x' && name.back() <= 'z';
        }
    if (name != "%laneid" && name != "%warpid") return false;
    *at = (name == "%laneid" ? LANE_ID : WARP_ID) * ROW;
    return true;
}

bool parse_number(const std::string &s, uint64_t *value) {
    if (s.size() > 2 && s[0] == '0' && strchr("fFdD", s[1])) { // the bits of a float
        *value = strtoull(s.c_str() + 2, NULL, 16);
        return true;
    }
    char *end;
    *value = s[0] == '-' ? (uint64_t)strtoll(s.c_str(), &end, 0) : strtoull(s.c_str(), &end, 0);
    if (*end == 'U') end++;
    return !s.empty() && *end == 0;
}

// A source operand in a row of 32 or 64 bits.
bool source(struct parser *p, const std::string &s, bool is_wide, uint32_t *at) {
    enum file file;
    uint64_t value;
    struct parameter parameter;
    if (find_register(p, s, &file, at)) return file == (is_wide ? WIDE : NARROW);
    if (parse_special(s, at)) return !is_wide;
    if (s == p->kernel_parameter && p->in_kernel)
        value = (uint64_t)ree_emulator::arguments;
    else if (find_parameter(p, s, &parameter))
        return false;
    else if (!parse_number(s, &value) && !find_symbol(p, s, &value))
        return false;
    *at = constant_row(p, value, is_wide);
    return true;
}
bool target(struct parser *p, const std::string &s, bool is_wide, uint32_t *at) {
    enum file file;
    return find_register(p, s, &file, at) && file == (is_wide ? WIDE : NARROW);
}
bool predicate(struct parser *p, const std::string &s, uint32_t *at) {
    enum file file;
    uint64_t value;
    if (find_register(p, s, &file, at)) return file == PREDICATE;
    if (!parse_number(s, &value)) return false;
    *at = constant_predicate(value != 0);
    return true;
}

// "[%rd3+16]", "[name]", "[4096]"
bool address(struct parser *p, const std::string &s, std::string *base, int64_t *offset) {
    if (s.size() < 3 || s[0] != '[' || s.back() != ']') return false;
    const std::string inside = s.substr(1, s.size() - 2);
    const size_t plus = inside.find('+');
    *base = trim(inside.substr(0, plus));
    *offset = plus == std::string::npos ? 0 : strtoll(inside.c_str() + plus + 1, NULL, 10);
    (void)p;
    return true;
}
bool address_row(struct parser *p, const std::string &s, struct instr *i, uint32_t *at) {
    std::string base;
    enum file file;
    if (!address(p, s, &base, &i->offset)) return false;
    if (find_register(p, base, &file, at)) {
        i->is_base_wide = file == WIDE;
        return file != PREDICATE;
    }
    i->is_base_wide = true;
    return source(p, base, true, at);
}

// "{%r1, %r2}", or one register for n = 1; *is_wide: their size.
bool vector(struct parser *p, const std::string &s, uint32_t n, bool writes, uint32_t *at,
            bool *is_wide) {
    std::vector<std::string> parts = {s};
    if (n > 1) {
        if (s.size() < 2 || s[0] != '{' || s.back() != '}') return false;
        parts = split(s.substr(1, s.size() - 2));
    }
    if (parts.size() != n) return false;
    enum file file;
    for (uint32_t e = 0; e < n; e++) {
        if (find_register(p, parts[e], &file, &at[e])) {
            if (file == PREDICATE || (e > 0 && (file == WIDE) != *is_wide)) return false;
            *is_wide = file == WIDE;
        } else if (writes || !source(p, parts[e], *is_wide, &at[e])) {
            return false;
        }
    }
    return true;
}

bool memory_type(const std::string &s, struct instr *i) {
    if (s.size() < 2 || !strchr("busf", s[0])) return false;
    const uint64_t bits = strtoull(s.c_str() + 1, NULL, 10);
    i->size = (uint32_t)bits / 8;
    i->is_signed = s[0] == 's';
    return bits == 8 || bits == 16 || bits == 32 || bits == 64;
}

bool decode_parameter(struct parser *p, const struct statement &s, struct instr *i, bool loads) {
    std::string base;
    struct parameter parameter;
    if (!address(p, s.operands[!loads ? 0 : 1], &base, &i->offset)) return false;
    if (p->in_kernel && base == p->kernel_parameter) {
        i->run = load_argument;
        i->number = (uint32_t)i->offset;
        const uint64_t bytes = i->n * i->size;
        return loads && i->offset >= 0 && (uint64_t)i->offset + bytes <= p->ptx->args_size &&
               (uint64_t)i->offset % bytes == 0;
    }
    if (!find_parameter(p, base, &parameter)) { // an address in a register
        i->run = load;
        return loads && address_row(p, s.operands[1], i, &i->from[0]);
    }
    i->run = loads ? load_parameter : store_parameter;
    i->from[0] = parameter.at;
    i->number = parameter.size;
    return i->offset >= 0 && (uint64_t)i->offset + i->n * i->size <= parameter.size;
}

// "ld.global.nc.v4.u32", "st.shared.f32", "ld.u8"
bool decode_access(struct parser *p, const struct statement &s,
                   const std::vector<std::string> &parts, struct instr *i) {
    const bool loads = parts[0] == "ld";
    i->n = 1;
    i->space = GENERIC;
    for (size_t k = 1; k < parts.size(); k++) {
        const std::string &part = parts[k];
        const int space = index_of(part, {"", "global", "shared", "param"});
        if (space > 0)
            i->space = (enum space)space;
        else if (part == "nc")
            i->is_nc = true;
        else if (part == "v2" || part == "v4")
            i->n = (uint32_t)(part[1] - '0');
        else if (part == "relaxed" || part == "gpu" || part == "volatile" || part == "weak")
            continue;
        else if (k + 1 < parts.size() || !memory_type(part, i))
            return false;
    }
    if (s.operands.size() != 2 || i->size == 0 || i->n * i->size > 16) return false;
    i->is_wide = !loads && i->size == 8; // for constants
    const std::string &values = s.operands[loads ? 0 : 1];
    if (!vector(p, values, i->n, loads, loads ? i->to : i->from + 1, &i->is_wide)) return false;
    if (i->size == 8 && !i->is_wide) return false;
    if (i->space == PARAM) return decode_parameter(p, s, i, loads);
    i->run = loads ? load : store;
    return address_row(p, s.operands[loads ? 1 : 0], i, &i->from[0]);
}

// "atom.global.add.u32", "red.shared.max.s32"
bool decode_atomic(struct parser *p, const struct statement &s,
                   const std::vector<std::string> &parts, struct instr *i) {
    const bool loads = parts[0] == "atom";
    int operation = -1;
    for (size_t k = 1; k + 1 < parts.size(); k++) {
        const int space = index_of(parts[k], {"", "global", "shared"});
        const int op = index_of(parts[k], {"add", "min", "max", "and", "or", "xor", "exch", "cas"});
        if (space > 0) i->space = (enum space)space;
        if (op >= 0) operation = op;
    }
    if (operation < 0 || !memory_type(parts.back(), i) || i->size < 4) return false;
    i->number = (uint32_t)operation;
    i->is_nc = !loads;
    i->is_wide = i->size == 8;
    i->run = atomic;
    const size_t first = loads ? 1 : 0, n = operation == 7 ? 2 : 1;
    if (s.operands.size() != first + 1 + n) return false;
    if (loads && !target(p, s.operands[0], i->is_wide, &i->to[0])) return false;
    for (size_t k = 0; k < n; k++)
        if (!source(p, s.operands[first + 1 + k], i->is_wide, &i->from[1 + k])) return false;
    return address_row(p, s.operands[first], i, &i->from[0]);
}

bool decode_async(struct parser *p, const struct statement &s, struct instr *i) {
    uint64_t number = 0;
    if (s.opcode == "cp.async.commit_group") {
        i->run = async_commit;
        return s.operands.empty();
    }
    if (s.opcode == "cp.async.wait_group" || s.opcode == "cp.async.wait_all") {
        i->run = async_wait;
        if (s.operands.size() == 1 && !parse_number(s.operands[0], &number)) return false;
        i->number = (uint32_t)number;
        return true;
    }
    const bool known =
        s.opcode == "cp.async.ca.shared.global" || s.opcode == "cp.async.cg.shared.global";
    if (!known || s.operands.size() < 3 || !parse_number(s.operands[2], &number)) return false;
    struct instr from = {};
    i->run = async_copy;
    i->size = (uint32_t)number;
    if (!address_row(p, s.operands[1], &from, &i->from[1]) || !from.is_base_wide ||
        !address_row(p, s.operands[0], i, &i->from[0]))
        return false;
    i->number = (uint32_t)from.offset;
    i->is_signed = s.operands.size() == 4; // has a number of bytes to read
    if (i->is_signed && !source(p, s.operands[3], false, &i->from[2])) return false;
    return (number == 4 || number == 8 || number == 16) &&
           (number == 16 || s.opcode != "cp.async.cg.shared.global");
}

// bar.sync, bar.red.or.pred, bar.warp.sync
bool decode_barrier(struct parser *p, const struct statement &s,
                    const std::vector<std::string> &parts, struct instr *i) {
    uint64_t number;
    if (s.opcode == "bar.warp.sync") {
        i->flow = CONVERGE;
        i->run = warp_barrier;
        return s.operands.size() == 1 && source(p, s.operands[0], false, &i->mask);
    }
    i->flow = BARRIER;
    if (s.opcode == "bar.sync" || s.opcode == "barrier.sync.aligned") {
        i->n = 0;
        if (s.operands.size() != 1 || !parse_number(s.operands[0], &number)) return false;
        i->number = (uint32_t)number;
        return true;
    }
    if (parts.size() < 3 || parts[1] != "red" || s.operands.size() != 3) return false;
    i->n = 1 + (uint32_t)index_of(parts[2], {"or", "and", "popc"});
    if (i->n == 0 || !parse_number(s.operands[1], &number)) return false;
    i->number = (uint32_t)number;
    std::string p_name = s.operands[2];
    i->is_signed = p_name[0] == '!';
    if (i->is_signed) p_name = trim(p_name.substr(1));
    return predicate(p, p_name, &i->from[0]) &&
           (i->n == 3 ? target(p, s.operands[0], false, &i->to[0])
                      : predicate(p, s.operands[0], &i->to[0]));
}

bool decode_exchange(struct parser *p, const struct statement &s,
                     const std::vector<std::string> &parts, struct instr *i) {
    i->flow = CONVERGE;
    if (parts[0] == "shfl") {
        const int mode = index_of(parts[2], {"idx", "up", "down", "bfly"});
        if (mode < 0 || s.operands.size() != 5) return false;
        i->run = shuffle;
        i->number = (uint32_t)mode;
        auto names = split_at(s.operands[0], '|');
        i->is_wide = names.size() == 2;
        if (i->is_wide && !predicate(p, trim(names[1]), &i->to[1])) return false;
        return target(p, trim(names[0]), false, &i->to[0]) &&
               source(p, s.operands[1], false, &i->from[0]) &&
               source(p, s.operands[2], false, &i->from[1]) &&
               source(p, s.operands[3], false, &i->from[2]) &&
               source(p, s.operands[4], false, &i->mask);
    }
    const int mode = index_of(parts[2], {"all", "any", "uni", "ballot"});
    if (mode < 0 || s.operands.size() != 3) return false;
    i->run = vote;
    i->number = (uint32_t)mode;
    i->is_signed = s.operands[1][0] == '!';
    return predicate(p, trim(s.operands[1].substr(i->is_signed)), &i->from[0]) &&
           source(p, s.operands[2], false, &i->mask) &&
           (mode == 3 ? target(p, s.operands[0], false, &i->to[0])
                      : predicate(p, s.operands[0], &i->to[0]));
}

bool decode_matrices(struct parser *p, const struct statement &s, struct instr *i) {
    bool is_wide = false;
    i->flow = CONVERGE;
    i->mask = constant_row(p, ALL_LANES, false);
    if (starts(s.opcode, "ldmatrix.sync.aligned.m8n8.x")) {
        const char n = s.opcode[28];
        i->run = load_matrices;
        i->space = SHARED;
        i->n = (uint32_t)(n - '0');
        return s.operands.size() == 2 && (n == '1' || n == '2' || n == '4') &&
               s.opcode.substr(29) == ".shared.b16" &&
               vector(p, s.operands[0], i->n, true, i->to, &is_wide) && !is_wide &&
               address_row(p, s.operands[1], i, &i->from[0]);
    }
    const std::string prefix = "mma.sync.aligned.m16n8k32.row.col.s32.";
    if (!starts(s.opcode, prefix.c_str()) || s.operands.size() != 4) return false;
    const int mode = index_of(s.opcode.substr(prefix.size()),
                              {"u8.u8.s32", "s8.u8.s32", "u8.s8.s32", "s8.s8.s32"});
    if (mode < 0) return false;
    i->run = multiply_bytes;
    i->number = (uint32_t)mode;
    if (!vector(p, s.operands[0], 4, true, i->to, &is_wide) ||
        !vector(p, s.operands[1], 4, false, i->from, &is_wide) ||
        !vector(p, s.operands[2], 2, false, i->from + 4, &is_wide) ||
        !vector(p, s.operands[3], 4, false, i->from + 6, &is_wide) || is_wide)
        return false;
    return true;
}

// "call (result), name, (argument, argument)"; either list may be missing
bool decode_call(struct parser *p, const struct statement &s, struct instr *i) {
    struct call call = {};
    bool has_name = false;
    i->flow = CALL;
    for (auto &operand : s.operands) {
        if (operand[0] != '(') {
            if (has_name || !find_function(p, operand, &call.function)) return false;
            has_name = true;
            continue;
        }
        for (auto &name : split(operand.substr(1, operand.size() - 2))) {
            struct parameter parameter;
            if (!find_parameter(p, name, &parameter)) return false;
            (has_name ? call.args : call.results).push_back(parameter);
        }
    }
    i->target = (uint32_t)p->ptx->calls.size();
    p->ptx->calls.push_back(call);
    return has_name;
}

bool decode_table(struct parser *p, const std::string &name,
                  const std::vector<std::string> &operands, struct instr *i) {
    const struct entry *e = find_entry(name);
    if (!e || operands.size() != strlen(e->operands)) return false;
    i->run = e->run;
    const size_t n_to = name == "mov.b64.divide" || name == "mov.b32.divide" ? 2 : 1;
    for (size_t k = 0; k < operands.size(); k++) {
        const char kind = e->operands[k];
        uint32_t *at = k < n_to ? &i->to[k] : &i->from[k - n_to];
        const bool ok = kind == 'p' ? predicate(p, operands[k], at)
                        : k < n_to  ? target(p, operands[k], kind == 'l', at)
                                    : source(p, operands[k], kind == 'l', at);
        if (!ok) return false;
        if (k >= n_to && kind == 'l' && e->operands[0] == 'l') p->flows.push_back({i->to[0], *at});
    }
    uint64_t plus = 0;
    const bool adds = (name == "add.s64" || name == "add.u64") && parse_number(operands[2], &plus);
    if (adds || name == "mov.u64" || name == "mov.b64")
        p->copies.push_back({i->to[0], i->from[0], plus});
    else if (e->operands[0] == 'l')
        p->computed.push_back(i->to[0]);
    return true;
}

bool decode_move(struct parser *p, const struct statement &s, struct instr *i) {
    if (s.operands.size() != 2) return false;
    const std::string &to = s.operands[0], &from = s.operands[1];
    if (to[0] == '{') {
        auto parts = split(to.substr(1, to.size() - 2));
        parts.push_back(from);
        return decode_table(p, s.opcode + ".divide", parts, i);
    }
    if (from[0] == '{') {
        auto parts = split(from.substr(1, from.size() - 2));
        parts.insert(parts.begin(), to);
        return decode_table(p, s.opcode + ".join", parts, i);
    }
    return decode_table(p, s.opcode, s.operands, i);
}

// Only addresses in shared memory are not generic.
bool decode_cvta(struct parser *p, const struct statement &s, struct instr *i) {
    if (s.operands.size() != 2) return false;
    const uint64_t base = (uint64_t)ree_emulator::shared;
    const std::string name = s.opcode == "cvta.shared.u64"      ? "add.u64"
                             : s.opcode == "cvta.to.shared.u64" ? "sub.u64"
                                                                : "mov.u64";
    if (name != "mov.u64")
        return decode_table(p, name, {s.operands[0], s.operands[1], std::to_string(base)}, i);
    return s.opcode.find("local") == std::string::npos && decode_table(p, name, s.operands, i);
}

bool decode_flow(struct parser *p, const struct statement &s, struct instr *i) {
    if (s.opcode == "bra" || s.opcode == "bra.uni") {
        i->flow = BRANCH;
        if (s.operands.size() != 1) return false;
        p->jumps.push_back({(uint32_t)p->ptx->code.size(), s.operands[0]});
        return true;
    }
    if (s.opcode == "call" || s.opcode == "call.uni") return decode_call(p, s, i);
    i->flow = s.opcode == "exit" || p->in_kernel ? EXIT : RETURN;
    return s.operands.empty() && (s.opcode == "ret" || s.opcode == "ret.uni" || s.opcode == "exit");
}

bool decode_instr(struct parser *p, const struct statement &s, struct instr *i) {
    const auto parts = split_at(s.opcode, '.');
    const std::string &base = parts[0];
    if (base == "bra" || base == "call" || base == "ret" || base == "exit")
        return decode_flow(p, s, i);
    if (base == "ld" || base == "st") return decode_access(p, s, parts, i);
    if (base == "atom" || base == "red") return decode_atomic(p, s, parts, i);
    if (starts(s.opcode, "cp.async")) return decode_async(p, s, i);
    if (base == "bar" || base == "barrier") return decode_barrier(p, s, parts, i);
    if ((base == "shfl" || base == "vote") && parts.size() > 2)
        return decode_exchange(p, s, parts, i);
    if (base == "mma" || base == "ldmatrix") return decode_matrices(p, s, i);
    if (base == "mov") return decode_move(p, s, i);
    if (base == "cvta") return decode_cvta(p, s, i);
    if (s.opcode == "membar.gl" || s.opcode == "membar.sys" || starts(s.opcode, "fence.")) {
        i->run = fence;
        return true;
    }
    return decode_table(p, s.opcode, s.operands, i) ||
           (base == "cvt" && decode_table(p, s.opcode + ".wide", s.operands, i));
}

} // namespace

bool decode(struct parser *p, const struct statement &s) {
    struct instr i = {};
    i.line = s.line;
    i.used_bytes = p->used_bytes;
    p->used_bytes = ~0u;
    auto found = p->opcodes.find(s.opcode);
    if (found == p->opcodes.end()) {
        found = p->opcodes.emplace(s.opcode, (uint32_t)p->ptx->opcodes.size()).first;
        p->ptx->opcodes.push_back(s.opcode);
    }
    i.opcode = found->second;
    i.is_guarded = s.is_guarded;
    i.if_not = s.if_not;
    if (s.is_guarded && !predicate(p, s.guard, &i.guard)) return false;
    if (!decode_instr(p, s, &i)) return false;
    p->ptx->code.push_back(i);
    return true;
}

} // namespace ree_ptx
