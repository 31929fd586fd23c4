package relay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

type turnVectors struct {
	Turn struct {
		Cases []struct {
			Secret     string `json:"secret"`
			TTL        int64  `json:"ttl"`
			Now        int64  `json:"now"`
			Username   string `json:"username"`
			Credential string `json:"credential"`
		} `json:"cases"`
		TTL []struct {
			Env *string `json:"env"`
			TTL int64   `json:"ttl"`
		} `json:"ttl"`
		Refresh []struct {
			TTL int64 `json:"ttl"`
			MS  int64 `json:"ms"`
		} `json:"refresh_ms"`
		URLs []struct {
			URL string `json:"url"`
			OK  bool   `json:"ok"`
		} `json:"url_valid"`
	} `json:"turn"`
}

func TestVectorsTurn(t *testing.T) {
	dir := os.Getenv("POOLED_VECTORS")
	if dir == "" {
		dir = filepath.Join("..", "testdata")
	}
	b, err := os.ReadFile(filepath.Join(dir, "liveness.json"))
	if os.IsNotExist(err) && os.Getenv("POOLED_VECTORS") != "" {
		t.Skip("liveness.json is not in POOLED_VECTORS")
	}
	if err != nil {
		t.Fatal(err)
	}
	var v turnVectors
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatal(err)
	}
	if len(v.Turn.Cases) == 0 || len(v.Turn.TTL) == 0 || len(v.Turn.Refresh) == 0 || len(v.Turn.URLs) == 0 {
		t.Fatal("groups are missing")
	}
	for _, c := range v.Turn.Cases {
		user, credential := Mint(c.Secret, time.Duration(c.TTL)*time.Second, time.Unix(c.Now, 0))
		if user != c.Username || credential != c.Credential {
			t.Errorf("Mint(%s, %d): got %s %s, want %s %s", c.Secret, c.TTL, user, credential, c.Username, c.Credential)
		}
	}
	for _, c := range v.Turn.TTL {
		env := ""
		if c.Env != nil {
			env = *c.Env
		}
		if got := TTL(env); got != time.Duration(c.TTL)*time.Second {
			t.Errorf("TTL(%q): got %v, want %d s", env, got, c.TTL)
		}
	}
	for _, c := range v.Turn.Refresh {
		if got := RefreshAfter(time.Duration(c.TTL) * time.Second); got.Milliseconds() != c.MS {
			t.Errorf("RefreshAfter(%d s): got %v, want %d ms", c.TTL, got, c.MS)
		}
	}
	for _, c := range v.Turn.URLs {
		if _, ok := ValidURL(c.URL); ok != c.OK {
			t.Errorf("ValidURL(%q): got %v, want %v", c.URL, ok, c.OK)
		}
	}
}

func TestValidURL(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{" TURN:Relay.Example.org:80?transport=udp ", "turn:Relay.Example.org:80?transport=udp"},
		{"turns:[2001:db8::1]:5349", "turns:[2001:db8::1]:5349"},
		{"turn:[2001:db8::1]", "turn:[2001:db8::1]"},
		{"turn:a_b.local", "turn:a_b.local"},
		{"turn:[1.2.3.4]", ""},
		{"turn:2001:db8::1", ""},
		{"turn:[fe80::1%eth0]", ""},
		{"turn:relay:", ""},
		{"turn:relay:0", ""},
		{"turn:relay:65536", ""},
		{"turn:relay:+80", ""},
		{"turn:relay?transport=TCP", ""},
		{"turn:relay?", ""},
		{"turn:relay/x", ""},
		{"turn://relay", ""},
		{"turn:relay\n", "turn:relay"},
		{"turn:re\nlay", ""},
		{"turn:" + strings.Repeat("a", 64), ""},
		{"turn:", ""},
		{"turn", ""},
	} {
		got, ok := ValidURL(c.in)
		if got != c.want || ok != (c.want != "") {
			t.Errorf("ValidURL(%q): got %q %v, want %q", c.in, got, ok, c.want)
		}
	}
}

func TestTTLOddities(t *testing.T) {
	for _, s := range []string{"", "six", "-5", "0", "NaN"} {
		if got := TTL(s); got != 6*time.Hour {
			t.Errorf("TTL(%q): got %v, want 6h", s, got)
		}
	}
	for _, c := range []struct{ ttl, want time.Duration }{{time.Second, time.Minute}, {1 << 62, 18 * time.Hour}, {-1, 45 * time.Minute}} {
		if got := RefreshAfter(c.ttl); got != c.want {
			t.Errorf("RefreshAfter(%v): got %v, want %v", c.ttl, got, c.want)
		}
	}
}

func TestServerHidesItsPassword(t *testing.T) {
	s := Server{URLs: []string{"turn:relay.example"}, User: "user", Credential: "hush"}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
		if got := fmt.Sprintf(verb, s); strings.Contains(got, "hush") || !strings.Contains(got, "relay.example") {
			t.Errorf("%s: %s", verb, got)
		}
	}
}

