/* SPDX-License-Identifier: Apache-2.0 */
/* Each test is a process of its own, so what it gives up is gone for it alone. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/privileges.h"
#include "tests/support/suite.h"

/* A mask of /proc/self/status. */
static unsigned long long mask(const char *key)
{
        FILE *f = fopen("/proc/self/status", "re");
        unsigned long long ret = 0;
        char line[256];

        ck_assert_ptr_nonnull(f);
        while (fgets(line, sizeof line, f))
                if (strncmp(line, key, strlen(key)) == 0)
                        ret = strtoull(line + strlen(key), NULL, 16);
        fclose(f);
        return ret;
}

START_TEST(a_worker_has_no_rights_left)
{
        struct error err;

        ck_assert_msg(privileges_drop_all(&err) == ST_OK, "%s", err.text);
        ck_assert_uint_eq(mask("CapEff:"), 0);
        ck_assert_uint_eq(mask("CapPrm:"), 0);
        ck_assert(!privileges_have(CAP_SYS_PTRACE));
}
END_TEST

START_TEST(only_what_sampling_needs_is_kept)
{
        static const cap_value_t kept_always[] = { CAP_PERFMON, CAP_SYS_PTRACE, CAP_CHECKPOINT_RESTORE,
                                                   CAP_DAC_READ_SEARCH, CAP_SYSLOG };
        static const cap_value_t kept_by_root[] = { CAP_SETUID, CAP_SETGID, CAP_KILL };
        unsigned long long had = mask("CapPrm:"), allowed = 0;
        char kept[256];
        struct error err;

        for (size_t i = 0; i < sizeof kept_always / sizeof *kept_always; i++)
                allowed |= 1ull << kept_always[i];
        for (size_t i = 0; geteuid() == 0 && i < sizeof kept_by_root / sizeof *kept_by_root; i++)
                allowed |= 1ull << kept_by_root[i];
        ck_assert_msg(privileges_drop(false, kept, sizeof kept, &err) == ST_OK, "%s", err.text);
        ck_assert_uint_eq(mask("CapPrm:"), had & allowed);
        ck_assert_uint_eq(mask("CapEff:"), had & allowed);
        ck_assert_uint_eq(mask("NoNewPrivs:"), 1);
        ck_assert_ptr_null(strstr(kept, "cap_bpf"));
}
END_TEST

START_TEST(what_was_not_there_does_not_come)
{
        char kept[256];
        struct error err;

        ck_assert_int_eq(privileges_drop_all(&err), ST_OK);
        ck_assert_int_eq(privileges_drop(true, kept, sizeof kept, &err), ST_OK);
        ck_assert_str_eq(kept, "");
        ck_assert_uint_eq(mask("CapEff:"), 0);
}
END_TEST

TEST_SUITE("agent_privileges", a_worker_has_no_rights_left, only_what_sampling_needs_is_kept,
           what_was_not_there_does_not_come)
