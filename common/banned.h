/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_COMMON_BANNED_H
#define CAIRN_COMMON_BANNED_H

/*
 * Banned calls without a safe use; the build includes this header before every source file. Use snprintf, buf_printf,
 * memcpy with a known size, strtoull through common/config/options.h, gmtime_r.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#undef strcpy
#define strcpy(...) banned_call_strcpy
#undef strcat
#define strcat(...) banned_call_strcat
#undef strncat
#define strncat(...) banned_call_strncat
#undef sprintf
#define sprintf(...) banned_call_sprintf
#undef vsprintf
#define vsprintf(...) banned_call_vsprintf
#undef gets
#define gets(...) banned_call_gets
#undef strtok
#define strtok(...) banned_call_strtok
#undef atoi
#define atoi(...) banned_call_atoi
#undef atol
#define atol(...) banned_call_atol
#undef gmtime
#define gmtime(...) banned_call_gmtime
#undef localtime
#define localtime(...) banned_call_localtime
#undef asctime
#define asctime(...) banned_call_asctime
#undef ctime
#define ctime(...) banned_call_ctime

#endif
