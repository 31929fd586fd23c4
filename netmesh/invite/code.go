// Package invite is what rooms and devices are called: room codes, invite links, and the names of devices (spec wire.md
// 1, room.md 1.1-1.2, cli.md 2). It is pure but for the random bytes of a new code or key.
//
// A code is 6 (older rooms: 4) of 30 characters that can't be mistaken for one another; it finds a room but does not
// open it. The key, 16 random bytes as 22 characters of base64url, lets a device in without asking. It travels only in
// the fragment of a link, never to a server, and is never part of an error.
//
//	https://pooled.run/r/4TKG9P?signal=...&dev=0#k=AAECAwQFBgcICQoLDA0ODw
//	                     code   signaling server   key
package invite

import (
	"crypto/rand"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Alphabet is the characters of a code: no I, L, O, U, 0, 1.
const Alphabet = "ABCDEFGHJKMNPQRSTVWXYZ23456789"

const (
	codeLen    = 6 // of new rooms
	codeLenOld = 4
	hostPrefix = "pooled-room-"
	argShown   = 60 // characters of an argument in an error
)

// Code is a room code: 6 or 4 characters of Alphabet, without a dash.
type Code string

// NewCode draws the code of a new room.
func NewCode() Code {
	return drawCode(codeLen, func(b []byte) { _, _ = rand.Read(b) }) // rand.Read never fails
}

// drawCode takes characters from draws of 2n bytes. Bytes from 240 on are skipped, so that every character is as
// likely; what is left of a draw is thrown away.
func drawCode(n int, read func([]byte)) Code {
	out := make([]byte, 0, n)
	draw := make([]byte, 2*n)
	for len(out) < n {
		read(draw)
		for _, b := range draw {
			if int(b) < 240 && len(out) < n {
				out = append(out, Alphabet[int(b)%len(Alphabet)])
			}
		}
	}
	return Code(out)
}

// ParseCode reads a code as a person types it: letter case, white space, dashes, underscores and dots don't matter.
func ParseCode(s string) (Code, error) {
	var code []byte
	for _, r := range s {
		switch {
		case unicode.IsSpace(r) || r == '-' || r == '_' || r == '.' || r == '\uFEFF':
			continue
		case r >= 'a' && r <= 'z':
			r -= 'a' - 'A'
		}
		if r >= utf8.RuneSelf || strings.IndexByte(Alphabet, byte(r)) < 0 {
			return "", notCode(s, fmt.Sprintf("no code has %q", r))
		}
		if len(code) <= codeLen {
			code = append(code, byte(r))
		}
	}
	switch {
	case len(code) == 0:
		return "", ErrEmpty
	case len(code) != codeLen && len(code) != codeLenOld:
		return "", notCode(s, fmt.Sprintf("a code has %d characters", codeLen))
	}
	return Code(code), nil
}

func notCode(s, why string) error {
	return fmt.Errorf("%q: %w (%s; one looks like 4TK-G9P)", shown(s), ErrNotCode, why)
}

// shown is an argument as errors show it: nothing from where a key may be, and not too long.
func shown(arg string) string {
	arg, _, _ = strings.Cut(arg, "#")
	arg, _, _ = strings.Cut(arg, "k=")
	n := 0
	for i := range arg {
		if n == argShown-1 && utf8.RuneCountInString(arg[i:]) > 1 {
			return arg[:i] + "…"
		}
		n++
	}
	return arg
}

// Shown is the code as people read it, ABC-DEF; only codes of six are split.
func (c Code) Shown() string {
	if len(c) != codeLen {
		return string(c)
	}
	return string(c[:codeLen/2]) + "-" + string(c[codeLen/2:])
}

// HostID is the id under which the room's host is registered at the signaling server.
func (c Code) HostID() string { return hostPrefix + string(c) }
