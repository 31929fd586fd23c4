package gate

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pooled/netmesh/proof"
)

var link = proof.Link{Binding: "sha-256 11:22,sha-256 33:44", Joiner: "p1", Host: "pooled-room-4TKG9P"}

// knock is a device's whole way to a host's answer.
func knock(g *Gate, j *Joiner, l proof.Link) (Answer, Hello) {
	h := j.Hello(true)
	h.Name = "device"
	if a := g.First(l.Joiner, h); a.Kind != Challenge {
		return a, h
	}
	nonce := proof.NewNonce()
	p, _ := j.Proof(l, h, nonce)
	return g.Proved(l.Joiner, l, h, nonce, p), h
}

// A device comes in with the key, gets a pass, and comes back with it alone, also to a host that was restarted.
func TestPassBringsBack(t *testing.T) {
	g := New(Options{Ask: true})
	j := NewJoiner(g.Key(), "")
	a, _ := knock(g, j, link)
	if a.Kind != Admit || a.Via != ViaKey || a.Pass == "" || !proof.ValidMeshKey(a.MK) || j.Admitted(string(a.Via), a.HP) != OK {
		t.Fatalf("with the key: %+v", a)
	}
	for _, host := range []*Gate{g, Restore(Options{Ask: true}, g.Save()), Restore(Options{Closed: true}, g.Save())} {
		j = NewJoiner("", a.Pass)
		b, _ := knock(host, j, link)
		if b.Kind != Admit || b.Via != ViaPass || b.Pass != "" || b.MK != a.MK || j.Admitted(string(b.Via), b.HP) != OK {
			t.Errorf("with the pass: %+v", b)
		}
	}
}

// What a stranger can send does not get it in.
func TestAttacks(t *testing.T) {
	for name, attack := range map[string]func(g *Gate) Answer{
		"another key": func(g *Gate) Answer {
			a, _ := knock(g, NewJoiner(proof.NewNonce(), ""), link)
			return a
		},
		"another pass": func(g *Gate) Answer {
			a, _ := knock(g, NewJoiner("", proof.NewPass()), link)
			return a
		},
		"a proof of an earlier challenge": func(g *Gate) Answer {
			j := NewJoiner(g.Key(), "")
			h := j.Hello(true)
			p, _ := j.Proof(link, h, proof.NewNonce())
			return g.Proved("p1", link, h, proof.NewNonce(), p)
		},
		"a proof of another link": func(g *Gate) Answer {
			j, other := NewJoiner(g.Key(), ""), link
			other.Binding = "sha-256 11:22,sha-256 55:66"
			h, nonce := j.Hello(true), proof.NewNonce()
			p, _ := j.Proof(other, h, nonce)
			return g.Proved("p1", link, h, nonce, p)
		},
		"a proof of another peer": func(g *Gate) Answer {
			j, other := NewJoiner(g.Key(), ""), link
			other.Joiner = "p2"
			h, nonce := j.Hello(true), proof.NewNonce()
			p, _ := j.Proof(other, h, nonce)
			return g.Proved("p1", link, h, nonce, p)
		},
		"a proof on a link without fingerprints": func(g *Gate) Answer {
			bare := link
			bare.Binding = ""
			h, nonce := (&Joiner{jn: jn, key: g.Key()}).Hello(true), proof.NewNonce()
			return g.Proved("p1", bare, h, nonce, Proof{JN: jn, KP: ""})
		},
		"the id of a pass without its proof": func(g *Gate) Answer {
			pass := g.newPass("somebody")
			h := Hello{Auth: true, Join: true, JC: proof.Commitment(jn), PID: proof.PassID(proof.PassHash(pass))}
			return g.Proved("p1", link, h, hn, Proof{JN: jn})
		},
		"the host's own proof sent back": func(g *Gate) Answer {
			h := Hello{Auth: true, Join: true, JC: proof.Commitment(jn), KC: true}
			return g.Proved("p1", link, h, hn, Proof{JN: jn, KP: link.Proof(proof.Host, proof.Key, g.Key(), jn, hn)})
		},
	} {
		a := attack(New(Options{Ask: true}))
		if a.Kind != Ask || !a.Failed || a.Pass+a.MK+a.HP != "" {
			t.Errorf("%s: %+v", name, a)
		}
		if a := attack(New(Options{Closed: true})); a.Kind != Refuse || a.Reason != Closed {
			t.Errorf("%s, at a closed room: %+v", name, a)
		}
	}
}

