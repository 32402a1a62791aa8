/* SPDX-License-Identifier: Apache-2.0 */
/*
 * In the file: metrics; opening and the lease; offered commits, of the threads that bring them and of the flush that
 * makes them; the other side, that hands a commit.
 */
#include "profile-store/core/commit_group.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/limits.h"
#include "common/metrics.h"
#include "common/threads/condition.h"
#include "profile-store/core/flush_group.h"
#include "profile-store/core/table_absence.h"
#include "profile-store/core/table_follow.h"

static struct metric included = METRIC_COUNTER(
        "cairn_commits_for_others_total", "Flushes of other nodes that this node committed together with others.", "");
static struct metric refused = METRIC_COUNTER(
        "cairn_commits_refused_total", "Flushes of other nodes that this node was asked to commit and did not.", "");
static struct metric handed =
        METRIC_COUNTER("cairn_commits_handed_total", "Flushes whose samples another node committed for this one.", "");
static struct metric hand_failures =
        METRIC_COUNTER("cairn_commit_hand_failures_total",
                       "Flushes that another node did not commit for this one, which then committed alone.", "");

/* A node that handed a commit. */
struct group_member {
        char node[NODE_ID_SIZE];
        int64_t seen_ns; /* monotonic */
};

struct commit_group {
        pthread_mutex_t lock;
        pthread_cond_t ended;                                /* used with lock */
        struct offered_commit *offers[LIMIT_HANDED_COMMITS]; /* in the order of their arrival */
        size_t count;
        struct group_member members[LIMIT_HANDED_COMMITS];
        size_t member_count;
        bool is_stopped;
        _Atomic int64_t held_until_ns; /* monotonic: this node has the lease until then; 0: it has not */

        /* Protected by writer_lock. */
        struct store_lease lease;
        bool is_handing;
        pthread_cond_t handed;      /* used with writer_lock */
        char holder[NODE_ID_SIZE];  /* that is asked; "": not known */
        unsigned pause, next_pause; /* commits that are made alone before the holder is asked again */
        uint64_t taken;             /* commits of others in those of the current flush */
        atomic_bool has_taken;      /* the last flush had commits of others */
};

/* ---- opening ---- */

enum status commit_group_open(struct profile_store *s, struct error *err)
{
        if (!s->options.hand || !has_shared_tables(s))
                return ST_OK;
        s->group = calloc(1, sizeof *s->group);
        if (!s->group)
                return error_no_memory(err);
        pthread_mutex_init(&s->group->lock, NULL);
        pthread_cond_init(&s->group->ended, NULL);
        pthread_cond_init(&s->group->handed, NULL);
        s->group->lease.name = "commits";
        s->group->next_pause = 1;
        metric_register(&included);
        metric_register(&refused);
        metric_register(&handed);
        metric_register(&hand_failures);
        return ST_OK;
}

static int64_t get_lease_ms(const struct profile_store *s)
{
        return (int64_t)s->options.lease_ms * GROUP_LEASES;
}

/* ---- offered commits ---- */

/* Caller holds the lock of the group. The offer leaves the list. */
static void end_offer(struct commit_group *g, size_t i, enum status st, uint64_t version, bool is_refused,
                      const struct error *why)
{
        struct offered_commit *o = g->offers[i];

        memmove(g->offers + i, g->offers + i + 1, (--g->count - i) * sizeof *g->offers);
        o->state = OFFER_ENDED;
        o->result = st;
        o->version = version;
        o->is_refused = is_refused;
        if (st)
                o->why = *why;
        metric_add(st ? &refused : &included, 1);
        if (o->is_abandoned)
                offered_commit_destroy(o);
        pthread_cond_broadcast(&g->ended);
}

/* Those whose commit is not under way. */
static void end_all_offers(struct commit_group *g, const struct error *why)
{
        pthread_mutex_lock(&g->lock);
        for (size_t i = g->count; i > 0; i--)
                if (g->offers[i - 1]->state == OFFER_WAITS)
                        end_offer(g, i - 1, ST_BUSY, 0, false, why);
        pthread_mutex_unlock(&g->lock);
}

void commit_group_stop(struct profile_store *s)
{
        struct commit_group *g = s->group;
        struct error why;

        if (!g)
                return;
        error_set(&why, ST_BUSY, "the store is being closed");
        pthread_mutex_lock(&g->lock);
        g->is_stopped = true;
        pthread_mutex_unlock(&g->lock);
        end_all_offers(g, &why);
}

