# make run     a cluster in this shell, with the examples; Ctrl-C ends it
# make check   the quick look before a commit: format, lints, the tests of what changed; no root, no network
# make unit ROOM=scheduler  the tests beside the code of one crate below src, with the dependencies that all others use
# make test    everything: format, lints, every test, with the real kubectl
# make bench   the budgets, in a table; with KUBE_BIN=FOLDER those on an etcd, too, beside kube-apiserver of that folder
# make first-day  what a newcomer waits for, from a clone with nothing cached: takes minutes, on a quiet machine
# make sim SEEDS=1000  clusters to which much happens, in an order that each seed draws, and that get where they
#              were to get; operators under faults; every story told twice: takes minutes
# make chaos   every byte of a store's files flipped and cut to, one by one; servers and members of an etcd killed
#              and cut off, and its quota spent, in CHAOS_ROUNDS rounds, while clients write and watch: takes minutes
# make fuzz    broken input for every decoder, FUZZ_SECONDS each
# make bench-hot  the hot paths, each by itself
# make lean    the program without a client of etcd (--no-default-features), compiled without a warning, and what it says
# make deny    the dependencies: licences, duplicates and, by their database on the network, advisories; what needs
#              no network of that is in `make test`, too
# make schemas UPSTREAM=FOLDER  the tables of facts anew from a checkout of kubernetes/kubernetes, and what differs;
#              with CHECK=--check nothing is written, and a difference fails
# make upstream KUBE_BIN=FOLDER  which of our expectations the real etcd, kube-apiserver and controllers of that
#              folder do not meet; not part of `make test`. With ON_OURS=1 kube-apiserver keeps its objects in
#              `kubarium etcd` instead of that etcd
# make picture  the picture of README, from the page of a cluster at work, in Chromium
# make burst   what the page costs, in Chromium: frames a second while 10,000 steps come at once, and where the time goes; the
#              processor time of a page at rest; how much longer 1,000 replicas take while it is open (of the release build)
# make wheel   the wheel for PyPI, by maturin; make npm  the package for npm; make devcontainer  the feature with its
#              program: each with the program that is released, below target

CARGO ?= cargo
NODES ?= 3
FUZZ_SECONDS ?= 30
SEEDS ?= 10000
CHAOS_ROUNDS ?= 100
# Most tests wait more than they work: for processes, a browser, clients.
export RUST_TEST_THREADS ?= 4

# What is said of the real one: cases, stories, and what is compared with its published documents.
EXPECTATIONS = cases:: conformance::every_story conformance::operations conformance::lifecycle \
	conformance::discovery apiserver::discovery::each_list apiserver::openapi::each_client \
	apiserver::admission::plugins_that_are_on apiserver::admission::pods_are_kept_secure \
	apart::controllers_and_a_scheduler

.PHONY: run check unit test linted fmt clippy kubectl etcdctl etcd prometheus python-client javascript-client chromium burst picture wheel npm devcontainer bench bench-hot first-day sim chaos fuzz lean deny schemas upstream clean

run:
	$(CARGO) build --profile quick
	./target/quick/kubarium up --nodes $(NODES) --filename manifests/examples

check:
	@sh tests/check.sh

# Alone, a crate would have its dependencies built once more, with the few features that it asks for itself.
unit:
	$(CARGO) test --all-features --lib --package kubarium --package kubarium-$(subst _,-,$(ROOM)) -- $(FILTER)

# clippy-driver is a rustc that knows more lints: what it looks at is compiled at once, where `cargo clippy` and
# `cargo test` read every crate twice.
LINTED = RUSTC_WORKSPACE_WRAPPER=clippy-driver CLIPPY_ARGS=--deny__CLIPPY_HACKERY__warnings $(CARGO)

# What has to be installed comes first, so that nobody is asked for a password minutes later; what needs none comes
# while the rest is compiled.
test: kubectl etcdctl etcd prometheus chromium fmt
	@$(MAKE) --no-print-directory --jobs=3 python-client javascript-client linted
	$(LINTED) test --workspace --all-features --no-fail-fast

linted:
	$(LINTED) test --workspace --all-features --all-targets --no-run

fmt:
	$(CARGO) fmt --all --check

clippy:
	$(CARGO) clippy --workspace --all-targets --all-features --quiet -- --deny warnings

# The tests drive a real kubectl. Where there is none on PATH, Debian's is installed.
kubectl:
	@sh tests/install-debian.sh kubectl "command -v kubectl" kubernetes-client

# And a real etcdctl. Where there is none on PATH, Debian's is installed.
etcdctl:
	@sh tests/install-debian.sh etcdctl "command -v etcdctl" etcd-client

