/* SPDX-License-Identifier: Apache-2.0 */
/* Target files that are added, removed and changed, and that are temporarily unreadable. */
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/files/file.h"
#include "scrape/discovery.h"
#include "tests/support/suite.h"
#include "tests/support/temporary_dir.h"

static char dir[TEMPORARY_DIR_BYTES];
static struct scrape_config config;
static struct discovery *discovery;

static void write_file(const char *name, const char *text)
{
        _cleanup_free_ char *path = path_join(dir, name);

        ck_assert_int_eq(file_write_durable(path, text, strlen(text), NULL), ST_OK);
}

static void begin_discovery(const char *pattern)
{
        _cleanup_free_ char *path = NULL;
        char text[200];

        temporary_dir_create(dir, "discovery");
        path = path_join(dir, "config");
        snprintf(text, sizeof text, "scrape_configs: [{job_name: a, file_sd_configs: [{files: ['%s']}]}]\n", pattern);
        write_file("config", text);
        ck_assert_int_eq(scrape_config_read(path, &config, NULL), ST_OK);
        ck_assert_int_eq(discovery_create(&config, &discovery, NULL), ST_OK);
}

static void end_discovery(void)
{
        discovery_destroy(discovery);
        scrape_config_deinit(&config);
        temporary_dir_remove(dir);
}

/* Addresses after reading the files, each followed by a space, and the number of files that failed. */
static void check_targets_are(const char *want, size_t failed)
{
        struct target_list targets = { 0 };
        struct discovery_counts counts;
        char got[200] = "";
        size_t n = 0;
        bool changed;

        ck_assert_int_eq(discovery_refresh(discovery, &changed, NULL), ST_OK);
        ck_assert_int_eq(discovery_list_targets(discovery, &targets, NULL), ST_OK);
        for (size_t i = 0; i < targets.count; i++) {
                n += (size_t)snprintf(got + n, sizeof got - n, "%s ",
                                      label_set_get(&targets.items[i].labels, "instance"));
        }
        target_list_deinit(&targets);
        ck_assert_str_eq(got, want);
        discovery_get_counts(discovery, &counts);
        ck_assert_uint_eq(counts.failed_files, failed);
        ck_assert_uint_ge(counts.files, failed);
}

/* No file can be opened until the limit is restored. */
static struct rlimit exhaust_descriptors(void)
{
        struct rlimit before, none;

        ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
        none = (struct rlimit){ 0, before.rlim_max };
        ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
        return before;
}

START_TEST(files_come_and_go)
{
        _cleanup_free_ char *path = NULL;

        begin_discovery("*.json");
        check_targets_are("", 0);
        write_file("one.json", "[{targets: ['a:1', 'b:2']}]");
        check_targets_are("a:1 b:2 ", 0);
        write_file("two.json", "[{targets: ['c:3']}]");
        check_targets_are("a:1 b:2 c:3 ", 0);
        path = path_join(dir, "one.json");
        ck_assert_int_eq(unlink(path), 0);
        check_targets_are("c:3 ", 0);
        end_discovery();
}
END_TEST

START_TEST(unreadable_file_is_retried)
{
        struct rlimit before;

        begin_discovery("one.json"); /* without a pattern no directory is listed */
        write_file("one.json", "[{targets: ['a:1']}]");
        before = exhaust_descriptors();
        check_targets_are("", 1);
        ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
        check_targets_are("a:1 ", 0);
        write_file("one.json", "[{targets: ['a:1', 'b:2']}]");
        before = exhaust_descriptors();
        check_targets_are("a:1 ", 1);
        ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
        check_targets_are("a:1 b:2 ", 0);
        end_discovery();
}
END_TEST

START_TEST(files_of_unreadable_directory_keep_their_targets)
{
        _cleanup_free_ char *path = NULL;
        struct rlimit before;

        begin_discovery("*.json");
        write_file("one.json", "[{targets: ['a:1']}]");
        write_file("two.json", "[{targets: ['b:2']}]");
        check_targets_are("a:1 b:2 ", 0);
        before = exhaust_descriptors();
        check_targets_are("a:1 b:2 ", 1);
        path = path_join(dir, "one.json");
        ck_assert_int_eq(unlink(path), 0); /* that much is known */
        check_targets_are("b:2 ", 1);
        ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
        check_targets_are("b:2 ", 0);
        end_discovery();
}
END_TEST

START_TEST(malformed_file_keeps_targets_until_changed)
{
        begin_discovery("*.json");
        write_file("one.json", "[{targets: ['a:1']}]");
        check_targets_are("a:1 ", 0);
        write_file("one.json", "[{targets: [");
        check_targets_are("a:1 ", 1);
        check_targets_are("a:1 ", 1);
        write_file("one.json", "[{targets: ['b:2']}]");
        check_targets_are("b:2 ", 0);
        end_discovery();
}
END_TEST

/* Files are read while they are written: "host:70" is a target, and no text is a list without targets. */
START_TEST(file_that_is_cut_off_keeps_its_targets)
{
        begin_discovery("*.yml");
        write_file("one.yml", "- targets: [a:1]\n- targets:\n  - host:7000\n");
        check_targets_are("a:1 host:7000 ", 0);
        write_file("one.yml", "- targets: [a:1]\n- targets:\n  - host:70");
        check_targets_are("a:1 host:7000 ", 1);
        write_file("one.yml", "");
        check_targets_are("a:1 host:7000 ", 1);
        write_file("one.yml", "[]");
        check_targets_are("", 0);
        end_discovery();
}
END_TEST

TEST_SUITE("discovery", files_come_and_go, unreadable_file_is_retried, files_of_unreadable_directory_keep_their_targets,
           malformed_file_keeps_targets_until_changed, file_that_is_cut_off_keeps_its_targets)
