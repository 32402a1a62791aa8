/* SPDX-License-Identifier: Apache-2.0 */
/* Leases of programs that send to the store: who has one after which requests. */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "common/clock.h"
#include "common/limits.h"
#include "profile-store/client_leases.h"
#include "profile-store/core/profile_store_internal.h"
#include "profile-store/core/store_lease.h"
#include "tests/support/store_fixture.h"

static struct store_fixture fixture;

static void set_up(void)
{
        fixture = (struct store_fixture){ .options = { .flush_interval_ms = UINT64_MAX, .lease_ms = 60000 } };
        store_fixture_begin(&fixture);
}

static void tear_down(void)
{
        store_fixture_end(&fixture);
}

/* The epoch, 0 when another has it. */
static int64_t ask(const char *holder, int64_t epoch, int action)
{
        const struct client_lease_request r = { .name = "web", .holder = holder, .epoch = epoch, .action = action };
        struct client_lease_state state;
        struct error err;

        check_ok(profile_store_ask_client_lease(fixture.store, &r, &state, &err), &err);
        ck_assert_int_eq(state.lease_ms, 60000);
        ck_assert_int_eq(state.is_held, state.epoch != 0);
        return state.epoch;
}

static void check_other(const char *asking, const char *holder, bool is_expired)
{
        const struct client_lease_request r = { .name = "web", .holder = asking, .action = CLIENT_LEASE_CHECK };
        struct client_lease_state state;
        struct error err;

        check_ok(profile_store_ask_client_lease(fixture.store, &r, &state, &err), &err);
        ck_assert(!state.is_held);
        ck_assert_str_eq(state.holder, holder);
        ck_assert_int_eq(state.is_expired, is_expired);
}

static char *make_lease_path(int64_t epoch)
{
        char name[80];

        snprintf(name, sizeof name, "tables/leases/scrape-web/%020lld", (long long)epoch);
        return store_fixture_path(&fixture, name);
}

static void age_lease(int64_t epoch, int64_t seconds)
{
        _cleanup_free_ char *path = make_lease_path(epoch);
        const struct timespec then = { .tv_sec = wall_clock_ns() / 1000000000 - seconds };

        ck_assert_int_eq(utimensat(AT_FDCWD, path, (struct timespec[]){ then, then }, 0), 0);
}

START_TEST(lease_has_one_holder)
{
        ck_assert_int_eq(ask("a", 0, CLIENT_LEASE_CHECK), 1);
        ck_assert_int_eq(ask("b", 0, CLIENT_LEASE_RENEW), 0);
        check_other("b", "a", false);
        ck_assert_int_eq(ask("a", 1, CLIENT_LEASE_CHECK), 1);
}
END_TEST

START_TEST(lease_that_nobody_renews_is_taken_by_who_asks_to)
{
        ck_assert_int_eq(ask("a", 0, CLIENT_LEASE_RENEW), 1);
        age_lease(1, 61);
        check_other("b", "a", true);
        ck_assert_int_eq(ask("b", 0, CLIENT_LEASE_RENEW), 2);
        ck_assert_int_eq(ask("a", 1, CLIENT_LEASE_CHECK), 0);
        ck_assert_int_eq(ask("a", 1, CLIENT_LEASE_RENEW), 0);
        ck_assert_int_eq(ask("b", 2, CLIENT_LEASE_CHECK), 2);
}
END_TEST

START_TEST(only_a_renewal_lets_the_lease_last_anew)
{
        ck_assert_int_eq(ask("a", 0, CLIENT_LEASE_CHECK), 1);
        age_lease(1, 61);
        ck_assert_int_eq(ask("a", 1, CLIENT_LEASE_CHECK), 1);
        check_other("b", "a", true);
        ck_assert_int_eq(ask("a", 1, CLIENT_LEASE_RENEW), 1);
        check_other("b", "a", false);
}
END_TEST

START_TEST(ended_lease_is_taken_at_once)
{
        ck_assert_int_eq(ask("a", 0, CLIENT_LEASE_CHECK), 1);
        ck_assert_int_eq(ask("a", 1, CLIENT_LEASE_END), 1); /* it was held until now */
        ck_assert_int_eq(ask("b", 0, CLIENT_LEASE_CHECK), 2);
        ck_assert_int_eq(ask("a", 1, CLIENT_LEASE_END), 0);
        ck_assert_int_eq(ask("b", 2, CLIENT_LEASE_CHECK), 2);
}
END_TEST

/* Without the epochs between, the question for the next one would say that nobody took it. */
START_TEST(holder_that_was_paused_learns_of_its_loss_after_many_others)
{
        _cleanup_free_ char *first = make_lease_path(1);

        ck_assert_int_eq(ask("a", 0, CLIENT_LEASE_CHECK), 1);
        for (int64_t epoch = 2; epoch <= LEASE_EPOCHS_KEPT + 1; epoch++) {
                ck_assert_int_eq(ask(epoch % 2 ? "b" : "c", 0, CLIENT_LEASE_CHECK), epoch == 2 ? 0 : epoch);
                if (epoch == 2) {
                        age_lease(1, 61);
                        ck_assert_int_eq(ask("c", 0, CLIENT_LEASE_RENEW), 2);
                }
                ck_assert_int_eq(ask(epoch % 2 ? "b" : "c", epoch, CLIENT_LEASE_END), epoch);
        }
        ck_assert_int_eq(ask("a", 1, CLIENT_LEASE_RENEW), 0);
        ck_assert_int_eq(access(first, F_OK), -1); /* old epochs are removed */
}
END_TEST

