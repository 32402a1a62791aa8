/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/node_fleet.h"

#include <string.h>

#include "common/files/file.h"
#include "profile-store/core/commit_group.h"
#include "profile-store/core/table_follow.h"
#include "profile-store/scan.h"
#include "storage/local_storage.h"
#include "tests/support/profiles.h"
#include "tests/support/store_fixture.h"

static struct node_fleet_node *find_fleet_node(struct node_fleet *f, const char *identity)
{
        for (unsigned i = 0; i < f->count; i++)
                if (strcmp(f->nodes[i].store->logs.node, identity) == 0)
                        return &f->nodes[i];
        return NULL;
}

static enum hand_result await_fleet_answer(struct node_fleet *f, struct node_fleet_node *holder,
                                           struct offered_commit *offer)
{
        struct error err = { 0 };
        uint64_t version = 0;
        bool is_refused = false;
        enum status st = profile_store_await_commit(holder->store, offer, 0, &version, &is_refused, &err);

        f->refusals += is_refused;
        if (!st)
                ck_assert_uint_le(version, (uint64_t)holder->store->tables->versions[TABLE_SAMPLES]);
        if (f->loses_answers)
                return HAND_NO_ANSWER;
        return !st ? HAND_COMMITTED : is_refused ? HAND_REFUSED : HAND_NO_ANSWER;
}

static enum hand_result hand_in_fleet(void *context, const struct handed_commit *base, const void *text, size_t n)
{
        struct node_fleet_node *node = context;
        struct node_fleet *f = node->fleet;
        struct node_fleet_node *holder = find_fleet_node(f, base->holder);
        struct offered_commit *offer;
        struct error err;
        enum status st;

        ck_assert(holder && holder != node);
        st = profile_store_offer_commit(holder->store, base, text, n, &offer, &err);
        if (st == ST_NOT_FOUND)
                return HAND_NOT_HOLDER;
        check_ok(st, &err);
        f->offers++;
        f->due_offers += holder->store->group_due_ns == GROUP_IS_DUE;
        node->storage->is_cut = f->cuts_after_hand;
        if (f->stops_holder) {
                commit_group_abandon(holder->store, offer);
                f->stops_holder = false;
                return HAND_NO_ANSWER;
        }
        node_fleet_flush(f, f->chained && node->number + 1 < f->count ? node->number + 1 : holder->number);
        return await_fleet_answer(f, holder, offer);
}

static void open_fleet_node(struct node_fleet *f, unsigned node)
{
        struct node_fleet_node *n = &f->nodes[node];
        const struct profile_store_options options = { .size = sizeof options,
                                                       .flush_interval_ms = UINT64_MAX,
                                                       .removed_grace_ms = 3600000,
                                                       .tables = &n->storage->storage,
                                                       .hand = f->hands_nothing ? NULL : hand_in_fleet,
                                                       .hand_context = n,
                                                       .is_shared = true };
        char dir[TEMPORARY_DIR_BYTES + 16];
        struct error err;

        snprintf(dir, sizeof dir, "%s/node-%u", f->dir, node);
        check_ok(profile_store_open(dir, &options, &n->store, &err), &err);
}

void node_fleet_begin(struct node_fleet *f, unsigned count)
{
        temporary_dir_create(f->dir, "fleet");
        f->count = count;
        for (unsigned i = 0; i < count; i++) {
                _cleanup_free_ char *tables = path_join(f->dir, "tables");
                struct storage *inner;
                struct error err;

                ck_assert_ptr_nonnull(tables);
                check_ok(local_storage_open(tables, &inner, &err), &err);
                f->nodes[i] =
                        (struct node_fleet_node){ .fleet = f, .number = i, .storage = faulty_storage_create(inner) };
                open_fleet_node(f, i);
        }
}

void node_fleet_end(struct node_fleet *f)
{
        for (unsigned i = 0; i < f->count; i++) {
                profile_store_close(f->nodes[i].store);
                storage_close(&f->nodes[i].storage->storage);
        }
        temporary_dir_remove(f->dir);
}

void node_fleet_restart(struct node_fleet *f, unsigned node)
{
        profile_store_close(f->nodes[node].store);
        faulty_storage_set(f->nodes[node].storage, STORAGE_FAULT_NONE, 0);
        f->nodes[node].storage->is_cut = false;
        f->cuts_after_hand = false;
        open_fleet_node(f, node);
}

static void append_sample(struct node_fleet *f, unsigned node, unsigned batch, uint64_t address, const char *label)
{
        const char *const labels[] = { label, NULL };
        struct test_profile t;
        uint32_t stack[1];
        struct error err;

        test_profile_init(&t, STORE_FIXTURE_ID, "/bin/x");
        stack[0] = test_location(&t, address);
        test_sample(&t, STORE_FIXTURE_T0 + batch, 1, stack, 1, labels);
        check_ok(profile_store_append(f->nodes[node].store, &t.p, store_fixture_batch_id(batch), NULL, &err), &err);
        test_profile_deinit(&t);
}

void node_fleet_append(struct node_fleet *f, unsigned node, unsigned batch, const char *label)
{
        append_sample(f, node, batch, 0x1000, label);
}

void node_fleet_append_stack(struct node_fleet *f, unsigned node, unsigned batch, uint64_t address)
{
        append_sample(f, node, batch, address, NULL);
}

void node_fleet_flush(struct node_fleet *f, unsigned node)
{
        struct error err;

        check_ok(profile_store_flush(f->nodes[node].store, &err), &err);
}

void node_fleet_fail_flush(struct node_fleet *f, unsigned node)
{
        struct error err;

        ck_assert_int_ne(profile_store_flush(f->nodes[node].store, &err), ST_OK);
}

void node_fleet_follow(struct node_fleet *f, unsigned node)
{
        struct profile_store *s = f->nodes[node].store;
        struct error err;

        pthread_mutex_lock(&s->writer_lock);
        check_ok(store_reconcile(s, &err), &err);
        pthread_mutex_unlock(&s->writer_lock);
}

int64_t node_fleet_sum(struct node_fleet *f, unsigned node)
{
        const struct scan_filter all = { INT64_MIN, INT64_MAX, NULL, NULL, 0 };
        struct stack_sums sums = { 0 };
        const struct scan_stacks *stacks;
        struct store_scan *scan;
        struct error err;
        int64_t ret = 0;

        check_ok(store_scan_begin(f->nodes[node].store, &scan, &err), &err);
        check_ok(store_scan_sum(scan, &all, &sums, &err), &err);
        check_ok(store_scan_resolve(scan, &sums, &stacks, &err), &err);
        for (size_t i = 0; i < sums.count; i++)
                if (stacks->first[i + 1] > stacks->first[i])
                        ret += sums.items[i].value;
        stack_sums_deinit(&sums);
        store_scan_end(scan);
        return ret;
}

void node_fleet_put(struct node_fleet *f, const char *key, const char *text)
{
        struct storage *s = f->nodes[0].storage->inner;
        struct error err;

        check_ok(storage_make_folder(s, key, &err), &err);
        check_ok(storage_put(s, key, text, strlen(text), STORAGE_REPLACE, &err), &err);
}
