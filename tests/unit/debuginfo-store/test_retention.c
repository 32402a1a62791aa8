/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>

#include "common/files/file.h"
#include "debuginfo-store/debuginfo_store_internal.h"
#include "debuginfo-store/gc.h"
#include "debuginfo-store/object_record.h"
#include "debuginfo-store/object_table.h"
#include "tests/support/faulty_storage.h"
#include "tests/support/suite.h"
#include "tests/support/temporary_dir.h"

#define DAY 86400
#define NOW (1000 * DAY)

static char dir[TEMPORARY_DIR_BYTES];
static struct debuginfo_store *store;

static void set_up(void)
{
        struct error err;

        temporary_dir_create(dir, "retention");
        ck_assert_int_eq(debuginfo_store_open(dir, false, &store, &err), ST_OK);
}

static void tear_down(void)
{
        debuginfo_store_close(store);
        temporary_dir_remove(dir);
}

static char *format_object_path(const struct stored_object *o)
{
        _cleanup_free_ char *key = object_format_key(o);

        return path_join(dir, key);
}

/* An object and its file, without verification, which is not tested here. */
static struct stored_object put_object(struct stored_object o, const struct object_links *links)
{
        _cleanup_free_ char *path = format_object_path(&o), *parent = strndup(path, (size_t)(path_base(path) - path));
        struct error err;

        ck_assert_int_eq(file_make_dirs(parent, &err), ST_OK);
        ck_assert_int_eq(file_write_durable(path, "x", 1, &err), ST_OK);
        ck_assert_int_eq(meta_put(store->meta, &o, links, NULL, &err), ST_OK);
        return o;
}

static struct stored_object put(uint8_t number, unsigned days_old, unsigned days_unused, uint64_t bytes,
                                const char *tag)
{
        struct stored_object o = { .kind = OBJECT_DEBUGINFO,
                                   .quality = QUALITY_DWARF,
                                   .stored_bytes = bytes,
                                   .stored_unix_s = NOW - (int64_t)days_old * DAY,
                                   .used_unix_s = NOW - (int64_t)days_unused * DAY };

        build_id_from_bytes(&o.build_id, (const uint8_t[20]){ number, 1, 2 }, 20);
        o.sha256[0] = number;
        snprintf(o.tag, sizeof o.tag, "%s", tag);
        return put_object(o, NULL);
}

static bool is_there(const struct stored_object *o)
{
        struct stored_object found;
        _cleanup_free_ char *path = format_object_path(o);
        bool record = debuginfo_store_stat(store, &o->build_id, o->kind, &found, NULL) == ST_OK;

        ck_assert_int_eq(access(path, F_OK) == 0, record); /* both are removed together */
        return record;
}

static struct gc_result collect_with(struct gc_options o, const char *const *texts, size_t count)
{
        struct retention_rule rules[RETENTION_RULES_MAX];
        struct gc_result r;
        struct error err = { 0 };

        ck_assert_msg(retention_rules_parse(texts, count, rules, &err) == ST_OK, "%s", err.text);
        o.rules = rules;
        o.rule_count = count;
        o.now_unix_s = NOW;
        ck_assert_msg(debuginfo_store_collect_garbage(store, &o, &r, &err) == ST_OK, "%s", err.text);
        return r;
}
#define collect(...)                                                                                                   \
        collect_with((struct gc_options){ 0 }, (const char *const[]){ __VA_ARGS__ },                                   \
                     sizeof((const char *const[]){ __VA_ARGS__ }) / sizeof(const char *))

