/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_TESTS_SUPPORT_TEMPORARY_DIR_H
#define CAIRN_TESTS_SUPPORT_TEMPORARY_DIR_H

/* A directory of one test, which removes it at its end. Failures of either call fail the test. */
#define TEMPORARY_DIR_BYTES 32

/**
 * Create an empty directory that only this user can read.
 * @param ret its path, /tmp/cairn-NAME-*; NAME has at most 13 bytes.
 */
void temporary_dir_create(char ret[TEMPORARY_DIR_BYTES], const char *name);

/** Remove the directory and everything below it. */
void temporary_dir_remove(const char *dir);

#endif
