// The text of a PTX module: its kernels, functions and variables, and their statements.
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
    std::vector<uint8_t> data; // empty: none
};

struct item {
    enum { KERNEL, FUNCTION, VARIABLE } kind;
    std::string name;
    const char *begin, *body, *end; // body: after "{"; NULL: declared only
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

// Splits a module into its items. Returns false if a body has no end.
bool split_module(const char *text, std::vector<struct item> *out);
bool parse_declaration(const std::string &text, struct declaration *out);
// Returns the parameters of a kernel or function, then its results.
bool parse_signature(const struct item &item, std::vector<struct declaration> *params,
                     std::vector<struct declaration> *results);
// Returns the number of threads of a kernel's .maxntid, or 1024.
uint32_t max_threads_of(const struct item &item);

// Reads statement after statement of a body.
struct reader {
    const char *at, *end;
    int line;
};
enum what { STATEMENT, LABEL, DIRECTIVE, OPEN, CLOSE, END };
// `text` receives the name of a label, or the text of a directive.
enum what next(struct reader *r, struct statement *s, std::string *text);

} // namespace ree_ptx

#endif
