package session

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"pooled/netmesh/invite"
)

// protocol is the room protocol's version (hello's v).
const protocol = 4

// maxMembers bounds a room, the host included.
const maxMembers = 64

// who may send a message.
type who uint8

const (
	anyone   who = iota // whoever is linked
	member              // a peer whose hello was accepted
	fromHost            // the room's host; the host itself never takes these
	chained             // a device of the running deal; only the host takes these
)

// Bits of the roles that take a message.
const (
	toHost = 1 << iota
	toWorker
	toAsker
	toGuests = toWorker | toAsker
	toAll    = toHost | toGuests
)

var roleBit = map[Role]int{Host: toHost, Worker: toWorker, Asker: toAsker}

// rule says who takes a message from whom and how it is read. read returns nil for one that is to be ignored.
type rule struct {
	to   int
	from who
	read func(fields) any
}

// rules lists every message that is understood (spec room.md 1.1). All others are ignored.
var rules = map[string]rule{
	"hello":  {toAll, anyone, readHello},
	"bye":    {toAll, anyone, readBye},
	"pledge": {toHost, member, readPledge},

	"roster":          {toGuests, fromHost, readRoster},
	"ai-wait":         {toGuests, fromHost, func(fields) any { return msgWait{} }},
	"ai-layers":       {toGuests, fromHost, readLayers},
	"ai-out":          {toGuests, fromHost, func(f fields) any { return msgOut{readOut(f.object("out"))} }},
	"ai-ready-all":    {toGuests, fromHost, readReadyAll},
	"ai-hostprog":     {toGuests, fromHost, readHostProg},
	"ai-start-failed": {toGuests, fromHost, func(f fields) any { return msgStartFailed{f.line("why", maxReason)} }},
	"ai-redeal":       {toGuests, fromHost, func(f fields) any { return msgRedeal{f.line("by", maxName)} }},
	"ai-degraded":     {toGuests, fromHost, func(f fields) any { return msgDegraded{f.line("why", maxReason)} }},
	"ai-reset":        {toGuests, fromHost, func(f fields) any { return msgReset{f.line("by", maxName)} }},
	"ai-genstart":     {toGuests, fromHost, readGenStart},
	"ai-token":        {toGuests, fromHost, readToken},
	"ai-gendone":      {toGuests, fromHost, readGenDone},
	"ai-load":         {toWorker, fromHost, readLoad},
	"ai-inv-req":      {toWorker, fromHost, func(f fields) any { return msgInvReq{f.raw("url", 2000)} }},
	"ai-busy":         {toAsker, fromHost, readBusy},

	"ai-ready":    {toHost, chained, func(fields) any { return msgReady{} }},
	"ai-error":    {toHost, chained, func(f fields) any { return msgError{f.line("message", maxReason), f.flag("load")} }},
	"ai-progress": {toHost, chained, readProgress},
	"ai-ask":      {toHost, member, readAsk},
	"ai-stop":     {toHost, member, func(f fields) any { return msgStop{f.id("rid")} }},
}

type (
	msgHello struct {
		name    string
		version int // -1: not a whole number
		meta    meta
	}
	msgBye struct {
		reason string
		closed bool
	}
	msgPledge struct{ gb float64 }
	msgRoster struct{ members []listed }
	listed    struct {
		id   PeerID
		name string
		meta meta
	}
	msgWait   struct{}
	msgLayers struct {
		by   map[string][2]int // name to [lo, hi)
		held map[string]float64
		out  map[string]Out
	}
	msgOut      struct{ out map[string]Out }
	msgReadyAll struct {
		model, label string
		ctx          int
	}
	msgHostProg    struct{ all map[string]int }
	msgStartFailed struct{ why string }
	msgRedeal      struct{ by string }
	msgDegraded    struct{ why string }
	msgReset       struct{ by string }
	msgLoad        struct {
		version int
		model   string
		lo, hi  int // 0, 0 when they make no sense
		ctx     int
		next    PeerID // "host" for the host
		offload bool
	}
	msgInvReq   struct{ url string }
	msgReady    struct{}
	msgProgress struct{ percent int }
	msgError    struct {
		message string
		load    bool
	}
	msgStop     struct{ rid string }
	msgGenStart struct {
		rid                    string
		name, text             string
		asker                  PeerID
		mid                    int
		api, hidden, continued bool
		promptTokens, reused   int
	}
	msgToken struct {
		rid, text string
		reasoning bool
	}
	msgGenDone struct {
		rid            string
		reason, err    string
		stats          string
		used, max      int
		out, in        int
		reused         int
		failed, capped bool
		api            bool
		perSec         float64
	}
	msgBusy struct {
		rid, code, why string
		n, max         int
	}
)

func readHello(f fields) any {
	h := msgHello{name: f.raw("name", 4*maxName), version: 1, meta: readMeta(f.object("meta"))}
	if v, there := f["v"]; there && v != nil {
		n, ok := wholeOf(v, 0, 999_999)
		if h.version = n; !ok {
			h.version = -1
		}
	}
	return h
}

func readBye(f fields) any { return msgBye{f.line("reason", maxReason), f.flag("closed")} }

func readPledge(f fields) any {
	gb, ok := f.num("gb")
	if !ok || gb < 0 {
		return nil
	}
	return msgPledge{min(gb, maxPledgeGB)}
}