/* All later epochs that the holder could ask for are removed. */
START_TEST(holder_of_a_removed_epoch_has_lost_it)
{
        ck_assert_int_eq(ask("a", 0, CLIENT_LEASE_CHECK), 1);
        ck_assert_int_eq(ask("a", 1, CLIENT_LEASE_END), 1);
        for (int64_t epoch = 2; epoch <= LEASE_EPOCHS_KEPT + 2; epoch++)
                ck_assert_int_eq(ask("b", 0, CLIENT_LEASE_CHECK), epoch);
        ck_assert_int_eq(ask("a", 1, CLIENT_LEASE_CHECK), 0);
        ck_assert_int_eq(ask("a", 1, CLIENT_LEASE_RENEW), 0);
        ck_assert_int_eq(ask("b", LEASE_EPOCHS_KEPT + 2, CLIENT_LEASE_CHECK), LEASE_EPOCHS_KEPT + 2);
}
END_TEST

START_TEST(epoch_that_was_never_made_is_not_made_by_a_request)
{
        const int64_t forged[] = { 2, INT64_MAX - 1 };

        ck_assert_int_eq(ask("b", 1, CLIENT_LEASE_RENEW), 0);
        ck_assert_int_eq(ask("b", 1, CLIENT_LEASE_END), 0);
        ck_assert_int_eq(ask("a", 0, CLIENT_LEASE_CHECK), 1);
        for (size_t i = 0; i < sizeof forged / sizeof *forged; i++) {
                ck_assert_int_eq(ask("b", forged[i], CLIENT_LEASE_CHECK), 0);
                ck_assert_int_eq(ask("b", forged[i], CLIENT_LEASE_RENEW), 0);
                ck_assert_int_eq(ask("b", forged[i], CLIENT_LEASE_END), 0);
        }
        ck_assert_int_eq(ask("b", 1, CLIENT_LEASE_END), 0); /* it is another one's */
        ck_assert_int_eq(ask("a", 1, CLIENT_LEASE_RENEW), 1);
}
END_TEST

/* A count for all stores would let requests of one tenant keep others from asking. */
START_TEST(requests_of_another_store_do_not_count)
{
        struct store_fixture other = { .options = { .flush_interval_ms = UINT64_MAX, .lease_ms = 60000 } };
        const struct client_lease_request r = { .name = "web", .holder = "a", .action = CLIENT_LEASE_CHECK };
        struct client_lease_state state;
        struct error err;

        store_fixture_begin(&other);
        atomic_store(&other.store->client_lease_requests, CLIENT_LEASE_REQUESTS);
        ck_assert_int_eq(profile_store_ask_client_lease(other.store, &r, &state, &err), ST_BUSY);
        ck_assert_int_eq(ask("a", 0, CLIENT_LEASE_CHECK), 1);
        store_fixture_end(&other);
}
END_TEST

START_TEST(number_of_names_is_limited)
{
        struct client_lease_request r = { .holder = "a", .action = CLIENT_LEASE_CHECK };
        struct client_lease_state state;
        struct error err;
        char name[16];

        r.name = name;
        for (unsigned i = 0; i < LIMIT_SCRAPE_LEASES; i++) {
                snprintf(name, sizeof name, "n%u", i);
                check_ok(profile_store_ask_client_lease(fixture.store, &r, &state, &err), &err);
        }
        for (unsigned i = 0; i < 2; i++) { /* the refused one stays unknown */
                snprintf(name, sizeof name, "more");
                ck_assert_int_eq(profile_store_ask_client_lease(fixture.store, &r, &state, &err), ST_TOO_BIG);
                ck_assert_ptr_nonnull(strstr(err.text, "256 leases"));
        }
        snprintf(name, sizeof name, "n7");
        r.epoch = 1;
        check_ok(profile_store_ask_client_lease(fixture.store, &r, &state, &err), &err);
        ck_assert(state.is_held);
}
END_TEST

START_TEST(name_of_a_holder_is_checked)
{
        char name[CLIENT_HOLDER_BYTES + 1];

        memset(name, 'x', sizeof name);
        name[sizeof name - 1] = 0;
        ck_assert(!client_holder_is_valid(name));
        name[sizeof name - 2] = 0;
        ck_assert(client_holder_is_valid(name));
        ck_assert(client_holder_is_valid("web-1.example_0123"));
        ck_assert(!client_holder_is_valid(""));
        ck_assert(!client_holder_is_valid("a/b"));
        ck_assert(!client_holder_is_valid("a\"b"));
}
END_TEST

TEST_SUITE_WITH_FIXTURE("client leases", lease_has_one_holder, lease_that_nobody_renews_is_taken_by_who_asks_to,
                        only_a_renewal_lets_the_lease_last_anew, ended_lease_is_taken_at_once,
                        holder_that_was_paused_learns_of_its_loss_after_many_others,
                        holder_of_a_removed_epoch_has_lost_it, epoch_that_was_never_made_is_not_made_by_a_request,
                        requests_of_another_store_do_not_count, number_of_names_is_limited, name_of_a_holder_is_checked)
