package invite

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
)

// Lengths of names, in UTF-16 units as the room page counts.
const (
	NameLen     = 40
	baseLen     = 36 // of a name that gets a number
	fallbackLen = 8
)

// CleanName is a device's name as every receiver makes it: without control characters and < > " ' ` &, trimmed, cut to
// 40 UTF-16 units (spec room.md 1.1). If nothing is left it is the first 8 of fallback, the peer's id; of a peer that
// sent no name at all the id is its name.
func CleanName(name, fallback string) string {
	if s := clean(name, NameLen); s != "" {
		return s
	}
	return clean(fallback, fallbackLen)
}

func clean(s string, units int) string {
	s = strings.Map(func(r rune) rune {
		if isControl(r) || strings.ContainsRune("<>\"'`&", r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
	return cutUnits(strings.TrimFunc(s, isSpace), units)
}

// UniqueName is name, or when it is among taken, the first free one of "name 2", "name 3" ... with the name cut to 36
// UTF-16 units. taken are the names of the host and of all other members.
func UniqueName(name string, taken []string) string {
	if !slices.Contains(taken, name) {
		return name
	}
	base := cutUnits(name, baseLen)
	for n := 2; ; n++ {
		if s := base + " " + strconv.Itoa(n); !slices.Contains(taken, s) {
			return s
		}
	}
}

const nameLetters = "abcdefghjkmnpqrstvwxyz"

// DeviceName is what a device is called that was given no name: a prefix for the system (goos as in runtime.GOOS) and
// three letters made from the hostname, the same on every run (spec cli.md 2.1). The hostname can't be told from it.
func DeviceName(hostname, goos string) string {
	h := uint32(2166136261)
	for _, r := range hostname {
		h = (h ^ uint32(r)) * 16777619
	}
	name := "node-"
	switch goos {
	case "darwin":
		name = "mac-"
	case "linux":
		name = "linux-"
	case "windows":
		name = "pc-"
	}
	n := uint32(len(nameLetters))
	for range 3 {
		name += string(nameLetters[h%n])
		h /= n
	}
	return name
}

// cutUnits cuts s to at most n UTF-16 units, between characters.
func cutUnits(s string, n int) string {
	for i, r := range s {
		if n -= utf16.RuneLen(r); n < 0 {
			return s[:i]
		}
	}
	return s
}

// isControl: also the controls above DEL, which a terminal may obey too.
func isControl(r rune) bool { return r < 0x20 || r >= 0x7f && r <= 0x9f }

// isSpace is the white space that the room page trims.
func isSpace(r rune) bool {
	switch r {
	case '\t', '\n', '\v', '\f', '\r', ' ', 0xa0, 0x1680, 0x2028, 0x2029, 0x202f, 0x205f, 0x3000, 0xfeff:
		return true
	}
	return r >= 0x2000 && r <= 0x200a
}
