# The two commands of the README are `make demo` and `make test`; both install what they need first.
# Everything else is a part of them.

GO      ?= go
VERSION ?= $(shell git describe --tags --dirty 2>/dev/null || echo dev)
COMMIT  ?= $(shell git rev-parse --short HEAD 2>/dev/null)
DATE    ?= $(shell date -u +%Y-%m-%d)
LDFLAGS  = -s -w -X main.version=$(VERSION) -X main.commit=$(COMMIT) -X main.date=$(DATE)

export CGO_ENABLED = 1

# The linker's flags above have the version; asking git again would fail in a checkout that somebody else owns.
export GOFLAGS := $(GOFLAGS) -buildvcs=false

GOFILES = $$(find . -name node_modules -prune -o -path './.?*' -prune -o -name '*.go' -print)

# Where Go's own archive puts it, for a PATH that does not have it.
export PATH := $(PATH):/usr/local/go/bin

# The question as it was typed: a $ in it is no variable of make's.
QUESTION := $(value Q)
export QUESTION
unexport Q

.PHONY: demo test build setup lint fuzz bench clean

# A room of two devices on this computer: a signaling server, a host and a joining device answer a question on the
# embedded model. In a terminal it ends in the host's console; Q="..." asks one question and exits.
demo: build
	@./pooled demo $${QUESTION:+--question="$$QUESTION"}

# Standard output is the demo's answer, so this says what it does on standard error.
build: setup
	@[ -x pooled ] || echo 'building ./pooled: a minute or two the first time' >&2
	@$(GO) build -trimpath -ldflags '$(LDFLAGS)' -o pooled .

# What a fresh machine lacks: a compiler, Go modules, a GPU driver for Vulkan.
setup:
	@.ci/setup

# Every test there is. The network and room packages run under the race detector.
test: setup
	@.ci/setup interop
	@test -z "$$(gofmt -l $(GOFILES))" || { echo "gofmt would change:"; gofmt -l $(GOFILES); exit 1; }
	$(GO) vet ./...
	POOLED_INTEROP=1 $(GO) test -race ./netmesh/... ./session/...
	$(GO) test $$($(GO) list ./... | grep -vE '^pooled/(netmesh|session)(/|$$)')

lint: setup
	$(GO) run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.5.0 run ./...

# Half a minute of each fuzz target.
fuzz:
	@.ci/fuzz

bench: setup
	$(GO) test -run '^$$' -bench . ./compute/... ./netmesh/...

clean:
	rm -rf pooled dist
