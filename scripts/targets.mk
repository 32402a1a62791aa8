# SPDX-License-Identifier: Apache-2.0
# Targets for everything except building and testing.

include scripts/demo/demo.mk

##@ Run
SECONDS ?=
DEMO ?= 1
PORT ?= 7700
DATA ?= cairn-data
run: programs $(if $(filter-out 0,$(DEMO)),demo) ## profile this machine (SECONDS=30 stops by itself, DEMO=0, PORT=7700, DATA=DIR)
	$(Q)RUN_SECONDS='$(SECONDS)' RUN_DEMO='$(DEMO)' RUN_PORT='$(PORT)' RUN_DATA='$(DATA)' scripts/quickstart.sh

deps: ## install the Debian packages needed to build, run, test and work on the code
	$(Q)scripts/deps.sh dev

##@ Measure, and compare with other programs
bench: ## run the benchmarks, compare with other programs and print the ratios (BENCH=name for one)
	$(Q)$(MAKE) --no-print-directory -j$(JOBS) programs bench-built
	$(Q)tests/bench/run $(BENCH)

bench-built: $(BENCHES)

HOSTS ?= 1000
NODES ?= 3
ARGS ?=
simulate: ## predict the nodes, CPU time, requests and bytes of a fleet (HOSTS=100000, NODES=3, ARGS="--interval 60 --gateways 8 --json --help")
	$(Q)tests/bench/simulate.py --hosts '$(HOSTS)' --nodes '$(NODES)' $(ARGS)

UPDATE ?=
bench-ratchet: ## count the instructions of representative paths and compare them with tests/ratchet/counts.txt (BENCH="lookup sum" for some, UPDATE=1 writes the file)
	$(Q)$(MAKE) --no-print-directory -j$(JOBS) $(O)/tests/ratchet/ratchet
	$(Q)CAIRN_BUILD=$(abspath $(O)) tests/ratchet/run $(if $(UPDATE),--update) $(BENCH)

# The kernel with DWARF is FILES="DIR/vmlinux" or the installed one; without either, it is downloaded into build/ (280 MB).
INPUT ?=
FAST ?=
DOC ?=
check-oracle: ## compare our symbols with those of other symbolizers and classify the differences (INPUT="libc go", FAST=1, FILES="a vmlinux", DOC=docs/accuracy.md; downloads a kernel if there is none)
	$(Q)$(MAKE) --no-print-directory -j$(JOBS) programs $(O)/tests/oracle/die_facts $(O)/tests/unit/dwarf/test_dwarf_oracle \
		$(O)/tests/unit/elf-image/test_elf_oracle
	$(Q)CAIRN_BUILD=$(abspath $(O)) INPUT='$(INPUT)' FAST='$(FAST)' DOC='$(DOC)' tests/oracle/run $(FILES)
	$(Q)[ -n '$(INPUT)' ] || CAIRN_BUILD=$(abspath $(O)) tests/oracle/against-libdw $(FILES)

PEER_SUITES ?=
check-suites: ## run the own tests of llvm-symbolizer, GNU addr2line and eu-addr2line, from Debian's source packages, with our replacements, and the scripts of the kernel and pprof, which start them (PEER_SUITES="llvm binutils elfutils kernel pprof"; downloads 350 MB)
	$(Q)$(MAKE) --no-print-directory -j$(JOBS) programs
	$(Q)CAIRN_BUILD=$(abspath $(O)) tests/suites/run $(PEER_SUITES)

check-boundaries: ## name functions of installed files without their debug files, and compare the starts with their symbol tables (FILES="a library")
	$(Q)$(MAKE) --no-print-directory -j$(JOBS) programs
	$(Q)python3 tests/oracle/boundaries.py $(abspath $(O))/cairn $(FILES)

REAL ?=
KERNELS ?=
KVM ?=
check-kernels: ## boot kernels 5.15, 6.1 and 6.12 in qemu, load the BPF program and profile in them (KERNELS="a package", FILES="a vmlinuz", KVM=1)
	$(Q)$(MAKE) --no-print-directory -j$(JOBS) programs $(O)/tests/kernels/bpf_facts
	$(Q)CAIRN_BUILD=$(abspath $(O)) KERNELS='$(KERNELS)' KVM='$(KVM)' tests/kernels/run $(FILES)

