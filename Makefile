# SPDX-License-Identifier: Apache-2.0
#
# make help       lists the targets
# O=DIR           build in DIR instead of build/
# DEBUG=1         build without optimisation
# SAN=LIST        build with sanitizers, such as SAN=address,undefined or SAN=thread
# CC=clang        use another compiler
# WERROR=1        treat warnings as errors (CI sets it)
# V=1             print the commands

VERSION := 0.1.0
O ?= build
CC = gcc
CXX = $(if $(findstring clang,$(CC)),clang++,g++)
LLVM_INCLUDE ?= /usr/lib/llvm-19/include
CLANG ?= clang
PROTOC_C ?= protoc-c
BPFTOOL ?= $(firstword $(wildcard /usr/sbin/bpftool /usr/bin/bpftool) bpftool)
PREFIX ?= /usr/local
DESTDIR ?=
ARCH := $(shell uname -m)
BPF_ARCH := $(if $(filter aarch64,$(ARCH)),arm64,x86)

MAKEFLAGS += --no-builtin-rules
ifneq ($(V),1)
Q := @
endif
.DELETE_ON_ERROR:
.SECONDARY:

# ---- flags ------------------------------------------------------------------

WARNINGS := -Wall -Wextra -Wshadow -Wvla -Wmissing-prototypes -Wstrict-prototypes -Wformat=2
CPPFLAGS += -D_GNU_SOURCE -DCAIRN_VERSION='"$(VERSION)"' -I. -I$(O)/gen -I$(O)/gen/proto
CFLAGS_ALL := -std=gnu17 $(WARNINGS) -g -fPIE -fvisibility=hidden -fno-omit-frame-pointer -pthread \
	-ffile-prefix-map=$(CURDIR)/=
LDFLAGS_ALL := -pie -pthread
ifeq ($(WERROR),1)
CFLAGS_ALL += -Werror
endif
ifneq ($(SAN),)
CFLAGS_ALL += -O1 -fsanitize=$(SAN) -fno-sanitize-recover=all
# The sanitizers add 400,000 relocations to a program without fixed addresses: a fifth of the time that it takes to start.
SAN_LINKER := $(if $(shell command -v ld.lld),-fuse-ld=lld -Xlinker --build-id=sha1)
LDFLAGS_ALL += -fsanitize=$(SAN) $(if $(findstring address,$(SAN)),-no-pie) $(SAN_LINKER)
else ifeq ($(DEBUG),1)
CFLAGS_ALL += -O0
else
CFLAGS_ALL += -O2 -fstack-protector-strong -D_FORTIFY_SOURCE=2
LDFLAGS_ALL += -Wl,-z,relro,-z,now
endif
CFLAGS_ALL += $(CFLAGS)
LDFLAGS_ALL += $(LDFLAGS)
BANNED := -include common/banned.h

# ---- modules: a folder is a library -----------------------------------------

MODULES := common storage sandbox http grpc archive elf-image dwarf debuginfod-client profile-formats unwind-tables disassembler relabel sampling sending agent source-bundle uploader \
	debuginfo-store package-trees symbol-index symbolizer parquet profile-store pipeline query server scrape cli
MODULES := $(foreach m,$(MODULES),$(if $(wildcard $(m)/*.c $(m)/*/*.c),$(m)))

