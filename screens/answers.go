package screens

import (
	"fmt"
	"strings"

	"pooled/session"
	"pooled/session/usage"
	"pooled/widgets"
)

// note is a line of this page's own in the transcript: the answer to a chat command, a refusal.
type note struct {
	id    int64
	after int // ID of the exchange it stands after
	text  widgets.Text
	bad   bool
}

// maxNotes is the most notes a page keeps.
const maxNotes = 50

// chatView is what a page knows beyond the state to show a chat.
type chatView struct {
	notes   []note
	asked   string // put, not taken by the host yet
	lastNum int64
}

// say adds a note after the newest exchange.
func (v *chatView) say(st *session.State, bad bool, text widgets.Text) {
	after := 0
	if n := len(st.Chat); n > 0 {
		after = st.Chat[n-1].ID
	}
	if st.Answer != nil {
		after = max(after, st.Answer.ID)
	}
	v.lastNum++
	v.notes = append(v.notes, note{-v.lastNum, after, text, bad})
	if n := len(v.notes); n > maxNotes {
		v.notes = v.notes[n-maxNotes:]
	}
}

// chatEntries is the transcript.
func chatEntries(st *session.State, v *chatView) []widgets.Entry {
	var out []widgets.Entry
	notes := v.notes
	noted := func(before int) {
		for len(notes) > 0 && (before < 0 || notes[0].after < before) {
			role := widgets.Dim
			if notes[0].bad {
				role = widgets.Bad
			}
			out = append(out, widgets.Entry{ID: notes[0].id, Text: notes[0].text, TextRole: role})
			notes = notes[1:]
		}
	}
	for i := range st.Chat {
		noted(st.Chat[i].ID)
		out = append(out, exchangeEntries(st, &st.Chat[i])...)
	}
	if st.Answer != nil {
		noted(st.Answer.ID)
		out = append(out, exchangeEntries(st, st.Answer)...)
	}
	noted(-1)
	if v.asked != "" {
		out = append(out, widgets.Entry{ID: 1 << 62, Who: "you", WhoRole: widgets.Strong,
			Text: widgets.SafeLines(v.asked, widgets.MaxAnswer), Foot: "waiting for the room", FootRole: widgets.Dim})
	}
	return out
}

// exchangeEntries is a question and its answer.
func exchangeEntries(st *session.State, e *session.Exchange) []widgets.Entry {
	id := 2 * int64(e.ID)
	q := widgets.Entry{ID: id, Who: "you", WhoRole: widgets.Strong,
		Text: widgets.SafeLines(e.Question, widgets.MaxAnswer)}
	if !mine(st, e.Asker) {
		q.Who, q.WhoRole = widgets.Safe(e.Name, widgets.MaxName), widgets.Normal
	}
	if e.Question == "" {
		q.Text, q.TextRole = "(this screen may not see the question)", widgets.Dim
	}
	a := widgets.Entry{ID: id + 1, Who: modelWord(st), WhoRole: widgets.Accent,
		Text:     widgets.SafeLines(strings.TrimLeft(e.Text, "\n"), widgets.MaxAnswer),
		Thinking: widgets.SafeLines(strings.Trim(e.Thinking, "\n"), widgets.MaxAnswer)}
	switch {
	case e.Done:
		a.Foot, a.FootRole = answerFoot(st, e)
	case e.Text == "" && e.Thinking == "":
		a.Wait = "reading the conversation"
	}
	return []widgets.Entry{q, a}
}

// mine says whether a question is this device's own. A client that only asks is told of no others.
func mine(st *session.State, asker session.PeerID) bool {
	return asker == st.Self || st.Role == session.Asker
}

// modelWord is the model's name cut to its first word.
func modelWord(st *session.State) widgets.Text {
	if w := strings.Fields(modelName(st)); len(w) > 0 {
		return widgets.Safe(w[0], widgets.MaxName)
	}
	return "model"
}

// answerFoot is the line under an answer (spec cli.md 9.3).
func answerFoot(st *session.State, e *session.Exchange) (widgets.Text, widgets.Role) {
	if e.Reason == session.DoneFailed {
		text := textf("the answer failed: %s", e.Err)
		if st.Phase == session.Degraded {
			text += "; the host has to re-deal"
		}
		return text, widgets.Bad
	}
	parts := []string{"room " + st.Code}
	if m := modelName(st); m != "" {
		parts = append(parts, m)
	}
	parts = append(parts, count(e.Stats.Tokens, "token")+doneWord(e.Reason))
	if speed := usage.TokPerSec(e.Stats.PerSec); speed != "" {
		parts = append(parts, speed)
	}
	if e.Stats.ReusedTokens > 0 {
		parts = append(parts, fmt.Sprintf("%d of %d prompt tokens reused", e.Stats.ReusedTokens, e.Stats.PromptTokens))
	} else if e.Stats.PromptTokens > 0 {
		parts = append(parts, count(e.Stats.PromptTokens, "prompt token"))
	}
	return widgets.Safe(strings.Join(parts, " · "), widgets.MaxReason), widgets.Dim
}

// doneWord says what ended an answer early.
func doneWord(r session.DoneReason) string {
	switch r {
	case session.DoneStopped:
		return " (stopped)"
	case session.DoneLength:
		return " (cut at --max-tokens)"
	case session.DoneContext:
		return " (the room's context is full)"
	}
	return ""
}

// refusal turns a refused question into a sentence with advice.
func refusal(r session.AskRefused) widgets.Text {
	advice := map[string]string{
		"queue":    "ask again in a moment",
		"ctx":      "/clear starts over",
		"degraded": "the host has to re-deal",
		"loading":  "ask again when the room is online",
		"off":      "the host can allow API clients",
	}[r.Code]
	if advice == "" {
		return textf("not taken: %s", r.Why)
	}
	return textf("not taken: %s; %s", r.Why, advice)
}