START_TEST(objects_expire_by_age_and_last_use)
{
        struct stored_object old = put(1, 91, 0, 10, ""), fresh = put(2, 90, 29, 10, ""),
                             unused = put(3, 89, 31, 10, "");
        struct gc_result r = collect("age=90d,unused=30d");

        ck_assert(!is_there(&old));
        ck_assert(is_there(&fresh));
        ck_assert(!is_there(&unused));
        ck_assert_uint_eq(r.removed[GC_AGE], 1);
        ck_assert_uint_eq(r.removed[GC_UNUSED], 1);
        ck_assert_uint_eq(r.removed_bytes, 20);
        ck_assert_uint_eq(r.objects, 1);
        ck_assert_uint_eq(r.bytes, 10);
}
END_TEST

START_TEST(first_matching_rule_applies)
{
        struct stored_object release = put(1, 500, 500, 10, "release/1.0"), nightly = put(2, 8, 8, 10, "nightly"),
                             other = put(3, 500, 500, 10, "");

        collect("tag=release/*,keep", "tag=nightly,age=1w");
        ck_assert(is_there(&release));
        ck_assert(!is_there(&nightly));
        ck_assert(is_there(&other)); /* no rule selects it */
}
END_TEST

START_TEST(size_limit_removes_upstream_copies_first_then_least_recently_used)
{
        struct stored_object a = put(1, 50, 9, 400, ""), b = put(2, 50, 8, 300, ""), c = put(3, 50, 7, 300, ""),
                             upstream = put(4, 1, 1, 200, ""), big = put(5, 99, 99, 5000, "keep-me");
        struct gc_result r;
        struct error err;

        upstream.source = SOURCE_UPSTREAM;
        ck_assert_int_eq(meta_put(store->meta, &upstream, NULL, NULL, &err), ST_OK);
        r = collect("tag=keep-me,keep", "size=600");
        ck_assert(!is_there(&upstream));
        ck_assert(!is_there(&a));
        ck_assert(is_there(&b));
        ck_assert(is_there(&c)); /* 600 fit exactly */
        ck_assert(is_there(&big));
        ck_assert_uint_eq(r.removed[GC_SIZE], 2);
        ck_assert_uint_eq(r.objects, 3);
        ck_assert_uint_eq(r.bytes, 5600);
}
END_TEST

static bool needs_the_first(void *context, const struct stored_object *object)
{
        return build_id_equal(context, &object->build_id);
}

START_TEST(pinned_and_needed_objects_are_kept_and_counted)
{
        struct stored_object needed = put(1, 50, 50, 400, ""), pinned = put(2, 50, 50, 400, ""),
                             rest = put(3, 1, 1, 100, "");
        const char *const rules[] = { "age=30d,size=700" };
        struct gc_result r;
        struct error err;

        ck_assert_int_eq(debuginfo_store_set_pin(store, &pinned.build_id, OBJECT_DEBUGINFO, true, &err), ST_OK);
        r = collect_with((struct gc_options){ .needed = needs_the_first, .context = &needed.build_id }, rules, 1);
        ck_assert(is_there(&needed));
        ck_assert(is_there(&pinned));
        ck_assert(!is_there(&rest));
        ck_assert_uint_eq(r.pinned, 1);
        ck_assert_uint_eq(r.needed, 1);
        ck_assert_int_eq(debuginfo_store_set_pin(store, &pinned.build_id, OBJECT_DEBUGINFO, false, &err), ST_OK);
        collect("age=30d");
        ck_assert(!is_there(&pinned));
}
END_TEST

static void count_one(void *context, const struct stored_object *object, enum gc_reason why)
{
        (void)object;
        ck_assert_int_eq(why, GC_AGE);
        ++*(int *)context;
}

START_TEST(dry_run_reports_and_removes_nothing)
{
        struct stored_object old = put(1, 91, 0, 10, "");
        const char *const rules[] = { "age=90d" };
        int told = 0;
        struct gc_result r;

        r = collect_with((struct gc_options){ .dry_run = true, .removed = count_one, .context = &told }, rules, 1);
        ck_assert_int_eq(told, 1);
        ck_assert_uint_eq(r.removed[GC_AGE], 1);
        ck_assert(is_there(&old));
}
END_TEST

