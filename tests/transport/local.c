// Ranks as threads, connected by sockets: order, limits, deadlines, and which rank is named as the
// cause.
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "test.h"
#include "transport/transport.h"

#define MAX_RANKS 4
#define DEADLINE 1
#define SLACK 60 // tolerance in seconds, for a busy machine

struct rank {
    struct ree_transport *t;
    void (*run)(struct rank *rank);
    pthread_t thread;
    atomic_bool lost; // its on_lost callback was called
    struct ree_error err;
    enum ree_status status;
    double seconds; // time that it waited
};

static struct ree_message message;

static void sleep_seconds(double s) {
    nanosleep(&(struct timespec){(time_t)s, (long)((s - (double)(time_t)s) * 1e9)}, NULL);
}

static void *run_rank(void *user) {
    struct rank *r = user;
    r->run(r);
    return NULL;
}

static void create(struct rank *ranks, uint32_t n, const struct ree_transport_options *options) {
    struct ree_link *links[MAX_RANKS];
    struct ree_error err;
    REQUIRE(ree_link_local_create(n, links, &err) == REE_OK);
    for (uint32_t i = 0; i < n; i++) {
        struct ree_transport_options o = {.deadline = DEADLINE};
        if (options) o = options[i];
        ranks[i] = (struct rank){.t = NULL};
        REQUIRE(ree_transport_create(links[i], &o, &ranks[i].t, &err) == REE_OK);
        CHECK(ree_transport_rank(ranks[i].t) == i && ree_transport_n_ranks(ranks[i].t) == n);
    }
}

static void run_all(struct rank *ranks, uint32_t n) {
    for (uint32_t i = 0; i < n; i++)
        REQUIRE(pthread_create(&ranks[i].thread, NULL, run_rank, &ranks[i]) == 0);
    for (uint32_t i = 0; i < n; i++)
        pthread_join(ranks[i].thread, NULL);
    for (uint32_t i = 0; i < n; i++)
        if (ranks[i].t) ree_transport_close(ranks[i].t);
}

static enum ree_status receive(struct rank *r, uint32_t from, size_t limit, struct ree_message *m) {
    struct ree_expected expected = {1u << REE_MESSAGE_STEP, limit, 17};
    double start = ree_transport_clock();
    r->status = ree_transport_receive(r->t, from, &expected, m, &r->err);
    r->seconds = ree_transport_clock() - start;
    return r->status;
}

// Many messages in both directions at once, far more than a socket can buffer. No rank waits for
// the other to read.
#define N_MESSAGES 200
#define BIG 300000

static atomic_int n_done;

static void talk(struct rank *r) {
    uint32_t me = ree_transport_rank(r->t), other = 1 - me;
    unsigned char *data = malloc(BIG);
    REQUIRE(data);
    for (uint32_t i = 0; i < N_MESSAGES; i++) {
        memset(data, (int)(i + me), BIG);
        struct ree_part parts[2] = {{&i, sizeof i}, {data, i % 3 ? 100 : BIG}};
        CHECK(ree_transport_send(r->t, other, REE_MESSAGE_STEP, i, me, parts, 2, &r->err) ==
              REE_OK);
    }
    for (uint32_t i = 0; i < N_MESSAGES; i++) {
        struct ree_message m;
        CHECK_MSG(receive(r, other, BIG + 200, &m) == REE_OK, "%s", r->err.message);
        if (r->status != REE_OK) break;
        CHECK(m.kind == REE_MESSAGE_STEP && m.from == other && m.step == i && m.slot == other);
        CHECK(m.n_parts == 2 && memcmp(m.parts[0].data, &i, sizeof i) == 0);
        size_t n = i % 3 ? 100 : BIG;
        CHECK(m.parts[1].nbytes == n);
        CHECK(((const unsigned char *)m.parts[1].data)[n - 1] == (unsigned char)(i + other));
        ree_message_finish(&m);
    }
    // Continues to send what has not been sent yet.
    n_done++;
    while (n_done < 2) {
        sleep_seconds(0.001);
        ree_transport_working(r->t);
    }
    free(data);
}

