/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_TESTS_FAULTS_FAULT_LOOP_H
#define CAIRN_TESTS_FAULTS_FAULT_LOOP_H

/*
 * Runs a scenario with a fault at its first step, at its second, and so on,
 * until it ends unharmed, and looks each time at what is left.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

struct scenario {
        /** Open what lies in dir, as a service does when it starts. */
        enum status (*open)(const char *dir, struct error *err);
        /** Do all that was not promised yet, until the first failure. Each thing acknowledged is a promise(). */
        enum status (*go_on)(struct error *err);
        /** As a service ends; also when open() failed. */
        void (*close)(void);
        /** Open dir, compare what is there with what was promised (bits), close. Fails the test; says how by ck_assert.
         */
        void (*check)(const char *dir, uint32_t promised);
        uint32_t all; /* promises, when it ended well */
};

/** What the state that is looked at comes from: for the messages of failed assertions. */
const char *fault_about(void);
#define must(condition, format, ...) ck_assert_msg(condition, "%s: " format, fault_about(), ##__VA_ARGS__)

void promise(unsigned number);
bool is_promised(unsigned number);
/** Take the steps that are not promised yet, each then a promise, until the first failure. @param order NULL: 0, 1, ...
 */
enum status take_open_steps(const unsigned *order, unsigned count,
                            enum status (*take)(unsigned number, struct error *err), struct error *err);

/** Killed at each step; then what was promised is there, and the rest goes on. */
void fault_loop_kills(const struct scenario *s);
/** Each step fails once, with EIO; what fails says so, and goes on at once or after a restart. */
void fault_loop_errors(const struct scenario *s);
/** The disk is full from each step on, until there is room again. Each failure names a file and says what to do. */
void fault_loop_full_disk(const struct scenario *s);
/** Each write is interrupted or short; nobody notices. */
void fault_loop_interrupts(const struct scenario *s);
/** The power is cut after each change. */
void fault_loop_power_cuts(const struct scenario *s);
/** The power is cut while a scenario goes on that was killed before, or that had a failing step. */
void fault_loop_late_power_cuts(const struct scenario *s);

#endif
