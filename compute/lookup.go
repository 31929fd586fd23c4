package compute

import "slices"

// Bounds of Lookup (spec room.md 5.6).
const (
	lookupLongest  = 4
	lookupShortest = 2
	lookupBack     = 16384
)

// Lookup proposes up to k tokens that may follow context, whose last token is the one about to be verified: those that
// followed the most recent earlier copy of its last 4 tokens, else 3, else 2. It looks back 16,384 tokens.
func Lookup(context []int32, k int) []int32 {
	first := max(0, len(context)-lookupBack)
	for n := lookupLongest; n >= lookupShortest; n-- {
		end := len(context) - n
		for at := end - 1; at >= first; at-- {
			if slices.Equal(context[at:at+n], context[end:]) {
				return context[at+n : min(at+n+max(k, 0), len(context))]
			}
		}
	}
	return nil
}
