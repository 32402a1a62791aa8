/* SPDX-License-Identifier: Apache-2.0 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/limits.h"
#include "common/memory/memory_budget.h"
#include "server/core/ingest_history.h"
#include "tests/support/suite.h"

#define MINUTE_NS INT64_C(60000000000)

static void note_sender(struct senders *s, const char *host, const char *agent, const char *address, int64_t now)
{
        const struct sender_name name = { host, agent, address };
        const struct sender_batch batch = { .samples = 1, .newest_unix_ns = now - 1, .now_unix_ns = now };

        senders_note_batch(s, &name, &batch);
}

static struct senders *create_senders(void)
{
        struct senders *s;
        struct error err;

        ck_assert_msg(senders_create(&s, &err) == ST_OK, "%s", err.text);
        return s;
}

static size_t count_kept(struct senders *s)
{
        uint64_t forgotten;
        size_t kept;

        senders_count(s, &kept, &forgotten);
        return kept;
}

START_TEST(a_sender_is_a_host_and_a_program)
{
        struct senders *s = create_senders();
        struct sender_record *items;
        size_t count;

        note_sender(s, "a", "agent/1", "10.0.0.1", 1);
        note_sender(s, "a", "agent/2 (x)", "10.0.0.2", 2);
        ck_assert_uint_eq(count_kept(s), 1);
        note_sender(s, "a", "agen/1", "10.0.0.1", 3);
        note_sender(s, "b", "agent/1", "10.0.0.1", 4);
        note_sender(s, "", "agent/1", "10.0.0.1", 5);
        note_sender(s, "", "agent/1", "10.0.0.2", 6);
        note_sender(s, "10.0.0.1", "agent/1", "10.0.0.1", 7); /* a host name equal to an address is not that address */
        ck_assert_uint_eq(count_kept(s), 6);
        note_sender(s, "a", "agent", "10.0.0.3", 8);
        ck_assert_int_eq(senders_copy(s, 100, &items, &count, NULL), ST_OK);
        ck_assert_uint_eq(count, 6);
        ck_assert_str_eq(items[0].host, "a");
        ck_assert_str_eq(items[0].agent, "agent");
        ck_assert_str_eq(items[0].address, "10.0.0.3");
        ck_assert_int_eq(items[0].first_unix_ns, 1);
        ck_assert_int_eq(items[0].last_unix_ns, 8);
        ck_assert_int_eq(items[0].newest_unix_ns, 7);
        ck_assert_uint_eq(items[0].batches, 3);
        ck_assert_str_eq(items[1].host, "10.0.0.1");
        free(items);
        ck_assert_int_eq(senders_copy(s, 2, &items, &count, NULL), ST_OK);
        ck_assert_uint_eq(count, 2);
        free(items);
        senders_destroy(s);
}
END_TEST

START_TEST(least_recently_seen_sender_is_evicted)
{
        struct senders *s = create_senders();
        uint64_t forgotten;
        char host[32];
        struct sender_record *items;
        size_t kept;

        for (int i = 0; i < LIMIT_SENDERS; i++) {
                snprintf(host, sizeof host, "host-%d", i);
                note_sender(s, host, "agent/1", "", i + 1);
        }
        note_sender(s, "host-0", "agent/1", "", LIMIT_SENDERS + 1); /* 1 is now the least recently used */
        for (int i = 0; i < 3; i++) {
                snprintf(host, sizeof host, "more-%d", i);
                note_sender(s, host, "agent/1", "", LIMIT_SENDERS + 2 + i);
        }
        senders_count(s, &kept, &forgotten);
        ck_assert_uint_eq(kept, LIMIT_SENDERS);
        ck_assert_uint_eq(forgotten, 3);
        ck_assert_int_eq(senders_copy(s, LIMIT_SENDERS, &items, &kept, NULL), ST_OK);
        ck_assert_str_eq(items[0].host, "more-2");
        ck_assert_str_eq(items[3].host, "host-0");
        ck_assert_str_eq(items[LIMIT_SENDERS - 1].host, "host-4");
        free(items);
        senders_destroy(s);
        ck_assert_uint_eq(memory_use_held(MEMORY_CACHES), 0);
}
END_TEST

START_TEST(fewer_senders_are_kept_without_memory)
{
        struct memory_reservation all = { .use = MEMORY_CACHES };
        struct senders *s = create_senders();
        uint64_t forgotten;
        size_t kept;

        ck_assert_int_eq(memory_budget_set_limit(LIMIT_MEMORY_LEAST_BYTES, NULL), ST_OK);
        note_sender(s, "a", "agent/1", "", 1);
        note_sender(s, "b", "agent/1", "", 2);
        while (!memory_reserve(&all, 256, NULL))
                ;
        note_sender(s, "c", "agent/1", "", 3);
        senders_count(s, &kept, &forgotten);
        ck_assert_uint_eq(kept, 2);
        ck_assert_uint_eq(forgotten, 1);
        memory_release(&all);
        senders_destroy(s);
        s = create_senders();
        while (!memory_reserve(&all, 256, NULL))
                ;
        note_sender(s, "a", "agent/1", "", 1);
        ck_assert_uint_eq(count_kept(s), 0);
        memory_release(&all);
        senders_destroy(s);
}
END_TEST

