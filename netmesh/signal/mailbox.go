package signal

import "time"

// Bounds of what waits for ids that are not registered.
const (
	maxMailboxes   = 20000
	maxWaiting     = 64       // messages for one id
	maxWaitingSize = 16 << 20 // bytes of all payloads together
)

// mailbox is what waits for one id that is not registered yet.
type mailbox struct {
	since time.Time
	msgs  []Message
}

// mailboxes are the queues by destination. Their owner locks.
type mailboxes struct {
	box   map[string]*mailbox
	count int // messages
	bytes int // of payloads
}

// pair is a sender that waited for a destination in vain.
type pair struct{ src, dst string }

// add queues m; false means there is no room for it.
func (q *mailboxes) add(m Message, now time.Time) bool {
	b := q.box[m.Dst]
	if b == nil {
		if len(q.box) >= maxMailboxes {
			return false
		}
		b = &mailbox{since: now}
		q.box[m.Dst] = b
	}
	if len(b.msgs) >= maxWaiting || q.bytes+len(m.Payload) > maxWaitingSize {
		if len(b.msgs) == 0 {
			delete(q.box, m.Dst)
		}
		return false
	}
	b.msgs = append(b.msgs, m)
	q.count++
	q.bytes += len(m.Payload)
	return true
}

// take removes and returns what waits for dst, in order.
func (q *mailboxes) take(dst string) []Message {
	b := q.box[dst]
	if b == nil {
		return nil
	}
	delete(q.box, dst)
	q.count -= len(b.msgs)
	for _, m := range b.msgs {
		q.bytes -= len(m.Payload)
	}
	return b.msgs
}

// expire removes the queues begun at or before limit and returns each sender once per destination.
func (q *mailboxes) expire(limit time.Time) []pair {
	var out []pair
	for dst, b := range q.box {
		if b.since.After(limit) {
			continue
		}
		seen := map[string]bool{}
		for _, m := range q.take(dst) {
			if !seen[m.Src] {
				seen[m.Src] = true
				out = append(out, pair{m.Src, dst})
			}
		}
	}
	return out
}
