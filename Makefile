# muster: everything a developer or a newcomer runs. Tools that are missing are installed (apt, as root or by sudo).
SHELL := /bin/bash
VERSION ?= $(shell git describe --tags --always 2>/dev/null || echo dev)
GO ?= $(shell command -v go || echo /usr/local/go/bin/go)
export CGO_ENABLED ?= 0
# Without the folder's name in it: what one clone has compiled another does not compile again.
export GOFLAGS += -trimpath
LDFLAGS = -s -w -X dev.muster/slurm/front.Version=$(VERSION)
FRONTENDS = sbatch srun salloc scancel squeue sinfo scontrol sacct sacctmgr sprio sshare sreport sdiag seff sstat sbcast sgather sattach scrontab strigger swait

.PHONY: build test unit e2e sim lint fmt bench quickstart compare examples drill fence-vm chaos bench-group bench-nodes bench-gang bench-queue bench-history bench-sched policy long clean needs limits

build: bin/muster

# The parts that need cgo, which ask NVML and serve PMIx, are programs of their own that muster carries
# (docs/adr/0007-gpu-helper.md). On x86-64 the two files of gpu/helper/glibc let them run with glibc 2.17 and later, whatever this
# machine has; netgo keeps glibc's resolver out, whose symbols are newer.
HELPERS = gpu/bin/muster-gpu pmi/pmix/bin/muster-pmix
# What fetches container images needs no cgo, but would slow each front-end's start.
IMAGES = agent/container/imagehelper/bin/muster-image
CC ?= cc
ifeq ($(shell $(GO) env GOARCH),amd64)
HELPERFLAGS = CGO_CFLAGS="-O2 -include $(CURDIR)/gpu/helper/glibc/compat.h" CGO_LDFLAGS="-Wl,--no-as-needed -l:libpthread.so.0 -l:libdl.so.2"
HELPERLINK = -linkmode external -extldflags "-nostartfiles $(CURDIR)/gpu/bin/start.o"
endif

