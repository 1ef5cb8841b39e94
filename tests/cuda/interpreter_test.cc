// The interpreter of PTX: instructions give the results that NVIDIA's "PTX ISA" defines, in cases
// that kernels may not reach; each check fires on a kernel with exactly one fault.
#include "device/cuda/kernel_interface.h"

#include "api.h"
#include "ptx.h"

#include <stdio.h>
#include <string.h>
#include <string>

#define WORDS 256u // of operands 0 and 1

static int n_failed, n_passed;
static uint32_t *in, *out;
// Operand 2, WORDS / 2 words. No operand has the WORDS / 2 words between it and operand 0.
static uint32_t *lower;

static std::string module_of(const std::string &body) {
    return ".version 7.1\n.target sm_80\n.address_size 64\n"
           ".global .align 4 .b8 table[8] = {1, 0, 0, 0, 2, 0, 0, 0};\n"
           ".shared .align 16 .b8 tile[512];\n"
           ".func (.param .b32 v) twice(.param .b32 a0)\n{\n.reg .b32 %r<3>;\n"
           "ld.param.b32 %r1, [a0];\nadd.s32 %r2, %r1, %r1;\nst.param.b32 [v], %r2;\nret;\n}\n"
           ".visible .entry kernel(\n.param .align 8 .b8 args[" +
           std::to_string(sizeof(struct ree_cuda_header)) +
           "]\n)\n.maxntid 64, 1, 1\n{\n"
           ".reg .pred %p<4>;\n.reg .b16 %h<4>;\n.reg .b32 %r<20>;\n.reg .b64 %d<20>;\n"
           "ld.param.u64 %d10, [args];\nld.param.u64 %d11, [args+8];\nmov.u32 %r10, %tid.x;\n"
           "mul.wide.u32 %d12, %r10, 4;\nadd.s64 %d13, %d11, %d12;\nmov.u32 %r11, tile;\n"
           "shl.b32 %r12, %r10, 2;\nadd.s32 %r12, %r12, %r11;\n" +
           body + "\nret;\n}\n";
}

// Returns the error, or "".
static std::string run(const std::string &body, uint32_t threads) {
    char error[500] = "";
    struct ree_cuda_header h = {};
    h.operands[0] = (uint64_t)in, h.operands[1] = (uint64_t)out, h.operands[2] = (uint64_t)lower;
    h.sizes[0] = h.sizes[1] = 4 * WORDS, h.sizes[2] = 2 * WORDS;
    struct ree_emulator_ptx *ptx =
        ree_emulator_ptx_parse(module_of(body).c_str(), NULL, error, sizeof error);
    if (!ptx) return error;
    const uint32_t grid[] = {1, 1, 1}, block[] = {threads, 1, 1};
    const int status = ree_emulator_ptx_run(ptx, grid, block, 0, &h, error, sizeof error);
    ree_emulator_ptx_destroy(ptx);
    return status == 0 ? "" : error;
}

static void check(bool ok, const std::string &what, const std::string &found) {
    ok ? n_passed++ : n_failed++;
    if (!ok) printf("FAILED: %s: %s\n", what.c_str(), found.c_str());
}

