package session

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"pooled/compute/op"
	"pooled/netmesh"
	"pooled/netmesh/wire"
)

// script feeds a core inputs one second apart and writes down what comes out.
type script struct {
	t  *testing.T
	c  *core
	at time.Time
}

func newScript(t *testing.T, o Options) *script {
	o.Code, o.Name = "4TKG9P", "me"
	s := &script{t: t, c: newCore(o, op.Info{Name: "GPU"}), at: time.Unix(1000, 0)}
	return s
}

// feed gives one input; it returns events and effects as short words, in order.
func (s *script) feed(msg any) []string {
	s.t.Helper()
	s.at = s.at.Add(time.Second)
	events, effects := s.c.handle(input{at: s.at, msg: msg})
	var got []string
	for _, e := range effects {
		got = append(got, effectWord(e))
	}
	for _, e := range events {
		got = append(got, e.EventName())
	}
	return got
}

func effectWord(e effect) string {
	switch e := e.(type) {
	case send:
		return fmt.Sprintf("send %s %v", e.to, e.msg["t"])
	case sendFrame:
		return fmt.Sprintf("frame %s kind %d pos %d n %d reset %v", e.to, e.frame.Kind, e.frame.Pos, e.frame.N, e.frame.Reset)
	case dial:
		return "dial " + string(e.peer)
	case hang:
		return "hang " + string(e.peer)
	case start:
		return "job " + strings.TrimPrefix(fmt.Sprintf("%T", e.do), "session.")
	case abort:
		return "abort"
	case silence:
		return fmt.Sprintf("silence %s %s", e.peer, e.limit)
	case busy:
		return fmt.Sprintf("busy %v", e.on)
	case timer:
		return fmt.Sprintf("timer %s %s", e.name, e.d)
	}
	return strings.TrimPrefix(fmt.Sprintf("%T", e), "session.")
}

// expect feeds and compares.
func (s *script) expect(name string, msg any, want ...string) {
	s.t.Helper()
	if got := s.feed(msg); len(got)+len(want) > 0 && !reflect.DeepEqual(got, want) {
		s.t.Errorf("%s:\n got %q\nwant %q", name, got, want)
	}
}

func message(from PeerID, t string, f map[string]any) netmesh.Message {
	m := map[string]any{"t": t}
	for k, v := range f {
		m[k] = v
	}
	return netmesh.Message{Peer: from, Msg: m}
}

const theHost = PeerID("pooled-room-4TKG9P")

func TestReducerWorker(t *testing.T) {
	info := ModelInfo{Key: "toy", Layers: 8, Width: 2, LayerBytes: 100, KVBytes: 1, CtxMax: 512}
	s := newScript(t, Options{Role: Worker, PledgeBytes: 1 << 20})
	s.expect("begin", begin{self: "w"}, "timer greet 20s", "silence "+string(theHost)+" 30s", "dial "+string(theHost))
	s.expect("link", netmesh.LinkUp{Peer: theHost, Dialed: true}, "send "+string(theHost)+" hello")
	s.expect("frame before anything", netmesh.FrameIn{Peer: theHost})
	s.expect("order before the greeting", message(theHost, "ai-load", nil))
	s.expect("greeting", message(theHost, "hello", map[string]any{"v": int64(4), "name": "host"}),
		"timer hello "+string(theHost)+" 0s", "timer greet 0s", "room.opened", "peer.joined")
	s.expect("order", message(theHost, "ai-load", map[string]any{"v": int64(4), "model": "toy", "range": []any{int64(3), int64(8)},
		"ctx": int64(64), "next": "host"}), "busy true", "job modelWork")
	s.expect("header", result{id: s.c.jobs, out: info}, "job loadWork")
	s.expect("progress", progress{id: s.c.jobs, percent: 40}, "send "+string(theHost)+" ai-progress", "load.progress")
	s.expect("the same progress", progress{id: s.c.jobs, percent: 40})
	s.expect("frame before it is ready", netmesh.FrameIn{Peer: theHost, Frame: wire.Frame{N: 1, Data: make([]byte, 4)}})
	s.expect("loaded", result{id: s.c.jobs, out: loaded{used: 7}}, "send "+string(theHost)+" ai-progress",
		"send "+string(theHost)+" ai-ready", "load.progress", "peer.ready")

	// From a frame's arrival to the next one's departure: one job, one result, nothing else.
	frame := func(pos uint32, n int, kind wire.Kind) netmesh.FrameIn {
		return netmesh.FrameIn{Peer: theHost, Frame: wire.Frame{Kind: kind, Pos: pos, N: n, Reset: pos == 0, Spec: true,
			Drop: []uint16{5}, Data: make([]byte, 4*n)}}
	}
	s.expect("batch", frame(0, 3, wire.HiddenB), "job hiddenWork")
	first := s.c.jobs
	s.expect("token behind it", frame(3, 1, wire.Hidden), "job hiddenWork")
	s.expect("result of another job", result{id: 999, out: []byte{1, 2, 3, 4}})
	s.expect("batch done", result{id: first, out: make([]byte, 12)}, "frame "+string(theHost)+" kind 3 pos 0 n 3 reset false")
	s.expect("token done", result{id: first + 1, out: make([]byte, 4)}, "frame "+string(theHost)+" kind 2 pos 3 n 1 reset false")
	s.expect("gap", frame(9, 1, wire.Hidden), "send "+string(theHost)+" ai-error")
	s.expect("returned kinds are the host's", frame(4, 1, wire.HiddenRet))
	if got := s.c.snapshot().Passes; got != 2 {
		t.Errorf("%d passes, want 2", got)
	}
}

