package gate

import (
	"slices"

	"pooled/netmesh/proof"
)

// Kind is what a host does with a link that knocks.
type Kind uint8

// The answers of a host.
const (
	Challenge Kind = iota // send auth with the nonce, wait for the proof
	Ask                   // send lobby, show the request
	Admit                 // send admit, let it in
	Refuse                // send bye with the reason, close
)

// Via is what let a device in.
type Via string

// The ways in.
const (
	ViaKey   Via = "key"   // it proved the invite key
	ViaPass  Via = "pass"  // it proved a pass
	ViaOpen  Via = "open"  // the room asks nobody
	ViaAllow Via = "allow" // the person said yes
)

// Reason is why a device is refused. The texts for people are the caller's.
type Reason string

// The reasons of a refusal.
const (
	OldDevice  Reason = "old"        // it can't wait in the lobby
	Denied     Reason = "denied"     // the person said no to it before
	LobbyFull  Reason = "lobby-full" // as many wait as may
	Unverified Reason = "unverified" // what it proved is not what it announced
	Closed     Reason = "closed"     // only those with the invite link or a pass come in
)

const (
	lobbyMost  = 8
	passesMost = 500
	nameMost   = 40 // UTF-16 units of a name that is kept
)

// Hello is what the gate reads of a device's hello.
type Hello struct {
	Name string // as the room shows it
	Auth bool   // it can prove its link
	Join bool   // it can wait in the lobby
	JC   string // commitment to its nonce
	KC   bool   // it says that it has the invite key
	PID  string // id of a pass that it says it has
	API  bool   // it computes nothing and must never dial devices
}

// proves says whether the exchange of proofs is started.
func (h Hello) proves() bool { return h.Auth && proof.ValidDigest(h.JC) }

// Proof is what a device answers to a challenge.
type Proof struct {
	JN string // the nonce it committed to
	KP string // proof of the invite key, or empty
	PP string // proof of the pass, or empty
}

// Answer is what becomes of a knock.
type Answer struct {
	Kind   Kind
	Reason Reason // of Refuse
	Via    Via    // of Admit
	Pass   string // of Admit: a new one for the device, or empty
	HP     string // of Admit by a proof: the host's proof that it knows the secret too
	MK     string // of Admit: the key of device links; none for who must not dial devices
	Digits string // of Ask: what both people see, as "146 036"; empty on a link without fingerprints
	Failed bool   // of Ask and Admit: it said that it has a key or a pass and did not prove it
	Old    bool   // of Ask: it can't prove anything
}

// Options say how a gate begins.
type Options struct {
	Ask    bool   // ask the person about devices that prove nothing
	Closed bool   // refuse them instead
	Key    string // of the invite link; empty: a new one
}

// Gate is the host's side. It serves one goroutine.
type Gate struct {
	ask, closed bool
	key, mesh   string
	passes      []Pass // oldest first
	byID        map[string]string
	lobby       []string // peer ids, oldest first
	denied      map[string]bool
}

// New makes a gate with a new mesh key.
func New(o Options) *Gate {
	g := &Gate{ask: o.Ask, closed: o.Closed, key: o.Key, mesh: proof.NewMeshKey(), byID: make(map[string]string), denied: make(map[string]bool)}
	if !proof.ValidSecret(g.key) {
		g.key = proof.NewNonce()
	}
	return g
}

// Key is the invite key, for the link.
func (g *Gate) Key() string { return g.key }

// Asks says whether the person is asked about devices that prove nothing (the field ask of the host's hello).
func (g *Gate) Asks() bool { return g.ask }

// First is the answer to a hello. The protocol version, and whether API clients may come at all, are checked before.
func (g *Gate) First(peer string, h Hello) Answer {
	if h.proves() {
		return Answer{Kind: Challenge}
	}
	return g.judge(peer, h, Answer{Old: true})
}

// Proved is the answer to a proof on a link that was challenged with the nonce hn. Who announced one nonce and shows another is
// refused whatever else it proves. A pass is tried before the key; both come before Ask, Deny and the limit of the lobby.
func (g *Gate) Proved(peer string, l proof.Link, h Hello, hn string, p Proof) Answer {
	if !proof.ValidSecret(p.JN) || !proof.Equal(proof.Commitment(p.JN), h.JC) {
		return Answer{Kind: Refuse, Reason: Unverified}
	}
	if hash, ok := g.byID[h.PID]; ok && shown(p.PP, l.Proof(proof.Join, proof.Pass, hash, p.JN, hn)) {
		return g.admit(h, Answer{Via: ViaPass, HP: l.Proof(proof.Host, proof.Pass, hash, p.JN, hn)}, false)
	}
	if h.KC && shown(p.KP, l.Proof(proof.Join, proof.Key, g.key, p.JN, hn)) {
		return g.admit(h, Answer{Via: ViaKey, HP: l.Proof(proof.Host, proof.Key, g.key, p.JN, hn)}, true)
	}
	return g.judge(peer, h, Answer{Failed: h.KC || h.PID != "", Digits: l.Digits(p.JN, hn)})
}

// shown says whether a proof is the one that is wanted; on a link that binds nothing none is.
func shown(got, want string) bool { return want != "" && proof.Equal(got, want) }

// judge decides about a device that proved nothing.
func (g *Gate) judge(peer string, h Hello, a Answer) Answer {
	switch {
	case g.closed:
		return Answer{Kind: Refuse, Reason: Closed}
	case !g.ask:
		a.Via, a.Digits = ViaOpen, ""
		return g.admit(h, a, h.Join)
	case !h.Join:
		return Answer{Kind: Refuse, Reason: OldDevice}
	case g.denied[peer]:
		return Answer{Kind: Refuse, Reason: Denied}
	case len(g.lobby) >= lobbyMost && !slices.Contains(g.lobby, peer):
		return Answer{Kind: Refuse, Reason: LobbyFull}
	}
	if !slices.Contains(g.lobby, peer) {
		g.lobby = append(g.lobby, peer)
	}
	a.Kind = Ask
	return a
}

// admit fills in what a device gets.
func (g *Gate) admit(h Hello, a Answer, pass bool) Answer {
	a.Kind, a.Old = Admit, false
	if pass {
		a.Pass = g.newPass(h.Name)
	}
	if !h.API {
		a.MK = g.mesh
	}
	return a
}

// Waiting lists the peers in the lobby, the one that asked first in front.
func (g *Gate) Waiting() []string { return slices.Clone(g.lobby) }

// Withdraw takes back the request of a peer: its link closed, or a newer one asks instead.
func (g *Gate) Withdraw(peer string) {
	g.lobby = slices.DeleteFunc(g.lobby, func(p string) bool { return p == peer })
}

// Allow is the person's yes to a peer that waits; ok is false when it does not wait any more.
func (g *Gate) Allow(peer string, h Hello) (a Answer, ok bool) {
	if !slices.Contains(g.lobby, peer) {
		return a, false
	}
	g.Withdraw(peer)
	return g.admit(h, Answer{Via: ViaAllow}, true), true
}

// Deny is the person's no. The peer is refused for as long as the gate lives, unless it proves something.
func (g *Gate) Deny(peer string) Answer {
	g.Withdraw(peer)
	g.denied[peer] = true
	return Answer{Kind: Refuse, Reason: Denied}
}
