/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_CLI_SHARED_LAZY_LIBRARIES_H
#define CAIRN_CLI_SHARED_LAZY_LIBRARIES_H

/**
 * @file
 * The shared libraries that cairn does not name as needed, and that bring some fifty others: for HTTP, TLS, databases
 * and archives. Loading them takes longer than resolving an address of a file, which needs none of them. The
 * program contains a function by the name of each function of theirs that it uses (scripts/lazy-libraries.sh), which
 * loads the library at the first call. Builds with a sanitizer, and those for other processors than x86-64 and
 * aarch64, are linked with the libraries, and the function below does nothing.
 *
 * Rejected: a second program for the service, since it would have another name in profiles and process lists; dlsym()
 * in each file that uses such a library, since headers and compilers would not check the calls.
 *
 * Threads: one, before others exist.
 */
#include "common/error.h"

/**
 * Load all of them, and make the pointers to their functions read-only: for commands other than symbolize, so that a
 * library that cannot be loaded is reported at the start; and for workers, which cannot open files once confined.
 * @return ST_OS for a library that cannot be loaded or lacks a function.
 */
enum status lazy_libraries_load(struct error *err) MUST_CHECK;

#endif
