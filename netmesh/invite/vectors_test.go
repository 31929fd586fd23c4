package invite

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
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

type codesFile struct {
	Alphabet string `json:"alphabet"`
	Parse    struct {
		Cases []struct{ In, Out string } `json:"cases"`
	} `json:"parse"`
	Format struct {
		Cases []struct{ In, Out string } `json:"cases"`
	} `json:"format"`
	Random struct {
		Cases []struct {
			N     int      `json:"n"`
			Draws []string `json:"draws"`
			Out   string   `json:"out"`
		} `json:"cases"`
	} `json:"random"`
	PeerID struct {
		Cases []struct{ Code, ID string } `json:"cases"`
	} `json:"peer_id"`
	Names struct {
		Cases []struct {
			In  *string `json:"in"`
			ID  string  `json:"id"`
			Out string  `json:"out"`
		} `json:"cases"`
	} `json:"names"`
	UniqueNames struct {
		Cases []struct {
			uniqueName
			Out string `json:"out"`
		} `json:"cases"`
	} `json:"unique_names"`
}

type uniqueName struct {
	Name   string      `json:"name"`
	ID     string      `json:"id"`
	Host   string      `json:"host_name"`
	Host2  string      `json:"hostName"` // hashes.json
	Roster [][2]string `json:"roster"`
}

// check runs UniqueName over the names the case has in use: the host's and those of the members other than itself.
func (u uniqueName) check(t *testing.T, want string) {
	t.Helper()
	taken := []string{u.Host + u.Host2}
	for _, m := range u.Roster {
		if m[0] != u.ID {
			taken = append(taken, m[1])
		}
	}
	if got := UniqueName(u.Name, taken); got != want {
		t.Errorf("%+v: got %q, want %q", u, got, want)
	}
}

func TestVectorsCodes(t *testing.T) {
	var f codesFile
	vectorFile(t, "codes.json", &f)
	if f.Alphabet != "" && f.Alphabet != Alphabet {
		t.Errorf("alphabet %s, want %s", Alphabet, f.Alphabet)
	}
	for _, c := range f.Parse.Cases {
		got, err := ParseCode(c.In)
		if string(got) != c.Out || (err == nil) != (c.Out != "") {
			t.Errorf("parse %q: got %q, %v, want %q", c.In, got, err, c.Out)
		}
	}
	for _, c := range f.Format.Cases {
		if got := Code(c.In).Shown(); got != c.Out {
			t.Errorf("shown %q: got %q, want %q", c.In, got, c.Out)
		}
	}
	for _, c := range f.PeerID.Cases {
		if got := Code(c.Code).HostID(); got != c.ID {
			t.Errorf("host of %s: got %s, want %s", c.Code, got, c.ID)
		}
	}
	for _, c := range f.Random.Cases {
		draws := c.Draws
		got := drawCode(c.N, func(b []byte) {
			if len(draws) == 0 {
				t.Fatalf("%+v: more draws than the case has", c)
			}
			raw, err := hex.DecodeString(draws[0])
			if err != nil || len(raw) != len(b) {
				t.Fatalf("%+v: a draw of %d bytes wanted: %v", c, len(b), err)
			}
			copy(b, raw)
			draws = draws[1:]
		})
		if string(got) != c.Out || len(draws) > 0 {
			t.Errorf("draw %v: got %s with %d draws left, want %s", c.Draws, got, len(draws), c.Out)
		}
	}
}

func TestVectorsCodesNames(t *testing.T) {
	var f codesFile
	vectorFile(t, "codes.json", &f)
	for _, c := range f.Names.Cases {
		name := c.ID // a peer that sent no name
		if c.In != nil {
			name = *c.In
		}
		if got := CleanName(name, c.ID); got != c.Out {
			t.Errorf("%q of %s: got %q, want %q", name, c.ID, got, c.Out)
		}
	}
	for _, c := range f.UniqueNames.Cases {
		c.check(t, c.Out)
	}
}

