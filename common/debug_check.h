/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_COMMON_DEBUG_CHECK_H
#define CAIRN_COMMON_DEBUG_CHECK_H

/**
 * @file
 * DEBUG_CHECKS is 1 in debug builds (make DEBUG=1) and under a sanitizer. It guards checks of whole data structures,
 * which are too expensive for production; plain assert() is always enabled. Only internal data is checked, never input.
 */
#if !defined(__OPTIMIZE__) || defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define DEBUG_CHECKS 1
#else
#define DEBUG_CHECKS 0
#endif

#endif
