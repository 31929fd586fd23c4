package compute

// Bounds of Lookup (spec room.md 5.6).
const (
	lookupLongest  = 4
	lookupShortest = 2
	lookupBack     = 16384
)

// Lookup proposes up to k tokens that may follow context, whose last token is the one about to be verified: those that
// followed the most recent earlier copy of its last 4 tokens, else 3, else 2. It looks back 16,384 tokens, once, because it is asked
// for every token.
func Lookup(context []int32, k int) []int32 {
	first, end := max(0, len(context)-lookupBack), len(context)
	if end == 0 {
		return nil
	}
	last, best, length := context[end-1], 0, lookupShortest-1
	for at := end - 2; at >= first && length < lookupLongest; at-- {
		if context[at] != last {
			continue
		}
		n := 1
		for n < lookupLongest && at-n >= first && context[at-n] == context[end-1-n] {
			n++
		}
		if n > length {
			best, length = at+1, n
		}
	}
	if length < lookupShortest {
		return nil
	}
	return context[best:min(best+max(k, 0), end)]
}
