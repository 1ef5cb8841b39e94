// Trainings on several ranks: what the ranks agree on, who makes a step when, and the end.
#include <string.h>

#include "base/float_env.h"
#include "base/memory.h"
#include "base/strbuf.h"
#include "session/model.h"
#include "train/shared_step.h"
#include "transport/agreement.h"

#define DESCRIPTION_LIMIT ((size_t)64 << 10)

// Everything that the bits, or the messages, depend on.
static enum ree_status describe(struct ree_training *t, uint32_t n_ranks, struct ree_strbuf *out,
                                struct ree_error *err) {
    ree_digest root;
    char states[65];
    REE_TRY(ree_training_hash(t, err));
    REE_TRY(ree_device_states_read(&t->on_device, t->states, err));
    REE_TRY(ree_states_root(t->states, t->step.n_states, root, err));
    ree_hex(root, states);
    ree_strbuf_printf(out, "ree version\t%s\n", ree_version());
    ree_strbuf_printf(out, "numerics version\t%s\n", ree_numerics_version());
    ree_strbuf_printf(out, "the number of ranks\t%u\n", n_ranks);
    ree_strbuf_printf(out, "--operation-set\t%s\n",
                      ree_operation_set_name(ree_device_operation_set(t->device)));
    // Folding decides which sums the ranks share.
    ree_strbuf_printf(out, "--no-fold (0 or 1)\t%d\n", t->model->no_fold);
    ree_strbuf_printf(out, "the step's graph SHA-256\t%s\n", t->hashes.graph);
    ree_strbuf_printf(out, "the step's weights SHA-256\t%s\n", t->hashes.weights);
    ree_strbuf_printf(out, "the step's roles SHA-256\t%s\n", t->roles_sha256);
    ree_strbuf_printf(out, "the samples' SHA-256\t%s\n", t->data_sha256);
    ree_strbuf_printf(out, "--seed\t%llu\n", (unsigned long long)t->options.seed);
    ree_strbuf_printf(out, "--in-order\t%s\n", t->options.in_order ? "on" : "off");
    ree_strbuf_printf(out, "the number of steps before\t%llu\n", (unsigned long long)t->n_steps);
    ree_strbuf_printf(out, "the states' SHA-256\t%s\n", states);
    return out->failed ? ree_no_memory(err) : REE_OK;
}

static enum ree_status receive(struct ree_training *t, uint32_t from, uint32_t kinds, size_t limit,
                               struct ree_message *out, struct ree_error *err) {
    const struct ree_expected expected = {.kinds = kinds, .limit = limit, .step = t->n_steps};
    double start = ree_transport_clock();
    REE_TRY(ree_transport_receive(t->shared->transport, from, &expected, out, err));
    t->shared->waited += ree_transport_clock() - start;
    return REE_OK;
}

static enum ree_status send_to_all(struct ree_training *t, enum ree_message_kind kind,
                                   struct ree_error *err) {
    for (uint32_t r = 1; r < t->shared->n_ranks; r++)
        REE_TRY(ree_transport_send(t->shared->transport, r, kind, t->n_steps, 0, NULL, 0, err));
    return REE_OK;
}

static enum ree_status agree(struct ree_training *t, const struct ree_strbuf *text,
                             struct ree_error *err) {
    const struct ree_part part = {text->data, text->size};
    struct ree_shared_step *s = t->shared;
    struct ree_message m;
    if (s->rank) {
        REE_TRY(ree_transport_send(s->transport, 0, REE_MESSAGE_HANDSHAKE, 0, 0, &part, 1, err));
        REE_TRY(receive(t, 0, 1u << REE_MESSAGE_WELCOME, DESCRIPTION_LIMIT, &m, err));
        ree_message_finish(&m);
        return REE_OK;
    }
    for (uint32_t r = 1; r < s->n_ranks; r++) {
        REE_TRY(receive(t, r, 1u << REE_MESSAGE_HANDSHAKE, DESCRIPTION_LIMIT, &m, err));
        enum ree_status status =
            m.n_parts == 1 ? ree_agreement_compare(r, text, &m.parts[0], err)
                           : ree_fail(err, REE_INVALID, "rank %u does not send its description", r);
        ree_message_finish(&m);
        if (status != REE_OK) return status;
    }
    return send_to_all(t, REE_MESSAGE_WELCOME, err);
}