# main.c is the entry point of a program and is not in the library.
lib_sources = $(filter-out %/main.c,$(wildcard $(1)/*.c $(1)/*/*.c $(1)/*/*/*.c))
lib_objects = $(patsubst %.c,$(O)/%.o,$(call lib_sources,$(1))) $(patsubst %.cc,$(O)/%.o,$(wildcard $(1)/*.cc))
lib = $(O)/lib/lib$(1).a

BPF_SKELETONS := $(patsubst bpf/%.bpf.c,$(O)/gen/bpf/%.skel.h,$(wildcard bpf/*.bpf.c))

PROTO_FILES := $(wildcard profile-formats/proto/*.proto)
PROTO_CODE := $(PROTO_FILES:%.proto=$(O)/gen/proto/%.pb-c)

SYSTEM_LIBS := -ldw -ldebuginfod -lelf -larchive -llmdb -lmicrohttpd -lnghttp2 -lgnutls -lcurl -lzstd -lz -ldeflate -llz4 -lsnappy -llzma -lxxhash -ljson-c \
	-liberty -lseccomp -lbpf -lprotobuf-c -lcap -lcrypto -lmd -lyaml -lexpat -lm
LIBS_cairn := common storage sandbox http grpc archive elf-image dwarf debuginfod-client profile-formats unwind-tables disassembler relabel sampling sending source-bundle debuginfo-store \
	package-trees symbol-index symbolizer parquet profile-store pipeline query server scrape cli
SYSTEM_cairn := $(SYSTEM_LIBS)
# Loaded by cairn when it calls them (cli/shared/lazy_libraries.h). libprotobuf-c has a variable, which needs linking.
ifneq ($(filter x86_64 aarch64,$(if $(SAN),,$(ARCH))),)
LAZY_cairn := -ldw -ldebuginfod -lelf -larchive -llmdb -lmicrohttpd -lnghttp2 -lgnutls -lcurl -llz4 -lsnappy -ljson-c -lbpf \
	-lcap -lcrypto -lyaml -lexpat
endif
LIBS_cairn-agent := common sandbox http elf-image dwarf debuginfod-client symbol-index symbolizer profile-formats unwind-tables uploader relabel sampling sending agent
SYSTEM_cairn-agent := -lseccomp -lbpf -ldebuginfod -liberty -lelf -llzma -lmicrohttpd -lgnutls -lcurl -lzstd -lz -ldeflate -lxxhash -lprotobuf-c -lcap -lcrypto -lyaml -lm
LIBS_cairn-upload := common sandbox http archive elf-image dwarf unwind-tables symbol-index symbolizer source-bundle uploader
SYSTEM_cairn-upload := -lseccomp -liberty -lelf -llzma -larchive -lcurl -lzstd -lz -ldeflate -lxxhash -lcrypto -lyaml -lm
# The replacements of other symbolizers: only what they use is linked.
LIBS_cairn-addr2line := common sandbox archive elf-image dwarf debuginfod-client unwind-tables symbol-index symbolizer cli
SYSTEM_cairn-addr2line := -lseccomp -liberty -lzstd -lz -ldeflate -llzma -lxxhash -lmd -lm
MAIN_cairn := cli/main.c
MAIN_cairn-addr2line := cli/drop-in/main.c
MAIN_cairn-agent := agent/main.c
MAIN_cairn-upload := uploader/main.c
PROGRAMS := $(foreach p,cairn cairn-addr2line cairn-agent cairn-upload,$(if $(wildcard $(MAIN_$(p))),$(p)))

UNIT_TESTS := $(patsubst %.c,$(O)/%,$(wildcard tests/unit/*/test_*.c tests/unit/*/*/test_*.c))
FUZZ_REPLAYS := $(patsubst %.c,$(O)/%,$(wildcard tests/fuzz/fuzz_*.c))
BENCHES := $(patsubst %.c,$(O)/%,$(wildcard tests/bench/bench_*.c tests/bench/load_*.c))

##@ Build
all: programs fuzz-replays ## build the programs, and the fuzz targets' replayers so that they keep compiling
programs: $(PROGRAMS:%=$(O)/%) ## build cairn, cairn-addr2line, cairn-agent and cairn-upload
modules: $(foreach m,$(MODULES),$(O)/lib/lib$(m).a)
fuzz-replays: $(FUZZ_REPLAYS)
tests-built: programs $(UNIT_TESTS) $(FUZZ_REPLAYS) $(O)/tests/oracle/die_facts

# ---- rules --------------------------------------------------------------------

$(O)/%.o: %.c | generated
	@mkdir -p $(@D)
	$(if $(Q),@echo "  CC     $<")
	$(Q)$(CC) $(CPPFLAGS) $(BANNED) $(CFLAGS_ALL) -MMD -MP -c $< -o $@

# Without sanitizers: a demangler that gives up leaves its frames by longjmp. Its operator delete and its hook of function
# entries are for itself alone: as global symbols they would be those of libsnappy and of every other library, too.
$(O)/symbol-index/demangle_llvm.o: symbol-index/demangle_llvm.cc
	@mkdir -p $(@D)
	$(if $(Q),@echo "  CXX    $<")
	$(Q)$(CXX) -std=c++17 -Wall -Wextra $(if $(filter 1,$(WERROR)),-Werror) -O2 -g -fPIE -fvisibility=hidden -fno-omit-frame-pointer \
		-ffile-prefix-map=$(CURDIR)/= -fno-exceptions -fno-rtti -finstrument-functions -I. -isystem $(LLVM_INCLUDE) \
		-MMD -MP -MT $@ -MF $(@:.o=.d) -c $< -o $@.tmp
	$(Q)objcopy --keep-global-symbol=llvm_demangle_name $@.tmp $@ && rm $@.tmp

