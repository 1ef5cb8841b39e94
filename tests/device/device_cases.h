// Compares random cases on a device with the CPU, byte by byte.
#ifndef REE_TESTS_DEVICE_DEVICE_CASES_H
#define REE_TESTS_DEVICE_DEVICE_CASES_H

#include "base/strbuf.h"
#include "cases.h"
#include "device/cpu/execute.h"
#include "device/device.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Number of guard bytes before and after an operand; a kernel must not change them. With GUARD_8
// operands are aligned to 8 bytes and no more, the weakest alignment that repop.h allows for 8-byte
// elements. With GUARD_32 they are aligned to 32 bytes, for kernel paths that require it.
#define GUARD_8 72u
#define GUARD_32 96u
#define GUARD_OF(seed) ((seed) % 2 ? GUARD_8 : GUARD_32)

// Runs the case on the device and on the CPU and compares every operand byte by byte. If an index
// of the case is out of range, the device must report an error that names the node, and outputs may
// have any contents. Returns a description of the first error found (static storage), or NULL if
// there is none. Every operand has its own buffer, with `guard` guard bytes before and after it. A
// kernel may also write the bytes from an operand's end to the next multiple of 4.
static inline const char *run_device_case(struct ree_device *device, uint32_t guard,
                                          const struct test_case *c) {
    static struct ree_error err;
    static char text[256];
    const struct ree_device_vtable *vt = device->vtable;
    struct ree_dispatch dispatch = c->dispatch;
    struct ree_device_buffer *buffers[REE_MAX_OPERANDS] = {0};
    uint8_t *memory[REE_MAX_OPERANDS] = {0};
    void *expected[REE_MAX_OPERANDS] = {0};
    uint64_t nbytes[REE_MAX_OPERANDS] = {0};
    const uint32_t n = dispatch.n_operands;
    const char *what = NULL;
    for (uint32_t i = 0; i < n; i++) {
        struct ree_operand *operand = &dispatch.operands[i];
        uint64_t padded = (operand->size + 3) / 4 * 4;
        nbytes[i] = padded + 2 * guard;
        memory[i] = malloc(nbytes[i]);
        expected[i] = aligned_alloc(64, (padded + 127) / 64 * 64);
        memset(memory[i], 0xA5, nbytes[i]);
        memcpy(memory[i] + guard, c->contents[i], operand->size);
        memcpy(expected[i], c->contents[i], operand->size);
        operand->slot = i;
        operand->offset = guard;
        if (vt->buffer_create(device, nbytes[i], &buffers[i], &err) != REE_OK ||
            vt->buffer_write(device, buffers[i], 0, memory[i], nbytes[i], &err) != REE_OK)
            what = err.message;
    }
    bool faults = ree_cpu_execute(&c->dispatch, expected, &err) != REE_OK;
    const char *names[] = {"node 'n' (Case)"};
    struct ree_program program = {&dispatch, 1, n, names, 1};
    struct ree_device_program *compiled = NULL;
    dispatch.node = 0;
    enum ree_status status = REE_OK;
    if (!what) {
        status = vt->program_create(device, &program, NULL, NULL, &compiled, &err);
        if (status == REE_OK) status = vt->program_run(device, compiled, buffers, NULL, &err);
        if (faults && (status != REE_INVALID || !strstr(err.message, "node 'n'")))
            what = "an index out of range went unnoticed";
        else if (!faults && status != REE_OK)
            what = err.message;
    }
    for (uint32_t i = 0; i < n && !what; i++) {
        if (vt->buffer_read(device, buffers[i], 0, memory[i], nbytes[i], &err) != REE_OK) {
            what = err.message;
            break;
        }
        uint64_t size = dispatch.operands[i].size, padded = (size + 3) / 4 * 4;
        const uint8_t *is = memory[i] + guard, *should = expected[i];
        for (uint64_t b = 0; b < guard && !what; b++)
            if (memory[i][b] != 0xA5 || is[padded + b] != 0xA5) what = "wrote outside an operand";
        if (faults && c->is_written[i]) continue;
        if (what || size == 0 || memcmp(is, should, size) == 0) continue;
        uint64_t at = 0;
        while (is[at] == should[at])
            at++;
        at -= at % 4;
        uint32_t words[2] = {0, 0};
        uint64_t part = size - at < 4 ? size - at : 4;
        memcpy(&words[0], is + at, part);
        memcpy(&words[1], should + at, part);
        snprintf(text, sizeof text, "operand %u, byte %llu of %llu: word is %08x, not %08x", i,
                 (unsigned long long)at, (unsigned long long)size, words[0], words[1]);
        what = text;
    }
    vt->program_destroy(device, compiled);
    for (uint32_t i = 0; i < n; i++) {
        vt->buffer_destroy(device, buffers[i]);
        free(memory[i]);
        free(expected[i]);
    }
    return what;
}

// Checks that a case of RepOp `op` has no error on the device. A failure's message contains the
// device's name, `form`, the RepOp and the seed. Counts failures in *n_printed and prints the
// dispatch for the first two.
static inline void compare_case(struct ree_device *device, const char *form, int op, uint64_t seed,
                                const struct test_case *c, uint32_t *n_printed) {
    const char *what = run_device_case(device, GUARD_OF(seed), c);
    CHECK_MSG(!what, "%s, %s, %s, seed %llu: %s", device->name, form, ree_repop_name(op),
              (unsigned long long)seed, what);
    if (!what || (*n_printed)++ >= 2) return;
    struct ree_strbuf text;
    ree_strbuf_init(&text);
    ree_dispatch_print(&c->dispatch, &text);
    fprintf(stderr, "  %s\n", text.data ? text.data : "");
    ree_strbuf_finish(&text);
}

// Checks n random cases of each RepOp, or only of the RepOp named `only` if it is not NULL. Ends
// the cases of a RepOp after six failures. `form` (text) appears in failure messages.
static inline void compare_cases(struct ree_device *device, const char *form, uint32_t n,
                                 const char *only) {
    for (int op = 0; op < REE_N_REPOPS; op++) {
        if (only && strcmp(only, ree_repop_name(op)) != 0) continue;
        uint32_t n_done = 0, n_printed = 0;
        for (uint64_t seed = 1; n_done < n; seed++) {
            struct rng rng = {.state = seed * 7919 + (uint64_t)op};
            struct test_case c = {0};
            if (!case_generators[op](&rng, &c)) {
                test_case_finish(&c);
                continue;
            }
            n_done++;
            compare_case(device, form, op, seed, &c, &n_printed);
            test_case_finish(&c);
            if (n_printed > 5) break;
        }
    }
}

#endif
