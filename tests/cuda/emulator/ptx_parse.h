// The state of parsing a PTX module: the names that a statement may use, and the code made so far.
#ifndef REE_EMULATOR_PTX_PARSE_H
#define REE_EMULATOR_PTX_PARSE_H

#include "ptx_code.h"
#include "ptx_text.h"

#include <map>
#include <unordered_map>

namespace ree_ptx {

enum file { NARROW, WIDE, PREDICATE }; // registers of up to 32 bits, of 64 bits, of 1 bit

// A declaration of registers: %r0 ... %r<n-1> (is_range), or one register.
struct registers {
    enum file file;
    bool is_range;
    std::vector<uint32_t> at; // per register: its row, or index of its predicate; ~0: unused
};

struct scope {
    std::unordered_map<std::string, struct registers> registers;
    std::unordered_map<std::string, struct parameter> parameters;
};

// An instruction that sets row `to` to row `from` plus a constant.
struct copy {
    uint32_t to, from;
    uint64_t plus;
};

struct parser {
    struct ree_emulator_ptx *ptx;
    std::vector<struct item> items;
    std::vector<struct scope> scopes;
    std::string kernel_parameter; // name of the kernel's parameter
    bool in_kernel;
    std::unordered_map<std::string, uint32_t> labels;
    // Branches whose target is not known yet: index of the instruction, name of the label.
    std::vector<std::pair<uint32_t, std::string>> jumps;
    std::map<std::pair<uint64_t, bool>, uint32_t> constants;
    std::unordered_map<std::string, uint32_t> opcodes;
    std::unordered_map<std::string, uint64_t> symbols; // used variables: name, address
    std::vector<std::pair<uint32_t, uint32_t>>
        flows; // pairs of 64-bit rows; the first depends on the second
    std::vector<struct copy> copies;
    std::vector<uint32_t> computed; // rows that an instruction other than a copy writes
    uint32_t used_bytes;            // instr.used_bytes of the next load; ~0: all
    std::string error;
};

uint32_t new_row(struct parser *p, bool is_wide);
uint32_t constant_row(struct parser *p, uint64_t value, bool is_wide);
// Returns the index of the predicate that is false or true for all threads.
uint32_t constant_predicate(bool value);
struct parameter new_parameter(struct parser *p, uint64_t size);
// Finds a register by its name in the innermost scope that has it: its file, and its row or
// predicate. Returns false if there is no such register.
bool find_register(struct parser *p, const std::string &name, enum file *file, uint32_t *at);
bool find_parameter(struct parser *p, const std::string &name, struct parameter *out);
// Finds a variable of the module, and places it in memory at its first use. *value receives its
// address in its state space. Returns false if there is none.
bool find_symbol(struct parser *p, const std::string &name, uint64_t *value);
// Sets *out to the index of the function in ptx->functions; adds it if it is new, to be parsed
// later.
bool find_function(struct parser *p, const std::string &name, uint32_t *out);

// ptx_decode.cc: decodes a statement and appends its instruction. Returns false if it is not
// supported.
bool decode(struct parser *p, const struct statement &s);
// ptx_origin.cc: computes instr.origins of all instructions.
void find_origins(struct parser *p);
// ptx_host.cc: returns the version of a function that is compiled for the host, or NULL.
host_function *find_host_function(const std::string &name);

} // namespace ree_ptx

#endif
