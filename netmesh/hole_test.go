package netmesh

import (
	"net"
	"sync/atomic"
	"testing"

	"github.com/pion/transport/v5"
	"github.com/pion/transport/v5/stdnet"
	"github.com/pion/webrtc/v4"
)

// hole is a network that can be switched off: everything sent and received vanishes, as when a cable is pulled.
type hole struct {
	transport.Net
	off atomic.Bool
}

func newHole(t *testing.T) *hole {
	t.Helper()
	n, err := stdnet.NewNet()
	if err != nil {
		t.Fatal(err)
	}
	return &hole{Net: n}
}

func (h *hole) use(_ *Config, tune *tuning) {
	tune.setting = func(se *webrtc.SettingEngine) { se.SetNet(h) }
}

func (h *hole) ListenUDP(network string, addr *net.UDPAddr) (transport.UDPConn, error) {
	c, err := h.Net.ListenUDP(network, addr)
	if err != nil {
		return nil, err
	}
	return &holeConn{c, h}, nil
}

type holeConn struct {
	transport.UDPConn
	h *hole
}

func (c *holeConn) WriteTo(b []byte, a net.Addr) (int, error) {
	if c.h.off.Load() {
		return len(b), nil
	}
	return c.UDPConn.WriteTo(b, a)
}

func (c *holeConn) ReadFrom(b []byte) (int, net.Addr, error) {
	for {
		n, a, err := c.UDPConn.ReadFrom(b)
		if err != nil || !c.h.off.Load() {
			return n, a, err
		}
	}
}