# And a real etcd: the one on PATH, else Debian's, below target.
etcd:
	@sh tests/unpack-debian.sh etcd etcd-server

# And a real Prometheus, which reads the metrics: the one on PATH, else Debian's, below target.
prometheus:
	@sh tests/unpack-debian.sh prometheus prometheus

# The tests drive the Python clients of PyPI, too, in a virtual environment below target.
python-client:
	@sh tests/install-python-client.sh

# And that of npm, also below target.
javascript-client:
	@sh tests/install-javascript-client.sh

# And the page in a browser: Chromium, which is installed where it is missing.
chromium:
	@sh tests/install-debian.sh Chromium "test -x /usr/bin/chromium -a -x /usr/bin/chromedriver" chromium chromium-driver

burst: python-client chromium kubectl
	$(CARGO) build --profile quick
	target/python-client/bin/python tests/page/burst.py target/quick/kubarium kubectl
	target/python-client/bin/python tests/page/idle.py target/quick/kubarium kubectl
	$(CARGO) build --release
	target/python-client/bin/python tests/page/rollout.py target/release/kubarium kubectl

picture: python-client chromium kubectl
	$(CARGO) build --profile quick
	target/python-client/bin/python tests/page/picture.py target/quick/kubarium kubectl tests/page/picture.png

wheel: python-client
	cd src/bindings/python && ../../../target/python-client/bin/maturin build --release --out ../../../target/wheel

npm:
	$(CARGO) build --release
	rm -rf target/npm
	cp -r src/bindings/javascript target/npm
	mkdir -p target/npm/bin
	cp target/release/kubarium target/npm/bin/
	cd target/npm && npm pack --pack-destination ..

devcontainer:
	$(CARGO) build --release
	rm -rf target/devcontainer
	cp -r src/bindings/devcontainer target/devcontainer
	cp target/release/kubarium target/devcontainer/

bench:
	KUBARIUM_UPSTREAM="$(abspath $(KUBE_BIN))" $(CARGO) bench --bench budgets

bench-hot:
	$(CARGO) bench --bench hot

first-day:
	@sh tests/first-day.sh

# Optimised: the same seed does the same there.
sim:
	CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 KUBARIUM_SEEDS=$(SEEDS) \
		$(CARGO) test --release --all-features --test it -- convergence:: explore:: same_story::

chaos: etcdctl etcd
	KUBARIUM_TEST_EVERY_BYTE=1 $(CARGO) test -p kubarium-etcd tests::damage
	KUBARIUM_CHAOS_ROUNDS=$(CHAOS_ROUNDS) $(CARGO) test --all-features --test it -- etcd_store::chaos --nocapture

# In a folder of its own: it has other features, and would have to be built anew each time.
lean:
	CARGO_TARGET_DIR=target/lean RUSTFLAGS="--deny warnings" $(CARGO) check --no-default-features
	CARGO_TARGET_DIR=target/lean $(CARGO) test -p kubarium-etcd-client --no-default-features --lib absent

# With symbols, which the released program does not have, since a backtrace is what it is for. The package has a
# profile of its own, which has the last word.
fuzz:
	CARGO_PROFILE_RELEASE_DEBUG=line-tables-only KUBARIUM_FUZZ_SECONDS=$(FUZZ_SECONDS) \
		$(CARGO) test --config 'profile.release.package.kubarium.strip=false' --release --test it fuzz::
	KUBARIUM_FUZZ_SECONDS=$(FUZZ_SECONDS) $(CARGO) test --release -p kubarium-etcd-server --lib whatever_is_in_a_file

deny:
	@command -v cargo-deny > /dev/null || \
		{ echo "no cargo-deny; have it with: cargo install --locked cargo-deny" >&2; exit 1; }
	$(CARGO) deny --all-features check

schemas:
	@test -n "$(UPSTREAM)" || \
		{ echo "say where a checkout of kubernetes/kubernetes is: make schemas UPSTREAM=FOLDER" >&2; exit 1; }
	$(CARGO) run --quiet --package kubarium-schemas -- "$(abspath $(UPSTREAM))" $(CHECK)

upstream:
	@sh tests/find-upstream.sh "$(KUBE_BIN)"
	KUBARIUM_UPSTREAM="$(abspath $(KUBE_BIN))" KUBARIUM_UPSTREAM_ON_OURS="$(ON_OURS)" $(CARGO) test --all-features --no-fail-fast --test it -- \
		--test-threads 1 --nocapture $(EXPECTATIONS)

clean:
	$(CARGO) clean