check-unwind: ## compare the unwind tables of every installed program and library with libdw's CFI, row by row
	$(Q)$(MAKE) --no-print-directory -j$(JOBS) programs $(O)/tests/unit/unwind-tables/test_unwind_libdw
	$(Q)CAIRN_BUILD=$(abspath $(O)) CAIRN_SAN=$(abspath $(O)) CAIRN_UNWIND_ALL=1 sh tests/e2e/agent/unwind-tables.t

check-arm64: ## compare the unwind tables of aarch64 files with libdw's CFI, row by row, on any processor (FILES="more files")
	$(Q)$(MAKE) --no-print-directory -j$(JOBS) $(O)/tests/unit/unwind-tables/test_unwind_libdw
	$(Q)CAIRN_BUILD=$(abspath $(O)) tests/arm64/run $(FILES)

check-real: ## profile programs of Debian under load: check for complete stacks, and compare hot functions with perf's (REAL="redis git", SAMPLES=10000)
	$(Q)$(MAKE) --no-print-directory -j$(JOBS) programs
	$(Q)CAIRN_BUILD=$(abspath $(O)) tests/real/run $(REAL)

RUNS ?=
SEEDS ?=
check-regression: ## build bzip2 of Debian twice, once with a slower function, profile both, and find it with the gate, the changes and the comparison; then measure false alarms and power of the gate on recorded runs (RUNS=12, SEEDS=200; downloads 10 MB; root, 4 minutes)
	$(Q)$(MAKE) --no-print-directory -j$(JOBS) programs
	$(Q)CAIRN_BUILD=$(abspath $(O)) RUNS='$(RUNS)' SEEDS='$(SEEDS)' tests/regression/run

GO ?= go
check-pgo: ## use exported profiles with go build -pgo, and compare go tool pprof with our filters (GO="go 1.21 or later")
	$(Q)$(MAKE) --no-print-directory -j$(JOBS) programs
	$(Q)CAIRN_BUILD=$(abspath $(O)) GO='$(GO)' tests/pgo/run

CLIENTS ?=
check-clients: ## send with clients of other projects, installed from their registries (CLIENTS="push go", GO="go 1.25 or later")
	$(Q)$(MAKE) --no-print-directory -j$(JOBS) programs
	$(Q)CAIRN_BUILD=$(abspath $(O)) GO='$(GO)' tests/clients/run $(CLIENTS)

check-collector: ## build an OpenTelemetry Collector and forward profiles through it over gRPC (GO="go 1.26 or later")
	$(Q)$(MAKE) --no-print-directory -j$(JOBS) programs
	$(Q)CAIRN_BUILD=$(abspath $(O)) GO='$(GO)' tests/collector/run

check-kafka: ## forward profiles of collectors and the agent through Kafka (installs both; GO="go 1.26 or later", MVN, java)
	$(Q)$(MAKE) --no-print-directory -j$(JOBS) programs
	$(Q)CAIRN_BUILD=$(abspath $(O)) GO='$(GO)' tests/collector/run-kafka

FRESH ?=
check-fresh: ## run the README's two commands on a minimal Debian 12 made by debootstrap (FRESH="test run user", TESTS="tests/e2e/query/query.t"; root, an hour)
	$(Q)FRESH_ONLY='$(FRESH)' FRESH_TESTS='$(TESTS)' scripts/check-fresh.sh

SUITES ?=
check-packages: ## build the Debian packages on minimal Debian 12 and 13; install, profile, upload, back up, upgrade and purge under systemd (SUITES=bookworm; root, half an hour)
	$(Q)tests/packages/run $(SUITES)

# With SAN=thread, the whole service is built in build/tsan, otherwise in build/san.
SOAK_SECONDS ?= 60
comma := ,
SOAK_BUILD = build/$(if $(filter thread,$(SAN)),tsan,san)
check-soak: ## drive the service, built with sanitizers, with honest and hostile clients (SOAK_SECONDS=1800, SAN=thread)
	$(Q)$(MAKE) --no-print-directory O=$(SOAK_BUILD) SAN=$(if $(SAN),$(SAN),address$(comma)undefined) -j$(JOBS) $(SOAK_BUILD)/cairn
	$(Q)python3 tests/soak/soak.py $(SOAK_BUILD)/cairn $(SOAK_SECONDS)