func TestVectorsHashesUniqueName(t *testing.T) {
	var f struct {
		UniqueName struct {
			Cases []struct {
				In  uniqueName `json:"in"`
				Out string     `json:"out"`
			} `json:"cases"`
		} `json:"unique_name"`
	}
	vectorFile(t, "hashes.json", &f)
	for _, c := range f.UniqueName.Cases {
		c.In.check(t, c.Out)
	}
}

type found struct {
	Code string  `json:"code"`
	Key  *string `json:"key"`
}

type invitesFile struct {
	Links []struct {
		In   string `json:"in"`
		Page *found `json:"page"`
		CLI  *found `json:"cli"`
	} `json:"links"`
	KeyFromFragment []struct{ In, Out string } `json:"key_from_fragment"`
	Build           []struct {
		Code, Key, Fragment, Link string
	} `json:"build"`
	KeyBytes []struct{ Bytes, Text string } `json:"key_bytes"`
}

// strict is what Parse is to make of a case. The file has what the original's page and command line make of it, slips
// included (spec wire.md 1.2), so the rules are:
//
//   - an answer that is no code by codes.json's own rules is no answer (4TKG9O, ROOM, ABCDE);
//   - of two answers the page's counts, as it looks at the path, the query and the fragment in the order we do;
//   - text that is not a link is read as a typed code, so spaces in it don't matter (4TK G9P);
//   - a link without https:// means the same as with it (pooled.run/r/4TKG9P).
func strict(in string, page, cli *found) (code, key string) {
	for _, f := range []*found{page, cli} {
		if f == nil {
			continue
		}
		if c, err := ParseCode(f.Code); err == nil && string(c) == f.Code {
			if f.Key != nil {
				key = *f.Key
			}
			return f.Code, key
		}
	}
	if page == nil {
		if c, err := ParseCode(in); err == nil {
			return string(c), ""
		}
	}
	return "", ""
}

func TestVectorsInvitesLinks(t *testing.T) {
	var f invitesFile
	vectorFile(t, "invites.json", &f)
	for _, c := range f.Links {
		t.Run(c.In, func(t *testing.T) {
			got, err := Parse(c.In)
			if c.Page == nil && bareLink(strings.TrimSpace(c.In)) {
				full, fullErr := Parse("https://" + strings.TrimSpace(c.In))
				if got != full || (err == nil) != (fullErr == nil) {
					t.Errorf("got %+v, %v, with https:// %+v, %v", got, err, full, fullErr)
				}
				return
			}
			code, key := strict(c.In, c.Page, c.CLI)
			if string(got.Code) != code || got.Key != key || (err == nil) != (code != "") {
				t.Errorf("got %+v, %v, want code %q, key %q", got, err, code, key)
			}
		})
	}
}

func TestVectorsInvitesKeys(t *testing.T) {
	var f invitesFile
	vectorFile(t, "invites.json", &f)
	for _, c := range f.KeyFromFragment {
		if got := keyOf(c.In); got != c.Out {
			t.Errorf("key of %q: got %q, want %q", c.In, got, c.Out)
		}
	}
	for _, c := range f.Build {
		if got := (Invite{Code: Code(c.Code), Key: c.Key}).Link(); got != c.Link || fragment(c.Key) != c.Fragment {
			t.Errorf("link of %+v: got %s, %s", c, got, fragment(c.Key))
		}
	}
	for _, c := range f.KeyBytes {
		raw, err := hex.DecodeString(c.Bytes)
		if err != nil || len(raw) != keyBytes {
			t.Fatal(fmt.Errorf("%s: %w", c.Bytes, err))
		}
		if got := keyText([keyBytes]byte(raw)); got != c.Text || !ValidKey(got) {
			t.Errorf("key %s: got %s, want %s", c.Bytes, got, c.Text)
		}
	}
}
