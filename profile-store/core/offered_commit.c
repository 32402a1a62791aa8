/* SPDX-License-Identifier: Apache-2.0 */
#include "profile-store/core/offered_commit.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/limits.h"

#define DIGITS "0123456789"
#define HEX_DIGITS DIGITS "abcdef"
#define ATTEMPT_DIGITS 8
#define NUMBER_DIGITS_MAX 6

static enum status refuse_offer(struct error *err, const char *why)
{
        return error_set(err, ST_BAD_DATA, "the commit of another node %s", why);
}

static bool has_only(const char *text, size_t n, const char *characters)
{
        return strlen(text) == n && strspn(text, characters) == n;
}

/* The rest of a name: "0123abcd.parquet" or "0123abcd-12.parquet". */
static bool is_attempt_name(const char *rest)
{
        size_t digits;

        if (strspn(rest, HEX_DIGITS) != ATTEMPT_DIGITS)
                return false;
        rest += ATTEMPT_DIGITS;
        if (*rest == '-') {
                digits = strspn(++rest, DIGITS);
                if (!digits || digits > NUMBER_DIGITS_MAX)
                        return false;
                rest += digits;
        }
        return strcmp(rest, ".parquet") == 0;
}

static bool is_day(const char *text)
{
        return text && strlen(text) == 10 && strspn(text, DIGITS) == 4 && text[4] == '-' &&
               strspn(text + 5, DIGITS) == 2 && text[7] == '-' && strspn(text + 8, DIGITS) == 2;
}

/* Whether a file has the name of one of a flush of these positions, and readable statistics. */
static bool is_flushed_file(const struct offered_commit *o, const struct delta_file *f)
{
        struct delta_stats *stats;
        char start[128];
        int n;

        if (f->partition_count != 1 || strcmp(f->partitions[0].key, "date") != 0 || !is_day(f->partitions[0].value))
                return false;
        n = snprintf(start, sizeof start, "date=%s/" PART_PREFIX "%s-%020" PRIu64 "-%020" PRIu64 "-",
                     f->partitions[0].value, o->node, o->base.after + 1, (uint64_t)o->actions.txns[0].version);
        if (n < 0 || (size_t)n >= sizeof start || strncmp(f->path, start, (size_t)n) != 0 ||
            !is_attempt_name(f->path + n) || !f->size || !f->stats)
                return false;
        stats = delta_stats_parse(f);
        delta_stats_free(stats);
        return stats;
}

static enum status check_offered_files(const struct offered_commit *o, struct error *err)
{
        const struct delta_actions *a = &o->actions;

        if (!a->add_count || a->add_count > LIMIT_HANDED_FILES)
                return refuse_offer(err, "has no files, or too many");
        for (size_t i = 0; i < a->add_count; i++) {
                if (!is_flushed_file(o, &a->adds[i]->file))
                        return refuse_offer(err, "adds a file that is none of its flush");
                for (size_t k = 0; k < i; k++)
                        if (strcmp(a->adds[i]->file.path, a->adds[k]->file.path) == 0)
                                return refuse_offer(err, "adds a file twice");
        }
        return ST_OK;
}

static enum status check_offer(struct offered_commit *o, struct error *err)
{
        static const char app[] = QUEUE_APP_ID "/";
        const struct delta_actions *a = &o->actions;

        if (a->remove_count || a->metadata || a->has_protocol)
                return refuse_offer(err, "does more than add files");
        if (a->txn_count != 1 || strncmp(a->txns[0].app_id, app, sizeof app - 1) != 0 ||
            !has_only(a->txns[0].app_id + sizeof app - 1, NODE_ID_SIZE - 1, HEX_DIGITS))
                return refuse_offer(err, "has not one transaction, of a node");
        if (a->txns[0].version <= 0 || o->base.after >= (uint64_t)a->txns[0].version)
                return refuse_offer(err, "has no positions");
        if (!a->batch_id_count || a->batch_id_count > LIMIT_FLUSH_BATCHES)
                return refuse_offer(err, "has no batches, or too many");
        memcpy(o->node, a->txns[0].app_id + sizeof app - 1, sizeof o->node);
        return check_offered_files(o, err);
}

enum status offered_commit_parse(const struct handed_commit *base, const void *text, size_t n,
                                 struct offered_commit **ret, struct error *err)
{
        struct offered_commit *o;
        enum status st;

        if (n > LIMIT_HANDED_COMMIT_BYTES)
                return error_set(err, ST_TOO_BIG, "the commit of another node has more than %zu bytes",
                                 (size_t)LIMIT_HANDED_COMMIT_BYTES);
        o = calloc(1, sizeof *o);
        if (!o)
                return error_no_memory(err);
        o->base = *base;
        st = delta_actions_parse(text, n, &o->actions, err);
        if (!st)
                st = check_offer(o, err);
        if (st)
                offered_commit_destroy(o);
        else
                *ret = o;
        return st;
}

void offered_commit_destroy(struct offered_commit *o)
{
        if (!o)
                return;
        delta_actions_deinit(&o->actions);
        free(o);
}