// The operands are a, b and c: %d1 ... %d3, their low halves %r1 ... %r3 and their low 16 bits %h1
// ... %h3. The result is %d0, or %r0, extended with zeros.
struct result {
    const char *code;
    uint64_t a, b, c, expected;
};
static const struct result results[] = {
    {"prmt.b32 %r0, %r1, %r2, 0x7530;", 0x33221100, 0x77665544, 0, 0x77553300},
    {"prmt.b32 %r0, %r1, %r2, 0xC8F0;", 0x80221170, 0x97665584, 0, 0xFF00FF70},
    {"bfe.u32 %r0, %r1, %r2, %r3;", 0xABCD1234, 8, 12, 0xD12},
    {"bfe.s32 %r0, %r1, %r2, %r3;", 0xABCD1234, 8, 12, 0xFFFFFD12},
    {"bfe.s32 %r0, %r1, %r2, %r3;", 0x80000000, 28, 20, 0xFFFFFFF8}, // the sign beyond bit 31
    {"bfe.u32 %r0, %r1, %r2, %r3;", 0xFFFFFFFF, 4, 0, 0},
    {"bfi.b32 %r0, %r1, %r2, 8, 4;", 0xF5, 0xFFFFFFFF, 0, 0xFFFFF5FF},
    {"bfi.b64 %d0, %d1, %d2, 32, 32;", 0x1, 0xFFFFFFFFFFFFFFFF, 0, 0x1FFFFFFFF},
    {"bfi.b32 %r0, %r1, %r2, 28, 8;", 0xAB, 0, 0, 0xB0000000},
    {"shf.l.wrap.b32 %r0, %r1, %r2, 36;", 0x80000001, 0x12345678, 0, 0x23456788},
    {"shf.r.clamp.b32 %r0, %r1, %r2, 40;", 1, 0x12345678, 0, 0x12345678},
    {"lop3.b32 %r0, %r1, %r2, %r3, 0xE8;", 0xFF00, 0xF0F0, 0xCCCC, 0xFCC0}, // the majority
    {"shl.b32 %r0, %r1, %r2;", 1, 32, 0, 0},
    {"shl.b64 %d0, %d1, %r2;", 1, 63, 0, 0x8000000000000000},
    {"shr.s32 %r0, %r1, %r2;", 0x80000000, 40, 0, 0xFFFFFFFF},
    {"shr.u32 %r0, %r1, %r2;", 0x80000000, 40, 0, 0},
    {"mul.hi.u32 %r0, %r1, %r2;", 0xFFFFFFFF, 0xFFFFFFFF, 0, 0xFFFFFFFE},
    {"mul.hi.s32 %r0, %r1, %r2;", 0xFFFFFFFF, 2, 0, 0xFFFFFFFF},
    {"mul.hi.u64 %d0, %d1, %d2;", 1ull << 63, 6, 0, 3},
    {"mul.wide.s32 %d0, %r1, %r2;", 0xFFFFFFFF, 3, 0, 0xFFFFFFFFFFFFFFFD},
    {"mul.wide.u16 %r0, %h1, %h2;", 0xFFFF, 0xFFFF, 0, 0xFFFE0001},
    {"mad.wide.u32 %d0, %r1, %r2, %d3;", 0xFFFFFFFF, 2, 5, 0x200000003},
    {"mad.lo.s32 %r0, %r1, %r2, %r3;", 0x10000, 0x10000, 7, 7},
    {"dp4a.s32.s32 %r0, %r1, %r2, %r3;", 0x80FF0102, 0x80010203, 10, 16384 - 1 + 2 + 6 + 10},
    {"dp4a.u32.u32 %r0, %r1, %r2, %r3;", 0xFF000002, 0x02000003, 1, 510 + 6 + 1},
    {"clz.b32 %r0, %r1;", 0, 0, 0, 32},
    {"clz.b64 %r0, %d1;", 1, 0, 0, 63},
    {"popc.b64 %r0, %d1;", 0xF00000000000000F, 0, 0, 8},
    {"brev.b32 %r0, %r1;", 0x1, 0, 0, 0x80000000},
    {"div.s32 %r0, %r1, %r2;", 0xFFFFFFF9, 2, 0, 0xFFFFFFFD}, // -7 / 2 = -3
    {"rem.s32 %r0, %r1, %r2;", 0xFFFFFFF9, 2, 0, 0xFFFFFFFF},
    {"div.u64 %d0, %d1, %d2;", 0xFFFFFFFFFFFFFFFF, 10, 0, 0x1999999999999999},
    {"min.s16 %h1, %h1, %h2;\ncvt.s32.s16 %r0, %h1;", 0x8000, 1, 0, 0xFFFF8000},
    {"add.s16 %h1, %h1, %h2;\ncvt.u32.u16 %r0, %h1;", 0xFFFF, 2, 0, 1},
    {"abs.s32 %r0, %r1;", 0x80000000, 0, 0, 0x80000000},
    {"cvt.s64.s8 %d0, %d1;", 0x1FF, 0, 0, 0xFFFFFFFFFFFFFFFF},
    {"cvt.u64.u8 %d0, %r1;", 0x1FF, 0, 0, 0xFF},
    {"mov.b32 {%h1, %h2}, %r1;\nmov.b32 %r0, {%h2, %h1};", 0x12345678, 0, 0, 0x56781234},
    {"mov.b64 {%r1, %r2}, %d1;\nmov.b64 %d0, {%r2, %r1};", 0x100000002, 0, 0, 0x200000001},
    // binary32
    {"add.rn.f32 %r0, %r1, %r2;", 0x3F800000, 0x33800000, 0, 0x3F800000}, // ties to even
    {"add.rn.f32 %r0, %r1, %r2;", 0x3F800001, 0x33800000, 0, 0x3F800002},
    {"mul.rn.f32 %r0, %r1, %r2;", 0x00800000, 0x3F000000, 0, 0x00400000}, // a subnormal
    {"fma.rn.f32 %r0, %r1, %r2, %r3;", 0x3F800001, 0x3F800001, 0xBF800002, 0x28800000},
    {"sub.rn.f32 %r0, %r1, %r2;", 0x7F800000, 0x7F800000, 0, 0x7FFFFFFF}, // the hardware's NaN
    {"div.rn.f32 %r0, %r1, %r2;", 0x3F800000, 0x40400000, 0, 0x3EAAAAAB},
    {"rcp.rn.f32 %r0, %r1;", 0x40400000, 0, 0, 0x3EAAAAAB},
    {"sqrt.rn.f32 %r0, %r1;", 0x40000000, 0, 0, 0x3FB504F3},
    {"min.f32 %r0, %r1, %r2;", 0x7FC00000, 0x3F800000, 0, 0x3F800000},
    {"max.f32 %r0, %r1, %r2;", 0x80000000, 0x00000000, 0, 0},
    {"max.f32 %r0, %r1, %r2;", 0x7FC00000, 0x7FC00000, 0, 0x7FFFFFFF},
    {"copysign.f32 %r0, %r1, %r2;", 0x80000001, 0x40000000, 0, 0xC0000000},
    {"mov.f32 %r0, %r1;", 0x7FC00001, 0, 0, 0x7FC00001},
    {"setp.ltu.f32 %p1, %r1, %r2;\nselp.b32 %r0, 1, 2, %p1;", 0x7FC00000, 0, 0, 1},
    {"setp.ne.f32 %p1, %r1, %r2;\nselp.b32 %r0, 1, 2, %p1;", 0x7FC00000, 0, 0, 2},
    {"setp.num.f32 %p1, %r1, %r2;\nselp.b32 %r0, 1, 2, %p1;", 0x7FC00000, 0, 0, 2},
    {"cvt.rzi.s32.f32 %r0, %r1;", 0xFF800000, 0, 0, 0x80000000},
    {"cvt.rzi.u32.f32 %r0, %r1;", 0xBF800000, 0, 0, 0},
    {"cvt.rzi.s32.f32 %r0, %r1;", 0x7FC00000, 0, 0, 0},
    {"cvt.rni.s32.f32 %r0, %r1;", 0x40200000, 0, 0, 2}, // 2.5
    {"cvt.rzi.s64.f32 %d0, %r1;", 0x7F800000, 0, 0, 0x7FFFFFFFFFFFFFFF},
    {"cvt.rzi.u64.f64 %d0, %d1;", 0x43F0000000000000, 0, 0, 0xFFFFFFFFFFFFFFFF}, // 2^64
    {"cvt.rn.f32.u64 %r0, %d1;", 0xFFFFFF7FFFFFFFFF, 0, 0, 0x5F7FFFFF},
    {"cvt.rn.f32.f64 %r0, %d1;", 0x3FF0000010000000, 0, 0, 0x3F800000}, // a tie
    {"cvt.rpi.f32.f32 %r0, %r1;", 0xBF000000, 0, 0, 0x80000000},        // -0.5: -0
    {"cvt.rn.f16.f32 %h1, %r1;\ncvt.u32.u16 %r0, %h1;", 0x477FF000, 0, 0, 0x7C00},
    {"cvt.f32.f16 %r0, %h1;", 0x0001, 0, 0, 0x33800000},
    {"fma.rn.f64 %d0, %d1, %d2, %d3;", 0x3FF0000000000001, 0x3FF0000000000001, 0xBFF0000000000002,
     0x3970000000000000},
    // Memory and calls
    {"mov.u64 %d1, table;\nld.global.u32 %r0, [%d1+4];", 0, 0, 0, 2},
    {"{ .param .b32 v;\n.param .b32 a0;\nst.param.b32 [a0], %r1;\ncall.uni (v), twice, (a0);\n"
     "ld.param.b32 %r0, [v];\n}",
     21, 0, 0, 42},
    {"cvta.shared.u64 %d1, %d0;\ncvta.to.shared.u64 %d2, %d1;\nadd.s64 %d0, %d2, 5;", 0, 0, 0, 5},
};

