/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_TESTS_FAULTS_FAULT_FS_H
#define CAIRN_TESTS_FAULTS_FAULT_FS_H

/*
 * Fault injection for calls that modify files: open with O_CREAT or O_TMPFILE, mkostemp, write, pwrite, writev,
 * ftruncate, fsync, fdatasync, syncfs, rename, link, unlink, mkdir, rmdir, remove. Functions of these names
 * (fault_calls.c) interpose those of the C library, also for shared libraries (LMDB).
 *
 * Linked into a test, it is inactive until one of the functions below is called. Then calls on files below the watched
 * directory are steps, numbered from 1. A write is two steps: before it and half-way through it. Syncs are not passed
 * to the kernel, since no test cuts the power of the machine itself.
 *
 * Loaded into a program (LD_PRELOAD; tests/e2e/store/disk-full.t), it is controlled by the environment. While the file
 * FAULT_FS_FULL exists, the disk under FAULT_FS_DIR is full. While the file FAULT_FS_READ_ONLY exists, that file system
 * is read-only: all modifications fail with EROFS, also on open files, as after the kernel remounted it read-only
 * because of an error. While FAULT_FS_BAD_SYNC exists, syncs there fail with EIO. A FAULT_FS_FULL or FAULT_FS_BAD_SYNC
 * that is not empty affects only paths that contain its text. While FAULT_FS_HANG exists, statvfs() of a path there
 * does not return.
 *
 * Threads: any.
 */
#include <stdbool.h>
#include <stdint.h>

/** Set the watched directory. No faults are injected yet. */
void fault_fs_watch(const char *dir);

/** Stop injecting faults; the step count is kept. */
void fault_fs_off(void);
/** Only count steps. */
void fault_fs_count(void);
/** Raise SIGKILL at this step. */
void fault_fs_kill_at(unsigned step);
/**
 * Fail once at this step with this errno; a fault half-way through a write causes a short write first. EINTR: no data
 * is lost.
 */
void fault_fs_fail_at(unsigned step, int os_errno);
/** From this step on, operations that need space fail with ENOSPC, until fault_fs_off(). */
void fault_fs_full_at(unsigned step);
/**
 * In addition, log all modifications to log_fd (fault_log.h), which may contain the log of an earlier process; -1
 * stops.
 */
void fault_fs_record(int log_fd);
/** Log a mark: step `number` is acknowledged. */
void fault_fs_mark(uint32_t number);

unsigned fault_fs_steps(void);
/** "write of /x/y": location of the last fault; "" if none. */
const char *fault_fs_where(void);

#endif