static bool pin_it(void *context, const struct stored_object *object)
{
        (void)context;
        ck_assert_int_eq(debuginfo_store_set_pin(store, &object->build_id, object->kind, true, NULL), ST_OK);
        return false;
}

static void never(void *context, const struct stored_object *object, enum gc_reason why)
{
        (void)context, (void)object, (void)why;
        ck_abort_msg("an object that stays is said to have gone");
}

START_TEST(object_pinned_during_collection_is_kept)
{
        struct stored_object old = put(1, 91, 0, 10, "");
        const char *const rules[] = { "age=90d" };
        struct gc_result r = collect_with((struct gc_options){ .needed = pin_it, .removed = never }, rules, 1);

        ck_assert_uint_eq(r.removed[GC_AGE], 0);
        ck_assert_uint_eq(r.objects, 1);
        ck_assert_uint_eq(r.bytes, 10);
        ck_assert(is_there(&old));
}
END_TEST

static bool pin_the_first(void *context, const struct stored_object *object)
{
        return build_id_equal(context, &object->build_id) && pin_it(NULL, object);
}

/* Called only for the first object, which is kept. */
static bool remove_another(void *context, const struct stored_object *object)
{
        ck_assert(!build_id_equal(context, &object->build_id));
        ck_assert_int_eq(debuginfo_store_remove(store, context, OBJECT_DEBUGINFO, NULL), ST_OK);
        return true;
}

START_TEST(object_kept_during_collection_counts_towards_size)
{
        struct stored_object first = put(1, 50, 9, 400, ""), next = put(2, 50, 8, 300, ""),
                             last = put(3, 50, 7, 300, "");
        const char *const rules[] = { "size=700" };
        struct gc_result r =
                collect_with((struct gc_options){ .needed = pin_the_first, .context = &first.build_id }, rules, 1);

        ck_assert(is_there(&first));
        ck_assert(!is_there(&next));
        ck_assert(is_there(&last));
        ck_assert_uint_eq(r.removed[GC_SIZE], 1);
        ck_assert_uint_eq(r.objects, 2);
        ck_assert_uint_eq(r.bytes, 700);
}
END_TEST

START_TEST(object_removed_concurrently_does_not_count_towards_size)
{
        struct stored_object read = put(1, 50, 9, 100, ""), gone = put(2, 50, 8, 400, ""),
                             last = put(3, 50, 7, 300, "");
        const char *const rules[] = { "size=500" };
        struct gc_result r =
                collect_with((struct gc_options){ .needed = remove_another, .context = &gone.build_id }, rules, 1);

        ck_assert(is_there(&read));
        ck_assert(is_there(&last));
        ck_assert_uint_eq(r.removed[GC_SIZE], 0);
        ck_assert_uint_eq(r.objects, 2);
        ck_assert_uint_eq(r.bytes, 400);
}
END_TEST

static void *remove_it(void *object)
{
        static enum status st;

        st = debuginfo_store_remove_if_unchanged(store, object, NULL);
        return &st;
}

struct removal {
        const struct stored_object *object;
        pthread_t thread;
};

/*
 * Another connection is recording a use while the object is being removed: the removal has to wait, and would otherwise
 * check too early.
 */
static bool use_concurrently(void *context, struct stored_object *object)
{
        struct removal *r = context;
        struct stored_object found;

        ck_assert_int_eq(pthread_create(&r->thread, NULL, remove_it, (void *)r->object), 0);
        while (pthread_mutex_trylock(&store->publish) == 0) {
                pthread_mutex_unlock(&store->publish);
                sched_yield();
        }
        for (int i = 0; i < 1000; i++)
                ck_assert_int_eq(debuginfo_store_stat(store, &object->build_id, object->kind, &found, NULL), ST_OK);
        object->used_unix_s = NOW;
        return true;
}

