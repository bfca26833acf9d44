# The door to the build; Meson does the work. `make run` and `make test` are all it takes.
B ?= build
PYTHON = /usr/bin/python3
export PYTHONDONTWRITEBYTECODE = 1

run: build
	tools/delegated $B/adyton run examples/average.py --verbose

build: dependencies
	test -f $B/build.ninja || meson setup $B --werror
	ninja -C $B

test: test-dependencies build
	tools/delegated $(PYTHON) tests/run $B

lint: test-dependencies
	$(PYTHON) tests/run --only lint $B

format: test-dependencies
	git ls-files -z 'src/*.[ch]' 'tests/*.[ch]' | xargs -0 clang-format -i

bench: test-dependencies build
	tools/delegated $(PYTHON) bench/cold $B

install: build
	meson install -C $B

clean:
	rm -rf $B

dependencies:
	tools/install-dependencies run

test-dependencies:
	tools/install-dependencies test

.PHONY: run build test lint format bench install clean dependencies test-dependencies
.NOTPARALLEL:
