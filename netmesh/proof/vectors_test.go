package proof

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// vectorFile reads a vector file from POOLED_VECTORS or testdata. A file missing from POOLED_VECTORS is skipped.
func vectorFile(t *testing.T, name string, into any) {
	t.Helper()
	dir, other := os.LookupEnv("POOLED_VECTORS")
	if !other || dir == "" {
		dir, other = "testdata", false
	}
	b, err := os.ReadFile(filepath.Join(dir, name))
	if other && errors.Is(err, fs.ErrNotExist) {
		t.Skipf("POOLED_VECTORS has no %s", name)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, into); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

type authFile struct {
	Fingerprints []struct {
		Note, SDP string
		All, One  []string
	}
	Bindings []struct {
		Note    string
		Local   string  `json:"local_sdp"`
		Remote  string  `json:"remote_sdp"`
		Binding *string `json:"binding"`
	}
	Primitives []struct {
		Note, Text, Label, JN, JC, Pass, PID string
		Bytes                                string `json:"bytes_hex"`
		PassHash                             string `json:"pass_hash"`
	}
	Proofs []struct {
		Note, Secret, Transcript, Proof string
		Role                            Role
		Cred                            Cred
		Accept                          *bool
	}
	SAS []struct {
		Note, Binding, JN, HN string
		SAS                   *string
	}
	Exchanges []struct {
		Link struct{ Joiner, Host, Binding string }
	}
	Mesh []struct {
		Note, MK, Dialer, Acceptor, Binding string
		Role                                Role
		P                                   *string
	}
	Valid map[string][]struct {
		Value *string
		Valid bool
	}
}

func or(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func auth(t *testing.T) (f authFile) {
	vectorFile(t, "auth.json", &f)
	return f
}

func TestVectorsFingerprints(t *testing.T) {
	f := auth(t)
	if len(f.Fingerprints) == 0 || len(f.Bindings) == 0 {
		t.Fatal("no cases")
	}
	for _, c := range f.Fingerprints {
		all, one := Fingerprints(c.SDP)
		if !slices.Equal(all, c.All) || one != strings.Join(c.One, ",") {
			t.Errorf("%s: got %q, %q, want %q, %q", c.Note, all, one, c.All, c.One)
		}
	}
	for _, c := range f.Bindings {
		if got := Binding(c.Local, c.Remote); got != or(c.Binding) {
			t.Errorf("%s: got %q, want %q", c.Note, got, or(c.Binding))
		}
		if got := Binding(c.Remote, c.Local); got != or(c.Binding) {
			t.Errorf("%s, seen from the other end: got %q, want %q", c.Note, got, or(c.Binding))
		}
	}
}

func TestVectorsPrimitives(t *testing.T) {
	seen := 0
	for _, c := range auth(t).Primitives {
		switch {
		case c.Bytes != "":
			b, err := hex.DecodeString(c.Bytes)
			if err != nil {
				t.Fatal(err)
			}
			if got := text(b); got != c.Text {
				t.Errorf("%s: got %s, want %s", c.Note, got, c.Text)
			}
		case c.JC != "":
			if got := Commitment(c.JN); got != c.JC {
				t.Errorf("%s: got %s, want %s", c.Note, got, c.JC)
			}
		case c.Pass != "":
			if got := PassHash(c.Pass); got != c.PassHash {
				t.Errorf("%s: got %s, want %s", c.Note, got, c.PassHash)
			}
			if got := PassID(c.PassHash); got != c.PID {
				t.Errorf("%s: got %s, want %s", c.Note, got, c.PID)
			}
		default:
			t.Errorf("%s: a kind that the test does not know", c.Note)
		}
		seen++
	}
	if seen == 0 {
		t.Fatal("no cases")
	}
}

// The nonces and ids of all proofs are those of the exchanges.
func TestVectorsProofs(t *testing.T) {
	f := auth(t)
	const jn, hn = "AAECAwQFBgcICQoLDA0ODw", "__z59vPw7ern5OHe29jV0g"
	if len(f.Proofs) == 0 || len(f.Exchanges) == 0 {
		t.Fatal("no cases")
	}
	l := f.Exchanges[0].Link
	link := Link{l.Binding, l.Joiner, l.Host}
	for _, c := range f.Proofs {
		if c.Accept != nil && !*c.Accept {
			unbound := link
			unbound.Binding = ""
			if got := unbound.Proof(c.Role, c.Cred, c.Secret, jn, hn); got != "" {
				t.Errorf("%s: a proof %s on a link that binds nothing", c.Note, got)
			}
			continue
		}
		if got := link.Proof(c.Role, c.Cred, c.Secret, jn, hn); got != c.Proof {
			t.Errorf("%s: got %s, want %s", c.Note, got, c.Proof)
		}
	}
}

func TestVectorsDigits(t *testing.T) {
	cases := auth(t).SAS
	if len(cases) == 0 {
		t.Fatal("no cases")
	}
	for _, c := range cases {
		if got := (Link{Binding: c.Binding}).Digits(c.JN, c.HN); got != or(c.SAS) {
			t.Errorf("%s: got %q, want %q", c.Note, got, or(c.SAS))
		}
	}
}

func TestVectorsMesh(t *testing.T) {
	cases := auth(t).Mesh
	if len(cases) == 0 {
		t.Fatal("no cases")
	}
	for _, c := range cases {
		if got := Mesh(c.MK, c.Binding, c.Dialer, c.Acceptor, c.Role); got != or(c.P) {
			t.Errorf("%s: got %q, want %q", c.Note, got, or(c.P))
		}
	}
}

func TestVectorsValid(t *testing.T) {
	check := map[string]func(string) bool{
		"nonce_and_key": ValidSecret, "hex64": ValidDigest, "mesh_key": ValidMeshKey, "pass_id": ValidPassID,
	}
	groups := auth(t).Valid
	if len(groups) != len(check) {
		t.Errorf("%d groups, %d are known", len(groups), len(check))
	}
	for name, cases := range groups {
		valid, ok := check[name]
		if !ok {
			t.Errorf("group %s is not known", name)
			continue
		}
		for _, c := range cases {
			if got := valid(or(c.Value)); got != c.Valid {
				t.Errorf("%s %q: got %v", name, or(c.Value), got)
			}
		}
	}
}
