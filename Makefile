# `make demo` shows what precache does, `make test` tests it, `make sabotage` tests the tests, `make bench` measures it,
# `make fuzz` looks for files that break it, `make miri` for undefined behaviour; each installs what is missing (Debian, Ubuntu).

PROFILE := release
TARGET := $(or $(CARGO_TARGET_DIR),target)/$(PROFILE)
SUDO := $(if $(filter 0,$(shell id -u)),,sudo)

.PHONY: build demo test test-machine soak soak-rounds soak-operations sabotage miri arm64 bench fuzz tools-demo tools-test tools-machine tools-bench tools-miri

build: tools-build
	cargo build --$(PROFILE) --package precache --package precache-demos --package precache-benches

# Reads 1 GiB from slow storage in four ways and prints one table. KEEP=1 keeps the data for the next time.
demo: tools-demo build
	$(TARGET)/precache-bench demo

# Everything, on real programs, real LMDBs and real FUSE mounts.
test: tools-test
	cargo test --workspace

# What a test cannot have here without changing the machine for everybody (NFS, DAX, huge pages, memory that is not promised
# twice), and another kernel: Debian's, without guard regions and cachestat, with cgroups of version 2. On x86-64.
test-machine: tools-machine
	tests/machine/run $(KERNEL)

# What takes long, in two parts.
soak: soak-rounds soak-operations

# The hostile cases that go through rounds (64 threads on one checkpoint, memory replaced under those who trip in it, forks
# from many threads; ten times as many threads that end), so many of each, natively and in every way under precache.
ROUNDS := 10000
soak-rounds: tools-test
	for case in 16_threads 18_address 22_fork 30_ways; do \
		HOSTILE_ROUNDS=$(ROUNDS) HOSTILE_PATIENCE=3600 \
			cargo test --package precache-tests --test hostile -- $$case || exit 1; \
	done

# Random operations on mapped files for an hour, each seed natively and under precache: SOAK=600 for ten minutes,
# SEED=N to begin with the seed that failed.
SOAK := 3600
SEED = $(shell date +%s)
soak-operations: tools-test
	PRECACHE_SOAK_SECONDS=$(SOAK) PRECACHE_SOAK_SEED=$(SEED) \
		cargo test --package precache-tests --test soak -- --nocapture

# Writes docs/results. BENCH="--quick" or BENCH="--size 4G --repetitions 10" and so on: precache-bench --help.
bench: tools-bench build
	$(TARGET)/precache-bench all $(BENCH)

# Breaks one rule of the injected library after the other, and fails where the tests named for it do not notice. Some of
# them are tried by `make test`, too.
sabotage: tools-test
	PRECACHE_TESTS_SABOTAGE=all cargo test --workspace --test sabotage

# Looks for undefined behaviour in what has unsafe code and makes no system calls (CONTRIBUTING.md). Miri is some hundred times
# slower than the machine: properties are tried with so few cases, and the curtain, which is safe code, is left out.
CASES := 2
MIRI = PROPTEST_CASES=$(CASES) MIRIFLAGS=-Zmiri-disable-isolation cargo +nightly miri test --lib
miri: tools-miri
	$(MIRI) --package precache-contract
	$(MIRI) --package precache-inject -- --skip curtain::

# The library compiles for arm64, on which it has not been run.
arm64: tools-build
	rustup target add aarch64-unknown-linux-gnu
	RUSTFLAGS=-Dwarnings cargo build --package precache-inject --features preload --profile inject \
		--target aarch64-unknown-linux-gnu

# Coverage-guided, SECONDS for each target: what reads files that others made, and what other processes send.
SECONDS := 60
fuzz: tools-fuzz
	for target in $(notdir $(patsubst %/,%,$(wildcard tests/fuzz/corpus/*/))); do \
		tests/fuzz/run $$target $(SECONDS) || exit 1; \
	done

# $(call install,PROGRAM,PACKAGE): installs the package if there is no such program.
install = @command -v $(1) > /dev/null || \
	{ echo "$(1) is missing: installing $(2)"; $(SUDO) apt-get update -q && $(SUDO) apt-get install -q -y $(2); }

.PHONY: tools-build
tools-build:
	$(call install,cc,build-essential)

.PHONY: tools-fuzz
tools-fuzz: tools-build
	$(call install,c++,g++)

# Without them the demonstration still works, on the local disk.
tools-demo:
	-$(call install,fusermount3,fuse3)

tools-bench: tools-demo
	-$(call install,vmtouch,vmtouch)

tools-miri: tools-build
	@cargo +nightly miri --version > /dev/null 2>&1 || \
	rustup toolchain install nightly --profile minimal --component miri --component rust-src

# Headers of libacl, what the tests look through, and the runtimes and commands that they run.
TEST_PACKAGES := acl attr binutils default-jdk-headless fuse3 g++ gcc gdb git golang-go libacl1-dev libc6-dev libeatmydata1 \
	libjemalloc2 lmdb-utils make mono-mcs mono-runtime musl-tools nodejs pkg-config procps python3 python3-lmdb \
	python3-numpy python3-torch python3-venv ripgrep sqlite3 strace time util-linux util-linux-extra valgrind \
	$(if $(filter x86_64,$(shell uname -m)),gcc-multilib)
tools-test:
	@dpkg -s $(TEST_PACKAGES) > /dev/null 2>&1 || \
	{ $(SUDO) apt-get update -q && $(SUDO) apt-get install -q -y $(TEST_PACKAGES); }
	-$(call install,perf,linux-perf)
	-@$(MAKE) --no-print-directory $(FORMATS)/ready

# Libraries of file formats, which Debian does not have: where PyPI cannot be reached, the tests say what they lack.
FORMATS := $(or $(CARGO_TARGET_DIR),target)/formats
$(FORMATS)/ready: tests/runtimes/requirements.txt
	python3 -m venv $(FORMATS)
	$(FORMATS)/bin/pip install --quiet --disable-pip-version-check --requirement $<
	touch $@

# The emulator, the kernel with its modules, and what its guest needs.
MACHINE_PACKAGES := busybox-static e2fsprogs nfs-kernel-server qemu-system-x86
KERNEL := $(or $(CARGO_TARGET_DIR),target)/kernel
tools-machine: tools-test
	@dpkg -s $(MACHINE_PACKAGES) > /dev/null 2>&1 || { $(SUDO) apt-get update -q && \
	$(SUDO) apt-get install -q -y --no-install-recommends $(MACHINE_PACKAGES); }
	@$(MAKE) --no-print-directory $(KERNEL)/ready

$(KERNEL)/ready:
	mkdir -p $(KERNEL)
	cd $(KERNEL) && rm -f linux-image-*.deb && \
		apt-get download $$(apt-cache depends linux-image-amd64 | sed -n 's/.*Depends: //p') && \
		dpkg-deb -x linux-image-*.deb .
	touch $@
