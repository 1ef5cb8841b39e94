// A module while it is parsed: the names that a statement may use, and the code made so far.
#ifndef REE_EMULATOR_PTX_PARSE_H
#define REE_EMULATOR_PTX_PARSE_H

#include "ptx_code.h"
#include "ptx_text.h"

#include <map>
#include <unordered_map>

namespace ree_ptx {

enum file { NARROW, WIDE, PREDICATE }; // registers of up to 32 bits, of 64 bits, of one

// Registers %r0 ... %r<n-1>, or one register.
struct registers {
    enum file file;
    bool is_range;
    std::vector<uint32_t> at; // row, or predicate; ~0: not yet used
};

struct scope {
    std::unordered_map<std::string, struct registers> registers;
    std::unordered_map<std::string, struct parameter> parameters;
};

// Row `to` is row `from` plus a constant.
struct copy {
    uint32_t to, from;
    uint64_t plus;
};

struct parser {
    struct ree_emulator_ptx *ptx;
    std::vector<struct item> items;
    std::vector<struct scope> scopes;
    std::string kernel_parameter; // name of the kernel's argument
    bool in_kernel;
    int function; // index of the function that is being parsed; -1: the kernel
    std::unordered_map<std::string, uint32_t> labels;
    std::vector<std::pair<uint32_t, std::string>> jumps; // instructions whose label is not resolved
    std::map<std::pair<uint64_t, bool>, uint32_t> constants;
    std::unordered_map<std::string, uint32_t> opcodes;
    std::unordered_map<std::string, uint64_t> symbols; // variables in use, and their addresses
    std::vector<std::pair<uint32_t, uint32_t>> flows;  // 64-bit rows, and rows that they depend on
    std::vector<struct copy> copies;
    std::vector<uint32_t> computed; // rows that an instruction other than a copy writes
    uint32_t used_bytes;            // of the next load; ~0: all
    std::string error;
};

uint32_t new_row(struct parser *p, bool is_wide);
uint32_t constant_row(struct parser *p, uint64_t value, bool is_wide);
uint32_t constant_predicate(bool value); // predicates 0 and 1
struct parameter new_parameter(struct parser *p, uint64_t size);
// Returns false if there is no such register.
bool find_register(struct parser *p, const std::string &name, enum file *file, uint32_t *at);
bool find_parameter(struct parser *p, const std::string &name, struct parameter *out);
// Returns the address of a variable of the module in its space.
bool find_symbol(struct parser *p, const std::string &name, uint64_t *value);
// Returns the index of a function; it is parsed later.
bool find_function(struct parser *p, const std::string &name, uint32_t *out);

// ptx_decode.cc
bool decode(struct parser *p, const struct statement &s);
// ptx_origin.cc
void find_origins(struct parser *p);
// ptx_host.cc
host_function *find_host_function(const std::string &name);

} // namespace ree_ptx

#endif