START_TEST(object_used_during_collection_is_kept)
{
        struct stored_object old = put(1, 91, 91, 10, "");
        const struct object_name name = { old.build_id, old.kind };
        struct removal r = { .object = &old };
        void *st;

        ck_assert_int_eq(meta_edit(store->meta, &name, 1, use_concurrently, &r, NULL), ST_OK);
        pthread_join(r.thread, &st);
        ck_assert_int_eq(*(enum status *)st, ST_NOT_FOUND);
        ck_assert(is_there(&old));
}
END_TEST

START_TEST(files_without_record_are_removed_and_foreign_ones_kept)
{
        struct stored_object kept = put(1, 0, 0, 10, ""), lost = put(2, 0, 0, 10, "");
        _cleanup_free_ char *lost_path = format_object_path(&lost), *kept_path = format_object_path(&kept),
                            *stranger = NULL;
        struct stat st;
        struct gc_result r;
        struct error err;

        ck_assert_int_gt(asprintf(&stranger, "%.*s/README", (int)(path_base(kept_path) - kept_path - 1), kept_path), 0);
        ck_assert_int_eq(file_write_durable(stranger, "hello", 5, &err), ST_OK);
        ck_assert_int_eq(meta_remove(store->meta, &lost.build_id, OBJECT_DEBUGINFO, &err),
                         ST_OK); /* followed by the crash */
        r = collect_with((struct gc_options){ .dry_run = true, .sweep = true }, NULL, 0);
        ck_assert_uint_eq(r.orphans, 1);
        ck_assert_int_eq(access(lost_path, F_OK), 0);
        r = collect_with((struct gc_options){ .sweep = true }, NULL, 0);
        ck_assert_uint_eq(r.orphans, 1);
        ck_assert_uint_eq(r.orphan_bytes, 1);
        ck_assert_int_ne(access(lost_path, F_OK), 0);
        lost_path[path_base(lost_path) - lost_path - 1] = 0;
        ck_assert_int_ne(stat(lost_path, &st), 0); /* including its folder */
        ck_assert(is_there(&kept));
        ck_assert_int_eq(access(stranger, F_OK), 0);
}
END_TEST

/* As of an object store: what was put lately may be named by a commit that is being made. */
START_TEST(files_that_only_the_table_of_objects_names_are_kept)
{
        struct faulty_storage *faulty = faulty_storage_create(store->storage);
        const struct stored_object o = put(1, 0, 0, 10, "");
        struct object_change change = { .row.object = o };
        _cleanup_free_ char *path = format_object_path(&o);
        struct gc_result r;
        struct error err;

        store->storage = &faulty->storage;
        store->is_remote = true;
        faulty->ahead_ms = INT64_C(25) * 3600 * 1000;
        check_ok(object_table_open(store->storage, false, &store->table, &err), &err);
        check_ok(object_table_commit(store->table, &change, 1, &err), &err);
        check_ok(meta_remove(store->meta, &o.build_id, o.kind, &err), &err);
        r = collect_with((struct gc_options){ .sweep = true }, NULL, 0);
        ck_assert_uint_eq(r.orphans, 0);
        ck_assert_int_eq(access(path, F_OK), 0);
        change.removes = true;
        check_ok(object_table_commit(store->table, &change, 1, &err), &err);
        faulty->ahead_ms = 0;
        r = collect_with((struct gc_options){ .sweep = true }, NULL, 0);
        ck_assert_uint_eq(r.orphans, 0);
        faulty->ahead_ms = INT64_C(25) * 3600 * 1000;
        r = collect_with((struct gc_options){ .sweep = true }, NULL, 0);
        ck_assert_uint_eq(r.orphans, 1);
}
END_TEST

