package netmesh

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"pooled/netmesh/signal"
)

type silenceFlags struct{ ToHost, Phone, Loading, Late bool }

func TestVectorsLivenessSilence(t *testing.T) {
	var v struct {
		Limit []struct {
			In silenceFlags
			MS *int
		} `json:"silent_limit"`
		Gone []struct {
			Now, Heard int
			Flags      silenceFlags
			Gone       bool
		} `json:"silent_gone"`
	}
	dir := os.Getenv("POOLED_VECTORS")
	if dir == "" {
		dir = "testdata"
	}
	b, err := os.ReadFile(filepath.Join(dir, "liveness.json"))
	if os.IsNotExist(err) && os.Getenv("POOLED_VECTORS") != "" {
		t.Skip("liveness.json is not in POOLED_VECTORS")
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatal(err)
	}
	for _, c := range v.Limit {
		want := NeverSilent
		if c.MS != nil {
			want = time.Duration(*c.MS) * time.Millisecond
		}
		if got := SilenceLimit(c.In.ToHost, c.In.Phone, c.In.Loading); got != want {
			t.Errorf("limit %+v: got %v, want %v", c.In, got, want)
		}
	}
	for _, c := range v.Gone {
		now := time.Duration(c.Now) * time.Millisecond
		j := judge{last: now - 2500*time.Millisecond}
		if c.Flags.Late {
			j.last -= stall
		}
		j.tick(now)
		limit := SilenceLimit(c.Flags.ToHost, c.Flags.Phone, c.Flags.Loading)
		if got := j.gone(now, time.Duration(c.Heard)*time.Millisecond, limit); got != c.Gone {
			t.Errorf("gone %+v: got %v, want %v", c, got, c.Gone)
		}
	}
}

// TestJudgeRestartsClocks: after a stall, and after loading, the silence before does not count.
func TestJudgeRestartsClocks(t *testing.T) {
	const s = time.Second
	var j judge
	steps := []struct {
		now  time.Duration
		off  bool
		gone bool
	}{
		{2 * s, false, false}, {10 * s, false, false}, {12 * s, false, false}, // 10 s came 8 s late
		{17 * s, false, false}, {22 * s, false, false}, {25 * s, false, false}, {26 * s, false, true},
		{28 * s, true, false}, {32 * s, true, false},
		{36 * s, false, false}, {41 * s, false, false}, {46 * s, false, false}, {48 * s, false, true},
	}
	for _, st := range steps {
		j.off = st.off
		j.tick(st.now)
		if got := j.gone(st.now, 0, defaultSilence); got != st.gone {
			t.Errorf("at %v: got %v, want %v", st.now, got, st.gone)
		}
	}
}

// quick makes the library and the silence rule notice within a second.
func quick(_ *Config, t *tuning) {
	t.ping = 50 * time.Millisecond
	t.iceDisconnected, t.iceFailed = 300*time.Millisecond, 300*time.Millisecond
}

func TestVanishedPeerIsNoticed(t *testing.T) {
	n := newTestNet(t, signal.HubOptions{})
	h := newHole(t)
	a, b := n.join("peer-a", h.use), n.join("peer-b", quick)
	n.link(a, b)
	h.off.Store(true)
	if d := want[LinkDown](b); d.Why != "connection lost" || d.Leaving {
		t.Errorf("got %+v, want connection lost", d)
	}
}

func TestSilentPeerIsDropped(t *testing.T) {
	n := newTestNet(t, signal.HubOptions{})
	h := newHole(t)
	a := n.join("peer-a", h.use)
	b := n.join("peer-b", func(_ *Config, t *tuning) { t.ping, t.silence = 20*time.Millisecond, 200*time.Millisecond })
	n.link(a, b)
	want[RTT](b)
	b.SetLoading(true)
	h.off.Store(true)
	if e := during(b, 600*time.Millisecond); e != nil {
		t.Fatalf("while loading: got %#v, want nothing", e)
	}
	b.SetLoading(false)
	if d := want[LinkDown](b); d.Why != "nothing heard for 200ms" || d.Leaving {
		t.Errorf("got %+v, want the silence named", d)
	}
}

// TestSilenceOfOnePeer: a limit of a peer's own holds for open links and for later ones.
func TestSilenceOfOnePeer(t *testing.T) {
	n := newTestNet(t, signal.HubOptions{})
	h := newHole(t)
	a := n.join("peer-a", h.use)
	b := n.join("peer-b", func(_ *Config, t *tuning) { t.ping, t.silence = 20*time.Millisecond, 200*time.Millisecond })
	b.SetSilence(a.ID(), NeverSilent)
	n.link(a, b)
	h.off.Store(true)
	if e := during(b, 600*time.Millisecond); e != nil {
		t.Fatalf("never silent: got %#v, want nothing", e)
	}
	b.SetSilence(a.ID(), 100*time.Millisecond)
	if d := want[LinkDown](b); d.Why != "nothing heard for 100ms" {
		t.Errorf("got %+v", d)
	}
}

// during returns the first event other than RTT within the time, nil when there is none.
func during(n *node, d time.Duration) Event {
	timer := time.NewTimer(d)
	defer timer.Stop()
	for {
		select {
		case e := <-n.events:
			if _, ok := e.(RTT); !ok {
				return e
			}
		case <-timer.C:
			return nil
		}
	}
}
