/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_COMMON_TEXT_JAVA_CLASS_H
#define CAIRN_COMMON_TEXT_JAVA_CLASS_H

#include <stddef.h>

/**
 * Size of the part of a Java class's name that is the same in all runs: numbers and addresses that the JVM gives to
 * hidden and generated classes follow it.
 */
size_t java_class_stable_size(const char *text, size_t size);

#endif
