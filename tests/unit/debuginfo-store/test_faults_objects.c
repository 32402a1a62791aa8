/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The debuginfo store with injected faults: objects that are uploaded, replaced by better ones, uploaded in two parts,
 * pinned, removed and garbage-collected.
 */
#include <string.h>

#include "common/files/file.h"
#include "common/hash/sha256.h"
#include "debuginfo-store/debuginfo_store_internal.h"
#include "debuginfo-store/gc.h"
#include "debuginfo-store/verify_worker.h"
#include "tests/faults/fault_loop.h"
#include "tests/support/suite.h"

#define CONTENT_BYTES 9000
#define NOW 2000000000

/* The steps, in this order. */
enum { WORSE, BETTER, PARTS, PIN, OTHER, OLD, MAY_GO, REMOVED, COLLECTED, STEPS };

static struct debuginfo_store *store;

/* Replaces the verify worker; the content encodes its object and quality. */
enum status verify_file_in_worker(int fd, int other, struct verify_result *ret, struct error *err)
{
        uint8_t head[2];

        (void)other;
        if (pread(fd, head, sizeof head, 0) != sizeof head)
                return error_set(err, ST_BAD_DATA, "no content");
        *ret = (struct verify_result){ .quality = head[1], .has_code = true };
        build_id_from_bytes(&ret->build_id, (const uint8_t[20]){ head[0], 7 }, 20);
        return ST_OK;
}

struct content {
        uint8_t bytes[CONTENT_BYTES];
        uint8_t sha256[SHA256_BYTES];
};

static struct content content(uint8_t number, enum symbol_quality quality)
{
        struct content c = { .bytes = { number, (uint8_t)quality } };
        struct sha256 sha;
        uint32_t random = number * 77u + quality;

        for (size_t i = 2; i < CONTENT_BYTES; i++)
                c.bytes[i] = (uint8_t)((random = random * 1664525u + 1013904223u) >> 24);
        ck_assert_int_eq(sha256_init(&sha, NULL), ST_OK);
        sha256_update(&sha, c.bytes, CONTENT_BYTES);
        sha256_final(&sha, c.sha256);
        sha256_deinit(&sha);
        return c;
}

static struct build_id id_of(uint8_t number)
{
        struct build_id id;

        build_id_from_bytes(&id, (const uint8_t[20]){ number, 7 }, 20);
        return id;
}

/* ---- the scenario ---- */

static enum status open_store(const char *dir, struct error *err)
{
        return debuginfo_store_open(dir, false, &store, err);
}

static void close_store(void)
{
        debuginfo_store_close(store);
        store = NULL;
}

static enum status send(const struct content *c, size_t from, size_t to, const char *tag, struct error *err)
{
        struct object_claim claim = { .build_id = id_of(c->bytes[0]),
                                      .size_bytes = CONTENT_BYTES,
                                      .name = "x",
                                      .tag = tag,
                                      .offset = from,
                                      .is_resumable = from || to < CONTENT_BYTES };
        struct object_upload *u;
        struct stored_object stored;
        bool same;
        enum status st;

        memcpy(claim.sha256, c->sha256, sizeof claim.sha256);
        st = object_upload_begin(store, &claim, &u, err);
        if (st)
                return st;
        st = object_upload_append(u, c->bytes + from, to - from, err);
        if (st || to < CONTENT_BYTES) {
                object_upload_abort(u);
                return st;
        }
        st = object_upload_finish(u, &stored, &same, err);
        return st == ST_USAGE && err->reason == REFUSED_NOT_BETTER ? ST_OK : st;
}

static enum status upload(uint8_t number, enum symbol_quality quality, const char *tag, struct error *err)
{
        const struct content c = content(number, quality);

        return send(&c, 0, CONTENT_BYTES, tag, err);
}

/* The part that is not yet stored, in two requests. */
static enum status upload_in_parts(uint8_t number, struct error *err)
{
        const struct content c = content(number, QUALITY_DWARF);
        struct object_claim claim = { .build_id = id_of(number), .size_bytes = CONTENT_BYTES, .is_resumable = true };
        uint64_t offset;
        enum status st;

        memcpy(claim.sha256, c.sha256, sizeof claim.sha256);
        st = object_upload_find_offset(store, &claim, &offset, err);
        if (!st && offset < CONTENT_BYTES / 2) {
                st = send(&c, offset, CONTENT_BYTES / 2, "", err);
                offset = CONTENT_BYTES / 2;
        }
        return st ? st : send(&c, offset, CONTENT_BYTES, "", err);
}

static enum status collect_garbage(struct gc_result *ret, const char *rule, struct error *err)
{
        struct retention_rule parsed[RETENTION_RULES_MAX];
        const struct gc_options o = {
                .rules = parsed, .rule_count = rule != NULL, .now_unix_s = NOW * INT64_C(2), .sweep = true
        };

        ck_assert_int_eq(retention_rules_parse(&rule, o.rule_count, parsed, err), ST_OK);
        return debuginfo_store_collect_garbage(store, &o, ret, err);
}

static enum status take_step(unsigned number, struct error *err)
{
        const struct build_id id = id_of(number == PIN ? PARTS : OTHER);
        struct gc_result r;
        enum status st;

