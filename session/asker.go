package session

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"pooled/netmesh"
)

// asker is the role of an API client: it keeps a conversation of its own and sends the whole of it with each question.
type asker struct {
	guest
	system string
	think  bool
	past   []exchange
	asked  *question // sent, not done
	count  int
}

// exchange is a finished question with the model's own text.
type exchange struct{ question, answer string }

// question is on its way or being answered.
type question struct {
	rid, text string
	started   bool
	stopping  bool
	answer    strings.Builder
}

func newAsker(c *core) *asker {
	return &asker{guest: guest{core: c}, system: c.opts.System, think: c.opts.Think}
}

func (a *asker) linked(p *peer) {
	if p.id != a.host {
		a.hang(p, "this client takes no links")
		return
	}
	a.greet(p, a.me.wire())
}

func (a *asker) hello(p *peer, h msgHello) {
	if p.id != a.host {
		return
	}
	if h.meta.api < 1 {
		a.close("the host is too old", &Problem{Code: "host-old", What: "the host takes no API clients",
			Why: "it is from before they were invented", Do: "ask the host to update or reload", Exit: ExitFailed})
		return
	}
	a.hostHello(p, h)
	if a.opts.WaitModel > 0 && a.st.Phase != Online {
		a.timer("model", a.opts.WaitModel)
	}
}

func (a *asker) gone(p *peer, why string, leaving bool) { a.guest.gone(p, why, leaving) }

func (a *asker) frame(*peer, netmesh.FrameIn) {}
func (a *asker) unsent(PeerID, error)         {}
func (a *asker) done(result)                  {}
func (a *asker) loading(progress)             {}

func (a *asker) alarm(name string) {
	if a.guest.alarm(name) || name != "model" || a.st.Phase == Online {
		return
	}
	a.close("no model", &Problem{Code: "no-model", What: fmt.Sprintf("no model was started in room %s", a.st.Code),
		Why: fmt.Sprintf("waited %s for it", a.opts.WaitModel.Round(time.Second)),
		Do:  "start the model at the host, or wait longer with --wait", Exit: ExitFailed})
}

func (a *asker) message(p *peer, msg any) {
	switch m := msg.(type) {
	case msgWait:
		a.phase(Waiting)
	case msgReadyAll:
		a.timer("model", 0)
		a.guest.online(m, Online)
	case msgStartFailed:
		a.st.Deal = nil
		a.phase(Waiting)
		a.noticeOf(p, Error, "start", "the start failed: "+m.why)
	case msgRedeal:
		a.guest.message(m)
		a.phase(Waiting)
	case msgReset: // the room's chat is not this client's
	case msgDegraded:
		a.degraded(m.why)
	case msgGenStart:
		if q := a.asked; q != nil && m.rid == q.rid && !q.started {
			q.started = true
			a.genStart(m, q.text)
		}
	case msgToken:
		if q := a.asked; q != nil && m.rid == q.rid && q.started {
			if a.token(m); !m.reasoning {
				q.answer.WriteString(m.text)
			}
			if a.tokens > a.most()+16 || a.tooMuch() {
				a.stop()
				a.settle(DoneFailed, moreThanAsked)
			}
		}
	case msgGenDone:
		a.genDone(m)
	case msgBusy:
		a.busy(m)
	default:
		a.guest.message(msg)
	}
}

func (a *asker) genDone(m msgGenDone) {
	q := a.asked
	if q == nil || m.rid != q.rid {
		return
	}
	if !q.started { // an answer without a start: make one, so that every done has its started
		a.genStart(msgGenStart{rid: m.rid, asker: a.self, name: a.name, api: true}, q.text)
	}
	a.file()
	a.guest.genDone(m)
}

// file ends the question; an answer that stayed empty takes it out of the conversation.
func (a *asker) file() {
	q := a.asked
	a.asked = nil
	if strings.TrimSpace(q.answer.String()) != "" {
		a.past = append(a.past, exchange{q.text, q.answer.String()})
	}
}

// settle ends the running question from this side.
func (a *asker) settle(reason DoneReason, why string) {
	if a.asked == nil {
		return
	}
	a.file()
	a.finish(reason, why, Stats{Tokens: a.tokens, PromptTokens: a.prompt, ReusedTokens: a.reused})
}

func (a *asker) busy(m msgBusy) {
	q := a.asked
	if q == nil || m.rid != q.rid {
		return
	}
	if q.started {
		a.settle(DoneFailed, m.why)
		return
	}
	a.asked = nil
	code := m.code
	switch code {
	case "queue", "ctx", "bad", "off", "degraded", "loading", "gone":
	default:
		code = "bad"
	}
	why := m.why
	if code == "ctx" && m.n > 0 {
		why = fmt.Sprintf("the conversation is %d tokens, the room takes %d: clear it to start over", m.n, m.max)
	}
	if why == "" {
		why = "the host gave no reason"
	}
	a.emit(AskRefused{Code: code, Why: why})
}

func (a *asker) command(c command) error {
	switch c.do {
	case verbAsk:
		return a.ask(c.text)
	case verbStop:
		if a.asked == nil {
			return ErrNothingRunning
		}
		a.stop()
	case verbClear:
		if a.asked != nil {
			return ErrAnswering
		}
		a.past = nil
		a.st.Chat = nil
		a.notice(Info, "clear", "new conversation")
	case verbThinking:
		a.think = c.on
	default:
		return ErrNotHost
	}
	return nil
}

func (a *asker) most() int {
	if a.opts.MaxTokens > 0 {
		return min(a.opts.MaxTokens, apiMaxTokens)
	}
	return 8192
}

// ask sends the conversation with a new question.
func (a *asker) ask(text string) error {
	switch {
	case a.asked != nil:
		return ErrAnswering
	case a.st.Phase == Degraded:
		return ErrDegraded
	case a.st.Phase != Online:
		return ErrNotOnline
	}
	var messages []any
	add := func(role, text string) { messages = append(messages, map[string]any{"role": role, "text": text}) }
	for _, x := range a.past {
		add("user", x.question)
		add("assistant", x.answer)
	}
	add("user", text)
	for len(messages) > apiMessages { // the oldest exchange first
		messages = messages[2:]
	}
	a.count++
	a.asked = &question{rid: "q" + strconv.Itoa(a.count), text: text}
	params := map[string]any{"maxTokens": a.most(), "thinking": a.think, "client": "pooled"}
	if a.opts.Temp >= 0 {
		params["temperature"] = min(a.opts.Temp, 2)
	}
	m := map[string]any{"api": 1, "rid": a.asked.rid, "messages": messages, "params": params}
	if a.system != "" {
		m["system"] = a.system
	}
	a.send(a.host, "ai-ask", m)
	return nil
}

func (a *asker) stop() {
	if !a.asked.stopping {
		a.asked.stopping = true
		a.send(a.host, "ai-stop", map[string]any{"rid": a.asked.rid})
	}
}

func (a *asker) closing(reason string) { a.settle(DoneFailed, reason) }
