package proof

import (
	"regexp"
	"slices"
	"strings"
)

var (
	// looksLike is any line that a lenient parser could take for a fingerprint.
	looksLike = regexp.MustCompile(`(?i)^\s*a\s*=\s*fingerprint`)
	// fingerprint is the only form that counts.
	fingerprint = regexp.MustCompile(`^a=fingerprint:[ \t]*([A-Za-z0-9-]+)[ \t]+([0-9A-Fa-f]{2}(?::[0-9A-Fa-f]{2})*)[ \t]*$`)
)

// Fingerprints are those that a session description names, as "sha-256 11:18:...", in lower case, each once. one is the only
// one: empty when there is none, when there are several, or when a line looks like a fingerprint and is not understood, so
// that nobody can show one of two ends another than the rest reads.
func Fingerprints(sdp string) (all []string, one string) {
	clear := true
	for line := range strings.SplitSeq(strings.ReplaceAll(sdp, "\r", "\n"), "\n") {
		m := fingerprint.FindStringSubmatch(line)
		if m == nil {
			clear = clear && !looksLike.MatchString(line)
			continue
		}
		if f := strings.ToLower(m[1] + " " + m[2]); !slices.Contains(all, f) {
			all = append(all, f)
		}
	}
	if clear && len(all) == 1 {
		one = all[0]
	}
	return all, one
}

// Binding is the text that both ends of a link compute from its two descriptions: the fingerprints of both, sorted, or the one
// when they are equal. It is empty when an end binds nothing.
func Binding(local, remote string) string {
	_, a := Fingerprints(local)
	_, b := Fingerprints(remote)
	switch {
	case a == "" || b == "":
		return ""
	case a == b:
		return a
	}
	return min(a, b) + "," + max(a, b)
}