static void check_results() {
    for (auto &r : results) {
        const uint64_t operands[] = {r.a, r.b, r.c};
        memcpy(in, operands, sizeof operands);
        memset(out, 0, 4 * WORDS);
        const bool is_wide = strstr(r.code, "%d0,") != NULL && !strstr(r.code, "%r0,");
        const std::string error =
            run("ld.global.u64 %d1, [%d10];\nld.global.u64 %d2, [%d10+8];\n"
                "ld.global.u64 %d3, [%d10+16];\nld.global.u32 %r1, [%d10];\n"
                "ld.global.u32 %r2, [%d10+8];\nld.global.u32 %r3, [%d10+16];\n"
                "ld.global.u16 %h1, [%d10];\nld.global.u16 %h2, [%d10+8];\nmov.u64 %d0, 0;\n" +
                    std::string(r.code) +
                    (is_wide ? "\nst.global.u64 [%d11], %d0;" : "\nst.global.u32 [%d11], %r0;"),
                1);
        uint64_t found = 0;
        memcpy(&found, out, is_wide ? 8 : 4);
        char text[100];
        snprintf(text, sizeof text, "%#llx, not %#llx", (unsigned long long)found,
                 (unsigned long long)r.expected);
        check(error.empty() && found == r.expected, r.code, error.empty() ? text : error);
    }
}

