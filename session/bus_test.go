package session

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"testing/synctest"
	"time"
)

func publish(b *Bus, evs ...Event) { b.Publish(time.Unix(1, 0), &State{}, evs...) }

// drain returns what waits, as text.
func drain(s *Subscription) []string {
	var got []string
	for {
		e, ok := s.TryNext()
		if !ok {
			return got
		}
		got = append(got, fmt.Sprintf("%d %s", e.Seq, e.Event.EventName()))
	}
}

func TestBusKeepsTheOrder(t *testing.T) {
	b := NewBus(&State{})
	publish(b, RoomOnline{})
	early, st := b.Subscribe("early")
	if st.Seq != 1 {
		t.Errorf("snapshot at %d, want 1", st.Seq)
	}
	publish(b, Notice{}, AnswerText{}, AnswerText{})
	late, st := b.Subscribe("late")
	publish(b, PeerLeft{})
	if st.Seq != 4 || b.Snapshot().Seq != 5 {
		t.Errorf("snapshots at %d and %d, want 4 and 5", st.Seq, b.Snapshot().Seq)
	}
	for _, c := range []struct {
		s    *Subscription
		want []string
	}{
		{early, []string{"2 notice", "3 answer.text", "4 answer.text", "5 peer.left"}},
		{late, []string{"5 peer.left"}},
	} {
		if got := drain(c.s); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s saw %v, want %v", c.s.Name(), got, c.want)
		}
	}
}

func TestBusLatestWinsPerKey(t *testing.T) {
	b := NewBus(&State{})
	s, _ := b.Subscribe("slow")
	publish(b, Lap{TotalMs: 1}, LoadProgress{Peer: "a", Percent: 1}, Notice{}, Lap{TotalMs: 2},
		LoadProgress{Peer: "b", Percent: 5}, LoadProgress{Peer: "a", Percent: 9}, LinkRTT{Peer: "a"}, RoomOnline{})
	want := []string{"3 notice", "4 lap", "5 load.progress", "6 load.progress", "7 link.rtt", "8 room.online"}
	if got := drain(s); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	for i := range 100_000 {
		publish(b, Lap{TotalMs: float64(i)})
	}
	if got := drain(s); len(got) != 1 {
		t.Errorf("%d laps waited, want the newest only", len(got))
	}
}

func TestBusOverflowIsOneLaggedThenResync(t *testing.T) {
	b := NewBus(&State{})
	slow, _ := b.Subscribe("slow")
	fast, _ := b.Subscribe("fast")
	for range QueueCap + 10 {
		publish(b, Lap{}, AnswerText{})
		if n := len(drain(fast)); n != 2 {
			t.Fatalf("the fast one saw %d events", n)
		}
	}
	e, ok := slow.TryNext()
	if !ok || e.Event != (Lagged{N: QueueCap}) {
		t.Fatalf("got %+v, want one Lagged of %d", e, QueueCap)
	}
	st := slow.Resync()
	if st.Seq != 2*(QueueCap+10) {
		t.Errorf("resynchronized at %d", st.Seq)
	}
	publish(b, Notice{}, RoomClosed{})
	if got, want := drain(slow), []string{fmt.Sprintf("%d notice", st.Seq+1), fmt.Sprintf("%d room.closed", st.Seq+2)}; !reflect.DeepEqual(got, want) {
		t.Errorf("after it: %v, want %v", got, want)
	}
}

func TestBusWithoutResyncGoesOnAfterTheGap(t *testing.T) {
	b := NewBus(&State{})
	s, _ := b.Subscribe("careless")
	for range QueueCap + 2 {
		publish(b, AnswerText{})
	}
	want := []string{fmt.Sprintf("%d lagged", QueueCap), fmt.Sprintf("%d answer.text", QueueCap+1), fmt.Sprintf("%d answer.text", QueueCap+2)}
	if got := drain(s); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestBusNextWaitsAndEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBus(&State{})
		s, _ := b.Subscribe("waiting")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := s.Next(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("nothing to see: %v", err)
		}
		go publish(b, Notice{Text: "x"}, RoomClosed{})
		if e, err := s.Next(t.Context()); err != nil || e.Event != (Notice{Text: "x"}) {
			t.Errorf("got %+v, %v", e, err)
		}
		other, _ := b.Subscribe("other")
		b.Close()
		if e, err := s.Next(t.Context()); err != nil || e.Event.EventName() != "room.closed" {
			t.Errorf("what waited before the end: %+v, %v", e, err)
		}
		for range 2 {
			if _, err := s.Next(t.Context()); !errors.Is(err, ErrBusClosed) {
				t.Errorf("after the end: %v", err)
			}
		}
		other.Close()
		other.Close()
		if _, err := other.Next(t.Context()); !errors.Is(err, ErrSubscriptionClosed) {
			t.Errorf("after Close: %v", err)
		}
		if late, _ := b.Subscribe("late"); true {
			if _, err := late.Next(t.Context()); !errors.Is(err, ErrBusClosed) {
				t.Errorf("subscribed after the end: %v", err)
			}
		}
	})
}
