package invite

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"net/url"
	"strings"
)

const (
	site      = "https://pooled.run/r/"
	keyBytes  = 16
	keyMin    = 22 // characters
	keyMax    = 64
	signalMax = 500 // bytes of a list of signaling servers in a link
	argMax    = 4096
)

// Invite is what a code or an invite link says.
type Invite struct {
	Code   Code
	Key    string // empty when the link has none, or none that is valid: the host is asked then
	Signal string // list of signaling servers, empty for the usual ones
}

// NewKey draws the invite key of a new room.
func NewKey() string {
	var b [keyBytes]byte
	_, _ = rand.Read(b[:]) // never fails
	return keyText(b)
}

func keyText(b [keyBytes]byte) string { return base64.RawURLEncoding.EncodeToString(b[:]) }

// ValidKey reports whether s has the form of an invite key: 22 to 64 characters of A-Z a-z 0-9 _ -.
func ValidKey(s string) bool {
	if len(s) < keyMin || len(s) > keyMax {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if !(c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '_' || c == '-') {
			return false
		}
	}
	return true
}

// Link is the invite link. An invalid key is left out.
func (i Invite) Link() string {
	s := site + string(i.Code)
	if i.Signal != "" {
		// Without dev=0 a signal= link opens the room page in its developer mode.
		s += "?signal=" + url.QueryEscape(i.Signal) + "&dev=0"
	}
	return s + fragment(i.Key)
}

func fragment(key string) string {
	if !ValidKey(key) {
		return ""
	}
	return "#k=" + key
}

// Parse reads a room as it is given on the command line: a code, or a link to a room, also without its https://.
//
// Of a link the first of these that is there is the code, and must be one: what follows /r/ or /room/ in the path, the
// query's code=, a bare word in the fragment; with none of them the last part of the path is tried. Quotes around the
// argument are taken off.
func Parse(arg string) (Invite, error) {
	arg = unquote(strings.TrimSpace(arg))
	switch {
	case arg == "":
		return Invite{}, ErrEmpty
	case len(arg) > argMax:
		return Invite{}, fmt.Errorf("%q: %w: %d characters", shown(arg), ErrNotLink, len(arg))
	case bareLink(arg):
		arg = "https://" + arg
	case !strings.Contains(arg, "://"):
		code, err := ParseCode(arg)
		return Invite{Code: code}, err
	}
	u, err := url.Parse(arg)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		// The parser's own error repeats the whole argument, key included.
		return Invite{}, fmt.Errorf("%q: %w", shown(arg), ErrNotLink)
	}
	query := u.Query()
	code, err := linkCode(u, query)
	if err != nil {
		return Invite{}, fmt.Errorf("%q: %w", shown(arg), err)
	}
	signal := query.Get("signal")
	if len(signal) > signalMax || strings.ContainsFunc(signal, isControl) {
		return Invite{}, fmt.Errorf("%q: %w: its signal= is not a list of servers", shown(arg), ErrNotLink)
	}
	return Invite{Code: code, Key: keyOf(u.EscapedFragment()), Signal: signal}, nil
}

// bareLink reports whether arg is a link without its scheme, as narrow screens show it: a path behind something that
// can only be a host.
func bareLink(arg string) bool {
	host, _, ok := strings.Cut(arg, "/")
	return ok && (host == "localhost" || strings.Contains(host, ".") || strings.Contains(host, ":")) && !strings.Contains(arg, "://")
}

// linkCode finds the code of a link.
func linkCode(u *url.URL, query url.Values) (Code, error) {
	parts := strings.FieldsFunc(u.Path, func(r rune) bool { return r == '/' })
	for i, p := range parts[:max(0, len(parts)-1)] {
		if p == "r" || p == "room" {
			return ParseCode(parts[i+1])
		}
	}
	if c := strings.TrimSpace(query.Get("code")); c != "" {
		return ParseCode(c)
	}
	for part := range strings.SplitSeq(u.Fragment, "&") {
		if part != "" && !strings.Contains(part, "=") {
			if code, err := ParseCode(part); err == nil {
				return code, nil
			}
		}
	}
	if len(parts) > 0 {
		if code, err := ParseCode(parts[len(parts)-1]); err == nil {
			return code, nil
		}
	}
	return "", ErrNoCode
}

// keyOf finds the key in a fragment, with or without its #: the part named k, up to a second =.
func keyOf(fragment string) string {
	for part := range strings.SplitSeq(strings.TrimPrefix(fragment, "#"), "&") {
		name, value, _ := strings.Cut(part, "=")
		if name != "k" {
			continue
		}
		if value, _, _ = strings.Cut(value, "="); ValidKey(value) {
			return value
		}
		return ""
	}
	return ""
}

// unquote takes off one pair of quotes, which a shell may have left.
func unquote(s string) string {
	if len(s) >= 2 && (s[0] == '"' || s[0] == '\'') && s[len(s)-1] == s[0] {
		return strings.TrimSpace(s[1 : len(s)-1])
	}
	return s
}