// answering is an endpoint without a network.
type answering func(*http.Request) (*http.Response, error)

// RoundTrip answers.
func (f answering) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func answer(status int, body string) *http.Client {
	return &http.Client{Transport: answering(func(r *http.Request) (*http.Response, error) {
		w := httptest.NewRecorder()
		if r.Method != http.MethodPost {
			status = http.StatusMethodNotAllowed
		}
		if status == http.StatusTemporaryRedirect {
			w.Header().Set("Location", "https://elsewhere.example/api/turn")
		}
		w.WriteHeader(status)
		_, _ = w.WriteString(body)
		return w.Result(), nil
	})}
}

func TestFetch(t *testing.T) {
	entry := `{"urls":"turn:r.example","username":"u","credential":"c"}`
	for _, c := range []struct {
		name   string
		status int
		body   string
		want   string // URLs
		ttl    time.Duration
		bad    bool
	}{
		{"one", 200, `{"iceServers":[` + entry + `],"ttl":3600}`, "turn:r.example", time.Hour, false},
		{"list of urls", 200, `{"iceServers":[{"urls":["turn:a","TURNS:b","stun:c"],"username":"u","credential":"c"}]}`, "turn:a turns:b", 0, false},
		{"without password", 200, `{"iceServers":[{"urls":"turn:a","username":"u"},` + entry + `]}`, "turn:r.example", 0, false},
		{"stun only", 200, `{"iceServers":[{"urls":"stun:a"}]}`, "", 0, false},
		{"none", 204, "", "", 0, false},
		{"nine", 200, `{"iceServers":[` + strings.Repeat(entry+",", 8) + entry + `]}`, strings.TrimSpace(strings.Repeat("turn:r.example ", 8)), 0, false},
		{"long life", 200, `{"iceServers":[],"ttl":9000000000000000000}`, "", 24 * time.Hour, false},
		{"forbidden", 403, "", "", 0, true},
		{"redirect", 307, "", "", 0, true},
		{"no JSON", 200, "hush", "", 0, true},
		{"bad urls", 200, `{"iceServers":[{"urls":7}]}`, "", 0, true},
		{"too large", 200, `{"iceServers":[` + strings.Repeat(" ", maxAnswer) + `]}`, "", 0, true},
	} {
		servers, ttl, err := Fetch(t.Context(), "https://x.example/api/turn", answer(c.status, c.body))
		var urls []string
		for _, s := range servers {
			urls = append(urls, s.String())
		}
		if strings.Join(urls, " ") != c.want || ttl != c.ttl || (err != nil) != c.bad {
			t.Errorf("%s: got %v, %v, %v", c.name, servers, ttl, err)
		}
		if err != nil && strings.Contains(err.Error(), "hush") {
			t.Errorf("%s: the error shows the answer: %v", c.name, err)
		}
	}
	for _, u := range []string{"ftp://x", "https://", "turn:x", "http://a b"} {
		if _, _, err := Fetch(t.Context(), u, answer(204, "")); !errors.Is(err, ErrEndpoint) {
			t.Errorf("%s: got %v, want ErrEndpoint", u, err)
		}
	}
}

func TestFetchErrorsHoldNoPassword(t *testing.T) {
	failing := &http.Client{Transport: answering(func(*http.Request) (*http.Response, error) { return nil, errors.New("no route") })}
	_, _, err := Fetch(t.Context(), "https://user:hush@x.example/api/turn?token=hush", failing)
	if err == nil || strings.Contains(err.Error(), "hush") || !strings.Contains(err.Error(), "x.example") {
		t.Errorf("got %v", err)
	}
}

func TestFetchTakesNoLongerThanItsLimit(t *testing.T) {
	var limit time.Duration
	client := &http.Client{Transport: answering(func(r *http.Request) (*http.Response, error) {
		at, ok := r.Context().Deadline()
		if !ok {
			return nil, errors.New("no deadline")
		}
		limit = time.Until(at)
		return nil, context.DeadlineExceeded
	})}
	if _, _, err := Fetch(t.Context(), "https://x.example/", client); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	if limit <= 0 || limit > fetchLimit {
		t.Errorf("limit: got %v, want %v", limit, fetchLimit)
	}
}

func FuzzValidURL(f *testing.F) {
	for _, s := range []string{"turn:relay:3478?transport=tcp", "turns:[::1]:1", "TURN:a", "turn:a?transport=x", "turn:[", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		u, ok := ValidURL(s)
		if !ok {
			if u != "" {
				t.Errorf("%q: refused, but %q", s, u)
			}
			return
		}
		if again, ok := ValidURL(u); !ok || again != u {
			t.Errorf("%q: %q is read as %q %v", s, u, again, ok)
		}
		if strings.ContainsAny(u, " \t\r\n@/\\") || !strings.HasPrefix(u, "turn") || len(u) > maxURL {
			t.Errorf("%q: let through as %q", s, u)
		}
	})
}
