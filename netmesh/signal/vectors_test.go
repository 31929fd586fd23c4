package signal

import (
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"testing/synctest"
	"time"
)

// vectors reads one file of vectors, from POOLED_VECTORS when set.
func vectors(t *testing.T, name string, into any) {
	t.Helper()
	dir := os.Getenv("POOLED_VECTORS")
	if dir == "" {
		dir = "testdata"
	}
	b, err := os.ReadFile(filepath.Join(dir, name))
	if os.IsNotExist(err) && os.Getenv("POOLED_VECTORS") != "" {
		t.Skipf("%s is not in POOLED_VECTORS", name)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, into); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

type wantOpts struct {
	Host   string `json:"host"`
	Port   int    `json:"port"`
	Path   string `json:"path"`
	Secure bool   `json:"secure"`
	Key    string `json:"key"`
}

type wantServer struct {
	Spec  string   `json:"spec"`
	Label string   `json:"label"`
	Opts  wantOpts `json:"opts"`
}

func optsOf(s Server) wantOpts {
	if s.IsCloud() {
		return wantOpts{}
	}
	return wantOpts{s.Host, s.Port, s.Path, s.Secure, s.Key}
}

// parseAny parses a spec given as text or object; ok is false for what is not usable.
func parseAny(raw json.RawMessage, bare Bare) (Server, bool) {
	var text string
	if json.Unmarshal(raw, &text) == nil && string(raw) != "null" {
		s, err := ParseServer(text, bare)
		return s, err == nil
	}
	var f Fields
	if json.Unmarshal(raw, &f) != nil {
		return Server{}, false
	}
	s, err := f.Server(bare)
	return s, err == nil
}

func pageBare(secure bool) Bare {
	if secure {
		return BareTLS
	}
	return BarePlain
}

func TestVectorsSignalParse(t *testing.T) {
	var v struct {
		Parse []struct {
			In     json.RawMessage
			Secure bool `json:"page_secure"`
			Out    *wantServer
			URLs   *struct{ WS, ID string }
		}
	}
	vectors(t, "signal.json", &v)
	for _, c := range v.Parse {
		t.Run(string(c.In), func(t *testing.T) {
			s, ok := parseAny(c.In, pageBare(c.Secure))
			if ok != (c.Out != nil) {
				t.Fatalf("usable: got %v, want %v", ok, c.Out != nil)
			}
			if !ok {
				return
			}
			if got := (wantServer{s.String(), s.Label(), optsOf(s)}); got != *c.Out {
				t.Errorf("got %+v, want %+v", got, *c.Out)
			}
			if got := s.socketURL("ID", "TOKEN"); got != c.URLs.WS {
				t.Errorf("socket URL: got %s, want %s", got, c.URLs.WS)
			}
			if got := s.idURL("TS"); got != c.URLs.ID {
				t.Errorf("id URL: got %s, want %s", got, c.URLs.ID)
			}
			again, err := ParseServer(s.String(), pageBare(c.Secure))
			if s.Key = ""; err != nil || optsOf(again) != optsOf(s) {
				t.Errorf("%s parses to %+v (%v), want %+v", s, optsOf(again), err, optsOf(s))
			}
		})
	}
}

func TestVectorsSignalLists(t *testing.T) {
	var v struct {
		Page []struct {
			In struct {
				Query      string
				Configured json.RawMessage
				PageSecure *bool
			}
			Out []string
		} `json:"page_list"`
		CLI []struct {
			In    string
			Out   []wantServer
			Error string
		} `json:"cli_list"`
	}
	vectors(t, "signal.json", &v)
	for _, c := range v.Page {
		var configured []string
		_ = json.Unmarshal(c.In.Configured, &configured) // not a list: as if there were none
		var query []string
		for s := range splitComma(c.In.Query) {
			query = append(query, s)
		}
		var got []string
		for _, s := range FirstUsable(pageBare(c.In.PageSecure == nil || *c.In.PageSecure), query, configured) {
			got = append(got, s.String())
		}
		if !reflect.DeepEqual(got, c.Out) {
			t.Errorf("page list %+v: got %v, want %v", c.In, got, c.Out)
		}
	}
	for _, c := range v.CLI {
		list, err := ParseList(c.In, BareFlag)
		if c.Error != "" {
			if !errors.Is(err, ErrNoServer) {
				t.Errorf("flag %q: got %v, %v, want ErrNoServer", c.In, list, err)
			}
			continue
		}
		var got []wantServer
		for _, s := range list {
			got = append(got, wantServer{Spec: s.String(), Opts: optsOf(s)})
		}
		if err != nil || !reflect.DeepEqual(got, c.Out) {
			t.Errorf("flag %q: got %+v, %v, want %+v", c.In, got, err, c.Out)
		}
	}
}

func TestVectorsSignalTables(t *testing.T) {
	var v struct {
		Delay []struct{ Try, MS int } `json:"reconnect_delay_ms"`
		Over  []string                `json:"fallback_errors"`
		IDs   struct {
			Cases []struct {
				ID     string
				OK     bool
				Expect bool
			}
		} `json:"id_pattern"`
	}
	vectors(t, "signal.json", &v)
	for _, c := range v.Delay {
		if got, want := ReconnectDelay(c.Try), time.Duration(c.MS)*time.Millisecond; got != want {
			t.Errorf("delay %d: got %v, want %v", c.Try, got, want)
		}
	}
	for _, k := range v.Over {
		if !kind(k).handsOver() {
			t.Errorf("%s does not hand over to the next server", k)
		}
	}
	for _, k := range []string{"unavailable-id", "invalid-id", "invalid-key", "peer-unavailable", "webrtc", "browser-incompatible", ""} {
		if kind(k).handsOver() {
			t.Errorf("%q hands over to the next server, but is an answer", k)
		}
	}
	for _, c := range v.IDs.Cases {
		if got := ValidID(c.ID); got != c.Expect {
			t.Errorf("id %q: got %v, want %v", c.ID, got, c.Expect)
		}
	}
}

// TestVectorsSignalOpenOrder opens over lists of working and broken servers on a fake clock.
func TestVectorsSignalOpenOrder(t *testing.T) {
	var v struct {
		Order struct {
			Cases []struct {
				Servers []string
				Tried   int
				Result  string
			}
		} `json:"open_order"`
	}
	vectors(t, "signal.json", &v)
	for _, c := range v.Order.Cases {
		synctest.Test(t, func(t *testing.T) {
			n := newMemNet()
			var list []Server
			for i, what := range c.Servers {
				host := string(rune('a'+i)) + ".example:80"
				list = append(list, at(t, "ws://"+host))
				switch what {
				case "down":
				case "hole":
					n.setHole(host, true)
				case "noid":
					defer n.serveHTTP(host, http.NotFoundHandler())()
				case "up", "taken":
					defer n.serveHub(t, host, HubOptions{})()
				default:
					t.Fatalf("unknown server %q", what)
				}
				synctest.Wait()
				if what == "taken" {
					defer startClient(t, Options{Servers: list[i:], ID: "wanted", Dial: n.dial}).stop()
				}
			}
			start := time.Now()
			o := Options{Servers: list, Dial: n.dial}
			if c.Result == "unavailable-id" {
				o.ID = "wanted"
			}
			cl, err := Open(t.Context(), o)
			took := time.Since(start)
			var want time.Duration
			for i, what := range c.Servers[:c.Tried] {
				if what == "hole" {
					want += []time.Duration{8, 20}[b2i(i == len(list)-1)] * time.Second
				}
			}
			if took < want || took > want+time.Second {
				t.Errorf("%v: took %v, want %v", c.Servers, took, want)
			}
			var down *DownError
			switch {
			case err == nil:
				cl.Abandon()
				if got := "opened on " + string(rune('0'+cl.at+1)); got != c.Result || cl.at+1 != c.Tried {
					t.Errorf("%v: got %q, want %q", c.Servers, got, c.Result)
				}
			case errors.As(err, &down):
				if c.Result != "signaling-down" || len(down.Tried) != c.Tried || !errors.Is(err, ErrDown) {
					t.Errorf("%v: got %v, want %s after %d", c.Servers, err, c.Result, c.Tried)
				}
			default:
				if c.Result != "unavailable-id" || !errors.Is(err, ErrIDTaken) {
					t.Errorf("%v: got %v, want %s", c.Servers, err, c.Result)
				}
			}
		})
	}
}

func TestVectorsSignalingMessages(t *testing.T) {
	var v struct {
		Server []struct {
			Note string
			Msg  json.RawMessage
		} `json:"server_to_client"`
		Client []struct {
			Note string
			Msg  json.RawMessage
		} `json:"client_to_server"`
	}
	vectors(t, "signaling_messages.json", &v)
	for _, c := range append(v.Server, v.Client...) {
		m, err := decode(c.Msg)
		if err != nil {
			t.Errorf("%s: %v", c.Note, err)
			continue
		}
		again, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		var got, want any
		if json.Unmarshal(again, &got) != nil || json.Unmarshal(c.Msg, &want) != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %s, want %s", c.Note, again, c.Msg)
		}
		switch m.Type {
		case TypeIDTaken:
			if !errors.Is(m.refusal(), ErrIDTaken) {
				t.Errorf("%s: got %v", c.Note, m.refusal())
			}
		case TypeError:
			if kindOf(m.refusal()) != kindServer {
				t.Errorf("%s: got %v", c.Note, m.refusal())
			}
		case TypeLeave:
			if !errors.Is(m.Err(), ErrNoPeer) {
				t.Errorf("%s: got %v", c.Note, m.Err())
			}
		default:
			if m.refusal() != nil || m.Err() != nil {
				t.Errorf("%s: taken for a refusal", c.Note)
			}
		}
	}
}
