package gate

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pooled/netmesh/proof"
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

// wire are the fields of messages that the gate is about.
type wire struct {
	T, JC, PID, JN, KP, PP, HN, Pass, Via, HP, MK string
	Key                                           string
	Auth, Join, KC                                int
}

func (w wire) hello() Hello {
	return Hello{Name: "d", Auth: w.Auth >= 1, Join: w.Join >= 1, JC: w.JC, KC: w.KC >= 1, PID: w.PID}
}

type gateFile struct {
	KEY, PASS string
	PassHash  string `json:"PASS_HASH"`
	Hello     []struct {
		Note string
		Gate struct {
			Ask    bool
			Denied []string
			Lobby  any
		}
		Hello  wire
		Answer struct {
			Kind, Via, Reason string
			Pass              *string
			Legacy            bool
		} `json:"first_answer"`
	}
	AfterProof []struct {
		Note, Proof string
		Ask, Denied bool
		Lobby       int
		Out         struct {
			Kind, Via, Reason string
			Pass              *string
			HP, SAS, Failed   bool
		}
	} `json:"after_proof"`
	MeshVerdict []struct {
		Note, Got, Verdict string
		MK                 bool
	} `json:"mesh_verdict"`
}

var reasons = map[string]Reason{"OLD_DEVICE": OldDevice, "DENIED": Denied, "LOBBY_FULL": LobbyFull, "UNVERIFIED": Unverified, "": ""}

var kinds = map[string]Kind{"challenge": Challenge, "ask": Ask, "admit": Admit, "refuse": Refuse}

const jn, hn = "AAECAwQFBgcICQoLDA0ODw", "__z59vPw7ern5OHe29jV0g"

// fill makes a lobby of n requests, with own among them if it is named.
func (g *Gate) fill(n int, own string) {
	for i := range n {
		g.lobby = append(g.lobby, fmt.Sprint("other", i))
	}
	if own != "" {
		g.lobby[n-1] = own
	}
}

// Devices from before the proofs are asked about here, whatever raw secret they send: that is the stricter of the two answers that the
// file knows.
func TestVectorsGateHello(t *testing.T) {
	var f gateFile
	vectorFile(t, "gate.json", &f)
	if len(f.Hello) == 0 {
		t.Fatal("no cases")
	}
	for _, c := range f.Hello {
		g := New(Options{Ask: c.Gate.Ask, Key: f.KEY})
		g.keep(Pass{Hash: f.PassHash})
		for _, p := range c.Gate.Denied {
			g.denied[p] = true
		}
		switch l := c.Gate.Lobby.(type) {
		case float64:
			g.fill(int(l), "")
		case string:
			g.fill(lobbyMost, strings.Fields(l)[2])
		}
		got := g.First("p1", c.Hello.hello())
		want := kinds[c.Answer.Kind]
		if c.Answer.Legacy {
			want = Ask
		}
		if got.Kind != want || got.Reason != reasons[c.Answer.Reason] {
			t.Errorf("%s: got %+v, want %+v", c.Note, got, c.Answer)
		}
		if want == Admit && (string(got.Via) != c.Answer.Via || (got.Pass == "") != (c.Answer.Pass == nil)) {
			t.Errorf("%s: got %+v, want %+v", c.Note, got, c.Answer)
		}
		if want == Ask && !got.Old {
			t.Errorf("%s: not marked as one that can't prove anything", c.Note)
		}
	}
}

func TestVectorsGateProved(t *testing.T) {
	var f gateFile
	vectorFile(t, "gate.json", &f)
	if len(f.AfterProof) == 0 {
		t.Fatal("no cases")
	}
	for _, c := range f.AfterProof {
		g := New(Options{Ask: c.Ask, Key: f.KEY})
		g.keep(Pass{Hash: f.PassHash})
		g.fill(c.Lobby, "")
		g.denied["p1"] = c.Denied
		l := proof.Link{Binding: "sha-256 11", Joiner: "p1", Host: "pooled-room-4TKG9P"}
		h := Hello{Auth: true, Join: true, JC: proof.Commitment(jn)}
		p := Proof{JN: jn}
		switch c.Proof {
		case "bad":
			p.JN = hn
		case "pass":
			h.PID, h.KC = proof.PassID(f.PassHash), true
			p.PP, p.KP = l.Proof(proof.Join, proof.Pass, f.PassHash, jn, hn), l.Proof(proof.Join, proof.Key, f.KEY, jn, hn)
		case "key":
			h.KC, p.KP = true, l.Proof(proof.Join, proof.Key, f.KEY, jn, hn)
		case "failed":
			h.KC, p.KP = true, l.Proof(proof.Join, proof.Key, "ZZZZZZZZZZZZZZZZZZZZZZ", jn, hn)
		case "unbound":
			h.KC, p.KP = true, l.Proof(proof.Join, proof.Key, f.KEY, jn, hn)
			l.Binding = ""
		case "none":
		default:
			t.Errorf("%s: a proof %q that the test does not know", c.Note, c.Proof)
		}
		got := g.Proved("p1", l, h, hn, p)
		if got.Kind != kinds[c.Out.Kind] || got.Reason != reasons[c.Out.Reason] || string(got.Via) != c.Out.Via || (got.HP != "") != c.Out.HP ||
			(got.Digits != "") != c.Out.SAS || got.Failed != c.Out.Failed || (got.Pass != "") != (c.Out.Pass != nil) {
			t.Errorf("%s: got %+v, want %+v", c.Note, got, c.Out)
		}
	}
}

