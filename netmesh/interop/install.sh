#!/bin/sh
# Installs what the interop tests need: the npm packages into node_modules, and on Debian and Ubuntu (as root) Node.js and
# Chromium. Elsewhere these two have to be there already.
set -eu
cd "$(dirname "$0")"
missing=
command -v node >/dev/null && command -v npm >/dev/null || missing="nodejs npm"
command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null ||
	missing="$missing chromium"
if [ -n "$missing" ]; then
	if ! command -v apt-get >/dev/null || [ "$(id -u)" != 0 ]; then
		echo "please install: $missing" >&2
		exit 1
	fi
	apt-get update -q
	# shellcheck disable=SC2086
	DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $missing
fi
npm ci --no-audit --no-fund --ignore-scripts