START_TEST(truncated_texts_are_still_one_sender)
{
        struct senders *s = create_senders();
        char text[1000];
        struct sender_record *items;
        size_t count;

        memset(text, 'x', sizeof text);
        text[sizeof text - 1] = 0;
        note_sender(s, text, text, text, 1);
        note_sender(s, text, text, text, 2);
        note_sender(s, "", text, text, 3);
        note_sender(s, "", text, text, 4);
        ck_assert_int_eq(senders_copy(s, 10, &items, &count, NULL), ST_OK);
        ck_assert_uint_eq(count, 2);
        ck_assert_uint_eq(strlen(items[0].agent), SENDER_AGENT_SIZE - 1);
        ck_assert_uint_eq(strlen(items[0].address), SENDER_ADDRESS_SIZE - 1);
        ck_assert_uint_eq(strlen(items[1].host), SENDER_HOST_SIZE - 1);
        free(items);
        senders_destroy(s);
}
END_TEST

/* ---- batches ---- */

/* A sample for each host; NULL: without labels. */
static void make_batch(struct profile *p, const char *const *hosts, size_t count)
{
        struct profile_type type = { 0 };
        uint32_t stack;

        ck_assert_int_eq(profile_init(p, MiB(64), NULL), ST_OK);
        ck_assert_int_eq(profile_add_stack(p, NULL, 0, &stack, NULL), ST_OK);
        ck_assert_int_eq(profile_add_type(p, &type, &stack, NULL), ST_OK);
        for (size_t i = 0; i < count; i++) {
                struct profile_sample sample = { .stack = 0, .time_unix_ns = 1000 + (int64_t)i };
                struct profile_label label = { 0 };
                uint32_t n;

                if (hosts[i]) {
                        ck_assert_int_eq(profile_add_string(p, "host.name", 9, &label.key, NULL), ST_OK);
                        ck_assert_int_eq(profile_add_string(p, hosts[i], strlen(hosts[i]), &label.value, NULL), ST_OK);
                        ck_assert_int_eq(profile_add_label_set(p, &label, 1, &sample.first_label, NULL), ST_OK);
                        sample.label_count = 1;
                }
                ck_assert_int_eq(profile_add_sample(p, &sample, &n, NULL), ST_OK);
        }
}

static struct ingest_history *create_history(void)
{
        struct ingest_history *h;

        ck_assert_int_eq(ingest_history_create(&h, NULL), ST_OK);
        return h;
}

static void add_batch(struct ingest_history *h, const char *const *hosts, size_t count, int64_t minute)
{
        struct profile p;
        struct ingested_batch b = { .profile = &p, .agent = "agent/1", .address = "::1" };

        make_batch(&p, hosts, count);
        b.hosts = batch_hosts_create(&p);
        ck_assert_ptr_nonnull(b.hosts);
        ingest_history_add_batch(h, &b, (struct ingest_time){ minute * MINUTE_NS, 1700000000 * INT64_C(1000000000) });
        free(b.hosts);
        profile_deinit(&p);
}

START_TEST(a_minute_is_forgotten_after_an_hour)
{
        static const char *const hosts[] = { "a", "a", NULL };
        struct ingest_minute minutes[INGEST_HISTORY_MINUTES];
        struct ingest_history *h = create_history();
        struct ingest_totals totals;
        const int64_t last = 1000;

        add_batch(h, hosts, 3, last - 60);
        add_batch(h, hosts, 2, last - 59);
        add_batch(h, hosts, 1, last);
        add_batch(h, hosts, 1, last);
        ingest_history_get_minutes(
                h, (struct ingest_time){ last * MINUTE_NS + 30, 1700000000 * INT64_C(1000000000) + 30 }, minutes);
        ck_assert_uint_eq(minutes[0].samples, 2);
        ck_assert_int_eq(minutes[0].start_unix_s, 1700000000 - 59 * 60);
        ck_assert_uint_eq(minutes[1].samples, 0);
        ck_assert_uint_eq(minutes[59].samples, 2);
        ck_assert_uint_eq(minutes[59].batches, 2);
        ck_assert_int_eq(minutes[59].start_unix_s, 1700000000);
        ingest_history_get_totals(h, &totals);
        ck_assert_uint_eq(totals.samples, 7);
        ck_assert_uint_eq(totals.batches, 4);
        ingest_history_get_minutes(h, (struct ingest_time){ (last + 200) * MINUTE_NS, 0 }, minutes);
        for (int i = 0; i < INGEST_HISTORY_MINUTES; i++)
                ck_assert_uint_eq(minutes[i].batches, 0);
        ingest_history_destroy(h);
}
END_TEST

