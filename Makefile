# The front door of Stoker: `make demo` shows it, `make test` checks it, `make help` lists the rest.
# CMake and Ninja do the work in build/; each target first installs what it lacks (Debian, Ubuntu).
BUILD ?= build
PREFIX ?= /usr/local
# More for CMake, such as CMAKE_FLAGS='-DSTK_WEBP=OFF -DCMAKE_C_COMPILER=clang'.
CMAKE_FLAGS ?=
# How long each parser is fuzzed in `make soak` and `make fuzz`.
FUZZ_SECONDS ?= 3600

.DEFAULT_GOAL := build
.PHONY: build demo test gpu-test soak fuzz coverage bench performance install format format-check lint docs clean help

build: ## build the library and the command in build/
	@tools/install-deps.sh build
	@tools/build.sh $(BUILD) -DSTK_TESTS=OFF $(CMAKE_FLAGS)

demo: build ## make sample data, train on it within 60 s, show the result
	@tools/demo.sh $(BUILD)

test: ## build with warnings as errors and run every test
	@tools/install-deps.sh test
	@tools/build.sh $(BUILD) -DSTK_WERROR=ON -DSTK_TESTS=ON $(CMAKE_FLAGS)
	@tests/run.sh $(BUILD) all '$(FILTER)'

gpu-test: ## tests, a training and measurements on this machine's GPU
	@tools/install-deps.sh test
	@tools/build.sh $(BUILD) -DSTK_TESTS=ON $(CMAKE_FLAGS)
	@tools/gpu-test.sh $(BUILD)

soak: ## trials that take too long for every change
	@tools/install-deps.sh lint
	@tools/build.sh $(BUILD) -DSTK_TESTS=ON $(CMAKE_FLAGS)
	@tests/run.sh $(BUILD) soak '$(FILTER)'
	@[ -n '$(FILTER)' ] || CC=clang tools/build.sh build-clang -DSTK_WERROR=ON
	@[ -n '$(FILTER)' ] || tests/run.sh build-clang unit
	@[ -n '$(FILTER)' ] || tools/lint.sh $(BUILD) deep
	@[ -n '$(FILTER)' ] || tools/fuzz.sh all $(FUZZ_SECONDS)

fuzz: ## every parser of foreign bytes with libFuzzer, FUZZ_SECONDS each (3600)
	@tools/install-deps.sh lint
	@tools/fuzz.sh all $(FUZZ_SECONDS)

coverage: ## run every test and tell which lines and branches of each room they reach
	@tools/install-deps.sh coverage
	@tools/coverage.sh '$(FILTER)'

bench: build ## run what is in bench/
	@tools/bench.sh $(BUILD)

performance: ## write the tables of docs/performance.md anew from bench/results
	@tools/performance-page.py

install: build ## install below PREFIX (/usr/local); DESTDIR is heeded
	@cmake --install $(BUILD) --prefix $(PREFIX) >$(BUILD)/install.log || \
		{ cat $(BUILD)/install.log; exit 1; }
	@if [ -z "$(DESTDIR)" ] && [ "$$(id -u)" = 0 ]; then ldconfig || true; fi
	@echo "installed below $(DESTDIR)$(PREFIX); the list is in $(BUILD)/install_manifest.txt"

format: ## format the source
	@tools/install-deps.sh lint
	@tools/format.sh

format-check: ## fail when the source is not formatted
	@tools/install-deps.sh lint
	@tools/format.sh --check

lint: ## clang-tidy, cppcheck and, where it is installed, shellcheck
	@tools/install-deps.sh lint
	@tools/build.sh $(BUILD) $(CMAKE_FLAGS)
	@tools/lint.sh $(BUILD)

docs: build ## write docs/options.md anew from the option tables
	@mkdir -p docs
	@$(BUILD)/stoker help --markdown >docs/options.md.new && mv docs/options.md.new docs/options.md

clean: ## remove everything that was built
	@rm -rf build build-* compile_commands.json

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-13s %s\n", $$1, $$2 }' Makefile
