package token

import "unicode/utf8"

// A vocabulary spells bytes as printable code points: 33-126, 161-172 and 174-255 stand for
// themselves, the other 68 bytes, in increasing order, are U+0100, U+0101, ... (spec engine.md 2.2).

// firstMapped is the code point of the first byte that doesn't stand for itself.
const firstMapped = 0x100

// lastMapped is the code point of the last one: 256 bytes, 188 of them stand for themselves.
const lastMapped = firstMapped + 256 - 188 - 1

// runeOf is the code point of each byte, byteOf the byte of each code point, -1 for none.
var runeOf, byteOf = byteTables()

func byteTables() (runes [256]rune, bytes [lastMapped + 1]int16) {
	for i := range bytes {
		bytes[i] = -1
	}
	next := rune(firstMapped)
	for b := range runes {
		r := rune(b)
		if !standsForItself(b) {
			r = next
			next++
		}
		runes[b] = r
		bytes[r] = int16(b)
	}
	return runes, bytes
}

func standsForItself(b int) bool {
	return b >= 33 && b <= 126 || b >= 161 && b <= 172 || b >= 174
}

// appendUnmapped appends the bytes that a token's spelling stands for. A code point that stands for
// no byte is appended as it is.
func appendUnmapped(dst []byte, spelling string) []byte {
	for i := 0; i < len(spelling); {
		r, n := utf8.DecodeRuneInString(spelling[i:])
		if r <= lastMapped && byteOf[r] >= 0 {
			dst = append(dst, byte(byteOf[r]))
		} else {
			dst = append(dst, spelling[i:i+n]...)
		}
		i += n
	}
	return dst
}