// A body for 64 threads. `expected`: parts of an error separated by "|", one of which the error
// must have; "": no error.
struct fault {
    const char *body, *expected;
};
#define FILL "st.shared.u32 [%r12], %r10;\n"
// Thread 63 does not write bytes 252 to 255.
#define FILL_63 "setp.lt.u32 %p1, %r10, 63;\n@%p1 st.shared.u32 [%r12], %r10;\n"
#define COPY "cp.async.ca.shared.global [%r12], [%d14], 4;\ncp.async.commit_group;\n"
static const struct fault faults[] = {
    {"st.global.u32 [%d13], %r10;", ""},
    {"st.global.u32 [%d13+769], %r10;", "line 31: writes element"},
    {"st.global.u32 [%d13+772], %r10;", "thread (63,0,0)"},
    {"st.global.u32 [%d13+772], %r10;", "operand 1, which has 1024 bytes: out of range"},
    // An address computed from both operands may point into either.
    {"sub.s64 %d1, %d11, %d10;\nadd.s64 %d2, %d1, %d10;\nst.global.u32 [%d2], 1;", "race"},
    // Operand 1 follows operand 0 in memory; an index beyond operand 0 is still an error.
    {"ld.global.u32 %r1, [%d10+1020];", ""},
    {"ld.global.u32 %r1, [%d10+1024];", "operand 0, which has 1024 bytes: out of range"},
    {"mov.u64 %d1, %d10;\nadd.s64 %d2, %d1, %d12;\nld.global.u32 %r1, [%d2+1024];",
     "operand 0, which has 1024 bytes: out of range"},
    // If no operand has the address, the message is about the one that ends before it.
    {"ld.param.u64 %d14, [args+16];\nsub.s64 %d1, %d10, %d14;\nadd.s64 %d2, %d1, %d14;\n"
     "ld.global.u32 %r1, [%d2+-4];",
     "operand 2, which has 512 bytes: out of range"},
    {"ld.global.u16 %h1, [%d13+1];", "misaligned"},
    {"st.global.u32 [table], %r10;", "a store to constant memory"},
    {"st.global.u32 [%d11], %r10;", "race: writes byte 0 of operand 1"},
    {"atom.global.add.u32 %r1, [%d11], 1;", ""},
    {"ld.global.nc.u32 %r1, [%d13];\nst.global.u32 [%d13], %r1;", ""},
    {"st.global.u32 [%d13], %r10;\nld.global.nc.u32 %r1, [%d13];", "as constant"},
    // Shared memory
    {FILL "bar.sync 0;\nld.shared.u32 %r1, [tile+252];", ""},
    {FILL "ld.shared.u32 %r1, [tile+252];", "race|which the block has not written"},
    {"ld.shared.u32 %r1, [%r12];",
     "of shared array 'tile' (512 bytes), which the block has not written"},
    {"st.shared.u32 [%r12+260], %r10;", "shared array 'tile', which has 512 bytes: out of range"},
    {FILL "bar.warp.sync -1;\nxor.b32 %r1, %r12, 4;\nld.shared.u32 %r2, [%r1];", ""},
    {FILL "xor.b32 %r1, %r12, 4;\nld.shared.u32 %r2, [%r1];", "race|not written"},
    // A shuffle does not order accesses.
    {FILL "shfl.sync.bfly.b32 %r3, %r10, 1, 31, -1;\nxor.b32 %r1, %r12, 4;\n"
          "ld.shared.u32 %r2, [%r1];",
     "race|not written"},
    {FILL_63 "bar.sync 0;\nld.shared.v2.u32 {%r1, %r2}, [tile+248];",
     "which the block has not written"},
    {FILL_63 "bar.sync 0;\n.pragma \"used_bytes_mask 15\";\n"
             "ld.shared.v2.u32 {%r1, %r2}, [tile+248];",
     ""},
    {FILL_63 "bar.sync 0;\n// .pragma \"used_bytes_mask 15\";\n"
             "ld.shared.v2.u32 {%r1, %r2}, [tile+248];",
     ""},
    {"and.b32 %r1, %r12, -8;\nst.shared.u32 [%r1], 1;", "race"},
    // Asynchronous copies
    {"add.s64 %d14, %d10, %d12;\n" COPY "cp.async.wait_group 0;\nld.shared.u32 %r1, [%r12];", ""},
    {"add.s64 %d14, %d10, %d12;\n" COPY "ld.shared.u32 %r1, [%r12];", "asynchronous copy"},
    {"add.s64 %d14, %d10, %d12;\n" COPY "cp.async.wait_group 1;\nld.shared.u32 %r1, [%r12];",
     "asynchronous copy"},
    {"add.s64 %d14, %d10, 2048;\n" COPY, "reads element"},
    // Divergence
    {"setp.lt.u32 %p1, %r10, 7;\n@%p1 bra A;\nmov.u32 %r1, 1;\nbra B;\nA:\nmov.u32 %r1, 2;\nB:\n"
     "bar.sync 0;\nst.global.u32 [%d13], %r1;",
     ""},
    {"setp.lt.u32 %p1, %r10, 7;\n@%p1 bar.sync 0;", ""}, // the others have exited
    {"setp.lt.u32 %p1, %r10, 7;\n@%p1 bra A;\nbar.sync 0;\nbra B;\nA:\nbar.sync 0;\nB:\n",
     "deadlock"},
    {"setp.lt.u32 %p1, %r10, 32;\n@%p1 bra A;\nbar.sync 0;\nbra B;\nA:\nbar.sync 1;\nB:\n",
     "deadlock: warp"},
    {"setp.lt.u32 %p1, %r10, 7;\n@%p1 bra A;\nbar.warp.sync -1;\nbra B;\nA:\nbar.warp.sync -1;\n"
     "B:\n",
     ""},
    {"setp.lt.u32 %p1, %r10, 7;\n@%p1 bra A;\nbar.warp.sync -1;\nbar.sync 0;\nbra B;\nA:\n"
     "bar.warp.sync 255;\nB:\nbar.sync 0;",
     "deadlock"},
    {"setp.lt.u32 %p1, %r10, 7;\n@%p1 bra A;\nvote.sync.any.pred %p2, %p1, -1;\nbra B;\nA:\n"
     "bar.warp.sync -1;\nB:\n",
     "deadlock"},
    {"shfl.sync.idx.b32 %r1, %r10, 5, 31, 15;", "a warp operation whose mask is without|lane 5"},
    {"setp.lt.u32 %p1, %r10, 0;\nvote.sync.any.pred %p2, %p1, 1;", "mask is without the thread"},
    // Text
    {"ex2.approx.f32 %r1, %r2;", "PTX, line 31, 'ex2.approx.f32 %r1, %r2' is not supported"},
    {"add.s32 %r1, %r2, %d3;", "is not supported"},
    {"add.s32 %r1, %r2, %r20;", "is not supported"},
    {"bra NOWHERE;", "no label NOWHERE"},
};

static bool contains_one(const std::string &text, const std::string &alternatives) {
    size_t from = 0;
    for (;;) {
        const size_t to = alternatives.find('|', from);
        if (text.find(alternatives.substr(from, to - from)) != std::string::npos) return true;
        if (to == std::string::npos) return false;
        from = to + 1;
    }
}

static void check_faults() {
    for (auto &f : faults) {
        const std::string error = run(f.body, 64);
        const bool ok =
            *f.expected ? !error.empty() && contains_one(error, f.expected) : error.empty();
        check(ok, f.body, error.empty() ? "no error" : error);
    }
}

int main() {
    lower = (uint32_t *)ree_emulator_alloc(12 * WORDS);
    in = lower + WORDS;
    out = in + WORDS;
    check_results();
    check_faults();
    printf("%d passed, %d failed\n", n_passed, n_failed);
    return n_failed != 0;
}
