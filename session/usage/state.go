package usage

import "pooled/session"

// Of is what the status line tells of a room's state.
func Of(st *session.State) Status {
	s := Status{
		Code: st.Code, Phase: string(st.Phase), Host: st.Role == session.Host, Answering: st.Answering,
		LoadPct: st.LoadPct, Model: st.Model.Key, PerSec: st.TokPerSec, Passes: st.Passes,
		SignalDown: !st.SignalUp && st.Phase != session.Connecting,
	}
	for _, p := range st.Peers {
		if p.Kind != session.KindAPI {
			s.Devices++
		}
		if p.Self {
			s.Lo, s.Hi, s.Head = p.Lo, p.Hi, p.Host && p.Hi > p.Lo
			s.Unneeded, s.Small = p.Out == session.OutUnneeded, p.Out == session.OutSmall
		}
	}
	return s
}
