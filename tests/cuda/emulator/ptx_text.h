// Splits the text of a PTX module into kernels, functions and variables, and these into statements.
#ifndef REE_EMULATOR_PTX_TEXT_H
#define REE_EMULATOR_PTX_TEXT_H

#include <stddef.h>
#include <stdint.h>
#include <string>
#include <vector>

namespace ree_ptx {

// A variable or a parameter: ".global .align 4 .b8 name[40] = {...}", ".param .b32 name".
struct declaration {
    std::string space, name;
    uint64_t size, align; // bytes; size 0: "name[]"
    bool is_extern;
    std::vector<uint8_t> data; // initial contents; empty: none
};

struct item {
    enum { KERNEL, FUNCTION, VARIABLE } kind;
    std::string name;
    // Where the item begins and ends in the module's text. body: after "{"; NULL if only declared.
    const char *begin, *body, *end;
    int line, body_line;
};

struct statement {
    bool is_guarded, if_not;
    std::string guard, opcode;
    std::vector<std::string> operands;
    int line;
};

std::string trim(const std::string &s);
// Splits at commas outside brackets.
std::vector<std::string> split(const std::string &s);
std::vector<std::string> split_at(const std::string &s, char separator);

// Splits a module into its kernels, functions and variables. Returns false if one of them has no
// end.
bool split_module(const char *text, std::vector<struct item> *out);
bool parse_declaration(const std::string &text, struct declaration *out);
// Finds the parameters and the results of a kernel or function. Returns false if a declaration is
// not understood.
bool parse_signature(const struct item &item, std::vector<struct declaration> *params,
                     std::vector<struct declaration> *results);
// Returns the maximum number of threads per block that a kernel's .maxntid states; 1024 without it.
uint32_t max_threads_of(const struct item &item);

// A position in the body of a kernel or function, for `next`.
struct reader {
    const char *at, *end;
    int line;
};
enum what { STATEMENT, LABEL, DIRECTIVE, OPEN, CLOSE, END };
// Reads the next part of the body. *s receives a statement; *text receives the name of a label, or
// the text of a directive or statement.
enum what next(struct reader *r, struct statement *s, std::string *text);

} // namespace ree_ptx

#endif