START_TEST(use_of_stored_objects_is_recorded_hourly)
{
        struct stored_object o = put(1, 2, 2, 10, ""), found;
        const struct object_name names[] = { { o.build_id, OBJECT_DEBUGINFO }, { o.build_id, OBJECT_EXECUTABLE } };
        struct error err;
        int64_t first;

        ck_assert_int_eq(debuginfo_store_note_use(store, names, 2, &err), ST_OK);
        ck_assert_int_eq(debuginfo_store_stat(store, &o.build_id, o.kind, &found, &err), ST_OK);
        first = found.used_unix_s;
        ck_assert_int_gt(first, NOW);
        ck_assert_int_eq(found.stored_unix_s, o.stored_unix_s);
        found.used_unix_s -= OBJECT_USE_STEP_S - 60;
        ck_assert_int_eq(meta_put(store->meta, &found, NULL, NULL, &err), ST_OK);
        ck_assert_int_eq(debuginfo_store_note_use(store, names, 2, &err), ST_OK);
        ck_assert_int_eq(debuginfo_store_stat(store, &o.build_id, o.kind, &found, &err), ST_OK);
        ck_assert_int_eq(found.used_unix_s, first - OBJECT_USE_STEP_S + 60);
}
END_TEST

static struct stored_object put_kind(uint8_t number, enum object_kind kind, enum symbol_quality quality, uint8_t alias)
{
        struct stored_object o = { .kind = kind, .quality = quality, .stored_unix_s = NOW };
        struct object_links links = { .alias_count = alias != 0 };

        build_id_from_bytes(&o.build_id, (const uint8_t[20]){ number, 1, 2 }, 20);
        build_id_from_bytes(&links.aliases[0].id, (const uint8_t[20]){ alias, 9 }, 20);
        return put_object(o, &links);
}

static enum status remove_superseded(const struct stored_object *symbols, const char *rule)
{
        struct retention_rule rules[1];
        enum status st = rule ? retention_rule_parse(rule, rules, NULL) : ST_OK;

        ck_assert_int_eq(st, ST_OK);
        return debuginfo_store_remove_superseded(store, symbols, rules, rule != NULL, NULL);
}

START_TEST(query_for_upload_of_equal_quality_counts_as_use)
{
        struct stored_object o = put_kind(1, OBJECT_DEBUGINFO, QUALITY_DWARF, 7), found;
        struct object_offer q[] = { { o.build_id, OBJECT_SYMBOLS, .quality = QUALITY_LINES },
                                    { .kind = OBJECT_DEBUGINFO, .quality = QUALITY_SYMTAB } };

        build_id_from_bytes(&q[1].build_id, (const uint8_t[20]){ 7, 9 }, 20);
        for (int i = 0; i < 2; i++) {
                ck_assert_int_eq(meta_put(store->meta, &o, NULL, NULL, NULL), ST_OK); /* not used for a long time */
                ck_assert_int_eq(debuginfo_store_assess_offers(store, &q[i], 1, NULL), ST_OK);
                ck_assert(!q[i].is_wanted);
                ck_assert_int_eq(debuginfo_store_stat(store, &o.build_id, o.kind, &found, NULL), ST_OK);
                ck_assert_int_gt(found.used_unix_s, NOW);
        }
}
END_TEST

static struct object_offer asked;

static void *query_upload(void *context)
{
        (void)context;
        ck_assert_int_eq(debuginfo_store_assess_offers(store, &asked, 1, NULL), ST_OK);
        return NULL;
}

/* The query starts while the write lock is held, so that it sees the object but cannot record its use yet. */
static bool query_upload_concurrently(void *context, struct stored_object *object)
{
        struct stored_object found;

        asked = (struct object_offer){ object->build_id, object->kind, .quality = object->quality };
        ck_assert_int_eq(pthread_create(context, NULL, query_upload, NULL), 0);
        for (int i = 0; i < 1000; i++)
                ck_assert_int_eq(debuginfo_store_stat(store, &object->build_id, object->kind, &found, NULL), ST_OK);
        return false;
}

