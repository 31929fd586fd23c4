package wire

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"
)

type stripingCase struct {
	Note     string         `json:"note"`
	Channels int            `json:"channels"`
	Dup      int            `json:"dup_slices"`
	Buffered map[string]int `json:"buffered"`
	Closed   []int          `json:"closed"`
	Words    []int          `json:"frame_words"`
	Sends    [][3]int       `json:"sends"`
	Turn     uint64         `json:"round_robin_after"`
}

// fakeChannels notes what is sent; what is buffered stays as it was set.
type fakeChannels struct {
	buffered []int
	broken   map[int]bool // fail on send
	sends    [][3]int
}

func (c *fakeChannels) Len() int           { return len(c.buffered) }
func (c *fakeChannels) Buffered(i int) int { return c.buffered[i] }
func (c *fakeChannels) Send(i int, b []byte) error {
	if c.broken[i] || c.buffered[i] < 0 {
		return errors.New("channel is gone")
	}
	s, ok := parseSlice(b)
	if !ok || !s.fits() {
		return fmt.Errorf("not a slice: %x", b[:min(len(b), HeaderBytes)])
	}
	c.sends = append(c.sends, [3]int{i, int(s.id), s.index})
	return nil
}

func TestVectorsFramesStriping(t *testing.T) {
	var file framesFile
	vectorFile(t, "frames.json", &file)
	for _, c := range file.Striping.Cases {
		t.Run(c.Note, func(t *testing.T) {
			ch := &fakeChannels{buffered: make([]int, c.Channels)}
			for k, n := range c.Buffered {
				var i int
				if _, err := fmt.Sscan(k, &i); err != nil {
					t.Fatal(err)
				}
				ch.buffered[i] = n
			}
			for _, i := range c.Closed {
				ch.buffered[i] = -1
			}
			s := NewSender(c.Dup)
			for _, words := range c.Words {
				if lost, err := s.Send(&Frame{Data: payload(words, 0)}, ch); lost != 0 || err != nil {
					t.Fatalf("send: %d lost, %v", lost, err)
				}
			}
			if !slices.Equal(ch.sends, c.Sends) {
				t.Errorf("got %v, want %v", ch.sends, c.Sends)
			}
			if s.turn != c.Turn {
				t.Errorf("got turn %d, want %d", s.turn, c.Turn)
			}
		})
	}
}

type scenario struct {
	Note      string         `json:"note"`
	Channels  int            `json:"channels"`
	Unordered bool           `json:"unordered"`
	Words     map[string]int `json:"frame_words"`
	Steps     []struct {
		Do        []any `json:"do"`
		Delivered []int `json:"delivered"`
	} `json:"steps"`
	Skipped  uint64 `json:"skipped"`
	Next     uint64 `json:"next_expected"`
	Timers   int    `json:"timers_left"`
	Partials int    `json:"partials_left"`
}

// bench runs a Receiver on a clock of its own.
type bench struct {
	r         *Receiver
	now, wake time.Time
	delivered []int
}

func newBench(lim Limits) *bench { return &bench{r: NewReceiver(lim), now: time.Unix(1000, 0)} }

func (b *bench) took(out []Frame, wake time.Time) {
	for _, f := range out {
		b.delivered = append(b.delivered, int(f.Pos))
	}
	b.wake = wake
}

// rx delivers slice k of frame id with that many payload bytes; its position is its id.
func (b *bench) rx(ch int, id uint32, k, size int) {
	f := Frame{Pos: id, Data: make([]byte, size)}
	buf := make([]byte, SliceBytes)
	b.took(b.r.Slice(b.now, ch, buf[:f.PutSlice(buf, id, k)]))
}

func (b *bench) wait(d time.Duration) {
	end := b.now.Add(d)
	for !b.wake.IsZero() && !b.wake.After(end) {
		b.now = b.wake
		b.took(b.r.Wake(b.now))
	}
	b.now = end
}

func TestVectorsFramesReceiver(t *testing.T) {
	var file framesFile
	vectorFile(t, "frames.json", &file)
	for _, sc := range file.Receiver.Scenarios {
		t.Run(sc.Note, func(t *testing.T) {
			b := newBench(Limits{})
			for ch := range sc.Channels {
				b.r.Opened(ch, !sc.Unordered)
			}
			for i, step := range sc.Steps {
				arg := func(n int) int {
					if n >= len(step.Do) {
						return 0
					}
					return int(step.Do[n].(float64))
				}
				switch step.Do[0] {
				case "rx":
					words, ok := sc.Words[fmt.Sprint(arg(2))]
					if !ok {
						words = 4
					}
					b.rx(arg(1), uint32(arg(2)), arg(3), 2*words)
				case "close":
					b.took(b.r.Closed(b.now, arg(1)))
				case "wait":
					b.wait(time.Duration(arg(1)) * time.Millisecond)
				default:
					t.Fatalf("step %d: %v", i, step.Do)
				}
				if !slices.Equal(b.delivered, step.Delivered) {
					t.Fatalf("step %d %v: delivered %v, want %v", i, step.Do, b.delivered, step.Delivered)
				}
			}
			timers := 0
			if !b.wake.IsZero() {
				timers = 1
			}
			if st := b.r.Stats(); st.Skipped != sc.Skipped || b.r.next != sc.Next || timers != sc.Timers || len(b.r.partial) != sc.Partials {
				t.Errorf("got %d skipped, next %d, %d timers, %d partials, want %d, %d, %d, %d", st.Skipped, b.r.next, timers,
					len(b.r.partial), sc.Skipped, sc.Next, sc.Timers, sc.Partials)
			}
		})
	}
}
