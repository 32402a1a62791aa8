/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_TESTS_FAULTS_FAULT_FS_H
#define CAIRN_TESTS_FAULTS_FAULT_FS_H

/*
 * The calls with which a program changes files, under test: open with O_CREAT
 * or O_TMPFILE, mkostemp, write, pwrite, writev, ftruncate, fsync, fdatasync,
 * syncfs, rename, link, unlink, mkdir, rmdir, remove. Functions of these names
 * (fault_calls.c) stand before the C library's, for shared libraries (LMDB) too.
 *
 * Linked into a test it does nothing until one of the functions below is
 * called; then calls on what lies under the watched directory are steps,
 * numbered from 1. A write is two steps: before it, and half-way. Syncs are not
 * passed on to the kernel: nothing here cuts the power of the machine itself.
 *
 * Loaded into a program (LD_PRELOAD; tests/e2e/disk-full.t) it obeys the
 * environment: while the file FAULT_FS_FULL exists, the disk under
 * FAULT_FS_DIR is full; if it is not empty, only where paths contain its text.
 * While the file FAULT_FS_READ_ONLY exists, that disk is read-only: all that
 * changes something fails with EROFS, also on files that are open, as on a file
 * system that the kernel made so after an error. While FAULT_FS_BAD_SYNC exists,
 * syncs there fail with EIO; if it is not empty, only where paths contain its
 * text. While FAULT_FS_HANG exists, statvfs() of a path there does not return.
 *
 * Threads: any.
 */
#include <stdbool.h>
#include <stdint.h>

/** What is watched from now on: dir and what is below. Nothing happens to it yet. */
void fault_fs_watch(const char *dir);

/** Back to doing nothing; the count of steps stays. */
void fault_fs_off(void);
/** Only count. */
void fault_fs_count(void);
/** Die of SIGKILL at this step. */
void fault_fs_kill_at(unsigned step);
/** The step fails once with this errno, and half-way into a write it is short first. EINTR: nothing is lost by it. */
void fault_fs_fail_at(unsigned step, int os_errno);
/** From this step on, whatever needs room fails with ENOSPC, until fault_fs_off(). */
void fault_fs_full_at(unsigned step);
/** Besides, write all that changes to log_fd (fault_log.h), which may go on with an earlier process's log; -1 no more.
 */
void fault_fs_record(int log_fd);
/** Into the log: what has just been promised. */
void fault_fs_mark(uint32_t number);

unsigned fault_fs_steps(void);
/** "write of /x/y": where the last fault happened; "" nowhere yet. */
const char *fault_fs_where(void);

#endif
