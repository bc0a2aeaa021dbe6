# Chancery: what people who work on it run. `make check` and `make test` are what CI runs.
SHELL := /bin/bash
LINTER := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0

.PHONY: build check test drawing fuzz soak bench-gate release

build: ## the program for this machine, in bin/
	CGO_ENABLED=0 go build -trimpath -o bin/chancery ./cmd/chancery

check: ## format, vet, lint, drawing
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { echo "not formatted (run gofmt -w):"; gofmt -l $$(git ls-files '*.go'); exit 1; }
	go vet ./...
	go run $(LINTER) run ./...
	go test -count=1 -run TestRooms .

test: ## everything, with real PostgreSQL and MariaDB
	./scripts/test

bench-gate: build ## issuing against the bare handler, on this machine, before an issue is resolved
	./bin/chancery bench gate

drawing: ## rewrite docs/rooms.txt after looking at the new arrows
	go test -count=1 -run TestRooms . -update

fuzz: ## each fuzz target for FUZZTIME (default 20s)
	./scripts/fuzz

soak: build ## an hour of kill -9, orderly ends and power cuts; on servers too where CHANCERY_TEST_… names them
	go test -count=1 -timeout 30m -run TestPowerCut ./internal/core/store -cuts 2000
	./bin/chancery bench crash --rounds 200
	./bin/chancery bench crash --rounds 50 --gently
	@for url in $$CHANCERY_TEST_POSTGRES $$CHANCERY_TEST_MARIADB; do ./bin/chancery bench crash --rounds 50 --store "$$url" || exit 1; done

release: ## binaries for every system, without cgo
	./scripts/release
