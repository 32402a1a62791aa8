/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SERVER_CORE_INGEST_HISTORY_H
#define CAIRN_SERVER_CORE_INGEST_HISTORY_H

/**
 * @file
 * Ingest statistics of one tenant since startup, in memory: batches and samples of each of the last
 * INGEST_HISTORY_MINUTES minutes, refusals by reason with the last error text, and the senders (senders.h).
 * Metrics are sums over all tenants; these statistics are for clients that may see one tenant only.
 *
 * Threads: any, except create and destroy.
 */
#include "profile-formats/profile.h"
#include "server/core/senders.h"

#define INGEST_HISTORY_MINUTES 60
#define INGEST_PROBLEM_TEXT_SIZE 240

/** Reasons for refusals: first of whole batches, then of samples in accepted batches. */
enum ingest_problem {
        INGEST_BAD_DATA,
        INGEST_TOO_BIG,
        INGEST_BUSY,
        INGEST_UNSUPPORTED,
        INGEST_INTERNAL,
        INGEST_TOO_OLD,
        INGEST_TOO_FAR_AHEAD,
        INGEST_LABEL_KEY,
        INGEST_MALFORMED,
        INGEST_PROBLEM_COUNT
};
/** Value of the label `reason` of the metric that counts it: "bad_data", ... */
const char *ingest_problem_name(enum ingest_problem p);
/** Whether the reason counts batches; else samples. */
bool ingest_problem_is_of_batches(enum ingest_problem p);
/** The remedy, one sentence without a full stop. */
const char *ingest_problem_next_step(enum ingest_problem p);

struct ingest_problem_state {
        uint64_t count;
        int64_t last_unix_ns;
        char text[INGEST_PROBLEM_TEXT_SIZE]; /* of the last refusal, as are agent and address */
        char agent[SENDER_AGENT_SIZE], address[SENDER_ADDRESS_SIZE];
};

struct ingest_minute {
        int64_t start_unix_s;
        uint64_t batches, samples, refused; /* refused batches */
};

struct ingest_totals {
        int64_t since_unix_ns;
        uint64_t batches, duplicates, samples, rejected;
};

struct ingest_history;

enum status ingest_history_create(struct ingest_history **ret, struct error *err) MUST_CHECK;
void ingest_history_destroy(struct ingest_history *h); /* takes NULL */

/** Both clocks at one instant. */
struct ingest_time {
        int64_t mono_ns, unix_ns;
};
struct ingest_time ingest_time_now(void);

/** The hosts of a batch, with the number of samples of each. */
struct batch_hosts;

/** Call before samples are rejected, while their hosts are known. @return owned, free(); NULL when out of memory. */
struct batch_hosts *batch_hosts_create(const struct profile *p);

/** An acknowledged batch. */
struct ingested_batch {
        const struct profile *profile; /* without the rejected samples */
        struct batch_hosts *hosts;     /* before rejection; NULL: senders are not recorded. Borrowed, modified */
        const char *agent, *address;   /* as in struct sender_name; NULL: unknown */
        bool is_duplicate;             /* a repeated send: no samples were added */
};
void ingest_history_add_batch(struct ingest_history *h, const struct ingested_batch *b, struct ingest_time now);

/** Refused batches or samples. */
struct ingest_refusal {
        enum ingest_problem problem;
        uint64_t count;              /* of batches or samples; 0: nothing is recorded */
        const char *text;            /* error text */
        const char *agent, *address; /* as in struct ingested_batch */
};
void ingest_history_add_refusal(struct ingest_history *h, const struct ingest_refusal *r, struct ingest_time now);

struct senders *ingest_history_get_senders(struct ingest_history *h);
void ingest_history_get_totals(struct ingest_history *h, struct ingest_totals *ret);
/** The last minutes, oldest first; the current one is the last. */
void ingest_history_get_minutes(struct ingest_history *h, struct ingest_time now,
                                struct ingest_minute ret[static INGEST_HISTORY_MINUTES]);
void ingest_history_get_problem(struct ingest_history *h, enum ingest_problem problem,
                                struct ingest_problem_state *ret);

#endif
