package gate

import "pooled/netmesh/proof"

// Verdict is what one end makes of what the other has proved.
type Verdict uint8

// The verdicts.
const (
	OK    Verdict = iota // as it should be
	Trust                // let in without a proof by a host that should have had one: go in, warn, compare the digits
	Bad                  // not who it says it is: leave for good
)

// Joiner is the device's side of one link to a host. It serves one goroutine.
type Joiner struct {
	key, pass string // pass: its hash
	jn        string
	link      proof.Link
	hn        string
	proved    map[proof.Cred]string // the secrets that were proved on this link
}

// NewJoiner starts with the invite key of a link and the pass of an earlier stay, either may be empty. Each link needs a new one.
func NewJoiner(key, pass string) *Joiner {
	j := &Joiner{jn: proof.NewNonce()}
	if proof.ValidSecret(key) {
		j.key = key
	}
	if proof.ValidSecret(pass) {
		j.pass = proof.PassHash(pass)
	}
	return j
}

// Hello is what the device adds to its hello. A host that is known not to check proofs (checks is false: it holds devices and said
// nothing of proofs) is told of no secret; it has to ask its person then.
func (j *Joiner) Hello(checks bool) (h Hello) {
	h.Auth, h.Join, h.JC = true, true, proof.Commitment(j.jn)
	if !checks {
		return h
	}
	h.KC = j.key != ""
	if j.pass != "" {
		h.PID = proof.PassID(j.pass)
	}
	return h
}

// Proof answers a challenge; said is what Hello gave. ok is false for a second challenge on the link, and for a nonce that can't be
// one. On a link that binds nothing only the nonce is shown.
func (j *Joiner) Proof(l proof.Link, said Hello, hn string) (p Proof, ok bool) {
	if j.proved != nil || !proof.ValidSecret(hn) {
		return p, false
	}
	j.link, j.hn, j.proved = l, hn, make(map[proof.Cred]string)
	p.JN = j.jn
	prove := func(c proof.Cred, secret string) string {
		mac := l.Proof(proof.Join, c, secret, j.jn, hn)
		if mac != "" {
			j.proved[c] = secret
		}
		return mac
	}
	if said.PID != "" {
		p.PP = prove(proof.Pass, j.pass)
	}
	if said.KC {
		p.KP = prove(proof.Key, j.key)
	}
	return p, true
}

// Digits are those to compare with the host's person; empty before a challenge and on a link without fingerprints.
func (j *Joiner) Digits() string { return j.link.Digits(j.jn, j.hn) }

// Admitted is the verdict on being let in. Nothing that the host sends behind it may be handled before.
func (j *Joiner) Admitted(via, hp string) Verdict {
	if len(j.proved) == 0 {
		return OK
	}
	cred := proof.Cred(via)
	if cred != proof.Key && cred != proof.Pass {
		return Trust
	}
	secret, used := j.proved[cred]
	if !used || !shown(hp, j.link.Proof(proof.Host, cred, secret, j.jn, j.hn)) {
		return Bad
	}
	return OK
}

// MeshProof is what this end of a link between two devices, or of a further association of a link, shows: a proof, or nothing when the
// room has no mesh key or the link binds nothing.
func MeshProof(key, binding, dialer, acceptor string, dialed bool) string {
	if key == "" {
		return ""
	}
	return proof.Mesh(key, binding, dialer, acceptor, role(dialed))
}

// MeshVerdict judges what the other end showed; nothing (also when the time for it is over) is bad wherever the room has a key.
// The proof of the other end has the other role, so one's own, sent back, is none.
func MeshVerdict(key, binding, dialer, acceptor string, dialed bool, got string) Verdict {
	if key == "" || shown(got, proof.Mesh(key, binding, dialer, acceptor, role(!dialed))) {
		return OK
	}
	return Bad
}

func role(dialed bool) proof.Role {
	if dialed {
		return proof.Dial
	}
	return proof.Accept
}
