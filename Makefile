# `make demo` and `make test` need Python 3.11 or newer and nothing else.

PYTHON ?= $(shell for python in python3 python3.14 python3.13 python3.12 python3.11 python; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && echo $$python && break; done)
BIN := .venv/bin
# Compiling every module again takes each worker of the tests ten seconds, and child processes one.
export PYTHONDONTWRITEBYTECODE :=
BENCHES := hooks calls turn embedder kb kb_adding db db_questions delegation web toolkits conversations serve

.PHONY: help install demo test test-browser test-packaging test-peers test-clients test-faults screenshots coverage lint docs bench figures soak clean

help:
	@echo "make demo               ask the sample assistant about Groundhook"
	@echo "make test               run the tests; PYTEST=… adds arguments"
	@echo "make test-browser       the page in the Chromium that is installed, all of its tests; a minute"
	@echo "make screenshots        pictures of the page in build/screenshots, to look at"
	@echo "make coverage           how much of the code the tests of its pure parts run"
	@echo "make test-packaging     build the wheel, install it elsewhere and use it"
	@echo "make test-peers         test against programs of others: the MCP inspector; needs npm"
	@echo "make test-clients       test against clients of others (AI SDK, AG-UI, LangChain …); needs npm"
	@echo "make test-faults        kill chats and servers a hundred times, attack in full sizes; an hour"
	@echo "make lint               style, formatting, types, import contracts"
	@echo "make docs               write docs/events.md, docs/http.md, docs/delegation.md, docs/package-reference.md, docs/ctx.d.ts and the ports in docs/plugins.md anew"
	@echo "make bench [NAME=turn]  measure: $(BENCHES), or another script of bench/; ARGS=… adds arguments"
	@echo "make figures            measure all, or NAME=turn alone, and write bench/README.md and the README's table"
	@echo "make soak               the server under 200 readers for ten minutes; ARGS=… adds arguments"
	@echo "make clean              remove the virtual environment and caches"

install: .venv/.installed

# Progress is written to standard error, so that `make bench` has only figures on standard output.
define installed
	@python='$(PYTHON)'; \
	if ! "$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then \
		found=$$("$${python:-python3}" --version 2>&1) || found="no $${python:-python3}"; \
		echo "Groundhook needs Python 3.11 or newer; there is $$found." >&2; \
		echo "Install one, or name it: make PYTHON=/path/to/python3.12 $(MAKECMDGOALS)" >&2; \
		exit 1; \
	fi;
	@'$(PYTHON)' .ci/install.py $(1)
	@touch $@
endef

.venv/.installed: pyproject.toml constraints.txt
	$(call installed,'.[dev]')

# What the demo needs, and what `groundhook serve` and an IDE need after it: 57 packages, a third of
# those for the tests. A plain installation, which answers the question as well, has 42.
# A name, since the comma would separate two arguments of the call.
DEMO := '.[server,mcp]'
.venv/.demo: pyproject.toml constraints.txt
	$(call installed,$(DEMO))

demo: $(if $(wildcard .venv/.installed),install,.venv/.demo)
	@echo "Adding the documentation to the sample's knowledge base, then one question." >&2
	@$(BIN)/groundhook kb add agents.docs.docs README.md ARCHITECTURE.md docs/*.md
	@$(BIN)/groundhook chat docs "What is a hook and how is it kept from harming the host?"
	@echo "Next: $(BIN)/groundhook serve prints the address of a page to chat on; $(BIN)/groundhook chat docs is a conversation here." >&2

test: install
	@$(BIN)/python -m pytest -n 3 --dist worksteal $(PYTEST)

# The type checker brings a Node of 200 MB, so it is installed for this alone.
# Tracing slows tests that measure time, so coverage is taken of the areas that measure none, and
# of those whose tests take a minute together.
coverage: install
	@$(BIN)/python -m pytest -n 2 --dist worksteal -q --cov --cov-report=term:skip-covered \
		tests/config tests/packages tests/output tests/llm tests/rerankers tests/delegation

test-packaging: install
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt basedpyright
	@$(BIN)/python -m pytest -m packaging tests/packaging $(PYTEST)

test-browser: install
	@$(BIN)/python -m pytest -m "browser or not browser" tests/page $(PYTEST)

screenshots: install
	@$(BIN)/python -m tests.page.screenshots

# The inspector needs a Node of 22 or newer, which is installed beside it.
test-peers: install
	@npm install --silent --no-audit --no-fund --prefix build/peers node@22 @modelcontextprotocol/inspector@2.12.0
	@$(BIN)/python -m pytest -m peers tests/mcp_server $(PYTEST)

# Clients of others, in places of their own: their requirements are not those of the product.
# RECORD=1 writes what they send to tests/clients/recorded.
test-clients: install
	@mkdir -p build/clients && cp tests/clients/package.json tests/clients/node_clients.mjs build/clients
	@npm install --silent --no-audit --no-fund --prefix build/clients
	@for place in python:requirements older:requirements-older; do \
		folder=build/clients/$${place%%:*}; \
		test -x $$folder/bin/python || $(BIN)/python -m venv $$folder; \
		$$folder/bin/pip install --quiet --disable-pip-version-check \
			-r tests/clients/$${place##*:}.txt || exit 1; \
	done
	@$(BIN)/python -m pytest -n0 -m peers tests/clients $(PYTEST)

test-faults: install
	@$(BIN)/python -m pytest --kills 100 --full --timeout 0 -o faulthandler_timeout=0 $(PYTEST) \
		tests/chats/test_faults.py tests/attacks/test_server.py tests/attacks/test_server_people.py \
		tests/attacks/test_server_faults.py tests/attacks/test_stops.py

lint: install
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/mypy
	@$(BIN)/lint-imports

docs: install
	@$(BIN)/python -m scripts.events_doc
	@$(BIN)/python -m scripts.delegation_doc
	@$(BIN)/python -m scripts.package_doc
	@$(BIN)/python -m scripts.http_doc
	@$(BIN)/python -m scripts.plugins_doc
	@$(BIN)/python -m groundhook.hooks.typings
	@$(BIN)/python -m scripts.json_schemas

bench: install
	@for name in $(or $(NAME),$(BENCHES)); do $(BIN)/python -m bench.$$name $(ARGS) || exit 1; done

soak: install
	@$(BIN)/python -m bench.serve_soak $(ARGS)

figures: install
	@mkdir -p build/figures
	@for name in $(or $(NAME),$(BENCHES)); do echo "bench.$$name ..." >&2; \
		$(BIN)/python -m bench.$$name > build/figures/$$name.jsonl || exit 1; done
	@$(BIN)/python -m bench.table $(or $(NAME),$(BENCHES))

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build *.egg-info
