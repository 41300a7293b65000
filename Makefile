# make run     a cluster in this shell, with the examples; Ctrl-C ends it
# make check   the quick look before a commit: format, lints, the tests of what changed; no root, no network
# make test    everything: format, lints, every test, with the real kubectl
# make bench   the budgets, in a table
# make fuzz    broken input for every decoder, FUZZ_SECONDS each
# make bench-hot  the hot paths, each by itself

CARGO ?= cargo
NODES ?= 3
FUZZ_SECONDS ?= 30

.PHONY: run check test fmt clippy kubectl python-client bench bench-hot fuzz clean

run:
	$(CARGO) build --release --quiet
	./target/release/kubarium up --nodes $(NODES) --filename manifests/examples

check:
	@sh tests/check.sh

test: fmt clippy kubectl python-client
	$(CARGO) test --all-features --no-fail-fast

fmt:
	$(CARGO) fmt --check

clippy:
	$(CARGO) clippy --all-targets --all-features --quiet -- --deny warnings

# The tests drive a real kubectl. Where there is none on PATH, Debian's is installed.
kubectl:
	@sh tests/install-kubectl.sh

# The tests drive the Python client of PyPI, too, in a virtual environment below target.
python-client:
	@sh tests/install-python-client.sh

bench:
	$(CARGO) bench --bench budgets

bench-hot:
	$(CARGO) bench --bench create --bench object --bench patch --bench schedule --bench store --bench watch

fuzz:
	KUBARIUM_FUZZ_SECONDS=$(FUZZ_SECONDS) $(CARGO) test --release --test it fuzz::

clean:
	$(CARGO) clean
