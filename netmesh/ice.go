package netmesh

import (
	"fmt"

	"github.com/pion/ice/v4"
	"github.com/pion/logging"
	"github.com/pion/webrtc/v4"
)

// stunServers are the ones every peer of the product asks (spec wire.md 8).
var stunServers = []string{"stun:stun.l.google.com:19302", "stun:stun1.l.google.com:19302"}

// newAPI sets the WebRTC library up: ICE times near Chromium's, names of browsers' candidates looked up, channels
// detached so that their readers are ours, and its log lines sent to log.
func newAPI(cfg Config, t tuning) (*webrtc.API, webrtc.Configuration) {
	se := webrtc.SettingEngine{LoggerFactory: logFactory{cfg.Log}}
	se.DetachDataChannels()
	se.SetICETimeouts(t.iceDisconnected, t.iceFailed, 2e9)
	se.SetICEMulticastDNSMode(ice.MulticastDNSModeQueryOnly)
	se.SetNetworkTypes([]webrtc.NetworkType{webrtc.NetworkTypeUDP4, webrtc.NetworkTypeUDP6})
	se.SetSCTPMaxMessageSize(maxRead)
	se.SetIncludeLoopbackCandidate(cfg.Loopback)
	if t.setting != nil {
		t.setting(&se)
	}
	var rtc webrtc.Configuration
	if !cfg.Loopback {
		rtc.ICEServers = []webrtc.ICEServer{{URLs: stunServers}}
	}
	return webrtc.NewAPI(webrtc.WithSettingEngine(se)), rtc
}

// logFactory passes the library's errors on and drops the rest: it warns of much that is ordinary, such as interfaces
// without multicast. It must never print.
type logFactory struct{ log func(string) }

// NewLogger returns the logger of one part of the library.
func (f logFactory) NewLogger(scope string) logging.LeveledLogger { return logger{f.log, scope} }

type logger struct {
	log   func(string)
	scope string
}

func (logger) Trace(string)          {}
func (logger) Tracef(string, ...any) {}
func (logger) Debug(string)          {}
func (logger) Debugf(string, ...any) {}
func (logger) Info(string)           {}
func (logger) Infof(string, ...any)  {}
func (logger) Warn(string)           {}
func (logger) Warnf(string, ...any)  {}
func (l logger) Error(msg string)    { l.log("webrtc " + l.scope + ": " + msg) }
func (l logger) Errorf(format string, args ...any) {
	l.Error(fmt.Sprintf(format, args...))
}
