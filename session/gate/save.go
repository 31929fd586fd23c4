package gate

import (
	"unicode/utf16"

	"pooled/netmesh/proof"
)

// Pass is a pass that a device was given: what proofs are made with, and whose it is.
type Pass struct {
	Hash string `json:"hash"`
	Name string `json:"name"`
}

// Saved is what a host keeps of its gate over a restart. Who reads it can prove these passes and knows the invite key, so it is for
// its owner's eyes only (spec wire.md 6.6). The lobby and who was denied are not kept.
type Saved struct {
	Key    string `json:"key"`
	MK     string `json:"mk"`
	Passes []Pass `json:"passes"` // oldest first
}

// Save returns what to keep.
func (g *Gate) Save() Saved {
	return Saved{Key: g.key, MK: g.mesh, Passes: append([]Pass(nil), g.passes...)}
}

// Restore makes a gate of what was kept; o.Key, when there is one, replaces the key. A key that is missing or no key is made anew, and
// a pass that can't be one is left out.
func Restore(o Options, s Saved) *Gate {
	if o.Key == "" {
		o.Key = s.Key
	}
	g := New(o)
	if proof.ValidMeshKey(s.MK) {
		g.mesh = s.MK
	}
	for _, p := range s.Passes {
		if proof.ValidDigest(p.Hash) {
			g.keep(p)
		}
	}
	return g
}

func (g *Gate) newPass(name string) string {
	pass := proof.NewPass()
	g.keep(Pass{proof.PassHash(pass), name})
	return pass
}

// keep adds a pass; the oldest goes when there are too many.
func (g *Gate) keep(p Pass) {
	p.Name = cut(p.Name)
	if len(g.passes) >= passesMost {
		delete(g.byID, proof.PassID(g.passes[0].Hash))
		g.passes = g.passes[1:]
	}
	g.passes = append(g.passes, p)
	g.byID[proof.PassID(p.Hash)] = p.Hash
}

// cut leaves nameMost UTF-16 units of a name, and no half of a pair.
func cut(name string) string {
	units := utf16.Encode([]rune(name))
	if len(units) <= nameMost {
		return name
	}
	units = units[:nameMost]
	if last := rune(units[nameMost-1]); utf16.IsSurrogate(last) && last < 0xdc00 {
		units = units[:nameMost-1]
	}
	return string(utf16.Decode(units))
}