void commit_group_close(struct profile_store *s)
{
        struct commit_group *g = s->group;

        if (!g)
                return;
        commit_group_stop(s);
        assert(!g->count && !g->is_handing);
        store_lease_end(&g->lease, s->storage);
        pthread_mutex_destroy(&g->lock);
        pthread_cond_destroy(&g->ended);
        pthread_cond_destroy(&g->handed);
        free(g);
        s->group = NULL;
}

/* Never waits for the store, as the thread that renews the lease may do. */
static bool holds_commit_lease(const struct profile_store *s)
{
        return monotonic_ns() < atomic_load(&s->group->held_until_ns);
}

/* The files are there, as large as the commit says: no reader finds less than the log names. */
static enum status check_files_exist(struct profile_store *s, const struct offered_commit *o, struct error *err)
{
        enum status st = ST_OK;

        for (size_t i = 0; !st && i < o->actions.add_count; i++) {
                const struct delta_file *f = &o->actions.adds[i]->file;
                _cleanup_free_ char *key = make_table_key(TABLE_SAMPLES, f->path);
                struct storage_info info;

                st = key ? storage_stat(s->storage, key, &info, err) : error_no_memory(err);
                if (st == ST_NOT_FOUND || (!st && info.size != f->size))
                        st = error_set(err, ST_BAD_DATA, "the commit of another node adds '%.120s', which is not there",
                                       f->path);
        }
        return st;
}

#define GROUP_INTERVAL_MAX_MS UINT64_C(86400000) /* of flushes; UINT64_MAX is none */

static int64_t get_window_ns(const struct profile_store *s)
{
        uint64_t ms = s->options.flush_interval_ms / 10;

        return (int64_t)(ms < GROUP_WINDOW_MS ? ms : GROUP_WINDOW_MS) * 1000000;
}

/* Remember a node that hands a commit, and forget those that handed none since since_ns. Caller holds the lock. */
static void note_group_member(struct commit_group *g, const char *node, int64_t since_ns)
{
        size_t kept = 0;

        for (size_t i = 0; i < g->member_count; i++)
                if (g->members[i].seen_ns >= since_ns && strcmp(g->members[i].node, node) != 0)
                        g->members[kept++] = g->members[i];
        if (kept == LIMIT_HANDED_COMMITS)
                kept--;
        snprintf(g->members[kept].node, NODE_ID_SIZE, "%s", node);
        g->members[kept].seen_ns = monotonic_ns();
        g->member_count = kept + 1;
}

/* The flush for what is offered begins at once when no further node is expected to offer something. */
static void order_group_flush(struct profile_store *s, bool is_complete)
{
        int64_t due_ns = is_complete ? GROUP_IS_DUE : monotonic_ns() + get_window_ns(s);

        pthread_mutex_lock(&s->lock);
        if (!s->group_due_ns || due_ns < s->group_due_ns)
                s->group_due_ns = due_ns;
        pthread_cond_signal(&s->wake);
        pthread_mutex_unlock(&s->lock);
}

/* @param is_complete_ret  all nodes that handed a commit in the last GROUP_MEMBER_INTERVALS wait. */
static enum status add_offer(struct profile_store *s, struct offered_commit *o, bool *is_complete_ret,
                             struct error *err)
{
        uint64_t ms = s->options.flush_interval_ms < GROUP_INTERVAL_MAX_MS ? s->options.flush_interval_ms
                                                                           : GROUP_INTERVAL_MAX_MS;
        int64_t since_ns = monotonic_ns() - GROUP_MEMBER_INTERVALS * (int64_t)ms * 1000000;
        struct commit_group *g = s->group;
        enum status st = ST_OK;

        pthread_mutex_lock(&g->lock);
        if (g->is_stopped) {
                st = error_set(err, ST_BUSY, "the store is being closed");
        } else if (g->count == LIMIT_HANDED_COMMITS) {
                st = error_set(err, ST_BUSY, "%d commits of other nodes wait already", LIMIT_HANDED_COMMITS);
        } else {
                g->offers[g->count++] = o;
                note_group_member(g, o->node, since_ns);
                *is_complete_ret = g->count >= g->member_count;
        }
        pthread_mutex_unlock(&g->lock);
        return st;
}

