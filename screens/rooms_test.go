package screens_test

import (
	"slices"

	"pooled/screens/screenstest"
	"pooled/session"
)

const gb = 1 << 30

// room is an online room of two devices, seen by the host.
func room() session.State {
	return session.State{
		Role: session.Host, Phase: session.Online, Code: "FEA-Q38", Server: "127.0.0.1:9000", SignalUp: true,
		Self: "h1", SelfName: "spark-host", HostName: "spark-host",
		Model:  session.Model{Key: "qwen3-1.7b", Label: "Qwen3 1.7B · Q8", Layers: 28},
		Device: session.Device{GPU: "NVIDIA GB10", Backend: "Vulkan", PledgeBytes: 2 * gb, UsedBytes: gb / 2},
		Peers: []session.Peer{
			{ID: "h1", Name: "spark-host", Kind: session.KindComputer, GPU: "NVIDIA GB10", PledgeBytes: 2 * gb, Self: true,
				Host: true, Lo: 0, Hi: 6, Ready: true},
			{ID: "j2", Name: "spark-join2", Kind: session.KindComputer, GPU: "RTX 5070", PledgeBytes: 6 * gb, Lo: 6, Hi: 28,
				Ready: true, RTTms: 8, Path: "direct"},
		},
		Deal: &session.Deal{Epoch: 1, Ctx: 16384, Shares: []session.Share{
			{Peer: "h1", Name: "spark-host", Lo: 0, Hi: 6, Held: 400 << 20},
			{Peer: "j2", Name: "spark-join2", Lo: 6, Hi: 28, Held: 1300 << 20}}},
		Log: []session.LogLine{
			{At: screenstest.At, Level: session.Info, Text: "spark-join2 is in the room"},
			{At: screenstest.At.Add(3e9), Level: session.Info, Text: "spark-join2 holds layers 6-27 (1.3 GB in 3.5 s)"}},
		TokPerSec: 56.4, Lap: &session.Lap{TotalMs: 10.4, HostMs: 9.5, Hops: 2},
		Context:  session.Context{Used: 1204, Max: 16384},
		OpenedAt: screenstest.At.Add(-800e9), OnlineAt: screenstest.At.Add(-723e9),
		Chat: []session.Exchange{{ID: 1, Asker: "h1", Name: "spark-host",
			Question: "Name the largest planet in our solar system. One sentence.",
			Text:     "The largest planet in our solar system is Jupiter.", Done: true, Reason: session.DoneStop,
			Stats: session.Stats{Tokens: 10, PromptTokens: 24, FirstSec: 0.21, PerSec: 56.7}}},
	}
}

// running gives the room an answer that is being written.
func running(text, thinking string) func(*session.State) {
	return func(st *session.State) {
		st.Answering = true
		st.Answer = &session.Exchange{ID: 2, Asker: st.Self, Name: st.SelfName, Question: "Why?", Text: text,
			Thinking: thinking}
	}
}

// done finishes the running answer.
func done(reason session.DoneReason, stats session.Stats) func(*session.State) {
	return func(st *session.State) {
		e := *st.Answer
		e.Done, e.Reason, e.Stats = true, reason, stats
		st.Chat = append(slices.Clone(st.Chat), e)
		st.Answer, st.Answering = nil, false
	}
}

func asker() session.State {
	st := room()
	st.Role, st.Self, st.SelfName, st.HostName = session.Asker, "a3", "pooled chat k3xz", "spark-host"
	st.Peers = append(st.Peers, session.Peer{ID: "a3", Name: "pooled chat k3xz", Kind: session.KindAPI, Self: true})
	st.Peers[0].Self = false
	st.Chat, st.Log, st.Deal, st.Device = nil, nil, nil, session.Device{}
	return st
}

func worker() session.State {
	st := room()
	st.Role, st.Self, st.SelfName = session.Worker, "j2", "spark-join2"
	st.Peers[0].Self, st.Peers[0].RTTms, st.Peers[0].Path = false, 8, "direct"
	st.Peers[1].Self, st.Peers[1].RTTms, st.Peers[1].Path = true, 0, ""
	st.Device = session.Device{GPU: "RTX 5070", Backend: "Vulkan", PledgeBytes: 6 * gb, UsedBytes: 1300 << 20,
		PledgeWhy: "11.3 GB free, less 1.5 GB, rounded down"}
	st.Chat, st.Passes, st.Lap = nil, 390, nil
	return st
}
