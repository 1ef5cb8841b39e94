// Shared by all shaders: the dispatch's block in memory, operands, indices of threads, loads and
// stores, faults. The host's side is src/device/vulkan/program.c.
#ifndef REE_GLSL_REE
#define REE_GLSL_REE

#extension GL_EXT_buffer_reference : require
#extension GL_EXT_buffer_reference_uvec2 : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_GOOGLE_include_directive : require

layout(local_size_x_id = 0) in;

#define REE_MAX_RANK 8
#define REE_MAX_OPERANDS 12
#define REE_EXPR_MAX_OPERANDS 8
#define REE_CHUNK 256u

// The values of enum ree_dtype. The prefix differs because the scalar source has macros named
// REE_F32 and so on.
#define REE_DT_F32 1u
#define REE_DT_U8 2u
#define REE_DT_I8 3u
#define REE_DT_U16 4u
#define REE_DT_I16 5u
#define REE_DT_I32 6u
#define REE_DT_I64 7u
#define REE_DT_BOOL 9u
#define REE_DT_F16 10u
#define REE_DT_F64 11u
#define REE_DT_U32 12u
#define REE_DT_U64 13u
#define REE_DT_BF16 16u
#define REE_DT_F8E4M3FN 17u // from here to REE_DT_I2: one byte each
#define REE_DT_I4 22u
#define REE_DT_I2 26u

// Memory as words, and as pairs of words (64-bit elements, low word in x). Operands are aligned to
// 4 bytes.
layout(buffer_reference, std430, buffer_reference_align = 4) buffer ReeWords { uint w[]; };
layout(buffer_reference, std430, buffer_reference_align = 4) buffer ReePairs { uvec2 w[]; };

// The dispatch's block; the parameter struct follows it.
layout(buffer_reference, std430, buffer_reference_align = 16) readonly buffer ReeBlock {
    uvec2 operands[REE_MAX_OPERANDS];
    uvec2 fault;
    uvec2 scratch;
    uint dispatch;
};
#define REE_BLOCK_SIZE 128u

layout(push_constant) uniform ReePush {
    uvec2 block;
    uint zero; // 0 at run time, unknown to compilers: primitives.glsl, ree_rounded
    uint first_group; // first workgroup of this launch: a step may be launched in several pieces
} ree_push;
// Read once, before the first branch and loop: there a CPU's driver reads for all threads at once.
uvec2 ree_block_address = ree_push.block;
uint ree_zero = ree_push.zero;
uint ree_first_group = ree_push.first_group;

uvec2 ree_address_add(uvec2 address, uint bytes) {
    uint carry;
    uint low = uaddCarry(address.x, bytes, carry);
    return uvec2(low, address.y + carry);
}

ReeBlock ree_block() { return ReeBlock(ree_block_address); }
// Returns the address of the parameters. Cast it to a buffer_reference with the struct of repop.h.
uvec2 ree_params() { return ree_address_add(ree_block_address, REE_BLOCK_SIZE); }
ReeWords ree_operand(uint i) { return ReeWords(ree_block().operands[i]); }
ReeWords ree_scratch() { return ReeWords(ree_block().scratch); }

// Returns the index of the workgroup in its step, over both dimensions and all pieces. A step may
// have more threads than work, so a shader must compare indices with the amount of work.
uint ree_group() {
    return ree_first_group + gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
}
uint ree_local() { return gl_LocalInvocationID.x; }
uint ree_thread() { return ree_group() * gl_WorkGroupSize.x + gl_LocalInvocationID.x; }

// Reports an index out of range, given by its low and high words. A run keeps only the first
// report, and fails when it ends.
void ree_fault(uint low, uint high) {
    ReeWords fault = ReeWords(ree_block().fault);
    if (atomicCompSwap(fault.w[0], 0u, ree_block().dispatch + 1u) == 0u) {
        fault.w[1] = low;
        fault.w[2] = high;
    }
}

// ree_dtype_size returns the size of an element in bytes, ree_dtype_is_wide whether its value has
// class D, 64 bits.
uint ree_dtype_size(uint dtype) {
    switch (dtype) {
    case REE_DT_U8: case REE_DT_I8: case REE_DT_BOOL: return 1u;
    case REE_DT_U16: case REE_DT_I16: case REE_DT_F16: case REE_DT_BF16: return 2u;
    case REE_DT_I64: case REE_DT_U64: case REE_DT_F64: return 8u;
    default: return dtype >= REE_DT_F8E4M3FN ? 1u : 4u;
    }
}
bool ree_dtype_is_wide(uint dtype) {
    return dtype == REE_DT_I64 || dtype == REE_DT_U64 || dtype == REE_DT_F64;
}

// Return element i of memory p, by its size, zero-extended.
uint ree_load8(ReeWords p, uint i) { return (p.w[i >> 2u] >> ((i & 3u) * 8u)) & 0xFFu; }
uint ree_load16(ReeWords p, uint i) { return (p.w[i >> 1u] >> ((i & 1u) * 16u)) & 0xFFFFu; }
uvec2 ree_load64(ReeWords p, uint i) { return ReePairs(uvec2(p)).w[i]; }
uvec2 ree_load_size(ReeWords p, uint size, uint i) {
    switch (size) {
    case 1u: return uvec2(ree_load8(p, i), 0u);
    case 2u: return uvec2(ree_load16(p, i), 0u);
    case 8u: return ree_load64(p, i);
    default: return uvec2(p.w[i], 0u);
    }
}
// Returns an element as a value of an expression (repop.h): narrow signed integers are
// sign-extended to 32 bits, narrow floats stay raw bits.
uvec2 ree_load(ReeWords p, uint dtype, uint i) {
    uvec2 value = ree_load_size(p, ree_dtype_size(dtype), i);
    switch (dtype) {
    case REE_DT_I8: case REE_DT_I4: case REE_DT_I2:
        return uvec2(uint(bitfieldExtract(int(value.x), 0, 8)), 0u);
    case REE_DT_I16: return uvec2(uint(bitfieldExtract(int(value.x), 0, 16)), 0u);
    default: return value;
    }
}

// Store element i of memory p. Elements of 1 and 2 bytes share words with their neighbours, so each
// is stored by two atomic operations that change only its own bits. A thread that has all elements
// of a word should store the word directly instead.
void ree_store8(ReeWords p, uint i, uint value) {
    uint shift = (i & 3u) * 8u;
    atomicAnd(p.w[i >> 2u], ~(0xFFu << shift));
    atomicOr(p.w[i >> 2u], (value & 0xFFu) << shift);
}
void ree_store16(ReeWords p, uint i, uint value) {
    uint shift = (i & 1u) * 16u;
    atomicAnd(p.w[i >> 1u], ~(0xFFFFu << shift));
    atomicOr(p.w[i >> 1u], (value & 0xFFFFu) << shift);
}
void ree_store64(ReeWords p, uint i, uvec2 value) { ReePairs(uvec2(p)).w[i] = value; }
void ree_store_size(ReeWords p, uint size, uint i, uvec2 value) {
    switch (size) {
    case 1u: ree_store8(p, i, value.x); break;
    case 2u: ree_store16(p, i, value.x); break;
    case 8u: ree_store64(p, i, value); break;
    default: p.w[i] = value.x; break;
    }
}
void ree_store(ReeWords p, uint dtype, uint i, uvec2 value) {
    ree_store_size(p, ree_dtype_size(dtype), i, value);
}

#endif