READERS ?=
check-alerts: ## check deploy/prometheus with promtool (extracted from Debian's package of Prometheus if it is not installed)
	$(Q)scripts/check-alerts.sh $(abspath $(O))

check-interop: ## read a store, in files and over S3, with DuckDB, pyarrow, delta-rs, Polars, DataFusion, chdb, hyparquet and Spark after ingest, schema evolution, re-symbolization, compaction and retention, compare sums with those of cairn, and ask DuckDB, chdb and Spark the questions of deploy/sql (READERS="polars"; installs them)
	$(Q)$(MAKE) --no-print-directory -j$(JOBS) programs
	$(Q)CAIRN_BUILD=$(abspath $(O)) tests/interop/run $(READERS)
	$(Q)CAIRN_BUILD=$(abspath $(O)) STORE=s3 tests/interop/run $(READERS)
	$(Q)CAIRN_BUILD=$(abspath $(O)) tests/interop/parse-trino

SPARK_MASTER ?= local-cluster[2,1,1024]
check-spark: ## run the jobs of deploy/spark on two executors over the tables of two nodes in moto, and compare names with those of cairn resymbolize on one machine, sums with those of cairn top (SPARK_MASTER="local[2]"; installs Spark; Java 17)
	$(Q)$(MAKE) --no-print-directory -j$(JOBS) programs
	$(Q)CAIRN_BUILD=$(abspath $(O)) SPARK_MASTER='$(SPARK_MASTER)' tests/interop/spark-jobs

STORE_TESTS ?=
check-store: ## run the tests of object storage with versitygw, 50 ms for each request (installs it; GO="go 1.25 or later", STORE_TESTS="tests/e2e/store/object-storage.t"; half an hour)
	$(Q)$(MAKE) --no-print-directory -j$(JOBS) programs
	$(Q)$(MAKE) --no-print-directory O=build/san SAN=address,undefined -j$(JOBS) build/san/cairn build/san/cairn-agent build/san/cairn-upload
	$(Q)CAIRN_BUILD=$(abspath $(O)) CAIRN_SAN=$(CURDIR)/build/san GO='$(GO)' tests/store/run $(STORE_TESTS)

CLUSTER_SECONDS ?= 60
CLUSTER_SEED ?= 1
check-cluster: ## run three services, HAProxy and versitygw in network namespaces, kill, pause and part them, fill their disks, and check that every acknowledged sample counts once (CLUSTER_SECONDS=1800, CLUSTER_SEED=2, GO="go 1.25 or later"; root)
	$(Q)$(MAKE) --no-print-directory -j$(JOBS) programs
	$(Q)CAIRN_BUILD=$(abspath $(O)) GO='$(GO)' CLUSTER_SECONDS=$(CLUSTER_SECONDS) CLUSTER_SEED=$(CLUSTER_SEED) tests/cluster/run

READ_SECONDS ?= 30
check-readers: ## read a service over S3 with DuckDB, delta-rs and pyarrow in a loop while it flushes, compacts and re-symbolizes (READ_SECONDS=600; installs them)
	$(Q)$(MAKE) --no-print-directory -j$(JOBS) programs
	$(Q)CAIRN_BUILD=$(abspath $(O)) READ_SECONDS=$(READ_SECONDS) tests/interop/readers

check-kubernetes: ## build deploy/kubernetes with kustomize and validate it with kubeconform against the JSON schemas of Kubernetes (installs them; GO="go 1.24 or later")
	$(Q)CAIRN_BUILD=$(abspath $(O)) GO='$(GO)' tests/kubernetes/run

check-image: ## build the container image with buildah on a debian:12 made by debootstrap, and run its service and agent with the same privileges as in Kubernetes (root, 5 minutes)
	$(Q)$(MAKE) --no-print-directory -j$(JOBS) programs $(O)/tests/unit/sandbox/test_worker
	$(Q)CAIRN_BUILD=$(abspath $(O)) tests/image/run

##@ Work on the code
FUZZ_SECONDS ?= 60
fuzz: ## run each fuzz target for FUZZ_SECONDS (default 60) under libFuzzer (FUZZ=name for one)
	$(Q)FUZZ_SECONDS=$(FUZZ_SECONDS) scripts/fuzz.sh $(FUZZ)

