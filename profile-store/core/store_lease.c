/* SPDX-License-Identifier: Apache-2.0 */
#include "profile-store/core/store_lease.h"

#include <inttypes.h>
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/json/json_out.h"
#include "common/metrics.h"
#include "profile-store/delta/delta_actions.h"
#include "profile-store/delta/delta_place.h"

#define FOLDER "leases/"
#define MAX_BYTES 4096
#define RENEWALS 4 /* in the time of a lease */

static struct metric taken = METRIC_COUNTER("cairn_leases_taken_total",
                                            "Leases that this node took, at first or from a node that was gone.", "");
static struct metric lost =
        METRIC_COUNTER("cairn_leases_lost_total", "Leases that another node took from this one.", "");

void store_lease_register_metrics(void)
{
        metric_register(&taken);
        metric_register(&lost);
}

static char *make_epoch_key(const struct store_lease *l, int64_t epoch)
{
        char *ret;

        return asprintf(&ret, FOLDER "%s/%0*" PRId64, l->name, DELTA_VERSION_DIGITS, epoch) < 0 ? NULL : ret;
}

static enum status put_lease(const struct store_lease *l, struct storage *storage, const char *node, int64_t epoch,
                             enum storage_mode mode, struct error *err)
{
        _cleanup_free_ char *key = make_epoch_key(l, epoch);
        _cleanup_buf_ struct buf text;
        struct json_out j;
        enum status st;

        buf_init(&text, MAX_BYTES);
        if (!key)
                return error_no_memory(err);
        json_out_init(&j, &text);
        json_out_object(&j, NULL);
        json_out_str(&j, "node", node);
        json_out_object_end(&j);
        st = buf_status(&text, err, "a lease");
        if (!st)
                st = storage_make_folder(storage, key, err);
        return st ? st : storage_put(storage, key, text.data, text.size, mode, err);
}

/* ---- the newest epoch ---- */

struct newest_lease {
        char folder[sizeof FOLDER + LEASE_NAME_BYTES];
        int64_t epoch;
        int64_t put_ms;
};

static enum status note_newest_lease(void *context, const char *key, const struct storage_info *info, struct error *err)
{
        struct newest_lease *n = context;
        const char *suffix = "";
        int64_t epoch = delta_parse_version(key + strlen(n->folder), &suffix);

        (void)err;
        if (epoch > n->epoch && !*suffix) {
                n->epoch = epoch;
                n->put_ms = info->modified_ms;
        }
        return ST_OK;
}

static enum status find_newest_lease(const struct store_lease *l, struct storage *storage, struct newest_lease *ret,
                                     struct error *err)
{
        *ret = (struct newest_lease){ .epoch = 0 };
        snprintf(ret->folder, sizeof ret->folder, FOLDER "%s/", l->name);
        return storage_list(storage, ret->folder, "", note_newest_lease, ret, err);
}

/* The node in a lease; "" when it is gone or ended. */
static enum status read_lease_holder(const struct store_lease *l, struct storage *storage, int64_t epoch,
                                     char ret[static LEASE_HOLDER_BYTES], struct error *err)
{
        _cleanup_free_ char *key = make_epoch_key(l, epoch);
        _cleanup_buf_ struct buf text;
        struct json_object *o;
        const char *node;
        enum status st;

        buf_init(&text, MAX_BYTES);
        if (!key)
                return error_no_memory(err);
        st = storage_read(storage, key, &text, err);
        if (st && st != ST_NOT_FOUND)
                return st;
        o = delta_json_parse((const char *)text.data, text.size);
        node = delta_json_get_string(o, "node");
        snprintf(ret, LEASE_HOLDER_BYTES, "%s", node ? node : "");
        json_object_put(o);
        return ST_OK;
}

enum status store_lease_get_age(const struct store_lease *l, struct storage *storage, int64_t *age_ms_ret,
                                struct error *err)
{
        struct newest_lease newest;
        enum status st = find_newest_lease(l, storage, &newest, err);

        if (!st)
                *age_ms_ret = newest.epoch ? storage_now_ms(storage) - newest.put_ms : INT64_MAX;
        return st;
}

/* ---- take and renew ---- */