enum status profile_store_offer_commit(struct profile_store *s, const struct handed_commit *h, const void *text,
                                       size_t n, struct offered_commit **ret, struct error *err)
{
        struct offered_commit *o = NULL;
        bool is_complete = false;
        enum status st;

        if (!s->group || has_absent_tables(s) || strcmp(h->holder, s->logs.node) != 0 || !holds_commit_lease(s))
                return error_set(err, ST_NOT_FOUND, "this node makes no commits for others now");
        if (strcmp(h->tables, s->samples_id) != 0)
                return error_set(err, ST_USAGE, "the tables of the other node are not those of this one");
        st = offered_commit_parse(h, text, n, &o, err);
        if (!st && strcmp(o->node, s->logs.node) == 0)
                st = error_set(err, ST_BAD_DATA, "the commit of another node has the identity of this one");
        if (!st)
                st = check_files_exist(s, o, err);
        if (!st)
                st = add_offer(s, o, &is_complete, err);
        if (st) {
                offered_commit_destroy(o);
                return st;
        }
        *ret = o;
        order_group_flush(s, is_complete);
        return ST_OK;
}

/* Caller holds the lock of the group. */
static void withdraw_offer(struct commit_group *g, const struct offered_commit *o)
{
        struct error why;

        error_set(&why, ST_TIMEOUT, "the commit was not made in time");
        for (size_t i = 0; i < g->count; i++)
                if (g->offers[i] == o && o->state == OFFER_WAITS)
                        end_offer(g, i, ST_TIMEOUT, 0, false, &why);
}

enum status profile_store_await_commit(struct profile_store *s, struct offered_commit *o, uint64_t timeout_ms,
                                       uint64_t *version_ret, bool *is_refused_ret, struct error *err)
{
        struct commit_group *g = s->group;
        int64_t until_ns = monotonic_ns() + (int64_t)timeout_ms * 1000000;
        bool in_time = true;
        enum status st;

        *is_refused_ret = false;
        pthread_mutex_lock(&g->lock);
        while (o->state != OFFER_ENDED && in_time)
                in_time = condition_wait_until(&g->ended, &g->lock, until_ns);
        if (o->state == OFFER_WAITS)
                withdraw_offer(g, o);
        if (o->state != OFFER_ENDED) {
                o->is_abandoned = true;
                pthread_mutex_unlock(&g->lock);
                return error_set(err, ST_TIMEOUT, "the commit is under way");
        }
        st = o->result;
        if (st && err)
                *err = o->why;
        if (!st)
                *version_ret = o->version;
        *is_refused_ret = o->is_refused;
        pthread_mutex_unlock(&g->lock);
        offered_commit_destroy(o);
        return st;
}

void commit_group_abandon(struct profile_store *s, struct offered_commit *o)
{
        struct commit_group *g = s->group;

        pthread_mutex_lock(&g->lock);
        if (o->state == OFFER_ENDED)
                offered_commit_destroy(o);
        else
                o->is_abandoned = true;
        pthread_mutex_unlock(&g->lock);
}

/* ---- the commit for several ---- */

struct taken_offers {
        const struct delta_actions *actions[LIMIT_HANDED_COMMITS];
        size_t count;
        uint64_t ids;
        struct key_map batches; /* ids of the batches of the commit */
        struct key_map nodes;
};

static void taken_offers_deinit(struct taken_offers *t)
{
        key_map_deinit(&t->batches);
        key_map_deinit(&t->nodes);
}

/* Of the 16 digits of an identity. */
static struct hash128 make_node_key(const char *node)
{
        struct hash128 key;

        static_assert(NODE_ID_SIZE == sizeof key.bytes + 1, "an identity is as long as a key");
        memcpy(key.bytes, node, sizeof key.bytes);
        return key;
}

/* Whether the table is as the offer relies on, in the version that was read last. */
static const char *find_outdated_base(struct profile_store *s, const struct offered_commit *o)
{
        if (tables_get_flushed(&s->logs, o->node) != o->base.after)
                return "the table has another position of its queue";
        if (o->base.removal != s->tables->removal)
                return "a removal has begun";
        if (o->base.columns != s->tables->columns.count)
                return "the table has other columns";
        for (size_t i = 0; i < o->actions.batch_id_count; i++)
                if (batch_ids_contain(s->ids, &o->actions.batch_ids[i]))
                        return "a batch of it is committed";
        for (size_t i = 0; i < o->actions.add_count; i++)
                if (find_live_part(s->tables, TABLE_SAMPLES, o->actions.adds[i]->file.path))
                        return "a file of it is committed";
        return NULL;
}

/* Add the batches of an offer to those of the commit, unless one of them, or one of the same node, is there. */
static enum status add_offered_batches(struct taken_offers *t, const struct offered_commit *o, bool *is_new_ret,
                                       struct error *err)
{
        const struct hash128 node = make_node_key(o->node);
        enum status st;

