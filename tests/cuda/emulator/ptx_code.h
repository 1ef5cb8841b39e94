// A kernel as ptx_parse.cc parses it and ptx_run.cc runs it.
#ifndef REE_EMULATOR_PTX_CODE_H
#define REE_EMULATOR_PTX_CODE_H

#include "ptx.h"

#include <string>
#include <vector>

namespace ree_ptx {

// What an instruction does, without the type of its operands.
enum action {
    MOV,
    ADD,
    SUB,
    MUL_LO,
    MUL_HI,
    MUL_WIDE,
    MAD_LO,
    DIV,
    FMA,
    SQRT,
    NEG,
    ABS,
    MIN,
    MAX,
    AND,
    OR,
    XOR,
    NOT,
    SHL,
    SHR,
    BFE,
    SETP,
    SELP,
    CVT,
    LOAD,
    STORE,
    LOAD_PARAM,
    STORE_ARG,
    LOAD_RESULT,
    CALL,
    BRA,
    RET
};
enum type { B8, B16, B32, B64, S8, S16, S32, S64, U8, U16, U32, U64, F16, F32, F64, PRED };
enum condition { EQ, NE, LT, LE, GT, GE, NAN_ };
enum rounding { NO_ROUNDING, RN, RZI, RNI, RMI, RPI };

struct operand {
    enum { REGISTER, NUMBER, BLOCK, BLOCK_SIZE, THREAD } kind;
    uint32_t at; // register
    uint64_t number;
};

typedef uint64_t host_function(const uint64_t *args);

struct instr {
    enum action action;
    enum type type, from; // from: source type of a conversion
    enum condition condition;
    enum rounding rounding;
    bool is_guarded, if_not;
    uint32_t guard;
    uint32_t n; // number of elements of a load or store
    struct operand to[4], args[4];
    int64_t offset; // byte offset of the address
    uint32_t target;
    host_function *function;
    std::string label; // branch label, until targets are resolved
    int line;
};

inline size_t bytes_of(enum type type) {
    switch (type) {
    case B8:
    case S8:
    case U8: return 1;
    case B16:
    case S16:
    case U16:
    case F16: return 2;
    case B64:
    case S64:
    case U64:
    case F64: return 8;
    default: return 4;
    }
}
inline bool is_signed(enum type type) {
    return type == S8 || type == S16 || type == S32 || type == S64;
}

} // namespace ree_ptx

struct ree_emulator_ptx {
    std::string name;
    size_t args_size;
    uint32_t max_threads, n_registers;
    std::vector<struct ree_ptx::instr> code;
};

#endif
