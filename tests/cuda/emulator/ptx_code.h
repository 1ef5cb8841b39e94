// A kernel as ptx_parse.cc and ptx_decode.cc make it and ptx_block.cc runs it.
//
// A register is a row: one element for each thread of the warp, of 4 bytes (registers of up to 32
// bits) or 8. Constants, addresses of variables and special registers are rows, too, so an operand
// of an instruction is always the byte offset of a row. A predicate is a bit for each thread.
#ifndef REE_EMULATOR_PTX_CODE_H
#define REE_EMULATOR_PTX_CODE_H

#include "ptx.h"
#include "state.h"

#include <deque>
#include <string>
#include <vector>

namespace ree_ptx {

constexpr uint32_t LANES = 32;
constexpr uint32_t ALL_LANES = ~0u;
constexpr uint32_t ROW = 4 * LANES; // bytes of a row of 4-byte elements

struct warp;
struct instr;
// Executes an instruction for the threads of `lanes`, which is not 0.
typedef void run_t(struct warp &w, const struct instr &i, uint32_t lanes);
typedef uint64_t host_function(const uint64_t *args);

// What an instruction does to the flow of its threads. CONVERGE: the threads of a mask execute it
// together.
enum flow { PLAIN, BRANCH, CALL, RETURN, EXIT, CONVERGE, BARRIER };
enum space { GENERIC, GLOBAL, SHARED, PARAM };

// Rows with the same place in every kernel: three dimensions of each.
enum special { TID, CTAID = 3, NTID = 6, NCTAID = 9, LANE_ID = 12, WARP_ID, N_SPECIAL };

// Where an address comes from: bit o for operand o, or one of these.
constexpr uint64_t ORIGIN_SCRATCH = UINT64_C(1) << 61;
constexpr uint64_t ORIGIN_FAULT = UINT64_C(1) << 62;
constexpr uint64_t ORIGIN_UNKNOWN = UINT64_C(1) << 63; // any memory

struct instr {
    run_t *run;
    enum flow flow;
    bool is_guarded, if_not;
    uint32_t guard;           // predicate
    uint32_t to[4], from[10]; // rows, or predicates
    uint32_t mask;            // CONVERGE: row
    enum space space;         // of a memory access
    bool is_base_wide;        // the address register has 64 bits
    bool is_wide;             // the registers of a memory access have 64 bits
    bool is_signed, is_nc;    // ld.s*; ld.global.nc
    uint32_t n, size;         // elements of an access, bytes of each
    uint64_t origins;         // memory that the address may point into, bits of ORIGIN_...
    uint32_t used_bytes;      // bit b: the kernel uses byte b of a load; nvcc joins loads over gaps
    int64_t offset;           // byte offset of the address
    uint32_t target;          // BRANCH: index of an instruction; CALL: index in `calls`
    uint32_t number;          // an immediate number: of a barrier, of groups, of bytes, of a mode
    uint32_t opcode;          // index in `opcodes`
    int line;
    // Counted while it runs
    mutable uint64_t n_warps, n_lanes, n_wavefronts, n_sectors;
    mutable const struct ree_emulator::range *range; // where it found its latest address
};

// Memory for a parameter of a call: `size` bytes for each thread, from byte 32 * at.
struct parameter {
    uint32_t at, size;
};

struct function {
    std::string name;
    uint32_t first; // instruction
    std::vector<struct parameter> args, results;
    host_function *host; // not NULL: a function of the host
};

struct call {
    uint32_t function;
    std::vector<struct parameter> args, results;
};

struct shared_variable {
    std::string name;
    uint64_t size;
    uint32_t at; // byte in shared memory
};

struct constant {
    uint32_t row;
    bool is_wide;
    uint64_t value;
};

// A variable of the module in global memory: a table that kernels only read.
struct table {
    std::string name;
    std::vector<uint64_t> memory;
    uint64_t size;
};

} // namespace ree_ptx

struct ree_emulator_ptx {
    std::string name;
    size_t args_size;
    uint32_t max_threads;
    std::vector<struct ree_ptx::instr> code;
    std::vector<struct ree_ptx::function> functions;
    std::vector<struct ree_ptx::call> calls;
    std::vector<std::string> opcodes;
    std::vector<struct ree_ptx::constant> constants;
    std::vector<struct ree_ptx::shared_variable> shared;
    std::deque<struct ree_ptx::table> tables;
    bool has_dynamic;
    std::string dynamic_name;
    uint32_t register_bytes, n_predicates, param_bytes; // per warp; param_bytes per thread
    // Registers of the warps, which stay between launches, and for how many warps they are
    // prepared.
    unsigned char *memory;
    uint32_t n_prepared;
};

#endif
