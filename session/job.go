package session

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"pooled/compute"
	"pooled/compute/op"
	"pooled/compute/quant"
	"pooled/compute/token"
)

// engineLoop runs engine jobs one at a time, in the order queued, on the goroutine that calls run.
type engineLoop struct {
	engine Engine
	post   func(any) // result and progress values; never blocks

	mu      sync.Mutex
	queue   []start
	aborted map[uint64]bool // jobs waiting or running that were cancelled
	running uint64
	cancel  context.CancelFunc // of the running job
	wake    chan struct{}

	in []float32 // memory for columns that came as f16
}

func newEngineLoop(e Engine, post func(any)) *engineLoop {
	return &engineLoop{engine: e, post: post, aborted: make(map[uint64]bool), wake: make(chan struct{}, 1)}
}

// add queues a job.
func (l *engineLoop) add(s start) {
	l.mu.Lock()
	l.queue = append(l.queue, s)
	l.mu.Unlock()
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// abort cancels a job. Its result still comes, with an error.
func (l *engineLoop) abort(id uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.running == id {
		l.cancel()
		return
	}
	for _, s := range l.queue {
		if s.id == id {
			l.aborted[id] = true
		}
	}
}

// run works until ctx ends, then frees the engine's layers.
func (l *engineLoop) run(ctx context.Context) {
	defer l.engine.Free()
	for {
		s, jobCtx, ok := l.take(ctx)
		if !ok {
			select {
			case <-l.wake:
				continue
			case <-ctx.Done():
				return
			}
		}
		if ctx.Err() != nil {
			return
		}
		began := time.Now()
		out, err := l.do(jobCtx, s)
		l.finished()
		l.post(result{id: s.id, took: time.Since(began), out: out, err: err})
	}
}

func (l *engineLoop) take(ctx context.Context) (start, context.Context, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.queue) == 0 {
		return start{}, nil, false
	}
	s := l.queue[0]
	l.queue[0] = start{}
	l.queue = l.queue[1:]
	jobCtx, cancel := context.WithCancel(ctx)
	if l.aborted[s.id] {
		delete(l.aborted, s.id)
		cancel()
	}
	l.running, l.cancel = s.id, cancel
	return s, jobCtx, true
}

func (l *engineLoop) finished() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cancel()
	l.running, l.cancel = 0, nil
}

func (l *engineLoop) do(ctx context.Context, s start) (any, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	switch w := s.do.(type) {
	case modelWork:
		return l.engine.Model(ctx, w.key)
	case loadWork:
		return l.load(ctx, s.id, w.spec)
	case freeWork:
		l.engine.Free()
		return nil, nil
	case renderWork:
		return render(ctx, w)
	case embedWork:
		h, err := l.engine.Embed(ctx, w.pos, w.tokens)
		if err != nil {
			return nil, err
		}
		return halves(h, fmt.Sprintf("the host's layers (position %d)", w.pos))
	case soloWork:
		return l.solo(ctx, w)
	case stepWork:
		return l.step(ctx, w)
	case hiddenWork:
		return l.hidden(ctx, w)
	}
	return nil, fmt.Errorf("session: unknown engine job %T", s.do)
}

func (l *engineLoop) load(ctx context.Context, id uint64, spec LoadSpec) (loaded, error) {
	info, err := l.engine.Model(ctx, spec.ModelKey)
	if err != nil {
		return loaded{}, err
	}
	if err := l.engine.Load(ctx, spec, func(pct int) { l.post(progress{id: id, percent: pct}) }); err != nil {
		return loaded{}, err
	}
	out := loaded{info: info, used: l.engine.Used()}
	if spec.Head {
		if out.text.tok, out.text.profile, err = l.engine.Text(); err != nil {
			return loaded{}, err
		}
	}
	return out, nil
}

// solo runs tokens, at most soloCols, through a whole model and draws from the last column's logits if asked.
func (l *engineLoop) solo(ctx context.Context, w soloWork) (drawn, error) {
	if w.draw == nil {
		_, err := l.engine.Embed(ctx, w.pos, w.tokens)
		return drawn{}, err
	}
	top, err := l.engine.EmbedTop(ctx, w.pos, w.tokens, w.draw.candidates())
	if err != nil {
		return drawn{}, err
	}
	return w.draw.pick(top)
}