static void remove_epoch(const struct store_lease *l, struct storage *storage, int64_t epoch)
{
        _cleanup_free_ char *key = epoch > 0 ? make_epoch_key(l, epoch) : NULL;

        if (key)
                (void)!storage_remove(storage, key, NULL); /* one that stays is not the newest */
}

enum status store_lease_take(struct store_lease *l, struct storage *storage, const char *node, int64_t max_age_ms,
                             struct error *err)
{
        struct newest_lease newest;
        char holder[LEASE_HOLDER_BYTES] = "";
        enum status st = find_newest_lease(l, storage, &newest, err);

        l->holder[0] = 0;
        l->age_ms = 0;
        if (!st && newest.epoch)
                st = read_lease_holder(l, storage, newest.epoch, holder, err);
        if (st)
                return st;
        l->age_ms = storage_now_ms(storage) - newest.put_ms;
        if (*holder && strcmp(holder, node) != 0 && l->age_ms < max_age_ms) {
                memcpy(l->holder, holder, sizeof l->holder);
                return error_set(err, ST_BUSY, "node %s has the lease '%s', renewed %" PRId64 " s ago", holder, l->name,
                                 l->age_ms / 1000);
        }
        st = put_lease(l, storage, node, newest.epoch + 1, STORAGE_NEW, err);
        if (st == ST_BUSY) {
                l->age_ms = 0;
                return error_set(err, ST_BUSY, "another node took the lease '%s'", l->name);
        }
        if (st)
                return st;
        l->epoch = newest.epoch + 1;
        metric_add(&taken, 1);
        remove_epoch(l, storage, l->epoch - LEASE_EPOCHS_KEPT);
        return ST_OK;
}

static enum status note_loss_of_lease(struct store_lease *l, struct error *err)
{
        l->epoch = 0;
        l->holder[0] = 0;
        l->age_ms = 0;
        return error_set(err, ST_BUSY, "another node took the lease '%s'", l->name);
}

enum status store_lease_check(struct store_lease *l, struct storage *storage, struct error *err)
{
        _cleanup_free_ char *next = make_epoch_key(l, l->epoch + 1);
        struct storage_info unused;
        enum status st = next ? storage_stat(storage, next, &unused, err) : error_no_memory(err);

        if (st == ST_NOT_FOUND)
                return ST_OK;
        return st ? st : note_loss_of_lease(l, err);
}

enum status store_lease_verify(struct store_lease *l, struct storage *storage, const char *node, struct error *err)
{
        char holder[LEASE_HOLDER_BYTES];
        enum status st = read_lease_holder(l, storage, l->epoch, holder, err);

        return st || strcmp(holder, node) == 0 ? st : note_loss_of_lease(l, err);
}

enum status store_lease_renew(const struct store_lease *l, struct storage *storage, const char *node, struct error *err)
{
        return put_lease(l, storage, node, l->epoch, STORAGE_REPLACE, err);
}

static enum status keep_lease(struct store_lease *l, struct storage *storage, const char *node, struct error *err)
{
        enum status st = store_lease_check(l, storage, err);

        return st ? st : store_lease_renew(l, storage, node, err);
}

enum status store_lease_hold(struct store_lease *l, struct storage *storage, const char *node, int64_t lease_ms,
                             struct error *err)
{
        int64_t now = monotonic_ns();
        bool was_held = l->epoch;
        enum status st;

        if (l->epoch && now < l->renew_ns)
                return ST_OK;
        if (l->epoch && now - l->renewed_ns > lease_ms * 1000000)
                l->epoch = 0; /* others may have taken and ended later ones meanwhile */
        st = l->epoch ? keep_lease(l, storage, node, err) : store_lease_take(l, storage, node, lease_ms, err);
        metric_add(&lost, was_held && st == ST_BUSY);
        if (st)
                return st;
        l->renewed_ns = now;
        l->renew_ns = now + lease_ms * 1000000 / RENEWALS;
        return ST_OK;
}

void store_lease_end(struct store_lease *l, struct storage *storage)
{
        struct error unused;

        if (l->epoch && monotonic_ns() < l->renew_ns)
                (void)!put_lease(l, storage, "", l->epoch, STORAGE_REPLACE, &unused);
        l->epoch = 0;
}

void store_lease_remove(struct store_lease *l, struct storage *storage)
{
        remove_epoch(l, storage, l->epoch);
        l->epoch = 0;
}
