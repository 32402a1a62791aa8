/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SANDBOX_SANITIZERS_H
#define CAIRN_SANDBOX_SANITIZERS_H

/*
 * Sanitizers reserve terabytes of address space and read /proc at exit, so a
 * worker built with one has no limit on address space, a looser filter and no
 * Landlock.
 */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define BUILT_WITH_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define BUILT_WITH_SANITIZER 1
#endif
#endif
#ifndef BUILT_WITH_SANITIZER
#define BUILT_WITH_SANITIZER 0
#endif

#endif
