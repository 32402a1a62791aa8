/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/worker_user.h"

#include <errno.h>
#include <linux/capability.h>
#include <pwd.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/text/number_text.h"
#include "sandbox/sanitizers.h"

static struct {
        uid_t uid;
        gid_t gid;
        bool is_chosen;   /* configured: a worker must not run as another user */
        bool is_unusable; /* the uid cannot be changed in this process */
} target = { .uid = WORKER_USER_DEFAULT, .gid = WORKER_USER_DEFAULT };

/*
 * Raw system calls: the child of a multi-threaded process must not take the locks of the C library, whose wrappers
 * change the ids of every thread.
 */
static bool change_ids(uid_t uid, gid_t gid)
{
        if (syscall(SYS_setgroups, 0, NULL) || syscall(SYS_setresgid, gid, gid, gid) ||
            syscall(SYS_setresuid, uid, uid, uid))
                return false;
        if (BUILT_WITH_SANITIZER) /* a leak check traces its own process, which the change of uid would forbid */
                prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
        return true;
}

void worker_user_drop_capabilities(void)
{
        struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
        const struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = { { 0 } };

        prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
        syscall(SYS_capset, &header, none); /* with no_new_privs, exec cannot regain any */
}

bool worker_user_become(void)
{
        bool became = geteuid() != 0 || target.is_unusable || change_ids(target.uid, target.gid);

        worker_user_drop_capabilities();
        return became || !target.is_chosen;
}

static enum status find_user(const char *user, struct error *err)
{
        const struct passwd *account;
        uint64_t uid;

        if (parse_uint(user, &uid)) {
                if (uid >= UINT32_MAX)
                        return error_set(err, ST_USAGE, "'%s' is not a uid", user);
                target.uid = (uid_t)uid;
                target.gid = (gid_t)uid;
        } else {
                account = getpwnam(user);
                if (!account)
                        return error_set(err, ST_USAGE, "cannot run workers as '%s': no such user", user);
                target.uid = account->pw_uid;
                target.gid = account->pw_gid;
        }
        if (target.uid == 0 || target.gid == 0)
                return error_set(err, ST_USAGE,
                                 "workers may not run as root or in its group; choose another user than '%s'", user);
        return ST_OK;
}

/* Exit code: errno. */
static _Noreturn void try_user(void)
{
        errno = 0;
        _exit(change_ids(target.uid, target.gid) ? 0 : errno & 0xff);
}

static enum status check_user(struct error *err)
{
        pid_t pid = fork();
        int status = 0;

        if (pid == 0)
                try_user();
        if (pid < 0)
                return error_os(err, errno, "cannot start a process as uid %u", target.uid);
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
                ;
        if (status == 0)
                return ST_OK;
        target.is_unusable = !target.is_chosen;
        error_os(err, WIFEXITED(status) ? WEXITSTATUS(status) : EIO, "workers cannot run as uid %u", target.uid);
        return ST_UNSUPPORTED;
}

enum status worker_user_choose(const char *user, struct error *err)
{
        enum status st;

        if (geteuid() != 0)
                return user ? error_set(err, ST_USAGE, "only root can run workers as another user, here '%s'", user)
                            : ST_OK;
        if (user) {
                st = find_user(user, err);
                if (st)
                        return st;
                target.is_chosen = true;
        }
        return check_user(err);
}

uid_t worker_user_uid(void)
{
        return geteuid() != 0 || target.is_unusable ? geteuid() : target.uid;
}
