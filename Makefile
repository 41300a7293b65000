# make run     a cluster in this shell, with the examples; Ctrl-C ends it
# make test    everything: format, lints, every test, with the real kubectl
# make bench   the budgets, in a table

CARGO ?= cargo
NODES ?= 3

.PHONY: run test fmt clippy unit kubectl bench clean

run:
	$(CARGO) build --release --quiet
	./target/release/kubarium up --nodes $(NODES) --filename manifests/examples

test: fmt clippy kubectl
	$(CARGO) test --all-features --no-fail-fast

fmt:
	$(CARGO) fmt --check

clippy:
	$(CARGO) clippy --all-targets --all-features --quiet -- --deny warnings

# The tests drive a real kubectl. Where there is none on PATH, Debian's is installed.
kubectl:
	@sh tests/install-kubectl.sh

bench:
	$(CARGO) bench --bench budgets

clean:
	$(CARGO) clean