        *is_new_ret = !key_map_find(&t->nodes, &node);
        for (size_t i = 0; *is_new_ret && i < o->actions.batch_id_count; i++)
                *is_new_ret = !key_map_find(&t->batches, &o->actions.batch_ids[i]);
        if (!*is_new_ret)
                return ST_OK;
        st = key_map_put(&t->nodes, &node, 0, NULL, NULL, err);
        for (size_t i = 0; !st && i < o->actions.batch_id_count; i++)
                st = key_map_put(&t->batches, &o->actions.batch_ids[i], 0, NULL, NULL, err);
        return st;
}

/*
 * Take the offers that can be part of the commit, and refuse those that cannot. A commit of new columns takes none: the
 * files of the others lack them. Caller holds the lock of the group.
 */
static enum status take_offered_commits(struct profile_store *s, const struct table_change *change,
                                        struct taken_offers *t, struct error *err)
{
        struct commit_group *g = s->group;
        enum status st = ST_OK;

        t->ids = change->batch_id_count;
        for (size_t i = 0; !st && i < change->batch_id_count; i++)
                st = key_map_put(&t->batches, &change->batch_ids[i], 0, NULL, NULL, err);
        for (size_t i = 0; !st && !change->columns && i < g->count;) {
                struct offered_commit *o = g->offers[i];
                const char *why = find_outdated_base(s, o);
                struct error text;
                bool is_new = true;

                if (!why && t->ids + o->actions.batch_id_count > LIMIT_FLUSH_BATCHES) {
                        i++; /* of the next commit */
                        continue;
                }
                if (!why)
                        st = add_offered_batches(t, o, &is_new, err);
                if (!is_new)
                        why = "another node of this commit has one of its batches";
                if (why) {
                        error_set(&text, ST_BUSY, "not committed: %s", why);
                        end_offer(g, i, ST_BUSY, 0, true, &text);
                } else if (!st) {
                        o->state = OFFER_TAKEN;
                        t->ids += o->actions.batch_id_count;
                        t->actions[t->count++] = &o->actions;
                        i++;
                }
        }
        return st;
}

/*
 * After a commit: ST_BUSY means that it was not made, so its offers wait for the next one. After ST_OS it may be made.
 * @param is_alone  the commit was made without the offers after all: they are refused.
 */
static void settle_offers(struct commit_group *g, enum status st, int64_t version, bool is_alone,
                          const struct error *why)
{
        pthread_mutex_lock(&g->lock);
        for (size_t i = g->count; i > 0; i--) {
                struct offered_commit *o = g->offers[i - 1];

                if (o->state != OFFER_TAKEN)
                        continue;
                if (st == ST_BUSY && !g->is_stopped)
                        o->state = OFFER_WAITS;
                else
                        end_offer(g, i - 1, st, (uint64_t)version, is_alone, why);
        }
        pthread_mutex_unlock(&g->lock);
}

/* Whether a failure is that of what was encoded: nothing was written then. */
static bool is_failure_of_content(enum status st)
{
        return st && st != ST_BUSY && st != ST_OS;
}

/* Take offers, and commit them with the change. @param has_own  without offers there is something to commit, too */
static enum status commit_with_offers(struct profile_store *s, struct table_change *change, bool has_own,
                                      size_t *taken_ret, struct error *err)
{
        _cleanup_(taken_offers_deinit) struct taken_offers t = { .batches.memory.use = MEMORY_FLUSH,
                                                                 .nodes.memory.use = MEMORY_FLUSH };
        struct error why = { 0 };
        enum status st;

        *taken_ret = 0;
        pthread_mutex_lock(&s->group->lock);
        st = take_offered_commits(s, change, &t, &why);
        pthread_mutex_unlock(&s->group->lock);
        change->included = t.actions;
        change->included_count = t.count;
        if (!st && t.count)
                st = tables_commit(&s->logs, change, &why);
        change->included = NULL;
        change->included_count = 0;
        settle_offers(s->group, st, change->base->versions[TABLE_SAMPLES] + 1, is_failure_of_content(st), &why);
        if (has_own && (!t.count || is_failure_of_content(st)))
                return tables_commit(&s->logs, change, err);
        if (is_failure_of_content(st))
                return ST_OK; /* refused, one and all */
        if (st && err)
                *err = why;
        if (!st)
                *taken_ret = t.count;
        return st;
}