func (l *engineLoop) step(ctx context.Context, w stepWork) (drawn, error) {
	in, err := l.floats(w.data, w.n)
	if err != nil {
		return drawn{}, err
	}
	width := len(in) / w.n
	top, err := l.engine.Top(ctx, in[(w.n-1)*width:], w.draw.candidates())
	if err != nil {
		return drawn{}, err
	}
	d, err := w.draw.pick(top)
	if err != nil || d.stop || !w.run {
		return d, err
	}
	h, err := l.engine.Embed(ctx, w.pos, []int32{d.token})
	if err != nil {
		return drawn{}, err
	}
	d.next, err = halves(h, fmt.Sprintf("the host's layers (position %d)", w.pos))
	return d, err
}

// hidden runs columns through the layers, prefillCols at a time.
func (l *engineLoop) hidden(ctx context.Context, w hiddenWork) ([]byte, error) {
	in, err := l.floats(w.data, w.n)
	if err != nil {
		return nil, err
	}
	width := len(in) / w.n
	out := make([]byte, len(w.data))
	for at := 0; at < w.n; at += prefillCols {
		k := min(prefillCols, w.n-at)
		h, err := l.engine.Hidden(ctx, w.pos+at, k, in[at*width:(at+k)*width])
		if err != nil {
			return nil, err
		}
		if len(h) != k*width {
			return nil, fmt.Errorf("session: %d values of %d columns of %d", len(h), k, width)
		}
		if err := finite(h, fmt.Sprintf("layers (position %d)", w.pos+at)); err != nil {
			return nil, err
		}
		quant.PutF16Slice(out[2*at*width:2*(at+k)*width], h)
	}
	return out, nil
}

// floats decodes n f16 columns into memory that the next call reuses.
func (l *engineLoop) floats(data []byte, n int) ([]float32, error) {
	count := len(data) / 2
	if n < 1 || len(data) == 0 || len(data)%(2*n) != 0 {
		return nil, fmt.Errorf("session: %d bytes are not %d columns", len(data), n)
	}
	if cap(l.in) < count {
		l.in = make([]float32, count)
	}
	l.in = l.in[:count]
	quant.F16Slice(l.in, data)
	return l.in, finite(l.in, "a hidden state from another device")
}

// halves packs hidden states for the wire.
func halves(h []float32, what string) ([]byte, error) {
	if err := finite(h, what); err != nil {
		return nil, err
	}
	out := make([]byte, 2*len(h))
	quant.PutF16Slice(out, h)
	return out, nil
}

// finite refuses NaN. Infinities pass: half precision rounds large values to them.
func finite(h []float32, what string) error {
	for _, v := range h {
		if math.IsNaN(float64(v)) {
			return fmt.Errorf("%w: %s", op.ErrNotFinite, what)
		}
	}
	return nil
}

// candidates is how many of the best tokens the draw needs.
func (d draw) candidates() int {
	if d.temp <= 0 {
		return 1
	}
	return d.k
}

func (d draw) pick(top []op.Candidate) (drawn, error) {
	if len(top) == 0 {
		return drawn{}, fmt.Errorf("session: no candidates for the next token")
	}
	id := compute.Pick(top, d.temp, d.k, d.r)
	return drawn{token: id, drew: true, stop: d.text.tok.IsStop(id)}, nil
}

// render turns a conversation into tokens, leaving out its oldest exchanges when they don't fit and trim is set.
func render(ctx context.Context, w renderWork) (rendered, error) {
	var out rendered
	for {
		if err := ctx.Err(); err != nil {
			return rendered{}, err
		}
		ids, err := w.text.tok.Segments(nil, w.text.profile.Render(w.chat))
		if err != nil {
			return rendered{}, err
		}
		out.n = len(ids)
		if len(ids) <= w.most {
			out.ids = ids
			return out, nil
		}
		k := oldest(w.chat.Turns)
		if !w.trim || k == 0 {
			return out, nil
		}
		w.chat.Turns = w.chat.Turns[k:]
		out.dropped += k
	}
}

// oldest returns how many turns the first question and its answer are, 0 when only the last question is left.
func oldest(turns []token.Turn) int {
	for i := 1; i < len(turns); i++ {
		if turns[i].Role == "user" {
			return i
		}
	}
	return 0
}
