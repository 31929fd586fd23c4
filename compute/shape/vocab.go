package shape

// The vocabulary is made up: the 256 byte tokens that every text needs, the tags of chats, and words of letters that no
// merge leads to but the first few.

// tags are the special tokens, at the end of the vocabulary.
var tags = []struct {
	text string
	typ  int32
}{
	{"<|endoftext|>", tokenControl}, {"<|im_start|>", tokenControl}, {"<|im_end|>", tokenControl},
	{"<think>", tokenUser}, {"</think>", tokenUser}, {"<tool_call>", tokenUser}, {"</tool_call>", tokenUser},
	{"<tool_response>", tokenUser}, {"</tool_response>", tokenUser},
}

// Values of tokenizer.ggml.token_type.
const (
	tokenNormal  = 1
	tokenControl = 3
	tokenUser    = 4
)

const (
	byteTokens = 256
	letters    = 26
	space      = "Ġ" // how a byte-level vocabulary writes a blank
)

// template is the chat format of Qwen3 in its plainest form (spec engine.md 2.4).
const template = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}" +
	"{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"

// Plain is the number of tokens that are no tags: ids 0 to Plain-1.
func (s *Shape) Plain() int { return s.Vocab - len(tags) }

func (h *header) vocabulary(s *Shape) {
	tokens, types := make([]string, 0, s.Vocab), make([]int32, 0, s.Vocab)
	for b := range byteTokens {
		tokens = append(tokens, string(byteRune(b)))
	}
	for i := range s.Plain() - byteTokens {
		tokens = append(tokens, space+word(i))
	}
	for range tokens {
		types = append(types, tokenNormal)
	}
	for _, t := range tags {
		tokens, types = append(tokens, t.text), append(types, t.typ)
	}
	var merges []string
	for i := range letters {
		merges = append(merges, space+" "+word(i))
	}
	pre := "qwen2"
	if s.hybrid() {
		pre = "qwen35"
	}
	const prefix = "tokenizer.ggml."
	h.str(prefix+"model", "gpt2")
	h.str(prefix+"pre", pre)
	h.strings(prefix+"tokens", tokens)
	h.ints(prefix+"token_type", types)
	h.strings(prefix+"merges", merges)
	h.num(prefix+"eos_token_id", s.Plain()+2)
	h.num(prefix+"padding_token_id", s.Plain())
	h.key(prefix + "add_bos_token")
	h.u32(typeBool)
	h.put([]byte{0})
	h.str("tokenizer.chat_template", template)
}

// byteRune is how a byte is written in a byte-level vocabulary (spec engine.md 2.2).
func byteRune(b int) rune {
	shown := func(b int) bool { return b >= 33 && b <= 126 || b >= 161 && b <= 172 || b >= 174 && b <= 255 }
	if shown(b) {
		return rune(b)
	}
	hidden := 0
	for i := range b {
		if !shown(i) {
			hidden++
		}
	}
	return rune(0x100 + hidden)
}

// word is the i-th word of letters, shorter ones first: a to z, aa to zz, and so on.
func word(i int) string {
	var w []byte
	for ; i >= 0; i = i/letters - 1 {
		w = append([]byte{byte('a' + i%letters)}, w...)
	}
	return string(w)
}
