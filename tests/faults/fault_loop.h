/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_TESTS_FAULTS_FAULT_LOOP_H
#define CAIRN_TESTS_FAULTS_FAULT_LOOP_H

/*
 * Runs a scenario with a fault at its first step, at its second, and so on, until it completes without a fault, and
 * checks the resulting state each time.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

struct scenario {
        /** Open dir, as a service does at startup. */
        enum status (*open)(const char *dir, struct error *err);
        /**
         * Execute all steps that are not acknowledged, until the first failure. Calls acknowledge_step() after each.
         */
        enum status (*resume)(struct error *err);
        /** Close, like a service that exits; also called if open() failed. */
        void (*close)(void);
        /** Open dir, compare its content with the acknowledged steps (bits), close. Fails the test with ck_assert. */
        void (*check)(const char *dir, uint32_t acknowledged);
        uint32_t all; /* all steps, acknowledged on completion */
};

/** How the checked state was created, for messages of failed assertions. */
const char *fault_about(void);
#define must(condition, format, ...) ck_assert_msg(condition, "%s: " format, fault_about(), ##__VA_ARGS__)

void acknowledge_step(unsigned number);
bool is_acknowledged(unsigned number);
/**
 * Execute the steps that are not acknowledged, and acknowledge each, until the first failure.
 * @param order NULL: 0, 1, ...
 */
enum status run_remaining_steps(const unsigned *order, unsigned count,
                                enum status (*take)(unsigned number, struct error *err), struct error *err);

/** Killed at each step; then everything acknowledged must be there, and the remaining steps must succeed. */
void fault_loop_kills(const struct scenario *s);
/**
 * Each step fails once, with EIO; the failing call must report it, and the scenario must resume at once or after a
 * restart.
 */
void fault_loop_errors(const struct scenario *s);
/** The disk is full from each step on, until space is freed. Each failure must name a file and a remedy. */
void fault_loop_full_disk(const struct scenario *s);
/** Each write is interrupted or short, without visible effect. */
void fault_loop_interrupts(const struct scenario *s);
/** The power is cut after each change. */
void fault_loop_power_cuts(const struct scenario *s);
/** The power is cut while a scenario resumes after it was killed, or while it has a failing step. */
void fault_loop_late_power_cuts(const struct scenario *s);

#endif