func TestVectorsMeshVerdict(t *testing.T) {
	var f gateFile
	vectorFile(t, "gate.json", &f)
	if len(f.MeshVerdict) == 0 {
		t.Fatal("no cases")
	}
	key := proof.NewMeshKey()
	for _, c := range f.MeshVerdict {
		mk, got := key, ""
		switch {
		case !c.MK:
			mk, got = "", "anything"
		case c.Got == "p valid":
			got = MeshProof(key, "b", "x", "y", false)
		case c.Got == "p invalid":
			got = MeshProof(key, "b", "x", "y", true) // sent back
		}
		want := Bad // everything but ok: there is no way round the proof here
		if c.Verdict == "ok" {
			want = OK
		}
		if v := MeshVerdict(mk, "b", "x", "y", true, got); v != want {
			t.Errorf("%s: got %v, want %v (%s)", c.Note, v, want, c.Verdict)
		}
	}
}

// Whole joins, message by message: what each end sends is what the file says, but for what is drawn.
func TestVectorsExchanges(t *testing.T) {
	var f struct {
		Exchanges []struct {
			Note   string
			Device struct{ Key, Pass string } `json:"device_has"`
			Host   struct {
				Key    string
				Mesh   string   `json:"mesh_key"`
				Hashes []string `json:"pass_hashes"`
			} `json:"host_has"`
			Steps []struct {
				From  string
				Msg   wire
				After string
			}
			SAS     string
			Device2 string `json:"device_verdict"`
			Host2   string `json:"host_verdict"`
			Link    proof.Link
		}
	}
	vectorFile(t, "auth.json", &f)
	if len(f.Exchanges) == 0 {
		t.Fatal("no cases")
	}
	verdicts := map[string]Verdict{"ok": OK, "tofu": Trust, "bad": Bad}
	for _, e := range f.Exchanges {
		t.Run(e.Note, func(t *testing.T) {
			g := New(Options{Ask: true, Key: e.Host.Key})
			g.mesh = e.Host.Mesh
			for _, h := range e.Host.Hashes {
				g.keep(Pass{Hash: h})
			}
			j := NewJoiner(e.Device.Key, e.Device.Pass)
			j.jn = jn
			said, answer := j.Hello(true), Answer{}
			var nonce string
			for _, s := range e.Steps {
				switch s.Msg.T {
				case "hello":
					if said.JC != s.Msg.JC || said.KC != (s.Msg.KC == 1) || said.PID != s.Msg.PID {
						t.Errorf("hello %+v, want %+v", said, s.Msg)
					}
					if a := g.First(e.Link.Joiner, s.Msg.hello()); a.Kind != Challenge {
						t.Errorf("the host answers %+v", a)
					}
				case "auth":
					nonce = s.Msg.HN
				case "auth-proof":
					p, ok := j.Proof(e.Link, said, nonce)
					if !ok || e.Host2 == "" && (p.JN != s.Msg.JN || p.KP != s.Msg.KP || p.PP != s.Msg.PP) {
						t.Errorf("proof %+v, want %+v", p, s.Msg)
					}
					answer = g.Proved(e.Link.Joiner, e.Link, said, nonce, Proof{s.Msg.JN, s.Msg.KP, s.Msg.PP})
				case "lobby":
					if answer.Kind != Ask || e.SAS != "" && (answer.Digits != e.SAS || j.Digits() != e.SAS) {
						t.Errorf("the host answers %+v, the device shows %s, want %s", answer, j.Digits(), e.SAS)
					}
				case "admit":
					if s.After == "Allow" {
						answer, _ = g.Allow(e.Link.Joiner, said)
					}
					if e.Host.Key != "" && (answer.Kind != Admit || answer.HP != s.Msg.HP || answer.MK != s.Msg.MK || (answer.Pass == "") != (s.Msg.Pass == "")) {
						t.Errorf("the host answers %+v, want %+v", answer, s.Msg)
					}
					if v := j.Admitted(s.Msg.Via, s.Msg.HP); v != verdicts[e.Device2] {
						t.Errorf("the device's verdict is %v, want %s", v, e.Device2)
					}
				default:
					t.Errorf("a message %s that the test does not know", s.Msg.T)
				}
			}
			if e.Host2 == "refuse" && (answer.Kind != Refuse || answer.Reason != Unverified || len(g.Waiting()) != 0) {
				t.Errorf("the host answers %+v", answer)
			}
		})
	}
}