enum ree_status ree_training_share(struct ree_training *t, struct ree_transport *transport,
                                   struct ree_error *err) {
    REE_FLOAT_ENV_API();
    struct ree_strbuf text;
    if (t->shared || t->is_traced)
        return ree_fail(err, REE_INVALID,
                        t->shared ? "the training is already shared"
                                  : "a training that is traced cannot be shared by ranks");
    ree_strbuf_init(&text);
    enum ree_status status = describe(t, ree_transport_n_ranks(transport), &text, err);
    if (status == REE_OK) status = ree_shared_step_create(t, transport, &t->shared, err);
    if (status == REE_OK) status = agree(t, &text, err);
    ree_strbuf_finish(&text);
    if (status == REE_OK) return REE_OK;
    ree_shared_step_destroy(t->shared);
    t->shared = NULL;
    return status;
}

enum ree_status ree_shared_step_begin(struct ree_training *t, struct ree_error *err) {
    return t->shared->rank ? REE_OK : send_to_all(t, REE_MESSAGE_STEP, err);
}

// Reports

static struct ree_training_share_info own_info(const struct ree_training *t) {
    const struct ree_shared_step *s = t->shared;
    return (struct ree_training_share_info){.n_samples = (uint64_t)(s->end - s->begin),
                                            .n_products = s->n_products,
                                            .waited = s->waited};
}

enum ree_status ree_training_serve(struct ree_training *t, struct ree_error *err) {
    REE_FLOAT_ENV_API();
    if (!t->shared || !t->shared->rank)
        return ree_fail(err, REE_INVALID, "only a rank other than 0 serves a training");
    for (;;) {
        struct ree_message m;
        REE_TRY(receive(t, 0, 1u << REE_MESSAGE_STEP | 1u << REE_MESSAGE_END, DESCRIPTION_LIMIT, &m,
                        err));
        uint32_t kind = m.kind;
        uint64_t step = m.step;
        ree_message_finish(&m);
        if (step != t->n_steps)
            return ree_fail(err, REE_INVALID, "rank 0 is at step %llu, this rank at step %llu",
                            (unsigned long long)step, (unsigned long long)t->n_steps);
        if (kind == REE_MESSAGE_END) break;
        REE_TRY(ree_training_step(t, NULL, err));
    }
    const struct ree_training_share_info info = own_info(t);
    const struct ree_part part = {&info, sizeof info};
    struct ree_message bye;
    REE_TRY(ree_transport_send(t->shared->transport, 0, REE_MESSAGE_REPORT, t->n_steps, 0, &part, 1,
                               err));
    REE_TRY(receive(t, 0, 1u << REE_MESSAGE_BYE, DESCRIPTION_LIMIT, &bye, err));
    ree_message_finish(&bye);
    return REE_OK;
}

enum ree_status ree_training_end(struct ree_training *t, struct ree_training_share_info *out,
                                 struct ree_error *err) {
    REE_FLOAT_ENV_API();
    if (!t->shared || t->shared->rank)
        return ree_fail(err, REE_INVALID, "only rank 0 ends a shared training");
    REE_TRY(send_to_all(t, REE_MESSAGE_END, err));
    out[0] = own_info(t);
    for (uint32_t r = 1; r < t->shared->n_ranks; r++) {
        struct ree_message m;
        REE_TRY(receive(t, r, 1u << REE_MESSAGE_REPORT, DESCRIPTION_LIMIT, &m, err));
        bool fits = m.n_parts == 1 && m.parts[0].nbytes == sizeof out[r];
        if (fits) memcpy(&out[r], m.parts[0].data, sizeof out[r]);
        ree_message_finish(&m);
        if (!fits) return ree_fail(err, REE_INVALID, "rank %u sends no report", r);
    }
    return REE_OK;
}

enum ree_status ree_training_release(struct ree_training *t, struct ree_error *err) {
    REE_FLOAT_ENV_API();
    return t->shared && !t->shared->rank ? send_to_all(t, REE_MESSAGE_BYE, err) : REE_OK;
}
