// The operator table: every row is found for its opset range and not outside it, from several
// threads at once.
#include "graph/lower/core/lower.h"
#include "test.h"

#include <pthread.h>
#include <string.h>

static const struct row {
    const char *domain, *type;
    int64_t since, until;
} rows[] = {
#define OP(domain, type, since, until, min_in, max_in, max_out, narrow, rule)                      \
    {domain, type, since, until},
#include "graph/lower/ops/ops.def"
#undef OP
};
#define N_ROWS (sizeof rows / sizeof rows[0])

static bool finds(const struct row *row, int64_t opset) {
    const struct ree_op *op = ree_op_find(row->domain, row->type, opset, NULL);
    return op && !strcmp(op->op_type, row->type) && opset >= op->since && opset <= op->until;
}

static void *find_all(void *out) {
    long missed = 0;
    for (size_t i = 0; i < N_ROWS; i++)
        for (int64_t opset = rows[i].since; opset <= rows[i].until; opset++)
            missed += !finds(&rows[i], opset);
    *(long *)out = missed;
    return NULL;
}

int main(void) {
    // The first look-ups of the process happen concurrently.
    pthread_t threads[4];
    long missed[4];
    for (int i = 0; i < 4; i++)
        REQUIRE(pthread_create(&threads[i], NULL, find_all, &missed[i]) == 0);
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        CHECK_MSG(missed[i] == 0, "thread %d: %ld opsets not found", i, missed[i]);
    }

    for (size_t i = 0; i < N_ROWS; i++) {
        CHECK_MSG(rows[i].since <= rows[i].until, "%s", rows[i].type);
        for (size_t j = 0; j < i; j++) {
            bool same =
                !strcmp(rows[i].type, rows[j].type) && !strcmp(rows[i].domain, rows[j].domain);
            CHECK_MSG(!same || rows[i].since > rows[j].until || rows[i].until < rows[j].since,
                      "two rows of %s overlap", rows[i].type);
        }
    }

    const char *reason = NULL;
    CHECK(!ree_op_find("", "NoSuchOperator", 13, &reason) && !strcmp(reason, "not implemented"));
    CHECK(!ree_op_find("com.example", "Add", 13, &reason) && !strcmp(reason, "not implemented"));
    CHECK(!ree_op_find("", "Gelu", 19, &reason) && strstr(reason, "opsets 20 to"));
    CHECK(!ree_op_find("", "Add", 1000, &reason) && strstr(reason, "only"));
    CHECK(!ree_op_find("", "Add", 0, NULL));
    return test_finish();
}