$(O)/gen/bpf/%.bpf.o: bpf/%.bpf.c $(wildcard bpf/*.h unwind-tables/unwind_row.h unwind-tables/unwind_step.h)
	@mkdir -p $(@D)
	$(if $(Q),@echo "  BPF    $<")
	$(Q)$(CLANG) -target bpf -D__TARGET_ARCH_$(BPF_ARCH) -O2 -g -Wall -Wextra -I. -I/usr/include/$(ARCH)-linux-gnu \
		-c $< -o $@

$(O)/gen/bpf/%.skel.h: $(O)/gen/bpf/%.bpf.o
	$(Q)$(BPFTOOL) gen skeleton $< name $*_bpf > $@

# The scripts and styles of the web pages, in execution order: those shared by both pages, those of the service's page, and
# those of the offline page with one flame graph.
WEB_SCRIPTS_SHARED := dom theme units names deploys times selection selector_text search flame_layout change palette flame_canvas flame_keys \
	flame_menu flame_search flame table popover filters actions flame_view top_view sandwich diff_view
WEB_SCRIPTS_SERVICE := icons api sign_in notes completion recent query_builder time_picker chart series code_list disassembly compared_code record_table services_view changes_view trend_view source traces_view why debuginfo_view status_view app
WEB_SCRIPTS_OFFLINE := offline_api offline
WEB_STYLES := base shell flame sign_in source records
WEB_PARTS := $(addprefix $(O)/gen/web/,shared.js service.js offline.js style.css)

$(O)/gen/web/shared.js: $(WEB_SCRIPTS_SHARED:%=web/script/%.js)
$(O)/gen/web/service.js: $(WEB_SCRIPTS_SERVICE:%=web/script/%.js)
$(O)/gen/web/offline.js: $(WEB_SCRIPTS_OFFLINE:%=web/script/%.js)
$(O)/gen/web/style.css: $(WEB_STYLES:%=web/style/%.css)
$(WEB_PARTS): Makefile
	@mkdir -p $(@D)
# Comments are not sent, except the license, nor are empty lines; the first 'use strict' is that of the whole script.
	$(Q)cat $(filter web/%,$^) | sed -e '1!{/^ *\/\//d;/^\/\*.*\*\/$$/d;/^$$/d}' \
		-e "0,/^'use strict';$$/!{/^'use strict';$$/d}" > $@

$(O)/query/formats/assets.o: $(wildcard web/*.html) $(WEB_PARTS)
$(O)/query/formats/assets.o: CFLAGS_ALL += -Wa,-I$(O)/gen/web

# Code generated by protoc-gen-c: compiled without our warnings, part of the profile-formats library.
$(O)/gen/proto/%.pb-c.c $(O)/gen/proto/%.pb-c.h: %.proto
	@mkdir -p $(O)/gen/proto
	$(if $(Q),@echo "  PROTO  $<")
	$(Q)$(PROTOC_C) --c_out=$(O)/gen/proto $<

$(O)/gen/proto/%.pb-c.o: $(O)/gen/proto/%.pb-c.c $(O)/gen/proto/%.pb-c.h | generated
	$(if $(Q),@echo "  CC     $<")
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS_ALL) -w -c $< -o $@

generated: $(BPF_SKELETONS) $(PROTO_CODE:=.h)

define module_rule
$(call lib,$(1)): $(call lib_objects,$(1))
	@mkdir -p $$(@D)
	$(if $(Q),@echo "  AR     $$@")
	$(Q)rm -f $$@ && ar rcs $$@ $$^
endef
$(foreach m,$(MODULES),$(eval $(call module_rule,$(m))))
$(call lib,profile-formats): $(PROTO_CODE:=.o)

define program_rule
$(O)/$(1): $(O)/$(MAIN_$(1):.c=.o) $(foreach m,$(filter $(LIBS_$(1)),$(MODULES)),$(call lib,$(m)))
	$(if $(Q),@echo "  LINK   $$@")
	$(Q)$(CC) $(LDFLAGS_ALL) -o $$@ $$(filter %.o,$$^) -Wl,--start-group $$(filter %.a,$$^) -Wl,--end-group -Wl,--as-needed $(filter-out $(LAZY_$(1)),$(SYSTEM_$(1)))
endef
$(foreach p,$(PROGRAMS),$(eval $(call program_rule,$(p))))

# The functions that load a library, and a library that needs all of them, for dpkg-shlibdeps and ldd.
ifneq ($(LAZY_cairn),)
LAZY_USERS := $(O)/$(MAIN_cairn:.c=.o) $(foreach m,$(filter $(LIBS_cairn),$(MODULES)),$(call lib,$(m)))
$(O)/gen/lazy_libraries.S $(O)/gen/lazy_references.S: scripts/lazy-libraries.sh $(LAZY_USERS)
	@mkdir -p $(@D)
	$(Q)CC='$(CC)' $< $(if $(findstring references,$@),references,stubs) '$(LAZY_cairn)' $(LAZY_USERS) > $@
$(O)/gen/lazy_libraries.o: cli/shared/lazy_stub.inc
$(O)/gen/%.o: $(O)/gen/%.S
	$(Q)$(CC) $(CPPFLAGS) -g -c $< -o $@
$(O)/lib/lazy_references.so: $(O)/gen/lazy_references.o
	$(Q)$(CC) -shared -o $@ $< -Wl,-z,defs -Wl,--no-as-needed $(LAZY_cairn) -lc
$(O)/cairn: $(O)/gen/lazy_libraries.o | $(O)/lib/lazy_references.so
endif

ALL_LIBS := $(foreach m,$(MODULES),$(call lib,$(m)))
link_test = $(CC) $(LDFLAGS_ALL) -o $@ $(filter %.o,$^) -Wl,--start-group $(filter %.a,$^) -Wl,--end-group \
	-Wl,--as-needed $(SYSTEM_LIBS)

TEST_SUPPORT := $(patsubst %.c,$(O)/%.o,$(wildcard tests/support/*.c))

# The code with threads is below the service and the commands, so the thread sanitizer's build contains only these libraries.
THREAD_TESTS := $(foreach t,$(UNIT_TESTS),$(if $(findstring /test_threads_,$(t)),$(t)))
LOWER_LIBS := $(filter-out $(foreach m,pipeline server cli,$(call lib,$(m))),$(ALL_LIBS))
$(THREAD_TESTS): $(LOWER_LIBS)
$(filter-out $(THREAD_TESTS),$(UNIT_TESTS)): $(ALL_LIBS)
$(UNIT_TESTS): $(O)/tests/unit/%: $(O)/tests/unit/%.o $(TEST_SUPPORT)
	$(if $(Q),@echo "  LINK   $@")
	$(Q)$(link_test) -Wl,--no-as-needed -lcheck -lsubunit -lrt -lm

# Only these tests are linked with the wrappers of C library calls.
FAULTS := $(patsubst %.c,$(O)/%.o,$(filter-out tests/faults/fault_clock.c,$(wildcard tests/faults/*.c))) # fault_clock.c is preloaded
$(foreach t,$(UNIT_TESTS),$(if $(findstring /test_faults_,$(t))$(findstring /test_compaction_hour,$(t)),$(t))): $(FAULTS)

# These tests start the program itself as their worker.
$(O)/tests/unit/sandbox/test_hostile $(O)/tests/unit/sandbox/test_hostile_packed: | $(O)/cairn
$(O)/tests/unit/sampling/test_agent_unwind $(O)/tests/unit/agent/test_agent_uploads $(O)/tests/unit/agent/test_threads_agent_uploads: | $(O)/cairn-agent

$(FUZZ_REPLAYS): $(O)/tests/fuzz/%: $(O)/tests/fuzz/%.o $(O)/tests/fuzz/driver.o $(ALL_LIBS)
	$(if $(Q),@echo "  LINK   $@")
	$(Q)$(link_test)

$(O)/tests/fuzz/fuzz_minidebuginfo $(O)/fuzzer/minidebuginfo: $(O)/tests/support/elf_maker.o
$(O)/tests/fuzz/fuzz_proto_oracle $(O)/fuzzer/proto_oracle: $(O)/tests/support/proto_oracle.o $(O)/tests/support/profile_text.o

# The reference of tests/oracle links none of our code.
$(O)/tests/oracle/die_facts: $(O)/tests/oracle/die_facts.o
	$(if $(Q),@echo "  LINK   $@")
	$(Q)$(CC) $(LDFLAGS_ALL) -o $@ $< -ldw -lelf

# Functions of BPF programs, on a process that is stepped.
$(O)/tests/e2e/agent/java-steps: $(O)/tests/e2e/agent/java-steps.o $(ALL_LIBS)
	$(if $(Q),@echo "  LINK   $@")
	$(Q)$(link_test)

# check-kernels runs this in each kernel.
$(O)/tests/kernels/bpf_facts: $(O)/tests/kernels/bpf_facts.o
	$(if $(Q),@echo "  LINK   $@")
	$(Q)$(CC) $(LDFLAGS_ALL) -o $@ $< -lbpf

# A fuzz target linked with libFuzzer; scripts/fuzz.sh passes the compiler and flags.
$(O)/fuzzer/%: $(O)/tests/fuzz/fuzz_%.o $(ALL_LIBS)
	@mkdir -p $(@D)
	$(if $(Q),@echo "  LINK   $@")
	$(Q)$(link_test) -fsanitize=fuzzer

$(BENCHES): $(O)/tests/bench/%: $(O)/tests/bench/%.o $(TEST_SUPPORT) $(ALL_LIBS)
	$(if $(Q),@echo "  LINK   $@")
	$(Q)$(link_test) -Wl,--no-as-needed -lcheck -lsubunit -lrt -lm

# Counts of instructions depend on neither keys of hash tables nor ids: random bytes are the same in each run.
$(O)/tests/ratchet/ratchet: $(patsubst %.c,$(O)/%.o,$(wildcard tests/ratchet/*.c)) $(TEST_SUPPORT) $(ALL_LIBS)
	$(if $(Q),@echo "  LINK   $@")
	$(Q)$(link_test) -Wl,--wrap=getrandom -Wl,--no-as-needed -lcheck -lsubunit -lrt -lm

# Not below folders of checks, which hold whole root file systems.
-include $(shell find $(addprefix $(O)/,$(MODULES) gen tests) -name '*.d' -type f 2>/dev/null)

# ---- tests --------------------------------------------------------------------

# Confinement forbids system calls that a sanitizer needs, so the test of confinement is also run without one; instructions
# are counted without one. The build
# with clang is only for its warnings, which need no optimisation.
PLAIN_TESTS := tests/unit/sandbox/test_confined tests/ratchet/ratchet tests/e2e/agent/java-steps

JOBS ?= $(shell nproc)
TESTS ?=

##@ Test
check: ## build with sanitizers and with clang, and run every test (TESTS="tests/e2e/query/query.t" for some)
	$(Q)$(MAKE) --no-print-directory O=build/san SAN=address,undefined -j$(JOBS) tests-built
	$(Q)$(MAKE) --no-print-directory O=build -j$(JOBS) programs $(PLAIN_TESTS:%=build/%)
	$(Q)$(MAKE) --no-print-directory O=build/tsan SAN=thread -j$(JOBS) tsan-built
	$(Q)$(MAKE) --no-print-directory O=build/clang CC=clang DEBUG=1 -j$(JOBS) programs
	$(Q)CAIRN_BUILD=$(CURDIR)/build CAIRN_SAN=$(CURDIR)/build/san CAIRN_TSAN=$(CURDIR)/build/tsan \
		tests/run $(TESTS)

check-fast: ## build with sanitizers, and run the unit tests and some end-to-end tests (two minutes once built)
	$(Q)$(MAKE) --no-print-directory O=build/san SAN=address,undefined -j$(JOBS) \
		$(patsubst $(O)/%,build/san/%,$(filter-out $(THREAD_TESTS),$(UNIT_TESTS))) $(PROGRAMS:%=build/san/%)
	$(Q)CAIRN_BUILD=$(CURDIR)/build/san CAIRN_SAN=$(CURDIR)/build/san tests/run --fast

check-gate: ## measure false alarms and power of `cairn gate` by 200 simulated services each (minutes)
	$(Q)$(MAKE) --no-print-directory -j$(JOBS) $(O)/tests/unit/query/test_gate
	$(Q)CAIRN_GATE_SEEDS=200 CK_TIMEOUT_MULTIPLIER=30 $(O)/tests/unit/query/test_gate

check-changes: ## measure precision and recall of `cairn query --changes` by 200 simulated services (minutes)
	$(Q)$(MAKE) --no-print-directory -j$(JOBS) $(O)/tests/unit/query/test_changes
	$(Q)CAIRN_CHANGE_SEEDS=200 CK_TIMEOUT_MULTIPLIER=30 $(O)/tests/unit/query/test_changes

check-unit: ## run only the unit tests and the fuzz corpora, with the sanitizers
	$(Q)$(MAKE) --no-print-directory O=build/san SAN=address,undefined -j$(JOBS) $(patsubst $(O)/%,build/san/%,$(UNIT_TESTS) $(FUZZ_REPLAYS))
	$(Q)$(MAKE) --no-print-directory O=build -j$(JOBS) $(PLAIN_TESTS:%=build/%)
	$(Q)CAIRN_BUILD=$(CURDIR)/build CAIRN_SAN=$(CURDIR)/build/san CAIRN_TSAN=$(CURDIR)/build/tsan tests/run --unit $(TESTS)

# The tests of code with threads, also run under the thread sanitizer.
tsan-built: $(THREAD_TESTS)

.PHONY: all programs modules fuzz-replays tests-built generated check check-changes check-fast check-gate check-unit tsan-built

include scripts/targets.mk
