# Read by `.ci/setup interop`: Node.js, Chromium and the npm packages that netmesh/interop runs against.
if [ -d netmesh/interop/node_modules/peerjs ] && command -v node >/dev/null 2>&1 &&
	{ command -v chromium || command -v chromium-browser || command -v google-chrome; } >/dev/null 2>&1; then
	return 0
fi
say "setup: installing what the tests against PeerJS need"
netmesh/interop/install.sh >&2 ||
	die "the tests against PeerJS need Node.js, npm and Chromium: install them, then run this again"
