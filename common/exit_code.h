/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_COMMON_EXIT_CODE_H
#define CAIRN_COMMON_EXIT_CODE_H

/** @file Exit codes of every program (EXIT STATUS in the manual pages), workers included. */

enum exit_code { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_BAD_DATA = 2, EXIT_USAGE = 64 };

#endif