        switch (number) {
        case WORSE:
                return upload(BETTER, QUALITY_SYMTAB, "", err);
        case PARTS:
                return upload_in_parts(PARTS, err);
        case PIN:
                return debuginfo_store_set_pin(store, &id, OBJECT_DEBUGINFO, true, err);
        case MAY_GO:
                return ST_OK;
        case REMOVED:
                st = debuginfo_store_remove(store, &id, OBJECT_DEBUGINFO, err);
                return st == ST_NOT_FOUND ? ST_OK : st;
        case COLLECTED:
                return collect_garbage(&r, "tag=old,age=1d", err);
        default:
                return upload((uint8_t)number, QUALITY_DWARF, number == OLD ? "old" : "", err);
        }
}

static enum status resume_steps(struct error *err)
{
        return run_remaining_steps(NULL, STEPS, take_step, err);
}

/* ---- checks ---- */

static bool is_step_acknowledged(uint32_t acknowledged, unsigned number)
{
        return acknowledged >> number & 1;
}

static void check_content(const struct stored_object *o)
{
        const struct object_name name = { o->build_id, o->kind };
        const struct content c = content(o->build_id.bytes[0], o->quality);
        struct error err = { 0 };

        must(memcmp(c.sha256, o->sha256, sizeof c.sha256) == 0, "object %u is another", o->build_id.bytes[0]);
        must(debuginfo_store_check_object(store, &name, &err) == ST_OK, "object %u: %s", o->build_id.bytes[0],
             err.text);
}

/* Acknowledged: the object must be there. Removed: its removal was acknowledged. Neither: absent or complete. */
static bool check_object(uint8_t number, bool acknowledged, bool taken, struct stored_object *ret)
{
        const struct build_id id = id_of(number);
        struct error err = { 0 };
        enum status st = debuginfo_store_stat(store, &id, OBJECT_DEBUGINFO, ret, &err);

        must(st == ST_OK || st == ST_NOT_FOUND, "object %u: %s", number, err.text);
        must(!acknowledged || st == ST_OK, "object %u was acknowledged and is lost", number);
        must(!taken || st == ST_NOT_FOUND, "object %u was removed and is back", number);
        if (!st)
                check_content(ret);
        return !st;
}

static void check(const char *dir, uint32_t acknowledged)
{
        struct stored_object o;
        struct gc_result r;
        struct error err = { 0 };

        must(open_store(dir, &err) == ST_OK, "%s", err.text);
        if (check_object(BETTER, is_step_acknowledged(acknowledged, WORSE), false, &o) &&
            is_step_acknowledged(acknowledged, BETTER))
                must(o.quality == QUALITY_DWARF, "the better object is lost");
        if (check_object(PARTS, is_step_acknowledged(acknowledged, PARTS), false, &o) &&
            is_step_acknowledged(acknowledged, PIN))
                must(o.is_pinned, "the pin is lost");
        check_object(OTHER, is_step_acknowledged(acknowledged, OTHER) && !is_step_acknowledged(acknowledged, MAY_GO),
                     is_step_acknowledged(acknowledged, REMOVED), &o);
        check_object(OLD, is_step_acknowledged(acknowledged, OLD) && !is_step_acknowledged(acknowledged, MAY_GO),
                     is_step_acknowledged(acknowledged, COLLECTED), &o);
        must(collect_garbage(&r, NULL, &err) == ST_OK, "%s", err.text);
        must(collect_garbage(&r, NULL, &err) == ST_OK && r.orphans == 0, "%llu strays stay",
             (unsigned long long)r.orphans);
        must(upload(100, QUALITY_DWARF, "", &err) == ST_OK, "a new object: %s", err.text);
        check_object(100, true, false, &o);
        ck_assert_int_eq(debuginfo_store_remove(store, &o.build_id, o.kind, &err), ST_OK);
        close_store();
}

static const struct scenario scenario = { open_store, resume_steps, close_store, check, (UINT32_C(1) << STEPS) - 1 };

START_TEST(acknowledged_objects_are_kept_after_kill_at_any_step)
{
        fault_loop_kills(&scenario);
}
END_TEST

START_TEST(failed_call_leaves_no_residue)
{
        fault_loop_errors(&scenario);
}
END_TEST

START_TEST(full_disk_is_reported_and_recovered)
{
        fault_loop_full_disk(&scenario);
}
END_TEST

START_TEST(interrupted_write_has_no_effect)
{
        fault_loop_interrupts(&scenario);
}
END_TEST

START_TEST(acknowledged_objects_are_kept_after_power_cut)
{
        fault_loop_power_cuts(&scenario);
}
END_TEST

START_TEST(acknowledged_objects_are_kept_after_power_cut_following_fault)
{
        fault_loop_late_power_cuts(&scenario);
}
END_TEST

TEST_SUITE("faults objects", acknowledged_objects_are_kept_after_kill_at_any_step, failed_call_leaves_no_residue,
           full_disk_is_reported_and_recovered, interrupted_write_has_no_effect,
           acknowledged_objects_are_kept_after_power_cut, acknowledged_objects_are_kept_after_power_cut_following_fault)
