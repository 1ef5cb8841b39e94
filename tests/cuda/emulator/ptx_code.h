// The decoded form of a PTX kernel, which ptx_parse.cc and ptx_decode.cc make and ptx_block.cc
// runs.
//
// A register is a row of warp.registers: one element for each thread of the warp, of 4 bytes
// (registers of up to 32 bits) or 8 bytes. Constants, addresses of variables and special registers
// are rows, too, so an operand of an instruction is the byte offset of a row, or the index of a
// predicate. A predicate is a word with a bit for each thread.
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

// What an instruction does to the control flow of its threads. CONVERGE: all threads of its mask
// execute it together.
enum flow { PLAIN, BRANCH, CALL, RETURN, EXIT, CONVERGE, BARRIER };
enum space { GENERIC, GLOBAL, SHARED, PARAM };

// Special registers, as indices of rows of 4-byte elements. TID, CTAID, NTID and NCTAID have three
// rows each, for x, y and z.
enum special { TID, CTAID = 3, NTID = 6, NCTAID = 9, LANE_ID = 12, WARP_ID, N_SPECIAL };

// Sets of memory that an address may point into: bit o for operand o, and these bits.
constexpr uint64_t ORIGIN_SCRATCH = UINT64_C(1) << 61;
constexpr uint64_t ORIGIN_FAULT = UINT64_C(1) << 62;
constexpr uint64_t ORIGIN_UNKNOWN = UINT64_C(1) << 63; // any memory

struct instr {
    run_t *run;
    enum flow flow;
    bool is_guarded, if_not;
    uint32_t guard;           // index of the predicate, if is_guarded
    uint32_t to[4], from[10]; // results and operands: byte offsets of rows, or predicate indices
    uint32_t mask;            // CONVERGE: row with each thread's mask
    enum space space;         // memory access: the state space of its address
    bool is_base_wide;        // memory access: the address register has 64 bits
    bool is_wide;             // memory access: the value registers have 64 bits
    bool is_signed, is_nc;    // loads: sign-extends (ld.s8, ...); is ld.global.nc
    uint32_t n, size;         // memory access: number of elements, bytes of each
    uint64_t origins;         // set of memory that the address may point into
    // Loads: bit b is set if the kernel uses byte b. nvcc joins loads over bytes that it does not
    // use.
    uint32_t used_bytes;
    int64_t offset;  // memory access: bytes to add to the address register
    uint32_t target; // BRANCH: index of an instruction; CALL: index in `calls`
    uint32_t number; // an immediate operand; its meaning depends on `run`
    uint32_t opcode; // index in `opcodes`
    int line;
    // Statistics of a launch: executions by warps and by threads, wavefronts of shared memory and
    // sectors of global memory (ptx_statistics.cc).
    mutable uint64_t n_warps, n_lanes, n_wavefronts, n_sectors;
    mutable const struct ree_emulator::range *range; // memory of its latest access
};

// Memory in warp.params for a parameter of a call: `size` bytes for each thread, from byte LANES *
// at on.
struct parameter {
    uint32_t at, size;
};

struct function {
    std::string name;
    uint32_t first; // index of its first instruction
    std::vector<struct parameter> args, results;
    host_function *host; // version compiled for the host, called instead; NULL: none
};

struct call {
    uint32_t function;
    std::vector<struct parameter> args, results;
};

struct shared_variable {
    std::string name;
    uint64_t size;
    uint32_t at; // byte offset in shared memory
};

struct constant {
    uint32_t row;
    bool is_wide;
    uint64_t value;
};

// A variable of the module in global or constant memory: a table that kernels only read.
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
    // Per warp: bytes of registers, number of predicates. Per thread: bytes of parameters of calls.
    uint32_t register_bytes, n_predicates, param_bytes;
    // Registers and predicates of 32 warps, kept from launch to launch. In those of the first
    // n_prepared warps, the constants have their values.
    unsigned char *memory;
    uint32_t n_prepared;
};

#endif