static bool has_offers(struct commit_group *g)
{
        bool ret;

        pthread_mutex_lock(&g->lock);
        ret = g->count;
        pthread_mutex_unlock(&g->lock);
        return ret;
}

enum status commit_group_commit(struct profile_store *s, struct table_change *change, struct error *err)
{
        size_t taken = 0;
        enum status st;

        assert(change->table == TABLE_SAMPLES);
        if (!s->group || !change->base || !has_offers(s->group))
                return tables_commit(&s->logs, change, err);
        st = commit_with_offers(s, change, true, &taken, err);
        s->group->taken += taken;
        return st;
}

/* Commits of others that no own commit had. */
static enum status commit_offers(struct profile_store *s, struct error *err)
{
        enum status st = ST_OK;

        for (int i = 0; !st && has_offers(s->group) && i < SHARED_COMMIT_ATTEMPTS; i++) {
                struct table_change change = { .table = TABLE_SAMPLES, .base = s->tables };
                size_t taken = 0;

                st = commit_with_offers(s, &change, false, &taken, err);
                s->group->taken += taken;
                if (st == ST_BUSY)
                        st = store_follow_tables(s, err);
                else if (taken)
                        st = store_publish_tables(s, err);
        }
        return st;
}

void commit_group_begin_flush(struct profile_store *s)
{
        if (!s->group)
                return;
        while (s->group->is_handing)
                pthread_cond_wait(&s->group->handed, &s->writer_lock);
        s->group->taken = 0;
}

void commit_group_end_flush(struct profile_store *s, enum status st, const struct error *why)
{
        struct commit_group *g = s->group;
        struct error err = { 0 };

        if (!g)
                return;
        if (st)
                err = *why;
        else
                st = commit_offers(s, &err);
        if (st)
                end_all_offers(g, &err);
        atomic_store(&g->has_taken, g->taken > 0);
        pthread_mutex_lock(&s->lock);
        s->group_due_ns = has_offers(g) ? monotonic_ns() + get_window_ns(s) : 0;
        pthread_mutex_unlock(&s->lock);
}

int64_t commit_group_get_delay(struct profile_store *s)
{
        return s->group && atomic_load(&s->group->has_taken) ? get_window_ns(s) : 0;
}

/* ---- the lease, and a commit that is handed ---- */

/* Hold the lease, or learn who does. True: this node has it. */
static bool hold_commit_lease(struct profile_store *s)
{
        struct commit_group *g = s->group;
        struct error unused;
        enum status st = store_lease_hold(&g->lease, s->storage, s->logs.node, get_lease_ms(s), &unused);

        snprintf(g->holder, sizeof g->holder, "%.16s", st == ST_BUSY ? g->lease.holder : "");
        atomic_store(&g->held_until_ns, st ? 0 : g->lease.renewed_ns + get_lease_ms(s) * 1000000);
        return !st;
}

bool commit_group_has_holder(struct profile_store *s)
{
        struct commit_group *g = s->group;

        if (!g || atomic_load(&s->stopping))
                return false;
        if (g->pause && g->pause--)
                return false;
        if (!*g->holder && hold_commit_lease(s))
                return false;
        return *g->holder;
}

void commit_group_begin_hand(struct profile_store *s, uint64_t position, struct handed_commit *ret)
{
        *ret = (struct handed_commit){ .after = s->flushed,
                                       .removal = s->tables->removal,
                                       .columns = s->tables->columns.count };
        snprintf(ret->holder, sizeof ret->holder, "%s", s->group->holder);
        snprintf(ret->tables, sizeof ret->tables, "%s", s->samples_id);
        s->group->is_handing = true;
        if (s->handed < position)
                s->handed = position;
}

enum hand_result commit_group_hand(struct profile_store *s, const struct handed_commit *base, const struct buf *text)
{
        return s->options.hand(s->options.hand_context, base, text->data, text->size);
}

void commit_group_end_hand(struct profile_store *s, enum hand_result result)
{
        struct commit_group *g = s->group;

        g->is_handing = false;
        pthread_cond_broadcast(&g->handed);
        metric_add(result == HAND_COMMITTED ? &handed : &hand_failures, 1);
        if (result == HAND_COMMITTED || result == HAND_REFUSED) {
                g->next_pause = 1;
                return;
        }
        g->holder[0] = 0;
        g->pause = g->next_pause;
        g->next_pause = g->next_pause * 2 < GROUP_PAUSE_COMMITS ? g->next_pause * 2 : GROUP_PAUSE_COMMITS;
}
