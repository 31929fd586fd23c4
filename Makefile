# The two commands of the README are `make demo` and `make test`; both install what they need first.
# Everything else is a part of them.

GO      ?= go
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
COMMIT  ?= $(shell git rev-parse --short HEAD 2>/dev/null)
DATE    ?= $(shell date -u +%Y-%m-%d)
LDFLAGS  = -s -w -X main.version=$(VERSION) -X main.commit=$(COMMIT) -X main.date=$(DATE)

export CGO_ENABLED = 1

.PHONY: demo test build setup lint fuzz bench clean

# A room of two devices on this computer: a signaling server, a host and a joining device answer a question on the
# embedded model. In a terminal it ends in the host's console; Q="..." asks one question and exits.
demo: build
	@./pooled demo $${Q:+--question "$$Q"}

build: setup
	$(GO) build -trimpath -ldflags '$(LDFLAGS)' -o pooled .

# What a fresh machine lacks: a compiler, Go modules, a GPU driver for Vulkan.
setup:
	@.ci/setup

# Every test there is. The network and room packages run under the race detector.
test: setup
	@.ci/setup interop
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { echo "gofmt would change:"; gofmt -l $$(git ls-files '*.go'); exit 1; }
	$(GO) vet ./...
	$(GO) test -race ./netmesh/... ./session/...
	$(GO) test $$($(GO) list ./... | grep -vE '^pooled/(netmesh|session)(/|$$)')

lint: setup
	$(GO) run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.5.0 run ./...

# A minute of each fuzz target.
fuzz:
	@.ci/fuzz

bench: setup
	$(GO) test -run '^$$' -bench . ./compute/... ./netmesh/...

clean:
	rm -rf pooled dist