// Nine at the door: eight wait, one is turned away; who is let in or goes makes room, and asking again keeps the place.
func TestLobby(t *testing.T) {
	g := New(Options{Ask: true})
	ask := func(peer string) Answer {
		l := link
		l.Joiner = peer
		a, _ := knock(g, NewJoiner("", ""), l)
		return a
	}
	for i := range lobbyMost {
		if a := ask(fmt.Sprint("p", i)); a.Kind != Ask || len(a.Digits) != 7 || a.Failed || a.Old {
			t.Fatalf("%d: %+v", i, a)
		}
	}
	if a := ask("p8"); a.Kind != Refuse || a.Reason != LobbyFull {
		t.Errorf("the ninth: %+v", a)
	}
	if ask("p3"); !slices.Equal(g.Waiting(), []string{"p0", "p1", "p2", "p3", "p4", "p5", "p6", "p7"}) {
		t.Errorf("after asking again: %v", g.Waiting())
	}
	in := NewJoiner(g.Key(), "")
	if a, _ := knock(g, in, proof.Link{Binding: "b", Joiner: "p9", Host: "h"}); a.Kind != Admit {
		t.Errorf("with the key, past a full lobby: %+v", a)
	}
	if a, ok := g.Allow("p0", Hello{Name: "n"}); !ok || a.Kind != Admit || a.Pass == "" || a.HP != "" || a.MK == "" {
		t.Errorf("allowed: %+v", a)
	}
	if _, ok := g.Allow("p0", Hello{}); ok {
		t.Error("allowed a second time")
	}
	if a := g.Deny("p1"); a.Kind != Refuse || a.Reason != Denied {
		t.Errorf("denied: %+v", a)
	}
	if a := ask("p1"); a.Kind != Refuse || a.Reason != Denied {
		t.Errorf("denied and back: %+v", a)
	}
	if a, _ := knock(g, NewJoiner(g.Key(), ""), proof.Link{Binding: "b", Joiner: "p1", Host: "h"}); a.Kind != Admit {
		t.Errorf("denied and back with the key: %+v", a)
	}
	g.Withdraw("p2")
	if a := ask("p8"); a.Kind != Ask {
		t.Errorf("with room again: %+v", a)
	}
}

// Who must not dial devices gets no mesh key, however it comes in.
func TestNoMeshKeyForClients(t *testing.T) {
	g := New(Options{})
	if a := g.First("p", Hello{Join: true, API: true}); a.Kind != Admit || a.MK != "" || a.Pass == "" {
		t.Errorf("an open room: %+v", a)
	}
	h := Hello{Auth: true, Join: true, JC: proof.Commitment(jn), KC: true, API: true}
	a := g.Proved("p1", link, h, hn, Proof{JN: jn, KP: link.Proof(proof.Join, proof.Key, g.Key(), jn, hn)})
	if a.Kind != Admit || a.Via != ViaKey || a.MK != "" {
		t.Errorf("with the key: %+v", a)
	}
}

// A device shows no secret to a host that can't check proofs, proves once a link, and to a nonce only.
func TestJoinerIsCareful(t *testing.T) {
	j := NewJoiner(proof.NewNonce(), proof.NewPass())
	if h := j.Hello(false); h.KC || h.PID != "" || !h.Join {
		t.Errorf("to a host that can't check: %+v", h)
	}
	h := j.Hello(true)
	if !h.KC || !proof.ValidPassID(h.PID) {
		t.Errorf("hello %+v", h)
	}
	if _, ok := j.Proof(link, h, "short"); ok {
		t.Error("proved to something that is no nonce")
	}
	if _, ok := j.Proof(link, h, hn); !ok {
		t.Error("did not prove")
	}
	if _, ok := j.Proof(link, h, proof.NewNonce()); ok {
		t.Error("proved a second time")
	}
	quiet := NewJoiner(proof.NewNonce(), "")
	p, _ := quiet.Proof(link, quiet.Hello(false), hn)
	if p.KP+p.PP != "" || quiet.Admitted("", "") != OK {
		t.Errorf("proved what it had not announced: %+v", p)
	}
	if v := NewJoiner("", "").Admitted("key", "x"); v != OK {
		t.Errorf("nothing to check: %v", v)
	}
}

// Newest passes stay; what was kept badly is left out; names are cut between characters.
func TestSave(t *testing.T) {
	g := New(Options{})
	first := g.newPass("first")
	for i := range passesMost {
		g.newPass(fmt.Sprint("n", i))
	}
	s := g.Save()
	if len(s.Passes) != passesMost || s.Passes[0].Name != "n0" || g.byID[proof.PassID(proof.PassHash(first))] != "" || len(g.byID) != passesMost {
		t.Errorf("%d passes, the first is %s's", len(s.Passes), s.Passes[0].Name)
	}
	s.Passes = append(s.Passes[:1:1], Pass{"short", "x"}, Pass{strings.Repeat("A", 64), "x"})
	s.MK, s.Key = "bad", "bad"
	r := Restore(Options{}, s)
	if len(r.passes) != 1 || !proof.ValidMeshKey(r.mesh) || !proof.ValidSecret(r.Key()) {
		t.Errorf("restored %+v", r.Save())
	}
	if k := Restore(Options{Key: jn}, g.Save()).Key(); k != jn {
		t.Errorf("a given key became %s", k)
	}
	for in, want := range map[string]string{
		strings.Repeat("x", 50): strings.Repeat("x", 40), strings.Repeat("x", 39) + "😀": strings.Repeat("x", 39), strings.Repeat("é", 40): strings.Repeat("é", 40),
	} {
		if got := cut(in); got != want {
			t.Errorf("%q: got %q", in, got)
		}
	}
}
