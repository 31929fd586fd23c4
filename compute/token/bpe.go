package token

// pair is a left and a right token id in one key.
type pair uint64

func pairOf(left, right int32) pair { return pair(uint64(uint32(left))<<32 | uint64(uint32(right))) }

// merge is what a pair becomes. Lower ranks merge first.
type merge struct {
	rank, id int32
}

// symbol is one token of the piece being merged, in a list linked by index; -1 ends the list.
type symbol struct {
	prev, next int
	id         int32 // -1: merged into the symbol on its left
}

// candidate is a pair that could be merged. It is out of date when the symbols at its place are
// not these two any more.
type candidate struct {
	left int // index of the left symbol
	pair pair
	to   merge
}

// before orders candidates: lowest rank, then leftmost.
func (c candidate) before(d candidate) bool {
	return c.to.rank < d.to.rank || c.to.rank == d.to.rank && c.left < d.left
}

// merger merges one piece at a time and keeps its memory for the next.
//
// A list of symbols and a heap of candidates: n bytes make at most n-1 candidates at the start and
// each of at most n-1 merges adds at most two, so the work is O(n log n). Looking at all pairs again
// after every merge takes quadratic time, seconds for a word of 32,768 letters.
type merger struct {
	syms             []symbol
	heap             []candidate
	pushes, compares int // candidates and their comparisons, of the last piece: what the work is
}

// append merges a piece of at least one byte and appends its ids.
func (m *merger) append(dst []int32, t *Tokenizer, piece string) []int32 {
	m.syms, m.heap, m.pushes, m.compares = m.syms[:0], m.heap[:0], 0, 0
	for i := range len(piece) {
		m.syms = append(m.syms, symbol{prev: i - 1, next: i + 1, id: t.byteID[piece[i]]})
	}
	m.syms[len(piece)-1].next = -1
	for i := range len(piece) - 1 {
		m.offer(t, i)
	}
	for len(m.heap) > 0 {
		c := m.pop()
		l := &m.syms[c.left]
		if l.id < 0 || l.next < 0 || pairOf(l.id, m.syms[l.next].id) != c.pair {
			continue
		}
		r := &m.syms[l.next]
		l.id, r.id = c.to.id, -1
		l.next = r.next
		if l.next >= 0 {
			m.syms[l.next].prev = c.left
			m.offer(t, c.left)
		}
		if l.prev >= 0 {
			m.offer(t, l.prev)
		}
	}
	for i := 0; i >= 0; i = m.syms[i].next {
		dst = append(dst, m.syms[i].id)
	}
	return dst
}

// offer pushes the pair that starts at symbol i, if it merges. The symbol has a right neighbour.
func (m *merger) offer(t *Tokenizer, i int) {
	p := pairOf(m.syms[i].id, m.syms[m.syms[i].next].id)
	to, ok := t.merges[p]
	if !ok {
		return
	}
	m.pushes++
	c := candidate{left: i, pair: p, to: to}
	m.heap = append(m.heap, c)
	at := len(m.heap) - 1
	for at > 0 {
		up := (at - 1) / 2
		m.compares++
		if !c.before(m.heap[up]) {
			break
		}
		m.heap[at] = m.heap[up]
		at = up
	}
	m.heap[at] = c
}

// pop removes the first candidate.
func (m *merger) pop() candidate {
	top := m.heap[0]
	n := len(m.heap) - 1
	c := m.heap[n]
	m.heap = m.heap[:n]
	if n == 0 {
		return top
	}
	at := 0
	for {
		down := 2*at + 1
		if down >= n {
			break
		}
		m.compares += 2
		if down+1 < n && m.heap[down+1].before(m.heap[down]) {
			down++
		}
		if !m.heap[down].before(c) {
			break
		}
		m.heap[at] = m.heap[down]
		at = down
	}
	m.heap[at] = c
	return top
}