func TestReducerWorkerInTheMiddleKeepsTheControl(t *testing.T) {
	s := newScript(t, Options{Role: Worker, PledgeBytes: 1 << 20})
	s.feed(begin{self: "w"})
	s.feed(netmesh.LinkUp{Peer: theHost})
	s.feed(message(theHost, "hello", map[string]any{"v": int64(4), "name": "host"}))
	s.expect("order", message(theHost, "ai-load", map[string]any{"v": int64(4), "model": "toy", "range": []any{int64(3), int64(5)},
		"ctx": int64(64), "next": "z"}), "busy true", "job modelWork", "dial z", "timer next 1m0s")
	s.feed(result{id: s.c.jobs, out: ModelInfo{Key: "toy", Layers: 8, Width: 2, LayerBytes: 100, CtxMax: 512}})
	s.expect("loaded, the next device isn't linked", result{id: s.c.jobs, out: loaded{}}, "send "+string(theHost)+" ai-progress",
		"load.progress")
	s.expect("the dial failed", netmesh.DialFailed{Peer: "z", Err: netmesh.ErrNoPeer}, "timer redial 2s")
	s.expect("again", alarm{"redial"}, "dial z")
	s.expect("linked", netmesh.LinkUp{Peer: "z", Dialed: true}, "send z hello", "timer hello z 10s", "timer next 0s",
		"timer redial 0s", "send "+string(theHost)+" ai-ready", "peer.ready")
	f := wire.Frame{Kind: wire.HiddenB, N: 2, Spec: true, Reset: true, Rollback: 3, Save: 9, Drop: []uint16{5}, Data: make([]byte, 8)}
	s.feed(netmesh.FrameIn{Peer: theHost, Frame: f})
	_, effects := s.c.handle(input{at: s.at, msg: result{id: s.c.jobs, out: []byte("12345678")}})
	want := f
	want.Data = []byte("12345678")
	if got := effects[0].(sendFrame); got.to != "z" || !reflect.DeepEqual(*got.frame, want) {
		t.Errorf("sent %+v, want %+v", *got.frame, want)
	}
	s.expect("the frame could not leave", unsent{peer: "z", err: netmesh.ErrClosed}, "send "+string(theHost)+" ai-error")
	s.expect("the next device is gone", netmesh.LinkDown{Peer: "z", Why: "x"}, "timer hello z 0s", "dial z", "timer next 1m0s", "notice")
}

func TestReducerHostDecodeLap(t *testing.T) {
	s := onlineHost(t)
	h := s.c.role.(*host)
	s.expect("asked", command{do: verbAsk, text: "q", answer: make(chan error, 1)}, "job renderWork")
	ids := make([]int32, 7)
	s.expect("rendered", result{id: s.c.jobs, out: rendered{ids: ids, n: 7}}, "send w ai-genstart", "job embedWork", "answer.started")
	s.expect("first frame", result{id: s.c.jobs, out: make([]byte, 4*4)}, "frame w kind 1 pos 0 n 4 reset true", "timer lap 1m30s", "job embedWork")
	for pos := 4; pos < 6; pos++ {
		s.feed(result{id: s.c.jobs, out: make([]byte, 4)})
	}
	s.expect("last of the prompt", result{id: s.c.jobs, out: make([]byte, 4)}, "frame w kind 0 pos 6 n 1 reset false")
	back := func(kind wire.Kind, pos, n int) netmesh.FrameIn {
		return netmesh.FrameIn{Peer: "w", Frame: wire.Frame{Kind: kind, Pos: uint32(pos), N: n, Data: make([]byte, 4*n)}}
	}
	s.expect("a return out of turn", back(wire.HiddenRet, 6, 1))
	s.expect("returns", back(wire.HiddenRetB, 0, 4))
	s.expect("returns", back(wire.HiddenRet, 4, 1))
	s.expect("returns", back(wire.HiddenRet, 5, 1))
	s.expect("the same again", back(wire.HiddenRet, 5, 1))
	s.expect("the last one goes to the head", back(wire.HiddenRet, 6, 1), "job stepWork")

	// One lap of decoding: the frame leaves first, then the text is told.
	s.expect("token", result{id: s.c.jobs, took: 5 * time.Millisecond, out: drawn{token: 'a', drew: true, next: make([]byte, 4)}},
		"frame w kind 0 pos 7 n 1 reset false", "send w ai-token", "answer.text")
	s.expect("back", back(wire.HiddenRet, 7, 1), "job stepWork", "lap")
	if lap := s.c.snapshot().Lap; lap.TotalMs != 1005 || lap.HostMs != 5 || lap.Hops != 2 {
		t.Errorf("measured %+v", lap)
	}
	s.expect("the turn ends", result{id: s.c.jobs, out: drawn{token: 2, drew: true, stop: true}}, "send w ai-gendone", "answer.done")
	if len(h.gen.fed) != 8 || h.gen.cur != nil {
		t.Errorf("the caches hold %d tokens, want 8", len(h.gen.fed))
	}
	s.expect("late alarm", alarm{"lap"})

	// A prompt that goes on where the caches end is read from there only.
	s.feed(command{do: verbAsk, text: "q2", answer: make(chan error, 1)})
	next := append(append([]int32{}, h.gen.fed...), 9, 9)
	s.feed(result{id: s.c.jobs, out: rendered{ids: next, n: 10}})
	s.expect("resumed", result{id: s.c.jobs, out: make([]byte, 4)}, "frame w kind 0 pos 8 n 1 reset false", "timer lap 30s", "job embedWork")
	if got := s.c.st.Answer; got == nil || h.gen.cur.reused != 8 {
		t.Errorf("reused %d, want 8", h.gen.cur.reused)
	}
	s.at = s.at.Add(40 * time.Second)
	s.expect("too late", alarm{"lap"}, "send w ai-gendone", "answer.done")
	if chat := s.c.snapshot().Chat; chat[len(chat)-1].Err != "pipeline timeout (prompt token): a device in the room stopped answering" {
		t.Errorf("failed with %q", chat[len(chat)-1].Err)
	}
	// What is still on its way is waited for before the next prompt is sent.
	s.feed(command{do: verbAsk, text: "q3", answer: make(chan error, 1)})
	s.expect("waits for ghosts", result{id: s.c.jobs, out: rendered{ids: ids, n: 7}}, "send w ai-genstart", "timer drain 2s", "answer.started")
	s.expect("the ghost", back(wire.HiddenRet, 8, 1), "timer drain 0s", "job embedWork")
}