func readRoster(f fields) any {
	var r msgRoster
	seen := make(map[PeerID]bool)
	for _, e := range f.list("members", 2*maxMembers) {
		m, _ := e.(map[string]any)
		id := PeerID(fields(m).id("id"))
		if id == "" || seen[id] {
			continue
		}
		seen[id] = true
		r.members = append(r.members, listed{
			id:   id,
			name: invite.CleanName(fields(m).raw("name", 4*maxName), fallbackName(id)),
			meta: readMeta(fields(m).object("meta")),
		})
	}
	return r
}

// fallbackName is what a peer without a name is called (spec room.md 1.1).
func fallbackName(id PeerID) string { return string(id[:min(8, len(id))]) }

// span is "lo–hi", both ends inclusive (spec room.md 4.3).
var span = regexp.MustCompile(`^(\d{1,4})[\x{2013}-](\d{1,4})$`)

// spanText writes layers [lo, hi).
func spanText(lo, hi int) string { return fmt.Sprintf("%d\u2013%d", lo, hi-1) }

func readLayers(f fields) any {
	l := msgLayers{by: make(map[string][2]int), held: make(map[string]float64), out: readOut(f.object("out"))}
	for name, v := range f.object("by") {
		text, _ := v.(string)
		m := span.FindStringSubmatch(text)
		if m == nil || len(l.by) >= 2*maxMembers {
			continue
		}
		lo, _ := strconv.Atoi(m[1])
		hi, _ := strconv.Atoi(m[2])
		if lo <= hi {
			l.by[invite.CleanName(name, "")] = [2]int{lo, hi + 1}
		}
	}
	for name, v := range f.object("held") {
		if gb, ok := number(v); ok && gb >= 0 && gb < 1<<20 && len(l.held) < 2*maxMembers {
			l.held[invite.CleanName(name, "")] = gb
		}
	}
	return l
}

func readOut(f fields) map[string]Out {
	out := make(map[string]Out)
	for name, v := range f {
		why, _ := v.(string)
		switch o := Out(why); o {
		case OutUnneeded, OutSmall, OutLate:
			if len(out) < 2*maxMembers {
				out[invite.CleanName(name, "")] = o
			}
		}
	}
	return out
}

func readReadyAll(f fields) any {
	ctx, _ := f.whole("ctx", 1, 1<<24)
	return msgReadyAll{model: f.id("model"), label: f.line("label", maxLabel), ctx: ctx}
}

func readHostProg(f fields) any {
	p := msgHostProg{all: make(map[string]int)}
	for name, v := range f.object("all") {
		if pct, ok := wholeOf(v, 0, 100); ok && len(p.all) < 2*maxMembers {
			p.all[invite.CleanName(name, "")] = pct
		}
	}
	return p
}

func readLoad(f fields) any {
	l := msgLoad{version: 1, model: f.id("model"), next: PeerID(f.id("next"))}
	l.version, _ = f.whole("v", 0, 999_999)
	l.ctx, _ = f.whole("ctx", 1, 1<<24)
	l.offload = f["offload"] != nil
	if r := f.list("range", 3); len(r) == 2 {
		lo, okLo := wholeOf(r[0], 0, 9999)
		hi, okHi := wholeOf(r[1], 1, 10000)
		if okLo && okHi && lo < hi {
			l.lo, l.hi = lo, hi
		}
	}
	return l
}

func readProgress(f fields) any {
	pct, ok := f.whole("pct", 0, 100)
	if !ok {
		return nil
	}
	return msgProgress{pct}
}

func readGenStart(f fields) any {
	m := msgGenStart{rid: f.id("rid"), name: f.line("name", 3*maxName), asker: PeerID(f.id("asker")),
		text: cleanText(f.raw("text", maxAsk)), api: f.flag("api"), hidden: f.flag("hidden"), continued: f.flag("cont")}
	m.mid, _ = f.whole("mid", 0, 1<<31)
	m.promptTokens, _ = f.whole("promptTokens", 0, 1<<24)
	m.reused, _ = f.whole("reused", 0, 1<<24)
	return m
}

func readToken(f fields) any {
	return msgToken{rid: f.id("rid"), text: f.raw("text", maxPiece), reasoning: f.flag("th")}
}

var perSecond = regexp.MustCompile(`(\d{1,7}(?:\.\d{1,6})?) tok/s`)

func readGenDone(f fields) any {
	m := msgGenDone{rid: f.id("rid"), reason: f.id("reason"), err: f.line("err", maxReason), stats: f.line("stats", maxLine),
		failed: f.flag("failed"), capped: f.flag("capped"), api: f.flag("api")}
	m.used, _ = f.object("ctx").whole("used", 0, 1<<24)
	m.max, _ = f.object("ctx").whole("max", 0, 1<<24)
	m.in, _ = f.object("usage").whole("in", 0, 1<<24)
	m.out, _ = f.object("usage").whole("out", 0, 1<<24)
	m.reused, _ = f.whole("reused", 0, 1<<24)
	if hit := perSecond.FindStringSubmatch(m.stats); hit != nil {
		m.perSec, _ = strconv.ParseFloat(hit[1], 64)
	}
	return m
}

func readBusy(f fields) any {
	b := msgBusy{rid: f.id("rid"), code: strings.ToLower(f.id("code")), why: f.line("why", maxReason)}
	b.n, _ = f.whole("n", 0, 1<<31)
	b.max, _ = f.whole("max", 0, 1<<31)
	return b
}