static void test_talk(void) {
    struct rank ranks[2];
    create(ranks, 2, NULL);
    ranks[0].run = ranks[1].run = talk;
    for (int i = 0; i < 2; i++)
        REQUIRE(pthread_create(&ranks[i].thread, NULL, run_rank, &ranks[i]) == 0);
    for (int i = 0; i < 2; i++)
        pthread_join(ranks[i].thread, NULL);
    struct ree_transport_count c = ree_transport_sent(ranks[0].t, REE_MESSAGE_STEP);
    // Header, two sizes, a part of 4 bytes padded to 8, the other part.
    uint64_t n_big = (N_MESSAGES + 2) / 3, fixed = REE_FRAME_HEADER + 16 + 8;
    CHECK(c.n_messages == N_MESSAGES);
    CHECK(c.nbytes == N_MESSAGES * fixed + n_big * BIG + (N_MESSAGES - n_big) * 104);
    // All messages, sent or received, were finished; at least one long message was held at a time.
    for (int i = 0; i < 2; i++) {
        CHECK(ree_transport_buffered(ranks[i].t) >= BIG);
        ree_transport_close(ranks[i].t);
    }
}

// A received message counts as held until it is finished.
static void hold_two(struct rank *r) {
    struct ree_message m[2];
    if (ree_transport_rank(r->t) == 0) {
        static unsigned char data[5000];
        struct ree_part part = {data, sizeof data};
        for (int i = 0; i < 2; i++)
            CHECK(ree_transport_send(r->t, 1, REE_MESSAGE_STEP, 17, 0, &part, 1, &r->err) ==
                  REE_OK);
        return;
    }
    for (int i = 0; i < 2; i++)
        CHECK_MSG(receive(r, 0, 6000, &m[i]) == REE_OK, "%s", r->err.message);
    CHECK(ree_transport_buffered(r->t) == 2 * (REE_FRAME_HEADER + 8 + 5000));
    for (int i = 0; i < 2; i++)
        ree_message_finish(&m[i]);
}

static void test_hold(void) {
    struct ree_transport_options quiet[2] = {{.deadline = 60, .quiet = true},
                                             {.deadline = 60, .quiet = true}};
    struct rank ranks[2];
    create(ranks, 2, quiet);
    ranks[0].run = ranks[1].run = hold_two;
    run_all(ranks, 2);
}

static void send_one(struct rank *r) {
    struct ree_part part = {"0123456789", 10};
    CHECK(ree_transport_send(r->t, 1, REE_MESSAGE_STEP, 17, 0, &part, 1, &r->err) == REE_OK);
}

static void send_three(struct rank *r) {
    for (int i = 0; i < 3; i++)
        send_one(r);
}

static void receive_short(struct rank *r) {
    receive(r, 0, REE_FRAME_HEADER + 8 + 8, &message);
}

static void receive_three(struct rank *r) {
    for (int i = 0; i < 3 && receive(r, 0, 1000, &message) == REE_OK; i++)
        ree_message_finish(&message);
}

static void receive_other_kind(struct rank *r) {
    struct ree_expected expected = {1u << REE_MESSAGE_LOGITS, 1000, 17};
    r->status = ree_transport_receive(r->t, 0, &expected, &message, &r->err);
}