// onlineHost is a host with layers 0-3 of 8 and one worker, online.
func onlineHost(t *testing.T) *script {
	t.Helper()
	s := newScript(t, Options{Role: Host, ModelKey: "toy", PledgeBytes: 4 * 100, MaxTokens: 50})
	s.expect("begin", begin{self: theHost}, "job modelWork")
	s.feed(result{id: s.c.jobs, out: ModelInfo{Key: "toy", Label: "Toy", Layers: 8, Width: 2, LayerBytes: 100, CtxDefault: 256, CtxMax: 256}})
	s.expect("signaling", netmesh.SignalUp{Server: "x"}, "signal.changed", "room.opened")
	s.expect("link", netmesh.LinkUp{Peer: "w"}, "send w hello", "timer hello w 10s")
	s.expect("hello", message("w", "hello", map[string]any{"v": int64(4), "name": "w", "meta": map[string]any{"webgpu": true,
		"contribGB": 1.0}}), "timer hello w 0s", "send w roster", "send w ai-wait", "peer.joined")
	s.expect("start", command{do: verbStart, answer: make(chan error, 1)}, "busy true", "silence w 45s", "send w ai-load", "send w ai-layers", "job loadWork",
		"timer hostprog 600ms", "deal.made")
	own := s.c.jobs
	s.expect("progress for all", alarm{"hostprog"}, "send w ai-hostprog", "timer hostprog 600ms")
	s.expect("ready", message("w", "ai-ready", nil), "peer.ready")
	tok := toyTokenizer(t)
	s.expect("loaded", result{id: own, out: loaded{text: text{tok: tok}}}, "timer hostprog 0s", "silence w 12s", "busy false", "send w ai-ready-all",
		"load.progress", "peer.ready", "room.online")
	return s
}

func TestReducerHostLosesItsWorker(t *testing.T) {
	s := onlineHost(t)
	s.feed(command{do: verbAsk, text: "q", answer: make(chan error, 1)})
	s.feed(result{id: s.c.jobs, out: rendered{ids: make([]int32, 7), n: 7}})
	job := s.c.jobs
	s.expect("gone", netmesh.LinkDown{Peer: "w", Why: "x"}, "timer hello w 0s", "silence w 0s", "peer.left", "answer.done", "room.degraded", "notice", "notice")
	s.expect("what the engine still did", result{id: job, out: make([]byte, 16)})
	s.expect("a frame of the past", netmesh.FrameIn{Peer: "w", Frame: wire.Frame{Kind: wire.HiddenRetB, N: 4, Data: make([]byte, 16)}})
	answer := make(chan error, 1)
	s.feed(command{do: verbRedeal, answer: answer})
	if err := <-answer; err == nil || AsProblem(err).Code != "short" {
		t.Errorf("re-deal without enough: %v", err)
	}
	if st := s.c.snapshot(); st.Phase != Waiting || st.Deal != nil {
		t.Errorf("%s, deal %v", st.Phase, st.Deal)
	}
	s.expect("close", command{do: verbClose, answer: answer}, "end", "room.closed")
	<-answer
	s.feed(command{do: verbStart, answer: answer})
	if err := <-answer; !errors.Is(err, ErrClosed) {
		t.Errorf("after the end: %v", err)
	}
}
