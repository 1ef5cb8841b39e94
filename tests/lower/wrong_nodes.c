// Random nodes of every row of the operator table, nearly all of them wrong: types, shapes, values
// and attributes as in a hostile file. A rule must end with tensors inside their storages and
// dispatches that pass the check, or with an error that has a message. Sanitizers detect everything
// else.
//
//     test_lower_wrong_nodes [ROUNDS [OPERATOR [FIRST_ROUND]]]
#include "wrong_draws.h"
#include "test.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static char progress[128]; // names the current node in messages, also if it hangs or aborts

static enum ree_status unknown(struct ree_lower *lower, struct ree_storage *storage) {
    (void)storage;
    return ree_lower_fail(lower, REE_UNSUPPORTED, "a value that only a run knows");
}

// A view must not reach outside its storage.
static bool lies_within(const struct ree_view *t) {
    if (t->kind != REE_TENSOR) {
        for (size_t i = 0; i < t->n_items; i++)
            if (!lies_within(t->items[i])) return false;
        return true;
    }
    int64_t low = t->offset, high = t->offset;
    for (uint32_t i = 0; i < t->rank; i++) {
        if (t->dims[i] == 0) return true;
        int64_t reach = (t->dims[i] - 1) * t->strides[i];
        *(reach < 0 ? &low : &high) += reach;
    }
    return low >= 0 && (uint64_t)(high + 1) * ree_dtype_size(t->dtype) <= t->storage->nbytes;
}

static bool check_program(const char *when) {
    for (size_t i = 0; i < wrong.node.lower.n_dispatches; i++) {
        struct ree_error err = {.message = ""};
        bool right = ree_dispatch_check(&wrong.node.lower.dispatches[i], &err) == REE_OK;
        CHECK_MSG(right, "%s: dispatch %zu, %s: %s", progress, i, when, err.message);
        if (!right) return false;
    }
    return true;
}

static void check_result(enum ree_status status) {
    if (status != REE_OK) {
        CHECK_MSG(status != REE_INTERNAL && wrong.node.err.message[0] &&
                      wrong.node.err.status == status,
                  "%s: %s: '%s'", progress, ree_status_name(status), wrong.node.err.message);
        return;
    }
    bool *keep = wrong_memory(wrong.node.lower.n_storages + 1);
    for (size_t i = 0; i < wrong.node.node.n_outputs; i++) {
        struct ree_view *t = wrong.node.out[i];
        if (!wrong.node.node.outputs[i]) continue;
        CHECK_MSG(t != NULL && lies_within(t), "%s: output %zu", progress, i);
        if (t && t->kind == REE_TENSOR) keep[t->storage->id] = true;
        for (size_t k = 0; t && k < t->n_items; k++)
            keep[t->items[k]->storage->id] = true;
    }
    if (!check_program("as emitted")) return;
    CHECK(ree_fuse_program(&wrong.node.lower, keep) == REE_OK);
    if (!check_program("fused")) return;
    CHECK(ree_prune_program(&wrong.node.lower, keep) == REE_OK);
    check_program("pruned");
}

static void run(const struct ree_op *op, uint64_t seed) {
    wrong_draw(op, seed);
    wrong.node.lower.read_storage = unknown;
    check_result(ree_lower_node(&wrong.node.lower, &wrong.node.node, wrong.node.views));
    test_node_finish(&wrong.node);
}

static const struct row {
    const char *domain, *type;
    int64_t until;
} rows[] = {
#define OP(domain, type, since, until, min_in, max_in, max_out, narrow, rule) {domain, type, until},
#include "graph/lower/ops/ops.def"
#undef OP
};

static void say_where(int signal_number) {
    (void)signal_number;
    static const char text[] = "no end: ";
    ssize_t n = write(2, text, sizeof text - 1);
    n = write(2, progress, strlen(progress));
    (void)n;
    _exit(1);
}

// Sizes derived from hostile numbers must be refused, or fail with an out-of-memory error.
const char *__asan_default_options(void);
__attribute__((visibility("default"))) const char *__asan_default_options(void) {
    return "allocator_may_return_null=1:max_allocation_size_mb=1024";
}

int main(int argc, char **argv) {
    long n_rounds = argc > 1 ? strtol(argv[1], NULL, 10) : 400;
    long first = argc > 3 ? strtol(argv[3], NULL, 10) : 0;
    // AddressSanitizer's own memory is larger than any limit.
    if (!TEST_SANITIZED) setrlimit(RLIMIT_AS, &(struct rlimit){(rlim_t)2 << 30, (rlim_t)2 << 30});
    signal(SIGALRM, say_where);
    signal(SIGABRT, say_where);
    long n_right = 0, n_all = 0;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct ree_op *op = ree_op_find(rows[i].domain, rows[i].type, rows[i].until, NULL);
        if (argc > 2 && strcmp(argv[2], rows[i].type)) continue;
        long right = 0;
        for (long r = first; r < first + n_rounds; r++) {
            snprintf(progress, sizeof progress, "%s opset %lld, round %ld\n", op->op_type,
                     (long long)op->until, r);
            alarm(60);
            run(op, (uint64_t)r * 1024 + i + 1);
            right += wrong.node.err.message[0] == 0;
        }
        if (getenv("REE_TEST_VERBOSE"))
            printf("%-32s %ld of %ld right\n", op->op_type, right, n_rounds);
        n_right += right;
        n_all += n_rounds;
    }
    printf("%ld nodes, %ld of them right\n", n_all, n_right);
    // If too few nodes get through their rules, check_result tests hardly any program.
    CHECK(argc > 1 || n_right > 20000);
    return test_finish();
}
