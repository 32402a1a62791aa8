/* SPDX-License-Identifier: Apache-2.0 */
#include "profile-store/client_leases.h"

#include <assert.h>
#include <stdatomic.h>
#include <string.h>

#include "common/limits.h"
#include "profile-store/core/profile_store_internal.h"
#include "profile-store/core/table_absence.h"

#define FOLDER "leases/"
#define PREFIX "scrape-"

_Static_assert(sizeof PREFIX + TENANT_NAME_SIZE <= LEASE_NAME_BYTES, "any name fits");
_Static_assert(CLIENT_HOLDER_BYTES == LEASE_HOLDER_BYTES, "likewise");

bool client_holder_is_valid(const char *name)
{
        size_t n = strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-");

        return n && n < CLIENT_HOLDER_BYTES && !name[n];
}

/* ---- how many there are ---- */

struct lease_count {
        char last[LEASE_NAME_BYTES];
        size_t names;
};

/* Keys come in order, so those of one name follow each other. */
static enum status count_lease(void *context, const char *key, const struct storage_info *info, struct error *err)
{
        struct lease_count *c = context;
        const char *name = key + strlen(FOLDER);
        size_t n = strcspn(name, "/");

        (void)info;
        (void)err;
        if (strncmp(name, PREFIX, strlen(PREFIX)) != 0 || n >= sizeof c->last ||
            (strncmp(name, c->last, n) == 0 && !c->last[n]))
                return ST_OK;
        memcpy(c->last, name, n);
        c->last[n] = 0;
        c->names++;
        return ST_OK;
}

/* After the first epoch of a name was made. */
static enum status check_lease_count(struct profile_store *s, struct store_lease *l, struct error *err)
{
        struct lease_count count = { .names = 0 };
        enum status st = storage_list(s->storage, FOLDER, "", count_lease, &count, err);

        if (!st && count.names > LIMIT_SCRAPE_LEASES)
                st = error_set(err, ST_TOO_BIG,
                               "there are %u leases of scrapers already; use the name of one of them, or remove those "
                               "that nobody has from %s/" FOLDER,
                               (unsigned)LIMIT_SCRAPE_LEASES, storage_root(s->storage));
        if (st) /* if they could not be counted, too: the next request counts again */
                store_lease_remove(l, s->storage);
        return st;
}

/* ---- requests ---- */

static enum status take_client_lease(struct profile_store *s, const struct client_lease_request *r,
                                     struct store_lease *l, struct error *err)
{
        int64_t max_age_ms = r->action == CLIENT_LEASE_RENEW ? (int64_t)s->options.lease_ms : INT64_MAX;
        enum status st = store_lease_take(l, s->storage, r->holder, max_age_ms, err);

        return !st && l->epoch == 1 ? check_lease_count(s, l, err) : st;
}

/*
 * The epoch is what the client says: without a look at it, any number would be renewed as a new epoch, which skips
 * those between and is not counted, and a holder of an epoch that was removed would seem to have the newest.
 */
static enum status check_client_lease(struct profile_store *s, const struct client_lease_request *r,
                                      struct store_lease *l, struct error *err)
{
        enum status st = store_lease_check(l, s->storage, err);

        if (!st)
                st = store_lease_verify(l, s->storage, r->holder, err);
        if (st || r->action == CLIENT_LEASE_CHECK)
                return st;
        return store_lease_renew(l, s->storage, r->action == CLIENT_LEASE_END ? "" : r->holder, err);
}

static enum status take_or_check(struct profile_store *s, const struct client_lease_request *r, struct store_lease *l,
                                 struct error *err)
{
        if (!r->epoch)
                return r->action == CLIENT_LEASE_END ? ST_OK : take_client_lease(s, r, l, err);
        return check_client_lease(s, r, l, err);
}

enum status profile_store_ask_client_lease(struct profile_store *s, const struct client_lease_request *r,
                                           struct client_lease_state *ret, struct error *err)
{
        char name[LEASE_NAME_BYTES];
        struct store_lease l = { .name = name, .epoch = r->epoch };
        struct error own;
        enum status st = store_check_tables(s, err);
        bool is_other;

        assert(tenant_name_is_valid(r->name) && client_holder_is_valid(r->holder) && r->epoch >= 0);
        if (st)
                return st;
        snprintf(name, sizeof name, PREFIX "%s", r->name);
        if (atomic_fetch_add(&s->client_lease_requests, 1) >= CLIENT_LEASE_REQUESTS) {
                atomic_fetch_sub(&s->client_lease_requests, 1);
                return error_set(err, ST_BUSY, "other requests about leases wait for the tables");
        }
        st = take_or_check(s, r, &l, &own);
        atomic_fetch_sub(&s->client_lease_requests, 1);
        is_other = st == ST_BUSY;
        if (st && !is_other) {
                if (err)
                        *err = own;
                return st;
        }
        *ret = (struct client_lease_state){ .is_held = !is_other && l.epoch,
                                            .epoch = l.epoch,
                                            .is_expired = is_other && l.age_ms >= (int64_t)s->options.lease_ms,
                                            .lease_ms = (int64_t)s->options.lease_ms };
        memcpy(ret->holder, l.holder, sizeof ret->holder);
        return ST_OK;
}