static void test_refused(void) {
    const struct {
        void (*receive)(struct rank *);
        uint64_t corrupt;
        const char *words;
    } cases[] = {
        {receive_short, 0, "the expected maximum is 88"},
        {receive_three, 1, "damaged"},
        {receive_three, 2, "damaged"},
        {receive_three, 3, "damaged"},
        {receive_other_kind, 0, "of the unexpected kind 'step'"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct rank ranks[2];
        struct ree_transport_options options[2] = {
            {.deadline = DEADLINE, .corrupt = cases[i].corrupt}, {.deadline = DEADLINE}};
        create(ranks, 2, options);
        ranks[0].run = send_three;
        ranks[1].run = cases[i].receive;
        run_all(ranks, 2);
        CHECK(ranks[1].status == REE_INVALID);
        CHECK_MSG(strstr(ranks[1].err.message, cases[i].words) &&
                      strstr(ranks[1].err.message, "rank 0"),
                  "case %zu: %s", i, ranks[1].err.message);
    }
}

// Complete frames that arrive in another order, twice, or not at all.
static void test_order(void) {
    const uint64_t orders[][3] = {{0, 2, 1}, {0, 0, 1}, {1, 2, 3}, {0, 1, 3}};
    const char *words[] = {"lost", "sent twice", "lost", "lost"};
    for (size_t i = 0; i < 4; i++) {
        struct ree_link *links[2];
        struct rank r = {0};
        struct ree_transport_options o = {.deadline = DEADLINE};
        REQUIRE(ree_link_local_create(2, links, &r.err) == REE_OK);
        REQUIRE(ree_transport_create(links[1], &o, &r.t, &r.err) == REE_OK);
        unsigned char *frames[3];
        for (int k = 0; k < 3; k++) {
            struct ree_frame_fields f = {REE_MESSAGE_STEP, 0, 1, orders[i][k], 17, 0, 0};
            size_t nbytes;
            void *request;
            bool done;
            REQUIRE(ree_frame_make(&f, NULL, &frames[k], &nbytes, &r.err) == REE_OK);
            REQUIRE(links[0]->ops->start(links[0], 1, REE_CHANNEL_DATA, frames[k], nbytes, &request,
                                         &r.err) == REE_OK);
            REQUIRE(links[0]->ops->test(links[0], request, &done, &r.err) == REE_OK && done);
        }
        receive_three(&r);
        CHECK(r.status == REE_INVALID);
        CHECK_MSG(strstr(r.err.message, words[i]), "%zu: %s", i, r.err.message);
        for (int k = 0; k < 3; k++)
            free(frames[k]);
        ree_transport_close(r.t);
        links[0]->ops->close(links[0]);
    }
}

// A line of ranks 0, 1, 2, 3; each waits for the one before it. One is silent, and all others name
// it.
static uint32_t silent;

static void wait_for_former(struct rank *r) {
    uint32_t me = ree_transport_rank(r->t), n = ree_transport_n_ranks(r->t);
    if (me == silent) {
        sleep_seconds(3 * DEADLINE);
        return;
    }
    // The ranks begin to wait at different times.
    sleep_seconds(0.05 * (n - me));
    receive(r, (me + n - 1) % n, 1000, &message);
}

static void test_silence(void) {
    for (silent = 0; silent < MAX_RANKS; silent += MAX_RANKS - 1) {
        struct rank ranks[MAX_RANKS];
        struct ree_transport_options options[MAX_RANKS];
        char words[64];
        for (uint32_t i = 0; i < MAX_RANKS; i++)
            options[i] = (struct ree_transport_options){.deadline = DEADLINE, .quiet = i == silent};
        create(ranks, MAX_RANKS, options);
        for (int i = 0; i < MAX_RANKS; i++)
            ranks[i].run = wait_for_former;
        snprintf(words, sizeof words, "rank %u has sent nothing for 1 s (step 17)", silent);
        run_all(ranks, MAX_RANKS);
        for (uint32_t i = 0; i < MAX_RANKS; i++) {
            if (i == silent) continue;
            CHECK(ranks[i].status == REE_IO);
            CHECK_MSG(strcmp(ranks[i].err.message, words) == 0, "rank %u: %s", i,
                      ranks[i].err.message);
            CHECK_MSG(ranks[i].seconds > 0.5 * DEADLINE && ranks[i].seconds < DEADLINE + SLACK,
                      "rank %u waited for %.2f s", i, ranks[i].seconds);
        }
    }
}

// A rank waits for work that takes longer than the deadline, but not for work that does not end.
static void work(struct rank *r) {
    send_one(r);
    sleep_seconds(2.5 * DEADLINE);
    send_one(r);
}

#define WORK_DEADLINE (5 * DEADLINE)

static void test_work(void) {
    const struct ree_transport_options options[2] = {
        {.deadline = DEADLINE, .work_deadline = WORK_DEADLINE},
        {.deadline = DEADLINE, .work_deadline = WORK_DEADLINE}};
    struct rank ranks[2];
    const double start = ree_transport_clock();
    create(ranks, 2, options);
    ranks[0].run = work;
    ranks[1].run = receive_three;
    // Only two of three messages come: the rank makes no progress although its heartbeat continues.
    for (int i = 0; i < 2; i++)
        REQUIRE(pthread_create(&ranks[i].thread, NULL, run_rank, &ranks[i]) == 0);
    for (int i = 0; i < 2; i++)
        pthread_join(ranks[i].thread, NULL);
    CHECK_MSG(strcmp(ranks[1].err.message,
                     "rank 0 sends heartbeats, but has made no progress for 5 s (step 17)") == 0,
              "%s", ranks[1].err.message);
    CHECK(ree_transport_sent(ranks[0].t, REE_MESSAGE_ALIVE).n_messages >= 4);
    for (int i = 0; i < 2; i++)
        ree_transport_close(ranks[i].t);
    const double seconds = ree_transport_clock() - start;
    CHECK_MSG(seconds >= WORK_DEADLINE && seconds < WORK_DEADLINE + SLACK, "%g s", seconds);
}

// If another rank falls silent while a rank computes, the transport's thread calls on_lost and
// aborts the link.
static void on_lost(void *user, const char *reason) {
    struct rank *r = user;
    CHECK_MSG(strstr(reason, "rank 1 has sent nothing"), "%s", reason);
    r->lost = true;
}

static void compute(struct rank *r) {
    for (int i = 0; i < 10 * SLACK && !r->lost; i++) {
        sleep_seconds(0.1);
        ree_transport_working(r->t);
    }
}

static void do_nothing(struct rank *r) {
    (void)r;
}

static void test_lost(void) {
    struct rank ranks[2];
    const struct ree_transport_options options[2] = {
        {.deadline = DEADLINE, .on_lost = on_lost, .user = &ranks[0]},
        {.deadline = DEADLINE, .quiet = true}};
    create(ranks, 2, options);
    ranks[0].run = compute;
    ranks[1].run = do_nothing;
    run_all(ranks, 2);
    CHECK(ranks[0].lost);
}

static void wait_for_each_other(struct rank *r) {
    receive(r, 1 - ree_transport_rank(r->t), 1000, &message);
}

static void test_deadlock(void) {
    struct rank ranks[2];
    create(ranks, 2, NULL);
    ranks[0].run = ranks[1].run = wait_for_each_other;
    run_all(ranks, 2);
    for (int i = 0; i < 2; i++) {
        CHECK(ranks[i].status == REE_IO && ranks[i].seconds < 2 * DEADLINE + SLACK);
        CHECK_MSG(strstr(ranks[i].err.message, "all ranks have waited for one another") ||
                      strstr(ranks[i].err.message, "closed"),
                  "%s", ranks[i].err.message);
    }
}

// A rank that fails sends its reason to all ranks at once.
static void fail_or_wait(struct rank *r) {
    if (ree_transport_rank(r->t) == 1) {
        sleep_seconds(0.1);
        ree_transport_fail(r->t, "weights of 'x' differ\x1b[2J", 1);
        r->t = NULL;
        return;
    }
    receive(r, ree_transport_rank(r->t) == 0 ? 2 : 0, 1000, &message);
}

static void test_failure(void) {
    struct rank ranks[3];
    const struct ree_transport_options patient[3] = {
        {.deadline = 60}, {.deadline = 60}, {.deadline = 60}};
    create(ranks, 3, patient);
    for (int i = 0; i < 3; i++)
        ranks[i].run = fail_or_wait;
    run_all(ranks, 3);
    for (int i = 0; i < 3; i += 2) {
        CHECK(ranks[i].status == REE_IO && ranks[i].seconds < SLACK);
        CHECK_MSG(strcmp(ranks[i].err.message, "weights of 'x' differ?[2J") == 0, "%s",
                  ranks[i].err.message);
    }
}

int main(void) {
    test_talk();
    test_hold();
    test_refused();
    test_order();
    test_silence();
    test_work();
    test_lost();
    test_deadlock();
    test_failure();
    return test_finish();
}