screenshot: programs ## render the README's picture in headless Chromium
	$(Q)CAIRN_BUILD=$(abspath $(O)) scripts/screenshot.sh

C_FILES = $(shell git ls-files '*.c' '*.h')
format: ## run clang-format over the files changed against HEAD
	$(Q)git diff --name-only --diff-filter=d HEAD -- '*.c' '*.h' | xargs -r clang-format -i

# Builds in build/cov without optimisation: a line merged with another by the compiler would be counted for both.
coverage: ## measure which lines and branches the tests execute, in build/coverage/index.html (TESTS="tests/e2e/query/query.t" for some; an hour)
	$(Q)$(MAKE) --no-print-directory O=build/cov DEBUG=1 CFLAGS='$(CFLAGS) --coverage' LDFLAGS='$(LDFLAGS) --coverage' -j$(JOBS) tests-built
	$(Q)JOBS=$(JOBS) scripts/coverage.sh $(TESTS)

# For clangd and clang-tidy: the command that compiles each C file, without sanitizer options.
compile_commands.json: generated $(WEB_PARTS) ## write the compilation database that clangd and clang-tidy read
	$(Q)$(MAKE) -s -n -B V=1 all tests-built bench-built | scripts/compile-commands.py $@

FILES ?=
check-tidy: compile_commands.json ## run clang-tidy's bug-finding checks on the programs' sources (FILES="common/memory/buf.c" for some; minutes)
	$(Q)scripts/tidy.sh $(JOBS) $(FILES)

lint: ## run static checks: cppcheck, shellcheck, manual pages, licence lines
	$(Q)scripts/lint.sh

