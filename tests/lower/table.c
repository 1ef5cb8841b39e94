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

static const struct ree_op *find(const struct row *row, int64_t opset) {
    return ree_op_find(row->domain, row->type, opset, NULL);
}

static bool has_name(const struct ree_op *op, const struct row *row) {
    return !strcmp(op->domain, row->domain) && !strcmp(op->op_type, row->type);
}

static bool finds(const struct row *row, int64_t opset) {
    const struct ree_op *op = find(row, opset);
    return op && has_name(op, row) && op->since == row->since && op->until == row->until;
}

// Outside the row's range, nothing may be found but another row of the operator.
static bool ends_at(const struct row *row, int64_t opset) {
    const struct ree_op *op = find(row, opset);
    return !op || (has_name(op, row) && opset >= op->since && opset <= op->until);
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
        CHECK_MSG(ends_at(&rows[i], rows[i].since - 1) && ends_at(&rows[i], rows[i].until + 1),
                  "%s is found outside opsets %lld to %lld", rows[i].type, (long long)rows[i].since,
                  (long long)rows[i].until);
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
