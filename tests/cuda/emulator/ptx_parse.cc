// Parses a kernel and the functions that it calls.
#include "ptx_parse.h"

#include "ptx_lanes.h"

#include "launch.h"

#include <cxxabi.h>
#include <stdio.h>
#include <stdlib.h>

namespace ree_ptx {

uint32_t new_row(struct parser *p, bool is_wide) {
    const uint32_t at = p->ptx->register_bytes;
    p->ptx->register_bytes += is_wide ? 2 * ROW : ROW;
    return at;
}

uint32_t constant_row(struct parser *p, uint64_t value, bool is_wide) {
    if (!is_wide) value = (uint32_t)value;
    auto found = p->constants.find({value, is_wide});
    if (found != p->constants.end()) return found->second;
    const uint32_t at = new_row(p, is_wide);
    p->ptx->constants.push_back({at, is_wide, value});
    p->constants[{value, is_wide}] = at;
    return at;
}

uint32_t constant_predicate(bool value) {
    return value;
}

struct parameter new_parameter(struct parser *p, uint64_t size) {
    const struct parameter made = {p->ptx->param_bytes, (uint32_t)(size + 15) / 16 * 16};
    p->ptx->param_bytes += made.size;
    return made;
}

bool find_register(struct parser *p, const std::string &name, enum file *file, uint32_t *at) {
    size_t digits = name.size();
    while (digits > 1 && name[digits - 1] >= '0' && name[digits - 1] <= '9')
        digits--;
    const std::string prefix = name.substr(0, digits);
    const size_t number = digits < name.size() ? strtoul(name.c_str() + digits, NULL, 10) : 0;
    for (size_t s = p->scopes.size(); s-- > 0;) {
        auto found = p->scopes[s].registers.find(name);
        size_t index = 0;
        if (found == p->scopes[s].registers.end()) {
            found = p->scopes[s].registers.find(prefix);
            index = number;
        }
        if (found == p->scopes[s].registers.end() || index >= found->second.at.size()) continue;
        struct registers &r = found->second;
        if (r.at[index] == ~0u)
            r.at[index] = r.file == PREDICATE ? p->ptx->n_predicates++ : new_row(p, r.file == WIDE);
        *file = r.file;
        *at = r.at[index];
        return true;
    }
    return false;
}

bool find_parameter(struct parser *p, const std::string &name, struct parameter *out) {
    for (size_t s = p->scopes.size(); s-- > 0;) {
        auto found = p->scopes[s].parameters.find(name);
        if (found == p->scopes[s].parameters.end()) continue;
        *out = found->second;
        return true;
    }
    return false;
}

namespace {

// Returns a variable's name in the source, for example "tile", for its mangled name in the PTX.
std::string readable(const std::string &name) {
    int status;
    char *text = abi::__cxa_demangle(name.c_str(), NULL, NULL, &status);
    std::string result = status == 0 && text ? text : name;
    free(text);
    const size_t colon = result.rfind("::");
    return colon == std::string::npos ? result : result.substr(colon + 2);
}

// Between arrays in shared memory there is a gap, so that an index just outside an array is found.
#define GAP 256u

bool place_variable(struct parser *p, const struct declaration &d, uint64_t *value) {
    if (d.space == ".shared" && d.size == 0) { // its size is the launch's
        p->ptx->has_dynamic = true;
        p->ptx->dynamic_name = readable(d.name);
        *value = REE_EMULATOR_DYNAMIC_AT;
    } else if (d.space == ".shared") {
        uint64_t at = 1024, used = d.size;
        for (auto &s : p->ptx->shared) {
            at = s.at + (s.size + GAP - 1) / GAP * GAP + GAP;
            used += s.size;
        }
        if (used > REE_EMULATOR_STATIC_SHARED || at + d.size > REE_EMULATOR_DYNAMIC_AT) {
            p->error = "too much shared memory: " + d.name;
            return false;
        }
        p->ptx->shared.push_back({readable(d.name), d.size, (uint32_t)at});
        *value = at;
    } else if (d.space == ".global" || d.space == ".const") {
        p->ptx->tables.push_back({readable(d.name), {}, d.size});
        auto &memory = p->ptx->tables.back().memory;
        memory.resize((d.size + 7) / 8);
        if (!d.data.empty())
            memcpy(memory.data(), d.data.data(), d.data.size() < d.size ? d.data.size() : d.size);
        *value = (uint64_t)memory.data();
    } else {
        return false;
    }
    p->symbols[d.name] = *value;
    return true;
}

bool declare_registers(struct parser *p, const std::string &text) {
    char type[16], names[4096];
    if (sscanf(text.c_str(), ".reg .%15s %4095[^\n]", type, names) != 2) return false;
    const std::string kind = type;
    const enum file file = kind == "pred" ? PREDICATE
                           : kind == "b64" || kind == "u64" || kind == "s64" || kind == "f64"
                               ? WIDE
                               : NARROW;
    for (auto &name : split(names)) {
        const size_t open = name.find('<');
        const size_t n = open == std::string::npos ? 1 : strtoul(name.c_str() + open + 1, NULL, 10);
        if (n == 0 || n > 1 << 20) return false;
        p->scopes.back().registers[name.substr(0, open)] = {file, open != std::string::npos,
                                                            std::vector<uint32_t>(n, ~0u)};
    }
    return true;
}

bool parse_directive(struct parser *p, const std::string &text) {
    struct declaration d;
    uint64_t ignored;
    if (text.compare(0, 5, ".reg ") == 0) return declare_registers(p, text);
    unsigned mask;
    if (sscanf(text.c_str(), ".pragma \"used_bytes_mask %u\"", &mask) == 1) p->used_bytes = mask;
    if (text.compare(0, 7, ".pragma") == 0 || text.compare(0, 4, ".loc") == 0) return true;
    if (!parse_declaration(text, &d)) return false;
    if (d.space != ".param") return place_variable(p, d, &ignored);
    p->scopes.back().parameters[d.name] = new_parameter(p, d.size);
    return true;
}

bool parse_body(struct parser *p, const struct item &item) {
    struct reader r = {item.body, item.end - 1, item.body_line};
    struct statement s;
    std::string text;
    p->labels.clear();
    p->jumps.clear();
    for (;;) {
        const int line = r.line;
        bool ok = true;
        switch (next(&r, &s, &text)) {
        case END:
            for (auto &jump : p->jumps) {
                auto found = p->labels.find(jump.second);
                if (found == p->labels.end()) {
                    p->error = "no label " + jump.second;
                    return false;
                }
                p->ptx->code[jump.first].target = found->second;
            }
            return true;
        case OPEN: p->scopes.emplace_back(); break;
        case CLOSE: p->scopes.pop_back(); break;
        case LABEL: p->labels[text] = (uint32_t)p->ptx->code.size(); break;
        case DIRECTIVE: ok = parse_directive(p, text); break;
        case STATEMENT: ok = decode(p, s); break;
        }
        if (ok) continue;
        p->error = "line " + std::to_string(r.line) + ", '" + trim(text) + "' is not supported" +
                   (p->error.empty() ? "" : ": " + p->error);
        (void)line;
        return false;
    }
}

bool parse_function(struct parser *p, size_t index) {
    const std::string name = p->ptx->functions[index].name;
    for (auto &item : p->items) {
        if (item.kind != item::FUNCTION || item.name != name || !item.body) continue;
        std::vector<struct declaration> params, results;
        if (!parse_signature(item, &params, &results)) break;
        p->scopes.assign(1, {});
        for (auto &d : params) {
            const struct parameter made = new_parameter(p, d.size);
            p->scopes[0].parameters[d.name] = made;
            p->ptx->functions[index].args.push_back(made);
        }
        for (auto &d : results) {
            const struct parameter made = new_parameter(p, d.size);
            p->scopes[0].parameters[d.name] = made;
            p->ptx->functions[index].results.push_back(made);
        }
        p->ptx->functions[index].first = (uint32_t)p->ptx->code.size();
        p->in_kernel = false;
        return parse_body(p, item);
    }
    p->ptx->functions[index].host = find_host_function(name);
    p->error = "no function " + name;
    return p->ptx->functions[index].host != NULL;
}

bool parse_kernel(struct parser *p, const char *kernel) {
    for (auto &item : p->items) {
        if (item.kind != item::KERNEL || (kernel && item.name != kernel) || !item.body) continue;
        std::vector<struct declaration> params, results;
        if (!parse_signature(item, &params, &results) || params.size() != 1) {
            p->error = "a kernel that does not have one parameter";
            return false;
        }
        p->ptx->name = item.name;
        p->ptx->args_size = params[0].size;
        p->ptx->max_threads = max_threads_of(item);
        p->kernel_parameter = params[0].name;
        p->in_kernel = true;
        p->scopes.assign(1, {});
        p->ptx->register_bytes = N_SPECIAL * ROW;
        p->ptx->n_predicates = 2; // false and true
        if (!parse_body(p, item)) return false;
        for (size_t f = 0; f < p->ptx->functions.size(); f++)
            if (!parse_function(p, f)) return false;
        find_origins(p);
        return true;
    }
    p->error = "no kernel";
    return false;
}

} // namespace

bool find_symbol(struct parser *p, const std::string &name, uint64_t *value) {
    auto found = p->symbols.find(name);
    if (found != p->symbols.end()) {
        *value = found->second;
        return true;
    }
    for (auto &item : p->items) {
        struct declaration d;
        if (item.kind == item::VARIABLE && item.name == name)
            return parse_declaration(std::string(item.begin, (size_t)(item.end - 1 - item.begin)),
                                     &d) &&
                   place_variable(p, d, value);
    }
    return false;
}

bool find_function(struct parser *p, const std::string &name, uint32_t *out) {
    auto &functions = p->ptx->functions;
    for (*out = 0; *out < functions.size(); ++*out)
        if (functions[*out].name == name) return true;
    functions.push_back({name, 0, {}, {}, NULL});
    return true;
}

} // namespace ree_ptx

using namespace ree_ptx;

struct ree_emulator_ptx *ree_emulator_ptx_parse(const char *text, const char *kernel, char *error,
                                                size_t size) {
    struct parser p = {};
    if (!ree_emulator::make_shared()) {
        snprintf(error, size, "no memory for threads");
        return NULL;
    }
    p.ptx = new ree_emulator_ptx();
    p.used_bytes = ~0u;
    if (!split_module(text, &p.items))
        p.error = "a body without an end";
    else if (parse_kernel(&p, kernel))
        return p.ptx;
    snprintf(error, size, "PTX, %s%s%s", kernel ? kernel : "", kernel ? ": " : "", p.error.c_str());
    delete p.ptx;
    return NULL;
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