START_TEST(batch_with_many_hosts_records_some)
{
        enum { HOSTS = 2 * LIMIT_SENDERS_PER_BATCH };
        static char names[HOSTS][16];
        static const char *hosts[2 * HOSTS];
        struct ingest_history *h = create_history();

        for (int i = 0; i < 2 * HOSTS; i++) {
                snprintf(names[i % HOSTS], sizeof names[0], "h%d", i % HOSTS);
                hosts[i] = names[i % HOSTS];
        }
        add_batch(h, hosts, 2 * HOSTS, 5);
        ck_assert_uint_eq(count_kept(ingest_history_get_senders(h)), LIMIT_SENDERS_PER_BATCH);
        ingest_history_destroy(h);
}
END_TEST

START_TEST(rejected_samples_are_counted_by_host)
{
        static const char *const hosts[] = { "a", "b", "b", NULL };
        struct ingest_history *h = create_history();
        struct profile p;
        struct ingested_batch b = { .profile = &p };
        struct sender_record *items;
        size_t count;

        make_batch(&p, hosts, 4);
        p.rejected_samples = 1; /* rejected by a decoder */
        b.hosts = batch_hosts_create(&p);
        p.samples.count = 2; /* "a" and one of "b" */
        p.rejected_samples += 2;
        ingest_history_add_batch(h, &b, (struct ingest_time){ 1, 1 });
        free(b.hosts);
        profile_deinit(&p);
        ck_assert_int_eq(senders_copy(ingest_history_get_senders(h), 10, &items, &count, NULL), ST_OK);
        ck_assert_uint_eq(count, 3);
        for (size_t i = 0, others = 0; i < count; i++) {
                const struct sender_record *s = &items[i];
                uint64_t known = strcmp(s->host, "a") == 0 ? 0 : 1; /* one more from the first of them */

                ck_assert_uint_eq(s->samples, *s->host ? 1 : 0);
                ck_assert_uint_ge(s->rejected, known);
                others += s->rejected - known;
                ck_assert_uint_eq(others, i + 1 == count ? 1 : others);
        }
        free(items);
        ingest_history_destroy(h);
}
END_TEST

START_TEST(rejected_samples_of_unrecorded_hosts_are_not_counted)
{
        enum { HOSTS = LIMIT_SENDERS_PER_BATCH + 10 };
        static char names[HOSTS][16];
        static const char *hosts[HOSTS];
        struct ingest_history *h = create_history();
        struct profile p;
        struct ingested_batch b = { .profile = &p };
        struct sender_record *items;
        size_t count;

        for (int i = 0; i < HOSTS; i++) {
                snprintf(names[i], sizeof names[0], "h%d", i);
                hosts[i] = names[i];
        }
        make_batch(&p, hosts, HOSTS);
        b.hosts = batch_hosts_create(&p);
        p.samples.count = LIMIT_SENDERS_PER_BATCH; /* those of the first hosts */
        p.rejected_samples = 10;
        ingest_history_add_batch(h, &b, (struct ingest_time){ 1, 1 });
        free(b.hosts);
        profile_deinit(&p);
        ck_assert_int_eq(senders_copy(ingest_history_get_senders(h), HOSTS, &items, &count, NULL), ST_OK);
        ck_assert_uint_eq(count, LIMIT_SENDERS_PER_BATCH);
        for (size_t i = 0; i < count; i++)
                ck_assert_uint_eq(items[i].rejected, 0);
        free(items);
        ingest_history_destroy(h);
}
END_TEST

START_TEST(last_rejection_text_is_kept)
{
        struct ingest_history *h = create_history();
        struct ingest_refusal r = { INGEST_BAD_DATA, 1, "first", "agent/1", NULL };
        const struct ingest_time now = { 7 * MINUTE_NS, 123 };
        struct ingest_minute minutes[INGEST_HISTORY_MINUTES];
        struct ingest_problem_state state;

        ingest_history_add_refusal(h, &r, now);
        r.text = "second";
        ingest_history_add_refusal(h, &r, now);
        r = (struct ingest_refusal){ INGEST_TOO_OLD, 0, "none", NULL, NULL };
        ingest_history_add_refusal(h, &r, now);
        ingest_history_get_problem(h, INGEST_BAD_DATA, &state);
        ck_assert_uint_eq(state.count, 2);
        ck_assert_str_eq(state.text, "second");
        ck_assert_str_eq(state.agent, "agent/1");
        ck_assert_int_eq(state.last_unix_ns, 123);
        ingest_history_get_problem(h, INGEST_TOO_OLD, &state);
        ck_assert_uint_eq(state.count, 0);
        ck_assert_str_eq(state.text, "");
        ingest_history_get_minutes(h, now, minutes);
        ck_assert_uint_eq(minutes[59].refused, 2);
        ingest_history_destroy(h);
}
END_TEST

TEST_SUITE("ingest_history", a_sender_is_a_host_and_a_program, least_recently_seen_sender_is_evicted,
           fewer_senders_are_kept_without_memory, truncated_texts_are_still_one_sender,
           a_minute_is_forgotten_after_an_hour, batch_with_many_hosts_records_some,
           rejected_samples_are_counted_by_host, rejected_samples_of_unrecorded_hosts_are_not_counted,
           last_rejection_text_is_kept)
