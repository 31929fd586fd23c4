package token

import "fmt"

// The tags of a conversation.
const (
	tagStart      = "<|im_start|>"
	tagEnd        = "<|im_end|>"
	tagThink      = "<think>"
	tagThinkEnd   = "</think>"
	tagCall       = "<tool_call>"
	tagCallEnd    = "</tool_call>"
	tagResult     = "<tool_response>"
	tagResultEnd  = "</tool_response>"
	roleUser      = "user"
	roleAssistant = "assistant"
	roleTool      = "tool"
)

// Segment is a part of a rendered conversation. Exactly one field is set.
type Segment struct {
	Special string  // text of a special token
	Text    string  // plain text, tokenized in one call of its own
	IDs     []int32 // sampled ids, copied
}

// Turn is one turn of the room's own chat.
type Turn struct {
	Role string  // "user" or "assistant"
	Text string  // a question, or an answer whose ids aren't known
	IDs  []int32 // an answer's ids exactly as they were sampled
	Open bool    // an answer that is being continued: it has no end yet
}

// Chat is the room's own conversation.
type Chat struct {
	System string // "" for none
	Turns  []Turn
	Think  bool // the model may think; else every answer starts behind an empty think block
}

// Render writes a conversation up to where the model goes on (spec room.md 5.10). It does the same for
// all profiles, apart from models without think tags: with thinking on the model opens its own block.
// The texts are never trimmed.
func (p Profile) Render(c Chat) []Segment {
	var w writer
	if c.System != "" {
		w.special(tagStart)
		w.text("system\n" + c.System)
		w.endTurn()
	}
	for _, turn := range c.Turns {
		if turn.Role == roleUser {
			w.special(tagStart)
			w.text("user\n" + turn.Text)
			w.endTurn()
			w.header()
			if !c.Think && !p.NoThink {
				w.emptyThink()
			}
			continue
		}
		if len(turn.IDs) > 0 {
			w.ids(turn.IDs)
		} else {
			w.text(turn.Text)
		}
		if !turn.Open {
			w.endTurn()
		}
	}
	return w.done()
}

// Segments appends the ids of a rendered conversation to dst. A special token that the vocabulary
// doesn't have is written as plain text, except the two that bound a turn: without them the error is
// ErrNoChat. An id outside the vocabulary is ErrID.
func (t *Tokenizer) Segments(dst []int32, segs []Segment) ([]int32, error) {
	for _, s := range segs {
		switch {
		case s.Special != "":
			id, ok := t.Special(s.Special)
			switch {
			case ok:
				dst = append(dst, id)
			case s.Special == tagStart || s.Special == tagEnd:
				return dst, fmt.Errorf("%w: %s", ErrNoChat, s.Special)
			default:
				dst = t.Encode(dst, s.Special)
			}
		case s.Text != "":
			dst = t.Encode(dst, s.Text)
		default:
			for _, id := range s.IDs {
				if id < 0 || int(id) >= t.Size() {
					return dst, fmt.Errorf("%w: %d of %d", ErrID, id, t.Size())
				}
			}
			dst = append(dst, s.IDs...)
		}
	}
	return dst, nil
}
