package screens

import (
	"strings"

	"pooled/session"
	"pooled/widgets"
)

// chatCommand splits a typed line. A command is a slash and letters only as its first word; anything else (a path, "/2")
// is a question and gives an empty word.
func chatCommand(line string) (word, arg string) {
	first, rest, _ := strings.Cut(line, " ")
	name, ok := strings.CutPrefix(first, "/")
	if !ok || name == "" || strings.ContainsFunc(name, notLetter) && name != "?" {
		return "", ""
	}
	return strings.ToLower(name), strings.TrimSpace(rest)
}

func notLetter(r rune) bool { return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') }

// chatHelp is what /help says.
const chatHelp = widgets.Text(`/clear            forget the conversation (start over)
/think [on|off]   let the model think before it answers (shown dimmed); no argument toggles
/help             this list
/exit, /bye       leave (Ctrl-D too)
Ctrl-C            stop the answer being written; at the prompt, leave`)

// chatter is the chat of a page: transcript, prompt, and what the commands do.
type chatter struct {
	console
	chat    chatView
	talk    *widgets.Transcript
	prompt  *widgets.Prompt
	st      *session.State
	think   bool
	wayOut  func() // what /exit and Ctrl-D do
	waiting widgets.Text
}

// newChatPane builds the chat pane with its prompt.
func (c *chatter) newChatPane(o BuildOptions) *pane {
	c.think = o.Think
	c.talk, c.prompt = widgets.NewTranscript(o.Look), widgets.NewPrompt(o.Look)
	c.prompt.OnSubmit = c.submit
	return &pane{name: chatName, body: c.talk, prompt: c.prompt}
}

// submit runs a command or asks a question; false keeps the text in the prompt.
func (c *chatter) submit(line string) bool {
	c.talk.Follow()
	word, arg := chatCommand(line)
	if word == "" {
		return c.question(line)
	}
	switch word {
	case "clear", "reset":
		if err := c.o.View.Clear(); err != nil {
			c.tell(true, textf("not cleared: %v", err))
			break
		}
		c.chat.notes = nil
		c.tell(false, "the conversation starts over")
	case "think":
		c.setThink(arg)
	case "help", "?":
		c.tell(false, chatHelp)
	case "exit", "bye", "quit", "q":
		c.wayOut()
	default:
		c.tell(false, textf("/%s is not a command: /help lists them", word))
	}
	return true
}

func (c *chatter) setThink(arg string) {
	on := !c.think
	switch arg {
	case "":
	case "on", "off":
		on = arg == "on"
	default:
		c.tell(false, "use /think, /think on or /think off")
		return
	}
	if err := c.o.View.SetThinking(on); err != nil {
		c.tell(true, textf("thinking not switched: %v", err))
		return
	}
	c.think = on
	word := "off"
	if on {
		word = "on"
	}
	c.tell(false, textf("thinking is %s; the next turn reads the conversation again", word))
}

// question asks the room. While an answer is being written the text stays and becomes the next line.
func (c *chatter) question(line string) bool {
	if c.busy() {
		return false
	}
	if err := c.o.View.Ask(line); err != nil {
		c.tell(true, textf("not asked: %v", err))
		return false
	}
	c.chat.asked = line
	c.showChat()
	return true
}

// busy says whether a question of this device is under way.
func (c *chatter) busy() bool {
	return c.chat.asked != "" || c.st.Answer != nil && !c.st.Answer.Done && mine(c.st, c.st.Answer.Asker)
}

func (c *chatter) tell(bad bool, text widgets.Text) {
	c.chat.say(c.st, bad, text)
	c.showChat()
}

// applyChat takes in what happened to questions and shows the chat.
func (c *chatter) applyChat(st *session.State, events []session.Event) {
	c.st = st
	for _, ev := range events {
		switch ev := ev.(type) {
		case session.AnswerStarted:
			if mine(st, ev.Asker) {
				c.chat.asked = ""
			}
		case session.AnswerDone, session.Lagged, session.RoomDegraded:
			c.chat.asked = ""
			c.stopping = false
		case session.AskRefused:
			c.chat.asked = ""
			c.chat.say(st, true, refusal(ev))
		case session.Notice:
			if st.Role == session.Asker && ev.Level != session.Info { // a page without a log
				c.chat.say(st, ev.Level == session.Error, widgets.Safe(ev.Text, widgets.MaxLine))
			}
		}
	}
	c.showChat()
}

func (c *chatter) showChat() {
	entries := chatEntries(c.st, &c.chat)
	if len(entries) == 0 && c.waiting != "" {
		entries = []widgets.Entry{{ID: 1<<62 + 1, Wait: c.waiting}}
	}
	c.talk.SetModel(widgets.TranscriptModel{Entries: entries})
	m := widgets.PromptModel{Hint: "type a message · /help for commands · Ctrl-C stops an answer"}
	if c.st != nil && c.st.Role == session.Host {
		m.Away = "press c to write a message"
	}
	if c.busy() {
		m = widgets.PromptModel{Busy: "(answering)", Hint: "Ctrl-C stops it"}
	}
	c.prompt.SetModel(m)
}

// lastAnswer is the newest answer with text.
func lastAnswer(st *session.State) string {
	if st.Answer != nil && st.Answer.Text != "" {
		return st.Answer.Text
	}
	for i := len(st.Chat) - 1; i >= 0; i-- {
		if st.Chat[i].Text != "" {
			return st.Chat[i].Text
		}
	}
	return ""
}
