package proof

import (
	"regexp"
	"strings"
	"testing"
)

var link = Link{"sha-256 11:22,sha-256 33:44", "joiner", "pooled-room-4TKG9P"}

const (
	jn = "AAECAwQFBgcICQoLDA0ODw"
	hn = "__z59vPw7ern5OHe29jV0g"
)

// What is drawn has its form and is drawn anew each time.
func TestRandom(t *testing.T) {
	for _, c := range []struct {
		name  string
		draw  func() string
		valid func(string) bool
		n     int
	}{{"nonce", NewNonce, ValidSecret, 22}, {"pass", NewPass, ValidSecret, 22}, {"mesh key", NewMeshKey, ValidMeshKey, 43}} {
		a, b := c.draw(), c.draw()
		if a == b || len(a) != c.n || !c.valid(a) || !c.valid(b) {
			t.Errorf("%s: %q and %q", c.name, a, b)
		}
	}
}

// A proof is good for one role, one kind of secret, one link, one pair of peers and one pair of nonces.
func TestProofIsBound(t *testing.T) {
	other := func(change func(l *Link)) Link {
		l := link
		change(&l)
		return l
	}
	good := link.Proof(Join, Key, "secret", jn, hn)
	if !ValidDigest(good) {
		t.Fatalf("%q", good)
	}
	for what, p := range map[string]string{
		"role":        link.Proof(Host, Key, "secret", jn, hn),
		"kind":        link.Proof(Join, Pass, "secret", jn, hn),
		"secret":      link.Proof(Join, Key, "secreT", jn, hn),
		"joiner":      other(func(l *Link) { l.Joiner = "other" }).Proof(Join, Key, "secret", jn, hn),
		"host":        other(func(l *Link) { l.Host = "pooled-room-4TKG9Q" }).Proof(Join, Key, "secret", jn, hn),
		"fingerprint": other(func(l *Link) { l.Binding = "sha-256 11:22,sha-256 33:45" }).Proof(Join, Key, "secret", jn, hn),
		"nonce":       link.Proof(Join, Key, "secret", hn, hn),
		"host nonce":  link.Proof(Join, Key, "secret", jn, jn),
	} {
		if p == good || !ValidDigest(p) {
			t.Errorf("another %s gives %q", what, p)
		}
	}
	for _, n := range [][2]string{{"", hn}, {jn, ""}, {"short", hn}, {jn + "\n" + jn, hn}} {
		if p := link.Proof(Join, Key, "secret", n[0], n[1]); p != "" {
			t.Errorf("nonces %q: a proof", n)
		}
	}
}

// A mesh proof that comes back is not the one that is expected.
func TestMeshProofIsBound(t *testing.T) {
	key := NewMeshKey()
	good := Mesh(key, "b", "x", "y", Dial)
	for what, p := range map[string]string{
		"reflected": Mesh(key, "b", "x", "y", Accept), "other link": Mesh(key, "c", "x", "y", Dial),
		"other way round": Mesh(key, "b", "y", "x", Dial), "other room": Mesh(NewMeshKey(), "b", "x", "y", Dial),
	} {
		if Equal(p, good) {
			t.Errorf("%s: the same proof", what)
		}
	}
	if !Equal(good, Mesh(key, "b", "x", "y", Dial)) {
		t.Error("the same proof differs")
	}
}

// Lines that some parser could read as a fingerprint void the others.
func TestLinesThatLookLikeFingerprints(t *testing.T) {
	const good = "a=fingerprint:sha-256 AA:BB\r\n"
	for _, line := range []string{
		" a=fingerprint:sha-256 CC:DD", "\ta=fingerprint:sha-256 CC:DD", "A=fingerprint:sha-256 CC:DD", "a=fingerprint:sha-256 CC:D",
		"a=fingerprint:", "a=fingerprint", "a=fingerprint:sha-256 AABB", "a=fingerprint:sha-256 AA:BB,CC:DD", "a = fingerprint:sha-256 CC:DD",
	} {
		if _, one := Fingerprints(good + line + "\r\n"); one != "" {
			t.Errorf("%q beside a good line: %q counts", line, one)
		}
	}
	for _, line := range []string{"a=ice-ufrag:fingerprint", "b=fingerprint", "s=a=fingerprint:sha-256 CC:DD", ""} {
		if _, one := Fingerprints(good + line + "\r\n"); one != "sha-256 aa:bb" {
			t.Errorf("%q beside a good line: %q counts", line, one)
		}
	}
	if b := Binding(good, "a=fingerprint:sha-256 00:11\n"); b != "sha-256 00:11,sha-256 aa:bb" {
		t.Errorf("binding %q", b)
	}
	if b := Binding(good, ""); b != "" {
		t.Errorf("an end without a fingerprint binds %q", b)
	}
}

// Whatever a description holds, a fingerprint that counts has its form and is the only one.
func FuzzFingerprints(f *testing.F) {
	f.Add("a=fingerprint:sha-256 AA:BB\r\n")
	f.Add("a=fingerprint: sha-1 AA\na=FINGERPRINT:x\n")
	form := regexp.MustCompile(`^[a-z0-9-]+ [0-9a-f]{2}(:[0-9a-f]{2})*$`)
	f.Fuzz(func(t *testing.T, sdp string) {
		all, one := Fingerprints(sdp)
		for _, s := range all {
			if !form.MatchString(s) {
				t.Errorf("%q", s)
			}
		}
		if one != "" && (len(all) != 1 || all[0] != one || !strings.Contains(strings.ToLower(sdp), strings.Fields(one)[1])) {
			t.Errorf("%q of %q", one, all)
		}
	})
}
