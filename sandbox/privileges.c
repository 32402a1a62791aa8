/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/privileges.h"

#include <errno.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

static const cap_value_t KEPT[] = {
        CAP_BPF,    CAP_PERFMON, CAP_SYS_PTRACE, CAP_CHECKPOINT_RESTORE, CAP_DAC_READ_SEARCH, CAP_SYSLOG,
        CAP_SETUID, CAP_SETGID,  CAP_KILL
};
#define KEPT_BY_ROOT 3 /* the last three of KEPT */

bool privileges_have(cap_value_t cap)
{
        cap_t own = cap_get_proc();
        cap_flag_value_t value = CAP_CLEAR;

        if (own && cap_get_flag(own, cap, CAP_EFFECTIVE, &value) < 0)
                value = CAP_CLEAR;
        cap_free(own);
        return value == CAP_SET;
}

enum status privileges_drop(bool with_bpf, char *kept_ret, size_t size, struct error *err)
{
        cap_t own = cap_get_proc(), less = cap_init();
        enum status st = ST_OK;
        size_t at = 0, count = sizeof KEPT / sizeof *KEPT - (geteuid() == 0 ? 0 : KEPT_BY_ROOT);

        if (!own || !less) {
                st = error_os(err, errno, "cannot read the capabilities");
                goto out;
        }
        kept_ret[0] = 0;
        for (size_t i = with_bpf ? 0 : 1; i < count && !st; i++) {
                cap_flag_value_t has = CAP_CLEAR;
                char *name;
                int n;

                if (cap_get_flag(own, KEPT[i], CAP_PERMITTED, &has) < 0 || has != CAP_SET)
                        continue;
                if (cap_set_flag(less, CAP_PERMITTED, 1, &KEPT[i], CAP_SET) < 0 ||
                    cap_set_flag(less, CAP_EFFECTIVE, 1, &KEPT[i], CAP_SET) < 0)
                        st = error_os(err, errno, "cannot select capabilities");
                name = cap_to_name(KEPT[i]);
                n = snprintf(kept_ret + at, size - at, "%s%s", at ? " " : "", name ? name : "?");
                cap_free(name);
                at += n > 0 && (size_t)n < size - at ? (size_t)n : 0;
        }
        if (!st && cap_set_proc(less) < 0)
                st = error_os(err, errno, "cannot drop capabilities");
        if (!st && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
                st = error_os(err, errno, "cannot set no_new_privs");
out:
        cap_free(own);
        cap_free(less);
        return st;
}

enum status privileges_drop_all(struct error *err)
{
        cap_t none = cap_init();
        enum status st = ST_OK;

        if (!none || cap_set_proc(none) < 0)
                st = error_os(err, errno, "cannot drop capabilities");
        cap_free(none);
        return st;
}
