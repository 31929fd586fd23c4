package token

import (
	"slices"
	"strings"
	"sync"
)

const (
	maxCachedBytes = 64   // longer pieces are merged each time
	maxGeneration  = 8192 // pieces in one generation
)

// cache remembers the ids of recent pieces in two generations: when the young one is full it becomes
// the old one, and what is not asked for again is forgotten with it.
type cache struct {
	mu         sync.Mutex
	young, old map[string][]int32
}

// append appends the ids of a piece that is remembered.
func (c *cache) append(dst []int32, piece string) ([]int32, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	ids, ok := c.young[piece]
	if !ok {
		if ids, ok = c.old[piece]; !ok {
			return dst, false
		}
		c.put(strings.Clone(piece), ids) // the caller's piece may be a slice of a long text
	}
	return append(dst, ids...), true
}

// add remembers a piece. The ids and the text are copied.
func (c *cache) add(piece string, ids []int32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.put(strings.Clone(piece), slices.Clone(ids))
}

func (c *cache) put(piece string, ids []int32) {
	if c.young == nil || len(c.young) >= maxGeneration {
		c.old, c.young = c.young, make(map[string][]int32)
	}
	c.young[piece] = ids
}