##@ Install and release
COMPLETION_DIRS := bash-completion/completions zsh/vendor-completions fish/vendor_completions.d
UNITS := $(wildcard deploy/systemd/*.service)
DROP_INS := addr2line eu-addr2line llvm-symbolizer llvm-addr2line
completions: programs
	$(Q)scripts/completions.sh $(O) $(O)/completions

install: programs completions ## install programs, manual pages, systemd units, SQL views, jobs for Spark, Grafana files and alerts under DESTDIR$(PREFIX)
	$(Q)install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/share/man/man1 $(DESTDIR)$(PREFIX)/share/man/man5 $(DESTDIR)$(PREFIX)/share/man/man8
	$(Q)install -m 0755 $(PROGRAMS:%=$(O)/%) $(DESTDIR)$(PREFIX)/bin
	$(Q)ln -sf cairn-addr2line $(DESTDIR)$(PREFIX)/bin/cairn-symbolizer
	$(Q)install -d $(DESTDIR)$(PREFIX)/lib/cairn/bin
	$(Q)for name in $(DROP_INS); do ln -sf ../../../bin/cairn-addr2line $(DESTDIR)$(PREFIX)/lib/cairn/bin/$$name; done
	$(Q)for page in $(wildcard docs/man/*.[158]); do install -m 0644 $$page $(DESTDIR)$(PREFIX)/share/man/man$${page##*.}; done
	$(Q)ln -sf cairn-addr2line.1 $(DESTDIR)$(PREFIX)/share/man/man1/cairn-symbolizer.1
	$(Q)install -d $(COMPLETION_DIRS:%=$(DESTDIR)$(PREFIX)/share/%)
	$(Q)install -m 0644 $(O)/completions/bash/* $(DESTDIR)$(PREFIX)/share/bash-completion/completions
	$(Q)install -m 0644 $(O)/completions/zsh/* $(DESTDIR)$(PREFIX)/share/zsh/vendor-completions
	$(Q)install -m 0644 $(O)/completions/fish/* $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d
	$(Q)install -d $(DESTDIR)$(PREFIX)/lib/systemd/system $(DESTDIR)$(PREFIX)/share/cairn/sql $(DESTDIR)$(PREFIX)/share/cairn/spark
	$(Q)for unit in $(UNITS); do sed 's|/usr/bin|$(PREFIX)/bin|' $$unit >$(DESTDIR)$(PREFIX)/lib/systemd/system/$${unit##*/}; done
	$(Q)install -m 0644 $(wildcard deploy/sql/*.sql) $(DESTDIR)$(PREFIX)/share/cairn/sql
	$(Q)install -m 0644 $(wildcard deploy/spark/*.py deploy/spark/*.sql deploy/spark/*.conf) $(DESTDIR)$(PREFIX)/share/cairn/spark
	$(Q)install -d $(DESTDIR)$(PREFIX)/share/cairn/grafana/provisioning/datasources $(DESTDIR)$(PREFIX)/share/cairn/grafana/provisioning/dashboards
	$(Q)install -m 0644 $(wildcard deploy/grafana/dashboards/*.json) $(DESTDIR)$(PREFIX)/share/cairn/grafana
	$(Q)install -d $(DESTDIR)$(PREFIX)/share/cairn/prometheus
	$(Q)sed 's|/usr/share|$(PREFIX)/share|' deploy/prometheus/alerts.yaml >$(DESTDIR)$(PREFIX)/share/cairn/prometheus/alerts.yaml
	$(Q)for file in datasources/cairn.yaml dashboards/cairn.yaml; do sed 's|/usr/local/share|$(PREFIX)/share|' deploy/grafana/provisioning/$$file \
		>$(DESTDIR)$(PREFIX)/share/cairn/grafana/provisioning/$$file; done

DIST := cairn-$(VERSION)
XZ_LEVEL ?= -9
dist: ## write build/cairn-VERSION.tar.xz with the committed files (reproducible for a commit)
	$(Q)mkdir -p build
	$(Q)git archive --format=tar --prefix=$(DIST)/ HEAD | xz $(XZ_LEVEL) --threads=1 >build/$(DIST).tar.xz
	$(Q)echo build/$(DIST).tar.xz

deb: dist ## build the Debian packages from the tarball, in build/deb
	$(Q)rm -rf build/deb && mkdir -p build/deb
	$(Q)tar -C build/deb -xf build/$(DIST).tar.xz
	$(Q)cd build/deb/$(DIST) && dpkg-buildpackage -us -uc -b -j$(JOBS)

release: ## build a release from the tagged commit: tarball, Debian packages, checksums, notes (DRY_RUN=1 from any commit, TARBALL=1 without packages)
	$(Q)MAKE='$(MAKE)' scripts/release.sh $(VERSION) $(if $(DRY_RUN),dry-run) $(if $(TARBALL),tarball)

uninstall: ## remove the installed files
	$(Q)rm -f $(patsubst deploy/systemd/%,$(DESTDIR)$(PREFIX)/lib/systemd/system/%,$(UNITS))
	$(Q)rm -rf $(DESTDIR)$(PREFIX)/share/cairn
	$(Q)rm -f $(PROGRAMS:%=$(DESTDIR)$(PREFIX)/bin/%) $(DESTDIR)$(PREFIX)/bin/cairn-symbolizer $(DESTDIR)$(PREFIX)/share/man/man1/cairn-symbolizer.1
	$(Q)rm -rf $(DESTDIR)$(PREFIX)/lib/cairn
	$(Q)rm -f $(foreach p,$(PROGRAMS),$(addprefix $(DESTDIR)$(PREFIX)/share/,bash-completion/completions/$(p) \
		zsh/vendor-completions/_$(p) fish/vendor_completions.d/$(p).fish))
	$(Q)rm -f $(patsubst docs/man/%,$(DESTDIR)$(PREFIX)/share/man/man1/%,$(wildcard docs/man/*.1))
	$(Q)rm -f $(patsubst docs/man/%,$(DESTDIR)$(PREFIX)/share/man/man5/%,$(wildcard docs/man/*.5))
	$(Q)rm -f $(patsubst docs/man/%,$(DESTDIR)$(PREFIX)/share/man/man8/%,$(wildcard docs/man/*.8))

clean: ## remove build/, build-fresh/ and build-image/
	rm -rf build build-fresh build-image

help: ## print this list
	$(Q)awk -f scripts/make-help.awk $(filter-out %.d,$(MAKEFILE_LIST))

.PHONY: completions dist deb release run deps bench bench-built bench-ratchet simulate check-oracle check-suites check-boundaries check-kernels check-unwind check-arm64 check-real check-pgo check-soak check-alerts check-interop check-spark check-readers check-store check-cluster check-kubernetes check-image check-clients check-packages check-fresh fuzz screenshot format coverage compile_commands.json check-tidy lint install uninstall clean help
