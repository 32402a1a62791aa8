/* SPDX-License-Identifier: Apache-2.0 */
/* Each test is a process of its own, so that dropped privileges do not affect other tests. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sandbox/privileges.h"
#include "tests/support/suite.h"

/* Read a mask from /proc/self/status. */
static unsigned long long read_mask(const char *key)
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

START_TEST(worker_has_no_capabilities)
{
        struct error err;

        ck_assert_msg(privileges_drop_all(&err) == ST_OK, "%s", err.text);
        ck_assert_uint_eq(read_mask("CapEff:"), 0);
        ck_assert_uint_eq(read_mask("CapPrm:"), 0);
        ck_assert(!privileges_have(CAP_SYS_PTRACE));
}
END_TEST

START_TEST(only_capabilities_for_sampling_are_kept)
{
        static const cap_value_t kept_always[] = { CAP_PERFMON, CAP_SYS_PTRACE, CAP_CHECKPOINT_RESTORE,
                                                   CAP_DAC_READ_SEARCH, CAP_SYSLOG };
        static const cap_value_t kept_by_root[] = { CAP_SETUID, CAP_SETGID, CAP_KILL };
        unsigned long long had = read_mask("CapPrm:"), allowed = 0;
        char kept[256];
        struct error err;

        for (size_t i = 0; i < sizeof kept_always / sizeof *kept_always; i++)
                allowed |= 1ull << kept_always[i];
        for (size_t i = 0; geteuid() == 0 && i < sizeof kept_by_root / sizeof *kept_by_root; i++)
                allowed |= 1ull << kept_by_root[i];
        ck_assert_msg(privileges_drop(false, kept, sizeof kept, &err) == ST_OK, "%s", err.text);
        ck_assert_uint_eq(read_mask("CapPrm:"), had & allowed);
        ck_assert_uint_eq(read_mask("CapEff:"), had & allowed);
        ck_assert_uint_eq(read_mask("NoNewPrivs:"), 1);
        ck_assert_ptr_null(strstr(kept, "cap_bpf"));
}
END_TEST

START_TEST(missing_capabilities_are_not_gained)
{
        char kept[256];
        struct error err;

        ck_assert_int_eq(privileges_drop_all(&err), ST_OK);
        ck_assert_int_eq(privileges_drop(true, kept, sizeof kept, &err), ST_OK);
        ck_assert_str_eq(kept, "");
        ck_assert_uint_eq(read_mask("CapEff:"), 0);
}
END_TEST

TEST_SUITE("agent_privileges", worker_has_no_capabilities, only_capabilities_for_sampling_are_kept,
           missing_capabilities_are_not_gained)
