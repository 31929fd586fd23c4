package signal

import (
	"encoding/json"
	"testing"
)

// FuzzDecode: whatever a server or a client sends is refused, or can be passed on and read again.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{
		`{"type":"OFFER","src":"a","dst":"b","payload":{"sdp":{"type":"offer","sdp":"v=0"},"connectionId":"dc_1"}}`,
		`{"type":"ERROR","payload":{"msg":"no"}}`, `{"type":"ID-TAKEN","payload":[]}`, `{"type":"EXPIRE","src":"x"}`,
		`{"type":7}`, `null`, `{"type":"","payload":"\ud800"}`, "{\"type\":\"A\",\"payload\":\"\u2028\"}",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := decode(b)
		if err != nil {
			return
		}
		if m.Type == "" || len(m.Src) > maxID || len(m.Dst) > maxID {
			t.Errorf("let through: %+v", m)
		}
		if err := m.refusal(); err != nil && len(err.Error()) > 2000 {
			t.Errorf("a reason of %d bytes", len(err.Error()))
		}
		again, err := json.Marshal(m)
		if err != nil {
			t.Fatalf("can't be passed on: %v", err)
		}
		if n, err := decode(again); err != nil || n.Type != m.Type || n.Dst != m.Dst {
			t.Errorf("passed on as %s: %v", again, err)
		}
	})
}
