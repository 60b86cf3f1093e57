# The front door. `make` alone says what there is.
JOBS ?= 2
FUZZ_SECONDS ?= 60
FUZZ_TARGET ?= *
CMAKE_QUIET = --log-level=WARNING
export CMAKE_BUILD_PARALLEL_LEVEL = $(JOBS)
CTEST = ctest --output-on-failure --no-label-summary -j2
# The slow rows of docs/faults.md are for `make faults`.
FAST = -LE faults-slow
.SHELLFLAGS = -euo pipefail -c
SHELL = bash

.PHONY: help demo test faults build bench lint asan tsan fuzz clean setup-build

help:
	@echo "make demo   install what is missing, build, train and use a matting network on two processes (runs/demo)"
	@echo "make test   install what the tests need, build and run every test"
	@echo "make faults every row of docs/faults.md, the slow ones too"
	@echo "make build  build/release/bin: muster and the examples"
	@echo "make bench  build and run the benchmarks"
	@echo "make lint   clang-format and clang-tidy"
	@echo "make asan   every test under the address and undefined-behaviour sanitizers"
	@echo "make tsan   the layers without torch under the thread sanitizer"
	@echo "make fuzz   the fuzz targets (FUZZ_TARGET=png for one), each for FUZZ_SECONDS=$(FUZZ_SECONDS); what they find goes to build/fuzz/found"
	@echo "make clean  remove build/ and runs/ (.venv stays)"
	@echo "JOBS=$(JOBS) compilers run at once; each takes up to 1.3 GB of memory"

build:
	@scripts/setup.sh build
	@cmake $(CMAKE_QUIET) --preset release >/dev/null
	@cmake --build build/release --target muster_programs

demo: build
	@scripts/demo.sh

# The sanitized build of the layers without torch comes first: it is small and fails fast. Shown last is ctest's closing
# line, which ctest itself follows with the time.
test:
	@scripts/setup.sh test
	@echo "== under sanitizers: the layers without torch"
	@cmake $(CMAKE_QUIET) --preset asan-core >/dev/null
	@cmake --build build/asan-core
	@cd build/asan-core && $(CTEST)
	@echo "== all of it"
	@cmake $(CMAKE_QUIET) --preset release -DMUSTER_TESTS=ON >/dev/null
	@cmake --build build/release
	@cd build/release && status=0 && { $(CTEST) $(FAST) | tee ctest.out || status=$$?; } && \
	  { grep '% tests passed' ctest.out || true; } && exit $$status

faults:
	@scripts/setup.sh test
	@cmake $(CMAKE_QUIET) --preset release -DMUSTER_TESTS=ON >/dev/null
	@cmake --build build/release --target test_faults
	@cd build/release && $(CTEST) -L faults

bench:
	@scripts/setup.sh bench
	@cmake $(CMAKE_QUIET) --preset release -DMUSTER_BENCH=ON >/dev/null
	@cmake --build build/release --target muster_benches
	@for bench in build/release/bin/*_bench; do [ ! -x "$$bench" ] || "$$bench"; done
	@bench/fit.py build/release/bin
	@bench/sync.py build/release/bin
	@[ ! -x .venv-peers/bin/python ] || .venv-peers/bin/python bench/peers/matting.py build/release/bin

lint:
	@scripts/setup.sh lint
	@cmake $(CMAKE_QUIET) --preset lint >/dev/null
	@scripts/lint.py build/lint $(JOBS)

asan tsan:
	@scripts/setup.sh test
	@cmake $(CMAKE_QUIET) --preset $@ >/dev/null
	@cmake --build build/$@
	@cd build/$@ && TSAN_OPTIONS=suppressions=$(CURDIR)/tests/tsan_suppressions.txt $(CTEST) $(FAST)

# Targets keep small files in memory where there is a place for it: the library's fsync would be most of their time.
fuzz:
	@scripts/setup.sh fuzz
	@cmake $(CMAKE_QUIET) --preset fuzz >/dev/null
	@cmake --build --preset fuzz
	@mkdir -p build/fuzz/found
	@TMPDIR=$$(mktemp -d -p /dev/shm 2>/dev/null || mktemp -d); export TMPDIR; trap 'rm -rf "$$TMPDIR"' EXIT; \
	for fuzzer in build/fuzz/bin/$(FUZZ_TARGET)_fuzz; do \
	  name=$$(basename "$$fuzzer"); "$$fuzzer" --seeds="build/fuzz/corpus/$$name"; \
	  "$$fuzzer" -max_total_time=$(FUZZ_SECONDS) -max_len=4096 -malloc_limit_mb=64 -timeout=10 \
	    -verbosity=0 -print_final_stats=1 -artifact_prefix="build/fuzz/found/$$name-" \
	    "build/fuzz/corpus/$$name" >"build/fuzz/$$name.log" 2>&1 || { tail -60 "build/fuzz/$$name.log"; exit 1; }; \
	  echo "$$name: no finding in $$(sed -n 's/^stat::number_of_executed_units: *//p' "build/fuzz/$$name.log") inputs"; \
	done

clean:
	@rm -rf build runs