START_TEST(object_removed_during_query_for_upload_is_wanted)
{
        for (uint8_t number = 1; number <= 20; number++) {
                struct stored_object o = put(number, 91, 91, 10, "");
                const struct object_name name = { o.build_id, o.kind };
                pthread_t thread;
                enum status st;

                ck_assert_int_eq(meta_edit(store->meta, &name, 1, query_upload_concurrently, &thread, NULL), ST_OK);
                st = debuginfo_store_remove_if_unchanged(store, &o, NULL);
                pthread_join(thread, NULL);
                ck_assert_int_eq(asked.is_wanted, st == ST_OK);
                ck_assert_int_eq(asked.is_wanted, !is_there(&o));
        }
}
END_TEST

START_TEST(symbols_are_removed_when_equal_quality_is_stored)
{
        struct stored_object symbols = put_kind(1, OBJECT_SYMBOLS, QUALITY_LINES, 7), other = symbols;

        ck_assert_int_eq(remove_superseded(&symbols, NULL), ST_NOT_FOUND); /* nothing else is stored */
        put_kind(1, OBJECT_DEBUGINFO, QUALITY_SYMTAB, 7);
        ck_assert_int_eq(remove_superseded(&symbols, NULL), ST_NOT_FOUND); /* but worse */
        put_kind(1, OBJECT_EXECUTABLE, QUALITY_LINES, 0);
        other.sha256[0]++;
        ck_assert_int_eq(remove_superseded(&other, NULL), ST_NOT_FOUND);
        ck_assert_int_eq(remove_superseded(&symbols, "kind=symbols,keep"), ST_NOT_FOUND);
        ck_assert(is_there(&symbols));
        ck_assert_int_eq(remove_superseded(&symbols, "kind=symbols,age=1d"), ST_OK);
        ck_assert(!is_there(&symbols));
        ck_assert_int_eq(remove_superseded(&symbols, NULL), ST_NOT_FOUND);
}
END_TEST

START_TEST(pinned_or_uniquely_named_symbols_are_kept)
{
        struct stored_object pinned = put_kind(1, OBJECT_SYMBOLS, QUALITY_DWARF, 0),
                             named = put_kind(2, OBJECT_SYMBOLS, QUALITY_DWARF, 7);

        put_kind(1, OBJECT_DEBUGINFO, QUALITY_DWARF, 0);
        put_kind(2, OBJECT_DEBUGINFO, QUALITY_DWARF, 8);
        ck_assert_int_eq(debuginfo_store_set_pin(store, &pinned.build_id, OBJECT_SYMBOLS, true, NULL), ST_OK);
        ck_assert_int_eq(remove_superseded(&pinned, NULL), ST_NOT_FOUND);
        ck_assert_int_eq(remove_superseded(&named, NULL), ST_NOT_FOUND);
        ck_assert(is_there(&pinned) && is_there(&named));
        put_kind(2, OBJECT_DEBUGINFO, QUALITY_DWARF, 7);
        ck_assert_int_eq(remove_superseded(&named, NULL), ST_OK);
        ck_assert(!is_there(&named));
}
END_TEST

START_TEST(empty_and_invalid_rules_are_refused)
{
        static const char *const bad[] = {
                "",
                "age=90",
                "age=d",
                "age=0d",
                "age=-1d",
                "size=",
                "size=5X",
                "tag=",
                "tag=x",
                "keep,age=1d",
                "age=1d,keep",
                "kind=sources,keep",
                "source=nobody,keep",
                "keep=1",
                "age=99999999999999999999d",
                "size=99999999999999999T",
                "color=red,keep",
                "tag=0123456789012345678901234567890123456789012345678901234567890123456789,keep"
        };
        struct retention_rule r;
        struct error err;

        for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
                ck_assert_msg(retention_rule_parse(bad[i], &r, &err) == ST_USAGE, "'%s' was taken", bad[i]);
        ck_assert_int_eq(retention_rule_parse("kind=executable,source=upstream,unused=2w,size=3T", &r, &err), ST_OK);
        ck_assert_uint_eq(r.unused_s, 14 * DAY);
        ck_assert_uint_eq(r.size_bytes, (uint64_t)3 << 40);
}
END_TEST