# program builds the file $(1) for the architecture of the environment.
define program
	@mkdir -p gpu/bin pmi/pmix/bin $(dir $(1)); rm -f $(HELPERS); echo "building 1 of 3: the helper for images"; $(GO) build -ldflags '-s -w' -o $(IMAGES) ./agent/container/helper && \
	if echo '#include <stdlib.h>' | $(CC) -xc -c -o /dev/null - 2>/dev/null; then \
	echo "building 2 of 3: the helpers for NVML and PMIx"; set -e; [ -z '$(HELPERLINK)' ] || $(CC) -c -o gpu/bin/start.o gpu/helper/glibc/start.S; \
	for h in $(HELPERS); do CGO_ENABLED=1 CC="$(CC)" $(HELPERFLAGS) $(GO) build -tags netgo -ldflags '-s -w -buildid= $(HELPERLINK)' -o $$h ./$${h%%/*}/helper; done; \
	else echo "no C compiler for $$($(GO) env GOARCH): built without NVML (GPUs are found through /proc, sysfs and nvidia-smi) and without srun --mpi=pmix"; fi
	@echo "building 3 of 3: muster (the first time this takes one to five minutes)"
	$(GO) build -tags carryimage$$([ ! -e gpu/bin/muster-gpu ] || echo ,carrygpu,carrypmix) -ldflags '$(LDFLAGS)' -o $(1) .
endef

SOURCES = $(shell find . -name '*.go' -not -path './bin/*' -not -path './dist/*') $(wildcard gpu/helper/glibc/* pmi/pmix/*.[ch] gpu/*.tsv packaging/install.sh packaging/NOTICES packaging/systemd/* packaging/config/* ui/views/* ui/static/* slurm/data/schema/* fabric/*.tsv) go.mod

bin/muster: $(SOURCES)
	$(call program,$@)
	@for n in $(FRONTENDS); do ln -sf muster bin/$$n; done

# The programs for other machines, packages of them, and all in one file for machines without a network, in dist. The GPU helper
# of another architecture wants a C compiler for that (gcc-aarch64-linux-gnu).
ARCHES ?= amd64 arm64
CC_amd64 ?= $(if $(filter x86_64,$(shell uname -m)),cc,x86_64-linux-gnu-gcc)
CC_arm64 ?= $(if $(filter aarch64,$(shell uname -m)),cc,aarch64-linux-gnu-gcc)
# Without a tag the number of commits orders versions: a later one is a newer package.
COMMITS = $(shell git rev-list --count HEAD 2>/dev/null || echo 0)
PKGVERSION ?= $(shell echo '$(VERSION)' | sed -E 's/^v//; s/-/+/; s/-/./g; /^[0-9]+[.]/!s/^/0.0.$(COMMITS)+g/')

dist/muster-linux-%: $(SOURCES)
	@GOARCH=$* $(MAKE) --no-print-directory one CC=$(CC_$*) OUT=$@

.PHONY: one packages bundle appliance
one:
	$(call program,$(OUT))
	@mkdir -p dist/helpers; for h in $(IMAGES) $(HELPERS); do [ ! -e $$h ] || cp $$h dist/helpers/$$(basename $$h)-linux-$$GOARCH; done

packages: bin/muster $(foreach a,$(ARCHES),dist/muster-linux-$(a))
	@rm -rf dist/files; rm -f dist/*.deb dist/*.rpm; bin/muster internal files dist/files; echo "the installer leaves the files of a package alone" >dist/files/packaged
	@set -e; for a in $(ARCHES); do for p in deb rpm; do \
	ARCH=$$a PKGVERSION=$(PKGVERSION) $(GO) tool -modfile=tools/go.mod nfpm package -f packaging/nfpm.yaml -p $$p -t dist; done; done

bundle: packages
	@rm -rf dist/muster-bundle dist/muster-bundle-*.tar.gz; mkdir dist/muster-bundle; cp dist/muster-linux-* dist/*.deb dist/*.rpm README.md LICENSE packaging/NOTICES dist/muster-bundle/; \
	install -m 755 packaging/scripts/bundle.sh dist/muster-bundle/install.sh; (cd dist/muster-bundle && sha256sum muster-linux-* *.deb *.rpm >SHA256SUMS); \
	tar --sort=name --owner=0 --group=0 --numeric-owner $(if $(SOURCE_DATE_EPOCH),--mtime=@$(SOURCE_DATE_EPOCH)) -C dist -c muster-bundle | gzip -n >dist/muster-bundle-$(PKGVERSION).tar.gz; rm -rf dist/muster-bundle; ls -lh dist/muster-bundle-$(PKGVERSION).tar.gz

# A release from a tagged commit: programs, packages and the bundle, what is in them (CycloneDX) and checksums, in dist. Two builds
# of a commit by one Go and one C compiler are the same to the byte (make reproducible).
.PHONY: release reproducible
release:
	@[[ '$(VERSION)' =~ ^v?[0-9]+([.][0-9]+)+$$ ]] || { echo "$(VERSION) is no version: tag the commit first, git tag v0.1"; exit 1; }
	@[ -z "$$(git status --porcelain)" ] || { echo "there are changes that are not committed:"; git status --short; exit 1; }
	@for cc in $(foreach a,$(ARCHES),$(CC_$(a))); do command -v $$cc >/dev/null || { \
	echo "there is no $$cc, so programs would lack NVML and PMIx: apt-get install gcc-aarch64-linux-gnu, or ARCHES=amd64"; exit 1; }; done
	rm -rf dist bin
	GOFLAGS=-trimpath SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) $(MAKE) --no-print-directory bundle VERSION=$(VERSION)
	$(foreach a,$(ARCHES),$(GO) tool -modfile=tools/go.mod cyclonedx-gomod bin -json -noserial -notimestamp -version $(VERSION) -output dist/muster-linux-$(a).cdx.json dist/muster-linux-$(a) &&) true
	for h in dist/helpers/*; do $(GO) tool -modfile=tools/go.mod cyclonedx-gomod bin -json -noserial -notimestamp -version $(VERSION) -output dist/$$(basename $$h).cdx.json $$h || exit 1; done; rm -rf dist/helpers
	cp packaging/xterm.cdx.json dist/
	cd dist && find . -maxdepth 1 -type f ! -name SHA256SUMS -printf '%P\0' | sort -z | xargs -0 sha256sum >SHA256SUMS

# The commit is released twice, in two folders, and compared (ten minutes).
reproducible:
	@set -e; two=$$(mktemp -d); trap "rm -rf $$two" EXIT; head=$$(git rev-parse HEAD); for d in a much/deeper/b; do git clone -q . $$two/$$d; git -C $$two/$$d checkout -q $$head; \
	$(MAKE) -C $$two/$$d --no-print-directory release VERSION=v0.0 ARCHES='$(ARCHES)' >$$two/log 2>&1 || { cat $$two/log; exit 1; }; done; \
	diff $$two/a/dist/SHA256SUMS $$two/much/deeper/b/dist/SHA256SUMS && echo "the same: $$(wc -l <$$two/a/dist/SHA256SUMS) files"

# What tests and the quick start use besides Go.
needs:
	@miss=""; for p in tmux:tmux python3:python3-minimal ip:iproute2; do command -v $${p%%:*} >/dev/null || miss="$$miss $${p##*:}"; done; \
	if [ -n "$$miss" ]; then echo "installing$$miss"; s=""; [ "$$(id -u)" = 0 ] || s=sudo; \
	$$s apt-get update -qq && $$s apt-get install -y -qq --no-install-recommends $$miss >/dev/null; fi

# What some tests use besides, on machines that have apt; where it is missing they say why they skip.
.PHONY: parts
parts: needs
	@miss=""; for p in pamtester:pamtester mpicc.mpich:libmpich-dev mpiexec.mpich:mpich mpicc.openmpi:libopenmpi-dev mpirun.openmpi:openmpi-bin ibsim:ibsim-utils ibnetdiscover:infiniband-diags Xvfb:xvfb xauth:xauth xclock:x11-apps xdpyinfo:x11-utils zsh:zsh fish:fish mandoc:mandoc mksquashfs:squashfs-tools; do command -v $${p%%:*} >/dev/null || miss="$$miss $${p##*:}"; done; \
	/usr/bin/python3 -c 'import mpi4py' 2>/dev/null || miss="$$miss python3-mpi4py"; [ -e /usr/include/slurm/pmi2.h ] || miss="$$miss libpmi2-0-dev"; \
	if [ -n "$$miss" ] && [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then echo "installing$$miss"; \
	apt-get update -qq && apt-get install -y -qq --no-install-recommends $$miss >/dev/null || echo "could not install$$miss: their tests skip"; fi

unit:
	$(GO) test -timeout 15m ./...

# What make test will do is said first: it is silent for minutes at a time.
.PHONY: about-test
about-test:
	@echo "make test: installs what is missing, builds, checks the house rules, then runs the tests of all packages and of the built"; \
	echo "program. On two cores it takes 8 to 10 minutes, more where nothing is compiled yet; each package says so when it is through."

# Tests of clusters wait more than they compute: two for each core.
TESTS_AT_ONCE = $(shell echo $$((2 * $$(nproc))))

# What runs the tests: go test, or a program that takes the same flags (.ci/run).
GOTEST = $(GO) test

test: about-test parts build lint
	$(GOTEST) -timeout 15m -parallel $(TESTS_AT_ONCE) $(TESTFLAGS) ./...

e2e: parts build
	$(GO) test -count=1 ./e2e/...

# 10,000 nodes and 60,000 jobs in virtual time, three servers' states kept and compared (more than a quarter of an hour). SEED=… replays a run.
sim:
	$(GO) test -count=1 -run 'TestSim' -v -timeout 60m ./e2e/sim -full $(if $(SEED),-seed=$(SEED))

lint:
	@test -z "$$(gofmt -l .)" || { gofmt -l .; echo "run make fmt"; exit 1; }
	$(GO) vet ./...
	$(GO) tool -modfile=tools/go.mod staticcheck ./...
	$(GO) test -count=1 -run 'TestTidy' .
	$(GO) -C tools test ./...
	$(GO) -C tools run ./count ..
	$(GO) -C tools run ./arrows ..
	cd tools && git -C .. ls-files '*.md' '*.go' | sed 's|^|../|' | CGO_ENABLED=1 xargs $(GO) tool vale --config vale/vale.ini --output line

# The licenses of what is linked in. A test of tools/notices compares the file with the code.
.PHONY: notices
notices:
	$(GO) -C tools run ./notices .. >packaging/NOTICES.new && mv packaging/NOTICES.new packaging/NOTICES

# Lower the limits of tools/count/limits.txt to what the code has become; they never rise.
limits:
	$(GO) -C tools run ./count -write ..

fmt:
	gofmt -w .

quickstart: needs build
	@examples/quickstart.sh

bench: build
	e2e/bench.sh

# Failover, throughput and liveness of three servers (minutes).
bench-group: build
	$(GO) test -count=1 -run TestBenchGroup -v -timeout 20m ./e2e -bench-group=20

# What Slurm's sacct printed of two clusters' past, and what muster's prints after the import (a minute).
.PHONY: migrate
migrate: build
	$(GO) test -count=1 -run 'TestAsSlurm' -v ./slurm/imported
	$(GO) test -count=1 -run 'TestMigrate' -v ./e2e

compare: build
	e2e/compare/run.sh

# A client is generated from the document of the REST interface, and reads every answer strictly; that of the Slinky operators
# takes a job and a node through their lives (a minute).
.PHONY: restclient
restclient: build
	$(GO) test -count=1 -run "TestRESTClient|TestSlinky" -v -timeout 10m ./e2e -restclient

# Debian's Snakemake runs workflows (a minute, and another one to install it).
.PHONY: workflows
workflows: needs build
	@command -v snakemake >/dev/null || apt-get install -y -qq --no-install-recommends snakemake >/dev/null
	$(GO) test -count=1 -run TestSnakemake -v -timeout 10m ./e2e

# How jobs live and die, beside a real Slurm: signals, times, ends, records (ten minutes). COMPARE_ONLY=TEXT: only these cells.
.PHONY: compare-life
compare-life: build
	COMPARE_LIFE=yes e2e/compare/run.sh

# A thousand hollow nodes join three servers, as members of their own and a hundred a member (minutes).
bench-nodes: build
	$(GO) test -count=1 -run TestBenchNodes -v -timeout 20m ./e2e -bench-nodes=1000

# Submissions to three servers with ten thousand busy nodes and up to fifty thousand jobs in the queue (minutes).
bench-queue: build
	$(GO) test -count=1 -run TestBenchQueue -v -timeout 20m ./e2e -bench-queue=10000

# How far apart the tasks of a step begin on 64 clients (a minute).
bench-gang: build
	$(GO) test -count=1 -run TestBenchGang -v -timeout 10m ./e2e -bench-gang=64

# An image of 128 MiB to 16 nodes over limited links, beside one node (minutes).
.PHONY: bench-image
bench-image: build
	$(GO) test -count=1 -run TestBenchImage -v -timeout 20m ./e2e -bench-image=16

# What a month of jobs costs on disk and to be asked about; where SLURM_CONF names a cluster, in its slurmdbd too: its jobs are replaced
# (a minute; with JOBS=1000000 half an hour, of which slurmdbd takes most). And how many jobs a second history takes.
bench-history: JOBS = 100000
bench-history: build
	$(GO) test -count=1 -run '^$$' -bench Completions -benchtime 60000x ./acct
	$(GO) test -count=1 -run TestBenchHistory -v -timeout 45m ./e2e -bench-history=$(JOBS)

# Passes of the scheduler over 10,000 nodes and 100,000 pending jobs, and the replay of two workloads, with muster sim's GOGC (minutes).
TRACES ?= $(abspath ../shared/traces)
bench-sched:
	$(GO) test -run '^$$' -bench 'Pass|Cycle|Limits' -benchtime 5x -timeout 30m ./sched
	$(GO) test -run '^$$' -bench Event -benchtime 300x -timeout 30m ./sched
	GOGC=300 $(GO) test -run '^$$' -bench 'Log|Replay' -benchtime 1x -timeout 30m ./sched/replay -traces=$(TRACES)

# The textbook's policies and muster's own order on the shared traces (five minutes).
policy:
	$(GO) test -count=1 -run 'TestPublished|TestRealIsEasy|TestBetterThanEasy|TestPacking' -timeout 30m -v ./sched/replay -traces=$(TRACES)

# The users' example scripts, unchanged (minutes).
EXAMPLES ?= $(abspath ../shared/examples)
examples: needs build
	$(GO) test -count=1 -run TestExamples -v -timeout 20m ./e2e -examples=$(EXAMPLES)

# The program of an older commit, from which a cluster is upgraded. Where the version stands has changed.
PREVIOUS ?= HEAD~1
dist/muster-previous:
	@rm -rf dist/previous; mkdir -p dist/previous; git archive $(PREVIOUS) | tar -x -C dist/previous; \
	cd dist/previous && $(GO) build -ldflags '-s -w $(foreach p,slurm slurm/front,-X dev.muster/$(p).Version=$(shell git rev-parse --short $(PREVIOUS)))' -o ../muster-previous . && rm -rf ../previous

# A cluster of three servers and two clients upgraded from an older program in each order, with jobs running (minutes).
.PHONY: upgrade
upgrade: dist/muster-previous
	$(GO) test -count=1 -run TestUpgradeOrders -v -timeout 20m ./e2e -previous=$(abspath dist/muster-previous)

# The README's installation on machines booted by systemd-nspawn, what people do then, and the Ansible collection (six minutes; the
# image is made once).
APPLIANCE_IMAGE ?= /var/cache/muster-appliance
.PHONY: dist/muster-previous
appliance: bundle dist/muster-previous
	@miss=""; for p in systemd-nspawn:systemd-container debootstrap:debootstrap ip:iproute2 rpm:rpm ansible-playbook:ansible-core ssh-keygen:openssh-client; do command -v $${p%%:*} >/dev/null || miss="$$miss $${p##*:}"; done; \
	if [ -n "$$miss" ]; then echo "installing$$miss"; apt-get update -qq && apt-get install -y -qq --no-install-recommends $$miss >/dev/null; fi
	$(GO) test -count=1 -run 'TestAppliance|TestPackages|TestRPM' -v -timeout 20m ./e2e -appliance=$(APPLIANCE_IMAGE) -packages=$(abspath dist) -previous=$(abspath dist/muster-previous)

# The Helm chart: Helm's library lints and renders it, and a test starts the command lines of its pods (a minute; the library is
# built once).
.PHONY: helm-check
helm-check: build
	$(GO) -C tools/chart build -o $(CURDIR)/bin/chart .
	$(GO) test -count=1 -run TestHelm -v -timeout 10m ./e2e -chart=$(CURDIR)/bin/chart

# The fences of jobs on machines of their own: with cgroup v2 alone, with v1 beside it, and with v1 alone (minutes; x86-64). The kernel
# is Debian's for virtual machines, unpacked and not installed; FENCE_KERNEL names another one.
FENCE_KERNEL ?= /var/cache/muster-fence-vm/vmlinuz
fence-vm: build
	@miss=""; for p in qemu-system-x86_64:qemu-system-x86 busybox:busybox-static; do command -v $${p%%:*} >/dev/null || miss="$$miss $${p##*:}"; done; \
	if [ -n "$$miss" ]; then echo "installing$$miss"; apt-get update -qq && apt-get install -y -qq --no-install-recommends $$miss >/dev/null; fi
	@[ -e $(FENCE_KERNEL) ] || { set -e; mkdir -p $(dir $(FENCE_KERNEL)); cd $(dir $(FENCE_KERNEL)); \
	apt-get download -qq $$(apt-cache depends linux-image-cloud-amd64 | awk '/Depends: linux-image/ {print $$2}'); dpkg-deb -x linux-image-*.deb .; mv boot/vmlinuz-* $(FENCE_KERNEL); rm -r boot lib usr linux-image-*.deb; }
	$(GO) test -count=1 -run TestFenceVM -v -timeout 40m ./e2e -fence-vm=$(FENCE_KERNEL)

drill: build
	$(GO) test -count=1 -run TestDrill -v -timeout 30m ./e2e -drill=50 -drill-submit=10000 -drill-history=200 -drill-spares=12 -drill-failover=20
	$(GO) test -count=1 -run TestBenignDay -v ./agent/watches -day-nodes=1000
	$(GO) test -count=1 -run TestLlama3 -v ./sched/faults -llama3

# This machine's GPUs as muster has them, compared with nvidia-smi (eight minutes at most). dist/gpu-check is all that another
# machine needs for it: copy the folder there and run gpu-check.py. Without a GPU here the stand-ins are checked, too.
GPU_CHECK_MB = 25
.PHONY: gpu-check
gpu-check: build
	@rm -rf dist/gpu-check; mkdir -p dist/gpu-check; cp packaging/scripts/gpu-check.py dist/gpu-check/; \
	if command -v xz >/dev/null; then xz -6 -T0 -c bin/muster >dist/gpu-check/muster.xz; else gzip -9 -c bin/muster >dist/gpu-check/muster.gz; fi; \
	size=$$(du -sk --apparent-size dist/gpu-check | cut -f1); echo "dist/gpu-check: $$((size / 1024)) MB"; \
	[ $$size -lt $$(($(GPU_CHECK_MB) * 1024)) ] || { echo "that is more than $(GPU_CHECK_MB) MB"; exit 1; }
	dist/gpu-check/gpu-check.py
	@[ -e /proc/driver/nvidia ] || { echo "no NVIDIA GPU here: checking gpu-check.py with stand-ins"; $(GO) test -count=1 -run TestGPUCheck ./e2e; }

# Members of a cluster die and are cut off while callers submit, cancel and requeue.
CHAOS ?= 30m
chaos: needs build
	$(GO) test -count=1 -run TestChaos -v -timeout 2h ./e2e -clocks -chaos=$(CHAOS) $(if $(SEED),-chaos-seed=$(SEED))

# Members hang, wait for their disks, hear in part, run out of open files and are wrong about the time, SEEDS times HANGS (half an
# hour); HANGS=30m SEEDS=1 is one long run. BUSY processes run beside.
.PHONY: chaos-hang
SEEDS ?= 20
HANGS ?= 90s
BUSY ?= 0
chaos-hang: needs build
	@for s in $$(seq $(or $(SEED),1) $$(($(or $(SEED),1) + $(SEEDS) - 1))); do \
	$(GO) test -count=1 -run 'TestChaos$$' -v -timeout 2h ./e2e -clocks -chaos-hang -chaos=$(HANGS) -chaos-seed=$$s -chaos-load=$(BUSY) || exit 1; done

# The leader is stopped, cut off in part, and waits for its disk, ROUNDS times each (an hour and a half); BUSY processes run beside.
.PHONY: stall
ROUNDS ?= 20
stall: needs build
	$(GO) test -count=1 -run TestStalls -v -timeout 4h ./e2e -stall=$(ROUNDS) -stall-load=$(BUSY)

# What sbatch says of so many submissions while the lead changes all the time, beside what is in the queue (minutes).
.PHONY: told
SUBMISSIONS ?= 10000
told: needs build
	$(GO) test -count=1 -run TestSubmissionsTold -v -timeout 1h ./e2e -submissions=$(SUBMISSIONS)

# What three servers have resident while an array of 50,000 runs, and a minute after.
.PHONY: memory
memory: needs build
	$(GO) test -count=1 -run TestGroupMemory -v -timeout 30m ./e2e -memory=50000

# What 200 open pages of a cluster with 1,000 nodes and 12,000 jobs take of its servers, how soon they show what changes,
# and when a browser first draws something of each view.
.PHONY: pages
pages: needs build
	$(GO) test -count=1 -run TestPagesOpen -v -timeout 30m ./e2e -pages=200

# Every fuzz target for FUZZ each: front-ends, the wire decoder, what a machine that joins or gossips may say, and others. What one
# finds lies in testdata beside it afterwards, and is a test from then on.
.PHONY: fuzz
FUZZ ?= 10m
fuzz:
	@set -e; grep -rl --include=*_test.go '^func Fuzz' . | xargs -n1 dirname | sort -u | while read -r dir; do \
	for f in $$(grep -ho '^func Fuzz[A-Za-z0-9]*' $$dir/*_test.go | cut -c6-); do \
	echo "$$dir $$f"; $(GO) test -run '^$$' -fuzz "^$$f$$" -fuzztime $(FUZZ) -fuzzminimizetime 10x $$dir </dev/null; done; done

# Random paths by all options that name one, as an ordinary user: a step gets nothing that the user could not open (ten minutes).
.PHONY: fuzz-paths
fuzz-paths:
	$(GO) test -count=1 -run TestPathFuzz -v -timeout 2h ./agent/supervisor -paths=10000 -paths-for=$(FUZZ) $(if $(SEED),-paths-seed=$(SEED))

# Worlds of 256 ranks of MPICH and Open MPI, which take half a minute each on two processors.
.PHONY: mpi-many
mpi-many: needs build
	$(GO) test -count=1 -run TestMPIMany -v -timeout 10m ./e2e -mpi-many=256

# One slow link of 64 machines, each a network namespace, is found by muster burnin --fabric; a minute and a half.
.PHONY: fabric-many
fabric-many: needs build
	$(GO) test -count=1 -run 'TestBurninFabric$$' -v -timeout 10m ./e2e -fabric-nodes=64 -fabric-seconds=1

# Start and fence of steps of 16 and 256 ranks by PMIx; MUSTER_BENCH_SLURM=/etc/slurm/slurm.conf compares a real Slurm.
.PHONY: bench-mpi
bench-mpi: needs build
	$(GO) test -count=1 -run TestBenchMPI -v -timeout 10m ./e2e -bench-mpi=5

# All that takes minutes and must hold before a release.
long: restclient workflows sim appliance helm-check fence-vm drill chaos chaos-hang stall told pages upgrade fuzz fuzz-paths bench-group bench-nodes bench-gang mpi-many fabric-many

clean:
	rm -rf bin gpu/bin pmi/pmix/bin agent/container/imagehelper/bin dist
