/* SPDX-License-Identifier: Apache-2.0 */
#include "sampling/processes/process_read.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/limits.h"
#include "common/memory/buf.h"
#include "sampling/objects/text_line.h"

#define HOST_PID_NAMESPACE 0xeffffffcu /* PROC_PID_INIT_INO, include/linux/proc_ns.h */
#define PF_KTHREAD 0x00200000          /* include/linux/sched.h, in field 9 of stat */

/* These files are generated while they are read, so their size is unknown. */
static enum status read_proc_file(int proc_fd, const char *name, struct buf *ret, struct error *err)
{
        _cleanup_close_ int fd = openat(proc_fd, name, O_RDONLY | O_CLOEXEC);

        if (fd < 0)
                return error_os(err, errno, "cannot open '%s' of a process", name);
        for (;;) {
                size_t room = ret->max - ret->size < KiB(16) ? ret->max - ret->size : KiB(16);
                void *to = room ? buf_reserve(ret, room) : NULL;
                ssize_t n;

                if (!to)
                        return error_set(err, ST_TOO_BIG, "'%s' of a process is larger than %zu bytes", name, ret->max);
                n = read(fd, to, room);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return error_os(err, errno, "cannot read '%s' of a process", name);
                if (n == 0)
                        return ST_OK;
                buf_commit(ret, (size_t)n);
        }
}

bool process_parse_stat(const char *text, size_t n, struct process_stat *ret)
{
        /* "PID (COMM) STATE PPID ...": COMM may contain blanks and parentheses, so parse after the last ')'. */
        const char *paren = n ? memrchr(text, ')', n) : NULL;
        struct text_line line = { paren ? paren + 1 : text, text + n }, field;
        struct process_stat stat = { 0 };
        uint64_t parent = 0, flags = 0;

        if (!paren)
                return false;
        for (int i = 3; i <= 22; i++) {
                if (!text_field(&line, &field))
                        return false;
                if (i == 3)
                        stat.state = *field.at;
                else if ((i == 4 && !text_number(&field, 10, &parent)) ||
                         (i == 9 && !text_number(&field, 10, &flags)) ||
                         (i == 22 && !text_number(&field, 10, &stat.start_ticks)))
                        return false;
        }
        stat.parent = (uint32_t)parent;
        stat.kernel_thread = flags & PF_KTHREAD;
        *ret = stat;
        return true;
}

bool process_read_stat(int proc_fd, struct process_stat *ret)
{
        _cleanup_buf_ struct buf text = { 0 };

        buf_init(&text, KiB(64));
        return !read_proc_file(proc_fd, "stat", &text, NULL) &&
               process_parse_stat((const char *)text.data, text.size, ret);
}

uint64_t process_start_ns(const struct process_stat *stat)
{
        return stat->start_ticks * (1000000000 / (uint64_t)sysconf(_SC_CLK_TCK));
}

bool process_in_host_pid_namespace(void)
{
        struct stat st;

        return stat("/proc/self/ns/pid", &st) == 0 && st.st_ino == HOST_PID_NAMESPACE;
}

uint64_t process_start_ticks(const struct sample_process *id)
{
        return id->start_boot_ns / (1000000000 / (uint64_t)sysconf(_SC_CLK_TCK));
}

static int open_pid_directory(uint32_t tgid, struct process_stat *stat_ret)
{
        char path[32];
        _cleanup_close_ int fd = -1;

        snprintf(path, sizeof path, "/proc/%u", tgid);
        fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        return fd >= 0 && process_read_stat(fd, stat_ret) ? steal_fd(&fd) : -1;
}

bool process_find_pid(uint32_t tgid, struct sample_process *ret)
{
        struct process_stat stat;
        _cleanup_close_ int fd = open_pid_directory(tgid, &stat);

        if (fd < 0)
                return false;
        *ret = (struct sample_process){ .tgid = tgid, .start_boot_ns = process_start_ns(&stat) };
        return true;
}

int process_open(const struct sample_process *id)
{
        struct process_stat stat;
        _cleanup_close_ int fd = open_pid_directory(id->tgid, &stat);

        return fd >= 0 && stat.start_ticks == process_start_ticks(id) ? steal_fd(&fd) : -1;
}

enum status process_read_maps(int proc_fd, struct proc_maps *ret, struct error *err)
{
        _cleanup_buf_ struct buf text = { 0 };
        enum status st;

        buf_init(&text, LIMIT_AGENT_MAPS_BYTES);
        st = read_proc_file(proc_fd, "maps", &text, err);
        return st ? st : proc_maps_parse((const char *)text.data, text.size, ret, err);
}

bool process_read_name(int proc_fd, char ret[static SAMPLE_COMM_SIZE])
{
        _cleanup_buf_ struct buf text = { 0 };
        struct text_line left, line;
        size_t n;

        buf_init(&text, KiB(4));
        if (read_proc_file(proc_fd, "comm", &text, NULL))
                return false;
        left = (struct text_line){ (const char *)text.data, (const char *)text.data + text.size };
        if (!text.size || !text_next_line(&left, &line))
                return false;
        n = text_size(&line) < SAMPLE_COMM_SIZE ? text_size(&line) : SAMPLE_COMM_SIZE - 1;
        memcpy(ret, line.at, n);
        memset(ret + n, 0, SAMPLE_COMM_SIZE - n);
        return true;
}

bool process_read_cgroup(int proc_fd, struct cgroup_names *ret)
{
        _cleanup_buf_ struct buf text = { 0 };

        buf_init(&text, KiB(64));
        if (read_proc_file(proc_fd, "cgroup", &text, NULL))
                return false;
        cgroup_parse((const char *)text.data, text.size, ret);
        return true;
}

char *process_read_executable(int proc_fd)
{
        static const char deleted[] = " (deleted)";
        char path[LIMIT_PATH_BYTES];
        ssize_t n = readlinkat(proc_fd, "exe", path, sizeof path);

        if (n <= 0 || n == sizeof path || path[0] != '/')
                return NULL;
        if ((size_t)n > sizeof deleted - 1 && memcmp(path + n - (sizeof deleted - 1), deleted, sizeof deleted - 1) == 0)
                n -= sizeof deleted - 1;
        return strndup(path, (size_t)n);
}

bool process_read_identity(int proc_fd, uid_t *uid_ret, pid_t *ns_pid_ret)
{
        _cleanup_buf_ struct buf text = { 0 };
        struct text_line left, line, key;
        uint64_t uid = 0, number = 0;
        bool has_uid = false, has_pid = false;

        buf_init(&text, KiB(64));
        if (read_proc_file(proc_fd, "status", &text, NULL))
                return false;
        left = (struct text_line){ (const char *)text.data, (const char *)text.data + text.size };
        while (text.size && text_next_line(&left, &line)) {
                if (!text_field(&line, &key))
                        continue;
                if (text_size(&key) == 4 && memcmp(key.at, "Uid:", 4) == 0) { /* real, effective, ... */
                        text_skip_blanks(&line);
                        has_uid = text_number(&line, 10, &number);
                        text_skip_blanks(&line);
                        has_uid = has_uid && text_number(&line, 10, &uid);
                } else if (text_size(&key) == 6 && memcmp(key.at, "NSpid:", 6) == 0) { /* outermost first */
                        while (text_skip_blanks(&line), text_number(&line, 10, &number))
                                has_pid = true;
                        *ns_pid_ret = (pid_t)number;
                }
        }
        *uid_ret = (uid_t)uid;
        return has_uid && has_pid;
}