START_TEST(rules_are_compared_in_all_fields)
{
        static const char *const texts[] = { "age=1d",
                                             "age=2d",
                                             "unused=1d",
                                             "size=1G",
                                             "age=1d,unused=1d",
                                             "tag=a,age=1d",
                                             "token=a,age=1d",
                                             "tag=b,age=1d",
                                             "source=upload,age=1d",
                                             "kind=executable,age=1d" };
        const size_t count = sizeof texts / sizeof *texts;
        struct retention_rule first[RETENTION_RULES_MAX], second[RETENTION_RULES_MAX];

        ck_assert_int_eq(retention_rules_parse(texts, count, first, NULL), ST_OK);
        ck_assert_int_eq(retention_rules_parse(texts, count, second, NULL), ST_OK);
        for (size_t i = 0; i < count; i++)
                for (size_t k = 0; k < count; k++)
                        ck_assert_int_eq(retention_rules_are_equal(&first[i], &second[k]), i == k);
}
END_TEST

START_TEST(record_of_the_documented_example_is_read)
{
        uint8_t record[] = { 1, 0, 6, 0, 0, 0x10, 0,    0,    0, 0, 0, 0, 0, 4, 0,    0,    0, 0, 0, 0, 9,   9, 9, 9,
                             9, 9, 9, 9, 9, 9,    9,    9,    9, 9, 9, 9, 9, 9, 9,    9,    9, 9, 9, 9, 9,   9, 9, 9,
                             9, 9, 9, 9, 0, 0,    0x40, 0x67, 0, 0, 0, 0, 0, 0, 0x40, 0x67, 0, 0, 0, 0, 'a', 0, 0, 0 };
        const uint8_t key[] = { 2, 0xab, 0xcd, 0 };
        struct stored_object o;
        struct error err = { 0 };

        ck_assert_msg(record_decode(key, sizeof key, record, sizeof record, &o, &err) == ST_OK, "%s", err.text);
        ck_assert_str_eq(o.name, "a");
        ck_assert_uint_eq(o.size_bytes, 0x1000);
        ck_assert_int_eq(o.used_unix_s, 0x67400000);
        ck_assert(!o.is_pinned);
        for (size_t cut = 0; cut < sizeof record; cut++)
                ck_assert_int_eq(record_decode(key, sizeof key, record, cut, &o, &err), ST_BAD_DATA);
        record[0] = 2;
        ck_assert_int_eq(record_decode(key, sizeof key, record, sizeof record, &o, &err), ST_UNSUPPORTED);
}
END_TEST

TEST_SUITE_WITH_FIXTURE("retention", objects_expire_by_age_and_last_use, first_matching_rule_applies,
                        size_limit_removes_upstream_copies_first_then_least_recently_used,
                        pinned_and_needed_objects_are_kept_and_counted, dry_run_reports_and_removes_nothing,
                        object_pinned_during_collection_is_kept, object_used_during_collection_is_kept,
                        object_kept_during_collection_counts_towards_size,
                        object_removed_concurrently_does_not_count_towards_size,
                        files_without_record_are_removed_and_foreign_ones_kept,
                        files_that_only_the_table_of_objects_names_are_kept, use_of_stored_objects_is_recorded_hourly,
                        query_for_upload_of_equal_quality_counts_as_use,
                        object_removed_during_query_for_upload_is_wanted,
                        symbols_are_removed_when_equal_quality_is_stored, pinned_or_uniquely_named_symbols_are_kept,
                        empty_and_invalid_rules_are_refused, rules_are_compared_in_all_fields,
                        record_of_the_documented_example_is_read)
