package session

import (
	"math"
	"runtime"

	"pooled/compute/op"
	"pooled/session/deal"
)

// meta is what a device says of itself in its hello (spec room.md 1.2).
type meta struct {
	ua     string
	webgpu bool
	phone  bool
	gpu    string
	native string
	client string // API clients
	api    int    // hosts: the newest kind of API ask; API clients: 1
	ctx    int    // hosts
	model  string // hosts

	contribGB, pledgeMax, maxBufGB, maxBindMB, gbps float64 // 0 unknown
}

// nativeWord is what this program puts in meta.native.
const nativeWord = "pooled-go"

// maxPledgeGB bounds what one device may pledge (spec room.md 3.1).
const maxPledgeGB = 64

func readMeta(f fields) meta {
	m := meta{
		ua:     f.line("ua", 20),
		webgpu: f.flag("webgpu"),
		phone:  f.flag("phone"),
		gpu:    f.line("gpu", maxLabel),
		native: f.line("native", 20),
		client: f.line("client", maxName),
		model:  f.id("model"),
	}
	m.api, _ = f.whole("api", 1, 1000)
	m.ctx, _ = f.whole("ctx", 1, 1<<24)
	for key, to := range map[string]*float64{"contribGB": &m.contribGB, "pledgeMax": &m.pledgeMax,
		"maxBufGB": &m.maxBufGB, "maxBindMB": &m.maxBindMB, "gbps": &m.gbps} {
		if n, ok := f.num(key); ok && n > 0 {
			*to = min(n, 1<<20)
		}
	}
	return m
}

// wire returns the meta as others in the room are told it: never api, ctx and model, which only a host's own hello has.
func (m meta) wire() map[string]any {
	if m.isAPI() {
		return map[string]any{"api": 1, "webgpu": false, "ua": "API", "client": m.client}
	}
	w := map[string]any{"ua": m.ua, "webgpu": m.webgpu}
	for key, s := range map[string]string{"gpu": m.gpu, "native": m.native} {
		if s != "" {
			w[key] = s
		}
	}
	for key, n := range map[string]float64{"contribGB": m.contribGB, "pledgeMax": m.pledgeMax, "maxBufGB": m.maxBufGB,
		"maxBindMB": m.maxBindMB, "gbps": m.gbps} {
		if n > 0 {
			w[key] = n
		}
	}
	if m.phone {
		w["phone"] = true
	}
	return w
}

// isAPI tells an API client from a host, whose own hello has api as well.
func (m meta) isAPI() bool { return m.api > 0 && !m.webgpu }

// kind says what sort of device this is.
func (m meta) kind() Kind {
	switch {
	case m.isAPI():
		return KindAPI
	case m.ua == "iPhone" || m.ua == "Android":
		return KindPhone
	case m.ua == "iPad" || m.ua == "Android tablet":
		return KindTablet
	case m.phone:
		return KindPhone
	case m.native != "":
		return KindComputer
	}
	return KindBrowser
}

// isPhone says whether the deal treats it as a phone.
func (m meta) isPhone() bool { return m.phone || m.kind() == KindPhone }

// pledgeGB is the pledge as a host counts it (spec room.md 3.1); most is the host's own cap for this device, 0 none.
func (m meta) pledgeGB(most float64) float64 {
	said := m.contribGB
	if said <= 0 {
		said = m.maxBufGB / 2
	}
	if said <= 0 {
		said = 0.5
	}
	limit := float64(maxPledgeGB)
	if k := m.kind(); k == KindPhone || k == KindTablet {
		limit = 1
	}
	said = min(said, limit)
	if m.pledgeMax > 0 {
		said = min(said, m.pledgeMax)
	}
	if most > 0 {
		said = min(said, most)
	}
	return said
}

// pledgeBytes is pledgeGB in bytes.
func (m meta) pledgeBytes() int64 {
	if !m.webgpu {
		return 0
	}
	return int64(math.Round(m.pledgeGB(0) * deal.GB))
}

// ownMeta is what this device says of itself.
func ownMeta(o Options, d op.Info) meta {
	if o.Role == Asker {
		return meta{ua: "API", api: 1, client: o.Name}
	}
	m := meta{ua: "Device", webgpu: true, gpu: cleanLine(d.Name, maxLabel), native: nativeWord,
		contribGB: pledgeGBof(o.PledgeBytes), maxBufGB: pledgeGBof(d.MaxBuffer), maxBindMB: float64(d.MaxBinding) / (1 << 20)}
	if runtime.GOOS == "darwin" {
		m.ua = "Mac"
	}
	return m
}
