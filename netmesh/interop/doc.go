// Package interop holds the tests that run against other people's code: an unmodified PeerJS in a headless Chromium
// dials us and is dialed, and our signaling client registers with the npm PeerServer. README.md says how to run them.
package interop
